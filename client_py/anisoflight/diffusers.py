"""Schedules for sampling loops in the style of diffusers: `Scheduler` stands where such a loop has its scheduler.

    scheduler = Scheduler.load("fast.json", solver="ab")
    scheduler.set_timesteps(9)
    x = torch.randn(shape) * scheduler.init_noise_sigma
    for t in scheduler.timesteps:
        denoised = model(scheduler.scale_model_input(x, t), scheduler.sigma(t))
        x = scheduler.step(denoised, t, x).prev_sample

Neither torch nor diffusers is needed: images [B, C, H, W] are torch tensors or numpy arrays, on any device. Nothing
is asked of a server.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path as File
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from .files import read_schedule
from .multistep import adams_bashforth, dpmpp_2m, euler
from .paths import paths_of
from .subspaces import Subspaces

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from .files import Vectors
    from .schedule import Schedule

Array = np.ndarray[Any, Any]
Solver = Literal["euler", "heun", "ab", "dpmpp2m"]
Prediction = Literal["sample", "epsilon", "flow"]


@dataclass(frozen=True)
class SchedulerOutput:
    """What a step gives: the images at the next noise level, and the model's denoised images."""

    prev_sample: Any
    pred_original_sample: Any


class Scheduler:
    """A learned schedule, isotropic or anisotropic, as a scheduler: a solver with each subspace on its own clock.

    file is a schedule file (`Schedule.file`, `read_schedule`) and vectors those of its basis, by label. A schedule that
    differs by class serves one class at a time: give its label. Solvers are

    - "euler"; "heun", its endpoint form, which asks the model twice a step except for the last (`order` is 2);
    - "ab", Adams-Bashforth of third order in U with nodes in t; "dpmpp2m", DPM-Solver++(2M).

    The prediction_type says what the model returns of images x = x_0 + Σ_j √g_j P_j ε: "sample" the denoised x_0,
    "epsilon" the noise ε, "flow" its negative. With more than one subspace the model should be told all √g_j
    (`sigmas_by_subspace`).
    """

    def __init__(
        self,
        file: Mapping[str, Any],
        vectors: Vectors | None = None,
        *,
        solver: Solver = "dpmpp2m",
        prediction_type: Prediction = "sample",
        label: int | None = None,
    ) -> None:
        if solver not in ("euler", "heun", "ab", "dpmpp2m"):
            raise ValueError(f"no solver {solver!r}; there are euler, heun, ab and dpmpp2m")
        if prediction_type not in ("sample", "epsilon", "flow"):
            raise ValueError(f"no prediction type {prediction_type!r}; there are sample, epsilon and flow")
        self.solver: Solver = solver
        self.prediction_type: Prediction = prediction_type
        self._paths = paths_of(file, label)
        own = None if vectors is None else vectors.get(-1 if label is None else label, vectors.get(-1))
        if vectors is not None and own is None:
            raise ValueError(f"the basis differs by class: give one of the labels {sorted(vectors)}")
        self._subspaces = Subspaces(file["family"], own)
        self._nodes: list[float] = []
        self._calls: list[tuple[int, bool]] = []  # of the model: the node, and whether it corrects the step to it
        self._done = 0
        self._history: list[Any] = []  # flows, or denoised images, of the last nodes, the newest first
        self._before: Any = None  # of Heun's corrector: the images at the step's start
        self.timesteps: Any = np.zeros(0)
        self.num_inference_steps: int | None = None

    @classmethod
    def load(cls, path: str | PathLike[str], **options: Any) -> Self:
        """A scheduler of a file that `Schedule.save` or ``anisoflight schedule export`` wrote."""
        return cls(*read_schedule(File(path)), **options)

    @classmethod
    def of(cls, schedule: Schedule, **options: Any) -> Self:
        """A scheduler of a schedule on a server; the server is not needed any more afterwards."""
        return cls(schedule.file, schedule.vectors(), **options)

    @property
    def order(self) -> int:
        """Evaluations of the model per step."""
        return 2 if self.solver == "heun" else 1

    @property
    def init_noise_sigma(self) -> float:
        """What unit noise is multiplied by at the start: √g(T), the same in every subspace."""
        return self._paths[0].u(self._paths[0].t[-1])

    @property
    def sigmas(self) -> Array:
        """The noise levels of the steps, [num_inference_steps + 1], each the geometric mean over the subspaces."""
        return np.array([self.sigma(t) for t in self._nodes])

    def sigma(self, t: Any) -> float:
        """The geometric mean over the subspaces of the noise levels at time t."""
        return float(np.exp(np.mean(np.log(self.sigmas_by_subspace(t)))))

    def sigmas_by_subspace(self, t: Any) -> Array:
        """√g_j(t) of every subspace, [J]."""
        return np.array([path.u(float(t)) for path in self._paths])

    def set_timesteps(self, num_inference_steps: int, device: Any = None) -> None:
        """Take num_inference_steps steps, uniform in the schedule's time; forgets what was begun.

        `timesteps` then holds a time for every evaluation of the model, as a tensor where a torch device is given.
        """
        if num_inference_steps < 1:
            raise ValueError(f"num_inference_steps must be at least 1, not {num_inference_steps}")
        self.num_inference_steps = num_inference_steps
        self._nodes = np.linspace(self._paths[0].t[-1], 0, num_inference_steps + 1).tolist()
        self._calls = [(0, False)]
        for i in range(1, num_inference_steps):
            self._calls += [(i, True), (i, False)] if self.solver == "heun" else [(i, False)]
        self._done, self._history, self._before = 0, [], None
        self.timesteps = np.array([self._nodes[i] for i, _ in self._calls])
        if device is not None:
            import torch  # pyright: ignore[reportMissingImports]

            self.timesteps = torch.tensor(self.timesteps, dtype=torch.float32, device=device)

    def scale_model_input(self, sample: Any, timestep: Any = None) -> Any:
        """The sample itself: models here take noisy images as they are and do their own scaling."""
        del timestep
        return sample

    def step(self, model_output: Any, timestep: Any, sample: Any, return_dict: bool = True) -> Any:
        """Go on from sample, [B, C, H, W], with the model's output at it.

        timestep must be the next of `timesteps`. Returns a `SchedulerOutput`, or a tuple without return_dict.
        """
        if self._done >= len(self._calls):
            raise ValueError("all timesteps are done; call set_timesteps first")
        node, corrects = self._calls[self._done]
        t = self._nodes[node]
        if abs(float(timestep) - t) > 1e-5 * self._nodes[0]:
            raise ValueError(f"timestep {float(timestep):g} is out of turn: the next is {t:g}")
        u = self.sigmas_by_subspace(t)
        flow, denoised = self._both(model_output, sample, u)
        self._done += 1
        if corrects:  # the trapezoidal rule over the step that led here
            change = self.sigmas_by_subspace(self._nodes[node - 1]) - u
            following = self._combine(self._before, 1.0, [(0.5 * change, flow), (0.5 * change, self._history[0])])
        else:
            self._history = [denoised if self.solver == "dpmpp2m" else flow, *self._history[:2]]
            self._before = sample
            following = self._advance(sample, node)
        return SchedulerOutput(following, denoised) if return_dict else (following, denoised)

    def _advance(self, x: Any, i: int) -> Any:
        rule = {"ab": adams_bashforth, "dpmpp2m": dpmpp_2m}.get(self.solver, euler)
        links = [rule(path, self._nodes, i) for path in self._paths]
        weights = np.array([beta for _, beta in links])  # [subspace, evaluation]
        return self._combine(
            x, np.array([alpha for alpha, _ in links]), list(zip(weights.T, self._history, strict=False))
        )

    def _both(self, output: Any, x: Any, u: Array) -> tuple[Any, Any]:
        """The flow Σ_j P_j (D − x)/√g_j and the denoised image D = x + Σ_j √g_j P_j flow, from the model's output."""
        if self.prediction_type == "sample":
            return self._combine(output - x, 1 / u, []), output
        flow = output if self.prediction_type == "flow" else -output
        return flow, self._combine(x, 1.0, [(u, flow)])

    def _combine(self, x: Any, alpha: Array | float, terms: list[tuple[Array, Any]]) -> Any:
        """Σ_j P_j (α_j x + Σ_m β_{mj} E_m), the weights one for each subspace."""
        scale = np.broadcast_to(alpha, len(self._paths))
        parts = []
        for j in range(len(self._paths)):
            part = float(scale[j]) * x
            for beta, term in terms:
                part = part + float(beta[j]) * term
            parts.append(part)
        return self._subspaces.combine(parts)
