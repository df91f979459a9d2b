"""Sample: three ways in, and samples that are functions of the model, the request and their seed."""

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
