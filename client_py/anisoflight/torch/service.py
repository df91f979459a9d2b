"""Networks of PyTorch on a server: sent, compared with torch, and brought back."""

from __future__ import annotations

import json
import secrets
from dataclasses import replace as replaced
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import torch  # pyright: ignore[reportMissingImports]
from safetensors.torch import load

from ..errors import BadRequestError
from ..wire.tensors import to_numpy
from .exporting import Exported, export
from .meaning import meaning, network_of
from .wrapping import evaluating, unwrapped

if TYPE_CHECKING:
    from collections.abc import Iterator

Client = Any
"""An `anisoflight.Client`, whose module imports this one."""

PART = 1 << 16  # bytes of a row
ROW = pa.fixed_shape_tensor(pa.uint8(), [PART])
BATCH = 64 * PART  # bytes of a batch
TOLERANCE = 1e-4  # of what the server computes, relative to torch


def put_network(
    client: Client,
    name: str,
    module: torch.nn.Module | Exported,
    scheduler: Any = None,
    prediction: str | None = None,
    replace: bool = False,
    check: bool = True,
    progress: bool = True,
    **how: Any,
) -> dict[str, Any]:
    """Send a module as the model of that name; see `Client.put_network`."""
    module = unwrapped(module)
    if not isinstance(module, Exported):
        exported = export(module, parametrization=meaning(module, scheduler, prediction), **how)
    elif "parametrization" in module.config:
        exported = module
    else:
        section = meaning(module.wrapped.module.module, scheduler, prediction)
        exported = replaced(module, config={**module.config, "parametrization": section})
    older = replace and check and name in client.models().index
    trial = f"{name[:48]}-{secrets.token_hex(4)}" if older else name  # what is there stays until the new one is checked
    _send(client, trial, exported, name if progress else None, replace and not check)
    try:
        if check:
            _compare(client, trial, name, exported)
        if older:
            client.call("LoadModel", name=name, model=trial)
    except BaseException:
        client.delete_model(trial)
        raise
    return client.describe_model(name)


def _send(client: Client, name: str, exported: Exported, title: str | None, replace: bool) -> None:
    """Upload the files of a network as the model of that name."""
    config, weights = exported.files()
    request = {"op": "PutModel", "name": name, "replace": replace}
    request.update(config_bytes=len(config), weights_bytes=len(weights))
    schema = pa.schema([pa.field("bytes", ROW)])
    rows = -(-(len(config) + len(weights)) // PART)
    client.put_batches(request, schema, _batches(schema, config, memoryview(weights)), rows, title)


def _batches(schema: pa.Schema, config: bytes, weights: memoryview) -> Iterator[pa.RecordBatch]:
    """The two files one after the other, cut into rows; the last is filled up with zeros."""
    for begin in range(0, len(config) + len(weights), BATCH):
        end = begin + BATCH
        piece = config[begin:end] + weights[max(begin - len(config), 0) : max(end - len(config), 0)]
        flat = pa.array(np.frombuffer(piece.ljust(-(-len(piece) // PART) * PART, b"\0"), np.uint8))
        rows = pa.ExtensionArray.from_storage(ROW, pa.FixedSizeListArray.from_arrays(flat, PART))
        yield pa.record_batch([rows], schema=schema)


def _compare(client: Client, trial: str, name: str, exported: Exported) -> None:
    """Raise unless the server computes F and D of the model `trial` as torch does, on random inputs; `name` is what the
    error calls it. Then the model is not kept."""
    ask = exported.wrapped
    kind, low, high = network_of(exported.config.get("parametrization") or {"kind": "edm"})
    levels = np.geomspace(low * 1.01, high * 0.99, 4)
    sigmas = levels[:, None, None, None]
    noise = np.random.default_rng(0).standard_normal((4, ask.channels, ask.height, ask.width))
    x = (noise * np.hypot(1, sigmas)).astype(np.float32)
    labels = np.arange(4, dtype=np.int32) % ask.labels if ask.labels else None
    served = client.denoise(trial, x.transpose(0, 2, 3, 1), levels, labels, layout="HWC", progress=False)
    held = x * kind.scale(sigmas)
    times = torch.tensor([kind.time(level) for level in levels.tolist()], dtype=torch.float32)
    z = torch.from_numpy((held * kind.input_scale(sigmas)).astype(np.float32))
    with evaluating(ask.module), torch.no_grad():
        like = next((p for p in ask.module.parameters() if p.dtype.is_floating_point), z)
        raw = ask.call(z.to(like), times.to(like), None if labels is None else torch.from_numpy(labels).long())
    raw = raw.float().cpu().numpy()
    wanted = {"F": (raw, served.raw), "D": (kind.denoised(raw, held, sigmas), served.denoised)}
    for what, (want, got) in wanted.items():
        want = want.transpose(0, 2, 3, 1).astype(np.float64)
        error = float(np.linalg.norm(got - want) / max(float(np.linalg.norm(want)), 1e-30))
        if not error <= TOLERANCE:
            raise BadRequestError(
                f"the server computes {what} of {name!r} {error:.1e} away from torch, relative; at most {TOLERANCE:g} "
                "is allowed, and the model is removed (a server in tf32 or bfloat16 needs check=False)",
                "BAD_MODEL",
            )


def get_network(client: Client, name: str, module: torch.nn.Module) -> torch.nn.Module:
    """Fill a module with a model's weights; see `Client.get_network`."""
    rows = client.table("Model", {"model": name}, name, "part")
    said = json.loads((rows.schema.metadata or {})[b"request"])
    values = to_numpy(rows["bytes"]).reshape(-1)
    cut, end = said["config_bytes"], said["config_bytes"] + said["weights_bytes"]
    config, tensors = json.loads(values[:cut].tobytes()), load(values[cut:end].tobytes())
    network = unwrapped(module)
    own = network.state_dict()
    found = {key: value for key, value in tensors.items() if key in own}
    lacking = [key for key in own if key not in tensors]
    if lacking:  # the server does not have what a forward pass does not use
        used = _used(network, config, tensors)
        lacking = [key for key in lacking if key in used]
    trained = {node["target"] for node in _nodes(config, "param") if not node.get("frozen")}
    shapes = [
        f"{key} is {list(value.shape)} there, {list(own[key].shape)} here"
        for key, value in found.items()
        if value.shape != own[key].shape
    ]
    for names, what in (
        (lacking, f"of its {len(own)} tensors are not in the model"),
        (sorted(trained - own.keys()), f"of the model's {len(tensors)} tensors are not in it"),
        (shapes, "tensors have another shape"),
    ):
        if names:
            first = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
            raise BadRequestError(
                f"module must be the network of the model {name!r}, but {len(names)} {what}: {first}; "
                "nothing was replaced",
                "BAD_MODEL",
            )
    network.load_state_dict({key: value.to(own[key]) for key, value in found.items()}, strict=False)
    return module


def _nodes(config: dict[str, Any], op: str) -> list[dict[str, Any]]:
    return [node for node in config.get("graph", {}).get("nodes", []) if node["op"] == op]


def _used(module: torch.nn.Module, config: dict[str, Any], tensors: dict[str, torch.Tensor]) -> set[str]:
    """The tensors that a module's forward pass uses, asked as the model of that config is; all where it cannot be."""
    inputs = {node["target"] for node in _nodes(config, "input")}
    how: dict[str, Any] = {"size": config["img_resolution"], "channels": config["img_channels"]}
    if "onehot" in inputs:
        how["label"] = "onehot"
    if "conditions" in tensors:
        how["conditions"] = tensors["conditions"]
    elif config.get("label_dim"):
        how["labels"] = config["label_dim"]
    try:
        return set(export(module, **how).tensors)
    except BadRequestError:
        return set(module.state_dict())
