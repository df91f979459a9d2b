"""Locks on files, for programs that use a folder at the same time, on one machine or on several that share it."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

LOCKS = fcntl is not None
"""Whether this system has the locks."""


_TICK = 0.1  # seconds between two attempts; a blocking flock would ignore Ctrl-C on some platforms


def lock_file(file: IO[bytes], waiting: Callable[[], None] | None = None) -> None:
    """Lock an open file until it is closed; calls `waiting` once if another program has locked it.

    It is flock(2): the kernel releases it when the process ends. Between machines it works if the folder's file system
    supports it, as for the server's data folder. Windows has none, and nothing is locked.
    """
    while not try_lock(file):
        if waiting is not None:
            waiting()
            waiting = None
        time.sleep(_TICK)


def try_lock(file: IO[bytes]) -> bool:
    """Lock a file unless another program has locked it; reports whether it is locked now."""
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


@contextlib.contextmanager
def exclusive(path: Path, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """A context that one program at a time enters for a path, which is a file meanwhile."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as open_file:
            try:
                file = open_file.enter_context(path.open("ab"))
            except FileNotFoundError:  # a holder has removed the empty folder
                continue
            lock_file(file, waiting)
            if not _is_at(path, file):  # its holder has removed it
                continue
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return


def _is_at(path: Path, file: IO[bytes]) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False
