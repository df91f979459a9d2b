"""Entries of data folders brought from one to another, by links where they can be.

What is stored is written once and never changed, so that a link is as good as a copy.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def bring(source: Path, to: Path, kinds: Sequence[str]) -> None:
    """Give a folder what a data folder has of these kinds and it has not, by links where they can be."""
    for kind in kinds:
        for entry in entries(source / kind):
            publish(entry, to / kind / entry.name, to)


def publish(entry: Path, to: Path, aside: Path) -> None:
    """Put an entry to its place as a whole, by way of a folder of the same file system; what is there stays."""
    if to.exists():
        return
    with tempfile.TemporaryDirectory(prefix=".", dir=aside) as held:
        _copy_tree(entry, Path(held) / entry.name)
        to.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.rename(Path(held) / entry.name, to)
        except OSError:
            if not to.exists():
                raise


def entries(folder: Path) -> list[Path]:
    """What a folder holds, but for what is being written."""
    return [entry for entry in folder.iterdir() if not entry.name.startswith(".")] if folder.is_dir() else []


def _copy_tree(source: Path, to: Path) -> None:
    """Copy a file or a folder, by links where they can be."""
    if source.is_dir():
        shutil.copytree(source, to, copy_function=_link)
    else:
        _link(source, to)


def _link(source: str | Path, to: str | Path) -> None:
    try:
        os.link(source, to)
    except OSError:  # another file system
        shutil.copy2(source, to)
