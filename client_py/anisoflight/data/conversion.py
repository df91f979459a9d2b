"""Images in conversion: read and transformed on all cores, in order, a few at a time."""

from __future__ import annotations

import collections
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from ..wire.pictures import Picture, check_alike, checked
from ..wire.progress import Progress
from .source import DataError, Item, Source, named
from .transforms import check, transformed

T = TypeVar("T")
Units: TypeAlias = "float | Sequence[float] | str"
"""One number, one for each channel, or "measured"."""


def each(source: Source, work: Callable[[Item], T], title: str, show: bool = True) -> Iterator[tuple[Item, Future[T]]]:
    """Every item, in order, with the result of `work` on it; twice as many as there are cores are in memory."""
    threads = os.cpu_count() or 1
    waiting: collections.deque[tuple[Item, Future[T]]] = collections.deque()
    pool = ThreadPoolExecutor(threads)
    try:
        with Progress(desc=title, unit="image", total=source.count, disable=not show, leave=False) as bar:
            for item in source.items():
                waiting.append((item, pool.submit(work, item)))
                if len(waiting) > 2 * threads:
                    yield waiting.popleft()
                    bar.update()
            while waiting:
                yield waiting.popleft()
                bar.update()
    finally:
        pool.shutdown(cancel_futures=True)


@dataclass
class Conversion:
    """The images of a source at one size, with their labels; iterate it once. Counts are those of images so far.

    size is (height, width), transform one of `TRANSFORMS` (by default resize), channels 1 or 3; None keeps what the
    images have. skip, if given, is called with the error of an image that cannot be converted, which is left out; by
    default it is raised.

    >>> from anisoflight.data import open_source
    >>> np.savez(folder / "big.npz", images=np.full((3, 64, 48, 3), 9, np.uint8))
    >>> with open_source(folder / "big.npz") as source:
    ...     small = Conversion(source, size=(8, 8), transform="center-crop", channels=1)
    ...     [(image.shape, label) for image, label in small], small.images
    ([((8, 8, 1), -1), ((8, 8, 1), -1), ((8, 8, 1), -1)], 3)
    """

    source: Source
    size: tuple[int, int] | None = None
    transform: str | None = None
    channels: int | None = None
    skip: Callable[[DataError], None] | None = None
    progress: bool = True
    mean: Units | None = None
    scale: Units | None = None
    """As in `Client.put_dataset`; by default those of the source."""

    shape: tuple[int, ...] | None = None
    """Height, width and channels of all images, known from the first."""
    images: int = 0
    left_out: int = 0
    """Images that are too small for the transform."""
    bad: int = 0
    used: set[int] = field(default_factory=set)
    """Labels of the images so far."""
    seen: set[int] = field(default_factory=set)
    """Labels of the images so far, and of those that were left out."""

    def __post_init__(self) -> None:
        check(self.transform, self.size, self.channels)
        if self.mean is None and self.scale is None and self.source.units:
            self.mean, self.scale = self.source.units["mean"], self.source.units["scale"]

    def __iter__(self) -> Iterator[tuple[Picture, int]]:
        first: Picture | None = None
        for item, future in each(self.source, self._prepared, "convert", self.progress):
            try:
                self.seen.add(item.label)
                with named(self.source.path, item.name):
                    picture = future.result()
                    if picture is None:
                        self.left_out += 1
                        continue
                    first = picture if first is None else first
                    check_alike(picture, first)
            except DataError as error:
                if self.skip is None:
                    raise
                self.bad += 1
                self.skip(error)
                continue
            self.shape = first.shape
            self.images += 1
            self.used.add(item.label)
            yield picture, item.label
        if not self.images:
            reason = f"has no images left: {self.left_out} are too small, {self.bad} cannot be read"
            raise DataError(self.source.path, "", reason)

    def _prepared(self, item: Item) -> Picture | None:
        picture = transformed(item.read(), self.transform, self.size, self.channels)
        return None if picture is None else checked(picture, self.mean is not None or self.scale is not None)
