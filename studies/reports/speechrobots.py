"""``python -m studies.reports.speechrobots``: `few` on tiny networks of packages for speech and robots, by an aim.

    PYTHONPATH=client_py:client_py/integration .venv-integration/bin/python -m studies.reports.speechrobots

The networks are those of client_py/integration/packages.py. Each row is in studies/docs/speechrobots-rows.jsonl once it
is measured, and networks are kept in --data, so that a command that was stopped goes on where it was.
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
import packages
import torch
from diffusers import DDIMScheduler

import anisoflight
from anisoflight.fid.cells import Cells
from anisoflight.torch import Denoiser
from anisoflight.torch import few as search
from studies.reports import speechrobotspage as page
from studies.reports.page import command, parser_of
from studies.reports.rivals import SOLVERS, raced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from anisoflight import Client, Plan

Tensor = torch.Tensor

CONDITIONS, JUDGED = 64, 128
"""Conditions to search or tune on, and others to judge on; each has samples of its own seeds."""
SIGMAS, RHOS, END, FIRST, FINALISTS = (80, 40, 20, 10), (7, 4, 3), 0.002, 24, 6
HIGHEST, CONVERGED = 1000.0, 96
SWAYS = (0.0, -1.0, -0.75, -0.5, -0.25, 0.25, 0.5, 0.75, 1.0)
FLOW = {"kind": "flow", "to_data": True}
PROMPT, STRENGTH, TEMPERATURE = 8, 2.0, 0.667


@dataclass(frozen=True)
class Package:
    """A network of a package, and how the package samples."""

    make: Callable[[int, int], Any]
    steps: int
    draw: Callable[[Any, int], Any]
    """Conditions."""
    denoiser: Callable[[Any, Any], Denoiser]
    own: Callable[[Any, Any, int, int, Any], Tensor]
    """Samples of the package's sampler: of a network, conditions, a seed of the noise, evaluations, and an option."""
    options: Callable[[int], Sequence[Any]]
    """Of the package's sampler, its defaults first."""
    shape: tuple[int, int]
    features: Callable[[Tensor], Tensor] | None = None
    temperature: float = 1.0


def noise_of(seed: int, count: int, shape: tuple[int, int]) -> Tensor:
    torch.manual_seed(seed)
    return torch.stack([torch.randn(shape) for _ in range(count)])  # as CFM.sample of F5-TTS draws it


def _converged(denoiser: Denoiser, noise: Tensor, levels: Sequence[float]) -> Tensor:
    """By DPM-Solver++(2M), which the server's schedules have up to σ = 80 only."""
    x, before = levels[0] * noise, None
    for k, (level, after) in enumerate(pairwise([*levels, 0.0])):
        found = denoiser(x, level, rows=np.arange(len(x)))
        slope = 0.0
        if before is not None and after > 0:
            slope = (found - before) * float(np.log(level / after) / np.log(levels[k - 1] / level) / 2)
        x = after / level * x + (1 - after / level) * (found + slope)
        before = found
    return x


def _policy(policy: Any, cond: Tensor) -> Denoiser:
    network = policy.diffusion
    made = Denoiser(network.unet, network.noise_scheduler, cond={"global_cond": cond}, clip=1.0)
    made.take_whole_times()
    return made


def _ddim(policy: Any, cond: Tensor, seed: int, nfe: int, spacing: str) -> Tensor:
    network = policy.diffusion
    kept = network.noise_scheduler, network.num_inference_steps
    network.noise_scheduler = DDIMScheduler.from_config(kept[0].config, timestep_spacing=spacing)
    network.num_inference_steps = nfe
    try:
        return network.conditional_sample(len(cond), cond, noise=noise_of(seed, len(cond), (16, 2)))
    finally:
        network.noise_scheduler, network.num_inference_steps = kept


def _f5(cfm: Any, given: tuple[Tensor, Tensor]) -> Denoiser:
    mel, text = given
    prompt = torch.cat([mel[:, :PROMPT], torch.zeros_like(mel[:, PROMPT:])], 1)
    cond = {"cond": prompt, "text": text, "drop_audio_cond": False, "drop_text": False}
    empty = {"drop_audio_cond": True, "drop_text": True}
    return Denoiser(cfm.transformer, FLOW, cond=cond, empty=empty, guidance=1 + STRENGTH)


def _sway(cfm: Any, given: tuple[Tensor, Tensor], seed: int, nfe: int, option: tuple[str, float, bool]) -> Tensor:
    (mel, text), (method, sway, pruned) = given, option
    torch.manual_seed(seed)  # it draws the noise itself
    cfm.odeint_kwargs = {"method": method}
    return cfm.sample(mel[:, :PROMPT], text, mel.shape[1], steps=nfe // (2 if method == "midpoint" else 1),
                      cfg_strength=STRENGTH, sway_sampling_coef=sway, use_epss=pruned)[0]  # fmt: skip


def _f5_options(nfe: int) -> list[tuple[str, float, bool]]:
    methods = ["euler"] if nfe % 2 else ["euler", "midpoint"]
    return [("euler", -1.0, True), *product(methods, SWAYS, (False, True))]


def _matcha(cfm: Any, mean: Tensor) -> Denoiser:
    mask = torch.ones(1, 1, mean.shape[2])
    return Denoiser(cfm.estimator, FLOW, cond={"mask": mask, "mu": mean})


def _euler(cfm: Any, mean: Tensor, seed: int, nfe: int, sway: float) -> Tensor:
    noise, times = TEMPERATURE * noise_of(seed, len(mean), mean.shape[1:]), torch.linspace(0, 1, nfe + 1)
    times = times + sway * (torch.cos(torch.pi / 2 * times) - 1 + times)
    return cfm.solve_euler(noise, times, mean, torch.ones(len(mean), 1, mean.shape[2]), None, None)


def _spoken(_: Any, count: int) -> tuple[Tensor, Tensor]:
    text, _, mel = packages.speech(count)
    return mel, text


PACKAGES = {
    page.POLICY: Package(
        packages.policy, 600, lambda policy, n: policy.diffusion._prepare_global_conditioning(packages.reaches(n)),
        _policy, _ddim, lambda _: ("leading", "trailing", "linspace"), (16, 2),
    ),
    page.F5: Package(
        packages.f5, 300, _spoken, _f5, _sway, _f5_options, (packages.FRAMES, packages.BANDS),
        features=lambda x: x[:, PROMPT:].flatten(1),
    ),
    page.MATCHA: Package(
        packages.matcha, 300, lambda _, n: packages.speech(n)[1].mT, _matcha, _euler, lambda _: SWAYS,
        (packages.BANDS, packages.FRAMES), temperature=TEMPERATURE,
    ),
}  # fmt: skip


class Study:
    """A network of a package, kept in a folder, with conditions to search, tune and judge on."""

    def __init__(self, client: Client, folder: Path, name: str, network: int) -> None:
        self.client, self.package = client, PACKAGES[name]
        file = folder / f"{name.replace(' ', '-')}-{network}.pt"
        steps = self.package.steps * (page.TIMES if network in page.LONGER else 1)
        self.network = self.package.make(0 if file.exists() else steps, network)
        self.seconds: float = 0.0
        if file.exists():
            self.seconds, weights = torch.load(file)
            self.network.load_state_dict(weights)
        else:
            self.seconds = packages.SECONDS[-1]
            torch.save((self.seconds, self.network.state_dict()), file)
        torch.manual_seed(1_000_000 + network)
        with torch.no_grad():
            draws = [self.package.draw(self.network, n) for n in (CONDITIONS, CONDITIONS, JUDGED)]
        self.searched, self.tuned, self.judged = (self.package.denoiser(self.network, one) for one in draws)
        self.tuning, self.judging = (draws[1], 7, CONDITIONS), (draws[2], 2_000_000 + network, JUDGED)

    def follow(self, denoiser: Denoiser, plan: Plan, seed: int, count: int, temperature: float = 1.0) -> Tensor:
        noise = temperature * noise_of(seed, count, self.package.shape)
        with torch.no_grad():
            return plan(denoiser, noise, labels=np.arange(count), progress=False)

    def plain(self, levels: Sequence[float], solver: dict[str, Any]) -> Plan:
        return self.client.plan("edm", sigma_min=END, sigma_max=80, grid={"sigma": [*levels]}, **solver)

    def grids(self, nfe: int) -> Iterator[tuple[str, list[float]]]:
        """Levels to evaluate, then the last one: 0 or nearly so."""
        shares = np.linspace(0, 1, nfe + 1)[:-1]
        found = [(f"σ_max {top}, ρ {rho}", (top ** (1 / rho) + shares * (END ** (1 / rho) - top ** (1 / rho))) ** rho)
                 for top, rho in product(SIGMAS, RHOS)]  # fmt: skip
        times = 80 / 81 * (1 - shares)
        for (name, levels), end in product([*found, ("even times", times / (1 - times))], (END, 0.0)):
            if table := self.searched.levels:
                snapped = [min(table, key=lambda one, at=level: abs(np.log(one / at))) for level in levels]
                if len(set(snapped)) < nfe or end:
                    continue
                levels = snapped
            yield f"{name}, to {end:g}", [*map(float, levels), end]

    @cached_property
    def ends(self) -> list[Tensor]:
        """Converged samples of the noise to tune on and of that to judge on."""
        package, levels = self.package, self.searched.levels
        if levels is None:
            levels = (np.linspace(HIGHEST ** (1 / 7), END ** (1 / 7), CONVERGED) ** 7).tolist()
        given = (self.tuned, *self.tuning[1:]), (self.judged, *self.judging[1:])
        with torch.no_grad():
            return [_converged(denoiser, package.temperature * noise_of(seed, n, package.shape), levels)
                    for denoiser, seed, n in given]  # fmt: skip

    def error(self, samples: Tensor, ends: Tensor) -> float:
        features = self.package.features or torch.Tensor.clone
        return float((features(samples) - features(ends[: len(samples)])).square().mean())

    def judge(self, plan: Plan, temperature: float) -> dict[str, Any]:
        return {"error": self.error(self.follow(self.judged, plan, *self.judging[1:], temperature), self.ends[1])}

    def few(self, nfe: int, *, told: bool = True) -> dict[str, Any]:
        """What the product finds; not told of the temperature, the noise is multiplied by it."""
        package, began = self.package, time.monotonic()
        heat = package.temperature if told else 1.0
        plan = search(self.searched, nfe, package.shape, features=package.features, temperature=heat,
                      client=self.client, progress=False)  # fmt: skip
        chosen = plan.info["chosen"]
        choice = f"{chosen['solver']}, σ_max {chosen['sigma_max']:.3g}, levels {chosen['levels']}"
        return {"choice": choice, "seconds": round(time.monotonic() - began, 1), "trained": self.seconds,
                "evaluations": plan.info["evaluations"], "ratio": plan.info["ratio"],
                **self.judge(plan, package.temperature / heat)}  # fmt: skip

    def best(self, nfe: int) -> dict[str, Any]:
        """The plain solver with the least squared error."""
        candidates = [(f"{name}, {how}", self.plain(levels, solver))
                      for (how, levels), (name, solver) in product(self.grids(nfe), SOLVERS.items())]  # fmt: skip
        heat = self.package.temperature

        def error(candidate: tuple[str, Plan], count: int) -> float:
            return self.error(self.follow(self.tuned, candidate[1], 7, count, heat), self.ends[0])

        ((choice, plan),) = raced(candidates, error, ((FIRST, FINALISTS), (CONDITIONS, 1)))
        return {"choice": choice, **self.judge(plan, heat)}

    def own(self, nfe: int, *, tuned: bool) -> dict[str, Any]:
        """The package's sampler, with its defaults or the option of the least squared error."""
        options = list(self.package.options(nfe))

        def error(option: Any, at: int) -> float:
            cond, seed, _ = (self.tuning, self.judging)[at]
            with torch.no_grad():
                return self.error(self.package.own(self.network, cond, seed, nfe, option), self.ends[at])

        best = min(options, key=partial(error, at=0)) if tuned else options[0]
        return {"choice": str(best), "error": error(best, 1)}


def run(args: argparse.Namespace) -> None:
    """Measure what is asked for."""
    cells = Cells(args.docs / page.ROWS)
    (args.data / "networks").mkdir(parents=True, exist_ok=True)
    with anisoflight.serve(data=args.data) as client:
        for name, network in product(args.packages, args.networks):
            study = None
            for method, nfe in product((*page.METHODS, *([page.UNTOLD] if name == page.MATCHA else [])), args.nfe):
                key = {"package": name, "network": network, "method": method, "nfe": nfe}
                if key in cells:
                    continue
                study = study or Study(client, args.data / "networks", name, network)
                work: dict[str, Callable[[], dict[str, Any]]] = {
                    page.FEW: partial(study.few, nfe), page.UNTOLD: partial(study.few, nfe, told=False),
                    page.PLAIN: partial(study.best, nfe), page.OWN: partial(study.own, nfe, tuned=False),
                    page.TUNED: partial(study.own, nfe, tuned=True),
                }  # fmt: skip
                began = time.monotonic()
                found = cells.measured(key, work[method])
                said = f"{time.strftime('%H:%M')} {name} {network}, {nfe}, {method}: {found['error']:.3g}"
                print(f"{said} {found['choice']} ({time.monotonic() - began:.0f} s)", flush=True)
            page.write(args.docs)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: 0, or 130 if interrupted."""
    parser = parser_of("speechrobots", __doc__)
    parser.add_argument("--packages", nargs="+", default=list(PACKAGES), choices=PACKAGES, help="default: all")
    parser.add_argument("--networks", type=int, nargs="+", default=[*page.NETWORKS, *page.LONGER], help="seeds")
    parser.add_argument("--nfe", type=int, nargs="+", default=list(page.NFE), help="default %(default)s")
    args = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    return command(args, run, page.write)


if __name__ == "__main__":
    sys.exit(main())
