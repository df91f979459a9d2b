"""Files that appear whole, and temporary folders that a killed process leaves to the next one to remove.

A folder ``anisoflight-…`` holds a file ``lock``, which its process keeps locked (flock) for as long as it lives,
however it ends. Whoever makes such a folder removes those that nobody holds. The command line does the same.
"""

import contextlib
import os
import shutil
import stat
import tempfile
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Self

from . import path_of
from .locks import LOCKS, try_lock

_PREFIX = "anisoflight-"
_LOCK = "lock"
_FRESH = 60.0  # seconds for which a folder is left alone, since its maker may not have locked it yet


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write to, which becomes `path` when the block ends well: a reader sees the old one or the new one."""
    path = path_of(path)
    if path.exists() and not path.is_file():  # a pipe or a device
        with path.open("wb") as file:
            yield file
        return
    path = path.resolve()  # a link stays one
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("w+b") as file:  # numpy.save would write to "wb" by C, without a word of a full disk
            yield file
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            path.open("ab").close()  # one that must not be written to is an error, as elsewhere
            shutil.copymode(path, part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


class TemporaryFolder:
    """A folder that this user alone can read, until `close`, the end of its context or the end of Python."""

    def __init__(self, parent: str | None = None) -> None:
        parent = parent or tempfile.gettempdir()
        if LOCKS:  # else it cannot be told whose they are
            _sweep(parent)
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        self.lock = (self.path / _LOCK).open("ab")
        """The file that is locked; a process that inherits its descriptor holds the folder, too."""
        try_lock(self.lock)
        self.close = weakref.finalize(self, _remove, self.path, self.lock, os.getpid())

    def left(self) -> None:
        """In a fork of its process: let go of it, so that it is held no longer than by that."""
        self.lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _remove(path: Path, lock: IO[bytes], owner: int) -> None:
    if os.getpid() == owner:  # and no fork of it
        shutil.rmtree(path, ignore_errors=True)
    lock.close()


def _sweep(parent: str) -> None:
    """Remove the folders of this user there whose processes have ended without doing so."""
    for path in Path(parent).glob(_PREFIX + "*"):
        with contextlib.suppress(OSError):  # somebody holds it, or removes it, or it is none of these folders
            found = path.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or time.time() - found.st_mtime < _FRESH:
                continue
            with (path / _LOCK).open("rb") as lock:
                if try_lock(lock):
                    shutil.rmtree(path)
