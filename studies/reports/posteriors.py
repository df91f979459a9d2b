"""``python -m studies.reports.posteriors``: `few` on posteriors that sbi trains, against plain solvers, by aims.

    pip install sbi                                                # beside torch
    python -m studies.reports.posteriors                           # three simulators, three networks each; an hour
    python -m studies.reports.posteriors --tasks "two moons" --networks 0
    python -m studies.reports.posteriors --page                    # the page alone, from the rows that are there

Each row is in studies/docs/posteriors-rows.jsonl once it is measured, and networks are kept in --data, so that a
command that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

import anisoflight
from anisoflight.fid.cells import Cells
from anisoflight.torch import Denoiser
from anisoflight.torch import few as search
from studies.reports import posteriorspage as page
from studies.reports.page import command, parser_of
from studies.reports.rivals import SOLVERS, raced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from anisoflight import Client, Plan

Tensor = torch.Tensor

SIMULATIONS, OBSERVATIONS, JUDGED, COUNT = 10_000, 64, 5, 1000
"""To train with; to search or tune on; to judge on; the samples of each of these."""
SIGMAS, RHOS, HIGHEST, END = (80, 40, 20, 10), (7, 4, 3), 80.0, 0.002
FIRST, LAST, FINALISTS, CONVERGED = 24, 96, 6, 64
"""Samples that tuning draws of every rival and of the best ones; steps of converged samples, by iPNDM-4."""


@dataclass(frozen=True)
class Task:
    """A simulator with its prior, and exact samples of its posterior."""

    prior: torch.distributions.Distribution
    simulate: Callable[[Tensor], Tensor]
    exact: Callable[[Tensor, int], Tensor]
    """Proposals [n, D] for an observation, of which those within the prior's support are of the posterior."""

    def posterior(self, x: Tensor, n: int) -> Tensor:
        """Exact samples."""
        found: list[Tensor] = []
        while sum(map(len, found)) < n:
            proposed = self.exact(x, n)
            box = getattr(self.prior.support, "base_constraint", self.prior.support)
            inside = box.check(proposed)
            found.append(proposed[inside if inside.ndim == 1 else inside.all(dim=1)])
        return torch.cat(found)[:n]


def _crescent(n: int) -> Tensor:
    angle, radius = (torch.rand(n) - 0.5) * torch.pi, 0.1 + 0.01 * torch.randn(n)
    return torch.stack([radius * angle.cos() + 0.25, radius * angle.sin()], dim=1)


def _moons(theta: Tensor) -> Tensor:
    total, apart = theta.sum(dim=1), theta[:, 1] - theta[:, 0]
    return _crescent(len(theta)) + torch.stack([-total.abs(), apart], dim=1) / 2**0.5


def _of_moons(x: Tensor, n: int) -> Tensor:
    """The two parameters that each point of the crescent leaves."""
    point = _crescent(n)
    total, apart = 2**0.5 * (point[:, 0] - x[0]), 2**0.5 * (x[1] - point[:, 1])
    possible = total >= 0
    total = torch.where(torch.rand(n) < 0.5, total, -total)
    return torch.stack([total - apart, total + apart], dim=1)[possible] / 2


def _wide_or_narrow(n: int) -> Tensor:
    return torch.where(torch.rand(n, 1) < 0.5, 1.0, 0.1) * torch.randn(n, 2)


def _box(edge: float) -> torch.distributions.Distribution:
    return torch.distributions.Independent(torch.distributions.Uniform(-edge * torch.ones(2), edge * torch.ones(2)), 1)


TASKS = {
    page.MOONS: Task(_box(1.0), _moons, _of_moons),
    page.MIXTURE: Task(_box(10.0), lambda theta: theta + _wide_or_narrow(len(theta)),
                       lambda x, n: x + _wide_or_narrow(n)),
    page.LINEAR: Task(
        torch.distributions.MultivariateNormal(torch.zeros(10), 0.1 * torch.eye(10)),
        lambda theta: theta + 0.1**0.5 * torch.randn_like(theta),
        lambda x, n: x / 2 + 0.05**0.5 * torch.randn(n, 10),
    ),
}  # fmt: skip


class Study:
    """A simulator and a network that sbi trained on it, kept in a folder."""

    def __init__(self, client: Client, folder: Path, task: str, network: int) -> None:
        from sbi.inference import FMPE  # pyright: ignore[reportMissingImports]
        from sbi.utils.tracking import TensorBoardTracker  # pyright: ignore[reportMissingImports]
        from torch.utils.tensorboard.writer import SummaryWriter

        self.client, self.task = client, TASKS[task]
        torch.manual_seed(network)
        theta = self.task.prior.sample((SIMULATIONS,))
        logs = TensorBoardTracker(SummaryWriter(folder / "logs"))  # else in the working directory
        inference = FMPE(prior=self.task.prior, tracker=logs)
        inference.append_simulations(theta, self.task.simulate(theta))
        file = folder / f"{task.replace(' ', '-')}-{network}.pt"
        if file.exists():
            inference.train(max_num_epochs=1)  # makes the network
            estimator = inference._neural_net
            estimator.load_state_dict(torch.load(file))
        else:
            estimator = inference.train()
            torch.save(estimator.state_dict(), file)
        self.posterior = inference.build_posterior(estimator.eval(), sample_with="ode")
        self.velocity, self.size = estimator.eval(), theta.shape[1]
        torch.manual_seed(1_000_000 + network)
        self.searched, self.tuned, self.judged = (
            self.task.simulate(self.task.prior.sample((n,))) for n in (OBSERVATIONS, OBSERVATIONS, JUDGED)
        )

    def denoiser(self, observations: Tensor) -> Denoiser:
        """The network under observations, of which labels choose rows."""

        def network(x: Tensor, t: Tensor, condition: Tensor) -> Tensor:
            return self.velocity.ode_fn(x, condition, t)

        return Denoiser(network, "flow", cond={"condition": observations})

    @cached_property
    def known(self) -> tuple[Tensor, Tensor]:
        """Noise to tune on, and its converged samples."""
        noise = torch.randn(LAST, self.size, generator=torch.Generator().manual_seed(7))
        return noise, self.follow(self.plain("iPNDM-4", CONVERGED, HIGHEST, 7), noise)

    def plain(self, name: str, nfe: int, sigma: float, rho: float) -> Plan:
        grid = {"polynomial": {"sigma_max": sigma, "rho": rho}}
        return self.client.plan("edm", nfe=nfe, sigma_min=END, sigma_max=HIGHEST, grid=grid, **SOLVERS[name])

    def rivals(self, nfe: int) -> Iterator[tuple[str, Plan]]:
        """All plain solvers by name."""
        for name, sigma, rho in product(SOLVERS, SIGMAS, RHOS):
            yield f"{name}, σ_max {sigma}, ρ {rho}", self.plain(name, nfe, sigma, rho)
        times = HIGHEST / (1 + HIGHEST) * np.linspace(1, 0, nfe + 1)[:-1]
        levels = [*(times / (1 - times)).tolist(), END]
        for name, solver in SOLVERS.items():
            plan = self.client.plan("edm", sigma_min=END, sigma_max=HIGHEST, grid={"sigma": levels}, **solver)
            yield f"{name}, even times", plan

    def follow(self, plan: Plan, noise: Tensor) -> Tensor:
        """Samples [n, D] under the observations to tune on, in turn."""
        with torch.no_grad():
            return plan(self.denoiser(self.tuned), noise, labels=np.arange(len(noise)) % len(self.tuned),
                        progress=False)  # fmt: skip

    def few(self, nfe: int) -> dict[str, Any]:
        """What the product finds without options."""
        began = time.monotonic()
        denoiser = self.denoiser(self.searched)
        plan = search(denoiser, nfe, (self.size,), client=self.client, progress=False)
        chosen = plan.info["chosen"]
        told = f"{chosen['solver']}, σ_max {chosen['sigma_max']:.3g}, levels {chosen['levels']}"
        return {"choice": told, "seconds": round(time.monotonic() - began, 1), "evaluations": plan.info["evaluations"],
                "ratio": plan.info["ratio"], **self.judge(partial(self.drawn, plan))}  # fmt: skip

    def best(self, nfe: int) -> dict[str, Any]:
        """The plain solver with the least squared error."""
        noise, ends = self.known

        def error(candidate: tuple[str, Plan], count: int) -> float:
            return ((self.follow(candidate[1], noise[:count]) - ends[:count]) ** 2).mean().item()

        ((choice, plan),) = raced(list(self.rivals(nfe)), error, ((FIRST, FINALISTS), (LAST, 1)))
        return {"choice": choice, **self.judge(partial(self.drawn, plan))}

    def drawn(self, plan: Plan, x: Tensor, noise: Tensor) -> Tensor:
        with torch.no_grad():
            return plan(self.denoiser(x[None]), noise, labels=np.zeros(len(noise), int), progress=False)

    def fixed(self, stages: int, nfe: int) -> dict[str, Any]:
        """Euler's method, or with two stages the midpoint method, at even times of the flow."""

        def draw(x: Tensor, noise: Tensor) -> Tensor:
            state, times = noise, torch.linspace(1, 0, nfe // stages + 1).tolist()
            with torch.no_grad():
                for t, after in pairwise(times):
                    slope = self.velocity.ode_fn(state, x[None], torch.tensor(t))
                    if stages == 2:
                        middle = state + (after - t) / 2 * slope
                        slope = self.velocity.ode_fn(middle, x[None], torch.tensor((t + after) / 2))
                    state = state + (after - t) * slope
            return state

        return self.judge(draw)

    def own(self) -> dict[str, Any]:
        """sbi's own solver, with the calls of the network for one observation."""
        calls: list[None] = []
        copied = self.posterior.potential_fn.vector_field_estimator
        hook = copied.net.register_forward_hook(lambda *_: calls.append(None))

        def draw(x: Tensor, noise: Tensor) -> Tensor:
            self.posterior.potential_fn.set_x(x[None])
            return self.posterior.sample_via_ode(torch.Size([len(noise)])).reshape(len(noise), -1).detach()

        found = self.judge(draw)
        hook.remove()
        return {"calls": len(calls) / JUDGED, **found}

    def judge(self, draw: Callable[[Tensor, Tensor], Tensor]) -> dict[str, Any]:
        """C2ST of samples to exact ones, by observation."""
        from sbi.utils.metrics import c2st  # pyright: ignore[reportMissingImports]

        found = []
        for k, x in enumerate(self.judged):
            torch.manual_seed(2_000_000 + k)
            exact, noise = self.task.posterior(x, COUNT), torch.randn(COUNT, self.size)
            found.append(round(float(c2st(exact, draw(x, noise), classifier="mlp")), 4))
        return {"c2st": found}


def run(args: argparse.Namespace) -> None:
    """Measure what is asked for."""
    cells = Cells(args.docs / page.ROWS)
    (args.data / "networks").mkdir(parents=True, exist_ok=True)
    with anisoflight.serve(data=args.data) as client:
        for task, network in product(args.tasks, args.networks):
            study = None
            methods = [page.OWN, *product((page.FEW, *page.RIVALS), args.nfe)]
            for method, nfe in ((one, 0) if isinstance(one, str) else one for one in methods):
                key = {"task": task, "network": network, "method": method, "nfe": nfe}
                if key in cells:
                    continue
                study = study or Study(client, args.data / "networks", task, network)
                work: dict[str, Callable[[], dict[str, Any]]] = {
                    page.OWN: study.own, page.FEW: partial(study.few, nfe), page.PLAIN: partial(study.best, nfe),
                    page.EULER: partial(study.fixed, 1, nfe), page.MIDPOINT: partial(study.fixed, 2, nfe),
                }  # fmt: skip
                began = time.monotonic()
                found = cells.measured(key, work[method])
                said = f"{time.strftime('%H:%M')} {task} {network}, {nfe}, {method}: {np.mean(found['c2st']):.3f}"
                print(f"{said} {found.get('choice', '')} ({time.monotonic() - began:.0f} s)", flush=True)
            page.write(args.docs)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: 0, or 130 if interrupted."""
    parser = parser_of("posteriors", __doc__)
    parser.add_argument("--tasks", nargs="+", default=list(page.TASKS), choices=page.TASKS, help="default: all")
    parser.add_argument("--networks", type=int, nargs="+", default=list(page.NETWORKS), help="seeds, default 1 2 3")
    parser.add_argument("--nfe", type=int, nargs="+", default=list(page.NFE), help="default %(default)s")
    args = parser.parse_args(arguments)
    warnings.simplefilter("ignore", anisoflight.AnisoflightWarning)
    return command(args, run, page.write)


if __name__ == "__main__":
    sys.exit(main())
