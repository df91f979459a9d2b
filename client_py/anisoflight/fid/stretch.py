"""Stretches of a source: what is looked at in one go, here or by somebody else, as often as it takes.

A stretch depends on the source, the features and its own bounds alone. Passes fold stretches in order, so that their
result does not depend on who has looked at which.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import FidError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ..images import Pixels
    from .features import Features
    from .sources import Source


@dataclass(frozen=True)
class Stretch:
    """The images start … start + n − 1 of a source, through features."""

    start: int
    features: np.ndarray[Any, Any]
    """[n, D] float64, or float32 where that holds them exactly, as a network's."""
    hashes: np.ndarray[Any, Any]
    """[n, 32] uint8: SHA-256 of each image's pixels."""
    shape: tuple[int, ...]
    """Of one image [H, W, C]."""
    evaluations: tuple[int, ...]
    """NFE that the server counted; none of images that are no samples."""
    seconds: float

    @property
    def stop(self) -> int:
        return self.start + len(self.features)

    def arrays(self) -> dict[str, Any]:
        """Everything, as arrays for a file."""
        return {
            "features": self.features,
            "hashes": self.hashes,
            "shape": np.array(self.shape, np.int64),
            "evaluations": np.array(self.evaluations, np.int64),
            "seconds": np.float64(self.seconds),
        }

    @classmethod
    def restored(cls, start: int, arrays: Mapping[str, Any]) -> Stretch:
        """What `arrays` gave."""
        shape = tuple(int(size) for size in arrays["shape"])
        evaluations = tuple(int(nfe) for nfe in arrays["evaluations"])
        return cls(start, arrays["features"], arrays["hashes"], shape, evaluations, float(arrays["seconds"]))


def bounds(first: int, count: int, length: int) -> list[tuple[int, int]]:
    """Stretches that are left of a source of which `first` images have been seen; they begin at multiples of length.

    >>> bounds(0, 5, 2), bounds(3, 5, 2)
    ([(0, 2), (2, 4), (4, 5)], [(3, 4), (4, 5)])
    """
    stops = [*range(first - first % length + length, count, length), count]
    return list(zip([first, *stops[:-1]], stops, strict=True)) if first < count else []


def look(
    source: Source, features: Features, start: int, stop: int, batch: int, tick: Callable[[int], object] | None = None
) -> Stretch:
    """Look at images start … stop − 1, `batch` at a time; `tick` hears how many are done."""
    began = time.perf_counter()
    found: list[np.ndarray[Any, Any]] = []
    hashes: list[bytes] = []
    shape: tuple[int, ...] = ()
    for images in rebatched(source.read(start, stop), batch):
        shape = shape or images.shape[1:]
        if images.shape[1:] != shape:
            raise FidError(f"images of {images.shape[1:]} among images of {shape}", "BAD_IMAGES")
        hashes += [hashlib.sha256(image.tobytes()).digest() for image in np.ascontiguousarray(images)]
        found.append(features(images))
        if tick is not None:
            tick(len(images))
    if len(hashes) != stop - start:
        raise FidError(f"{len(hashes)} images came where {stop - start} were asked for", "BAD_IMAGES")
    evaluations = tuple(sorted(getattr(source, "evaluations", ())))
    digests = np.frombuffer(b"".join(hashes), np.uint8).reshape(-1, 32)
    seconds = time.perf_counter() - began
    return Stretch(start, _narrow(np.concatenate(found)), digests, shape, evaluations, seconds)


def _narrow(features: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same numbers as float32 where none of them changes by that."""
    with np.errstate(over="ignore"):
        narrow = features.astype(np.float32)
    return narrow if np.array_equal(narrow, features) else features


def rebatched(parts: Iterable[Pixels], size: int) -> Iterator[Pixels]:
    """The same images, `size` at a time; the last may be fewer.

    >>> [len(batch) for batch in rebatched([np.zeros((3, 2, 2, 1)), np.zeros((4, 2, 2, 1))], 2)]
    [2, 2, 2, 1]
    """
    held: list[Pixels] = []
    count = 0
    for part in parts:
        held.append(part)
        count += len(part)
        if count < size:
            continue
        joined = np.concatenate(held)
        whole = count - count % size
        yield from (joined[start : start + size] for start in range(0, whole, size))
        held, count = [joined[whole:]], count - whole
    if count:
        yield np.concatenate(held)
