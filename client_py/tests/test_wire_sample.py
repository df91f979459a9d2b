"""Sample: three ways in, and samples that are functions of the model, the request and their seed."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.flight as fl
import pytest
import wire

FIELDS = [
    ("index", pa.int64()),
    ("seed", pa.uint64()),
    ("label", pa.int32()),
    ("step", pa.int32()),
    ("nfe", pa.int32()),
]


def sample(flight: fl.FlightClient, **request: object) -> pa.Table:
    return wire.get(flight, "Sample", {"model": "digits", **request}).table


@pytest.fixture(autouse=True)
def _ready(model: str) -> None:
    """Every test here needs the model."""


def test_schema_is_as_promised(flight: fl.FlightClient) -> None:
    table = sample(flight, n=3, steps=2)
    assert [(field.name, field.type) for field in table.schema][:-1] == FIELDS
    kind = table.schema.field("sample").type
    assert isinstance(kind, pa.FixedShapeTensorType)
    assert (kind.value_type, kind.shape, kind.dim_names) == (pa.uint8(), [8, 8, 1], ["H", "W", "C"])
    assert kind.permutation is None
    assert not any(field.nullable for field in table.schema)
    assert table["index"].to_pylist() == [0, 1, 2]
    assert table["step"].to_pylist() == [-1] * 3


def test_metadata_carries_the_resolved_request_and_the_model(flight: fl.FlightClient) -> None:
    metadata = {key.decode(): value.decode() for key, value in sample(flight, n=1, steps=2).schema.metadata.items()}
    text = json.dumps(metadata)
    assert "digits" in text
    resolved = [json.loads(value) for value in metadata.values() if value.startswith("{")]
    assert any(request.get("solver") == "heun" and request.get("steps") == 2 for request in resolved)
    assert any(
        len(value) >= 16 and set(value.removeprefix("sha256:")) <= set("0123456789abcdef")
        for value in metadata.values()
    )


def test_labels_are_drawn_within_range(flight: fl.FlightClient) -> None:
    labels = sample(flight, n=200, seed=1, steps=1, solver="euler")["label"].to_numpy()
    assert set(labels) == set(range(10))
    assert sample(flight, labels=[3, -1, 9], steps=1)["label"].to_pylist() == [3, -1, 9]


@pytest.mark.parametrize(
    ("request_", "nfe"),
    [
        ({"solver": "euler", "steps": 4}, 4),
        ({"solver": "heun", "steps": 4}, 8),
        ({"solver": "heun", "second_point": "endpoint", "steps": 4}, 7),
        ({"solver": "heun", "second_point": "endpoint", "grid": "edm", "steps": 4}, 7),
        ({"solver": "ipndm", "grid": "polynomial", "nfe": 5}, 5),
        ({"solver": "heun", "second_point": "endpoint", "nfe": 9}, 9),
        ({"solver": "heun", "nfe": 9}, 8),
        ({"solver": "euler", "nfe": 5}, 5),
        ({"solver": "euler", "grid": {"t": [400, 100, 10, 0]}}, 3),
        ({"solver": "euler", "grid": {"sigma": [20, 5, 1]}}, 2),
        ({"solver": "euler", "grid": {"sigma": [20, 5, 1, 0]}}, 3),
    ],
)
def test_evaluations_are_counted(flight: fl.FlightClient, request_: dict, nfe: int) -> None:
    assert sample(flight, n=2, **request_)["nfe"].to_pylist() == [nfe, nfe]


def test_latents_of_ones_own(flight: fl.FlightClient) -> None:
    """The caller's latents give the caller's samples, in any number of batches, with heartbeats that say so."""
    latents = np.random.default_rng(4).standard_normal((6, 8, 8, 1)).astype(np.float32)
    labels = wire.int32([0, 1, 2, 3, 4, -1])
    rows = wire.table(latent=wire.tensor(latents), label=labels)
    request = {"model": "digits", "steps": 3, "dtype": "float32"}
    whole = wire.exchange(flight, "Sample", request, rows.to_batches())
    parts = wire.exchange(flight, "Sample", request, rows.to_batches(max_chunksize=4))
    assert whole.table["label"].to_pylist() == [0, 1, 2, 3, 4, -1]
    np.testing.assert_allclose(
        wire.numbers(whole.table["sample"]), wire.numbers(parts.table["sample"]), rtol=0, atol=1e-4
    )
    assert any("window" in event for event in parts.events)
    assert parts.end["event"] == "end"
    negated = wire.table(latent=wire.tensor(-latents), label=labels)
    other = wire.exchange(flight, "Sample", request, negated.to_batches())
    assert np.abs(wire.numbers(other.table["sample"]) - wire.numbers(whole.table["sample"])).max() > 0.1


def test_an_exchange_in_lockstep(flight: fl.FlightClient) -> None:
    """One batch out, one reply in: every batch is answered before the next is sent."""
    latents = np.random.default_rng(5).standard_normal((3, 1, 8, 8, 1)).astype(np.float32)
    writer, reader = flight.do_exchange(wire.command({"op": "Sample", "model": "digits", "steps": 2}))
    batches = [wire.table(latent=wire.tensor(latent), label=wire.int32([1])).to_batches()[0] for latent in latents]
    writer.begin(batches[0].schema)
    for batch in batches:
        writer.write_batch(batch)
        while reader.read_chunk().data.num_rows == 0:
            pass
    writer.done_writing()
    rest = [chunk.data.num_rows for chunk in reader]
    assert sum(rest) == 0
    writer.close()


def test_pricing_says_what_will_come_and_computes_nothing(flight: fl.FlightClient) -> None:
    request = {"op": "Sample", "model": "digits", "n": 10_000, "steps": 1000, "dtype": "float32"}
    info = flight.get_flight_info(wire.command(request))
    assert info.total_records == 10_000
    assert 10_000 * 8 * 8 * 4 <= info.total_bytes <= 10_000 * 400
    request = {**request, "n": 3, "steps": 1}
    info = flight.get_flight_info(wire.command(request))
    assert info.schema.names == [name for name, _ in FIELDS] + ["sample"]
    rows = wire.collect(flight.do_get(info.endpoints[0].ticket)).table
    assert rows.num_rows == info.total_records == 3
    assert rows.equals(sample(flight, n=3, steps=1, dtype="float32"))


def test_bodies_are_read_without_copying(flight: fl.FlightClient) -> None:
    request = {"model": "digits", "n": 300, "steps": 1, "dtype": "float32", "batch_bytes": 20_000}
    table = wire.get(flight, "Sample", request).table
    for chunk in table["sample"].chunks:
        assert not chunk.to_numpy_ndarray().flags.owndata
    schemas = []
    for body in wire.bodies(flight, "Sample", request):
        assert body.size <= 3.5 * 2**20
        reader = pa.ipc.open_stream(body)
        schemas.append(reader.schema)
        inside = reader.read_next_batch()["sample"].storage.flatten().buffers()[1].address
        assert body.address <= inside < body.address + body.size
        with pytest.raises(StopIteration):
            reader.read_next_batch()
    assert len(schemas) > 1
    assert all(schema.equals(schemas[0], check_metadata=True) for schema in schemas)


def test_progress_and_end_are_announced(flight: fl.FlightClient) -> None:
    events = wire.get(flight, "Sample", {"model": "digits", "n": 32, "steps": 5, "batch_bytes": 4096}).events
    batches = [event for event in events if event["event"] == "batch"]
    assert [event["done"] for event in batches] == sorted(event["done"] for event in batches)
    assert (batches[-1]["done"], batches[-1]["total"]) == (32, 32)
    end = events[-1]
    assert (end["event"], end["rows"]) == ("end", 32)
    assert end["elapsed_s"] >= 0


def test_the_schema_comes_at_once_and_heartbeats_keep_coming(flight: fl.FlightClient) -> None:
    import time

    start = time.monotonic()
    reader = flight.do_get(wire.ticket("Sample", {"model": "digits", "n": 4000, "steps": 2000}))
    first = reader.read_chunk()
    assert time.monotonic() - start < 1.0
    assert first.data.num_rows == 0
    gaps, before = [], time.monotonic()
    while time.monotonic() - start < 2.5:
        chunk = reader.read_chunk()
        gaps.append(time.monotonic() - before)
        before = time.monotonic()
        assert chunk.data is not None  # never a message of metadata alone
    reader.cancel()
    assert max(gaps) < 1.0
