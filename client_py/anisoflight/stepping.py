"""Plans stepped outside the server: `Stepper`, for sampling loops of your own.

    client.plan("fast", solver="ab", steps=9).save("fast.json")

    stepper = Stepper(Plan.load("fast.json"))
    x = stepper.start(torch.randn(shape))
    for stage in stepper.stages:
        x = stepper.step(model(x, stage.sigma), x)

The server makes the plan, with any of its solvers; stepping asks it for nothing. Torch is not needed: images
[B, C, H, W] are torch tensors or numpy arrays, on any device. `anisoflight.diffusers` has a scheduler made of it.

A plan of several classes takes a label for each image: `stepper.start(noise, labels)`.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .plan import Stage
from .subspaces import like

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from .plan import Plan

Array = np.ndarray[Any, Any]

Prediction = Literal["sample", "epsilon", "flow"]


class Stepper:
    """A plan and the state of a loop over it: any solver on a learned schedule, isotropic or anisotropic.

    The prediction says what the model returns of images x = x_0 + Σ_j √g_j P_j ε: "sample" the denoised x_0, "epsilon"
    the noise ε, "flow" its negative. With more than one subspace the model should be told all √g_j (`Stage.sigmas`).

    >>> stepper = Stepper(client.plan("edm", model="digits", solver="euler", steps=3))
    >>> x = stepper.start(np.ones((1, 1, 8, 8)))
    >>> for stage in stepper.stages:  # a model that finds no image in any noise
    ...     x = stepper.step(np.zeros_like(x), x)
    >>> bool(abs(x).max() < 1e-3)
    True
    """

    def __init__(self, plan: Plan, prediction: Prediction = "sample") -> None:
        if prediction not in ("sample", "epsilon", "flow"):
            raise ValueError(f"prediction must be sample, epsilon or flow, got {prediction!r}")
        self.plan = plan
        self.prediction: Prediction = prediction
        self.denoised: Any = None
        """The denoised images of the last evaluation."""
        self.taken = plan.nfe
        """How many evaluations are done."""
        self._parts: list[_Part] = [] if plan.labels else [_Part(plan, prediction)]
        self._order: list[int] = []  # of the images in those of several parts

    def set_labels(self, labels: npt.ArrayLike) -> None:
        """The classes of the images, one for each. A plan of several classes needs them before it begins."""
        classes = np.asarray(getattr(labels, "tolist", lambda: labels)()).reshape(-1)
        distinct = np.unique(classes).tolist()
        plans = [self.plan.for_label(label) for label in distinct]
        if all(plan is self.plan for plan in plans):  # which is one for all classes
            return
        self.taken = self.plan.nfe
        rows = [None] if len(plans) == 1 else [np.flatnonzero(classes == label).tolist() for label in distinct]
        self._parts = [_Part(plan, self.prediction, own) for plan, own in zip(plans, rows, strict=True)]
        self._order = np.argsort(np.argsort(classes, kind="stable")).tolist()

    @property
    def stages(self) -> Sequence[Stage]:
        """The evaluations of the model, in order; [B] images of several classes have other levels each."""
        plans = [part.plan for part in self._divided]
        if all(plan.file["stages"] is plans[0].file["stages"] for plan in plans):  # they share a row
            return plans[0].stages
        sizes = [len(part.rows or ()) for part in self._parts]
        together = zip(*(plan.stages for plan in plans), strict=True)
        return [
            Stage(
                np.repeat([stage.t for stage in stages], sizes)[self._order],
                np.repeat([stage.sigmas for stage in stages], sizes, axis=0)[self._order],
                stages[0].step,
            )
            for stages in together
        ]

    def reset(self) -> None:
        """Begin again."""
        self.denoised, self.taken = None, 0
        for part in self._divided:
            part.history = []

    def start(self, noise: Any, labels: npt.ArrayLike | None = None) -> Any:
        """Begin again with unit normal noise [B, C, H, W]; returns the images Σ_j init_j P_j noise, or draws of the law
        that the plan starts from. labels are those of `set_labels`.
        """
        if labels is not None:
            self.set_labels(labels)
        self.reset()
        return self._joined(noise, lambda part: part.start(part.select(noise)))

    @property
    def starts(self) -> list[float]:
        """[J] standard deviations at the start, with the noise that a first stage with churn adds."""
        found = [part.starts for part in self._divided]
        if any(starts != found[0] for starts in found):
            raise ValueError("the classes start at different noise levels: begin with start(noise)")
        return found[0]

    @property
    def ahead(self) -> Stage | None:
        """The stage that `step` takes next; None when all are done."""
        return self.stages[self.taken] if self.taken < self.plan.nfe else None

    def step(self, output: Any, x: Any, normal: Callable[[Any], Any] | None = None) -> Any:
        """The images that the next evaluation takes, or the samples, from the model's output at x [B, C, H, W].

        normal draws the noise of a plan with churn: unit normal values of an array's shape.
        """
        parts, number = self._divided, self.taken
        if number == self.plan.nfe:
            raise ValueError("all evaluations of the plan are done; call start to begin again")
        following = self._joined(x, lambda part: part.step(number, part.select(output), part.select(x)))
        self.denoised = self._joined(x, lambda part: part.denoised)
        self.taken += 1
        if self.taken < self.plan.nfe and parts[0].plan.stages[self.taken].noise:
            noise = (normal or _normal)(following)
            following = following + self._joined(x, lambda part: part.churn(self.taken, part.select(noise)))
        return following

    @property
    def _divided(self) -> list[_Part]:
        """The images by class."""
        if not self._parts:
            raise ValueError(
                f"labels must be given, one for each image: the plan has the classes {self.plan.labels}; "
                "set_labels takes them"
            )
        return self._parts

    def _joined(self, images: Any, values: Callable[[_Part], Any]) -> Any:
        """Values of every part, in the order of the images."""
        parts = self._divided
        if len(parts) == 1:
            return values(parts[0])
        if len(images) != len(self._order):
            raise ValueError(f"labels must be as many as the {len(images)} images, got {len(self._order)}")
        found = [values(part) for part in parts]
        if hasattr(images, "new_tensor"):
            import torch  # pyright: ignore[reportMissingImports]

            return torch.cat(found)[self._order]
        return np.concatenate(found)[self._order]


class _Part:
    """The images of one class, or all: rows says which of a batch, None for all."""

    def __init__(self, plan: Plan, prediction: Prediction, rows: list[int] | None = None) -> None:
        self.plan, self.prediction, self.rows = plan, prediction, rows
        self.denoised: Any = None
        self.history: list[Any] = []  # as the plan's history: the newest first
        self._subspaces = plan.subspaces

    def select(self, images: Any) -> Any:
        """The images of the part."""
        return images if self.rows is None else images[self.rows]

    @property
    def starts(self) -> list[float]:
        noise = self.plan.stages[0].noise or [0.0] * len(self.plan.init)
        return np.hypot(self.plan.init, noise).tolist()

    def start(self, noise: Any) -> Any:
        """The images to begin with."""
        law = self.plan.law
        if law is None:
            return self._combine(noise, self.starts)
        values = noise.detach().cpu().numpy() if hasattr(noise, "detach") else np.asarray(noise)
        drawn = law.draw(np.moveaxis(values, 1, -1), np.square(self.starts), self.plan.label, self._subspaces)
        return like(np.moveaxis(drawn, -1, 1), noise)

    def churn(self, number: int, noise: Any) -> Any:
        """The noise that is added before an evaluation."""
        return self._combine(noise, self.plan.stages[number].noise)

    def step(self, number: int, output: Any, x: Any) -> Any:
        """The images after an evaluation, Σ_j P_j (α_j x + Σ_i β_ji E_i) in the plan's subspaces or coordinates."""
        stage, coordinates = self.plan.stages[number], self.plan.coordinates
        evaluated, self.denoised = self._evaluation(output, x, stage)
        newest = [evaluated, x] if self.plan.states else [evaluated]
        self.history = [*newest, *self.history][: self.plan.history]
        if coordinates is None:
            return self._combine(x, stage.alpha, stage.beta)
        beta = list(itertools.zip_longest(*stage.beta, fillvalue=0.0))  # by evaluation, the newest first
        return coordinates.combine([x, *self.history[: len(beta)]], [np.array(row) for row in (stage.alpha, *beta)])

    def _evaluation(self, output: Any, x: Any, stage: Stage) -> tuple[Any, Any]:
        """What the plan's solver combines, and the denoised image, from the model's output."""
        if self.prediction == "sample":
            flow_of = self.plan.predicts == "flow"
            return self._combine(output - x, (1 / stage.sigmas).tolist()) if flow_of else output, output
        flow = output if self.prediction == "flow" else -output
        denoised = x + self._combine(flow, stage.sigmas.tolist())
        return flow if self.plan.predicts == "flow" else denoised, denoised

    def _combine(self, x: Any, alpha: Sequence[float], beta: Sequence[Sequence[float]] = ()) -> Any:
        """Σ_j P_j (α_j x + Σ_i β_ji E_i) over the history."""
        parts = [a * x for a in alpha]
        for j, row in enumerate(beta):
            for weight, evaluated in zip(row, self.history, strict=False):
                parts[j] = parts[j] + weight * evaluated
        return self._subspaces.combine(parts)


def _normal(like: Any) -> Any:
    """Unit normal noise of the kind, shape and dtype of images."""
    if hasattr(like, "new_tensor"):
        import torch  # pyright: ignore[reportMissingImports]

        return torch.randn_like(like)
    return np.random.default_rng().standard_normal(like.shape).astype(like.dtype)
