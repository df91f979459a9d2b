"""``python integration/compare.py``: diffusers' samplers and ours on one network; writes docs/reports/diffusers.md."""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from diffusers import DDIMScheduler, DPMSolverMultistepScheduler, UNet2DModel, UniPCMultistepScheduler

sys.path.insert(0, str(Path(__file__).parent))
from network import ddpm, digits, trained

import anisoflight
from anisoflight.bench import Reference
from anisoflight.cells import Cells
from anisoflight.diffusers import Scheduler
from anisoflight.metrics import principal_features

NFE = (5, 9)
PAGE = Path(__file__).parents[2] / "docs" / "reports" / "diffusers.md"


def theirs() -> dict[str, Any]:
    """diffusers' own, with their defaults but for clipping, which DDIM alone does, and without which it is better."""
    return {
        "DDIM": DDIMScheduler(clip_sample=False),
        "DPM-Solver++ 2M": DPMSolverMultistepScheduler(),
        "UniPC": UniPCMultistepScheduler(),
    }


def ours(client: anisoflight.Client, solver: str) -> dict[str, Any]:
    """A solver of the server on EDM's levels, and on levels made for it and the data's normal law."""
    edm = [client.plan("edm", solver=solver, nfe=nfe, grid="polynomial") for nfe in NFE]
    made = []
    for nfe in NFE:
        name = f"{solver}-{nfe}"
        client.make_schedule(name, "gaussian", dataset="digits", solver=solver, nfe=nfe, progress=False)
        made.append(client.plan(name, solver=solver, nfe=nfe))
    return {f"ours: {solver}, EDM's levels": Scheduler(edm), f"ours: {solver}, levels for the data": Scheduler(made)}


@torch.no_grad()
def drawn(scheduler: Any, unet: UNet2DModel, nfe: int, seed: int, count: int) -> np.ndarray:
    """Samples [count, 8, 8, 1]."""
    scheduler.set_timesteps(nfe)
    noise = torch.randn(count, 1, 8, 8, generator=torch.Generator().manual_seed(seed))
    x = noise * scheduler.init_noise_sigma
    for t in scheduler.timesteps:
        x = scheduler.step(unet(scheduler.scale_model_input(x, t), t).sample, t, x, return_dict=False)[0]
    return x.clamp(-1, 1).permute(0, 2, 3, 1).numpy()


def table(distances: dict[str, dict[int, list[float]]], count: int, seeds: int, steps: int) -> str:
    """The page."""
    best = {nfe: min(np.mean(row[nfe]) for row in distances.values()) for nfe in NFE}

    def cell(values: list[float], nfe: int) -> str:
        text = f"{np.mean(values):.2f} ± {np.ptp(values) / 2:.2f}"
        return f"**{text}**" if np.mean(values) == best[nfe] else text

    rows = [f"| {name} | " + " | ".join(cell(row[nfe], nfe) for nfe in NFE) + " |" for name, row in distances.items()]
    lines = [
        "# Samplers of diffusers and ours on one network of diffusers",
        "",
        f"An unconditional `UNet2DModel` (358 thousand parameters) predicts ε at DDPM's thousand times; {steps}",
        "steps of Adam on scikit-learn's digits, a minute of one core. Every sampler starts from the same noise and",
        "evaluates the network as often. Ours run in `anisoflight.diffusers.Scheduler`, diffusers' with their",
        f"defaults. Numbers are Fréchet distances of {count} samples to the data in 40 principal components, mean ±",
        f"half the range of {seeds} seeds. It is one network: others, other data and other numbers of steps may order",
        "samplers otherwise.",
        "",
        "| sampler | " + " | ".join(f"{nfe} evaluations" for nfe in NFE) + " |",
        "|---|" + "---:|" * len(NFE),
        *rows,
        "",
        '`levels for the data`: `client.make_schedule(name, "gaussian", dataset=…, solver=…, nfe=…)`, made of the',
        "data's mean and covariance alone, in seconds; the network is not asked.",
        "",
        "`make report-diffusers` repeats this.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Train, draw, measure, write."""
    parser = argparse.ArgumentParser(prog="python integration/compare.py", description=__doc__)
    parser.add_argument("--steps", type=int, default=1000, help="of training")
    parser.add_argument("--count", type=int, default=1000, help="samples a seed")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/diffusers"), help="the network, and measurements")
    args = parser.parse_args()
    torch.set_num_threads(1)
    kept = args.out / f"unet-{args.steps}"
    if not kept.exists():
        trained(ddpm(), args.steps).save_pretrained(kept)
    unet = UNet2DModel.from_pretrained(kept)
    reference = Reference(principal_features(digits(), 40), digits())
    with tempfile.TemporaryDirectory() as data, anisoflight.serve(data=data) as client:
        client.put_dataset("digits", digits(), progress=False)
        samplers = theirs() | ours(client, "dpmpp2m") | ours(client, "unipc")
    cells = Cells(args.out / "cells.jsonl")
    weights = hashlib.sha256(b"".join(value.numpy().tobytes() for value in unet.state_dict().values())).hexdigest()
    distances: dict[str, dict[int, list[float]]] = {name: {} for name in samplers}
    for nfe in NFE:
        for name, scheduler in samplers.items():
            distances[name][nfe] = [
                cells.measured(
                    {"sampler": name, "nfe": nfe, "seed": seed, "count": args.count, "network": weights},
                    lambda: {"frechet": reference.distance(drawn(scheduler, unet, nfe, seed, args.count))},  # noqa: B023
                )["frechet"]
                for seed in range(args.seeds)
            ]
            print(name, nfe, distances[name][nfe], flush=True)
    PAGE.write_text(table(distances, args.count, args.seeds, args.steps), encoding="utf-8")


if __name__ == "__main__":
    main()
