"""Images to statistics, in stretches that are stored until the row is done, so that an interrupted run continues.

A stretch is a range of consecutive images through features. It depends on the source, the features and its bounds
alone, and stretches are folded in order, so the result does not depend on who computed which.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ..images import Pixels
from ..moments import RunningMoments
from ..wire.progress import Progress
from .errors import FidError
from .features import Features
from .reference import save_arrays
from .sources import Source

Array = np.ndarray[Any, Any]
Bounds = tuple[int, int]
"""Images start … stop − 1."""
Look = Callable[..., "Stretch"]
"""Computes a stretch; the second argument is called with numbers of finished images, a third is `others` of `look`."""


@dataclass(frozen=True)
class Pace:
    """How a pass is divided; only the batch and the stretch affect the result, by rounding."""

    batch: int = 64
    """Images at a time through the features."""
    checkpoint: int = 2000
    """Images of a stretch, of a request to the server, and between two checkpoints."""
    progress: bool = True


@dataclass(frozen=True)
class Stretch:
    """Some images of a source through features, as the arrays of a file."""

    features: Array
    """[n, D] float64, or float32 if that holds them exactly."""
    hashes: Array
    """[n, 32] uint8: SHA-256 of each image's pixels."""
    shape: Array
    """Of one image [H, W, C]."""
    evaluations: Array
    """NFE that the server counted; empty for images that are no samples."""
    seconds: Array
    ode_errors: Array = field(default_factory=lambda: np.zeros(0))
    """Of samples that are probes, as `Source.ode_errors`; files of 0.1 have none."""

    @classmethod
    def load(cls, file: Path, prefix: str = "") -> Stretch:
        """The stretch of an npz; a prefix precedes the names of entries."""
        with np.load(file, allow_pickle=False) as arrays:
            return cls(**{name: arrays[prefix + name] for name in cls.__dataclass_fields__ if prefix + name in arrays})


def bounds(count: int, length: int) -> list[Bounds]:
    """The stretches of a source.

    >>> bounds(5, 2)
    [(0, 2), (2, 4), (4, 5)]
    """
    return [(start, min(start + length, count)) for start in range(0, count, length)]


def look(
    source: Source,
    features: Features,
    batch: int,
    stretch: Bounds,
    tick: Callable[[int], object] | None = None,
    others: Mapping[Path, Features] | None = None,
) -> Stretch:
    """Compute a stretch, `batch` images at a time, and store what `others` give for the same images in their files."""
    began = time.perf_counter()
    others = others or {}
    functions = {function.hash: function for function in (features, *others.values())}
    found: dict[str, list[Array]] = {name: [] for name in functions}
    hashes: list[bytes] = []
    errors = [np.zeros(0)]
    shape: tuple[int, ...] = ()
    for images in rebatched(source.read(*stretch), batch):
        shape = images.shape[1:]
        hashes += [hashlib.sha256(image.tobytes()).digest() for image in images]
        for name, function in functions.items():
            found[name].append(function(images))
        stop = stretch[0] + len(hashes)
        errors.append(source.ode_errors(stop - len(images), stop))
        if tick is not None:
            tick(len(images))
    if len(hashes) != stretch[1] - stretch[0]:
        raise FidError(f"{len(hashes)} images came, {stretch[1] - stretch[0]} were asked for", "BAD_IMAGES")
    facts = (
        np.frombuffer(b"".join(hashes), np.uint8).reshape(-1, 32),
        np.array(shape, np.int64),
        np.array(sorted(source.evaluations), np.int64),
        np.array(time.perf_counter() - began),
        np.concatenate(errors),
    )
    for file, function in others.items():
        save_arrays(file, vars(Stretch(_narrowed(found[function.hash]), *facts)))
    return Stretch(_narrowed(found[features.hash]), *facts)


def _narrowed(parts: list[Array]) -> Array:
    whole = np.concatenate(parts)
    with np.errstate(over="ignore"):
        narrow = whole.astype(np.float32)
    return narrow if np.array_equal(narrow, whole) else whole


def rebatched(parts: Iterable[Pixels], size: int) -> Iterator[Pixels]:
    """The same images, `size` at a time; the last batch may be smaller.

    >>> [len(batch) for batch in rebatched([np.zeros((3, 2, 2, 1)), np.zeros((4, 2, 2, 1))], 2)]
    [2, 2, 2, 1]
    """
    images = (image for part in parts for image in part)
    while batch := list(islice(images, size)):
        yield np.stack(batch)


class Seen:
    """The statistics of images, at the end of a whole source."""

    def __init__(self, dimension: int, keep_rows: bool) -> None:
        self.running = RunningMoments(dimension)
        self.shape: list[int] = []
        """Of one image [H, W, C]."""
        self.digest = bytes(32)
        """h_i = SHA-256(h_{i−1}, SHA-256(pixels of image i)), h_{−1} = 0, which does not depend on the stretches."""
        self.seconds = 0.0
        self.evaluations: set[int] = set()
        self._ode_errors: list[Array] = []
        self._rows: list[Array] | None = [] if keep_rows else None

    def fold(self, stretch: Stretch) -> None:
        """Add the next stretch."""
        self.shape = stretch.shape.tolist()
        self.running.update(stretch.features)
        for found in stretch.hashes:
            self.digest = hashlib.sha256(self.digest + found.tobytes()).digest()
        self.seconds += float(stretch.seconds)
        self.evaluations.update(stretch.evaluations.tolist())
        self._ode_errors.append(stretch.ode_errors)
        if self._rows is not None:
            self._rows.append(stretch.features.astype(np.float32))

    def ode_error(self) -> float:
        """100 × the rms distance per pixel of the probes to the exact solution from the same noise."""
        return 100 * float(np.sqrt(np.concatenate(self._ode_errors).mean()))

    def rows(self) -> Array:
        """The features [N, D] as float32, with keep_rows."""
        assert self._rows is not None
        return np.concatenate(self._rows)


def stretch_file(folder: Path, stretch: Bounds) -> Path:
    """The file of a stretch."""
    return folder / f"{stretch[0]:012d}-{stretch[1]:012d}.npz"


def see(
    look: Look,
    count: int,
    dimension: int,
    folder: Path,
    pace: Pace,
    title: str,
    keep_rows: bool = False,
    note: Callable[[int], str] = lambda _: "",
) -> Seen:
    """The statistics of all images. A finished stretch is stored in `folder`; an interrupted one is lost.

    `note` returns the text behind the bar, given the number of further images.
    """
    wanted = bounds(count, pace.checkpoint)
    kept = sum(stop - start for start, stop in wanted if stretch_file(folder, (start, stop)).exists())
    if 0 < kept < count:
        Progress.write(f"going on from {kept} of {count} images")
    seen = Seen(dimension, keep_rows)
    with Progress(total=count, desc=title, unit="image", disable=not pace.progress) as bar:

        def tick(images: int) -> None:
            bar.set_postfix_str(note(images), refresh=False)
            bar.update(images)

        for stretch in wanted:
            file = stretch_file(folder, stretch)
            if file.exists():
                found = Stretch.load(file)
                bar.update(stretch[1] - bar.n)
            else:
                found = look(stretch, tick)
                save_arrays(file, vars(found))
                tick(stretch[1] - bar.n)
            seen.fold(found)
    return seen
