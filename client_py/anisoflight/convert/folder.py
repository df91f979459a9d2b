"""The model folder: written next to its place, checked by the program, and renamed."""

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import save_file

from ..errors import NameTakenError, ServerStartError
from ..serving.local import model_report
from ..wire.progress import Progress
from .errors import BadModelError, UnsafePickleError
from .values import Tensor

CONFIG, WEIGHTS = "config.json", "model.safetensors"
_WEIGHT = np.dtype("<f4")
_SHOWN = 10  # faults of a model in a message


@contextlib.contextmanager
def appearing(target: Path, replace: bool) -> Iterator[Path]:
    """A folder to write, which becomes target if the block ends without an error, and else disappears."""
    refuse_taken(target, replace)
    target.parent.mkdir(parents=True, exist_ok=True)
    # A server ignores names that begin with a dot.
    work = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        made, old = work / "new", work / "old"
        made.mkdir()
        yield made
        refuse_taken(target, replace)
        if target.exists():
            target.rename(old)
        try:
            made.rename(target)
        except BaseException:
            if old.exists():
                old.rename(target)
            raise
    finally:
        shutil.rmtree(work, ignore_errors=True)


def refuse_taken(target: Path, replace: bool) -> None:
    """Raise unless target does not exist, or is a model folder to be replaced."""
    if not target.exists() and not target.is_symlink():
        return
    if not replace:
        raise NameTakenError(f"{target} exists; pass --replace to put the new model in its place", "NAME_TAKEN")
    if target.is_symlink() or not target.is_dir() or not (target / CONFIG).exists():
        raise NameTakenError(f"{target} is not a model folder, so it is not replaced", "NAME_TAKEN")


def write_model(
    folder: Path, config: Mapping[str, Any], state: Mapping[str, Tensor], source: str, bound: int, progress: bool
) -> str:
    """Write the configuration, and the state dict as float32 with the hash of its source; returns the SHA-256 of the
    weights.

    float32 is kept to the last bit; float16 is widened, which is exact. More than bound bytes are refused, because
    tensors that share a storage could add up to any size.
    """
    for name, tensor in state.items():
        if tensor.storage.dtype not in (np.dtype("<f4"), np.dtype("<f2")):
            kind = tensor.storage.dtype.name
            raise BadModelError(f"the tensor {name} is of type {kind}; weights are float32 or float16")
    if sum(tensor.size for tensor in state.values()) * _WEIGHT.itemsize > bound:
        raise UnsafePickleError("the weights are several times larger than the file that they come from")
    values = {}
    for name, tensor in Progress(state.items(), desc="convert", unit="tensor", leave=False, disable=not progress):
        values[name] = np.asarray(tensor.array(), _WEIGHT, order="C")
        if not np.isfinite(values[name]).all():
            raise BadModelError(f"the tensor {name} holds values that are not finite")
    (folder / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    _stored(folder / CONFIG)
    path = folder / WEIGHTS
    try:
        save_file(values, path, {"source_sha256": source})  # one entry, because the order of several varies
    except SafetensorError as error:
        raise OSError(f"{path}: {error}") from error
    return _stored(path)


def _stored(path: Path) -> str:
    """Write a file to the disk; returns its SHA-256."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())
        return hashlib.file_digest(file, "sha256").hexdigest()


def verify(folder: Path, binary: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """The result of `anisoflight model check --json` for a valid model folder; else a BadModelError."""
    try:
        found = model_report(folder, binary)
    except (ServerStartError, OSError, ValueError) as error:
        message = "the weights cannot be compared with the configuration; --no-verify leaves that to the server"
        raise ServerStartError(f"{message}: {getattr(error, 'message', error)}", "SERVER_START") from error
    if faults := found["faults"]:
        lines = [": ".join(fault[part] for part in ("file", "tensor", "reason") if part in fault) for fault in faults]
        omitted = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
        raise BadModelError("\n  ".join(["the weights do not fit the configuration:", *lines[:_SHOWN], *omitted]))
    return found
