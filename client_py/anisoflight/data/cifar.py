"""CIFAR-10: Python's and binary batches, in files and in a tar. `convert` reads the pickles, and executes nothing."""

import io
import re
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from ..convert.names import IN_CHECKPOINTS
from ..convert.unpickler import Names, Unpickler
from ..convert.values import Buildable, Scalars
from ..images import labels_of, shortlist
from ..wire.pictures import read_at_most
from .arrays import rows
from .folders import hidden
from .source import DataError, Item, Source, named

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

_PIXELS = 3 * 32 * 32
_MAX_BATCH = 1 << 26  # bytes of one batch; CIFAR-10's have 31 million
_MAX_BATCHES = 64

# The training batches, which are read from a folder or tar; test_batch is read if it is the path.
_TRAINING = re.compile(r"data_batch_[0-9]+(\.bin)?")

Array = np.ndarray[Any, Any]


def from_files(path: Path, files: list[Path]) -> Source:
    """Batches in files, in the order of their names."""

    def read(path: Path) -> bytes:
        with path.open("rb") as file:
            return read_at_most(file, _MAX_BATCH)

    one = len(files) == 1
    return _source(path, {f.name: lambda f=f: read(f) for f in files if one or _TRAINING.fullmatch(f.name)})


def from_tar(path: Path) -> Source:
    """Batches in a tar, compressed or not. They are held in memory, because their order is arbitrary."""
    found: dict[str, bytes] = {}
    there: list[str] = []
    with named(path), tarfile.open(path, "r|*") as tar:
        for member in tar:
            *_, name = parts = PurePosixPath(member.name).parts or ("",)
            if not member.isreg() or any(map(hidden, parts)):
                continue
            there.append(member.name)
            if _TRAINING.fullmatch(name):
                if len(found) == _MAX_BATCHES:
                    raise DataError(path, member.name, f"is batch number {_MAX_BATCHES + 1}; CIFAR-10 has 5")
                file = tar.extractfile(member)
                assert file is not None  # of a regular file
                found[name] = read_at_most(file, _MAX_BATCH)
    if not found:
        message = f"holds {shortlist(there)}, but no data_batch_1 … of CIFAR-10; no other tar is read"
        raise DataError(path, "", f"{message}: unpack it, and make a folder for each class, or an .npz")
    return _source(path, {name: lambda data=found[name]: data for name in sorted(found)})


def _source(path: Path, batches: dict[str, Callable[[], bytes]]) -> Source:
    if not batches:
        raise DataError(path, "", "holds no data_batch_1 … of CIFAR-10")

    def batch(name: str) -> tuple[Array, Array]:
        with named(path, name):
            return _batch(batches[name]())

    def items() -> Iterator[Item]:
        for name in batches:
            yield from rows(*batch(name), name)

    count = sum(len(batch(name)[1]) for name in batches)
    return Source(path, "CIFAR-10 batches", count, True, items, CLASSES)


def _batch(data: bytes) -> tuple[Array, Array]:
    """Images [n, 32, 32, 3] of a batch, and their labels."""
    if data.startswith(b"\x80"):
        pixels, labels = _pickled(data)
    else:
        if not data or len(data) % (1 + _PIXELS):
            raise ValueError(f"has {len(data):,} bytes, no whole number of records of {1 + _PIXELS:,}")
        records = np.frombuffer(data, np.uint8).reshape(-1, 1 + _PIXELS)
        pixels, labels = records[:, 1:], records[:, 0]
    labels = labels_of(labels, len(pixels))
    wrong = np.flatnonzero((labels < 0) | (labels >= len(CLASSES)))
    if wrong.size:
        raise ValueError(f"row {wrong[0]} has the label {labels[wrong[0]]}; CIFAR-10's are 0 to 9")
    return np.moveaxis(pixels.reshape(-1, 3, 32, 32), 1, 3), labels


def _pickled(data: bytes) -> tuple[Array, list[Any]]:
    """A dict with data, an array [n, 3072] of uint8, and labels, a list of n."""
    match Unpickler(io.BytesIO(data), _NAMES).load():
        case (
            {"data": _Pixels(data=pixels), "labels": list(labels)}
            | {b"data": _Pixels(data=pixels), b"labels": list(labels)}  # as Python 3 keeps what Python 2 wrote
        ):
            pass
        case {"fine_labels": _} | {b"fine_labels": _}:
            raise ValueError("is CIFAR-100's, which is not read; np.savez an .npz of its images and labels")
        case _:
            raise ValueError(f"is no batch: a dict with data, an array [n, {_PIXELS}] of uint8, and labels, a list")
    return np.frombuffer(pixels, np.uint8).reshape(-1, _PIXELS), labels


class _Pixels(Buildable):
    """An array [n, 3072] of uint8."""

    data: bytes = b""

    def build(self, state: Any) -> None:
        match state:  # version, shape, type, columns first, bytes
            case (int(), (int(), 3072), Scalars(code="u1"), False, str() | bytes() as data):
                self.data = data.encode("latin1") if isinstance(data, str) else data
            case _:
                raise ValueError(f"has an array of another form; data is [n, {_PIXELS}] of uint8, row by row")


_NAMES: Names = {
    **{name: IN_CHECKPOINTS[name] for name in (("numpy", "ndarray"), ("numpy", "dtype"), ("_codecs", "encode"))},
    ("numpy.core.multiarray", "_reconstruct"): lambda budget, args: _Pixels(),
    ("numpy._core.multiarray", "_reconstruct"): lambda budget, args: _Pixels(),
}
