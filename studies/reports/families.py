"""``python -m studies.reports.families``: what each family of schedules gains, in energy and in samples."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pandas as pd
from tqdm.auto import tqdm

from studies.demo.distances import Sampler
from studies.demo.energy import Energy, EnergyMeter

from . import familypage, networks, schedules, search
from .command import command
from .schedules import SOLVERS
from .workbench import Workbench

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from anisoflight import Client
    from anisoflight.files.cells import Cells

ISOTROPIC, START = "isotropic", "EDM's grid"


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    kimg: float = networks.KIMG
    learn: float = 12.8
    """Thousand images that a schedule is learned for."""
    evaluations: int = 8192
    nfes: tuple[int, ...] = (5, 9, 17, 35)
    samples: int = 2000
    seeds: tuple[int, ...] = (10**8, 2 * 10**8, 3 * 10**8)
    solver: str = "AB3"
    grid: search.Grid = field(default_factory=search.Grid)
    few: tuple[int, ...] = (5, 9)
    many: int = 10_000
    """Samples a seed where the setting found by the search is confirmed."""
    fresh: tuple[int, ...] = (4 * 10**8, 5 * 10**8, 6 * 10**8)


QUICK = Size(
    kimg=1.28,
    learn=0.128,
    evaluations=64,
    nfes=(5,),
    samples=60,
    grid=search.Grid(T=(400.0,), c=(1.0,), lengths=(0.128,)),
    few=(5,),
    many=80,
)


def families(problem: networks.Problem) -> dict[str, dict[str, Any]]:
    """The families compared, by name; P_1 has the problem's k dimensions per channel in all of them."""
    low = {"basis": "dct", "k": problem.k}
    return {
        ISOTROPIC: {"basis": "none"},
        "isotropic per class": {"basis": "none", "per_class": True},
        "DCT": low,
        "DCT per class": {**low, "per_class": True},
        "PCA": {"basis": "pca", "k": problem.k},
        "PCA per class": {"basis": "pca_per_class", "k": problem.k},
    }


def learn(bench: Workbench, kimg: float) -> dict[str, str]:
    """The learned schedule of every family."""
    problem, options = bench.problem, {"kimg": kimg, "kept": bench.cells.kept}
    return {
        name: schedules.learned(bench.client, problem, name.lower().replace(" ", "-"), family, **options)
        for name, family in families(problem).items()
    }


def energies(bench: Workbench, learned: Mapping[str, str], count: int) -> pd.DataFrame:
    """E of every schedule on the same images, noise and times, and its difference to the isotropic one, paired.

    Columns problem, schedule, energy, stderr, gain = 1 − E/E_isotropic in percent, gain_stderr.
    """
    client, problem = bench.client, bench.problem

    def measure() -> dict[str, list[float]]:
        start = f"{problem.name}-start"
        if start not in client.schedules().index:
            client.make_schedule(start, "edm", T=problem.T, knots=schedules.KNOTS)
        named = {START: start, "isotropic geodesic": schedules.geodesic(client, problem, problem.name), **learned}
        meter = EnergyMeter(client, problem.name, bench.split.train, c=problem.c, n=count, seed=1)
        found: dict[str, Energy] = {}
        for name, schedule in tqdm(named.items(), desc=f"{problem.name}: energies"):
            found[name] = meter.measure(schedule)
        isotropic, rows = found[ISOTROPIC], {}
        for name, energy in found.items():
            less = isotropic.minus(energy)
            gain, error = 100 * less.mean / isotropic.mean, 100 * less.stderr / isotropic.mean
            rows[name] = [energy.mean, energy.stderr, gain, error]
        return rows

    key = {"problem": problem.name, "network": bench.network, "energies": list(learned), "count": count}
    rows = [(problem.name, name, *row) for name, row in bench.cells.measured(key, measure).items()]
    columns = ["problem", "schedule", "energy", "stderr", "gain", "gain_stderr"]
    return pd.DataFrame(rows, columns=pd.Index(columns))


def distances(
    bench: Workbench,
    named: Mapping[str, str],
    solver: str,
    nfes: Sequence[int],
    count: int,
    seeds: Sequence[int],
) -> pd.DataFrame:
    """Fréchet distances: columns problem, schedule, solver, nfe, samples, seed, FD, FD to train; a row per seed."""
    rows = []
    cells = [(name, nfe) for name in named for nfe in nfes]
    for name, nfe in tqdm(cells, desc=f"{bench.problem.name}: FD of {count}", unit="cell"):
        options = {**SOLVERS[solver], "schedule": named[name]}
        sampler = Sampler(f"{solver}, schedule, {name}", bench.problem.name, options)
        found = bench.distances(sampler, nfe, count, seeds)
        for i, seed in enumerate(seeds if found else ()):
            row = {"problem": bench.problem.name, "schedule": name, "solver": solver, "nfe": nfe}
            row |= {"samples": count, "seed": seed}
            rows.append(row | {column: values[i] for column, values in found.items()})
    return pd.DataFrame(rows)


def confirm(bench: Workbench, setting: search.Setting, size: Size) -> pd.DataFrame:
    """The setting that gained most on the bench, and its isotropic twin, with the network."""
    settings = {f"twin of {setting.name}": search.twin(setting), setting.name: setting}
    kept = bench.cells.kept
    named = {name: search.learn(bench.client, bench.problem, one, kept=kept) for name, one in settings.items()}
    return distances(bench, named, size.solver, size.few, size.many, size.fresh)


def measure(client: Client, problem: networks.Problem, cells: Cells, size: Size) -> familypage.Measured:
    """Train what is missing, and measure what has not been measured."""
    bench = Workbench(client, problem, networks.prepare(client, problem, size.kimg), cells)
    learned = learn(bench, size.learn)
    energy = energies(bench, learned, size.evaluations)
    start = {START: f"{problem.name}-start"}
    found = distances(bench, {**start, **learned}, size.solver, size.nfes, size.samples, size.seeds)
    nodes = search.nodes(bench, size.grid)
    table = search.search(bench, size.grid)
    setting = search.best(problem, table) if len(table) else None
    confirmed = pd.DataFrame() if setting is None else confirm(bench, setting, size)
    return familypage.Measured(energy, found, nodes, table, setting, confirmed)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write studies/docs/families.md."""
    title = "Families of schedules: what anisotropy gains"
    with command("families", title, __doc__, arguments, networks.IMAGES) as run:
        size = QUICK if run.quick else Size()
        run.page.text(familypage.MEASURED, familypage.DEFINED)
        for problem in run.problems:
            familypage.write(run.page, problem.name, measure(run.client, problem, run.cells, size))


if __name__ == "__main__":
    main()
