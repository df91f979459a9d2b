"""The meaning of a network's output: the section "parametrization" of a config.json, from a name or a scheduler."""

import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import BadRequestError, bad_model
from ..plans.parametrizations import Network, ddpm, denoiser, edm, flow, ve, vp
from .wrapping import of_diffusers

_KINDS = ("edm", "vp", "ve", "epsilon", "v", "sample", "flow")
_NAMES = {"epsilon": "epsilon", "v_prediction": "v", "v": "v", "sample": "x0", "x0": "x0"}
_PREDICTIONS = {"epsilon": "epsilon", "v": "v_prediction", "x0": "sample"}


_UNIT_TIMES = (
    "AuraFlow", "BriaFibo2", "Chroma", "Flux", "Flux2", "Krea2", "LongCatAudioDiT", "LongCatImage", "OvisImage", "PRX",
    "QwenImage", "QwenImage21",
)  # fmt: skip
"""Transformers of diffusers whose pipelines divide the scheduler's time by num_train_timesteps."""
_DATA_TIMES = ("Lumina2", "LuminaNextDiT", "ZImage")
"""Those that get 1 less that time, and return x_0 − ε."""
_NEGATED = ("HiDreamImage", "Ideogram4", "NucleusMoEImage")
"""Those whose answers the pipelines change in other ways, which no section describes."""


def parametrization(scheduler: Any = None, prediction: Any = None) -> dict[str, Any]:
    """The section for a scheduler of diffusers, its config, or a name: what a pipeline's loop has.

    - A scheduler with ᾱ (DDPM, DDIM, DPM-Solver, UniPC, …): its prediction_type, and its table of ᾱ as it is now.
    - A flow-matching scheduler: flow, with times s·num_train_timesteps; to data if it inverts its sigmas.
    - An EDM scheduler, or one with continuous times and v_prediction: edm with its sigma_data.
    - A scheduler of plans: what it was made for.
    - A mapping with the field kind: itself.
    - "edm", "vp", "ve", "flow": the kind with its defaults; "epsilon", "v" and "sample": with the table of DDPM's betas
      (linear from 0.0001 to 0.02, 1000 times).
    - "denoiser": a network that takes x and σ and returns x_0, for `Denoiser` only.

    `prediction` replaces a scheduler's prediction_type, or is such a name or mapping.

    >>> parametrization("flow")
    {'kind': 'flow'}
    """
    if (section := _given(scheduler, prediction)) is not None:
        return section
    if scheduler is None or isinstance(scheduler, str):
        name = scheduler or prediction or "edm"
        if name in ("edm", "vp", "ve", "flow", "denoiser"):
            return {"kind": name}
        return _with_alphas(name, np.cumprod(1 - np.linspace(1e-4, 0.02, 1000)))
    config: Any = getattr(scheduler, "config", scheduler)
    if not isinstance(config, Mapping):
        raise BadRequestError(
            f"scheduler must be a scheduler of diffusers, its config, or a section {{'kind': …}}, got {type(scheduler)}"
        )
    if "plans" in config:
        return dict(config["network"])
    kind = str(config.get("_class_name") or type(scheduler).__name__)
    name = prediction or str(config.get("prediction_type") or "epsilon")
    continuous = config.get("timestep_type") == "continuous"  # EDM's times
    if kind.startswith("EDM") or (continuous and name == "v_prediction"):
        ends = {key: float(config[key]) for key in ("sigma_min", "sigma_max") if config.get(key)}
        if name not in ("epsilon", "v_prediction"):
            raise bad_model(f"prediction must be epsilon or v_prediction for {kind}, got {name!r}")
        section = {"kind": "edm", "sigma_data": float(config.get("sigma_data", 1.0)), **ends}
        return section if name == "epsilon" else {**section, "prediction": name}
    flows = config.get("use_flow_sigmas")
    if "FlowMatch" in kind or kind.endswith("RFScheduler") or (flows and name == "flow_prediction"):
        section = {"kind": "flow", "steps": float(config.get("num_train_timesteps", 1000))}
        return {**section, "to_data": True} if config.get("invert_sigmas") else section
    alphas = getattr(scheduler, "alphas_cumprod", None)
    if alphas is None and "beta_start" in config:
        diffusers: Any = importlib.import_module("diffusers")
        known = {key: value for key, value in config.items() if key != "_class_name"}
        alphas = getattr(diffusers, kind, diffusers.DDPMScheduler).from_config(known).alphas_cumprod
    if alphas is None or continuous or flows:
        raise bad_model(
            f"the scheduler must have betas, or be of flow matching or EDM's, got {kind} for {name}: give one that is, "
            "such as DDPMScheduler(…), or the section, {'kind': …}, or call a plan with a denoiser of your own"
        )
    alphas = np.array(getattr(alphas, "tolist", lambda: alphas)(), np.float64)
    if config.get("rescale_betas_zero_snr"):
        alphas[-1] = 0  # some schedulers have a small number instead
    return _with_alphas(name, alphas)


def _given(scheduler: Any, prediction: Any) -> dict[str, Any] | None:
    """The section that is given itself."""
    for one in (prediction, scheduler):
        if isinstance(one, Mapping) and "kind" in one:
            return dict(one)
    return None


def meaning(module: Any, scheduler: Any = None, prediction: Any = None) -> dict[str, Any]:
    """`parametrization` of a module, in the times that it receives itself: "edm" by default, but an error for a network
    of diffusers.
    """
    name, known = type(module).__name__, of_diffusers(module)
    if scheduler is None and prediction is None and known:
        raise BadRequestError(
            f"prediction must be one of {', '.join(_KINDS)} for a {name} of diffusers, got none; "
            "or give scheduler, the one that it was trained with"
        )
    section = parametrization(scheduler, prediction)
    own = _given(scheduler, prediction) is not None or section.get("to_data") or "steps" not in section
    if not known or section["kind"] != "flow" or own:
        return section
    family = name.removesuffix("Model").removesuffix("2D").removesuffix("Transformer")
    if family in _NEGATED:
        raise bad_model(
            f"a {name} has other times or signs than its scheduler, which no section describes: give a function of x "
            'and σ that returns x_0, Denoiser(f, "denoiser")'
        )
    if family in _DATA_TIMES:
        return {"kind": "flow", "steps": 1.0, "to_data": True}
    scale = 1 / section["steps"] if family in _UNIT_TIMES else getattr(module.config, "timestep_scale", None)
    return {**section, "steps": section["steps"] * scale} if scale else section


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
        return edm(section.get("prediction", "epsilon"), number("sigma_data", 0.5)), low, high
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
