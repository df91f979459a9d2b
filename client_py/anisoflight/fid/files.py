"""Images in files, in every format that `anisoflight.data` reads, as batches of bytes; errors name the entry."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data import DataError, open_source
from .errors import FidError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..data import Item
    from ..images import Pixels

_BATCH = 256


@contextmanager
def _named(path: Path, entry: str = "") -> Iterator[None]:
    """Failures to read path, or an entry of it, as errors that name both."""
    try:
        yield
    except DataError as error:
        raise FidError(str(error.message), "BAD_IMAGES") from error
    except (ValueError, OSError) as error:
        if isinstance(error, FidError):
            raise
        raise FidError(DataError(path, entry, error).message, "BAD_IMAGES") from error


class Files:
    """Images at a path, all of one shape; labels where a file lists them."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise FidError(f"there is nothing at {path}; images are a folder or a file of them", "BAD_IMAGES")
        self.path = path
        with _named(path):
            self._source = open_source(path, labels="listed")
        self.count = self._source.count

    def identity(self) -> dict[str, Any]:
        known = {"images": str(self.path.resolve()), "count": self.count}
        if not self.path.is_dir():
            stat = self.path.stat()
            return {**known, "bytes": stat.st_size, "changed": stat.st_mtime_ns}
        names = [item.name for item in self._source.items()]
        stats = [(self.path / name).stat() for name in (names[0], names[-1])]
        return {**known, "ends": [(stat.st_size, stat.st_mtime_ns) for stat in stats]}

    def labels(self) -> np.ndarray[Any, Any] | None:
        if not self._source.labelled:
            return None
        with _named(self.path):
            return np.array([item.label for item in self._source.items()])

    def read(self, start: int, stop: int) -> Iterator[Pixels]:
        with _named(self.path):
            first = next(iter(self._source.items()))
            shape = self._pixels(first).shape
            items = islice(self._source.items(), start, stop)
            while batch := list(islice(items, _BATCH)):
                images = []
                for item in batch:
                    images.append(self._pixels(item))
                    if images[-1].shape != shape:
                        sizes = f"is {_size(images[-1].shape)}, where {first.name} is {_size(shape)}"
                        raise DataError(self.path, item.name, sizes)
                yield np.stack(images)

    def _pixels(self, item: Item) -> Pixels:
        with _named(self.path, item.name):
            pixels = item.read()
            if pixels.dtype != np.uint8 or pixels.shape[2] not in (1, 3):
                raise ValueError(f"holds {pixels.dtype} {pixels.shape}; FID sees uint8 of one or three channels")
            return pixels


def _size(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape))
