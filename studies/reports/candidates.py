"""The samplers that the solver report compares: solver × grid × schedule."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from anisoflight.compare.bench import Sampler

from . import schedules
from .workbench import ISOTROPIC

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .networks import Problem
    from .workbench import Workbench

FEW = ("Heun", "AB3", "iPNDM-4", "2M", "UniPC-3")
"""The solvers that are looked at where evaluations are dear."""
SOLVERS: dict[str, dict[str, Any]] = {
    "Euler": {"solver": "euler"},
    "Heun": {"solver": "heun", "second_point": "endpoint"},
    "AB3": {"solver": "ab"},
    "iPNDM-4": {"solver": "ipndm"},
    "iPNDM-4v": {"solver": "ipndm_v"},
    "2M": {"solver": "dpmpp2m"},
    "3M": {"solver": "dpmpp3m", "order": 3},
    "UniPC-3": {"solver": "unipc", "order": 3},
    "DEIS-3": {"solver": "deis"},
}


@dataclass(frozen=True)
class Candidate:
    """A solver on a grid of a schedule; nodes are another schedule for every number of evaluations."""

    solver: str
    grid: str
    schedule: str
    sampler: Callable[[int], Sampler]
    isotropic: bool = True

    @property
    def name(self) -> str:
        return f"{self.solver}, {self.grid}, {self.schedule}"


def baselines(problem: Problem) -> dict[str, Candidate]:
    """What the literature samples with at few evaluations: Heun to σ = 0, multistep solvers to σ_min, both on EDM's
    levels (ρ = 7), and 2M uniform in log-SNR.
    """
    grids = ("edm", "polynomial", "logsnr")
    found = {c.name: c for c in _fixed(problem, "EDM", schedules.edm(problem), ISOTROPIC, grids, FEW)}
    names = ("Heun, edm, EDM", "iPNDM-4, polynomial, EDM", "2M, polynomial, EDM", "2M, logsnr, EDM")
    return {name: found[name] for name in names}


def candidates(bench: Workbench, solvers: Sequence[str]) -> list[Candidate]:
    """Every combination, after making or learning its schedule.

    For J = 1 the grids edm, polynomial and logsnr name noise levels, whatever the schedule: they stand once, with
    EDM's.
    """
    client, problem, kept = bench.client, bench.problem, bench.cells.kept
    split = {"basis": "dct", "k": problem.k}
    geodesic = schedules.geodesic(client, problem, problem.name, kept=kept)
    isotropic = schedules.learned(client, problem, "isotropic", {"basis": "none"}, kimg=bench.effort.learn, kept=kept)
    anisotropic = schedules.learned(client, problem, "dct", split, kimg=bench.effort.learn, kept=kept)
    levels = ("edm", "polynomial", "logsnr")
    found = _fixed(problem, "EDM", schedules.edm(problem), ISOTROPIC, (*levels, "schedule"), solvers)
    found += _fixed(problem, "geodesic", geodesic, ISOTROPIC, ("schedule",), solvers)
    found += _fixed(problem, "learned", isotropic, ISOTROPIC, ("schedule",), solvers)
    found += _fixed(problem, "learned J = 2", anisotropic, anisotropic, (*levels, "schedule"), solvers)
    found += [nodes(bench, label) for label in solvers]
    found += [nodes(bench, label, split) for label in solvers]
    return found


def nodes(bench: Workbench, label: str, family: Mapping[str, Any] = MappingProxyType({})) -> Candidate:
    """A solver on its own nodes, one set for every number of evaluations."""
    count = len(family["cuts"]) + 1 if "cuts" in family else 1 + bool(family)
    schedule = f"Gaussian J = {count}"

    def sampler(nfe: int) -> Sampler:
        options = SOLVERS[label]
        name = schedules.nodes(bench.client, bench.problem, options["solver"], nfe, family, kept=bench.cells.kept)
        path = name if family else ISOTROPIC
        return Sampler(f"{label}, nodes, {schedule}", bench.problem.name, {**options, "schedule": name}, path)

    return Candidate(label, "nodes", schedule, sampler, isotropic=not family)


def _fixed(
    problem: Problem, name: str, schedule: Any, path: str, grids: Sequence[str], solvers: Sequence[str]
) -> list[Candidate]:
    def candidate(label: str, grid: str) -> Candidate:
        options = {**SOLVERS[label], "grid": grid, "schedule": schedule}
        found = Sampler(f"{label}, {grid}, {name}", problem.name, options, path)
        return Candidate(label, grid, name, lambda _nfe: found, isotropic=path == ISOTROPIC)

    return [candidate(label, grid) for grid in grids for label in solvers]
