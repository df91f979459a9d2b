"""Plans: samplers as numbers, made by the server and followed anywhere, without a server.

    client.plan("fast", solver="unipc", nfe=9).save("fast.json")

    plan = Plan.load("fast.json")
    samples = plan(denoiser, torch.randn(shape))          # denoiser(x, sigma) is x_0 of x = x_0 + σε, sigma [B]
    changed = plan.tail(strength=0.6)(denoiser, noise, images)
    pipe.scheduler = plan.scheduler(pipe)                 # a pipeline of diffusers

    loop = plan.stages(noise)                             # a loop of your own
    for stage in loop:
        loop.step(denoiser(loop.x, loop.sigma))

Noise and images are torch tensors or numpy arrays [B, C, …]. Everything is computed on their device, in their dtype or
float32 if that is wider.
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import Any, Self

import numpy as np

from ..errors import BadRequestError, bad_schedule, bad_tensor
from ..files import path_of
from ..start import Start
from ..subspaces import Coordinates, Subspaces
from . import hub
from .numpy_or_torch import cast, copied, exactly, floating, like, normal, whole, without_gradients, working
from .parametrizations import Network
from .planfile import check, left
from .storage import Vectors, basis_bytes, basis_of, read_with_basis, write_with_basis

Array = np.ndarray[Any, Any]

_HIGH = 70.0  # σ from which on a first evaluation at unit noise changes samples by less than a level of 8 bits


@dataclass(frozen=True)
class Stage:
    """One evaluation of the network, and the combination that follows."""

    t: Any
    """Time of the evaluation on the schedule; [B] for images of classes with different noise levels."""
    sigmas: Array
    """√g_j [J], the noise levels of the evaluation; [B, J] as t."""
    step: int
    """The step, from 0, that this stage ends; −1 for an inner stage."""
    alpha: list[float] = field(default_factory=list)
    """[J], or one per coordinate. Empty, as are beta and noise, for images of several classes."""
    beta: list[list[float]] = field(default_factory=list)
    """[J] as alpha, each over the history, newest first."""
    noise: list[float] = field(default_factory=list)
    """[J] standard deviations of the noise added before the evaluation; empty for none."""
    guidance: float = 1.0
    """The factor r of what guidance adds to this evaluation, whose scale is 1 + r (s − 1)."""

    @property
    def sigma(self) -> Any:
        """The geometric mean of `sigmas`, a number or [B]."""
        mean = np.exp(np.log(self.sigmas).mean(-1))
        return mean if mean.ndim else float(mean)


def _entry(name: str, doc: str) -> Any:
    """A property that returns an entry of the plan's file."""
    return property(lambda plan: plan.file.get(name), doc=doc)


def _with_a_bar(loop: Iterable[Any]) -> Iterable[Any]:
    from ..wire.progress import Progress  # tqdm takes as long to load as all the rest

    return Progress(loop, desc="sample", unit="stage", delay=0.5, leave=False)


@dataclass(frozen=True, eq=False)
class Plan:
    """A sampler as numbers: x = Σ_j init_j P_j ξ, then for every stage, E_0 being its evaluation (docs/wire.md),

        x ← Σ_j P_j (α_j x + Σ_i β_ji E_i)

    The P_j are those of the schedule's subspaces, or project on `coordinates`. file is the reply
    of ``PlanSampler``; vectors are the rows of the basis by label, unless a formula gives them.

    A plan of several classes (`labels`) has these numbers by class: `for_label` returns the plan of one, and samples
    take a label for each image.

    >>> plan = client.plan("edm", sigma_min=0.002, sigma_max=80, solver="euler", steps=2)
    >>> plan.solver, plan.nfe, plan.init, [stage.t for stage in plan.evaluations]
    ('euler', 2, [80.0], [6400.0, 3200.0])
    >>> samples = plan(lambda x, sigma: 0 * x, np.ones((1, 1, 8, 8)))  # a network that finds no image in any noise
    >>> bool(abs(samples).max() < 0.01)
    True
    """

    file: Mapping[str, Any]
    vectors: Vectors | None = None
    law: Start | None = None
    """The start; None for noise alone, else x = μ + (Σ + Σ_j init_j² P_j)^½ ξ."""

    def __post_init__(self) -> None:
        try:
            check(self.file)
            wanted, got = self.file.get("start", {}).get("hash"), self.law and self.law.hash
            if wanted != got:
                raise ValueError(f"its start must be the file of hash {wanted}, got {self.law}")
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            message = f"{error} is missing" if isinstance(error, KeyError) else error
            raise bad_schedule(f"not a plan: {message}") from error

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """A plan that `save` wrote: its file, or a folder with plan.json."""
        file, vectors, law = read_with_basis(path_of(path, "plan.json"))
        if isinstance(file, dict) and ("law" in file or "vectors" in file):
            return cls.whole(file, vectors)
        return cls(file, vectors, law if isinstance(file, dict) and "start" in file else None)

    @classmethod
    def whole(cls, file: Mapping[str, Any], vectors: Vectors | None = None) -> Self:
        """A plan from its JSON with its law and vectors in it, as the server sends it."""
        own = dict(file)
        law, rows = (own.pop(name, None) for name in ("law", "vectors"))
        try:
            start = None if law is None else Start(base64.b64decode(law))
            vectors = vectors if rows is None else basis_of(base64.b64decode(rows))
        except (TypeError, ValueError) as error:
            raise bad_schedule(f"not a plan: law and vectors must be files in base64: {error}") from error
        return cls(own, vectors, start)

    @property
    def wire(self) -> dict[str, Any]:
        """The JSON of the plan with its law and vectors in it, as the server takes it."""
        files = {"law": self.law and self.law.file, "vectors": self.vectors and basis_bytes(self.vectors)}
        return {**self.file, **{name: base64.b64encode(data).decode() for name, data in files.items() if data}}

    @property
    def told(self) -> str:
        """What a search says of the plan: its worth, and its evaluations."""
        summary = (self.info or {}).get("summary")
        return "\n".join(filter(None, [summary, f"few: {self.nfe} evaluations in {self.steps} steps"]))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the plan as JSON and, next to it, basis.safetensors and start.safetensors if it has them."""
        write_with_basis(path_of(path), self.file, self.vectors, self.law)

    def save_pretrained(self, folder: str | PathLike[str]) -> None:
        """Write a folder as the Hugging Face Hub has them: plan.json, its files, and a card, README.md, of what is
        known of the plan, unless there is one. Under which licence the plan is, is left to the user.

        >>> plan = client.plan("edm", sigma_min=0.002, sigma_max=80, solver="ipndm", nfe=5)
        >>> plan.save_pretrained(folder / "ipndm-5")
        >>> Plan.from_pretrained(folder / "ipndm-5").nfe
        5
        """
        hub.write(self, folder)

    @classmethod
    def from_pretrained(cls, name: str | PathLike[str], **options: Any) -> Self:
        """The plan of a folder, or else of a repository of the Hub, such as "you/your-plan", which needs the package
        huggingface_hub. Options are those of its `snapshot_download`: revision, token, local_files_only and others.
        """
        return cls.load(hub.folder_of(name, **options))

    def push_to_hub(
        self, repo: str, *, token: str | None = None, private: bool | None = None, commit_message: str | None = None
    ) -> str:
        """Upload what `save_pretrained` writes to a repository of the Hub, which is made unless it is there; returns
        its address. A card that is there is kept.
        """
        return hub.push(self, repo, token, private, commit_message)

    def __repr__(self) -> str:
        model = "" if self.model is None else f", model={self.model!r}"
        labels = f", labels={self.labels}" if self.labels else ""
        return f"Plan({self.schedule!r}{model}{labels}, solver={self.solver!r}, steps={self.steps}, nfe={self.nfe})"

    schedule = _entry("schedule", "The name of the schedule.")
    label = _entry("label", "The class of the plan; −1 for none or several.")
    solver = _entry("solver", "The name of the solver.")
    steps = _entry("steps", "Steps of the solver.")
    nfe = _entry("nfe", "Evaluations of the network.")
    predicts = _entry("predicts", 'What the solver combines: "flow", about −ε, or "denoised" images.')
    history = _entry("history", "The number of evaluations to keep, including the newest.")
    model = _entry("model", "The model whose noise levels the plan uses; None for another network.")
    states = _entry("states", "Whether the history holds x after each evaluation.")
    provenance = _entry("provenance", "How the schedule was made, or None if unknown.")
    info = _entry("info", "Further facts, such as the report of a search, or None.")

    @property
    def whole_times(self) -> bool:
        """Whether its levels are those of whole times of the network that it was made for, in `provenance`."""
        return (self.provenance or {}).get("times") == "whole"

    @property
    def clip(self) -> float | None:
        """What bounds |x_0| in the denoiser that it was made for, in `provenance`; None for no bound. Loops obey it."""
        return (self.provenance or {}).get("clip")

    @property
    def temperature(self) -> float:
        """The factor of all noise that samples begin with, in `provenance`; `init` has it."""
        return (self.provenance or {}).get("temperature", 1.0)

    @property
    def guides(self) -> bool:
        """Whether it sets the guidance of its evaluations: `Stage.guidance`."""
        return any("guidance" in stage for part in self.file.get("classes", [self.file]) for stage in part["stages"])

    @property
    def labels(self) -> list[int]:
        """The classes of a plan of several; empty for other plans."""
        return sorted(label for part in self.file.get("classes", []) for label in part["labels"])

    def for_label(self, label: int) -> Plan:
        """The plan of one class."""
        for part in self.file.get("classes", []):
            if label in part["labels"]:
                file = {**self.file, **part, "label": label}
                del file["classes"], file["labels"]
                return Plan(file, self.vectors, self.law)
        if not self.labels and (label == self.label or not self._differs):
            return self
        known = self.labels or self.label
        message = f"label must be one of the plan, {known}, got {label}; make a plan for it, or for all labels"
        raise BadRequestError(message)

    @property
    def _differs(self) -> bool:
        """Whether another class would have another plan."""
        by_vectors = self.vectors is not None and -1 not in self.vectors
        by_law = self.law is not None and bool(self.law.labels)
        return self.file["family"]["per_class"] or by_vectors or by_law

    @property
    def _numbers(self) -> Mapping[str, Any]:
        """The numbers of a plan of one class."""
        if self.labels:
            message = f"labels must be given, or a class selected by for_label: the plan has {self.labels}"
            raise BadRequestError(message)
        return self.file

    @property
    def init(self) -> list[float]:
        """The standard deviation of the first state in every subspace."""
        return _floats(self._numbers["init"])

    @property
    def count(self) -> int:
        """The number of subspaces, J."""
        return len(self.file.get("classes", [self.file])[0]["init"])

    @cached_property
    def evaluations(self) -> list[Stage]:
        """The stages, in order."""
        stages = []
        for part in self._numbers["stages"]:
            alpha, *beta, noise = (_floats(row) for row in (part["alpha"], *part["beta"], part.get("noise", [])))
            guidance = float(part.get("guidance", 1))
            stages.append(Stage(float(part["t"]), np.sqrt(part["g"]), part["step"], alpha, beta, noise, guidance))
        return stages

    @cached_property
    def coordinates(self) -> Coordinates | None:
        """The coordinates in which stages combine; None if they combine in the subspaces."""
        found = self._numbers.get("coordinates")
        if found is None:
            return None
        size = found["height"], found["width"], found["channels"]
        return Coordinates(*size, axes=found.get("axes"), bands=found.get("bands", 0))

    @cached_property
    def subspaces(self) -> Subspaces:
        """The projectors P_j of the noise for the plan's class."""
        if self.vectors is None:
            return Subspaces(self.file["family"])
        _ = self._numbers
        rows = self.vectors.get(self.label, self.vectors.get(-1))
        if rows is None:
            raise BadRequestError(f"label must be one of {sorted(self.vectors)}, got {self.label}, for this basis")
        return Subspaces(self.file["family"], rows)

    def __call__(
        self,
        denoiser: Callable[..., Any],
        noise: Any,
        image: Any = None,
        *,
        labels: Any = None,
        generator: Any = None,
        progress: bool = True,
        **conditions: Any,
    ) -> Any:
        """Samples [B, C, …] of a network from unit normal noise, of the noise's kind, dtype and device. No gradients
        are kept.

        denoiser(x, sigma, **conditions) returns x_0 of images x = x_0 + σε with sigma [B]; in several subspaces sigma
        is [B, J], √g_j. x has the noise's dtype, sigma at least float32. `labels`, one per image, select among the
        plan's classes and are passed to the denoiser, to a `Denoiser` as rows. `image` and `generator` are as in
        `stages`. A plan that sets guidance needs a `Denoiser` with guidance.
        """
        if labels is not None:
            conditions["rows" if hasattr(denoiser, "rows") else "labels"] = labels
        noise = floating(noise)
        with without_gradients(noise):
            loop = self.stages(noise, image, labels=labels, generator=generator)
            guided = getattr(denoiser, "guided", None) if self.guides else None
            for _ in _with_a_bar(loop) if progress else loop:
                evaluate = denoiser if guided is None else guided(loop.guidance)
                loop.step(evaluate(cast(loop.x, noise), loop.sigma, **conditions))
        return cast(loop.x, noise)

    def stages(self, noise: Any, image: Any = None, *, labels: Any = None, generator: Any = None) -> Stages:
        """A loop over the evaluations that starts from `begin`.

        generator draws the noise of a plan with churn: a generator of torch or numpy, or a function of an array like x.
        The loop of a plan that sets guidance reads `guidance` before every step.
        """
        return Stages(self, self.begin(noise, image, labels), labels, generator)

    def begin(self, noise: Any, image: Any = None, labels: Any = None) -> Any:
        """The images [B, C, …] of the first evaluation, from unit normal noise: Σ_j init_j P_j noise, or draws of
        `law`. With an image [B, C, …], that image and noise of the first level. A `tail` needs the image.
        """
        arrays = [working(noise)]
        if image is not None:
            arrays.append(cast(floating(image), arrays[0]))
        elif "begin" in self.file:
            raise BadRequestError("image must be given: a tail starts from an image with noise, got noise alone")
        if arrays[-1].shape != arrays[0].shape:
            found, expected = (list(each.shape) for each in arrays[::-1])
            raise bad_tensor(f"image must have the noise's shape {expected}, got {found}")
        return _each(self._parts(labels, arrays[0]), Plan._begun, *arrays)

    def tail(self, step: int | None = None, *, strength: float | None = None) -> Plan:
        """The plan of the steps from `step` on, for images with noise of its first level, from `begin`.

        A strength in (0, 1] keeps ⌊steps · strength⌋ steps, as Stable Diffusion's image-to-image pipelines do; those of
        Flux and SD3 keep ⌈steps · strength⌉: give their `step`, ⌊steps · (1 − strength)⌋. The history starts empty
        there; the plan holds the coefficients for that.

        >>> plan = client.plan("edm", sigma_min=0.002, sigma_max=80, solver="unipc", steps=5)
        >>> plan.tail(strength=0.6).steps, plan.tail(2).evaluations[0].t == plan.evaluations[2].t
        (3, True)
        """
        if (step is None) == (strength is None):
            raise BadRequestError(f"step or strength must be given, and one of them, got {step} and {strength}")
        if strength is not None and not 1 / self.steps <= strength <= 1:
            raise BadRequestError(f"strength must lie in {1 / self.steps:g} … 1 for {self.steps} steps, got {strength}")
        first = step if step is not None else self.steps - int(self.steps * (strength or 0))
        if not 0 <= first < self.steps:
            raise BadRequestError(f"step must lie in 0 … {self.steps - 1}, got {first}")
        parts = [left(part, first) for part in self.file.get("classes", [self.file])]
        file = {**self.file, "classes": parts} if "classes" in self.file else parts[0]
        file.pop("start", None)
        file |= {"steps": self.steps - first, "nfe": len(parts[0]["stages"]), "begin": file.get("begin", 0) + first}
        return replace(self, file=file, law=None)

    def takes_unit_noise(self, network: Network) -> bool:
        """Whether the first evaluation may be one of unit noise, as in pipelines that do not scale their input.

        It may if the plan begins at noise of the first level alone, at σ ≥ 70, and the network's input is x/√(1 + σ²)
        or x/(1 + σ).
        """
        starts = [self.for_label(label) for label in self.labels] or [self]
        firsts = [pair for one in starts for pair in zip(one.init, one.evaluations[0].sigmas.tolist(), strict=True)]
        return self.law is None and all(
            s >= _HIGH and abs(s * network.scale(s) - 1) <= 1 / _HIGH and abs(init / s - 1) < 1e-3 for init, s in firsts
        )

    def scheduler(self, pipe: Any, *others: Plan) -> Any:
        """The plan as a scheduler of diffusers, for the network of a pipeline: `pipe.scheduler = plan.scheduler(pipe)`.

        pipe may also be a scheduler of the network, or its config. With `others`, num_inference_steps selects among the
        plans by their numbers of steps. The scheduler's `nfe` is the number of evaluations that the pipeline will make;
        a warning says if it is more than the plan's. See `anisoflight.diffusers`.
        """
        from ..diffusers import Scheduler

        return Scheduler.of(pipe, [self, *others])

    def divided(self, labels: Any, count: int) -> list[Part]:
        """The plans of the classes of `count` images, each with the rows of its images; None means all rows."""
        if labels is None:
            _ = self._numbers
            return [(None, self)]
        classes = np.array(whole(labels), np.int64)
        if len(classes) != count:
            raise BadRequestError(f"labels must be as many as the {count} images, got {len(classes)}")
        distinct = np.unique(classes).tolist()
        parts: list[Part] = [(np.flatnonzero(classes == label).tolist(), self.for_label(label)) for label in distinct]
        plan = parts[0][1]
        return [(None, plan)] if all(other is plan for _, other in parts) else parts

    @cached_property
    def size(self) -> tuple[Any, ...] | None:
        """[C, H, W] of the images, an axis by name if it may have any size; None for images of any shape."""
        if self.labels:
            return self.for_label(self.labels[0]).size
        if self.coordinates is not None:
            return self.coordinates.shape
        if self.law is not None:
            return self.law.size[2], *self.law.size[:2]
        if self.count > 1:
            return ("C", "H", "W") if self.vectors is None else ("C", *self.subspaces.size)
        return None

    def _parts(self, labels: Any, images: Any) -> list[Part]:
        """`divided`, after a check of the shape of images."""
        size, found = self.size, images.shape[1:]
        if len(found) == 1:  # vectors
            found = *found, 1, 1
        if len(found) in (2, 4) and self.count == 1:  # one axis or three, as two of as many values
            found = found[0], int(np.prod(found[1:-1])), found[-1]
        if size and [n if isinstance(m, int) else m for n, m in itertools.zip_longest(found, size)] != [*size]:
            axes = ", ".join(map(str, size))
            raise bad_tensor(f"noise must have the shape [B, {axes}], got {list(images.shape)}")
        return self.divided(labels, len(images))

    def _begun(self, noise: Any, image: Any = None) -> Any:
        first = self.evaluations[0]
        if image is not None:
            return image + self._mixed(self.temperature * first.sigmas, noise)
        starts = np.hypot(self.init, first.noise or 0.0)
        if self.law is not None:
            return self.law.drawn(noise, np.square(starts), self.label, self.subspaces)
        return self._mixed(starts, noise)

    def _evaluated(self, stage: Stage, x: Any, denoised: Any) -> Any:
        """What the solver combines of an evaluation: the flow or the denoised images."""
        return self._mixed(1 / stage.sigmas, denoised - x) if self.predicts == "flow" else denoised

    def _combined(self, stage: Stage, x: Any, *history: Any) -> Any:
        """Σ_j P_j (α_j x + Σ_i β_ji E_i), in the subspaces or the coordinates of the plan."""
        rows = itertools.zip_longest(*stage.beta, fillvalue=0.0)  # by evaluation, the newest first
        pairs = [(x, stage.alpha), *((e, row) for e, row in zip(history, rows, strict=False) if any(row))]
        if self.coordinates is not None:
            return self.coordinates.combine([e for e, _ in pairs], [np.array(row) for _, row in pairs])
        return self.subspaces.combine([sum(row[j] * e for e, row in pairs) for j in range(self.count)])

    def _mixed(self, weights: Any, image: Any) -> Any:
        """Σ_j w_j P_j x."""
        return self.subspaces.combine([float(weight) * image for weight in weights])


Part = tuple[list[int] | None, Plan]


class Stages:
    """A loop over a plan: iterate, and call `step` with the network's answer at `x` in every round.

    >>> plan = client.plan("edm", sigma_min=0.002, sigma_max=80, solver="unipc", steps=5)
    >>> loop = plan.stages(np.ones((1, 1, 8, 8)))
    >>> for stage in loop:
    ...     _ = loop.step(loop.x / (1 + stage.sigma**2))  # of unit normal data
    """

    def __init__(self, plan: Plan, x: Any, labels: Any = None, generator: Any = None) -> None:
        self.plan, self._x = plan, working(x)
        self.denoised: Any = None
        """The argument of the last `step`."""
        self.taken = 0
        """The number of finished evaluations."""
        self.generator, self._parts, self._asked = generator, plan._parts(labels, self._x), not plan.guides
        self._stages, self._history = stages_of(self._parts), list[Any]()  # the newest first

    @property
    def x(self) -> Any:
        """The images [B, C, …] of the next evaluation, at the end the samples: a copy. Assign to it to change them."""
        return copied(self._x)

    @x.setter
    def x(self, images: Any) -> None:
        self._x = images

    def __len__(self) -> int:
        return self.plan.nfe

    def __iter__(self) -> Iterator[Stage]:
        while (number := self.taken) < len(self):
            yield self.stage
            if self.taken == number:
                raise BadRequestError("step must be called once for every stage, with the denoised images of loop.x")

    @property
    def stage(self) -> Stage:
        """The next evaluation; for images of several classes, with noise levels for each image."""
        if self.taken == len(self):
            raise BadRequestError("all evaluations of the plan are done; begin again with plan.stages(noise)")
        return self._stages[self.taken]

    @property
    def sigma(self) -> Any:
        """σ [B] of the next evaluation, in the kind and dtype of x; [B, J] in several subspaces."""
        levels = self.stage.sigmas if self.plan.count > 1 else np.asarray(self.stage.sigma)[..., None]
        levels = like(np.broadcast_to(levels, (len(self._x), self.plan.count)), self._x)
        return levels if self.plan.count > 1 else levels[:, 0]

    @property
    def guidance(self) -> float:
        """The factor r of what guidance adds to the next evaluation, whose scale is 1 + r (s − 1)."""
        self._asked = True
        return self.stage.guidance

    def step(self, denoised: Any) -> Any:
        """The next `x`, from the denoised images [B, C, …] of this one."""
        number, x, _ = self.taken, self._x, self.stage
        if not self._asked:
            raise BadRequestError(
                "guidance must be that of the plan, which sets it for every evaluation: take a Denoiser with guidance, "
                "or in a loop the scale 1 + loop.guidance * (s - 1) in place of s"
            )
        self._asked = not self.plan.guides
        self.denoised = copied(cast(floating(denoised), x))  # a network may write its next answer there
        if self.denoised.shape != x.shape:
            found, expected = list(self.denoised.shape), list(x.shape)
            raise bad_tensor(f"denoised must have the shape {expected} of x, got {found}")
        if (bound := self.plan.clip) is not None:
            self.denoised = self.denoised.clip(-bound, bound)
        evaluated = self._each(Plan._evaluated, x, self.denoised)
        newest = [evaluated, x] if self.plan.states else [evaluated]
        self._history = [*newest, *self._history][: self.plan.history]
        self._x = self._each(Plan._combined, x, *self._history)
        self.taken = number + 1
        if self.taken < len(self) and self._parts[0][1].evaluations[self.taken].noise:
            noise = normal(self._x, self.generator)
            self._x = self._x + self._each(lambda plan, stage, noise: plan._mixed(stage.noise, noise), noise)
        return self.x

    def _each(self, function: Callable[..., Any], *arrays: Any) -> Any:
        number = self.taken
        return _each(self._parts, lambda plan, *rows: function(plan, plan.evaluations[number], *rows), *arrays)


def stages_of(parts: Sequence[Part]) -> list[Stage]:
    """The evaluations of the plans of a batch's classes."""
    plans = [plan for _, plan in parts]
    if all(plan.file["stages"] is plans[0].file["stages"] for plan in plans):  # they share a row
        return plans[0].evaluations
    order = np.argsort(np.concatenate([rows or [] for rows, _ in parts]))
    sizes = [len(rows or []) for rows, _ in parts]
    return [
        Stage(
            np.repeat([stage.t for stage in alike], sizes)[order],
            np.repeat([stage.sigmas for stage in alike], sizes, axis=0)[order],
            alike[0].step,
            guidance=alike[0].guidance,
        )
        for alike in zip(*(plan.evaluations for plan in plans), strict=True)
    ]


def _each(parts: Sequence[Part], function: Callable[..., Any], *arrays: Any) -> Any:
    """function(plan, *arrays) for the rows of each class, in the order of the images."""
    with exactly(arrays[0]):
        if len(parts) == 1:
            return function(parts[0][1], *arrays)
        out = arrays[0] * 1
        for rows, plan in parts:
            out[rows] = function(plan, *(array[rows] for array in arrays))
        return out


def _floats(values: list[float]) -> list[float]:
    """Numbers as floats: JSON may have 1 for 1.0."""
    return [float(value) for value in values]
