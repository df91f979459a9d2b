"""``python -m studies.reports.solvers``: solver × grid × schedule at few evaluations, on digits and patches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from . import networks, solverpage
from .candidates import FEW, SOLVERS, Candidate, baselines, candidates, nodes
from .command import command
from .solverpage import IPNDM
from .workbench import FD, FD_TRAIN, FULL, SLIGHT, Effort, Workbench

if TYPE_CHECKING:
    from anisoflight import Client
    from anisoflight.files.cells import Cells


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    kimg: float = networks.KIMG
    nfes: tuple[int, ...] = (5, 7, 9, 11, 15, 25)
    solvers: tuple[str, ...] = tuple(SOLVERS)
    effort: Effort = FULL
    few: tuple[int, ...] = (5, 9)
    """Evaluations at which the Fréchet distances are taken, and the goal is judged."""
    samples: int = 2000
    many: int = 10_000
    """Samples a seed where anisotropic nodes are judged."""
    seeds: tuple[int, ...] = (10**8, 2 * 10**8, 3 * 10**8)
    fresh: tuple[int, ...] = (4 * 10**8, 5 * 10**8, 6 * 10**8)
    """Seeds of that judgement, none of which has chosen anything."""


QUICK = Size(kimg=1.28, nfes=(5,), solvers=FEW, effort=SLIGHT, few=(5,), samples=60, many=80)


_DISTANCES = ["problem", "sampler", "isotropic", "nfe", "samples", "seed", FD, FD_TRAIN]


def errors(bench: Workbench, found: Sequence[Candidate], nfes: Sequence[int]) -> pd.DataFrame:
    """ODE errors of all candidates: columns problem, solver, grid, schedule, nfe, ode_error; NaN where impossible."""
    rows = []
    cells = [(candidate, nfe) for candidate in found for nfe in nfes]
    for candidate, nfe in tqdm(cells, desc=f"{bench.problem.name}: ODE errors", unit="cell"):
        error = bench.error(candidate.sampler(nfe), nfe)
        if error is not None:
            rows.append((bench.problem.name, candidate.solver, candidate.grid, candidate.schedule, nfe, error))
    return pd.DataFrame(rows, columns=pd.Index(["problem", "solver", "grid", "schedule", "nfe", "ode_error"]))


def best(found: Sequence[Candidate], table: pd.DataFrame, few: Sequence[int]) -> list[Candidate]:
    """The three isotropic and the two anisotropic candidates of least ODE error, in the mean of logarithms over few.

    The paths of different anisotropic schedules are different maps; this choice only decides what is looked at further.
    """
    chosen = table[table["nfe"].isin(few)]
    key = ["solver", "grid", "schedule"]
    score = np.log(chosen.set_index(key)["ode_error"]).groupby(level=key).agg(lambda logs: logs.mean(skipna=False))
    order = sorted(found, key=lambda c: score.fillna(np.inf).get((c.solver, c.grid, c.schedule), np.inf))
    isotropic = [c for c in order if c.isotropic][:3]
    return isotropic + [c for c in order if not c.isotropic][:2]


def distances(
    bench: Workbench, found: Sequence[Candidate], nfes: Sequence[int], count: int, seeds: Sequence[int]
) -> pd.DataFrame:
    """Fréchet distances: columns problem, sampler, isotropic, nfe, samples, seed, FD, FD to train; a row per seed."""
    rows = []
    cells = [(candidate, nfe) for candidate in found for nfe in nfes]
    for candidate, nfe in tqdm(cells, desc=f"{bench.problem.name}: FD of {count}", unit="cell"):
        by_reference = bench.distances(candidate.sampler(nfe), nfe, count, seeds)
        for i, seed in enumerate(seeds if by_reference else ()):
            row = {"problem": bench.problem.name, "sampler": candidate.name, "isotropic": candidate.isotropic}
            row |= {"nfe": nfe, "samples": count, "seed": seed}
            rows.append(row | {name: values[i] for name, values in by_reference.items()})
    return pd.DataFrame(rows, columns=pd.Index(_DISTANCES))


@dataclass(frozen=True)
class Measured:
    """All that was measured on one problem."""

    problem: networks.Problem
    errors: pd.DataFrame
    distances: pd.DataFrame
    limits: pd.DataFrame
    """Distances at the most evaluations, where what remains is the network's own error."""
    goal: pd.DataFrame


def measure(
    client: Client, problem: networks.Problem, cells: Cells, size: Size, like: Measured | None = None
) -> Measured:
    """Train what is missing, and measure what has not been measured.

    With `like` fewer solvers are looked at, and the contest is among those that did best on that problem.
    """
    if like is not None:
        size = replace(size, nfes=size.few, solvers=FEW)
    bench = Workbench(client, problem, networks.prepare(client, problem, size.kimg), cells, size.effort)
    found = candidates(bench, size.solvers)
    table = errors(bench, found, size.nfes)
    chosen = [*best(found, table, size.few), *baselines(problem).values(), *finalists(bench), *found]
    by_name = {candidate.name: candidate for candidate in chosen}
    if like is not None:
        goal = contest(bench, by_name, like.goal[["nfe", "role", "sampler"]].drop_duplicates(), size)
        return Measured(problem, table, pd.DataFrame(), pd.DataFrame(), goal)
    judged = list({candidate.name: candidate for candidate in chosen[: -len(found)]}.values())
    few = distances(bench, judged, size.few, size.samples, size.seeds)
    near = [by_name[name] for name in (IPNDM, "AB3, schedule, learned J = 2")]
    limits = distances(bench, near, size.nfes[-1:], size.samples, size.seeds)
    goal = pd.DataFrame() if problem.name == "digits" else contest(bench, by_name, winners(judged, few), size)
    return Measured(problem, table, few, limits, goal)


def finalists(bench: Workbench) -> list[Candidate]:
    """Solver-aware nodes with J = 2."""
    split = {"basis": "dct", "k": bench.problem.k}
    return [nodes(bench, label, split) for label in ("2M", "AB3", "UniPC-3")]


def winners(judged: Sequence[Candidate], few: pd.DataFrame) -> pd.DataFrame:
    """The best isotropic sampler, the best anisotropic nodes, the best other anisotropic one and iPNDM-4, at each NFE.

    Columns nfe, role, sampler; the best have the least distance of few samples.
    """
    kinds = {
        "isotropic": [c.name for c in judged if c.isotropic],
        "nodes": [c.name for c in judged if not c.isotropic and c.grid == "nodes"],
        "anisotropic": [c.name for c in judged if not c.isotropic and c.grid != "nodes"],
        "iPNDM-4": [IPNDM],
    }
    rows = []
    for nfe in sorted(few["nfe"].unique()):
        mean = few[few["nfe"] == nfe].groupby("sampler")[FD].mean()
        found = {role: mean[mean.index.isin(group)] for role, group in kinds.items()}
        rows += [(nfe, role, str(part.idxmin())) for role, part in found.items() if len(part)]
    return pd.DataFrame(rows, columns=pd.Index(["nfe", "role", "sampler"]))


def contest(bench: Workbench, by_name: Mapping[str, Candidate], roles: pd.DataFrame, size: Size) -> pd.DataFrame:
    """Distances of many samples on fresh seeds, so that having been chosen does not flatter; with the column role."""
    rows = []
    for nfe, role, name in roles.itertuples(index=False):
        found = distances(bench, [by_name[name]], [nfe], size.many, size.fresh)
        rows.append(found.assign(role=role))
    return pd.concat(rows, ignore_index=True) if rows else pd.DataFrame()


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write studies/docs/solvers.md."""
    title = "Solvers, grids and schedules at few evaluations"
    with command("solvers", title, __doc__, arguments, networks.IMAGES) as run:
        size = QUICK if run.quick else Size()
        run.page.text(solverpage.MEASURED, solverpage.DEFINED)
        measured: dict[str, Measured] = {}
        for problem in run.problems:
            found = measure(run.client, problem, run.cells, size, measured.get(problem.like or ""))
            measured[problem.name] = found
            solverpage.write(run.page, problem.name, found.errors, found.distances, found.limits, found.goal)


if __name__ == "__main__":
    main()
