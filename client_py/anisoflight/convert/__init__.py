"""EDM checkpoints as model folders, without executing anything in them.

A pickle is a program: it names functions and has them called. Here an unpickler that can neither import nor call reads
it as data; docs/checkpoints.md describes what is accepted.

    from anisoflight.convert import convert

    made = convert("edm-cifar10-32x32-cond-vp.pkl", "data/models/cifar10")
    made.parameters  # 55735299
"""

import hashlib
import json
import mmap
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from ..files import path_of
from . import folder as folders
from .errors import BadCheckpointError, BadModelError, ConvertError, UnsafePickleError, UnsupportedNetworkError
from .names import IN_CHECKPOINTS
from .network import choose, complete, config_of, state_of
from .torchfile import LEGACY, ZIP, read_legacy, read_zip
from .unpickler import Budget, Unpickler
from .values import Module

__all__ = [
    "BadCheckpointError", "BadModelError", "Conversion", "ConvertError", "UnsafePickleError", "UnsupportedNetworkError",
    "convert",
]  # fmt: skip


@dataclass(frozen=True)
class Conversion:
    """The result of `convert`."""

    target: Path
    config: dict[str, Any]  # config.json
    tensors: int
    parameters: int  # trained scalars, as EDM counts them; of an unverified model all scalars, with buffers
    source_sha256: str
    weights_sha256: str  # of model.safetensors; the server calls it the model's hash
    verified: bool


def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    key: str | None = None,
    config: str | os.PathLike[str] | None = None,
    replace: bool = False,
    check: bool = True,
    binary: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> Conversion:
    """Convert an EDM checkpoint to the model folder target.

    source is a pickle (network-snapshot-*.pkl, or a published edm-*.pkl) or a file of torch.save (training-state-*.pt).
    key names one of several networks in it (default "ema", else "state_dict"). A state dict needs config, a
    config.json; prefixes of DataParallel and torch.compile before its names are dropped. The folder appears complete or
    not at all; replace replaces an existing one.

    check compares names and shapes with the configuration by `anisoflight model check`, with the program of
    `anisoflight.serve` or `binary`.

    Raises UnsafePickleError, BadCheckpointError, UnsupportedNetworkError, BadModelError, NameTakenError, all with a
    `.code`, and OSError.
    """
    source, target = path_of(source), Path(os.path.abspath(path_of(target)))
    folders.refuse_taken(target, replace)  # early; checked again at the end
    with source.open("rb") as file:
        size, digest = os.fstat(file.fileno()).st_size, hashlib.file_digest(file, "sha256").hexdigest()
        found = choose(_read(file, size), key)
    if isinstance(found, Module):
        if config is not None:
            raise BadCheckpointError("the checkpoint has its own configuration; leave --config out")
        settings, state = config_of(found), state_of(found)
    elif config is None:
        raise BadCheckpointError("the checkpoint is a state dict, without its network's arguments; give --config")
    else:
        settings, state = _settings(path_of(config)), found
    with folders.appearing(target, replace) as made:
        weights = folders.write_model(made, settings, state, digest, 4 * size, progress)
        values = sum(tensor.size for tensor in state.values())
        parameters = folders.verify(made, binary)["parameters"] if check else values
    return Conversion(target, settings, len(state), parameters, digest, weights, check)


def _read(file: BinaryIO, size: int) -> Any:
    """The object in a checkpoint."""
    if size == 0:
        raise BadCheckpointError("the file is empty")
    data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)  # a read beyond its end allocates nothing
    budget = Budget()
    if data[:4] == ZIP:
        return read_zip(file, IN_CHECKPOINTS, budget)
    if data[: len(LEGACY)] == LEGACY:
        return read_legacy(data, IN_CHECKPOINTS, budget)
    if data[0] != 0x80:
        raise BadCheckpointError("the file is neither a pickle of protocol 2 or later nor one of torch.save")
    found = Unpickler(data, IN_CHECKPOINTS, None, budget).load()
    if data.tell() != size:
        raise BadCheckpointError(f"the file goes on for {size - data.tell():,} bytes after its pickle")
    return found


def _settings(path: Path) -> dict[str, Any]:
    try:
        settings = json.loads(path.read_bytes())
    except ValueError as error:
        raise BadCheckpointError(f"{path} is not JSON: {error}") from error
    if not isinstance(settings, dict):
        raise BadCheckpointError(f"{path} is not a JSON object")
    return complete(settings, extra=("classes", "ratio_embedding", "parametrization"))
