"""Networks of PyTorch on a server: sent, compared with torch, and read back."""

import itertools
import json
import math
import re
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import replace as replaced
from typing import Any

import numpy as np
import pyarrow as pa
import torch  # pyright: ignore[reportMissingImports]
from safetensors.torch import load

from ..errors import BadRequestError, bad_model
from ..wire.tensors import to_numpy
from .exporting import Exported, export
from .meaning import meaning, network_of
from .wrapping import evaluating, unwrapped

Client = Any
"""An `anisoflight.Client`; its module imports this one."""

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
        exported = export(module, parametrization=_served(meaning(module, scheduler, prediction)), **how)
    elif "parametrization" in module.config:
        exported = module
    else:
        section = _served(meaning(module.wrapped.module.module, scheduler, prediction))
        exported = replaced(module, config={**module.config, "parametrization": section})
    older = replace and check and name in client.models().index
    trial = (
        f"{name[:48]}-{secrets.token_hex(4)}" if older else name
    )  # an older model stays until the new one is checked
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


def _served(section: dict[str, Any]) -> dict[str, Any]:
    """A section that the server knows."""
    if "prediction" in section:
        raise bad_model("an EDM scheduler with v_prediction negates c_out, which the server does not support")
    return section


def _send(client: Client, name: str, exported: Exported, title: str | None, replace: bool) -> None:
    """Upload the files of a network as the model of that name."""
    config, (size, weights) = json.dumps(exported.config).encode(), exported.weights()
    request = {"op": "PutModel", "name": name, "replace": replace, "config_bytes": len(config), "weights_bytes": size}
    schema = pa.schema([pa.field("bytes", ROW)])
    pieces = _batches(schema, itertools.chain([memoryview(config)], weights))
    try:
        client.put_batches(request, schema, pieces, -(-(len(config) + size) // PART), title)
    except BadRequestError as error:
        raise type(error)(error.message + _places(error.message, exported), error.code) from None


def _places(message: str, exported: Exported) -> str:
    """The lines of the user's program that an error of the server concerns, by its nodes or operations."""
    nodes = exported.config["graph"]["nodes"]
    named = [node for node in nodes if f"node {node['name']} (" in message]
    meant = named or [node for node in nodes if re.search(rf"(?<![\w.]){re.escape(node['op'])}(?!\.?\w)", message)]
    lines = list(dict.fromkeys(exported.lines[node["name"]] for node in meant if node["name"] in exported.lines))
    return "".join(f"\n{line}" for line in lines[:5])


def _batches(schema: pa.Schema, pieces: Iterable[memoryview]) -> Iterator[pa.RecordBatch]:
    """Consecutive pieces, cut into rows; the last row is padded with zeros."""

    def batch(data: bytes) -> pa.RecordBatch:
        flat = pa.array(np.frombuffer(data.ljust(-(-len(data) // PART) * PART, b"\0"), np.uint8))
        rows = pa.ExtensionArray.from_storage(ROW, pa.FixedSizeListArray.from_arrays(flat, PART))
        return pa.record_batch([rows], schema=schema)

    buffer = bytearray()
    for piece in pieces:
        for begin in range(0, len(piece), BATCH):
            buffer += piece[begin : begin + BATCH]
            if len(buffer) >= BATCH:
                yield batch(bytes(buffer[:BATCH]))
                del buffer[:BATCH]
    if buffer:
        yield batch(bytes(buffer))


def _compare(client: Client, trial: str, name: str, exported: Exported) -> None:
    """Raise unless the server computes F and D of the model `trial` as torch does, on random inputs; `name` is its name
    in the error.
    """
    wrapped = exported.wrapped
    kind, low, high = network_of(exported.config.get("parametrization") or {"kind": "edm"})
    levels = np.geomspace(low * 1.01, high * 0.99, 4)
    sigmas = levels[:, None, None, None]
    noise = np.random.default_rng(0).standard_normal((4, wrapped.channels, wrapped.height, wrapped.width))
    x = (noise * np.hypot(1, sigmas)).astype(np.float32)
    labels = np.arange(4, dtype=np.int32) % wrapped.labels if wrapped.labels else None
    served = client.denoise(trial, x.transpose(0, 2, 3, 1), levels, labels, layout="HWC", progress=False)
    scaled = x * kind.scale(sigmas)
    times = torch.tensor([kind.time(level) for level in levels.tolist()], dtype=torch.float32)
    z = torch.from_numpy((scaled * kind.input_scale(sigmas)).astype(np.float32))
    with evaluating(wrapped.module), torch.no_grad():
        like = next((p for p in wrapped.module.parameters() if p.dtype.is_floating_point), z)
        raw = wrapped.call(z.to(like), times.to(like), None if labels is None else torch.from_numpy(labels).long())
    raw = raw.float().cpu().numpy()
    wanted = {"F": (raw, served.raw), "D": (kind.denoised(raw, scaled, sigmas), served.denoised)}
    for what, (want, got) in wanted.items():
        want = want.transpose(0, 2, 3, 1).astype(np.float64)
        error = float(np.linalg.norm(got - want) / max(float(np.linalg.norm(want)), 1e-30))
        if not error <= TOLERANCE:
            raise bad_model(
                f"the server computes {what} of {name!r} {error:.1e} away from torch, relative; at most {TOLERANCE:g} "
                "is allowed, and the model is removed (a server in tf32 or bfloat16 needs check=False)"
            )


def get_network(client: Client, name: str, module: torch.nn.Module) -> torch.nn.Module:
    """Fill a module with a model's weights; see `Client.get_network`."""
    rows = client.table("Model", {"model": name}, name, "part")
    request = json.loads((rows.schema.metadata or {})[b"request"])
    values = to_numpy(rows["bytes"]).reshape(-1)
    cut, end = request["config_bytes"], request["config_bytes"] + request["weights_bytes"]
    config, tensors = json.loads(values[:cut].tobytes()), load(values[cut:end].tobytes())
    network = unwrapped(module)
    own = network.state_dict()
    found = {key: value for key, value in tensors.items() if key in own}
    lacking = [key for key in own if key not in tensors]
    if lacking:  # the server has only tensors of the forward pass
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
            what = f"{len(names)} {what}: {first}; nothing was replaced"
            raise bad_model(f"module must be the network of the model {name!r}, but {what}")
    network.load_state_dict({key: value.to(own[key]) for key, value in found.items()}, strict=False)
    return module


def _nodes(config: dict[str, Any], op: str) -> list[dict[str, Any]]:
    return [node for node in config.get("graph", {}).get("nodes", []) if node["op"] == op]


def _used(module: torch.nn.Module, config: dict[str, Any], tensors: dict[str, torch.Tensor]) -> set[str]:
    """The tensors in the forward pass of a module, called as the model of that config; all if that fails."""
    inputs = {node["target"]: node.get("args", {}) for node in _nodes(config, "input")}
    how: dict[str, Any] = {"size": config["img_resolution"], "channels": config["img_channels"], **inputs["sample"]}
    if "onehot" in inputs:
        how["label"] = "onehot"
    if "conditions" in how:
        columns = tensors["conditions"].flatten(1).split([math.prod(shape) for _, *shape in how["conditions"]], 1)
        parts = zip(how["conditions"], columns, strict=True)
        how["conditions"] = {name: rows.reshape(-1, *shape) for (name, *shape), rows in parts}
    elif "conditions" in tensors:
        how["conditions"] = tensors["conditions"]
    elif config.get("label_dim"):
        how["labels"] = config["label_dim"]
    try:
        return set(export(module, **how).tensors)
    except BadRequestError:
        return set(module.state_dict())
