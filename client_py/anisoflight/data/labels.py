"""Labels of images by their names: dataset.json, or folders."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from .errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

FILE = "dataset.json"
MAX_BYTES = 1 << 28
_SPLITS = {"train", "test", "val", "valid", "validation"}


def labels_of(
    path: Path, names: Sequence[str], listed: bytes | None, rule: str
) -> tuple[list[int] | None, Sequence[str]]:
    """Labels of images, None where there are none, and the names of classes; `listed` is dataset.json, if it is there.

    >>> labels_of(folder, ["cat/1.png", "dog/2.png"], None, "auto")
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


def _by_folder(
    path: Path, names: Sequence[str], folder: Callable[[str], str]
) -> tuple[list[int] | None, Sequence[str]]:
    """Classes are numbered in the order of their names; one folder is no class."""
    classes = sorted({folder(name) for name in names})
    if len(classes) < 2:
        return None, ()
    if not classes[0]:
        name = next(name for name in names if not folder(name))
        raise DataError(path, name, "lies beside folders, which are classes: it has no label; --labels none drops all")
    numbers = {name: number for number, name in enumerate(classes)}
    return [numbers[folder(name)] for name in names], classes


def _by_list(path: Path, names: Sequence[str], listed: bytes) -> list[int] | None:
    """{"labels": [["00000/img00000000.png", 6], …]}; null is no labels."""

    def fail(reason: str) -> DataError:
        return DataError(path, FILE, reason)

    try:
        said: Any = json.loads(listed)
        pairs = said["labels"] or []
        known = dict(pairs)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise fail(f'is not {{"labels": [[name, label], …]}}: {error}') from None
    if not pairs:
        return None
    for name, label in pairs:
        if not isinstance(name, str) or type(label) is not int or not 0 <= label < 1 << 31:
            raise fail(f"gives {str(name)[:100]} the label {str(label)[:40]!r}; labels are whole numbers from 0")
    if len(known) < len(pairs):
        twice = next(name for i, (name, _) in enumerate(pairs) if name in {n for n, _ in pairs[:i]})
        raise fail(f"gives {twice} two labels")
    for name in names:
        if name not in known:
            raise DataError(path, name, f"has no label in {FILE}, which has {len(known)} for {len(names)} images")
    if missing := known.keys() - set(names):
        raise fail(f"has a label for {min(missing)!r}, which is not there")
    return [known[name] for name in names]
