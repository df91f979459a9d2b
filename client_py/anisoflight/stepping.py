"""Plans stepped outside the server: `Stepper`, for sampling loops of your own.

    client.plan("fast", solver="ab", steps=9).save("fast.json")

    stepper = Stepper(Plan.load("fast.json"))
    x = stepper.start(torch.randn(shape))
    for stage in stepper.stages:
        x = stepper.step(model(x, stage.sigma), x)

The server makes the plan, with any of its solvers; stepping asks it for nothing. Torch is not needed: images
[B, C, H, W] are torch tensors or numpy arrays, on any device. `anisoflight.diffusers` has a scheduler made of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .plan import Plan, Stage

Prediction = Literal["sample", "epsilon", "flow"]


class Stepper:
    """A plan and the state of a loop over it: any solver on a learned schedule, isotropic or anisotropic.

    The prediction says what the model returns of images x = x_0 + Σ_j √g_j P_j ε: "sample" the denoised x_0, "epsilon"
    the noise ε, "flow" its negative. With more than one subspace the model should be told all √g_j (`Stage.sigmas`).

    >>> stepper = Stepper(client.plan("edm", solver="euler", steps=3))
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
        self._subspaces = plan.subspaces
        self._next = plan.nfe
        self._history: list[Any] = []  # as the plan's history: the newest first

    @property
    def stages(self) -> list[Stage]:
        """The evaluations of the model, in order."""
        return self.plan.stages

    def reset(self) -> None:
        """Begin anew."""
        self._next, self._history, self.denoised = 0, [], None

    def start(self, noise: Any) -> Any:
        """Begin anew with unit normal noise [B, C, H, W]; returns the images Σ_j init_j P_j noise, or draws of the law
        that the plan starts from.
        """
        self.reset()
        law = self.plan.law
        if law is None:
            return self._combine(noise, self.starts)
        values = noise.detach().cpu().numpy() if hasattr(noise, "detach") else np.asarray(noise)
        drawn = law.draw(np.moveaxis(values, 1, -1), np.square(self.starts), self.plan.label, self._subspaces)
        planes = np.moveaxis(drawn, -1, 1)
        return noise.new_tensor(planes) if hasattr(noise, "new_tensor") else planes.astype(values.dtype)

    @property
    def starts(self) -> list[float]:
        """[J] standard deviations at the start, with the noise that a first stage with churn adds."""
        noise = self.stages[0].noise or [0.0] * len(self.plan.init)
        return np.hypot(self.plan.init, noise).tolist()

    @property
    def ahead(self) -> Stage | None:
        """The stage that `step` takes next; None when all are done."""
        return self.stages[self._next] if self._next < self.plan.nfe else None

    def step(self, output: Any, x: Any, normal: Callable[[Any], Any] | None = None) -> Any:
        """The images that the next evaluation takes, or the samples, from the model's output at x [B, C, H, W].

        normal draws the noise of a plan with churn: unit normal values of an array's shape.
        """
        stage = self.ahead
        if stage is None:
            raise ValueError("all evaluations of the plan are done; call start to begin anew")
        evaluated, self.denoised = self._evaluation(output, x, stage)
        newest = [evaluated, x] if self.plan.states else [evaluated]
        self._history = [*newest, *self._history][: self.plan.history]
        following = self._combined(x, stage)
        self._next += 1
        if self.ahead is not None and self.ahead.noise:
            following = following + self._combine((normal or _normal)(following), self.ahead.noise)
        return following

    def _evaluation(self, output: Any, x: Any, stage: Stage) -> tuple[Any, Any]:
        """What the plan's solver combines, and the denoised image, from the model's output."""
        if self.prediction == "sample":
            flow_of = self.plan.predicts == "flow"
            return self._combine(output - x, (1 / stage.sigmas).tolist()) if flow_of else output, output
        flow = output if self.prediction == "flow" else -output
        denoised = x + self._combine(flow, stage.sigmas.tolist())
        return flow if self.plan.predicts == "flow" else denoised, denoised

    def _combined(self, x: Any, stage: Stage) -> Any:
        """Σ_j P_j (α_j x + Σ_i β_ji E_i) in the plan's subspaces or coordinates."""
        coordinates = self.plan.coordinates
        if coordinates is None:
            return self._combine(x, stage.alpha, stage.beta)
        count = max(len(row) for row in stage.beta)
        beta = np.zeros((count, coordinates.size))
        for f, row in enumerate(stage.beta):
            beta[: len(row), f] = row
        return coordinates.combine([x, *self._history[:count]], [np.array(stage.alpha), *beta])

    def _combine(self, x: Any, alpha: Sequence[float], beta: Sequence[Sequence[float]] = ()) -> Any:
        """Σ_j P_j (α_j x + Σ_i β_ji E_i) over the history."""
        parts = [a * x for a in alpha]
        for j, row in enumerate(beta):
            for weight, evaluated in zip(row, self._history, strict=False):
                parts[j] = parts[j] + weight * evaluated
        return self._subspaces.combine(parts)


def _normal(like: Any) -> Any:
    """Unit normal noise of the kind, shape and dtype of images."""
    if hasattr(like, "new_tensor"):
        import torch  # pyright: ignore[reportMissingImports]

        return torch.randn_like(like)
    return np.random.default_rng().standard_normal(like.shape).astype(like.dtype)
