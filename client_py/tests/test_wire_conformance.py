"""The scenarios of Arrow's own Flight integration tests that apply to this service, with stock pyarrow.

Not among them: auth:basic_proto (tokens are bearer tokens), alternative locations, SQL, sessions and do_exchange:echo,
none of which the service offers; poll_flight_info, since work starts with DoGet.
"""

import json
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.flight as fl
import pytest
import wire

ROWS = 3 * 700 + 5  # several messages on the way back


@pytest.fixture(scope="module")
def uploaded(flight: fl.FlightClient) -> Iterator[pa.Table]:
    """The data set `conformance`, sent in batches of 700 rows with metadata."""
    rng = np.random.default_rng(5)
    images = rng.uniform(-1, 1, (ROWS, 16, 16, 1)).astype(np.float32)
    rows = wire.table(image=wire.tensor(images), label=wire.int32(np.arange(ROWS) % 7))
    writer, answers = flight.do_put(fl.FlightDescriptor.for_path("datasets", "conformance"), rows.schema)
    for i, batch in enumerate(rows.to_batches(max_chunksize=700)):
        writer.write_with_metadata(batch, str(i).encode())
    writer.done_writing()
    answer = answers.read()
    writer.close()
    assert answer is not None
    assert json.loads(answer.to_pybytes()) == {"rows": ROWS}
    yield rows
    wire.act(flight, "DeleteDataset", {"dataset": "conformance"})


def info(flight: fl.FlightClient) -> fl.FlightInfo:
    return flight.get_flight_info(fl.FlightDescriptor.for_path("datasets", "conformance"))


def test_default(flight: fl.FlightClient, uploaded: pa.Table) -> None:
    """What goes in at a path comes out of every endpoint's ticket, with the schema that was announced."""
    found = info(flight)
    assert found.total_records == ROWS
    assert found.total_bytes >= uploaded.get_total_buffer_size()
    tables = [flight.do_get(endpoint.ticket).read_all() for endpoint in found.endpoints]
    table = pa.concat_tables(tables)
    assert table.schema.equals(found.schema)
    assert flight.get_schema(found.descriptor).schema.equals(found.schema)
    assert table.column("image").combine_chunks() == uploaded.column("image").combine_chunks()
    assert table.column("label").combine_chunks() == uploaded.column("label").combine_chunks()
    table.validate(full=True)
    assert [i.descriptor.path for i in flight.list_flights(b"datasets/conformance")] == [found.descriptor.path]


def test_ordered(flight: fl.FlightClient, uploaded: pa.Table) -> None:
    """The endpoints are ordered, and so are their rows."""
    found = info(flight)
    assert found.ordered
    indices = [wire.numbers(flight.do_get(endpoint.ticket).read_all()["index"]) for endpoint in found.endpoints]
    assert np.array_equal(np.concatenate(indices), np.arange(ROWS))


def test_app_metadata(flight: fl.FlightClient, uploaded: pa.Table) -> None:
    """Every message with rows carries metadata; the rows it counts are those received."""
    done, event = 0, {}
    for chunk in flight.do_get(info(flight).endpoints[0].ticket):
        event = json.loads(chunk.app_metadata.to_pybytes())
        done += chunk.data.num_rows
        if event["event"] == "batch":
            assert event["done"] == done
    assert event["event"] == "end"
    assert event["rows"] == done == ROWS


def test_a_path_of_one_component(flight: fl.FlightClient, uploaded: pa.Table) -> None:
    """Clients that can send one component alone, ClickHouse's and R's among them, write the path into it."""
    one, two = (
        fl.FlightDescriptor.for_path("datasets/conformance"),
        fl.FlightDescriptor.for_path("datasets", "conformance"),
    )
    found = [flight.get_flight_info(d) for d in (one, two)]
    assert found[0].schema == found[1].schema == flight.get_schema(one).schema
    assert found[0].endpoints[0].ticket == found[1].endpoints[0].ticket
    again = pa.Table.from_batches(uploaded.to_batches(), uploaded.schema)
    assert wire.put(flight, fl.FlightDescriptor.for_path("datasets/one-component"), again) == {"rows": ROWS}
    assert "one-component" in wire.entries(wire.act(flight, "ListDatasets"))
    wire.act(flight, "DeleteDataset", {"dataset": "one-component"})
    for path, code in (
        ("datasets/nothing", "DATASET_NOT_FOUND"),
        ("nothing", "PATH_NOT_FOUND"),
        ("a/b/c", "PATH_NOT_FOUND"),
    ):
        for ask in (flight.get_flight_info, flight.get_schema):
            assert wire.code(lambda ask=ask, path=path: ask(fl.FlightDescriptor.for_path(path))) == code
