"""The meaning of a network's output: the section "parametrization" of a config.json, from a name or a scheduler."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import BadRequestError, bad_model
from ..networks import Network, ddpm, denoiser, edm, flow, ve, vp

_KINDS = ("edm", "vp", "ve", "epsilon", "v", "sample", "flow")
_NAMES = {"epsilon": "epsilon", "v_prediction": "v", "v": "v", "sample": "x0", "x0": "x0"}
_PREDICTIONS = {"epsilon": "epsilon", "v": "v_prediction", "x0": "sample"}


def parametrization(scheduler: Any = None, prediction: str | None = None) -> dict[str, Any]:
    """The section for a scheduler of diffusers, its config, or a name.

    - A scheduler with ᾱ (DDPM, DDIM, DPM-Solver, UniPC, …): its prediction_type, and its table of ᾱ.
    - A flow-matching scheduler: flow, with times s·num_train_timesteps.
    - An EDM scheduler: edm with its sigma_data.
    - A mapping with the field kind: itself.
    - "edm", "vp", "ve", "flow": the kind with its defaults; "epsilon", "v" and "sample": with the table of DDPM's betas
      (linear from 0.0001 to 0.02, 1000 times).
    - "denoiser": a network that takes x and σ and returns x_0, for `Denoiser` only.

    `prediction` replaces a scheduler's prediction_type.

    >>> parametrization("flow")
    {'kind': 'flow'}
    """
    if isinstance(scheduler, Mapping) and "kind" in scheduler:
        return dict(scheduler)
    if scheduler is None or isinstance(scheduler, str):
        name = scheduler or prediction or "edm"
        if name in ("edm", "vp", "ve", "flow", "denoiser"):
            return {"kind": name}
        return _with_alphas(name, np.cumprod(1 - np.linspace(1e-4, 0.02, 1000)))
    config = getattr(scheduler, "config", scheduler)
    kind = str(config.get("_class_name") or type(scheduler).__name__)
    name = prediction or str(config.get("prediction_type", "epsilon"))
    alphas = getattr(scheduler, "alphas_cumprod", None)
    if kind.startswith("EDM"):
        if config.get("prediction_type", "epsilon") != "epsilon":
            raise bad_model("an EDM scheduler with v_prediction negates c_out, which is not supported")
        return {"kind": "edm", **{key: float(config[key]) for key in ("sigma_data", "sigma_min", "sigma_max")}}
    if "FlowMatch" in kind or (alphas is not None and name == "flow_prediction"):
        return {"kind": "flow", "steps": float(config.get("num_train_timesteps", 1000))}
    if alphas is None:
        message = f"scheduler must have betas, or be a flow-matching or EDM scheduler, got {kind}"
        raise bad_model(message + '; or give the section, {"kind": …}')
    alphas = np.array(getattr(alphas, "tolist", lambda: alphas)(), np.float64)
    if config.get("rescale_betas_zero_snr"):
        alphas[-1] = 0  # some schedulers have a small number instead
    return _with_alphas(name, alphas)


def meaning(module: Any, scheduler: Any = None, prediction: str | None = None) -> dict[str, Any]:
    """`parametrization` of a module: "edm" by default, but an error for a network of diffusers."""
    if scheduler is None and prediction is None and type(module).__module__.startswith("diffusers."):
        raise BadRequestError(
            f"prediction must be one of {', '.join(_KINDS)} for a {type(module).__name__} of diffusers, got none; "
            "or give scheduler, the one that it was trained with"
        )
    return parametrization(scheduler, prediction)


def _with_alphas(name: str, alphas: Any) -> dict[str, Any]:
    if name not in _NAMES:
        raise bad_model(f"prediction must be one of {', '.join(_NAMES)}, got {name!r}")
    return {"kind": _NAMES[name], "alphas_cumprod": np.asarray(alphas, np.float64).tolist()}


def network_of(section: Mapping[str, Any]) -> tuple[Network, float, float]:
    """The network of a section, and a range of noise levels that it knows."""

    def number(name: str, default: float) -> float:
        return float(section.get(name) or default)

    kind, low, high = section["kind"], number("sigma_min", 0.02), number("sigma_max", 20)
    if kind == "edm":
        return edm("epsilon", number("sigma_data", 0.5)), low, high
    if kind == "ve":
        return ve(), low, high
    if kind == "denoiser":
        return denoiser(), low, high
    if kind == "flow":
        return flow(number("steps", 1), bool(section.get("to_data"))), low, high
    if kind == "vp":
        times = number("steps", 1000)
        network = vp(number("beta_d", 19.9), number("beta_min", 0.1), times)
        ends = [number("epsilon_t", 1e-5) * (times - 1), times - 1]
    elif kind in _PREDICTIONS:
        network = ddpm(section["alphas_cumprod"], _PREDICTIONS[kind], section.get("timesteps"))
        ends = [-np.inf, np.inf]  # times beyond the table's are those of its ends
    else:
        raise bad_model(f"kind must be one of edm, vp, ve, epsilon, v, x0, flow, got {kind!r}")
    return network, max(low, network.sigma(ends[0])), min(high, network.sigma(ends[1]))


def range_of(section: Mapping[str, Any]) -> tuple[float, float]:
    """The noise levels of a network of a section; by default EDM's, 0.002 to 80."""
    known = {name: section.get(name) or 0.0 for name in ("sigma_min", "sigma_max")}
    low, high = (0.02, 100.0) if section["kind"] == "ve" else (0.002, 80.0)
    if "alphas_cumprod" in section or section["kind"] == "vp":
        _, low, high = network_of({**section, "sigma_min": 1e-12, "sigma_max": 1e12})
        return max(low, known["sigma_min"]), min(high, known["sigma_max"] or high)
    return known["sigma_min"] or low, known["sigma_max"] or high
