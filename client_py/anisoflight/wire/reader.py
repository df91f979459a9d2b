"""Blocking calls that Ctrl-C can stop.

pyarrow's reads and writes do not return to the interpreter while they wait. So every blocking call runs in a daemon
thread, and the caller waits on a queue, which an interrupt does wake. Three rules stop the other side as well:

- the thread holds the state of the call, never the `Stream` that the caller iterates, so dropping the stream is
  noticed;
- a finalizer on the stream cancels the call, and so does leaving the iteration;
- the reader is cancelled first: closing a writer would wait for a server that may never answer.

At its end the interpreter waits briefly for the threads of cancelled calls: it would abort with one inside gRPC.

A forked process has none of gRPC's threads: a call, and even the end of a connection, would wait for ever. There every
call fails at once, and gRPC's objects are never freed.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import queue
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

import pyarrow as pa
import pyarrow.flight as fl

from ..errors import ForkedError, from_arrow

T = TypeVar("T")

_TICK = 0.1  # seconds between two looks at whether the call was cancelled
_AHEAD = 4  # items read before the caller asks for them
_FAREWELL = 2.0  # seconds that the end of the interpreter waits for cancelled calls
_FORKED = 'a client has no connection in a fork of its process; let multiprocessing and DataLoader start by "spawn"'
_threads: weakref.WeakKeyDictionary[threading.Thread, Call] = weakref.WeakKeyDictionary()


@atexit.register
def _end_threads() -> None:
    end = time.monotonic() + _FAREWELL
    running = list(_threads.items())
    for _, call in running:
        call.cancel()
    for thread, _ in running:
        thread.join(max(0.0, end - time.monotonic()))


def abandon(connections: Iterable[Any]) -> None:
    """In a forked process: calls fail, and gRPC's objects are never freed, not even at the end of the interpreter."""
    calls = list(_threads.values())
    for thing in (*(call._cancel for call in calls), *(connection._client for connection in connections)):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
    for call in calls:
        call.__init__()  # the threads that held its locks are not in this process
        call.fail(ForkedError(_FORKED))
    _threads.clear()
    for connection in connections:
        connection._client = Abandoned()


class Abandoned:
    """Replaces Arrow's client in a forked process: its calls fail."""

    def __getattr__(self, name: str) -> Any:
        if name == "close":
            return lambda: None
        raise ForkedError(_FORKED)


def start_thread(target: Callable[..., None], call: Call, *args: Any) -> threading.Thread:
    """A daemon thread that runs `target(call, *args)`, which returns soon after the call is cancelled."""
    thread = threading.Thread(target=target, args=(call, *args), name="anisoflight", daemon=True)
    _threads[thread] = call
    thread.start()
    return thread


class Call:
    """What the threads of one call share: a queue to the caller, and how to stop."""

    def __init__(self) -> None:
        self.stopped = threading.Event()
        self._items: queue.Queue[tuple[str, Any]] = queue.Queue(_AHEAD)
        self._cancel: Callable[[], None] | None = None
        self._lock = threading.Lock()

    def on_cancel(self, cancel: Callable[[], None]) -> None:
        """Call `cancel` once when the caller leaves, or at once if it has left."""
        with self._lock:
            if not self.stopped.is_set():
                self._cancel = cancel
                return
        cancel()

    def cancel(self) -> None:
        with self._lock:
            self.stopped.set()
            cancel, self._cancel = self._cancel, None
        if cancel is not None:
            cancel()

    def fail(self, error: BaseException) -> None:
        """Raise error at the caller."""
        self.put("failure", error)

    def put(self, kind: str, value: object = None) -> None:
        """Hand an item, a failure or the end to the caller; waits while the queue is full."""
        while not self.stopped.is_set():
            with contextlib.suppress(queue.Full):
                return self._items.put((kind, value), timeout=_TICK)
        return None

    def get(self) -> tuple[str, Any]:
        """The next item; the waits are short, so that an interrupt is noticed on every platform."""
        while True:
            with contextlib.suppress(queue.Empty):
                return self._items.get(timeout=_TICK)


def _pump(call: Call, source: Callable[[Call], Iterator[Any]]) -> None:
    """Thread: hand what source yields to the caller."""
    try:
        for item in source(call):
            if call.stopped.is_set():
                return
            call.put("item", item)
    except Exception as error:  # carried to the caller's thread
        call.fail(error)
    else:
        call.put("end")


class Stream(Generic[T]):
    """The items that `source` yields in a daemon thread, to be iterated once.

    `source` gets the `Call`, registers there how to cancel what it waits for, and may block. Leaving the iteration, by
    an exception, an interrupt or a break, and dropping the stream cancel the call.

    >>> list(Stream(lambda call: iter("abc")))
    ['a', 'b', 'c']
    """

    def __init__(self, source: Callable[[Call], Iterator[T]]) -> None:
        self._call = Call()
        self.close = weakref.finalize(self, self._call.cancel)
        start_thread(_pump, self._call, source)

    def __iter__(self) -> Iterator[T]:
        try:
            while True:
                kind, value = self._call.get()
                if kind == "end":
                    return
                if kind == "failure":
                    raise from_arrow(value) if isinstance(value, fl.FlightError | pa.ArrowException) else value
                yield value
        finally:
            self.close()
