"""Uploads: stored whole and unchanged, or refused by name and not at all."""

import json
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.flight as fl
import pytest
import wire

import anisoflight


def put(flight: fl.FlightClient, name: str, columns: dict[str, Any], **options: Any) -> dict[str, Any]:
    return wire.put(flight, wire.command({"op": "PutDataset", "name": name, **options}), wire.table(**columns))


def read(flight: fl.FlightClient, name: str, **options: int) -> pa.Table:
    return wire.get(flight, "Dataset", {"dataset": name, **options}).table


def is_absent(flight: fl.FlightClient, name: str) -> bool:
    return wire.code(lambda: read(flight, name)) == "DATASET_NOT_FOUND"


def pixels(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, shape, np.uint8)


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)


def test_many_batches_are_one_dataset(flight: fl.FlightClient) -> None:
    array = pixels(2000, 16, 16, 3)
    rows = wire.table(image=wire.tensor(array)).to_batches(max_chunksize=130)
    descriptor = fl.FlightDescriptor.for_path("datasets", "batches")
    assert wire.put(flight, descriptor, rows) == {"rows": 2000}
    reply = wire.get(flight, "Dataset", {"dataset": "batches"})
    np.testing.assert_array_equal(wire.numbers(reply.table["image"]), array)
    assert max(batch.nbytes for batch in reply.batches) <= 3.5 * 2**20


@pytest.mark.parametrize("labels", [None, [4, 0, -1, 2, 3]])
@pytest.mark.parametrize(
    ("array", "dims", "units"),
    [
        (pixels(5, 3, 8, 8), "CHW", {}),
        (floats(5, 8, 8, 1), "HWC", {}),
        (270 + 30 * floats(5, 4, 8, 2), "HWC", {"mean": [270, 271], "scale": "measured"}),
    ],
)
def test_what_was_read_can_be_uploaded(
    flight: fl.FlightClient, array: np.ndarray, dims: str, units: dict[str, Any], labels: list[int] | None
) -> None:
    columns = {"image": wire.tensor(array, dims), **({} if labels is None else {"label": wire.int32(labels)})}
    put(flight, "original", columns, replace=True, **units)
    first = read(flight, "original")
    wire.put(flight, wire.command({"op": "PutDataset", "name": "copy", "replace": True, "rows": 5}), first)
    second = read(flight, "copy")
    assert second.equals(first)
    assert json.loads(second.schema.metadata[b"request"])["dataset"] == "copy"
    kept = [{k: v for k, v in t.schema.metadata.items() if k not in (b"request", b"dataset")} for t in (first, second)]
    assert kept[0] == kept[1]
    assert (b"normalization" in kept[0]) == bool(units)


def test_a_stream_cut_by_the_clients_death_stores_nothing(
    flight: fl.FlightClient, server: anisoflight.LocalClient
) -> None:
    program = textwrap.dedent(f"""
        import os, sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import numpy as np
        import pyarrow.flight as fl
        import wire
        batch = wire.table(image=wire.tensor(np.zeros((4, 8, 8, 1), np.uint8))).to_batches()[0]
        client = fl.FlightClient({server.location!r})
        writer, _ = client.do_put(fl.FlightDescriptor.for_path("datasets", "killed"), batch.schema)
        for _ in range(100):
            writer.write_batch(batch)
        os._exit(1)
    """)
    subprocess.run([sys.executable, "-c", program], check=False, timeout=20)
    time.sleep(0.3)
    assert is_absent(flight, "killed")


def test_an_upload_that_is_cut_off_is_not_taken_for_the_whole(flight: fl.FlightClient) -> None:
    """pyarrow ends the stream cleanly when an exception leaves the block: the announced number of rows tells."""
    batches = wire.table(image=wire.tensor(pixels(6, 8, 8, 1))).to_batches(max_chunksize=2)

    def upload(**options: Any) -> None:
        descriptor = wire.command({"op": "PutDataset", "name": "cut-off", **options})
        writer, _ = flight.do_put(descriptor, batches[0].schema)
        with writer:
            writer.write_batch(batches[0])
            raise ZeroDivisionError("mine")

    with pytest.raises((ZeroDivisionError, pa.ArrowException)):
        upload(rows=6)
    assert is_absent(flight, "cut-off")
    assert put(flight, "cut-off", {"image": wire.tensor(pixels(6, 8, 8, 1))}, rows=6) == {"rows": 6}
    assert wire.code(lambda: put(flight, "short", {"image": wire.tensor(pixels(5, 8, 8, 1))}, rows=6)) == "BAD_REQUEST"
    assert wire.code(lambda: put(flight, "long", {"image": wire.tensor(pixels(7, 8, 8, 1))}, rows=6)) == "BAD_REQUEST"
    assert is_absent(flight, "short")
    assert is_absent(flight, "long")
