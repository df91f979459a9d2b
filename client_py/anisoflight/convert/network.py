"""From the record of a pickled EDMPrecond to its configuration and its state dict."""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from .errors import BadCheckpointError, UnsupportedNetworkError
from .unpickler import clip
from .values import Module, Tensor

ACCEPTED = "Accepted is EDMPrecond around SongUNet (DDPM++, NCSN++) or DhariwalUNet (ADM)"

_OTHERS = {
    "VPPrecond": "EDM's baseline VP",
    "VEPrecond": "EDM's baseline VE",
    "iDDPMPrecond": "the preconditioning of the iDDPM and ADM baselines, which rounds noise levels to a table",
    "Precond": "the preconditioning of EDM2, around a magnitude-preserving network",
}

# The keyword arguments of EDMPrecond.__init__ in their order, with EDM's defaults; the first two have none.
_PRECOND: dict[str, Any] = {
    "img_resolution": None, "img_channels": None, "label_dim": 0, "use_fp16": False, "sigma_min": 0,
    "sigma_max": math.inf, "sigma_data": 0.5, "model_type": "DhariwalUNet",
}  # fmt: skip

# Arguments of the networks.
_SONG: dict[str, Any] = {
    "augment_dim": 0, "model_channels": 128, "channel_mult": [1, 2, 2, 2], "channel_mult_emb": 4, "num_blocks": 4,
    "attn_resolutions": [16], "dropout": 0.10, "label_dropout": 0, "embedding_type": "positional",
    "channel_mult_noise": 1, "encoder_type": "standard", "decoder_type": "standard", "resample_filter": [1, 1],
}  # fmt: skip
_DHARIWAL: dict[str, Any] = {
    "augment_dim": 0, "model_channels": 192, "channel_mult": [1, 2, 3, 4], "channel_mult_emb": 4, "num_blocks": 3,
    "attn_resolutions": [32, 16, 8], "dropout": 0.10, "label_dropout": 0,
}  # fmt: skip
_NETWORKS = {"SongUNet": _SONG, "DhariwalUNet": _DHARIWAL}

_WRAPPERS = ("module.", "_orig_mod.")  # by DataParallel and torch.compile, before the names of the network's tensors
_DEPTH, _TENSORS = 32, 20_000  # EDM's networks nest 4 modules deep and have 700 tensors
_NAME = re.compile(r"[A-Za-z0-9_]{1,100}")


def choose(found: Any, key: str | None) -> Module | dict[str, Tensor]:
    """The network, or bare state dict, in what a checkpoint holds; key names one of several."""
    if _is_network(found):
        if key is not None:
            raise BadCheckpointError(f"the checkpoint is one network, without keys; leave --key {clip(key)} out")
    elif isinstance(found, dict):
        networks = [name for name, value in found.items() if _is_network(value)]
        chosen = next((name for name in ("ema", "state_dict") if name in networks), "ema") if key is None else key
        if chosen not in networks:
            has = ", ".join(clip(name) for name in networks[:20]) or "none"
            message = f"the checkpoint has no network {clip(chosen)!r}; choose with --key. It has: {has}"
            raise BadCheckpointError(message)
        found = found[chosen]
    else:
        raise BadCheckpointError("the file holds neither a network nor a dict with one")
    if isinstance(found, Module):
        return found
    for name in found:
        _check_name(name, dotted=True)
    while prefix := next((part for part in _WRAPPERS if all(name.startswith(part) for name in found)), ""):
        found = {name.removeprefix(prefix): tensor for name, tensor in found.items()}
    return found


def _is_network(value: Any) -> bool:
    """Whether a value is a network or a state dict."""
    tensors = value.values() if isinstance(value, dict) else ()
    return isinstance(value, Module) or (bool(tensors) and all(isinstance(tensor, Tensor) for tensor in tensors))


def config_of(network: Module) -> dict[str, Any]:
    """The config.json of a network: every keyword argument of EDMPrecond and of the network in it."""
    if network.kind != "EDMPrecond":
        what = _OTHERS.get(network.kind)
        says = f"a {network.kind}, {what}" if what else f"an object of class {network.kind}"
        raise UnsupportedNetworkError(f"the checkpoint holds {says}. {ACCEPTED}")
    args, keywords = network.state.get("_init_args", ()), network.state.get("_init_kwargs", {})
    if not isinstance(args, tuple | list) or not isinstance(keywords, dict) or len(args) > len(_PRECOND):
        raise BadCheckpointError("the checkpoint does not tell the arguments its network was made with")
    arguments: dict[str, Any] = dict(zip(_PRECOND, args, strict=False))
    for name, value in keywords.items():
        if not isinstance(name, str) or name in arguments:
            raise BadCheckpointError(f"the network was made with the argument {clip(name)} twice, or by no name")
        arguments[name] = value
    config = complete(arguments)
    inner = network.part("_modules").get("model")
    if not isinstance(inner, Module) or inner.kind != config["model_type"]:
        raise BadCheckpointError(f"the checkpoint's network is not the {config['model_type']} of its arguments")
    return config


def complete(arguments: Mapping[str, Any], extra: tuple[str, ...] = ()) -> dict[str, Any]:
    """A configuration with EDM's defaults; extra are further names that it may have."""
    kind = arguments.get("model_type", _PRECOND["model_type"])
    if not isinstance(kind, str) or kind not in _NETWORKS:
        raise UnsupportedNetworkError(f"the network is of class {clip(kind)}. {ACCEPTED}")
    defaults = _PRECOND | _NETWORKS[kind]
    for name in arguments:
        if name not in defaults and name not in extra:
            raise UnsupportedNetworkError(f"EDM's {kind} has no argument {clip(name)}, which the network was made with")
    config = {name: _as_json(name, arguments.get(name, default)) for name, default in defaults.items()}
    for name in ("img_resolution", "img_channels"):
        if config[name] is None:
            raise BadCheckpointError(f"the network's configuration lacks {name}")
    return config | {name: arguments[name] for name in extra if name in arguments}


def state_of(network: Module) -> dict[str, Tensor]:
    """The network's state_dict(): parameters and persistent buffers by name, in order."""
    return dict(_walk(network, "", [_TENSORS], _DEPTH))


def _walk(module: Module, prefix: str, budget: list[int], depth: int) -> Iterator[tuple[str, Tensor]]:
    budget[0] -= 1
    if budget[0] < 0 or depth < 0:
        raise BadCheckpointError("the network's modules nest deeper, or are more, than any network's")
    transient = module.state.get("_non_persistent_buffers_set", ())
    if not isinstance(transient, set | frozenset | tuple):
        raise BadCheckpointError(f"_non_persistent_buffers_set of a {module.kind} is no set")
    for part, skipped in (("_parameters", ()), ("_buffers", transient)):
        for name, tensor in module.part(part).items():
            _check_name(name)
            if tensor is None or name in skipped:
                continue
            if not isinstance(tensor, Tensor):
                raise BadCheckpointError(f"{clip(prefix + name)} is not a tensor")
            budget[0] -= 1
            yield prefix + name, tensor
    for name, child in module.part("_modules").items():
        _check_name(name)
        if child is None:
            continue
        if not isinstance(child, Module):
            raise BadCheckpointError(f"{clip(prefix + name)} is not a module")
        yield from _walk(child, f"{prefix}{name}.", budget, depth - 1)


def _check_name(name: Any, dotted: bool = False) -> None:
    parts = name.split(".") if dotted and isinstance(name, str) else [name]
    if not all(isinstance(part, str) and _NAME.fullmatch(part) for part in parts):
        raise BadCheckpointError(f"{clip(name)!r} is no name of a tensor or module")


def _as_json(name: str, value: Any) -> Any:
    """A value of JSON: a number, a text, true or false, or a list of numbers; infinity is "inf"."""
    if isinstance(value, list | tuple) and len(value) <= 64 and all(type(item) in (int, float) for item in value):
        return [_as_json(name, item) for item in value]
    if value is None or type(value) in (bool, str):
        return value
    if type(value) is int and abs(value) < 2**53:
        return value
    if type(value) is float and not math.isnan(value):
        return value if math.isfinite(value) else ("inf" if value > 0 else "-inf")
    raise BadCheckpointError(f"the network's argument {clip(name)} is neither a number, a text nor a list of numbers")
