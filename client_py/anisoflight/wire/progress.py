"""Progress bars fed by the events in a stream's metadata."""

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from tqdm.asyncio import tqdm_asyncio
from tqdm.auto import tqdm

from ..errors import stderr

T = TypeVar("T")

_DELAY = 0.5  # seconds before a bar appears: short calls show none
_LINES = 10.0  # seconds between two lines in place of a bar


class Progress(tqdm):
    """A tqdm bar; a line every ten seconds if stderr is a file or a pipe and there is no notebook."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._lines = tqdm is tqdm_asyncio and not stderr.isatty()
        self._next, self._written = time.monotonic() + _LINES, False
        if tqdm is tqdm_asyncio:
            options["file"] = stderr
        super().__init__(*args, **options)

    def display(self, *args: Any, **options: Any) -> Any:
        if not self._lines:
            return super().display(*args, **options)
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _LINES
            self._line()
        return None

    def close(self) -> None:
        if not self._lines:
            return super().close()
        if not self.disable and (self.leave or self._written):
            self._line()
        self.leave, self._next = False, float("inf")
        return super().close()

    def clear(self, *args: Any, **options: Any) -> None:
        if not self._lines:
            super().clear(*args, **options)

    def _line(self) -> None:
        self._written = True
        self.fp.write(f"{self}\n")


class Bar:
    """A tqdm bar that follows ``{"event":"batch","done":n,"total":m}`` and ``{"event":"progress","step":i,"steps":k}``.

    Batches move the bar, and the steps inside a batch are shown behind it; without batches the steps move it, and the
    part of the work is shown. One line gives the number of evaluations, if the server does. Programs that
    the server compiles, ``{"event":"compiling","program":p,"compile_s":s}``, are shown, too.
    """

    def __init__(self, title: str, unit: str, total: int | None = None, show: bool = True) -> None:
        self._bar = Progress(desc=title, unit=unit, total=total, disable=not show, delay=_DELAY, leave=False)
        self._batches, self._announced = total is not None, False

    def over(self, items: Iterable[T]) -> Iterator[T]:
        """items, which are events or have one, with every event shown."""
        try:
            for item in items:
                self.follow(getattr(item, "event", item))  # pyright: ignore[reportArgumentType]
                yield item
            if self._bar.total:  # a notebook keeps a bar that stops short, and draws it red
                self._bar.update(self._bar.total - self._bar.n)
        finally:
            self.close()

    def follow(self, event: dict[str, Any]) -> None:
        kind = event.get("event")
        if kind == "batch" and "done" in event:
            self._batches = True
            self._move(event["done"], event.get("total"))
        elif kind == "progress" and "step" in event:
            if "evaluations" in event and not self._announced and not self._bar.disable:
                self._announced = True
                with contextlib.suppress(OSError, ValueError):  # stdout is closed
                    print(f"about {event['evaluations']} evaluations of the network")
            if not self._batches:
                self._bar.set_postfix_str(event.get("part", ""), refresh=False)
                self._move(event["step"], event.get("steps"))
                return
            self.note(f"step {event['step']}/{event.get('steps', '?')}")
            self._bar.refresh()
        elif kind == "compiling":
            self.note(f"compiling {event.get('program', '')} ({event.get('compile_s', 0):.0f} s)")
            self._bar.refresh()

    def note(self, text: str) -> None:
        """Show text behind the bar."""
        self._bar.set_postfix_str(text, refresh=False)

    def close(self) -> None:
        self._bar.close()

    def _move(self, done: int, total: int | None) -> None:
        if total is not None:
            self._bar.total = total
        self._bar.update(done - self._bar.n)


@contextlib.contextmanager
def interrupts_to(take: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C in the main thread calls `take` in place of an interrupt, unless interrupts are ignored."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before in (None, signal.SIG_IGN):
        yield
        return
    signal.signal(signal.SIGINT, lambda *_: take())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
