"""Arrays of images: NumPy's .npy and .npz, read in pieces, and data sets as the server stores them."""

import json
import zipfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from math import prod
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np

from ..images import IMAGES, LABELS, find_columns, labels_of, like_labels, shortlist
from ..wire.intake import pixels_in
from ..wire.pictures import MAX_PIXELS
from .source import DataError, Item, Source, named

_PIECE = 1 << 20  # bytes that are read at a time

Array = np.ndarray[Any, Any]


def rows(images: Array, labels: Array | None, name: str = "", first: int = 0) -> Iterator[Item]:
    """Items of images [n, H, W, C] from row `first` on, with the labels of all rows; each is a copy."""
    kind = np.uint8 if images.dtype == np.uint8 else np.float32
    for i, image in enumerate(images, first):
        label = -1 if labels is None else int(labels[i])
        yield Item(f"{name} row {i}".lstrip(), label, lambda image=image: np.ascontiguousarray(image, kind))


def has_labels(labels: Array | None) -> bool:
    """Whether any image has a label."""
    return labels is not None and bool((labels >= 0).any())


def channels_last(images: Any, layout: str | None = None) -> np.ndarray[Any, Any]:
    """Images as `Client.put_dataset` takes them, an array or a column of Arrow, as a view [n, H, W, C].

    >>> channels_last(np.zeros((5, 3, 32, 32), np.uint8)).shape
    (5, 32, 32, 3)
    """
    array, layout = pixels_in(images, layout)
    if layout == "CHW":
        array = np.moveaxis(array, 1, 3)
    _, height, width, channels = array.shape
    message = f"has images of {height}×{width} pixels in {channels} channels;"
    if height * width * channels > 4 * MAX_PIXELS:
        raise ValueError(f"{message} they have at most {4 * MAX_PIXELS:,} values")
    if channels > 4 and array.dtype == np.uint8:
        raise ValueError(f"{message} bytes have 1 to 4 channels")
    return array


def npy(path: Path, layout: str | None = None) -> Source:
    """An .npy of images, mapped into memory."""
    with named(path):
        images = channels_last(np.load(path, mmap_mode="r", allow_pickle=False), layout)
    return Source(path, ".npy", len(images), False, partial(rows, images, None, path.name))


def columns_by_rule(names: Sequence[str], rule: str) -> tuple[str, str | None]:
    """The column or array of images, and that of labels by `rule`: the column's name, none, or LABELS."""
    labels = {"auto": "", "listed": "", "folder": "", "none": None}.get(rule, rule)
    return find_columns(names, labels, '--labels {0} (labels="{0}") takes it, --labels none drops all')


def npz(path: Path, archive: zipfile.ZipFile, entries: Collection[str], rule: str, layout: str | None = None) -> Source:
    """An .npz of images and perhaps labels."""
    names = [entry.removesuffix(".npy") for entry in entries if entry.endswith(".npy")]
    if any(PurePosixPath(name).name.startswith("img-mean-std-") for name in names):
        about = f"holds EDM2's encoded latents, {shortlist(names)}; draw mean + std·noise and np.save one array"
        raise DataError(path, "", about)
    alone = [name for name in names if name not in (rule, *LABELS, *like_labels(names))]
    with named(path):
        name, listed = columns_by_rule([IMAGES[0] if [name] == alone else name for name in names], rule)
    name = f"{alone[0] if len(alone) == 1 else name}.npy"
    with _array(path, archive, name) as (_, shape, dtype):
        count, *axes = shape or [0]
        _, layout = pixels_in(np.empty((0, *axes), dtype), layout)
    labels = None
    if listed is not None:
        with _array(path, archive, f"{listed}.npy") as (file, of_labels, kind):
            values = np.frombuffer(file.read(prod(of_labels) * kind.itemsize), kind).reshape(of_labels)
            labels = labels_of(values, count)

    def items() -> Iterator[Item]:
        with _array(path, archive, name) as (file, shape, dtype):
            size = prod(shape[1:]) * dtype.itemsize
            several = max(1, _PIECE // size)
            for first in range(0, count, several):
                n = min(several, count - first)
                piece = np.frombuffer(file.read(n * size), dtype).reshape(n, *shape[1:])
                yield from rows(channels_last(piece, layout), labels, name, first)
            file.read(1)  # compares the checksum

    read = {name, *(f"{label}.npy" for label in (listed, *LABELS)), "seeds.npy"}  # samples are saved with their seeds
    ignored = [entry for entry in entries if entry not in read]
    return Source(path, ".npz", count, has_labels(labels), items, close=archive.close, ignored=ignored)


@contextmanager
def _array(path: Path, archive: zipfile.ZipFile, name: str) -> Iterator[tuple[IO[bytes], list[int], np.dtype[Any]]]:
    """An array of an .npz at its first value, its shape and its type."""
    with named(path, name), archive.open(name) as file:
        version = np.lib.format.read_magic(file)
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, columns_first, dtype = header(file)
        if columns_first or dtype.hasobject:
            objects = (
                "Python objects, such as None or lists; labels are whole numbers, −1 for none, and images one array"
            )
            raise ValueError(f"holds {objects if dtype.hasobject else f'{dtype} columns first; store plain C order'}")
        claimed, there = prod(shape) * dtype.itemsize, archive.getinfo(name).file_size - file.tell()
        if claimed != there:
            raise ValueError(f"has {there:,} bytes of values; the shape {shape} takes {claimed:,}")
        yield file, list(shape), dtype


def stored(path: Path) -> Source | None:
    """A data set as the server stores it, mapped into memory; None for another folder."""
    try:
        config = json.loads((path / "dataset.json").read_bytes()) if (path / "dataset.json").is_file() else None
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(config, dict) or config.get("format") != "anisoflight-dataset":
        return None
    with named(path, "images.npy"):
        mapped = np.load(path / "images.npy", mmap_mode="r", allow_pickle=False)
        images = channels_last(mapped, str(config.get("layout", "HWC")))
    labels = None
    if (path / "labels.npy").exists():
        with named(path, "labels.npy"):
            labels = labels_of(np.load(path / "labels.npy", allow_pickle=False), len(images))
    units = config.get("normalization")
    items = partial(rows, images, labels, "images.npy")
    return Source(path, "stored data set", len(images), has_labels(labels), items, units=units)
