"""Several servers that give the same samples, read with nothing but pyarrow."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as fl
import pytest
import wire

import anisoflight
from anisoflight import LocalClient

ASKED = {"model": "digits", "n": 500, "seed": 18446744073709551500, "steps": 1, "dtype": "float32"}


@pytest.fixture
def pair(client: LocalClient, model: str, data_folder: Path, tmp_path: Path) -> Iterator[list[LocalClient]]:
    """Two servers that have the same model, each naming both."""
    sockets = tempfile.mkdtemp()  # pytest's own folders have names too long for a socket
    places = [f"unix:{sockets}/{i}" for i in range(2)]
    servers = []
    try:
        for i, place in enumerate(places):
            folder = tmp_path / str(i)
            shutil.copytree(data_folder / "models" / model, folder / "models" / model)
            servers.append(anisoflight.serve(data=folder, listen=place, arguments=["--peers", ",".join(places)]))
        yield servers
    finally:
        for server in servers:
            server.close()
        shutil.rmtree(sockets)


def info_of(location: str) -> fl.FlightInfo:
    with fl.FlightClient(location) as client:
        return client.get_flight_info(fl.FlightDescriptor.for_command(json.dumps({"op": "Sample", **ASKED})))


def read(endpoint: fl.FlightEndpoint) -> pa.Table:
    """What an endpoint gives, from the first of its locations that does."""
    for place, location in enumerate(endpoint.locations):
        try:
            with fl.FlightClient(location) as client:
                return client.do_get(endpoint.ticket).read_all()
        except fl.FlightUnavailableError:
            if place == len(endpoint.locations) - 1:
                raise
    raise AssertionError("an endpoint without locations")


def test_eight_endpoints_of_two_servers_one_of_them_killed(pair: list[LocalClient], flight: fl.FlightClient) -> None:
    whole = wire.get(flight, "Sample", ASKED).table
    info = info_of(pair[0].location)
    assert len(info.endpoints) == 8
    assert (info.ordered, info.total_records) == (True, 500)
    assert {len(endpoint.locations) for endpoint in info.endpoints} == {2}
    assert [e.locations for e in info_of(pair[1].location).endpoints] == [e.locations for e in info.endpoints]

    both = [read(endpoint) for endpoint in info.endpoints]
    assert pa.concat_tables(both).equals(whole)
    assert whole["index"].to_pylist() == list(range(500))

    first = [endpoint.locations[0].uri.decode() for endpoint in info.endpoints]
    assert first.count(pair[1].location) == 4  # clients that take the first location use both alike
    parts = [read(endpoint) for endpoint in info.endpoints[:3]]
    pair[1].server.process.kill()
    pair[1].server.process.wait()
    parts += [read(endpoint) for endpoint in info.endpoints[3:]]
    assert pa.concat_tables(parts).equals(whole)
    for part, other in zip(parts, both, strict=True):
        assert part.schema.equals(other.schema, check_metadata=True)


def test_a_peer_with_another_model_refuses(pair: list[LocalClient]) -> None:
    endpoint = info_of(pair[0].location).endpoints[0]
    ticket = json.loads(endpoint.ticket.ticket)
    ticket["weights"] = "0" * 64
    with fl.FlightClient(pair[0].location) as client, pytest.raises(pa.ArrowException, match="MODEL_NOT_FOUND"):
        client.do_get(fl.Ticket(json.dumps(ticket).encode())).read_all()
