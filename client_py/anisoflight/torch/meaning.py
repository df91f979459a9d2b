"""What a network's output means: the section "parametrization" of a config.json, by name or from a scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]

from ..errors import BadRequestError
from ..networks import DDPM, EDM, VE, Flow

if TYPE_CHECKING:
    from ..networks import Level, Network

_KINDS = ("edm", "vp", "ve", "epsilon", "v", "sample", "flow")
_NAMES = {"epsilon": "epsilon", "v_prediction": "v", "v": "v", "sample": "x0", "x0": "x0"}


def parametrization(scheduler: Any = None, prediction: str | None = None) -> dict[str, Any]:
    """The section of a scheduler of diffusers, of its config, or of a name.

    - A scheduler with ᾱ (DDPM, DDIM, DPM-Solver, UniPC, …): its prediction_type, and its table of ᾱ.
    - A flow-matching scheduler: flow, with times s·num_train_timesteps.
    - An EDM scheduler: edm with its sigma_data.
    - A mapping with the field kind: a section as it is.
    - "edm", "vp", "ve", "flow": the kind with its defaults; "epsilon", "v" and "sample" need a table, which the betas
      of DDPM (linear from 0.0001 to 0.02, 1000 times) are where none is given.

    `prediction` stands for a scheduler's prediction_type.

    >>> parametrization("flow")
    {'kind': 'flow'}
    """
    if isinstance(scheduler, Mapping) and "kind" in scheduler:
        return dict(scheduler)
    if scheduler is None or isinstance(scheduler, str):
        return _named(scheduler or prediction or "edm")
    config = getattr(scheduler, "config", scheduler)
    kind = str(config.get("_class_name") or type(scheduler).__name__)
    if "FlowMatch" in kind:
        return {"kind": "flow", "steps": float(config.get("num_train_timesteps", 1000))}
    if kind.startswith("EDM"):
        if config.get("prediction_type", "epsilon") != "epsilon":
            raise BadRequestError(
                "an EDM scheduler with v_prediction turns c_out round, which is not known", "BAD_MODEL"
            )
        return {
            "kind": "edm",
            "sigma_data": float(config["sigma_data"]),
            "sigma_min": float(config["sigma_min"]),
            "sigma_max": float(config["sigma_max"]),
        }
    alphas = getattr(scheduler, "alphas_cumprod", None)
    if alphas is None:
        raise BadRequestError(
            f"scheduler must have betas, or be a flow-matching or EDM scheduler, got {kind}; "
            'give the section itself, {"kind": …}',
            "BAD_MODEL",
        )
    name = prediction or str(config.get("prediction_type", "epsilon"))
    if name == "flow_prediction":
        return {"kind": "flow", "steps": float(config.get("num_train_timesteps", 1000))}
    return {"kind": _kind(name), "alphas_cumprod": _table(alphas)}


def meaning(module: Any, scheduler: Any = None, prediction: str | None = None) -> dict[str, Any]:
    """`parametrization` of what is known of a module: "edm" by default, but not for a network of diffusers, few of
    which are EDM's.
    """
    if scheduler is None and prediction is None and type(module).__module__.startswith("diffusers."):
        raise BadRequestError(
            f"prediction must be one of {', '.join(_KINDS)} for a {type(module).__name__} of diffusers, got none; "
            "or give scheduler, the one that it was trained with",
            "BAD_REQUEST",
        )
    return parametrization(scheduler, prediction)


def _kind(name: str) -> str:
    if name not in _NAMES:
        raise BadRequestError(f"prediction must be one of {', '.join(_NAMES)}, got {name!r}", "BAD_MODEL")
    return _NAMES[name]


def _table(alphas: Any) -> list[float]:
    return np.asarray(getattr(alphas, "numpy", lambda: alphas)(), np.float64).tolist()


def _named(name: str) -> dict[str, Any]:
    if name in ("edm", "vp", "ve", "flow"):
        return {"kind": name}
    return {"kind": _kind(name), "alphas_cumprod": np.cumprod(1 - np.linspace(1e-4, 0.02, 1000)).tolist()}


class _VP(DDPM):
    """EDM's VP baseline: ε of x/√(1 + σ²), at a continuous time of betas that grow from beta_min by beta_d."""

    def __init__(self, section: Mapping[str, Any]) -> None:
        self.prediction = "epsilon"
        self._beta, self._least = float(section.get("beta_d") or 19.9), float(section.get("beta_min") or 0.1)
        self._steps = float(section.get("steps") or 1000)

    def time(self, sigma: Level) -> Any:
        log = (sigma**2).log1p() if isinstance(sigma, torch.Tensor) else np.log1p(sigma**2).item()
        root = (self._least**2 + 2 * self._beta * log) ** 0.5
        return (self._steps - 1) * 2 * log / (root + self._least)  # (root − least)/beta, without a difference

    def level(self, t: float) -> float:
        """The noise level at a time t of [0, 1]."""
        return np.sqrt(np.expm1(0.5 * self._beta * t * t + self._least * t)).item()


class _Timed(DDPM):
    """A network whose ᾱ belong to times of its own."""

    def __init__(self, alphas_cumprod: Any, prediction: str, timesteps: Any) -> None:
        super().__init__(alphas_cumprod, prediction)
        if timesteps is not None:
            kept = np.asarray(alphas_cumprod, np.float64) > 0
            self._times = np.asarray(timesteps, np.float64)[kept]

    def time(self, sigma: Level) -> Any:
        if not isinstance(sigma, torch.Tensor):
            return super().time(sigma)
        knots, times = (torch.as_tensor(values).to(sigma.device) for values in (self._logs, self._times))
        exact = sigma.log().double().clamp(knots[0], knots[-1])
        at = (torch.searchsorted(knots, exact.detach(), right=True) - 1).clamp(0, len(knots) - 2)
        slope = (times[at + 1] - times[at]) / (knots[at + 1] - knots[at])
        return (times[at] + slope * (exact - knots[at])).to(sigma.dtype)


class _FlowToData(Flow):
    """A flow-matching network whose times go from noise, 0, to data, N, and which returns x_0 − ε."""

    def time(self, sigma: Level) -> Any:
        return self.times / (1 + sigma)

    def denoised(self, output: Any, held: Any, sigma: Level) -> Any:
        return held + sigma / (1 + sigma) * output


def network_of(section: Mapping[str, Any]) -> tuple[Network, float, float]:
    """How a network of this section is asked, and a range of noise levels that it knows."""
    kind = section["kind"]
    lo, hi = float(section.get("sigma_min") or 0.02), float(section.get("sigma_max") or 20)
    asked: Network
    if kind == "vp":
        asked = _VP(section)
        least = float(section.get("epsilon_t") or 1e-5)
        lo, hi = max(lo, asked.level(least)), min(hi, asked.level(1))
    elif kind == "edm":
        asked = EDM("epsilon", float(section.get("sigma_data") or 0.5))
    elif kind == "ve":
        asked = VE()
    elif kind == "flow":
        steps = section.get("steps") or 1
        asked = _FlowToData(steps) if section.get("to_data") else Flow(steps)  # pyright: ignore[reportArgumentType]
    elif kind in ("epsilon", "v", "x0"):
        prediction = {"epsilon": "epsilon", "v": "v_prediction", "x0": "sample"}[kind]
        asked = _Timed(section["alphas_cumprod"], prediction, section.get("timesteps"))
        alphas = [a for a in section["alphas_cumprod"] if a > 0]
        ends = [float(np.sqrt((1 - a) / a)) for a in (alphas[0], alphas[-1])]
        lo, hi = max(lo, ends[0]), min(hi, ends[1])
    else:
        raise BadRequestError(f"kind must be one of edm, vp, ve, epsilon, v, x0, flow, got {kind!r}", "BAD_MODEL")
    return asked, lo, hi
