"""The result of every reader of images, and its error."""

from __future__ import annotations

import csv
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
from ..wire.pictures import Picture


class DataError(BadRequestError):
    """BAD_DATA: images cannot be read or converted. The message names the file, the entry and the fault."""

    def __init__(self, path: str | os.PathLike[str], entry: str, reason: object) -> None:
        self.path, self.entry, self.reason = os.fspath(path), entry, str(reason) or "ends too early"
        place = f"{self.path}: {entry}" if entry else self.path
        super().__init__(f"{place}: {self.reason}", "BAD_DATA")

    def __reduce__(self) -> Any:
        return DataError, (self.path, self.entry, self.reason)


@contextmanager
def named(path: Path, entry: str = "") -> Iterator[None]:
    """Turns errors of Python's libraries and pyarrow into a DataError of an entry of a file."""
    try:
        yield
    except DataError:
        raise
    except AnisoflightError as error:
        raise DataError(path, entry, error.message) from error
    except (
        ValueError, LookupError, TypeError, RuntimeError, OSError, EOFError,
        csv.Error, pa.ArrowException, tarfile.TarError, zipfile.BadZipFile, zlib.error,
    ) as error:  # fmt: skip
        raise DataError(path, entry, str(error).partition("\n")[0]) from error


@dataclass(frozen=True)
class Item:
    """An image that is not decoded yet."""

    name: str
    """Its name in errors."""
    label: int
    """Its class; −1 for none."""
    read: Callable[[], Picture]
    """Decodes it: uint8, or float32 in [−1, 1]; ValueError or OSError if that fails."""


@dataclass(frozen=True)
class Source:
    """Images that are read one after the other. Use it as a context manager: it may hold a file open."""

    path: Path
    format: str
    count: int
    labelled: bool
    items: Callable[[], Iterator[Item]]
    """The images, in order; an error of the whole file is a DataError."""
    classes: Sequence[str] = ()
    """Names of the classes, if the format has them."""
    close: Callable[[], None] = lambda: None
    units: Mapping[str, Any] | None = None
    """Mean and scale of values in other units, if the format has them."""
    ignored: Sequence[str] = ()
    """What is not read: files of other kinds, hidden folders and images, other columns."""

    def without_labels(self) -> Source:
        """The source without labels."""

        def items() -> Iterator[Item]:
            return (replace(item, label=-1) for item in self.items())

        return replace(self, labelled=False, classes=(), items=items)

    def without_images(self, used: Collection[int], seen: Collection[int] = ()) -> list[str]:
        """The classes, also those `seen`, that are not used, by name or number. They keep their numbers."""
        unused = sorted({*range(len(self.classes)), *seen} - {-1, *used})
        return [self.classes[label] if label < len(self.classes) else str(label) for label in unused]

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
