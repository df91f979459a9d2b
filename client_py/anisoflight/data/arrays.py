"""Arrays of images: NumPy's .npz, read as it streams, and data sets as the server stores them."""

from __future__ import annotations

import json
import zipfile
import zlib
from contextlib import contextmanager
from math import prod
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from .pictures import channels_last
from .source import DataError, Item, Source

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

IMAGES = ("images", "image", "samples", "arr_0")
LABELS = ("labels", "label", "arr_1")
"""Names that arrays may have, the first that is there counts: our own, those of numpy.savez and of ADM's files."""
# zipfile raises RuntimeError of an encrypted entry, its NotImplementedError of an unknown compression.
ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError, OSError)

_PIECE = 1 << 20  # bytes that are read at a time

Array = np.ndarray[Any, Any]


@contextmanager
def named(path: Path, entry: str = "") -> Iterator[None]:
    """Failures to read an entry of a file as a DataError of it."""
    try:
        yield
    except DataError:
        raise
    except ZIP_ERRORS as error:
        raise DataError(path, entry, error) from error


def rows(images: Array, labels: Array | None, name: str, first: int = 0) -> Iterator[Item]:
    """Items of images [n, H, W, C], of which the first has the number `first`; each keeps its own memory alone."""
    kind = np.uint8 if images.dtype == np.uint8 else np.float32
    for i, image in enumerate(images):
        label = -1 if labels is None else int(labels[i])
        yield Item(f"{name} row {first + i}", label, lambda image=image: np.ascontiguousarray(image, kind))


def labels_of(values: Array, count: int) -> Array:
    """Labels of so many images, if they are that."""
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise ValueError(f"holds {values.dtype} of the shape {values.shape}; labels are whole numbers [n]")
    if len(values) != count:
        raise ValueError(f"holds {len(values)} labels for {count} images")
    most = np.iinfo(np.int32).max
    wrong = values[(values < -1) | (values > most)]
    if wrong.size:
        raise ValueError(f"holds the label {wrong[0]}; labels count from 0 to {most}, −1 means none")
    return values.astype(np.int32)


def npy(path: Path, layout: str | None = None) -> Source:
    """An .npy of images, mapped into memory."""
    with named(path):
        images = channels_last(np.load(path, mmap_mode="r", allow_pickle=False), layout)
    return Source(path, ".npy", len(images), False, lambda: rows(images, None, path.name))


def npz(path: Path, held: zipfile.ZipFile, entries: Mapping[str, zipfile.ZipInfo], layout: str | None = None) -> Source:
    """An .npz of images and perhaps labels."""

    def found(names: Sequence[str]) -> str | None:
        return next((f"{name}.npy" for name in names if f"{name}.npy" in entries), None)

    name, listed = found(IMAGES), found(LABELS)
    if name is None:
        raise DataError(path, "", f"holds {', '.join(entries)}; images are the array {', '.join(IMAGES)}")
    with _array(path, held, name) as (_, shape, dtype):
        if not shape:
            raise ValueError("holds one number; images have the axes n, H, W, C or n, C, H, W or n, H, W")
        channels_last(np.empty((0, *shape[1:]), dtype), layout)
        count = shape[0]
    labels = None
    if listed is not None:
        with _array(path, held, listed) as (file, of_labels, kind):
            values = np.frombuffer(file.read(prod(of_labels) * kind.itemsize), kind).reshape(of_labels)
            labels = labels_of(values, count)

    def items() -> Iterator[Item]:
        with _array(path, held, name) as (file, shape, dtype):
            size = prod(shape[1:]) * dtype.itemsize
            several = max(1, _PIECE // size)
            for first in range(0, count, several):
                n = min(several, count - first)
                piece = np.frombuffer(file.read(n * size), dtype).reshape(n, *shape[1:])
                yield from rows(channels_last(piece, layout), None if labels is None else labels[first:], name, first)
            file.read(1)  # compares the checksum

    return Source(path, ".npz", count, labels is not None, items, close=held.close)


@contextmanager
def _array(path: Path, held: zipfile.ZipFile, name: str) -> Iterator[tuple[IO[bytes], tuple[int, ...], np.dtype[Any]]]:
    """An array of an .npz at its first value, its shape and its type."""
    with named(path, name), held.open(name) as file:
        version = np.lib.format.read_magic(file)
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, columns_first, dtype = header(file)
        if columns_first or dtype.hasobject:
            raise ValueError(f"holds {dtype} {'columns first' if columns_first else ''}; store plain C order")
        claimed, there = prod(shape) * dtype.itemsize, held.getinfo(name).file_size - file.tell()
        if claimed != there:
            raise ValueError(f"has {there:,} bytes of values; the shape {shape} takes {claimed:,}")
        yield file, shape, dtype


def is_stored(path: Path) -> bool:
    """Whether a folder is a data set as the server stores it."""
    try:
        said = json.loads((path / "dataset.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(said, dict) and said.get("format") == "anisoflight-dataset"


def stored(path: Path) -> Source:
    """A data set as the server stores it; its images are mapped into memory."""
    said = json.loads((path / "dataset.json").read_bytes())
    with named(path, "images.npy"):
        mapped = np.load(path / "images.npy", mmap_mode="r", allow_pickle=False)
        images = channels_last(mapped, str(said.get("layout", "HWC")))
    labels = None
    if (path / "labels.npy").exists():
        with named(path, "labels.npy"):
            labels = labels_of(np.load(path / "labels.npy", allow_pickle=False), len(images))
    items = lambda: rows(images, labels, "images.npy")  # noqa: E731
    units = said.get("normalization")
    return Source(path, "stored data set", len(images), labels is not None, items, units=units)
