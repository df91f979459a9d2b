"""``python -m studies.reports.joint``: network and schedule trained together, isotropic against anisotropic.

From one converged plain network each branch trains the network and its schedule for the same number of images, with
noise narrowly around the schedule. What a network's seed is worth is paired away: all branches begin at the same one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd
from tqdm.auto import tqdm

from studies.demo import stages

from . import fair, jointpage, networks
from .command import command
from .schedules import SOLVERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anisoflight import Client
    from anisoflight.files.cells import Cells

    from .fair import Network


@dataclass(frozen=True)
class Size:
    """How much is measured, and how long the branches are trained."""

    fair: fair.Size
    kimg: float
    p_std_subspace: float = 0.2
    """Deviation of ln σ of each subspace from the schedule's."""


FULL_SIZE = Size(replace(fair.FULL_SIZE, counts={"patches8": 5}, nfes=(3, 5, 9)), kimg=51.2)
QUICK = Size(replace(fair.QUICK, counts={"patches8": 1}), kimg=0.256)
MATCHED = 20.0


@dataclass(frozen=True)
class Branch:
    """What a joint stage learns, and how the schedule's gradient is estimated."""

    kind: str
    estimator: str

    @property
    def name(self) -> str:
        return f"{self.kind}, {self.estimator}"

    @property
    def slug(self) -> str:
        return f"{self.kind}-{self.estimator}"


BRANCHES = tuple(Branch(kind, estimator) for estimator in ("backprop", "full") for kind in jointpage.KINDS)


@dataclass(frozen=True)
class Trained:
    """A network after a branch, with the schedule that was learned with it; or before any."""

    client: Client
    problem: networks.Problem
    name: str
    hash: str

    def schedule(self) -> str:
        return self.name

    def matched(self) -> str:
        """The learned schedule from the normal law of the training images at a lower noise level."""
        name = f"{self.name}-start-{MATCHED:g}"
        if name not in self.client.schedules().index:
            options = {"dataset": self.problem.name, "schedule": self.name, "sigma_max": MATCHED}
            self.client.make_schedule(name, "start", progress=False, **options)
        return name


def config(problem: networks.Problem, plain: str, start: str, branch: Branch, seed: int, size: Size) -> dict[str, Any]:
    """The configuration of a branch's run."""
    isotropic = branch.kind == jointpage.ISOTROPIC
    kimg = size.kimg
    return {
        "order": 1,
        "stage": "isotropic" if isotropic else "anisotropic",
        "family": {"basis": "none"} if isotropic else {"basis": "dct", "k": problem.k},
        "ratio_embedding": not isotropic,
        "dataset": problem.name,
        "model": plain,
        "schedule": start,
        "estimator": branch.estimator,
        "p_std_subspace": size.p_std_subspace,
        "c": problem.c,
        "batch": 128,
        "kimg": kimg,
        "lr": 4e-4,
        "lr_warmup": 0.05 * kimg,
        "beta2": 0.99,
        "ema_halflife_kimg": 0.1 * kimg,
        "schedule_lr": 0.02,
        "schedule_lr_warmup": 0.05 * kimg,
        "seed": seed,
    }


def trained_name(network: Network, branch: Branch) -> str:
    return f"{network.name}-joint-{branch.slug}"


def train(network: Network, branch: Branch, size: Size) -> Trained:
    """The network of a branch, trained unless the server has it."""
    client, problem = network.client, network.problem
    name = trained_name(network, branch)
    if name not in client.models().index:
        options = config(problem, network.name, network.geodesic(), branch, network.seed, size)
        stages.train(client, name, options, save=name)
    return Trained(client, problem, name, client.describe_model(name)["hash"][:12])


SAMPLERS: dict[str, Any] = {
    jointpage.BASELINE: lambda _trained: {**SOLVERS["iPNDM-4"], "grid": "polynomial", "schedule": "edm"},
    "AB3, learned": lambda trained: {**SOLVERS["AB3"], "schedule": trained.schedule()},
    "2M, learned": lambda trained: {**SOLVERS["2M"], "schedule": trained.schedule()},
    f"2M, learned, matched start at {MATCHED:g}": lambda trained: {**SOLVERS["2M"], "schedule": trained.matched()},
}
"""Sample's options by the sampler's name."""


def measure(client: Client, problem: networks.Problem, cells: Cells, size: Size) -> pd.DataFrame:
    """Train what is missing and measure what has not been measured, network by network."""
    split = problem.load()
    judge = fair.Judge(client, split, cells, size.fair)
    rows = []
    for seed in range(1, size.fair.counts[problem.name] + 1):
        if cells.kept and f"{problem.name}-plain-{seed}" not in client.models().index:
            continue
        network = fair.Network(client, problem, split, fair.PLAIN, seed, size.fair)
        for branch in (None, *BRANCHES):
            name = jointpage.BEFORE if branch is None else branch.name
            if branch is None:
                trained = Trained(client, problem, network.name, network.hash)
            elif cells.kept and trained_name(network, branch) not in client.models().index:
                continue
            else:
                trained = train(network, branch, size)
            samplers = [jointpage.BASELINE] if branch is None else list(SAMPLERS)
            jobs = [(sampler, nfe) for sampler in samplers for nfe in size.fair.nfes]
            for sampler, nfe in tqdm(jobs, desc=trained.name, unit="row"):
                options = partial(SAMPLERS[sampler], trained)
                if found := judge.distances(trained, sampler, options, nfe):
                    rows.append({"branch": name, "seed": seed, "sampler": sampler, "nfe": nfe, **found})
    return pd.DataFrame(rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write studies/docs/joint.md."""
    problems = list(FULL_SIZE.fair.counts)
    with command("joint", "Network and schedule trained together", __doc__, arguments, problems) as run:
        size = QUICK if run.quick else FULL_SIZE
        run.page.text(jointpage.MEASURED.format(kimg=f"{size.kimg:g}", spread=f"{size.p_std_subspace:g}"))
        for problem in run.problems:
            jointpage.write(run.page, problem.name, measure(run.client, problem, run.cells, size))


if __name__ == "__main__":
    main()
