"""The operations that measure models, data sets and schedules without drawing an image."""

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
