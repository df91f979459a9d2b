"""The comparison of solvers, grids and schedules behind `Client.compare` and ``anisoflight compare``."""

import json
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, TypeAlias, cast

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ..errors import BadRequestError
from ..images import to_float
from ..operations.datasets import Datasets
from ..operations.sampling import Sampling
from ..wire.progress import Progress
from .bench import Bench, Reference, Sampler, half_range, normalized
from .metrics import Features, principal_features

Choice: TypeAlias = str | Mapping[str, Any]
"""A name, or a mapping as Sample takes it."""

CONVERGED = {"solver": "heun", "second_point": "endpoint", "grid": "edm", "steps": 60}
"""The sampler of the exact solution of a schedule's path."""
WARMING = {"solver": "euler", "steps": 1}
"""The cheapest sampler that compiles all programs of a schedule, so that no row times compilation."""
COMPONENTS = 40
"""Default number of principal components of a Fréchet distance."""

_COLUMNS = ["schedule", "grid", "solver", "nfe", "evaluations", "ode_error", "frechet"]
_COLUMNS += ["frechet_min", "frechet_max", "frechet_spread", "seconds", "code", "message"]


class Comparisons(Datasets, Sampling):
    """The comparison of samplers."""

    def compare(
        self,
        model: str,
        *,
        solvers: Sequence[Choice],
        nfe: Sequence[int],
        schedules: Sequence[Choice | None] = (None,),
        grids: Sequence[Choice] = ("schedule",),
        seeds: int | Sequence[int] = 3,
        samples: int = 2000,
        probes: int = 256,
        reference: str | ArrayLike | None = None,
        features: Features | int = COMPONENTS,
        guidance: float | None = None,
        guidance_interval: tuple[float, float] | None = None,
        guide: str | None = None,
        progress: bool = True,
    ) -> pd.DataFrame:
        """Measure every solver on every grid of every schedule (None: the model's own) at every number of evaluations.

        One row each, with columns schedule, grid, solver, nfe (requested), evaluations (counted), and

        - ode_error: 100 × the rms distance per pixel of `probes` samples to the converged solution of the same path
          from the same latents (60 steps of Heun's method on EDM's grid). An isotropic and an anisotropic schedule have
          different paths: compare their Fréchet distances, not their ODE errors.
        - frechet, frechet_min, frechet_max, frechet_spread (half the range): the Fréchet distance of `samples` images
          to the reference over `seeds`; NaN without a reference, which is a data set's name or images in [−1, 1].
          features is a function images [N, H, W, C] → [N, D], or a number of leading principal components of the
          reference's pixels.
        - seconds per 1000 samples; code and message if the solver cannot run, such as with too few evaluations.

        With `guidance`, as in `sample`, every row and the converged solution are guided: nfe counts the evaluations of
        the sampler, `evaluations` those of both networks. Solvers, grids and schedules are names, or mappings as in
        Sample. `anisoflight.plot_comparison` draws the table.

        >>> table = client.compare("digits", solvers=["ab", {"solver": "heun", "second_point": "endpoint"}], nfe=[3, 5],
        ...                        probes=8, progress=False)
        >>> table["solver"].tolist(), table["evaluations"].tolist()
        (['ab', 'ab', 'heun endpoint', 'heun endpoint'], [3, 5, 3, 5])
        """
        for name, choices in {"solvers": solvers, "nfe": nfe, "schedules": schedules, "grids": grids}.items():
            if isinstance(choices, str | Mapping) or np.ndim(choices) != 1 or len(choices) == 0:
                raise ValueError(f"{name} must be a list of one or more, got {choices!r}")
        common: dict[str, Any] = {"guidance": guidance, "guidance_interval": guidance_interval, "guide": guide}
        fields = False
        if isinstance(reference, str):
            stored = self.dataset(reference, progress=False)
            common["layout"] = stored.layout
            own = self.call("DescribeModel", model=model).get("normalization")
            fields = (own or stored.normalization) is not None
            reference = normalized(stored, own) if fields else to_float(stored.images)
        references = {}
        if reference is not None:
            extract = principal_features(reference, features, not fields) if isinstance(features, int) else features
            references["frechet"] = Reference(extract, reference)
        base = [samples * i for i in range(seeds)] if isinstance(seeds, int) else list(seeds)
        if not base or samples < 2 or probes < 1:
            raise ValueError(f"needs seeds ≥ 1, samples ≥ 2, probes ≥ 1, not {seeds}, {samples}, {probes}")
        bench = Bench(self, references, base, samples, probes)
        for schedule in schedules:
            path, options = label(schedule), {"schedule": schedule, **common}
            bench.converged(path, Sampler("converged", model, {**CONVERGED, **options}, path))
            if references:
                Sampler("warming", model, {**WARMING, **options}, path).draw(self, n=samples, seed=0)
        rows: list[dict[str, Any]] = []
        jobs = list(product(schedules, grids, solvers, map(int, nfe)))
        for schedule, grid, solver, evaluations in Progress(jobs, desc="compare", unit="cell", disable=not progress):
            named = {"solver": solver} if isinstance(solver, str) else solver
            options = {**named, "grid": grid, "schedule": schedule, **common}
            sampler = Sampler(label(solver), model, options, label(schedule))
            row = {"schedule": sampler.path, "grid": label(grid), "solver": sampler.name, "nfe": evaluations}
            try:
                rows.append({**row, **_cell(bench, sampler, evaluations), "code": "", "message": ""})
            except BadRequestError as error:
                rows.append({**row, "code": error.code, "message": error.message})
        frame = pd.DataFrame(rows, columns=pd.Index(_COLUMNS))
        frame["evaluations"] = frame["evaluations"].astype("Int64")
        return frame


def plot_comparison(frame: pd.DataFrame, column: str = "ode_error", ax: Any = None) -> Any:
    """Draw a column of a comparison against NFE, one line per schedule, grid and solver; returns the matplotlib axes.

    ``frechet`` is drawn with its range over the seeds.
    """
    from matplotlib import pyplot

    if ax is None:
        _, ax = pyplot.subplots()
    varying = [key for key in ("schedule", "grid", "solver") if frame[key].nunique() > 1] or ["solver"]
    for key, part in frame.dropna(subset=[column]).groupby(varying, sort=False):
        name = ", ".join(cast("tuple[str, ...]", key))
        if column == "frechet":
            bars = [part["frechet"] - part["frechet_min"], part["frechet_max"] - part["frechet"]]
            ax.errorbar(part["nfe"], part["frechet"], yerr=bars, marker="o", capsize=2, label=name)
        else:
            ax.plot(part["nfe"], part[column], "o-", label=name)
    ax.set(xlabel="NFE", ylabel=_AXES.get(column, column), yscale="log", xticks=sorted(frame["nfe"].unique()))
    ax.legend(fontsize=8)
    return ax


def label(choice: Choice | None) -> str:
    """The name of a choice of solver, grid or schedule in the table.

    >>> label("ab"), label({"solver": "heun", "second_point": "endpoint"}), label({"edm": {"T": 400}})
    ('ab', 'heun endpoint', 'edm T=400')
    """
    if choice is None:
        return "model's own"
    if isinstance(choice, str):
        return choice
    words = []
    for key, value in choice.items():
        if isinstance(value, Mapping):
            words += [key, *(f"{name}={number}" for name, number in value.items())]
        elif isinstance(value, str):
            words.append(value)
        elif isinstance(value, bool):
            words += [key] if value else [f"no {key}"]
        else:
            words.append(f"{key}={json.dumps(value)}")
    return " ".join(words)


_AXES = {"ode_error": "ODE error × 100", "frechet": "Fréchet distance", "seconds": "s / 1000 samples"}


def _cell(bench: Bench, sampler: Sampler, nfe: int) -> dict[str, Any]:
    row = dict(vars(bench.probe(sampler, nfe)))
    if bench.references:
        drawn = bench.distances(sampler, nfe)
        found = drawn.by_reference["frechet"]
        row |= {"frechet": float(np.mean(found)), "frechet_min": min(found), "frechet_max": max(found)}
        row |= {"frechet_spread": half_range(found), "seconds": drawn.seconds}
    return row
