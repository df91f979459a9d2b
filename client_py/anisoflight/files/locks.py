"""Locks on files, for programs that work in one folder at the same time, on one machine or several that share it."""

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


_TICK = 0.1  # seconds between two attempts: a blocking flock hears no Ctrl-C on every platform


def lock_file(file: IO[bytes], waiting: Callable[[], None] | None = None) -> None:
    """Hold a file that is open until it is closed; calls `waiting` once where another program holds it.

    The lock is flock(2)'s: the kernel gives it back when its holder ends, however it ends. Between machines it holds
    where the folder's file system carries it, as for the server's data folder. Windows has none, and nothing is held.
    """
    while not try_lock(file):
        if waiting is not None:
            waiting()
            waiting = None
        time.sleep(_TICK)


def try_lock(file: IO[bytes]) -> bool:
    """Hold a file as `lock_file` does, unless another program holds it; whether this one does now."""
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


@contextlib.contextmanager
def exclusive(path: Path, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Within this context no other program is within that of the same path, a file that is there meanwhile."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as open_file:
            try:
                file = open_file.enter_context(path.open("ab"))
            except FileNotFoundError:  # a holder has removed the folder, which was empty
                continue
            lock_file(file, waiting)
            if not _is_at(path, file):  # its holder has removed it: whoever comes next makes another
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
