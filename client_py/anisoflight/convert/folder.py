"""The model folder: written beside its place, and put there whole."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .. import safetensors
from ..errors import NameTakenError
from .errors import BadModelError, UnsafePickleError
from .values import Tensor

CONFIG, WEIGHTS = "config.json", "model.safetensors"
_WEIGHT = np.dtype("<f4")


@contextlib.contextmanager
def appearing(target: Path, replace: bool) -> Iterator[Path]:
    """A folder to write to, which becomes target when the block ends well, and nothing when it does not."""
    refuse_taken(target, replace)
    target.parent.mkdir(parents=True, exist_ok=True)
    # With a dot in front it is no model's name to a server whose models folder this is.
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
    """Raise unless target is free, or a model folder that may be replaced."""
    if not target.exists() and not target.is_symlink():
        return
    if not replace:
        raise NameTakenError(f"{target} exists; pass --replace to put the new model in its place", "NAME_TAKEN")
    if target.is_symlink() or not target.is_dir() or not (target / CONFIG).exists():
        raise NameTakenError(f"{target} is not a model folder, so it is not replaced", "NAME_TAKEN")


def write_config(folder: Path, config: Mapping[str, Any]) -> None:
    _write(folder / CONFIG, [(json.dumps(config, indent=2) + "\n").encode()])


def write_weights(
    folder: Path, state: Mapping[str, Tensor], metadata: Mapping[str, str], bound: int, wrote: Callable[[int], object]
) -> str:
    """Write the state dict as float32 and return its SHA-256. Of each tensor one copy is in memory at a time.

    float32 is kept to the last bit, float16 widened, which is exact. More than bound bytes are refused: tensors that
    share a storage could otherwise add up to any size.
    """
    for name, tensor in state.items():
        if tensor.storage.dtype not in (np.dtype("<f4"), np.dtype("<f2")):
            kind = tensor.storage.dtype.name
            raise BadModelError(f"the tensor {name} is of type {kind}; weights are float32 or float16")
    if sum(tensor.size for tensor in state.values()) * _WEIGHT.itemsize > bound:
        raise UnsafePickleError("the weights are several times larger than the file that they come from")

    def parts() -> Iterator[bytes | memoryview]:
        yield safetensors.head(((name, _WEIGHT, tensor.shape) for name, tensor in state.items()), metadata)
        for name, tensor in state.items():
            values = np.ascontiguousarray(tensor.array(), _WEIGHT)
            if not np.isfinite(values).all():
                raise BadModelError(f"the tensor {name} holds values that are not finite")
            yield values.reshape(-1).data.cast("B")
            wrote(values.nbytes)

    return _write(folder / WEIGHTS, parts())


def _write(path: Path, parts: Any) -> str:
    digest = hashlib.sha256()
    with path.open("xb") as file:
        for part in parts:
            file.write(part)
            digest.update(part)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()
