"""Encoded images in a folder, or in a zip as StyleGAN and EDM have them; a zip of arrays is an .npz."""

from __future__ import annotations

import os
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from . import arrays
from .errors import DataError
from .labels import FILE, MAX_BYTES, labels_of
from .pictures import MAX_ENCODED, Picture, decoded, is_image, read_at_most
from .source import Item, Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# zipfile raises RuntimeError of an encrypted entry, its NotImplementedError of an unknown compression.
ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError, OSError)


def folder(path: Path, rule: str) -> Source:
    """A folder of images and folders, in the order of their paths."""

    def raised(error: OSError) -> None:
        raise error

    def read(name: str, most: int) -> bytes:
        with (path / name).open("rb") as file:
            return read_at_most(file, most)

    names = [
        Path(inside, name).relative_to(path).as_posix()
        for inside, _, files in os.walk(path, onerror=raised)
        for name in files
    ]
    return _encoded(path, "folder of images", names, read, rule)


def archive(path: Path, rule: str, layout: str | None = None, under: str = "") -> Source:
    """A zip of images, of those in its folder `under` alone if that is given, or an .npz."""
    try:
        held = zipfile.ZipFile(path)
    except ZIP_ERRORS as error:
        raise DataError(path, "", f"is no whole zip: {error}") from error
    try:
        return _archive(path, held, rule, layout, under)
    except BaseException:
        held.close()
        raise


def _archive(path: Path, held: zipfile.ZipFile, rule: str, layout: str | None, under: str) -> Source:
    names: dict[str, zipfile.ZipInfo] = {}
    for info in held.infolist():
        if info.is_dir():
            continue
        name = info.filename
        if "\\" in name or name.startswith("/") or not set(name.split("/")).isdisjoint(("", ".", "..")):
            raise DataError(path, name, "is no name of a file in a folder; names are relative and never lead out of it")
        if name in names:
            raise DataError(path, name, "is there twice")
        names[name] = info
    if under:
        names = {name.removeprefix(f"{under}/"): names[name] for name in names if name.startswith(f"{under}/")}
        if not names:
            raise DataError(path, under, "is no folder in this zip")
    if any(PurePosixPath(name).suffix == ".npy" for name in names):
        return arrays.npz(path, held, names, layout)

    def read(name: str, most: int) -> bytes:
        with held.open(names[name]) as file:
            return read_at_most(file, most)

    return _encoded(path, "zip of images", list(names), read, rule, held.close)


def _encoded(
    path: Path,
    form: str,
    files: list[str],
    read: Callable[[str, int], bytes],
    rule: str,
    close: Callable[[], None] = lambda: None,
) -> Source:
    names = []
    for name in sorted(files):
        try:
            if is_image(name):
                names.append(name)
        except ValueError as error:
            raise DataError(path, name, error) from None
    if not names:
        raise DataError(path, "", "holds no PNG, JPEG, WebP or BMP images")
    listed = None
    if FILE in files:
        try:
            listed = read(FILE, MAX_BYTES)
        except ZIP_ERRORS as error:
            raise DataError(path, FILE, error) from error
    labels, classes = labels_of(path, names, listed, rule)

    def picture(name: str) -> Picture:
        try:
            return decoded(read(name, MAX_ENCODED))
        except ZIP_ERRORS as error:
            raise ValueError(error) from error

    def items() -> Iterator[Item]:
        for i, name in enumerate(names):
            yield Item(name, -1 if labels is None else labels[i], lambda name=name: picture(name))

    return Source(path, form, len(names), labels is not None, items, classes, close)
