"""What the server says of itself and of what it holds."""

import pyarrow.flight as fl
import wire


def test_flights_are_listed_by_path(flight: fl.FlightClient, model: str, dataset: str) -> None:
    paths = {tuple(part.decode() for part in info.descriptor.path) for info in flight.list_flights()}
    assert {("models", model), ("datasets", dataset), ("runs", "for-model")} <= paths


def test_what_is_listed_can_be_read(flight: fl.FlightClient, model: str, dataset: str) -> None:
    """A run's rows, too, without waiting for more."""
    wire.act(flight, "CreateRun", {"name": "waits", "stage": "pretrain", "dataset": dataset, "network": wire.NETWORK})
    for info in flight.list_flights():
        (endpoint,) = info.endpoints
        rows = wire.collect(flight.do_get(endpoint.ticket, fl.FlightCallOptions(timeout=60))).table.num_rows
        assert info.total_records in (rows, -1)
        assert flight.get_flight_info(info.descriptor).endpoints == info.endpoints
    wire.act(flight, "DeleteRun", {"run": "waits"})
