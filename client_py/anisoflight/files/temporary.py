"""Files that appear complete, and temporary folders that are removed even if their process was killed.

A folder ``anisoflight-…`` holds a file ``lock``, which its process keeps locked (flock). A maker of such a folder
removes those that nobody has locked. The command line does the same.
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
_FRESH = 60.0  # seconds after which its maker has locked a folder


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write, which becomes `path` if the block ends without an error; readers see the old or the new one."""
    path = path_of(path)
    if path.exists() and not path.is_file():  # a pipe or a device
        with path.open("wb") as file:
            yield file
        return
    path = path.resolve()  # a link stays one
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("w+b") as file:  # numpy.save ignores a full disk with "wb"
            yield file
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            path.open("ab").close()  # an error if it is read-only
            shutil.copymode(path, part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


class TemporaryFolder:
    """A private folder, until `close`, the end of its context or the end of Python."""

    def __init__(self, parent: str | None = None) -> None:
        parent = parent or tempfile.gettempdir()
        if LOCKS:
            _sweep(parent)
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        self.lock = (self.path / _LOCK).open("ab")
        """The locked file; a process that inherits its descriptor holds the folder, too."""
        try_lock(self.lock)
        self.close = weakref.finalize(self, _remove, self.path, self.lock, os.getpid())

    def left(self) -> None:
        """In a forked process: release the folder."""
        self.lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _remove(path: Path, lock: IO[bytes], owner: int) -> None:
    if os.getpid() == owner:  # not a fork of it
        shutil.rmtree(path, ignore_errors=True)
    lock.close()


def _sweep(parent: str) -> None:
    """Remove the folders of this user whose processes have ended."""
    for path in Path(parent).glob(_PREFIX + "*"):
        with contextlib.suppress(OSError):  # in use, removed meanwhile, or another kind of folder
            found = path.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or time.time() - found.st_mtime < _FRESH:
                continue
            with (path / _LOCK).open("rb") as lock:
                if try_lock(lock):
                    shutil.rmtree(path)
