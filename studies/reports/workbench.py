"""Measuring the samplers of one problem, with what was measured before kept."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anisoflight.compare.bench import Bench, Reference, Sampler
from anisoflight.compare.comparison import CONVERGED
from anisoflight.compare.metrics import classifier_features, principal_features
from anisoflight.errors import BadRequestError

from . import schedules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anisoflight import Client
    from anisoflight.files.cells import Cells
    from studies.demo.data import Data

    from .networks import Problem

FD, FD_TRAIN = "FD", "FD to train"
ISOTROPIC = "isotropic"


@dataclass(frozen=True)
class Effort:
    """How much goes into what is compared.

    Latents of the ODE error, and thousand images that a schedule is learned for.
    """

    probes: int = 256
    learn: float = 12.8


FULL, SLIGHT = Effort(), Effort(probes=8, learn=0.128)


class Workbench:
    """The problem's network on a server, the real images that its samples are compared with, and the cells measured.

    FD is to held-out images: of digits on a classifier's hidden units, of patches on 40 principal components. Seeds
    are the same for every sampler, so that differences can be taken seed by seed.
    """

    def __init__(self, client: Client, problem: Problem, split: Data, cells: Cells, effort: Effort = FULL) -> None:
        self.client, self.problem, self.split, self.cells, self.effort = client, problem, split, cells, effort
        self.network = client.describe_model(problem.name)["hash"][:12]
        train = split.train
        if problem.name == "digits":
            features, _ = classifier_features(train.images, train.labels)
        else:
            features = principal_features(train.images, 40)
        self.references = {FD: Reference(features, split.test.images), FD_TRAIN: Reference(features, train.images)}
        self._exact: set[str] = set()
        self._probe = self._bench(0, ())

    def error(self, sampler: Sampler, nfe: int) -> float | None:
        """The ODE error: NaN where the solver cannot do with so few evaluations, None where none is kept."""
        key = self._key(sampler, nfe) | {"probes": self.effort.probes}

        def measure() -> dict[str, float | None]:
            try:
                self._converge(sampler)
                return {"ode_error": self._probe.probe(sampler, nfe).ode_error}
            except BadRequestError:
                return {"ode_error": None}

        row = self.cells.measured(key, measure)
        return None if not row else math.nan if row["ode_error"] is None else row["ode_error"]

    def distances(self, sampler: Sampler, nfe: int, count: int, seeds: Sequence[int]) -> dict[str, list[float]]:
        """The Fréchet distances to held-out and training images, a list over seeds; empty where they are not kept."""
        key = self._key(sampler, nfe) | {"count": count, "seeds": list(seeds)}
        return self.cells.measured(key, lambda: self._bench(count, seeds).distances(sampler, nfe).by_reference)

    def _bench(self, count: int, seeds: Sequence[int]) -> Bench:
        return Bench(self.client, self.references, seeds, count, self.effort.probes)

    def _key(self, sampler: Sampler, nfe: int) -> dict[str, Any]:
        return {"problem": self.problem.name, "network": self.network, "sampler": sampler.name, "nfe": nfe}

    def _converge(self, sampler: Sampler) -> None:
        """All isotropic schedules of one horizon follow the same path; every other path is its own."""
        if sampler.path not in self._exact:
            schedule = schedules.edm(self.problem) if sampler.path == ISOTROPIC else sampler.path
            exact = {**CONVERGED, "schedule": schedule}
            self._probe.converged(sampler.path, Sampler("converged", self.problem.name, exact, sampler.path))
            self._exact.add(sampler.path)
