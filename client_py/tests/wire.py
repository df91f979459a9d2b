"""Helpers for the acceptance tests of the wire contract: stock pyarrow, nothing of this package."""

import contextlib
import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.flight as fl
import pytest

NETWORK = {
    "model_type": "SongUNet",
    "img_resolution": 8,
    "img_channels": 1,
    "label_dim": 10,
    "model_channels": 8,
    "channel_mult": [1],
    "channel_mult_emb": 2,
    "num_blocks": 1,
    "attn_resolutions": [],
    "dropout": 0,
}

FAILURES = (fl.FlightError, pa.ArrowException, OSError, KeyError, ValueError)


@dataclass
class Reply:
    """What a DoGet or DoExchange answered."""

    schema: pa.Schema
    batches: list[pa.RecordBatch] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)

    @property
    def table(self) -> pa.Table:
        return pa.Table.from_batches([batch for batch in self.batches if batch.num_rows], self.schema)

    @property
    def end(self) -> dict[str, Any]:
        return self.events[-1]


def encode(request: dict[str, Any] | bytes) -> bytes:
    return request if isinstance(request, bytes) else json.dumps(request).encode()


def act(client: fl.FlightClient, name: str, request: dict[str, Any] | bytes = b"") -> list[dict[str, Any]]:
    """The JSON objects an action answers."""
    return [json.loads(body.to_pybytes()) for body in bodies(client, name, request)]


def bodies(client: fl.FlightClient, name: str, request: dict[str, Any] | bytes) -> list[pa.Buffer]:
    return [result.body for result in client.do_action(fl.Action(name, encode(request)))]


def collect(reader: fl.FlightStreamReader) -> Reply:
    reply = Reply(reader.schema)
    for chunk in reader:
        reply.batches.append(chunk.data)
        if chunk.app_metadata is not None and chunk.app_metadata.size:
            reply.events.append(json.loads(chunk.app_metadata.to_pybytes()))
    return reply


def ticket(op: str, request: dict[str, Any]) -> fl.Ticket:
    return fl.Ticket(encode({"op": op, **request}))


def get(client: fl.FlightClient, op: str, request: dict[str, Any]) -> Reply:
    return collect(client.do_get(ticket(op, request)))


def command(request: dict[str, Any]) -> fl.FlightDescriptor:
    return fl.FlightDescriptor.for_command(encode(request))


def exchange(client: fl.FlightClient, op: str, request: dict[str, Any], batches: Sequence[pa.RecordBatch]) -> Reply:
    """Write everything, then read everything."""
    writer, reader = client.do_exchange(command({"op": op, **request}))
    try:
        writer.begin(batches[0].schema)
        for batch in batches:
            writer.write_batch(batch)
        writer.done_writing()
        return collect(reader)
    finally:
        reader.cancel()
        with contextlib.suppress(*FAILURES):
            writer.close()


def put(
    client: fl.FlightClient, descriptor: fl.FlightDescriptor, table: pa.Table | list[pa.RecordBatch]
) -> dict[str, Any]:
    batches = table if isinstance(table, list) else table.to_batches()
    schema = batches[0].schema
    writer, answers = client.do_put(descriptor, schema)
    for batch in batches:
        writer.write_batch(batch)
    writer.done_writing()
    answer = answers.read()
    writer.close()
    assert answer is not None
    return json.loads(answer.to_pybytes())


def code(call: Callable[[], object]) -> str:
    """The bracketed code with which a call is refused."""
    with pytest.raises(FAILURES) as caught:
        call()
    text = str(caught.value.args[0]) if caught.value.args else str(caught.value)
    match = re.search(r"\[([A-Z_]+)\] \S", text)
    assert match, f"no code in {caught.value!r}"
    return match[1]


def within(seconds: float, condition: Callable[[], bool]) -> bool:
    """Whether a condition comes true in so many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def tensor(array: np.ndarray, dims: str = "HWC", **options: Any) -> pa.ExtensionArray:
    """A fixed_shape_tensor column as the contract wants it."""
    kind = pa.fixed_shape_tensor(
        pa.from_numpy_dtype(array.dtype), array.shape[1:], dim_names=list(dims) if dims else None, **options
    )
    storage = pa.FixedSizeListArray.from_arrays(pa.array(array.reshape(-1)), int(np.prod(array.shape[1:])))
    return pa.ExtensionArray.from_storage(kind, storage)


def numbers(column: pa.ChunkedArray) -> np.ndarray:
    """The rows of a column as one array."""
    if isinstance(column.type, pa.FixedShapeTensorType):
        return np.concatenate([chunk.to_numpy_ndarray() for chunk in column.chunks])
    if isinstance(column.type, pa.FixedSizeListType):
        return np.stack(column.to_pylist())
    return column.to_numpy()


def table(**columns: Any) -> pa.Table:
    arrays = {name: values if isinstance(values, pa.Array) else pa.array(values) for name, values in columns.items()}
    schema = pa.schema([pa.field(name, array.type, nullable=False) for name, array in arrays.items()])
    return pa.Table.from_arrays(list(arrays.values()), schema=schema)


def int32(values: Sequence[int] | np.ndarray) -> pa.Array:
    return pa.array(values, pa.int32())


def entries(answers: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What a List action lists, by name: its one answer holds one list."""
    (answer,) = answers
    (rows,) = answer.values()
    return {row["name"]: row for row in rows}


def resident(pid: int, which: str = "VmRSS") -> float:
    """MiB of resident memory; VmHWM is its peak."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(which):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"no {which}")
