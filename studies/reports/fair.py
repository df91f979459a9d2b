"""``python -m studies.reports.fair``: anisotropic samplers against a plain network with the best free sampler."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from anisoflight.fid.builtin import principal_features
from studies.demo.distances import Bench, Reference, Sampler
from studies.demo.energy import EnergyMeter
from studies.features import clipped_gaussian, edge_features
from studies.measuring import require_count

from . import fairpage, networks, schedules
from .command import command
from .schedules import SOLVERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from anisoflight import Client
    from anisoflight.files.cells import Cells
    from studies.demo.data import Data

FD, EDGES = "FD", "edge FD"
PLAIN, ANISOTROPIC, NONE = "plain", "anisotropic", "none"
KINDS = (PLAIN, ANISOTROPIC)


@dataclass(frozen=True)
class Size:
    """How much is measured: networks of each kind by problem, and samples of each sampler."""

    counts: dict[str, int]
    kimg: float = networks.KIMG
    learn: float = 12.8
    """Thousand images that a schedule is learned for."""
    nfes: tuple[int, ...] = (3, 5, 9)
    samples: int = 4000
    seed: int = 7 * 10**8
    evaluations: int = 8192
    """Of the loss, for every energy."""
    few: dict[str, Any] = field(default_factory=dict)
    """Options of the schedules of kind few."""


FULL_SIZE = Size({"patches8": 5, "patches16": 3, "fields16": 5})
QUICK = Size(
    {"patches8": 1, "patches16": 1, "fields16": 1},
    kimg=0.256,
    learn=0.128,
    nfes=(3,),
    samples=40,
    evaluations=64,
    few={"samples": 64, "solvers": ["dpmpp2m"]},
)


class Sampled(Protocol):
    """A model whose samples are measured: its name, and the hash that its cells are kept under."""

    @property
    def name(self) -> str: ...
    @property
    def hash(self) -> str: ...
    @property
    def problem(self) -> networks.Problem: ...


class Network:
    """One trained network of a problem, and the schedules made for it."""

    def __init__(self, client: Client, problem: networks.Problem, split: Data, kind: str, seed: int, size: Size):
        self.client, self.problem, self.kind, self.seed, self._size = client, problem, kind, seed, size
        self.name = f"{problem.name}-{kind}-{seed}"
        config = problem.config(seed, size.kimg, plain=kind == PLAIN)
        networks.train(client, problem, split, self.name, config)
        self.hash = client.describe_model(self.name)["hash"][:12]

    def geodesic(self) -> str:
        return schedules.geodesic(self.client, self.problem, self.name, seed=self.seed)

    def learned(self) -> str:
        """The schedule learned with this network frozen: isotropic for a plain one, else with two DCT bands."""
        name, family = ("isotropic", {"basis": "none"}) if self.kind == PLAIN else ("dct", self._bands())
        options = {"model": self.name, "kimg": self._size.learn, "seed": self.seed}
        return schedules.learned(self.client, self.problem, name, family, **options)

    def nodes(self, solver: str, nfe: int) -> str:
        """Nodes chosen on the data's own Gaussian: one list for a plain network, else one for each of two bands."""
        family = {} if self.kind == PLAIN else self._bands()
        return schedules.nodes(self.client, self.problem, solver, nfe, family)

    def few(self, nfe: int) -> str:
        """What the server finds for so few evaluations: its start, its levels and its solver."""
        name = f"{self.name}-few-{nfe}"
        if name not in self.client.schedules().index:
            options = {"model": self.name, "dataset": self.problem.name, "nfe": nfe}
            self.client.make_schedule(name, "few", progress=False, **options, **self._size.few)
        return name

    def _bands(self) -> dict[str, Any]:
        return {"basis": "dct", "k": self.problem.k}


@dataclass(frozen=True)
class Arm:
    """A sampler of one kind of network: what it is called, and Sample's options for an NFE."""

    kind: str
    name: str
    options: Callable[[Network, int], dict[str, Any]]


def _on_grid(label: str, grid: str) -> Arm:
    return Arm(PLAIN, f"{label}, {grid}", lambda _network, _nfe: _edm(label, grid))


def _edm(label: str, grid: str) -> dict[str, Any]:
    return {**SOLVERS[label], "grid": grid, "schedule": "edm"}


def _on_nodes(kind: str, label: str) -> Arm:
    def options(network: Network, nfe: int) -> dict[str, Any]:
        return {**SOLVERS[label], "schedule": network.nodes(SOLVERS[label]["solver"], nfe)}

    paths = 1 if kind == PLAIN else 2
    return Arm(kind, f"{label}, nodes J = {paths}", options)


def _local(order: int, *, corrector: bool = False, matched: float | None = None) -> Arm:
    """The solver local on grid polynomial, from pure noise at 80 or from the data's law at a lower noise level."""

    def options(network: Network, _nfe: int) -> dict[str, Any]:
        schedule = schedules.local(network.client, network.problem, network.name, matched=matched)
        return {
            "solver": "local",
            "order": order,
            "corrector": corrector,
            "grid": "polynomial",
            "schedule": schedule,
        }

    name = f"local-{order}" + (", corrected" if corrector else "")
    return Arm(PLAIN, f"{name}, {'polynomial' if matched is None else f'matched start at {matched:g}'}", options)


def _start(client: Client, problem: networks.Problem, sigma: float) -> str:
    """EDM's schedule from a lower noise level, started from the normal law of each class of the training images."""
    name = f"{problem.name}-start-{sigma:g}"
    if name not in client.schedules().index:
        options = {"dataset": problem.name, "schedule": {"edm": {"T": sigma**2}}}
        client.make_schedule(name, "start", progress=False, **options)
    return name


def _from(label: str, sigma: float, *, matched: bool) -> Arm:
    def options(network: Network, _nfe: int) -> dict[str, Any]:
        schedule = _start(network.client, network.problem, sigma) if matched else {"edm": {"T": sigma**2}}
        return {**SOLVERS[label], "grid": "polynomial", "schedule": schedule}

    return Arm(PLAIN, f"{label}, {'matched' if matched else 'standard'} start at {sigma:g}", options)


def _fitted(matched: float | None = None, *, isotropic: bool = False, whole: bool = False) -> Arm:
    """Coefficients fitted around the solver local; isotropic: around 2M, one set for all frequencies; whole: of
    order 3 to the last step, all that a step can look back on.
    """

    def options(network: Network, nfe: int) -> dict[str, Any]:
        given = {"matched": matched, "isotropic": isotropic, "whole": whole}
        schedule = schedules.fitted(network.client, network.problem, network.name, nfe, **given)
        return {"solver": "fitted", "schedule": schedule}

    name = ("fitted isotropic" if isotropic else "fitted") + (" of order 3" if whole else "")
    return Arm(PLAIN, f"{name}, {'polynomial' if matched is None else f'matched start at {matched:g}'}", options)


BASELINE = "iPNDM-4, polynomial"
FEW = "few: start, levels and solver found by the server"
LEVELS = (80, 20, 10, 5)
"""Noise levels that sampling starts from; the standard start at 80 is the baseline's."""
ARMS = (
    *(_on_grid(label, grid) for grid in ("polynomial", "edm") for label in ("iPNDM-4", "UniPC-3", "2M")),
    _on_grid("Heun", "edm"),
    Arm(PLAIN, "Heun, learned", lambda network, _nfe: {**SOLVERS["Heun"], "schedule": network.learned()}),
    Arm(PLAIN, "AB3, learned", lambda network, _nfe: {**SOLVERS["AB3"], "schedule": network.learned()}),
    Arm(PLAIN, "AB3, geodesic", lambda network, _nfe: {**SOLVERS["AB3"], "schedule": network.geodesic()}),
    *(_local(order) for order in (1, 2, 3)),
    *(_local(2, corrector=True, matched=sigma) for sigma in (None, 20, 10)),
    *(_local(2, matched=sigma) for sigma in (20, 10)),
    *(_from(label, sigma, matched=True) for label in ("iPNDM-4", "2M") for sigma in LEVELS),
    *(_from(label, sigma, matched=False) for label in ("iPNDM-4", "2M") for sigma in LEVELS[1:]),
    Arm(PLAIN, FEW, lambda network, nfe: {"schedule": network.few(nfe)}),
    *(
        _fitted(sigma, isotropic=isotropic, whole=whole)
        for whole in (False, True)
        for sigma in (None, 20, 10)
        for isotropic in (False, True)
    ),
    Arm(ANISOTROPIC, BASELINE, lambda _network, _nfe: _edm("iPNDM-4", "polynomial")),
    Arm(ANISOTROPIC, "AB3, learned J = 2", lambda network, _nfe: {**SOLVERS["AB3"], "schedule": network.learned()}),
    *(_on_nodes(ANISOTROPIC, label) for label in ("UniPC-3", "2M")),
)
"""Every sampler takes exactly the evaluations of its column; Heun's endpoint form takes odd numbers."""


class Judge:
    """The real images of a problem, and the two distances to them."""

    def __init__(self, client: Client, split: Data, cells: Cells, size: Size) -> None:
        self._split, self._cells, self._size = split, cells, size
        train, test = split.train.images, split.test.images
        features = {FD: principal_features(train, 40), EDGES: edge_features(train)}
        self.references = {name: Reference(found, test) for name, found in features.items()}
        self._bench = Bench(client, self.references, (size.seed,), size.samples)

    def distances(
        self, model: Sampled, sampler: str, options: Callable[[], dict[str, Any]], nfe: int
    ) -> dict[str, float]:
        """Both distances of a sampler by its name and options of Sample, which are made if they are measured."""

        def measure() -> dict[str, float]:
            found = self._bench.distances(Sampler(sampler, model.name, options()), nfe)
            require_count(sampler, nfe, found.evaluations)
            return {name: values[0] for name, values in found.by_reference.items()}

        key = {"fair": model.problem.name, "network": model.hash, "sampler": sampler, "nfe": nfe}
        key |= {"samples": self._size.samples, "seed": self._size.seed}
        return self._cells.measured(key, measure)

    def without_network(self, draws: int) -> Iterator[dict[str, Any]]:
        """Rows that take no evaluation: the clipped Gaussian of the training images, and training images themselves."""
        train, count = self._split.train.images, self._size.samples
        for seed in range(1, draws + 1):
            chosen = np.random.default_rng(seed).permutation(len(train))[:count]
            for name, images in (("clipped Gaussian", clipped_gaussian(train, count, seed)), ("real", train[chosen])):
                found = {label: real.distance(images) for label, real in self.references.items()}
                yield {"network": NONE, "seed": seed, "sampler": name, "nfe": 0} | found


def measure(
    client: Client, problem: networks.Problem, cells: Cells, size: Size, arms: Sequence[Arm]
) -> fairpage.Measured:
    """Train what is missing and measure what has not been measured, network by network, of each the kinds that the arms
    have in turn; the energies only with all arms.
    """
    split = problem.load()
    judge = Judge(client, split, cells, size)
    count = size.counts[problem.name]
    rows, energies = list(judge.without_network(count)), []
    for seed in range(1, count + 1):
        for kind in (kind for kind in KINDS if any(arm.kind == kind for arm in arms)):
            if cells.kept and f"{problem.name}-{kind}-{seed}" not in client.models().index:
                continue
            network = Network(client, problem, split, kind, seed, size)
            jobs = [(arm, nfe) for arm in arms if arm.kind == kind for nfe in size.nfes]
            for arm, nfe in tqdm(jobs, desc=network.name, unit="row"):
                if found := judge.distances(network, arm.name, partial(arm.options, network, nfe), nfe):
                    rows.append({"network": kind, "seed": seed, "sampler": arm.name, "nfe": nfe} | found)
            if arms is ARMS and (found := energy(network, split, cells, size)):
                energies.append({"network": kind, "seed": seed, **found})
    return fairpage.Measured(pd.DataFrame(rows), pd.DataFrame(energies))


def energy(network: Network, split: Data, cells: Cells, size: Size) -> dict[str, float]:
    """E of the network's learned schedule; the images, noise and times are the same for every network."""

    def found() -> dict[str, float]:
        meter = EnergyMeter(network.client, network.name, split.train, network.problem.c, size.evaluations, seed=1)
        measured = meter.measure(network.learned())
        return {"energy": measured.mean, "stderr": measured.stderr}

    key = {"fair": network.problem.name, "network": network.hash, "energy": size.evaluations}
    return cells.measured(key, found)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write studies/docs/fair.md."""
    problems = list(FULL_SIZE.counts)
    with command("fair", "The fair comparison", __doc__, arguments, problems) as run:
        size = QUICK if run.quick else FULL_SIZE
        run.page.text(fairpage.MEASURED, fairpage.DEFINED)
        for problem in run.problems:
            fairpage.write(run.page, problem.name, measure(run.client, problem, run.cells, size, ARMS))


if __name__ == "__main__":
    main()
