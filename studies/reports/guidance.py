"""``python -m studies.reports.guidance``: `few` that learns the guidance of each evaluation, against one, by an aim.

    python -m studies.reports.guidance                           # three networks of digits, trained first; 20 minutes
    python -m studies.reports.guidance --networks 11
    python -m studies.reports.guidance --page                    # the page alone, from the rows that are there

It needs torch and scikit-learn. Each row is in studies/docs/guidance-rows.jsonl once it is measured, and networks are
kept in --data, so that a command that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.datasets import load_digits

import anisoflight
from anisoflight.fid.cells import Cells
from anisoflight.torch import Denoiser
from anisoflight.torch import few as search
from studies.reports import guidancepage as page
from studies.reports import rivals
from studies.reports.foreign import COUNT, Foreign, best, kept, plain, squares
from studies.reports.page import command, parser_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anisoflight import Client

    Array = np.ndarray[Any, Any]

DATASET, SHAPE, CLASSES = "digits", (8, 8, 1), 10
NETWORK = {
    "img_resolution": 8, "img_channels": 1, "label_dim": CLASSES, "model_channels": 16, "channel_mult": [1, 2],
    "num_blocks": 1, "attn_resolutions": [4], "dropout": 0, "label_dropout": 0.15,
}  # fmt: skip
STEPS, BUDGET, JUDGED = 468, 100_000, 12_000_000
"""Steps of training, evaluations of a search, and the first seed of the samples that are judged."""
BEST, LOWS, HIGHS = 3, (0.0, 0.1, 0.3, 1.0), (2.0, 5.0, 15.0, np.inf)
"""Plain solvers that are tried with guidance in intervals; the ends of these."""


@dataclass(frozen=True)
class Within(rivals.Sampler):
    """With guidance at the noise levels of an interval."""

    interval: tuple[float, float] = (0.0, np.inf)


@dataclass(frozen=True, eq=False)
class Guided(Foreign):
    """A network with guidance: `network` is its Denoiser."""

    network: Any
    __hash__ = object.__hash__

    def follow(self, sampler: rivals.Sampler, noise: Array, labels: Array | None) -> Array:
        denoiser = self.network.with_attributes(interval=getattr(sampler, "interval", self.network.interval))
        return sampler.plan(denoiser, torch.from_numpy(noise).float(), labels=labels, progress=False).numpy()


def study_of(client: Client, seed: int, scale: float) -> Guided:
    """A network with guidance of a scale; the network is trained unless it is there."""
    model = f"{DATASET}-{seed}"
    if model not in client.models().index:
        if DATASET not in client.datasets().index:
            pixels, labels = load_digits(return_X_y=True)
            client.put_dataset(DATASET, (pixels.reshape(-1, *SHAPE) / 8 - 1).astype("float32"), labels)
        if model in client.runs().index:
            client.run(model).delete()
        run = client.create_run(model, "pretrain", DATASET, network=NETWORK, seed=seed, batch=128, kimg=60, lr=4e-3)
        run.step(STEPS)
        run.save(model)

    def network(x: Array, sigma: Array, label: Array) -> Array:
        rows, labels = np.ascontiguousarray(np.moveaxis(x, 1, -1), np.float32), label.astype(np.int32)
        found = client.denoise(model, rows, sigma, labels, layout="HWC", progress=False).denoised
        return np.moveaxis(found, -1, 1)

    denoiser = Denoiser(network, "denoiser", cond={"label": np.arange(CLASSES)}, empty={"label": np.array([-1])},
                        guidance=scale, dtype=np.float32)  # fmt: skip
    return Guided(client, denoiser, DATASET, SHAPE, CLASSES, None, {}, COUNT)  # pyright: ignore[reportArgumentType]


def few(study: Guided, nfe: int, learn: bool) -> dict[str, Any]:
    """What the product finds without data."""
    options: dict[str, Any] = {"client": study.client, "budget": BUDGET, "learn_guidance": learn, "progress": False}
    plan = search(study.network, nfe, study.shape[::-1], **options)
    info, guidance = plan.info or {}, [round(stage.guidance, 3) for stage in plan.evaluations]
    told = {"choice": rivals.chosen(info["chosen"]), "guidance": guidance, "ratio": info["ratio"]}
    return {**told, "tuning": info["evaluations"], **judged(study, rivals.Sampler("", plan))}


def rival(study: Guided, nfe: int, within: bool) -> dict[str, Any]:
    """The best plain solver, with guidance everywhere or in an interval."""
    begun, found = study.network.counts, best(study, list(plain(study, nfe)), BEST if within else 1)
    if within:
        found = best(study, [
            Within(f"{one.choice}, guidance in ({low:g}, {high:g}]", one.plan, interval=(low, high))
            for one, low, high in product(found, LOWS, HIGHS)
        ])  # fmt: skip
    return {"choice": found[0].choice, "tuning": study.network.counts - begun, **judged(study, found[0])}


def judged(study: Guided, sampler: rivals.Sampler) -> dict[str, Any]:
    """The squared errors of samples to converged ones from the same noise, with those of converged samples to 0, and
    the network's calls for a sample.
    """
    ends, begun = kept(study, JUDGED, COUNT), study.network.counts
    errors = squares(study.follow(sampler, *study.latents(JUDGED, COUNT)), ends)
    calls, power = (study.network.counts - begun) / COUNT, float(squares(0 * ends, ends).mean())
    return {"calls": calls, "power": power, "squares": [float(f"{v:.5g}") for v in errors]}


def run(args: argparse.Namespace) -> None:
    """Measure what is asked for."""
    cells = Cells(args.docs / page.ROWS)
    with anisoflight.serve(data=args.data) as client:
        for network, scale in product(args.networks, page.SCALES):
            study = None
            for nfe, method in product(page.NFE, page.METHODS):
                key = {"network": network, "scale": scale, "nfe": nfe, "method": method}
                if key in cells:
                    continue
                study, began = study or study_of(client, network, scale), time.monotonic()
                work = {
                    page.LEARNED: partial(few, study, nfe, True), page.ONE: partial(few, study, nfe, False),
                    page.PLAIN: partial(rival, study, nfe, False), page.WITHIN: partial(rival, study, nfe, True),
                }  # fmt: skip
                found = cells.measured(key, work[method])
                error = f"{np.mean(found['squares']) / found['power']:.4f} ({time.monotonic() - began:.0f} s)"
                print(f"{network}, scale {scale:g}, {nfe}, {method}: {error}, {found['choice']}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: 0, or 130 if interrupted."""
    parser = parser_of("guidance", __doc__)
    parser.add_argument("--networks", type=int, nargs="+", default=list(page.NETWORKS), help="seeds, default 11 12 13")
    args = parser.parse_args(arguments)
    warnings.simplefilter("ignore", anisoflight.AnisoflightWarning)
    return command(args, run, page.write)


if __name__ == "__main__":
    sys.exit(main())
