"""What every reader of images returns, and what it refuses."""

from __future__ import annotations

import os
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..errors import AnisoflightError, BadRequestError
from .pictures import Picture


class DataError(BadRequestError):
    """BAD_DATA: images that cannot be read or converted. The message names the file, the entry, and what is wrong."""

    def __init__(self, path: str | os.PathLike[str], entry: str, reason: object) -> None:
        self.path, self.entry, self.reason = os.fspath(path), entry, str(reason) or "ends too early"
        place = f"{self.path}: {entry}" if entry else self.path
        super().__init__(f"{place}: {self.reason}", "BAD_DATA")

    def __reduce__(self) -> Any:
        return DataError, (self.path, self.entry, self.reason)


@contextmanager
def named(path: Path, entry: str = "") -> Iterator[None]:
    """Failures to read an entry of a file, of Python's libraries and pyarrow, as a DataError of it."""
    try:
        yield
    except DataError:
        raise
    except AnisoflightError as error:
        raise DataError(path, entry, error.message) from error
    except (
        ValueError, LookupError, TypeError, RuntimeError, OSError, EOFError,
        pa.ArrowException, tarfile.TarError, zipfile.BadZipFile, zlib.error,
    ) as error:  # fmt: skip
        raise DataError(path, entry, str(error).partition("\n")[0]) from error


@dataclass(frozen=True)
class Item:
    """An image that is not decoded yet."""

    name: str
    """What errors call it."""
    label: int
    """Its class; −1 for none."""
    read: Callable[[], Picture]
    """Decodes it: uint8, or float32 in [−1, 1]; ValueError or OSError if that is impossible."""


@dataclass(frozen=True)
class Source:
    """Images that are read one after the other. Use it as a context manager: it may hold a file open."""

    path: Path
    format: str
    count: int
    labelled: bool
    items: Callable[[], Iterator[Item]]
    """The images, in order; an error of the file as a whole is a DataError."""
    classes: Sequence[str] = ()
    """Names of the classes, if the format has them."""
    close: Callable[[], None] = lambda: None
    units: Mapping[str, Any] | None = None
    """Mean and scale of values in units of their own, if the format has them."""
    by_folder: bool = False
    """Whether classes are folders, numbered in the order of their names."""
    ignored: Sequence[str] = ()
    """What lies there and is not read: hidden and system folders, hidden pictures, links to folders, arrays."""

    def with_classes(self, used: Collection[int]) -> Source:
        """The source if only these classes have pictures that are used: the others' numbers close up, one is none."""
        numbers = {label: number for number, label in enumerate(sorted(used))} if len(used) > 1 else {}

        def items() -> Iterator[Item]:
            return (replace(item, label=numbers.get(item.label, -1)) for item in self.items())

        return replace(self, labelled=bool(numbers), classes=[self.classes[label] for label in numbers], items=items)

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
