"""Encoded images with their labels, in a folder or in a zip as StyleGAN and EDM have them, or an .npz."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from . import arrays
from .arrays import ZIP_ERRORS, named
from .pictures import MAX_ENCODED, Picture, decoded, is_image, read_at_most
from .source import DataError, Item, Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

FILE = "dataset.json"
_MAX_LIST = 1 << 28
_SPLITS = {"train", "test", "val", "valid", "validation"}

Labels = tuple["list[int] | None", "Sequence[str]"]
"""Of images, None if there are none; and the names of classes."""


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
        with named(path, name):
            if is_image(name):
                names.append(name)
    if not names:
        raise DataError(path, "", "holds no PNG, JPEG, WebP or BMP images")
    listed = None
    if FILE in files:
        with named(path, FILE):
            listed = read(FILE, _MAX_LIST)
    labels, classes = labels_by_name(path, names, listed, rule)

    def picture(name: str) -> Picture:
        with named(path, name):
            return decoded(read(name, MAX_ENCODED))

    def items() -> Iterator[Item]:
        for i, name in enumerate(names):
            yield Item(name, -1 if labels is None else labels[i], lambda name=name: picture(name))

    return Source(path, form, len(names), labels is not None, items, classes, close)


def labels_by_name(path: Path, names: Sequence[str], listed: bytes | None, rule: str) -> Labels:
    """Labels of images; `listed` is dataset.json, if it is there.

    >>> labels_by_name(folder, ["cat/1.png", "dog/2.png"], None, "auto")
    ([0, 1], ['cat', 'dog'])
    """
    if rule == "none":
        return None, ()
    if rule == "folder":
        return _by_folder(path, names, lambda name: PurePosixPath(name).parent.name)
    if listed is not None:
        return _by_list(path, names, listed), ()
    if rule == "listed":
        return None, ()
    top = {name.partition("/")[0] for name in names if "/" in name}
    if len(top) > 1 and {name.lower() for name in top} <= _SPLITS:
        one = "train" if "train" in top else min(top)
        raise DataError(
            path,
            "",
            f"has the folders {', '.join(sorted(top))}, which are parts of a dataset and no classes; --under {one} "
            f'(under="{one}" in Python) reads one of them, --labels folder or none reads all',
        )
    return _by_folder(path, names, lambda name: name.partition("/")[0] if "/" in name else "")


def _by_folder(path: Path, names: Sequence[str], folder: Callable[[str], str]) -> Labels:
    """Classes are numbered in the order of their names; one folder is no class."""
    folders = [folder(name) for name in names]
    classes = sorted(set(folders))
    if len(classes) < 2:
        return None, ()
    if not classes[0]:
        said = "lies beside folders, which are classes: it has no label; --labels none drops all"
        raise DataError(path, names[folders.index("")], said)
    numbers = {name: number for number, name in enumerate(classes)}
    return [numbers[name] for name in folders], classes


def _by_list(path: Path, names: Sequence[str], listed: bytes) -> list[int] | None:
    """{"labels": [["00000/img00000000.png", 6], …]}; null is no labels."""

    def fail(reason: str) -> DataError:
        return DataError(path, FILE, reason)

    try:
        pairs = json.loads(listed)["labels"] or []
        known = dict(pairs)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise fail(f'is not {{"labels": [[name, label], …]}}: {error}') from None
    if not pairs:
        return None
    seen = set()
    for name, label in pairs:
        if not isinstance(name, str) or type(label) is not int or not 0 <= label < 1 << 31:
            raise fail(f"gives {str(name)[:100]} the label {str(label)[:40]!r}; labels are whole numbers from 0")
        if name in seen:
            raise fail(f"gives {name} two labels")
        seen.add(name)
    for name in names:
        if name not in known:
            raise DataError(path, name, f"has no label in {FILE}, which has {len(known)} for {len(names)} images")
    if missing := known.keys() - set(names):
        raise fail(f"has a label for {min(missing)!r}, which is not there")
    return [known[name] for name in names]
