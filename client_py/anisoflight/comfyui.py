"""A node of ComfyUI that samples by a plan, for the nodes SamplerCustom and SamplerCustomAdvanced.

In ComfyUI's environment ``pip install anisoflight``; then a folder ``custom_nodes/anisoflight`` with this
``__init__.py``::

    from anisoflight.comfyui import NODE_CLASS_MAPPINGS, NODE_DISPLAY_NAME_MAPPINGS

The node "Plan (anisoflight)" takes a model and the path of a plan, or its repository on the Hugging Face Hub, and
gives SAMPLER and SIGMAS. Models that predict ε, v or a flow are told apart by ComfyUI. SIGMAS may be split by steps, as
for img2img: the steps that are left have the plan's coefficients for a start there.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from .errors import BadRequestError
from .plans.plan import Plan

__all__ = ["NODE_CLASS_MAPPINGS", "NODE_DISPLAY_NAME_MAPPINGS", "PlanNode", "sample_plan"]


class PlanNode:
    CATEGORY = "sampling/custom_sampling/samplers"
    RETURN_TYPES = ("SAMPLER", "SIGMAS")
    FUNCTION = "load"

    @classmethod
    def INPUT_TYPES(cls) -> dict[str, Any]:  # noqa: N802, ComfyUI's
        return {"required": {"model": ("MODEL",), "plan": ("STRING", {"default": "plan.json"})}}

    def load(self, model: Any, plan: str) -> tuple[Any, Any]:
        import comfy.model_sampling  # pyright: ignore[reportMissingImports]
        import comfy.samplers  # pyright: ignore[reportMissingImports]
        import torch  # pyright: ignore[reportMissingImports]

        found = Plan.load(plan) if Path(plan).exists() else Plan.from_pretrained(plan)
        if found.guides:
            raise BadRequestError("plan must not set the guidance of its evaluations: search without learn_guidance")
        sampling = model.get_model_object("model_sampling")
        flow = isinstance(sampling, comfy.model_sampling.CONST)
        options = {"plan": found, "flow": flow, "highest": float(sampling.sigma_max)}
        levels = [_time(sigma, flow) for sigma in _levels(found)]
        return comfy.samplers.KSAMPLER(sample_plan, options), torch.tensor([*levels, 0.0])


NODE_CLASS_MAPPINGS = {"AnisoflightPlan": PlanNode}
NODE_DISPLAY_NAME_MAPPINGS = {"AnisoflightPlan": "Plan (anisoflight)"}


def sample_plan(
    model: Any, x: Any, sigmas: Any, extra_args: Any = None, callback: Any = None, disable: Any = None, *,
    plan: Plan, flow: bool = False, highest: float = math.inf,
) -> Any:  # fmt: skip
    """A sampler function of ComfyUI: `sigmas` are the plan's, or its last ones. Of flow networks they are times, σ/(1 +
    σ), and x is (1 − time) x_0 + time ε. `highest` is the model's highest level, from which ComfyUI scales noise by
    √(1 + σ²).
    """
    levels, given = _levels(plan), [float(sigma) for sigma in sigmas[:-1]]
    skipped = len(levels) - len(given)
    wanted = [_time(sigma, flow) for sigma in levels[max(0, skipped) :]]
    near = all(math.isclose(*pair, rel_tol=1e-4) for pair in zip(wanted, given, strict=False))
    if not near or not 0 < len(given) <= len(levels):
        raise BadRequestError(f"sigmas must be those of the plan, or its last ones, {wanted}, got {given}")
    if skipped:
        loop = plan.tail(skipped).stages(x, x)
        loop.x = (x / (1 - given[0]) if flow else x).to(loop.x)
    elif flow:
        loop = plan.stages(x / given[0])
    else:
        loop = plan.stages(x / (math.hypot(1, given[0]) if given[0] > (1 - 1e-5) * highest else given[0]))
    done = 0
    for stage in loop:
        time = _time(stage.sigma, flow)
        state = (loop.x * (1 - time) if flow else loop.x).to(x.dtype)
        denoised = model(state, x.new_full((len(x),), time), **(extra_args or {}))
        if callback is not None:
            callback({"x": state, "i": done, "sigma": time, "sigma_hat": time, "denoised": denoised})
        loop.step(denoised)
        done += stage.step >= 0
    return loop.x.to(x.dtype)


def _levels(plan: Plan) -> list[float]:
    """The noise level at which each step begins."""
    stages = plan.evaluations
    return [stage.sigma for i, stage in enumerate(stages) if i == 0 or stages[i - 1].step >= 0]


def _time(sigma: float, flow: bool) -> float:
    return sigma / (1 + sigma) if flow else sigma
