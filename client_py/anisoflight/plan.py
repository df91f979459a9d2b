"""Plans: samplers as numbers, made by the server and stepped anywhere."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .files.schedules import read_start, read_with_basis, write_with_basis
from .subspaces import Subspaces
from .subspaces.coordinates import Coordinates

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from .files.schedules import Vectors
    from .start import Start

Array = np.ndarray[Any, Any]

_FORMAT, _VERSION = "anisoflight-plan", 1


@dataclass(frozen=True)
class Stage:
    """One evaluation of the network, and the combination that follows it."""

    t: float
    """Schedule time of the evaluation."""
    sigmas: Array
    """√g_j [J], the noise levels of the evaluation."""
    alpha: list[float]
    """[J], or an entry for each coordinate."""
    beta: list[list[float]]
    """As alpha, by the history, the newest first."""
    noise: list[float]
    """[J], standard deviations of the noise that is added before the evaluation; empty for none."""
    step: int
    """The step, from 0, that this stage ends; −1 for an inner stage."""

    @property
    def sigma(self) -> float:
        """The geometric mean of `sigmas`."""
        return float(np.exp(np.log(self.sigmas).mean()))


@dataclass(frozen=True, eq=False)
class Plan:
    """A sampler as numbers: x = Σ_j init_j P_j ξ, and then for every stage, E_0 being its evaluation (docs/wire.md)

        x ← Σ_j P_j (α_j x + Σ_i β_ji E_i)

    The P_j are those of the schedule's subspaces, or project on the `coordinates` of solver "local".

    file is the reply of ``PlanSampler``, vectors are the rows of the basis by label, where it is not one by formula.

    >>> plan = client.plan("edm", solver="euler", steps=2)
    >>> plan.solver, plan.nfe, plan.init, [stage.t for stage in plan.stages]
    ('euler', 2, [80.0], [6400.0, 3200.0])
    """

    file: Mapping[str, Any]
    vectors: Vectors | None = None
    law: Start | None = None
    """What sampling starts from: noise alone where it is None, else x = μ + (Σ + Σ_j init_j² P_j)^½ ξ."""

    def __post_init__(self) -> None:
        found = (self.file.get("format"), self.file.get("version")) if isinstance(self.file, dict) else None
        if found != (_FORMAT, _VERSION):
            raise ValueError(f"not a plan: format and version must be {(_FORMAT, _VERSION)}, got {found}")
        asked = self.file.get("start", {}).get("hash")
        if asked != (None if self.law is None else self.law.hash):
            raise ValueError(f"the plan's start must be the file of hash {asked}, got {self.law}")

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """A plan that `save` wrote; no server is needed."""
        file, vectors = read_with_basis(Path(path))
        return cls(file, vectors, read_start(Path(path)) if "start" in file else None)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the plan as JSON, and beside it its basis to basis.safetensors and its start to start.safetensors."""
        write_with_basis(Path(path), self.file, self.vectors, self.law)

    def __repr__(self) -> str:
        return f"Plan({self.schedule!r}, solver={self.solver!r}, steps={self.steps}, nfe={self.nfe})"

    @property
    def schedule(self) -> str:
        """The name of the schedule that the plan follows."""
        return self.file["schedule"]

    @property
    def label(self) -> int:
        """The class that the plan is for; −1 for none."""
        return self.file["label"]

    @property
    def solver(self) -> str:
        return self.file["solver"]

    @property
    def steps(self) -> int:
        return self.file["steps"]

    @property
    def nfe(self) -> int:
        """Evaluations of the network."""
        return self.file["nfe"]

    @property
    def predicts(self) -> str:
        """What the solver combines: "flow", about −ε, or "denoised" images."""
        return self.file["predicts"]

    @property
    def history(self) -> int:
        """How many evaluations have to be kept, the newest counted."""
        return self.file["history"]

    @property
    def states(self) -> bool:
        """Whether the history holds, behind each evaluation, the x that it was made at."""
        return self.file.get("states", False)

    @property
    def init(self) -> list[float]:
        """What unit noise is multiplied by at the start, in every subspace."""
        return _floats(self.file["init"])

    @cached_property
    def stages(self) -> list[Stage]:
        """One stage for each evaluation, in order."""
        return [
            Stage(
                float(part["t"]),
                np.sqrt(part["g"]),
                _floats(part["alpha"]),
                [_floats(row) for row in part["beta"]],
                _floats(part.get("noise", [])),
                part["step"],
            )
            for part in self.file["stages"]
        ]

    @cached_property
    def coordinates(self) -> Coordinates | None:
        """Those in which the stages combine, in place of the subspaces; None where they combine there."""
        found = self.file.get("coordinates")
        if found is None:
            return None
        sizes = (found["height"], found["width"], found["channels"])
        axes = found.get("axes")
        return Coordinates(*sizes, None if axes is None else np.reshape(axes, (*sizes, sizes[2])))

    @cached_property
    def subspaces(self) -> Subspaces:
        """The projectors P_j of the noise."""
        if self.vectors is None:
            return Subspaces(self.file["family"])
        rows = self.vectors.get(self.label, self.vectors.get(-1))
        if rows is None:
            raise ValueError(
                f"label must be one of {sorted(self.vectors)}, got {self.label}: the basis differs by class"
            )
        return Subspaces(self.file["family"], rows)


def _floats(values: list[float]) -> list[float]:
    """Numbers of JSON, where 1.0 is written 1."""
    return [float(value) for value in values]
