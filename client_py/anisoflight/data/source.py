"""What every reader of images returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from .pictures import Picture


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
    """Images that are read one after the other. Use it as a context manager where it may hold a file open."""

    path: Path
    format: str
    count: int
    labelled: bool
    items: Callable[[], Iterator[Item]]
    """The images, in order; an error of the file as a whole is a DataError."""
    classes: Sequence[str] = ()
    """Names of the classes, where the format has them."""
    close: Callable[[], None] = field(default=lambda: None)
    units: Mapping[str, Any] | None = None
    """Mean and scale of values in units of their own, where the format has them."""

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
