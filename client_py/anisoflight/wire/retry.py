"""Calls that are made again where the server is away for a moment: restarted, moved, or behind a balancer.

Only operations that change nothing are made again, and only as long as the caller has seen nothing of their answer.
What creates, replaces, deletes or trains is never: it may have been done although no answer came.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
import pyarrow.flight as fl

from ..contract import READS
from ..errors import from_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .reader import Call

T = TypeVar("T")

RETRY = 2.0
"""Seconds for which a call is made again by default."""
_FIRST, _LONGEST = 0.1, 2.0  # seconds between two calls: the first pause, which doubles up to the longest
_AWAY = ("UNAVAILABLE", "DRAINING")


def again(
    source: Callable[[Call], Iterator[T]], op: str, seconds: float, counts: Callable[[T], bool]
) -> Callable[[Call], Iterator[T]]:
    """A source that begins anew while the server cannot be reached, until an item that counts has come of it.

    For `seconds`, with pauses that double; then, or of an operation that changes something at once, the error is the
    server's own.
    """
    if op not in READS or seconds <= 0:
        return source

    def tried(call: Call) -> Iterator[T]:
        end, pause, seen = time.monotonic() + seconds, _FIRST, False
        while True:
            try:
                for item in source(call):
                    seen = seen or counts(item)
                    yield item
            except (fl.FlightError, pa.ArrowException) as error:
                if seen or from_arrow(error).code not in _AWAY or time.monotonic() + pause > end:
                    raise
                if call.stopped.wait(pause):
                    raise
                pause = min(2 * pause, _LONGEST)
            else:
                return

    return tried
