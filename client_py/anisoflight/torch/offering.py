"""The exchange OfferNetwork: the server asks about a network of this process, and a function answers.

`anisoflight.torch.few` uses `offer` to answer for any denoiser of PyTorch.
"""

import queue
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa

from ..errors import bad_tensor
from ..latents import draws
from ..wire.calls import Connection
from ..wire.progress import interrupts_to
from ..wire.tensors import to_numpy

Array = np.ndarray[Any, Any]

_NOISE = 0x6576616C  # stream of the server's generator
_MAX_VALUES = 1 << 18  # of a message


@dataclass(frozen=True)
class Question:
    """The rows of a question about a network: trajectories from latents, or noisy images x = x_0 + √g ε."""

    image: Array
    """[B] indices of the images."""
    label: Array
    """[B] conditions of the samples, −1 for none."""
    seed: Array
    """[B] seeds of the latents, or of the noise."""
    g: Array
    """[B] noise variances; 0 for trajectories."""

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> Self:
        """The question of a record batch."""
        columns = {name: to_numpy(batch.column(name)) for name in batch.schema.names}
        return cls(seed=columns.pop("noise"), **columns)

    def part(self, rows: slice) -> Self:
        """The question for some of the rows."""
        return type(self)(**{name: value[rows] for name, value in vars(self).items()})

    def noise(self, shape: Sequence[int]) -> Array:
        """ε [B, *shape], float32: the noise that the server would use for these images."""
        return draws(self.seed, shape, _NOISE)


def offer(
    client: Connection, request: Mapping[str, Any], answer: Callable[[dict[str, Any], Question], Array]
) -> dict[str, Any]:
    """Offer a network and answer the server's questions; returns the server's last message.

    `answer(event, question)` returns the numbers that `event["ask"]` asks for (docs/wire.md, OfferNetwork); they are
    sent as float64. Ctrl-C ends the exchange early with what the server has; `complete` is then False.
    """
    ready: queue.SimpleQueue[pa.RecordBatch | None] = queue.SimpleQueue()
    schema = pa.schema([pa.field("values", pa.float64(), nullable=False)])
    stream = client.converse("OfferNetwork", request, schema, iter(ready.get, None), lambda: ready.put(None))
    end: dict[str, Any] = {}
    interrupts = _Interrupts()
    with interrupts_to(interrupts.take):
        try:
            for message in stream:
                event = message.event
                if "ask" in event and interrupts.seen < 2:
                    values = interrupts.unless_seen(lambda at=message: answer(at.event, Question.of(at.batch)))
                    if values is None:
                        interrupts.seen = 2
                        ready.put(None)
                        continue
                    values = np.asarray(values, np.float64).ravel()
                    if len(values) != event.get("wants", len(values)):
                        raise bad_tensor(f"an answer must have {event['wants']} values, got {len(values)}")
                    for begin in range(0, len(values), _MAX_VALUES):
                        ready.put(pa.record_batch([pa.array(values[begin : begin + _MAX_VALUES])], schema=schema))
                elif event.get("event") in ("found", "end"):
                    end |= event
        finally:
            stream.close()
    return end


class _Interrupts:
    """Ctrl-C interrupts `unless_seen`; elsewhere it is only noted."""

    def __init__(self) -> None:
        self.seen, self._inside = 0, False

    def take(self) -> None:
        self.seen += 1
        if self._inside or self.seen > 2:
            raise KeyboardInterrupt

    def unless_seen(self, call: Callable[[], Any]) -> Any:
        """The result of a call; None after Ctrl-C."""
        if self.seen:
            return None
        try:
            self._inside = True
            return call()
        except KeyboardInterrupt:
            return None
        finally:
            self._inside = False
