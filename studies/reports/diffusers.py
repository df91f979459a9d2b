"""``python -m studies.reports.diffusers``: diffusers' samplers and ours on one network.

A network is a DDPM trained in torch and sent to the server by `put_network`. diffusers samples the module, the server
the same weights, both from the same latents. `make report-diffusers` writes studies/docs/diffusers.md with it.
"""

from __future__ import annotations

import argparse
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from diffusers import DDIMScheduler, DDPMScheduler, DPMSolverMultistepScheduler, UNet2DModel, UniPCMultistepScheduler
from network import ddpm, digits, trained

import anisoflight
from anisoflight.compare.bench import Reference
from anisoflight.compare.metrics import principal_features
from anisoflight.files.cells import Cells
from studies.features import edge_features
from studies.reports.fairpage import difference, spread

if TYPE_CHECKING:
    from collections.abc import Callable

    from anisoflight import Client

Images = np.ndarray[Any, Any]

NFE = (5, 9)
DISTANCES = ("FD", "edge FD")
ALIKE = 50  # evaluations of the sampler that both sides have
PAGE = Path(__file__).parents[1] / "docs" / "diffusers.md"

SPACINGS: dict[str, dict[str, Any]] = {
    "leading": {"timestep_spacing": "leading"},
    "linspace": {"timestep_spacing": "linspace"},
    "trailing": {"timestep_spacing": "trailing"},
    "Karras": {"use_karras_sigmas": True},
}
"""Ways in which diffusers places its times."""


def theirs() -> dict[str, Any]:
    """diffusers' samplers of an ε-network, with every placement of times that each of them has.

    DDIM clips x_0 by default; without that it is better here.
    """
    made = {
        f"DDIM, {how}": DDIMScheduler(clip_sample=False, **options)
        for how, options in SPACINGS.items()
        if how in ("leading", "trailing")
    }
    for order in (2, 3):
        for how, options in SPACINGS.items():
            made[f"DPM-Solver++ {order}M, {how}"] = DPMSolverMultistepScheduler(solver_order=order, **options)
            made[f"UniPC-{order}, {how}"] = UniPCMultistepScheduler(solver_order=order, **options)
    return made


OURS = ("ours: few", "ours: iPNDM-4, EDM's levels", "ours: 2M, EDM's levels")


@dataclass(frozen=True)
class Network:
    """A trained module, the model that the server has of it, and a hash of its weights."""

    seed: int
    unet: UNet2DModel
    hash: str

    @property
    def name(self) -> str:
        return f"ddpm-{self.seed}"

    @torch.no_grad()
    def in_torch(self, scheduler: Any, nfe: int, latents: Images) -> Images:
        """What diffusers' loop makes of latents [n, H, W, C]."""
        scheduler.set_timesteps(nfe)
        x = torch.from_numpy(latents).permute(0, 3, 1, 2) * scheduler.init_noise_sigma
        for t in scheduler.timesteps:
            x = scheduler.step(self.unet(scheduler.scale_model_input(x, t), t).sample, t, x, return_dict=False)[0]
        return x.permute(0, 2, 3, 1).numpy()

    def on_server(self, client: Client, latents: Images, options: dict[str, Any]) -> Images:
        """What the server makes of them."""
        return np.asarray(client.sample(self.name, latents=latents, dtype="float32", progress=False, **options).images)

    def ours(self, client: Client) -> dict[str, Callable[[int], dict[str, Any]]]:
        """Options of `Client.sample` for so many evaluations, by the sampler's name."""
        few, ipndm, two = OURS
        return {
            few: lambda nfe: {"schedule": self.few(client, nfe), "nfe": nfe},
            ipndm: lambda nfe: {"solver": "ipndm", "order": 4, "grid": "polynomial", "nfe": nfe},
            two: lambda nfe: {"solver": "dpmpp2m", "grid": "polynomial", "nfe": nfe},
        }

    def few(self, client: Client, nfe: int) -> str:
        """The schedule that the server makes for so many evaluations, which tries samplers on the network."""
        name = f"{self.name}-few-{nfe}"
        if name not in client.schedules().index:
            client.make_schedule(name, "few", model=self.name, dataset="digits", nfe=nfe, progress=False)
        return name

    def alike(self, client: Client, latents: Images) -> float:
        """The largest difference between DDIM in diffusers and the same sampler on the server, in pixels of [-1, 1]."""
        ddim = DDIMScheduler(clip_sample=False)
        drawn = self.in_torch(ddim, ALIKE, latents)
        kept = ddim.alphas_cumprod[ddim.timesteps].double()
        levels = [*((1 - kept) / kept).sqrt().tolist(), 0]
        options = {"solver": "euler", "grid": {"sigma": levels}, "schedule": {"edm": {"T": levels[0] ** 2}}}
        return float(np.abs(self.on_server(client, latents, options) - drawn).max())


def network(client: Client, folder: Path, seed: int, steps: int) -> Network:
    """The network of that seed, trained unless the folder has it, on the server."""
    kept = folder / f"unet-{steps}-{seed}"
    if not kept.exists():
        trained(ddpm(), steps, seed).save_pretrained(kept)
    unet = UNet2DModel.from_pretrained(kept)
    weights = b"".join(value.numpy().tobytes() for value in unet.state_dict().values())
    made = Network(seed, unet, hashlib.sha256(weights).hexdigest()[:12])
    client.put_network(made.name, unet, scheduler=DDPMScheduler(), replace=True, progress=False)
    return made


def measure(client: Client, args: argparse.Namespace) -> tuple[pd.DataFrame, list[float]]:
    """Rows of network, sampler, nfe and both distances; and how far apart DDIM is on both sides, by network."""
    cells = Cells(args.out / "cells.jsonl")
    images = digits()
    client.put_dataset("digits", images, replace=True, progress=False)
    references = dict(zip(DISTANCES, (principal_features(images, 40), edge_features(images)), strict=True))
    judges = {name: Reference(features, images) for name, features in references.items()}
    rows, apart = [], []
    for seed in range(args.networks):
        made = network(client, args.out, seed, args.steps)
        latents = np.random.default_rng(seed).standard_normal((args.count, *images.shape[1:]), np.float32)
        sides: dict[str, Callable[[int], Images]] = {
            name: lambda nfe, scheduler=scheduler: made.in_torch(scheduler, nfe, latents)  # noqa: B023
            for name, scheduler in theirs().items()
        }
        sides |= {
            name: lambda nfe, options=options: made.on_server(client, latents, options(nfe))  # noqa: B023
            for name, options in made.ours(client).items()
        }
        for nfe in NFE:
            for name, draw in sides.items():

                def distances(draw: Callable[[int], Images] = draw, nfe: int = nfe) -> dict[str, float]:
                    drawn = draw(nfe).clip(-1, 1)
                    return {by: judge.distance(drawn) for by, judge in judges.items()}

                key = {"sampler": name, "nfe": nfe, "network": made.hash, "count": args.count}
                found = cells.measured(key, distances)
                rows.append({"network": seed, "sampler": name, "nfe": nfe, **found})
                print(rows[-1], flush=True)
        apart.append(made.alike(client, latents[:64]))
    return pd.DataFrame(rows), apart


def best(rows: pd.DataFrame, nfe: int) -> str:
    """The sampler of diffusers whose mean FD is the lowest: the choice of somebody who tried them all."""
    theirs = rows[(rows.nfe == nfe) & ~rows.sampler.isin(OURS)]
    return str(theirs.groupby("sampler")[DISTANCES[0]].mean().idxmin())


def table(rows: pd.DataFrame, kinds: list[str]) -> list[str]:
    """A line a sampler: FD / edge FD at every number of evaluations, the lowest means bold."""
    means = rows.groupby(["sampler", "nfe"])[list(DISTANCES)].mean()
    lowest = means.groupby("nfe").min()

    def cell(name: str, nfe: int) -> str:
        of = rows[(rows.sampler == name) & (rows.nfe == nfe)]
        words = [
            f"**{spread(of[by])}**" if means.loc[(name, nfe), by] == lowest.loc[nfe, by] else spread(of[by])
            for by in DISTANCES
        ]
        return " / ".join(words)

    return [
        "| sampler | " + " | ".join(f"{nfe} evaluations" for nfe in NFE) + " |",
        "|---|" + "---:|" * len(NFE),
        *(f"| {name} | " + " | ".join(cell(name, nfe) for nfe in NFE) + " |" for name in kinds),
    ]


def paired(rows: pd.DataFrame) -> list[str]:
    """A line for each of ours: its distances less those of the best of diffusers, network by network."""

    def cell(name: str, nfe: int) -> str:
        at = rows[rows.nfe == nfe].set_index(["sampler", "network"])
        rival = at.loc[best(rows, nfe)]
        words = [difference(at.loc[name][by] - rival[by]) for by in DISTANCES]
        return " / ".join(words)

    return [
        "| sampler | " + " | ".join(f"{nfe}: less {best(rows, nfe)}" for nfe in NFE) + " |",
        "|---|" + "---:|" * len(NFE),
        *(f"| {name} | " + " | ".join(cell(name, nfe) for nfe in NFE) + " |" for name in OURS),
    ]


def page(rows: pd.DataFrame, apart: list[float], args: argparse.Namespace) -> str:
    """studies/docs/diffusers.md."""
    count = rows.network.nunique()
    head = f"""# Samplers of diffusers and ours on the same networks

`make report-diffusers` writes this page. {count} unconditional `UNet2DModel`s (358 thousand parameters), of
different seeds, predict ε at DDPM's thousand times: {args.steps} steps of Adam on scikit-learn's digits, in torch.
`put_network` sent them to the server. diffusers samples the module and the server the same weights, from the same
{args.count} latents a network, with as many evaluations. An entry is **FD / edge FD**, mean ± standard deviation over
networks: Fréchet distances to the digits in 40 principal components, and on 128 random convolutions with ReLU
(`studies/features.py`). The lowest means are bold. It is one kind of data, the networks are small, and the
digits are those that they were trained on.

diffusers' samplers are tried with every placement of times that they have, and orders 2 and 3. `few` is
`client.make_schedule(name, "few", model=…, dataset="digits", nfe=…)`, which tries samplers on the network and keeps
the best; `2M` and `iPNDM-4` on EDM's levels are the server's without any choice.
"""
    alike = f"""Where both sides have the same sampler they draw the same pictures: DDIM with {ALIKE} evaluations, in
diffusers and on the server (solver `euler` at the same levels), differs by at most {max(apart):.1g} in any pixel of 64
images a network, of a range of 2.
"""
    middle = (
        "Each of ours less the best of diffusers, paired by network, mean ± standard error, bold beyond two of them:"
    )
    return "\n".join([head, *table(rows, [*theirs(), *OURS]), "", middle, "", *paired(rows), "", alike])


def main() -> None:
    """Train, draw, measure, write."""
    parser = argparse.ArgumentParser(prog="python -m studies.reports.diffusers", description=__doc__)
    parser.add_argument("--steps", type=int, default=1000, help="of training")
    parser.add_argument("--count", type=int, default=2000, help="samples a network")
    parser.add_argument("--networks", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("runs/diffusers"), help="networks, schedules and measurements")
    args = parser.parse_args()
    torch.set_num_threads(1)
    with anisoflight.serve(data=args.out / "data") as client:
        PAGE.write_text(page(*measure(client, args), args), encoding="utf-8")
    print(PAGE)


if __name__ == "__main__":
    main()
