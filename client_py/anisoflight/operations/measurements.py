"""The operations that measure models, data sets and schedules without drawing an image."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt
import pandas as pd

from ..wire.calls import Connection
from ..wire.exchanges import Gradient, gradient_rows
from . import documented


class Measurements(Connection):
    """Measurements of data sets, models and schedules, and the gradient of training."""

    @documented("EvaluateModel")
    def evaluate_model(self, model: str, dataset: str, *, progress: bool = True, **options: Any) -> pd.DataFrame:
        """Loss by noise level: columns label, subspace, t, sigma, loss, residual, stderr."""
        request = {"model": model, "dataset": dataset, **options}
        return self.table("EvaluateModel", request, "evaluate", "level", progress=progress).to_pandas()

    @documented("Predict")
    def predict(self, model: str, dataset: str, *, progress: bool = True, **options: Any) -> pd.DataFrame:
        """The energy that each basis, and schedules per class, can save at best, before any training; the largest gain
        first.

        Columns basis, per_class, k (dimensions of P_1 per channel), cuts (of dct), energy, stderr, gain = 1 − E/E_iso,
        where E_iso is that of the best isotropic schedule, and gain_stderr: a gain within two of them is not
        significant. Energies are corrected for the apparent gain of noise.

        >>> table = client.predict("digits", "blocks", T=400, points=8, samples=4, bases=["dct"])
        >>> sorted(set(table["basis"]))
        ['dct', 'none']
        """
        request = {"model": model, "dataset": dataset, **options}
        table = self.table("Predict", request, "predict", "sample", progress=progress)
        names = table.schema.metadata[b"bases"].decode().split()
        frame = table.to_pandas()
        frame["basis"] = [names[i] for i in frame["basis"]]
        frame["per_class"] = frame["per_class"].astype(bool)
        cuts = zip(frame.pop("cut"), frame.pop("cut_2"), strict=True)
        frame.insert(3, "cuts", [[cut for cut in pair if cut] for pair in cuts])
        return frame

    @documented("BenchSchedule")
    def bench_schedule(
        self,
        dataset: str,
        schedules: Sequence[str | Mapping[str, Any]] = ("edm",),
        solvers: Sequence[str] = ("heun",),
        nfe: Sequence[int] = (5, 9, 17),
        *,
        progress: bool = True,
    ) -> pd.DataFrame:
        """Solve with solvers on schedules for the data set's Gaussian, where a sampler's output is known in closed
        form.

        Columns schedule, solver, nfe, steps, label (−1: the whole data set), subspace (−1: the whole image), dims,
        variance (the subspace's share); w2_squared = spread + shift: the squared 2-Wasserstein distance over the data's
        total variance; noise: the error that independent errors of a network would add. No network is evaluated and
        nothing is drawn. Schedules per class use the class's Gaussian, and those with a start begin from it. Schedules
        on bases other than "none" and "dct", and the solvers local and fitted, are refused.

        >>> table = client.bench_schedule("blocks", solvers=["euler", "dpmpp2m"], nfe=[5])
        >>> table["solver"].tolist(), table["subspace"].tolist()
        (['euler', 'euler', 'dpmpp2m', 'dpmpp2m'], [-1, 0, -1, 0])
        """
        lists = {"schedules": list(schedules), "solvers": list(solvers), "nfe": list(nfe)}
        request = {"dataset": dataset, **lists}
        frame = self.table("BenchSchedule", request, "bench", "row", progress=progress).to_pandas()
        frame["schedule"] = [lists["schedules"][i] for i in frame["schedule"]]
        frame["solver"] = [lists["solvers"][i] for i in frame["solver"]]
        return frame

    def schedule_gradient(
        self,
        schedule: str,
        model: str,
        images: npt.ArrayLike,
        noise: npt.ArrayLike,
        t: npt.ArrayLike,
        *,
        probe: npt.ArrayLike | None = None,
        labels: npt.ArrayLike | None = None,
        mode: str | None = None,
        c: float | None = None,
        layout: str | None = None,
        progress: bool = True,
    ) -> Gradient:
        """The trajectory loss Σ_j ω_j |P_j(flow + ε)|² of every row, and its gradient with respect to the schedule,

            d loss = Σ_j A_j dg_j(t) + B_j dġ_j(t),    ω_j = ġ_j² / (g_j (c + g_j)).

        noise is ε, in the shape of images; t [n] are the times; probe (default: random signs ±1) estimates the trace in
        mode "full". `layout` is as in `denoise`.
        """
        request = {"schedule": schedule, "model": model, "mode": mode, "c": c}
        rows = gradient_rows(images, noise, probe, t, labels, layout)
        return Gradient(*self.exchange("ScheduleGradient", request, rows, "gradient", progress))
