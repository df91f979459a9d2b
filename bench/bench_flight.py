"""The pyarrow side of `anisoflight-bench flight`: `python -m bench_flight` does what lines of JSON tell it.

Each line on standard input is an order, an object with

    location, operation   where, and what: "get", "put", "exchange" or "action"
    name                  the operation's name on the server
    rows, batch_rows      how much in all, and in a batch that is sent
    side                  images are side × side × 1 float32
    window                batches of an exchange that may be unanswered
    times                 how often

and each answer on standard output one with `seconds`, a list, and `rows` that arrived the last time; or with `error`.
Nothing here is the package's own client: what is measured is stock pyarrow.
"""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.flight as fl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Order = dict[str, Any]

_BLOCKS = 16  # batches in turn, so that they do not all lie in the processor's caches


class Images:
    """Batches to send."""

    def __init__(self, side: int, rows: int) -> None:
        kind = pa.fixed_shape_tensor(pa.float32(), (side, side, 1), dim_names=["H", "W", "C"])
        self.schema = pa.schema([pa.field("x", kind, nullable=False)])
        self._batches = []
        for i in range(_BLOCKS):
            numbers = pa.array(np.arange(i, i + rows * side * side, dtype=np.float32))
            storage = pa.FixedSizeListArray.from_arrays(numbers, side * side)
            column = pa.ExtensionArray.from_storage(kind, storage)
            self._batches.append(pa.RecordBatch.from_arrays([column], schema=self.schema))

    def of(self, rows: int) -> Iterator[pa.RecordBatch]:
        """Batches with a number of rows in all."""
        sent = 0
        while sent < rows:
            batch = self._batches[sent // self._batches[0].num_rows % _BLOCKS]
            batch = batch.slice(0, rows - sent)
            sent += batch.num_rows
            yield batch


def get(client: fl.FlightClient, order: Order, images: Images) -> int:
    ticket = {"op": order["name"], "rows": order["rows"]}
    reader = client.do_get(fl.Ticket(json.dumps(ticket).encode()))
    return sum(chunk.data.num_rows for chunk in reader)


def put(client: fl.FlightClient, order: Order, images: Images) -> int:
    writer, answers = client.do_put(_command(order), images.schema)
    for batch in images.of(order["rows"]):
        writer.write_batch(batch)
    writer.done_writing()
    answer = answers.read()
    writer.close()
    return json.loads(answer.to_pybytes())["rows"] if answer is not None else 0


def exchange(client: fl.FlightClient, order: Order, images: Images) -> int:
    writer, reader = client.do_exchange(_command(order))
    writer.begin(images.schema)
    rows, sent = 0, 0
    for batch in images.of(order["rows"]):
        writer.write_batch(batch)
        sent += batch.num_rows
        while sent - rows >= order["window"] * order["batch_rows"]:
            rows += reader.read_chunk().data.num_rows
    writer.done_writing()
    for chunk in reader:
        rows += chunk.data.num_rows
    writer.close()
    return rows


def action(client: fl.FlightClient, order: Order, images: Images) -> int:
    body = json.dumps({"rows": order["rows"]}).encode()
    results = client.do_action(fl.Action(order["name"], body))
    return sum(batch.num_rows for result in results for batch in pa.ipc.open_stream(result.body))


_OPERATIONS: dict[str, Callable[[fl.FlightClient, Order, Images], int]] = {
    "get": get,
    "put": put,
    "exchange": exchange,
    "action": action,
}


def _command(order: Order) -> fl.FlightDescriptor:
    return fl.FlightDescriptor.for_command(json.dumps({"op": order["name"]}).encode())


def main() -> None:
    clients: dict[str, fl.FlightClient] = {}
    images: Images | None = None
    for line in sys.stdin:
        order: Order = json.loads(line)
        images = images or Images(order["side"], order["batch_rows"])
        location: str = order["location"]
        if location not in clients:
            clients[location] = fl.FlightClient(location)
        rows, seconds = 0, []
        try:
            for _ in range(order["times"]):
                started = time.perf_counter()
                rows = _OPERATIONS[order["operation"]](clients[location], order, images)
                seconds.append(time.perf_counter() - started)
            answer: dict[str, Any] = {"seconds": seconds, "rows": rows}
        except (fl.FlightError, pa.ArrowException, OSError) as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)
    for client in clients.values():
        client.close()


if __name__ == "__main__":
    main()
