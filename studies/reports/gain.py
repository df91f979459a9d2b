"""``python -m studies.reports.gain``: where anisotropic sampling wins when the network has no error.

The data are draws from a mixture of normal laws, one for each cluster of a problem's training images, and the network
is its exact score. A sampler is judged against other draws of the same mixture.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from tqdm.auto import tqdm

from anisoflight.compare.bench import Reference
from anisoflight.compare.metrics import principal_features
from studies.features import edge_features
from studies.measuring import require_count

from . import gainpage
from .candidates import SOLVERS
from .command import command
from .fairpage import EDGES, FD

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from anisoflight import Client
    from anisoflight.files.cells import Cells

    from .networks import Problem


@dataclass(frozen=True)
class Size:
    """How much is measured: clusters of each mixture, evaluations, draws, samples of each seed of latents, and
    statistics' samples.
    """

    clusters: tuple[int, ...] = (32, 128)
    nfes: tuple[int, ...] = (2, 3, 5, 9)
    draws: int = 8000
    samples: int = 2000
    seeds: tuple[int, ...] = (9 * 10**8, 9 * 10**8 + 10**6, 9 * 10**8 + 2 * 10**6)
    points: int = 160


FULL_SIZE = Size()
QUICK = Size(clusters=(4,), nfes=(3,), draws=200, samples=40, seeds=(1, 1001), points=8)
CUTS: dict[int, list[int]] = {1: [], 2: [2], 4: [1, 2, 4], 8: [1, 2, 3, 4, 5, 6, 7]}
"""Where the frequencies are cut into J bands."""


@dataclass(frozen=True)
class Mixture:
    """A mixture on the server: the model of that name, and a dataset of draws from it, whose labels are clusters."""

    client: Client
    name: str
    draws: str
    truth: np.ndarray[Any, Any]
    """Draws that no sampler has seen."""

    def schedule(self, name: str, kind: str, **options: Any) -> str:
        """The schedule of that name, made unless the server has it."""
        name = f"{self.name}-{name}"
        if name not in self.client.schedules().index:
            self.client.make_schedule(name, kind, progress=False, **options)
        return name

    def started(self, sigma: float | None) -> str | dict[str, Any]:
        """EDM's schedule, from the draws' own normal law at a noise level unless that is None."""
        if sigma is None:
            return "edm"
        options = {"dataset": self.draws, "schedule": {"edm": {"T": sigma**2}}}
        return self.schedule(f"start-{sigma:g}", "start", **options)

    def nodes(self, solver: str, nfe: int, subspaces: int, sigma: float | None) -> str:
        """Nodes of a solver in J bands, for the start that they are sampled from."""
        family = {"basis": "dct", "cuts": CUTS[subspaces]} if subspaces > 1 else {}
        begin = {} if sigma is None else {"T": sigma**2, "start": {}}
        end = "" if sigma is None else f"-from-{sigma:g}"
        options = {"dataset": self.draws, "solver": solver, "nfe": nfe, **family, **begin}
        return self.schedule(f"nodes-{solver}-{nfe}-{subspaces}{end}", "gaussian", **options)

    def local(self, sigma: float | None, points: int) -> str:
        """A schedule with the statistics of the exact denoiser."""
        options = {"model": self.name, "dataset": f"{self.name}-pixels", "T": 80.0**2, "points": points}
        name = self.schedule("local", "geodesic", statistics=True, **options)
        if sigma is None:
            return name
        return self.schedule(f"local-{sigma:g}", "start", dataset=self.draws, schedule=name, sigma_max=sigma)


def prepare(client: Client, problem: Problem, clusters: int, size: Size) -> Mixture:
    """The mixture of a problem's clusters, and its draws."""
    name = f"{problem.name}-mixture-{clusters}"
    if name not in client.models().index:
        images = problem.load().train.images
        found = KMeans(clusters, n_init=1, random_state=0).fit(images.reshape(len(images), -1))
        client.put_dataset(f"{name}-clusters", images, found.labels_.astype(np.int32), replace=True)
        client.make_mixture(name, dataset=f"{name}-clusters", covariance="dct")
    drawn = f"{name}-draws-{size.draws}"
    if drawn not in client.datasets().index:
        client.draw_dataset(drawn, name, 2 * size.draws, seed=1, progress=False)
    images = client.dataset(drawn, progress=False).images
    if f"{name}-pixels" not in client.datasets().index:  # without labels, for the mixture is asked as a whole
        client.put_dataset(f"{name}-pixels", np.clip(images[: size.draws], -1, 1))
    return Mixture(client, name, drawn, images[size.draws :])


@dataclass(frozen=True)
class Arm:
    """A sampler: what it is called, and Sample's options on a mixture for an NFE."""

    name: str
    options: Callable[[Mixture, int], dict[str, Any]]


def _start(sigma: float | None) -> str:
    return "standard start" if sigma is None else f"matched start at {sigma:g}"


def _isotropic(label: str, sigma: float | None) -> Arm:
    def options(mixture: Mixture, _nfe: int) -> dict[str, Any]:
        return {**SOLVERS[label], "grid": "polynomial", "schedule": mixture.started(sigma)}

    return Arm(f"{label}, {_start(sigma)}", options)


def _on_nodes(subspaces: int, sigma: float | None) -> Arm:
    def options(mixture: Mixture, nfe: int) -> dict[str, Any]:
        return {**SOLVERS["2M"], "schedule": mixture.nodes("dpmpp2m", nfe, subspaces, sigma)}

    return Arm(f"2M, nodes J = {subspaces}, {_start(sigma)}", options)


def _local(sigma: float | None, points: int, *, corrector: bool) -> Arm:
    def options(mixture: Mixture, _nfe: int) -> dict[str, Any]:
        chosen = {"solver": "local", "corrector": corrector}
        return {**chosen, "grid": "polynomial", "schedule": mixture.local(sigma, points)}

    return Arm(f"local-2{', corrected' if corrector else ''}, {_start(sigma)}", options)


def arms(points: int) -> list[Arm]:
    """The samplers, both sides with the same starts."""
    return [
        *(_isotropic(label, sigma) for label in ("iPNDM-4", "2M") for sigma in (None, 80, 20, 10)),
        *(_on_nodes(subspaces, sigma) for sigma in (None, 20) for subspaces in CUTS),
        *(_local(sigma, points, corrector=corrector) for corrector in (False, True) for sigma in (None, 20, 10)),
    ]


def measure(mixture: Mixture, cells: Cells, size: Size) -> pd.DataFrame:
    """Both distances of every sampler, as far as they are kept or may be measured."""
    features = {FD: principal_features(mixture.truth, 40), EDGES: edge_features(mixture.truth)}
    references = {name: Reference(found, mixture.truth) for name, found in features.items()}

    def distances(arm: Arm, nfe: int, seed: int) -> dict[str, float]:
        request = {"labels": [-1] * size.samples, "seed": seed, "nfe": nfe, "dtype": "float32"}
        drawn = mixture.client.sample(mixture.name, progress=False, **request, **arm.options(mixture, nfe))
        require_count(arm.name, nfe, int(drawn.nfe.max()))
        return {name: reference.distance(drawn.images) for name, reference in references.items()}

    rows = []
    jobs = [(arm, nfe, seed) for arm in arms(size.points) for nfe in size.nfes for seed in size.seeds]
    for arm, nfe, seed in tqdm(jobs, desc=mixture.name, unit="row"):
        key = {"gain": mixture.name, "sampler": arm.name, "nfe": nfe, "samples": size.samples, "seed": seed}
        if found := cells.measured(key, lambda arm=arm, nfe=nfe, seed=seed: distances(arm, nfe, seed)):
            rows.append({"sampler": arm.name, "nfe": nfe, "seed": seed, **found})
    return pd.DataFrame(rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write studies/docs/gain.md."""
    with command("gain", "What anisotropy gains without network error", __doc__, arguments, ["patches8"]) as run:
        size = QUICK if run.quick else FULL_SIZE
        run.page.text(gainpage.MEASURED)
        for problem in run.problems:
            for clusters in size.clusters:
                mixture = prepare(run.client, problem, clusters, size)
                gainpage.write(run.page, mixture.name, measure(mixture, run.cells, size))


if __name__ == "__main__":
    main()
