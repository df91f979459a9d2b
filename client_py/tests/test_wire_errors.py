"""Bad requests are refused by their codes, whichever way they come in. Each room's own tests have all kinds of them."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.flight as fl
import pytest
import wire

OK = {"model": "digits", "n": 1, "steps": 2}


@pytest.fixture(autouse=True, scope="module")
def _ready(model: str) -> None:
    """A model and a data set to err about."""
    assert model


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"model": "nobody"}, "MODEL_NOT_FOUND"),
        ({"schedule": "nothing"}, "SCHEDULE_NOT_FOUND"),
        ({"n": 10**9}, "TOO_LARGE"),
        ({"labels": [1]}, "BAD_REQUEST"),
        ({"solver": "magic"}, "BAD_REQUEST"),
    ],
)
def test_samples(flight: fl.FlightClient, changes: dict[str, Any], code: str) -> None:
    request = {**OK, **changes}
    assert wire.code(lambda: wire.act(flight, "Sample", request)) == code
    assert wire.code(lambda: wire.get(flight, "Sample", request)) == code
    assert wire.code(lambda: flight.get_flight_info(wire.command({"op": "Sample", **request}))) == code


@pytest.mark.parametrize(
    "body",
    [
        b"\n@type.googleapis.com/arrow.flight.protocol.sql.CommandStatementQuery",
        b"[]",
        b'{"model":"digits","n":1,"steps":2}{}',
        b'{"model":"digits","n":1,"n":2,"steps":2}',
        b'{"model":"\xff","n":1,"steps":2}',
        b"[" * 100_000,
        b'{"model":"digits","n":1e400,"steps":2}',
        b"",  # an empty body is {}: the model is missing
    ],
)
def test_bodies_that_are_no_request(flight: fl.FlightClient, body: bytes) -> None:
    assert wire.code(lambda: list(flight.do_action(fl.Action("Sample", body)))) == "BAD_REQUEST"
    assert wire.code(lambda: flight.do_get(fl.Ticket(body)).read_all()) == "BAD_REQUEST"


def test_flight_sql_is_another_language(flight: fl.FlightClient) -> None:
    for ask in (flight.get_flight_info, flight.get_schema):
        with pytest.raises(wire.FAILURES) as caught:
            ask(fl.FlightDescriptor.for_command(b"SELECT * FROM digits"))
        assert "[BAD_REQUEST] The request is not JSON. This is not Flight SQL; commands are JSON" in str(caught.value)


RUN = {"name": "new", "stage": "pretrain", "dataset": "blocks", "network": wire.NETWORK}


@pytest.mark.parametrize(
    ("name", "request_", "code"),
    [
        ("Dance", {}, "OP_NOT_FOUND"),
        ("DeleteModel", {"model": "nobody"}, "MODEL_NOT_FOUND"),
        ("SaveModel", {"run": "for-model", "name": "digits"}, "NAME_TAKEN"),
        ("EvaluateSchedule", {"schedule": "edm", "points": 10**10}, "TOO_LARGE"),
        ("MakeSchedule", {"name": "new", "kind": "linear"}, "BAD_REQUEST"),
        ("CreateRun", {**RUN, "lr": -1}, "BAD_REQUEST"),
    ],
)
def test_actions(flight: fl.FlightClient, name: str, request_: dict[str, Any], code: str) -> None:
    assert wire.code(lambda: wire.act(flight, name, request_)) == code


@pytest.mark.parametrize(
    ("op", "request_", "code"),
    [
        ("Dance", {}, "OP_NOT_FOUND"),
        ("WatchRun", {"run": "nothing"}, "RUN_NOT_FOUND"),
        ("Dataset", {"dataset": "blocks", "limit": -1}, "BAD_REQUEST"),
    ],
)
def test_gets(flight: fl.FlightClient, op: str, request_: dict[str, Any], code: str) -> None:
    assert wire.code(lambda: wire.get(flight, op, request_)) == code
    assert wire.code(lambda: flight.get_flight_info(wire.command({"op": op, **request_}))) == code


X = np.zeros((2, 8, 8, 1), np.float32)
ROWS = {"x": wire.tensor(X), "label": wire.int32([0, 1]), "sigma": pa.array([1.0, 1.0])}
NULLED = pa.ExtensionArray.from_storage(wire.tensor(X).type, pa.array([None, [0.0] * 64], pa.list_(pa.float32(), 64)))
PERMUTED = wire.tensor(np.moveaxis(X, 3, 1).copy(), "CHW", permutation=[1, 2, 0])


@pytest.mark.parametrize(
    ("op", "request_", "columns", "code"),
    [
        ("Dance", {}, {}, "OP_NOT_FOUND"),
        ("ServerInfo", {}, {}, "OP_NOT_FOUND"),
        ("Denoise", {"model": "nobody"}, {}, "MODEL_NOT_FOUND"),
        ("Denoise", {"n": 2}, {}, "BAD_REQUEST"),
        ("Denoise", {}, {"x": PERMUTED}, "BAD_TENSOR"),
        ("Denoise", {}, {"x": NULLED}, "BAD_TENSOR"),
        ("Denoise", {}, {"x": wire.tensor(X * np.nan)}, "BAD_TENSOR"),
        ("Denoise", {}, {"label": wire.int32([0, 10])}, "BAD_REQUEST"),
    ],
)
def test_exchanges(
    flight: fl.FlightClient, op: str, request_: dict[str, Any], columns: dict[str, pa.Array], code: str
) -> None:
    batches = pa.table({**ROWS, **columns}).to_batches()
    assert wire.code(lambda: wire.exchange(flight, op, {"model": "digits", **request_}, batches)) == code
