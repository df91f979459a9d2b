"""``python -m studies.reports.weather``: the geodesic and `few` beside anemoi's curves of noise levels, by aims.

    make .venv-integration/bin/python                 # torch and anemoi-models
    PYTHONPATH=client_py OMP_NUM_THREADS=1 .venv-integration/bin/python -m studies.reports.weather   # half an hour
    … -m studies.reports.weather --page                         # the page alone, from the rows that are there

Each row is in studies/docs/weather-rows.jsonl once it is measured, and networks are kept in --data, so that a command
that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from anemoi.models.transport.objectives import EDMDiffusionModelObjective
from anemoi.models.transport.schedules import SIGMA_SCHEDULES, KarrasSigmaTrainingDistribution, SigmaSchedule

import anisoflight
from anisoflight.fid.cells import Cells
from anisoflight.torch import Denoiser, few
from studies.reports import weatherpage as page
from studies.reports.page import command, parser_of
from studies.reports.rivals import raced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from anisoflight import Client

Tensor = torch.Tensor

SIDE, VARIABLES, WIDTH, BATCH = 16, 2, 24, 32
SEARCHED, TUNED, JUDGED, DATA = 64, 64, 32, 1024
"""Previous states to search on, to tune on and to judge on; pairs that the geodesic passes over."""
FIRST, FINALISTS = 12, 6
"""States on which tuning tries every curve, and the curves that it tries on all."""
OBJECTIVE = EDMDiffusionModelObjective()
NAME = "fields"


class Levels(SigmaSchedule):
    """Given noise levels as a schedule of anemoi."""

    def __init__(self, levels: Sequence[float]) -> None:
        super().__init__(sigma_max=levels[0], sigma_min=levels[-1], num_steps=len(levels))
        self.levels = levels

    def _build_schedule(self, device: Any = None, dtype_compute: torch.dtype = torch.float64) -> Tensor:
        return torch.tensor(self.levels, device=device, dtype=dtype_compute)


SIGMA_SCHEDULES["levels"] = Levels


def smooth(n: int, slope: float, generator: torch.Generator) -> Tensor:
    """Periodic normal fields [n, SIDE, SIDE] of variance one, whose amplitude falls as wave numbers to -slope."""
    waves = (torch.fft.fftfreq(SIDE)[:, None] ** 2 + torch.fft.fftfreq(SIDE) ** 2).sqrt() * SIDE
    filtered = torch.where(waves > 0, waves.clamp(min=1) ** -slope, 0)
    filtered = filtered * SIDE / filtered.square().sum().sqrt()
    return torch.fft.ifft2(torch.fft.fft2(torch.randn(n, SIDE, SIDE, generator=generator)) * filtered).real


def moist(latent: Tensor) -> Tensor:
    """A log-normal field of mean zero and variance one."""
    spread = np.exp(0.49)
    return ((0.7 * latent).exp() - spread**0.5) / ((spread - 1) * spread) ** 0.5


def pairs(n: int, generator: torch.Generator, previous: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """States [n, 2, SIDE, SIDE], a height and a moisture, and next ones: both drift with one random wind, and lose to
    new fields. With `previous`, next states of these."""
    if previous is None:
        previous = torch.stack([smooth(n, 3.0, generator), moist(smooth(n, 2.0, generator))], 1)
    mean = np.exp(0.245)
    latent = torch.stack([previous[:, 0], (previous[:, 1] * mean * (mean**2 - 1) ** 0.5 + mean).log() / 0.7], 1)
    wind = 1.5 * torch.randn(len(previous), 2, 1, 1, 1, generator=generator)
    waves = torch.fft.fftfreq(SIDE)
    turned = torch.exp(-2j * torch.pi * (wind[:, 0] * waves[:, None] + wind[:, 1] * waves))
    moved = torch.fft.ifft2(torch.fft.fft2(latent) * turned).real
    height = 0.95 * moved[:, 0] + (1 - 0.95**2) ** 0.5 * smooth(len(previous), 3.0, generator)
    moisture = 0.8 * moved[:, 1] + 0.6 * smooth(len(previous), 2.0, generator)
    return previous, torch.stack([height, moist(moisture)], 1)


class Network(torch.nn.Module):
    """EDM's F of a next state given the previous one: blocks of circular convolutions, scaled by the noise."""

    def __init__(self) -> None:
        super().__init__()
        self.noise = torch.nn.Sequential(torch.nn.Linear(1, 64), torch.nn.SiLU(), torch.nn.Linear(64, 6 * WIDTH))
        around: dict[str, Any] = {"padding": "same", "padding_mode": "circular"}
        self.inputs = torch.nn.Conv2d(2 * VARIABLES, WIDTH, 3, **around)
        self.first, self.second = (
            torch.nn.ModuleList(torch.nn.Conv2d(WIDTH, WIDTH, 3, dilation=d, **around) for d in (1, 2, 4))
            for _ in range(2)
        )
        self.output = torch.nn.Conv2d(WIDTH, VARIABLES, 3, **around)

    def forward(self, x: Tensor, noise_label: Tensor, previous: Tensor) -> Tensor:
        held = self.inputs(torch.cat([x, previous], 1))
        scales = self.noise(noise_label[:, None])[:, :, None, None].chunk(6, 1)
        for k, (first, second) in enumerate(zip(self.first, self.second, strict=True)):
            inner = torch.nn.functional.silu(first(held) * (1 + scales[2 * k]) + scales[2 * k + 1])
            held = held + second(inner)
        return self.output(torch.nn.functional.silu(held))


def states(x: Tensor) -> Tensor:
    """Images [n, C, H, W] as anemoi's states [n, time, ensemble, grid, variables]."""
    return x.flatten(2).transpose(1, 2)[:, None, None]


def images(x: Tensor) -> Tensor:
    return x[:, 0, 0].transpose(1, 2).unflatten(2, (SIDE, SIDE))


class Forecast(SimpleNamespace):
    """What anemoi's objective asks of a model."""

    def build_sampling_source(self, x: Any, **_: Any) -> dict[str, Tensor]:
        return dict.fromkeys(x, self.source)

    def _assert_condition_shapes(self, condition: dict[str, Tensor]) -> tuple[int, int]:
        return len(condition[NAME]), 1

    def _forward_transport_network(self, x: Any, y: Any, c_noise: Any, **_: Any) -> dict[str, Tensor]:
        return {NAME: states(self.network(images(y[NAME]), c_noise[NAME].flatten(), images(x[NAME])))}


class Study:
    """A network that is trained with anemoi's objective, and kept in a folder."""

    def __init__(self, client: Client, folder: Path, number: int, steps: int, judged: int) -> None:
        self.client, self.number = client, number
        torch.manual_seed(number)
        self.network = Network()
        self.model = Forecast(network=self.network, edm=SimpleNamespace(sigma_data=1.0), inference_defaults={})
        file = folder / f"weather-{number}-{steps}.pt"
        if not file.exists():
            self.train(steps)
            torch.save(self.network.state_dict(), file)
        self.network.load_state_dict(torch.load(file))
        self.network.eval().requires_grad_(False)
        generator = torch.Generator().manual_seed(1_000_000 + number)
        self.given, self.next = pairs(DATA, generator)
        self.searched, self.tuned = pairs(SEARCHED, generator)[0], pairs(TUNED, generator)[0]
        self.judged, self.truth = pairs(judged, generator)
        self.members = self.judged.repeat_interleave(page.MEMBERS, 0)
        self.generator, self.made = generator, {}

    def train(self, steps: int) -> None:
        generator = torch.Generator().manual_seed(self.number)
        levels = KarrasSigmaTrainingDistribution(page.HIGHEST, page.LOWEST)
        adam = torch.optim.Adam(self.network.parameters(), 2e-3)
        rate = torch.optim.lr_scheduler.OneCycleLR(adam, 4e-3, total_steps=steps)
        for _ in range(steps):
            previous, clean = (states(x) for x in pairs(BATCH, generator))
            sigma = levels.sample({NAME: tuple(clean.shape)}, device=clean.device)
            noisy = clean + sigma[NAME] * torch.randn_like(clean)
            found = OBJECTIVE.forward(self.model, {NAME: previous}, {NAME: noisy}, sigma)[NAME]
            loss = ((1 + sigma[NAME] ** -2) * (found - clean) ** 2).mean()
            adam.zero_grad()
            loss.backward()
            adam.step()
            rate.step()

    def forecast(self, levels: Sequence[float], sampler: str, previous: Tensor, noise: Tensor) -> Tensor:
        """Next states by anemoi's own sampling."""
        self.model.source = states(noise)
        schedule = {"schedule_type": "levels", "levels": list(map(float, levels))}
        given = {NAME: states(previous)}
        with torch.no_grad():
            found = OBJECTIVE.sample(self.model, given, schedule_params=schedule, sampler_params={"sampler": sampler})
        return images(found[NAME])

    @cached_property
    def tuning(self) -> tuple[Tensor, Tensor]:
        return self.converged(self.tuned, 1)

    @cached_property
    def judging(self) -> tuple[Tensor, Tensor]:
        return self.converged(self.members, 2)

    def converged(self, previous: Tensor, seed: int) -> tuple[Tensor, Tensor]:
        """Noise for these states, and where it leads."""
        noise = torch.randn(previous.shape, generator=torch.Generator().manual_seed(seed))
        levels = page.karras(page.CONVERGED, page.HIGHEST, page.LOWEST)
        return noise, self.forecast(levels, page.HEUN, previous, noise)

    def tune(self, curves: Iterator[tuple[str, list[float]]], sampler: str) -> dict[str, Any]:
        """The curve with the least squared error."""
        noise, ends = self.tuning

        def error(curve: tuple[str, list[float]], count: int) -> float:
            drawn = self.forecast(curve[1], sampler, self.tuned[:count], noise[:count])
            return float((drawn - ends[:count]).square().mean())

        ((choice, levels),) = raced(list(curves), error, ((FIRST, FINALISTS), (TUNED, 1)))
        return {"choice": choice, **self.levels(sampler, levels)}

    def levels(self, sampler: str, levels: Sequence[float]) -> dict[str, Any]:
        found = {"levels": [float(f"{level:.5g}") for level in levels]}
        return found | self.judge(partial(self.forecast, levels, sampler))

    def geodesics(self, steps: int) -> Iterator[tuple[str, list[float]]]:
        """Of the network on the server: the first without an option, the others to tune among."""
        name = f"weather-{self.number}"
        if not self.made:
            self.client.put_dataset(name, self.next.permute(0, 2, 3, 1).numpy(), np.arange(DATA), mean=0, scale=1,
                                    replace=True)  # fmt: skip
            kind = {"kind": "edm", "sigma_data": 1.0, "sigma_min": page.LOWEST, "sigma_max": page.HIGHEST}
            self.client.put_network(name, self.network, scheduler=kind, size=SIDE, channels=VARIABLES, mean=0, scale=1,
                                    conditions={"previous": self.given}, progress=False, replace=True)  # fmt: skip
        for order, highest in product((2, 1), (None, 20, 40, 80)):
            told = f"order {order}, σ_max {highest or 'its own'}"
            if told not in self.made:
                options = {"T": highest**2} if highest else {}
                made = self.client.make_schedule(f"{name}-{len(self.made)}", model=name, dataset=name, order=order,
                                                 progress=False, replace=True, **options)  # fmt: skip
                self.made[told] = made.curve()
            yield told, self.made[told].sigmas(steps)[:-1].tolist()

    def few(self, nfe: int) -> dict[str, Any]:
        """What the product finds with the range of noise levels alone."""
        began = time.monotonic()

        def network(x: Tensor, sigma: Tensor, previous: Tensor) -> Tensor:
            level = sigma.reshape(-1, 1, 1, 1, 1).to(x)
            given, noisy = {NAME: states(previous)}, {NAME: states(x)}
            return images(OBJECTIVE.forward(self.model, given, noisy, {NAME: level})[NAME])

        def denoiser(previous: Tensor) -> Denoiser:
            ends = {"sigma_min": page.LOWEST, "sigma_max": page.HIGHEST}
            return Denoiser(network, "denoiser", cond={"previous": previous}, **ends)

        shape = (VARIABLES, SIDE, SIDE)
        plan = few(denoiser(self.searched), nfe, shape, client=self.client, progress=False)
        chosen, seconds = plan.info["chosen"], round(time.monotonic() - began, 1)
        told = f"{chosen['solver']}, σ_max {chosen['sigma_max']:.3g}, levels {chosen['levels']}"
        levels = [float(f"{stage.sigma:.5g}") for stage in plan.evaluations]

        def draw(previous: Tensor, noise: Tensor) -> Tensor:
            with torch.no_grad():
                return plan(denoiser(previous), noise, labels=np.arange(len(noise)), progress=False)

        found = {"choice": told, "seconds": seconds, "evaluations": plan.info["evaluations"], "levels": levels}
        return found | self.judge(draw)

    def judge(self, draw: Callable[[Tensor, Tensor], Tensor]) -> dict[str, Any]:
        noise, ends = self.judging
        found = draw(self.members, noise)
        return {"error": float((found - ends).square().mean().sqrt()), "crps": self.crps(found)}

    def crps(self, members: Tensor) -> float:
        """The fair score of ensembles against the true next state."""
        ensemble = members.unflatten(0, (-1, page.MEMBERS))
        spread = (ensemble[:, None] - ensemble[:, :, None]).abs().sum((1, 2)) / (page.MEMBERS * (page.MEMBERS - 1))
        return float((ensemble - self.truth[:, None]).abs().mean() - spread.mean() / 2)

    def bounds(self) -> dict[str, Any]:
        """The scores of the converged network and of the simulator itself, 20 times."""
        drawn = [self.crps(pairs(0, self.generator, self.members)[1]) for _ in range(20)]
        return {"crps": self.crps(self.judging[1]), "simulator": drawn}

    def measure(self, method: str, nfe: int) -> dict[str, Any]:
        if method in (page.BOUNDS, page.FEW):
            return self.bounds() if method == page.BOUNDS else self.few(nfe)
        name, sampler = method.rsplit(", ", 1)
        steps = (nfe + 1) // 2 if sampler == page.HEUN else nfe
        if name in (page.KARRAS, page.PIECEWISE):
            return self.levels(sampler, page.given(name, steps))
        if name == page.GEODESIC:
            return self.levels(sampler, next(self.geodesics(steps))[1])
        return self.tune(self.geodesics(steps) if name == page.TUNED[2] else page.grid(name, steps), sampler)


def run(args: argparse.Namespace) -> None:
    """Measure what is asked for."""
    cells = Cells(args.docs / page.ROWS)
    (args.data / "networks").mkdir(parents=True, exist_ok=True)
    with anisoflight.serve(data=args.data) as client:
        for number in args.networks:
            study = None
            for method, nfe in [(page.BOUNDS, 0), *product(page.METHODS, args.nfe)]:
                key = {"network": number, "method": method, "nfe": nfe}
                if key in cells:
                    continue
                study = study or Study(client, args.data / "networks", number, args.steps, args.judged)
                began = time.monotonic()
                found = cells.measured(key, partial(study.measure, method, nfe))
                told = f"{found.get('error', 0):.4f} {found['crps']:.4f} {found.get('choice', '')}"
                took = time.monotonic() - began
                print(f"{time.strftime('%H:%M')} {number}, {nfe}, {method}: {told} ({took:.0f} s)", flush=True)
            page.write(args.docs)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: 0, or 130 if interrupted."""
    parser = parser_of("weather", __doc__)
    parser.add_argument("--networks", type=int, nargs="+", default=list(page.NETWORKS), help="seeds, default 1 2 3")
    parser.add_argument("--nfe", type=int, nargs="+", default=list(page.NFE), help="default %(default)s")
    parser.add_argument("--steps", type=int, default=1200, help="of training, default %(default)s")
    parser.add_argument("--judged", type=int, default=JUDGED, help="states to judge on, default %(default)s")
    args = parser.parse_args(arguments)
    warnings.simplefilter("ignore", anisoflight.AnisoflightWarning)
    return command(args, run, page.write)


if __name__ == "__main__":
    sys.exit(main())
