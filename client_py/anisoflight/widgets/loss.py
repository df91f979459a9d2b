"""The loss of a run while it trains."""

import threading
import weakref
from typing import Any

import anywidget
import numpy as np
import traitlets

from ..errors import AnisoflightError
from ..operations.training import Run
from .script import script

MOST = 500
"""Most points of the curve; longer runs have means over several steps."""
_PAUSE = 0.25  # seconds between two updates
_ENDED = ("done", "cancelled", "failed", "broken")


class LossCurve(anywidget.AnyWidget):
    """The loss of a run while it trains, by `Run.step` in another cell or by `Run.start`.

    A thread follows the run until it has ended, or until `close`. Trait: `shown` has the lists step, loss and mean (of
    the last twentieth of the steps so far), and the run's state.
    """

    _esm = script("loss")
    shown = traitlets.Dict().tag(sync=True)

    def __init__(self, run: Run) -> None:
        super().__init__(shown=_shown([], [], run.state))
        self._end = threading.Event()
        self._thread = threading.Thread(
            target=_follow, args=(weakref.ref(self), run, self._end), name="anisoflight-loss", daemon=True
        )
        self._thread.start()
        weakref.finalize(self, self._end.set)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the run has ended and its last row is drawn; reports whether that came in `timeout` seconds."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def close(self) -> None:
        """Stop following, and remove the widget."""
        self._end.set()
        super().close()


def _follow(widget: weakref.ref[LossCurve], run: Run, end: threading.Event) -> None:
    """Thread: look for new rows, and show them."""
    steps: list[int] = []
    losses: list[float] = []
    state = ""
    while not end.is_set():
        try:
            info = run.info
            last = int(info["step"])
            if last > (steps[-1] if steps else 0):
                for row in run.watch(len(steps)):
                    steps.append(row["step"])
                    losses.append(row["loss"])
                    if row["step"] >= last or end.is_set():
                        break
        except AnisoflightError:  # the server or the run is gone
            return
        shown = widget()
        if shown is None:
            return
        if (last, info["state"]) != (shown.shown["last"], state):
            state = info["state"]
            shown.shown = _shown(steps, losses, state)
        del shown
        if state in _ENDED:
            return
        end.wait(_PAUSE)


def _shown(steps: list[int], losses: list[float], state: str) -> dict[str, Any]:
    """The data of the page: at most `MOST` points, each a mean over equally many steps."""
    size = max(1, -(-len(steps) // MOST))
    cuts = range(0, len(steps), size)
    loss = [float(np.mean(losses[cut : cut + size])) for cut in cuts]
    mean = [float(np.mean(loss[max(0, i - max(1, len(loss) // 20) + 1) : i + 1])) for i in range(len(loss))]
    ends = [int(steps[min(cut + size, len(steps)) - 1]) for cut in cuts]
    return {"step": ends, "loss": loss, "mean": mean, "state": state, "last": int(steps[-1]) if steps else 0}
