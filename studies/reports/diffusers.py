"""``python -m studies.reports.diffusers``: `anisoflight.torch.few` against all of diffusers' schedulers.

    make report-diffusers                                   # everything; hours on two cores
    python -m studies.reports.diffusers --networks "UNet, ε" --nfe 5     # a part
    python -m studies.reports.diffusers --page              # the page alone, from the rows that are there

Three networks are trained in torch on CIFAR-10 at 16×16 and stay there: diffusers samples them with its schedulers, and
`few` finds plans for them as callables. Networks, plans and what chose diffusers' best are kept under --data, rows in
studies/docs/diffusers-rows.jsonl, so that a command that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import inspect
import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import diffusers
import numpy as np
import torch

import anisoflight
from anisoflight.fid.cells import Cells
from anisoflight.fid.features import for_each
from anisoflight.fid.networks import Loading
from anisoflight.fid.reference import load_reference
from anisoflight.fid.sources import ServerDataset
from anisoflight.moments import Moments, frechet_distance
from anisoflight.plans.plan import Plan
from anisoflight.recipe.recipe import load
from anisoflight.torch import Denoiser, few
from studies.reports import diffuserspage as page
from studies.reports.diffuserspage import CONVERGED, DATA, FEATURES, NFE, PAIRED, STEPS, WIDE, best
from studies.reports.real import CONFIGS, ROOT, convert, references
from studies.reports.torchnetworks import CLASSES, KINDS, Kind, trained

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from anisoflight import Client

Tensor = torch.Tensor

DATASET = "cifar10-16"
COUNT = 512
"""Samples of a block."""
BLOCKS = (300_000, 400_000)
"""Seeds of the blocks that are measured, of which each has a distance."""
TUNING_SEED = 200_000
ROUNDS = (32, 12), (128, 3), (512, 1)
"""Samples of every scheduler that is left, and how many of them are left after each round, for each of the features."""
WIDE_BUDGET = 16_000
CONVERGED_STEPS = 40
ROWS = 64  # evaluated at once
SHIFTS = (0.5, 1.0, 2.0, 3.0)


def schedulers(kind: Kind) -> dict[str, Any]:
    """All of diffusers' schedulers of a network, by name, with every placement of noise levels that each of them has.

    Not those of distilled networks, of video, of inversion and of EDM's networks. x_0 is not clipped.
    """
    common = {name: kind.scheduler.config[name] for name in ("prediction_type",) if name in kind.scheduler.config}
    made: dict[str, Any] = {}
    flow = not common
    for name, solver in (_FLOW_SOLVERS if flow else _SOLVERS).items():
        for word, options in _placements(solver.func if isinstance(solver, functools.partial) else solver, flow):
            made[f"{name}, {word}"] = solver(**(common | options))
    return made


def _offered(made: Any) -> set[str]:
    return set(inspect.signature(made.__init__).parameters)


def _placements(made: Any, flow: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """The placements that a scheduler has; if the range of levels depends on the spacing, with each of them."""
    offered = _offered(made)
    rules = [rule for rule in ("karras_sigmas", "exponential_sigmas", "beta_sigmas", "lu_lambdas")
             if f"use_{rule}" in offered]  # fmt: skip
    if flow:
        shift = "flow_shift" if "flow_shift" in offered else "shift"
        more = {"use_flow_sigmas": True, "prediction_type": "flow_prediction"} if shift == "flow_shift" else {}
        for value in SHIFTS:
            yield f"shift {value:g}", {shift: value, **more}
        for rule in rules if shift == "shift" else ():
            yield rule.split("_", maxsplit=1)[0], {f"use_{rule}": True}
        return
    spacings = ("leading", "linspace", "trailing") if "timestep_spacing" in offered else ("",)
    for spacing in spacings:
        chosen = {"timestep_spacing": spacing} if spacing else {}
        yield spacing or "linspace", chosen
        if made in _BY_SPACING:
            for rule in rules:
                yield f"{spacing}, {rule.split('_', maxsplit=1)[0]}", {**chosen, f"use_{rule}": True}
    if made not in _BY_SPACING:
        for rule in rules:
            yield rule.split("_", maxsplit=1)[0], {f"use_{rule}": True}


_MULTISTEP, _SINGLESTEP = diffusers.DPMSolverMultistepScheduler, diffusers.DPMSolverSinglestepScheduler
_UNIPC, _DEIS = diffusers.UniPCMultistepScheduler, diffusers.DEISMultistepScheduler
_BY_SPACING = (
    diffusers.LMSDiscreteScheduler,
    diffusers.EulerDiscreteScheduler,
    diffusers.HeunDiscreteScheduler,
    diffusers.KDPM2DiscreteScheduler,
)  # whose other levels are between the first and the last of the spacing
_MANY: dict[str, Any] = {
    **{f"DPM-Solver++ {n}M": functools.partial(_MULTISTEP, solver_order=n) for n in (2, 3)},
    **{f"DPM-Solver++ {n}S": functools.partial(_SINGLESTEP, solver_order=n) for n in (2, 3)},
    **{f"UniPC-{n}": functools.partial(_UNIPC, solver_order=n) for n in (2, 3)},
    **{
        f"UniPC-{n}, B₁": functools.partial(_UNIPC, solver_order=n, solver_type="bh1", final_sigmas_type="sigma_min")
        for n in (2, 3)
    },  # B₁ is infinite at σ = 0
    **{f"DEIS-{n}": functools.partial(_DEIS, solver_order=n) for n in (2, 3)},
}
_SOLVERS: dict[str, Any] = {
    "DDIM": functools.partial(diffusers.DDIMScheduler, clip_sample=False),
    "DDPM": functools.partial(diffusers.DDPMScheduler, clip_sample=False),
    "PNDM": functools.partial(diffusers.PNDMScheduler, skip_prk_steps=True),
    **_MANY,
    "DPM-Solver 2M": functools.partial(_MULTISTEP, algorithm_type="dpmsolver", final_sigmas_type="sigma_min"),
    "LMS": diffusers.LMSDiscreteScheduler,
    "Euler": diffusers.EulerDiscreteScheduler,
    "Heun": diffusers.HeunDiscreteScheduler,
    "KDPM2": diffusers.KDPM2DiscreteScheduler,
    "Euler, ancestral": diffusers.EulerAncestralDiscreteScheduler,
}
_FLOW_SOLVERS: dict[str, Any] = {
    "Euler": diffusers.FlowMatchEulerDiscreteScheduler,
    "Heun": diffusers.FlowMatchHeunDiscreteScheduler,
    **_MANY,
}


@dataclass(frozen=True)
class Subject:
    """A trained network, and how it is sampled by either side."""

    kind: Kind
    network: torch.nn.Module
    hash: str

    @property
    def denoiser(self) -> Denoiser:
        cond = {"class_labels": torch.arange(CLASSES)} if self.kind.classes else None
        return Denoiser(self.network, self.kind.scheduler, cond=cond, batch=ROWS)

    def noise(self, seed: int, count: int) -> tuple[Tensor, Tensor | None]:
        """Unit noise, and classes in equal parts if the network has them."""
        drawn = torch.randn(count, 3, 16, 16, generator=torch.Generator().manual_seed(seed))
        return drawn, torch.arange(count) % CLASSES if self.kind.classes else None

    @torch.no_grad()
    def with_scheduler(self, scheduler: Any, nfe: int, seed: int, count: int) -> tuple[Tensor, int]:
        """Samples of diffusers' loop with the most steps that need at most nfe evaluations; and their number."""
        x, labels = self.noise(seed, count)
        timesteps = _timesteps(scheduler, nfe)
        x = x * getattr(scheduler, "init_noise_sigma", 1.0)
        takes = {"generator": torch.Generator().manual_seed(seed)} if "generator" in inspect.signature(
            scheduler.step).parameters else {}  # fmt: skip
        for t in timesteps:
            scaled = scheduler.scale_model_input(x, t) if hasattr(scheduler, "scale_model_input") else x
            found = [
                self.kind.asked(self.network, part, t.expand(len(part)), None if labels is None else labels[at])
                for at, part in ((slice(i, i + ROWS), scaled[i : i + ROWS]) for i in range(0, count, ROWS))
            ]
            x = scheduler.step(torch.cat(found), t, x, return_dict=False, **takes)[0]
        return x, len(timesteps)

    def with_plan(self, plan: Plan, seed: int, count: int) -> tuple[Tensor, int]:
        """Samples of a plan; and how many evaluations each of them took."""
        noise, labels = self.noise(seed, count)
        denoiser = self.denoiser
        found = plan(denoiser, noise, labels=labels, progress=False)
        return found, denoiser.counts // count


def _timesteps(scheduler: Any, nfe: int) -> Tensor:
    """The times of the most steps that need no more evaluations; each is one."""
    for steps in range(nfe, 0, -1):
        scheduler.set_timesteps(steps)
        if len(scheduler.timesteps) <= nfe:
            return scheduler.timesteps
    raise ValueError(f"no number of steps of {type(scheduler).__name__} needs {nfe} evaluations or fewer")


class Judges:
    """Distances of samples to the training images, in each of the features."""

    def __init__(self, files: Sequence[Path]) -> None:
        kept = [load_reference(file) for file in files]
        self._features = for_each([], kept, Loading())
        self._moments = [one.moments for one in kept]

    def __call__(self, images: Tensor) -> dict[str, float]:
        if not torch.isfinite(images).all():
            return dict.fromkeys(FEATURES, float("inf"))
        pixels = ((images.clamp(-1, 1) + 1) * 127.5).round().byte().permute(0, 2, 3, 1).numpy()
        return {
            name: frechet_distance(Moments.of(features(pixels)), moments)
            for name, features, moments in zip(FEATURES, self._features, self._moments, strict=True)
        }


def chosen(subject: Subject, nfe: int, judges: Judges, cells: Cells) -> dict[str, str]:
    """The best scheduler by each of the features, on samples that are not measured: in rounds of growing size."""
    found = schedulers(subject.kind)
    left = {features: list(found) for features in FEATURES}
    for count, more in ROUNDS:
        distances: dict[str, dict[str, float]] = {}
        for name in dict.fromkeys(itertools.chain(*left.values())):

            def measure(name: str = name, count: int = count) -> dict[str, Any]:
                drawn, evaluations = subject.with_scheduler(found[name], nfe, TUNING_SEED, count)
                return {"evaluations": evaluations, **judges(drawn)}

            key = {"network": subject.hash, "nfe": nfe, "scheduler": name, "count": count, "seed": TUNING_SEED}
            distances[name] = cells.measured(key, measure)
        left = {features: sorted(distances, key=lambda name: distances[name][features])[:more] for features in FEATURES}
    return {features: names[0] for features, names in left.items()}


def searched(
    subject: Subject, nfe: int, name: str, folder: Path, images: Tensor, labels: Tensor, client: Client
) -> Plan:
    """The plan that `few` finds, unless the folder has it."""
    file = folder / "plans" / f"{subject.hash}-{nfe}-{name}" / "plan.json"
    if not file.exists():
        options: dict[str, Any] = {"budget": WIDE_BUDGET} if name == WIDE else {}
        if name == DATA:
            options = {"data": images, "labels": labels if subject.kind.classes else None}
        plan = few(subject.denoiser, nfe, images.shape[1:], client=client, **options)
        file.parent.mkdir(parents=True, exist_ok=True)
        plan.save(file)
    return Plan.load(file)


def measure(args: argparse.Namespace) -> None:
    """Train, search, choose and measure what is not there."""
    rows, tuned = Cells(args.docs / page.ROWS), Cells(args.data / "diffusers-tuning.jsonl")
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(anisoflight.serve(data=args.data))
        source = ServerDataset(client, DATASET)
        pixels = np.concatenate(list(source.read(0, source.count)))
        images = torch.from_numpy(pixels).permute(0, 3, 1, 2).contiguous().float() / 127.5 - 1
        labels = torch.from_numpy(np.asarray(source.labels(), np.int64))
        judges = Judges(references(["--server", client.location], args.data, DATASET, COUNT))
        subjects = [_subject(KINDS[name], args, images, labels) for name in args.networks]
        for late, subject, nfe in itertools.product((False, True), subjects, args.nfe):
            print(f"{subject.kind.name}, {nfe} evaluations", flush=True)

            def plan(name: str, subject: Subject = subject, nfe: int = nfe) -> Plan:
                return searched(subject, nfe, name, args.data, images, labels, client)

            _measure(subject, nfe, judges, rows, tuned, plan, late=late)


def _subject(kind: Kind, args: argparse.Namespace, images: Tensor, labels: Tensor) -> Subject:
    file = args.data / "networks" / (kind.name.split(",")[0].replace(" ", "-") + ".pt")
    network = trained(kind, file, images, labels, args.steps or STEPS[kind.name])
    weights = b"".join(value.numpy().tobytes() for value in network.state_dict().values())
    return Subject(kind, network, hashlib.sha256(weights).hexdigest()[:12])


def _measure(
    subject: Subject, nfe: int, judges: Judges, rows: Cells, tuned: Cells, plan: Callable[[str], Plan], *, late: bool
) -> None:
    """The rows of a network at a number of evaluations; the late ones are those that the page can do without."""
    parameters = sum(one.numel() for one in subject.network.parameters())
    facts = {"network": subject.kind.name, "hash": subject.hash, "parameters": parameters, "count": COUNT}

    def row(sampler: str, nfe: int, draw: Callable[[int], tuple[Tensor, int]], more: Callable[[], Any]) -> None:
        for block in BLOCKS:

            def one(block: int = block) -> dict[str, Any]:
                drawn, evaluations = draw(block)
                return {**facts, "sampler": sampler, "nfe": nfe, "block": block, "evaluations": evaluations,
                        **more(), **judges(drawn)}  # fmt: skip

            key = {"network": subject.hash, "sampler": sampler, "nfe": nfe, "block": block, "count": COUNT}
            print(rows.measured(key, one), flush=True)

    for name in (WIDE,) if late else (PAIRED, DATA):
        found = functools.cache(functools.partial(plan, name))
        row(
            name,
            nfe,
            lambda block, found=found: subject.with_plan(found(), block, COUNT),
            lambda found=found: {"chosen": found().info["summary"], "search": found().info["evaluations"]},
        )
    made = schedulers(subject.kind)
    sampled = functools.cache(lambda name, block: subject.with_scheduler(made[name], nfe, block, COUNT))
    if late:  # the limit of all samplers: many evaluations of an ordinary solver
        name = "UniPC-2, shift 1" if "UniPC-2, shift 1" in made else "UniPC-2, trailing"
        draw = functools.partial(subject.with_scheduler, made[name], CONVERGED_STEPS, count=COUNT)
        row(CONVERGED, CONVERGED_STEPS, draw, lambda: {"chosen": name})
        return
    choice = functools.cache(lambda: chosen(subject, nfe, judges, tuned))
    for features in FEATURES:
        row(
            best(features),
            nfe,
            lambda block, features=features: sampled(choice()[features], block),
            lambda features=features: {"chosen": choice()[features], "tried": len(made)},
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, search, measure, write."""
    parser = argparse.ArgumentParser(prog="python -m studies.reports.diffusers", description=__doc__)
    parser.add_argument("--source", type=Path, default=ROOT / "downloads" / "cifar10.zip",
                        help="CIFAR-10 with a folder for each class in train/ (default %(default)s)")  # fmt: skip
    parser.add_argument("--data", type=Path, default=ROOT / "runs" / "diffusers", help="data folder")
    parser.add_argument("--docs", type=Path, default=page.DOCS, help="of the page and its rows")
    parser.add_argument("--networks", nargs="+", choices=KINDS, default=list(KINDS), help="default all")
    parser.add_argument("--nfe", type=int, nargs="+", default=list(NFE), help="default %(default)s")
    parser.add_argument("--steps", type=int, help="of training (default by network)")
    parser.add_argument("--page", action="store_true", help="write the page alone")
    args = parser.parse_args(arguments)
    if not args.page:
        torch.set_num_threads(1)
        convert(load([str(CONFIGS / "isotropic.yaml")])[0], args.data, args.source)
        measure(args)
    print(page.write(args.docs))


if __name__ == "__main__":
    main()
