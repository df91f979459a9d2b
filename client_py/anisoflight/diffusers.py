"""Schedules for sampling loops in the style of diffusers: `Scheduler` stands where such a loop has its scheduler.

    client.plan("fast", solver="ab", steps=9).save("fast.json")

    scheduler = Scheduler.load("fast.json")
    scheduler.set_timesteps()
    x = torch.randn(shape) * scheduler.init_noise_sigma
    for t in scheduler.timesteps:
        denoised = model(scheduler.scale_model_input(x, t), scheduler.sigma(t))
        x = scheduler.step(denoised, t, x).prev_sample

The server makes the plan, with any of its solvers; stepping asks it for nothing. Neither torch nor diffusers is needed:
images [B, C, H, W] are torch tensors or numpy arrays, on any device.

It is for loops of your own with denoisers of EDM's kind, which take σ. The pipelines of diffusers, its `config` and
`save_pretrained`, and networks that take DDPM's timesteps are not supported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from .plan import Plan, Stage

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

Array = np.ndarray[Any, Any]
Prediction = Literal["sample", "epsilon", "flow"]


@dataclass(frozen=True)
class SchedulerOutput:
    """The images that the next evaluation takes, or the samples, and the model's denoised images."""

    prev_sample: Any
    pred_original_sample: Any


class Scheduler:
    """A plan as a scheduler: any solver on a learned schedule, isotropic or anisotropic.

    The prediction_type says what the model returns of images x = x_0 + Σ_j √g_j P_j ε: "sample" the denoised x_0,
    "epsilon" the noise ε, "flow" its negative. With more than one subspace the model should be told all √g_j
    (`sigmas_by_subspace`).
    """

    def __init__(self, plan: Plan, *, prediction_type: Prediction = "sample") -> None:
        if prediction_type not in ("sample", "epsilon", "flow"):
            raise ValueError(f"prediction_type must be sample, epsilon or flow, got {prediction_type!r}")
        self.plan = plan
        self.prediction_type: Prediction = prediction_type
        self.timesteps: Any = np.zeros(0)
        self.num_inference_steps: int | None = None
        self._subspaces = plan.subspaces
        self._next = plan.nfe
        self._history: list[Any] = []  # evaluations, the newest first

    @classmethod
    def load(cls, path: str | PathLike[str], **options: Any) -> Self:
        """A scheduler of a plan that `Plan.save` wrote."""
        return cls(Plan.load(path), **options)

    @property
    def order(self) -> int:
        """Evaluations of the model per step, rounded up."""
        return -(-self.plan.nfe // self.plan.steps)

    @property
    def init_noise_sigma(self) -> float:
        """What unit noise is multiplied by at the start, where that is the same in every subspace; else see `start`."""
        scales = self._starts()
        if not np.allclose(scales, scales[0], rtol=1e-12, atol=0):
            raise ValueError("the subspaces start at noise levels of their own: begin with start(noise)")
        return scales[0]

    def start(self, noise: Any) -> Any:
        """The images [B, C, H, W] to begin with, of unit normal noise: Σ_j init_j P_j noise."""
        return self._combine(noise, self._starts())

    @property
    def sigmas(self) -> Array:
        """The noise levels of the evaluations, each the geometric mean over the subspaces, and a 0 for the samples."""
        return np.array([_mean(stage.sigmas) for stage in self.plan.stages] + [0.0])

    def sigma(self, t: Any) -> float:
        """The geometric mean over the subspaces of the noise levels of the evaluation at time t."""
        return _mean(self.sigmas_by_subspace(t))

    def sigmas_by_subspace(self, t: Any) -> Array:
        """√g_j of every subspace, [J], at the evaluation whose time is nearest to t, the next first."""
        ahead = self.plan.stages[self._next :] + self.plan.stages[: self._next]
        return min(ahead, key=lambda stage: abs(stage.t - float(t))).sigmas

    def set_timesteps(self, num_inference_steps: int | None = None, device: Any = None) -> None:
        """Begin anew. A number of steps, where one is given, must be the plan's.

        `timesteps` then holds a time for every evaluation of the model, as a tensor where a torch device is given.
        """
        if num_inference_steps not in (None, self.plan.steps):
            raise ValueError(
                f"num_inference_steps must be {self.plan.steps}, which the plan has, got {num_inference_steps}; "
                "make another plan with client.plan"
            )
        self.num_inference_steps = self.plan.steps
        self._next, self._history = 0, []
        self.timesteps = np.array([stage.t for stage in self.plan.stages])
        if device is not None:
            import torch  # pyright: ignore[reportMissingImports]

            self.timesteps = torch.tensor(self.timesteps, dtype=torch.float32, device=device)

    def scale_model_input(self, sample: Any, timestep: Any = None) -> Any:
        """The sample itself: models here take noisy images as they are and do their own scaling."""
        del timestep
        return sample

    def step(
        self, model_output: Any, timestep: Any, sample: Any, return_dict: bool = True, generator: Any = None
    ) -> Any:
        """Go on from sample, [B, C, H, W], with the model's output at it.

        timestep must be the next of `timesteps`. generator, of numpy or torch, draws the noise of a plan with churn.
        Returns a `SchedulerOutput`, or a tuple without return_dict.
        """
        if self._next >= self.plan.nfe:
            raise ValueError("all timesteps are done; call set_timesteps first")
        stage = self.plan.stages[self._next]
        if abs(float(timestep) - stage.t) > 1e-5 * self.plan.stages[0].t:
            raise ValueError(f"timestep must be the next, {stage.t:g}, got {float(timestep):g}")
        evaluated, denoised = self._evaluation(model_output, sample, stage)
        self._history = [evaluated, *self._history[: self.plan.history - 1]]
        following = self._combine(sample, stage.alpha, stage.beta)
        self._next += 1
        if self._next < self.plan.nfe and (scales := self.plan.stages[self._next].noise):
            following = following + self._combine(_normal(following, generator), scales)
        return SchedulerOutput(following, denoised) if return_dict else (following, denoised)

    def _starts(self) -> list[float]:
        """The standard deviations at the start, with the noise that a first stage with churn adds."""
        noise = self.plan.stages[0].noise or [0.0] * len(self.plan.init)
        return np.hypot(self.plan.init, noise).tolist()

    def _evaluation(self, output: Any, x: Any, stage: Stage) -> tuple[Any, Any]:
        """What the plan's solver combines, and the denoised image, from the model's output."""
        if self.prediction_type == "sample":
            flow_of = self.plan.predicts == "flow"
            return self._combine(output - x, (1 / stage.sigmas).tolist()) if flow_of else output, output
        flow = output if self.prediction_type == "flow" else -output
        denoised = x + self._combine(flow, stage.sigmas.tolist())
        return flow if self.plan.predicts == "flow" else denoised, denoised

    def _combine(self, x: Any, alpha: Sequence[float], beta: Sequence[Sequence[float]] = ()) -> Any:
        """Σ_j P_j (α_j x + Σ_i β_ji E_i) over the history."""
        parts = [a * x for a in alpha]
        for j, row in enumerate(beta):
            for weight, evaluated in zip(row, self._history, strict=False):
                parts[j] = parts[j] + weight * evaluated
        return self._subspaces.combine(parts)


def _mean(sigmas: Array) -> float:
    return float(np.exp(np.log(sigmas).mean()))


def _normal(like: Any, generator: Any) -> Any:
    """Unit normal noise of the kind, shape and dtype of images."""
    if hasattr(like, "new_tensor"):
        import torch  # pyright: ignore[reportMissingImports]

        return torch.randn(like.shape, generator=generator, dtype=like.dtype, device=like.device)
    drawn = (np.random.default_rng() if generator is None else generator).standard_normal(like.shape)
    return drawn.astype(like.dtype)
