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
    """Give a folder what a data folder has of these kinds and it has not; not what is being written there."""
    for kind in kinds:
        for entry in (source / kind).glob("[!.]*"):
            publish(entry, to / kind / entry.name, to)


def publish(entry: Path, to: Path, aside: Path) -> None:
    """Put a file or folder to its place as a whole, by way of a folder of the same file system; what is there stays."""
    if to.exists():
        return
    with tempfile.TemporaryDirectory(prefix=".", dir=aside) as part:
        copy = Path(part) / entry.name
        if entry.is_dir():
            shutil.copytree(entry, copy, copy_function=_link)
        else:
            _link(entry, copy)
        to.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.rename(copy, to)
        except OSError:  # another program was faster
            if not to.exists():
                raise


def _link(source: str | Path, to: str | Path) -> None:
    try:
        os.link(source, to)
    except OSError:  # another file system
        shutil.copy2(source, to)
