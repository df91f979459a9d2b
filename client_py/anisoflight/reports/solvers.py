"""``python -m anisoflight.reports.solvers``: solver × grid × schedule at few evaluations, on digits and patches."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

import anisoflight

from . import networks
from .candidates import Candidate, baselines, candidates, nodes
from .cells import Cells
from .workbench import FD, Workbench

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anisoflight import Client


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    kimg: float = networks.KIMG
    nfes: tuple[int, ...] = (5, 7, 9, 11, 15, 25)
    probes: int = 256
    few: tuple[int, ...] = (5, 9)
    """Evaluations at which the Fréchet distances are taken, and the goal is judged."""
    samples: int = 2000
    many: int = 10_000
    """Samples a seed where anisotropic nodes are judged."""
    seeds: tuple[int, ...] = (10**8, 2 * 10**8, 3 * 10**8)


QUICK = Size(kimg=1.28, nfes=(5,), probes=8, few=(5,), samples=60, many=80)


def errors(bench: Workbench, found: Sequence[Candidate], nfes: Sequence[int]) -> pd.DataFrame:
    """ODE errors of all candidates: columns problem, solver, grid, schedule, nfe, ode_error; NaN where impossible."""
    rows = []
    cells = [(candidate, nfe) for candidate in found for nfe in nfes]
    for candidate, nfe in tqdm(cells, desc=f"{bench.problem.name}: ODE errors", unit="cell"):
        error = bench.error(candidate.sampler(nfe), nfe)
        rows.append((bench.problem.name, candidate.solver, candidate.grid, candidate.schedule, nfe, error))
    return pd.DataFrame(rows, columns=pd.Index(["problem", "solver", "grid", "schedule", "nfe", "ode_error"]))


def best(found: Sequence[Candidate], table: pd.DataFrame, few: Sequence[int]) -> list[Candidate]:
    """The three isotropic and the two anisotropic candidates of least ODE error, in the mean of logarithms over few.

    The paths of different anisotropic schedules are different maps; this choice only decides what is looked at further.
    """
    chosen = table[table["nfe"].isin(few)]
    score = np.log(chosen["ode_error"]).groupby([chosen["solver"], chosen["grid"], chosen["schedule"]]).mean()
    order = sorted(found, key=lambda c: score.get((c.solver, c.grid, c.schedule), np.inf))
    isotropic = [c for c in order if c.isotropic][:3]
    return isotropic + [c for c in order if not c.isotropic][:2]


def distances(bench: Workbench, found: Sequence[Candidate], size: Size, count: int) -> pd.DataFrame:
    """Fréchet distances: columns problem, sampler, isotropic, nfe, samples, seed, FD, FD to train; a row per seed."""
    rows = []
    cells = [(candidate, nfe) for candidate in found for nfe in size.few]
    for candidate, nfe in tqdm(cells, desc=f"{bench.problem.name}: FD of {count}", unit="cell"):
        by_reference = bench.distances(candidate.sampler(nfe), nfe, count, size.seeds)
        for i, seed in enumerate(size.seeds):
            row = {"problem": bench.problem.name, "sampler": candidate.name, "isotropic": candidate.isotropic}
            row |= {"nfe": nfe, "samples": count, "seed": seed}
            rows.append(row | {name: found[i] for name, found in by_reference.items()})
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class Measured:
    """All that was measured on one problem."""

    errors: pd.DataFrame
    best: list[Candidate]
    distances: pd.DataFrame
    goal: pd.DataFrame


def measure(client: Client, problem: networks.Problem, cells: Cells, size: Size) -> Measured:
    """Train what is missing, and measure what has not been measured."""
    bench = Workbench(client, problem, networks.prepare(client, problem, size.kimg), cells, size.probes)
    found = candidates(client, problem)
    table = errors(bench, found, size.nfes)
    chosen = best(found, table, size.few)
    reference = baselines(problem)
    split = {"basis": "dct", "k": problem.k}
    judged = {c.name: c for c in [*chosen, *reference.values(), nodes(client, problem, "2M", **split)]}
    few = distances(bench, list(judged.values()), size, size.samples)
    goal = pd.DataFrame()
    if problem.name != "digits":
        mean = few[few["isotropic"]].groupby(["nfe", "sampler"])[FD].mean()
        winners = {str(mean[nfe].idxmin()) for nfe in size.few}
        contest = [judged[name] for name in sorted(winners | {"iPNDM-4, edm, EDM"})]
        contest += [nodes(client, problem, "2M", **split)]
        goal = distances(bench, contest, size, size.many)
    return Measured(table, chosen, few, goal)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write docs/reports/solvers.md."""
    parser = argparse.ArgumentParser(prog="python -m anisoflight.reports.solvers", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/reports"), help="folder of models and measurements")
    parser.add_argument("--docs", type=Path, default=Path("docs/reports"), help="folder of the page")
    parser.add_argument("--problems", nargs="+", choices=networks.PROBLEMS, default=list(networks.PROBLEMS))
    parser.add_argument("--quick", action="store_true", help="a smoke test: tiny networks, few samples")
    args = parser.parse_args(arguments)
    size = QUICK if args.quick else Size()
    with anisoflight.serve(data=args.out / "data") as client:
        cells = Cells(args.out / "cells.jsonl")
        measured = {name: measure(client, networks.PROBLEMS[name], cells, size) for name in args.problems}
