"""Every kind of bad request is refused by its own code, whichever way it came in, and the server lives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.flight as fl
import pytest
import wire

OK = {"model": "digits", "n": 1, "steps": 2}


@pytest.fixture(autouse=True, scope="module")
def _ready(flight: fl.FlightClient, model: str, dataset: str) -> None:
    """A model, a data set and a run to err about."""
    assert model
    settings = {"stage": "pretrain", "dataset": dataset, "network": wire.NETWORK, "batch": 4}
    wire.act(flight, "CreateRun", {"name": "idle", **settings})


SAMPLE: dict[str, tuple[dict[str, Any] | bytes, str]] = {
    "unknown model": ({**OK, "model": "nobody"}, "MODEL_NOT_FOUND"),
    "unknown schedule": ({**OK, "schedule": "nothing"}, "SCHEDULE_NOT_FOUND"),
    "no images": ({**OK, "n": 0}, "BAD_REQUEST"),
    "n too large": ({**OK, "n": 10**9}, "TOO_LARGE"),
    "n beyond 64 bits": ({**OK, "n": 2**70}, "TOO_LARGE"),
    "n and labels": ({**OK, "labels": [1]}, "BAD_REQUEST"),
    "label too large": ({"model": "digits", "labels": [10], "steps": 2}, "BAD_REQUEST"),
    "steps and nfe": ({**OK, "nfe": 4}, "BAD_REQUEST"),
    "unknown solver": ({**OK, "solver": "magic"}, "BAD_REQUEST"),
    "grid upside down": ({"model": "digits", "n": 1, "grid": {"sigma": [1, 2, 3]}}, "BAD_REQUEST"),
    "negative seed": ({**OK, "seed": -1}, "BAD_REQUEST"),
}


@pytest.mark.parametrize("case", SAMPLE)
def test_sample(flight: fl.FlightClient, case: str) -> None:
    request, code = SAMPLE[case]
    assert isinstance(request, dict)
    assert wire.code(lambda: wire.act(flight, "Sample", request)) == code
    assert wire.code(lambda: wire.get(flight, "Sample", request)) == code
    assert wire.code(lambda: flight.get_flight_info(wire.command({"op": "Sample", **request}))) == code


@pytest.mark.parametrize(
    "body",
    [
        b"SELECT 1",
        b"\n@type.googleapis.com/arrow.flight.protocol.sql.CommandStatementQuery",
        b"{",
        b"[]",
        b"3",
        b"null",
        b"digits",
        b'{"model":"digits","n":1,"steps":2}{}',
        b'{"model":"digits","n":1,"steps":2} x',
        b'{"model":"digits","n":1,"n":2,"steps":2}',
        b'{"model":"\xff","n":1,"steps":2}',
        b"[" * 100_000,
        b'{"model":"digits","n":1e400,"steps":2}',
        b'{"model":"digits","n":NaN,"steps":2}',
        b"\x00",
        b"",  # an empty body is {}: the model is missing
    ],
)
def test_bodies_that_are_no_request(flight: fl.FlightClient, body: bytes) -> None:
    assert wire.code(lambda: list(flight.do_action(fl.Action("Sample", body)))) == "BAD_REQUEST"
    assert wire.code(lambda: flight.do_get(fl.Ticket(body)).read_all()) == "BAD_REQUEST"


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(wire.FAILURES) as caught:
        call()
    return str(caught.value.args[0])


def test_flight_sql_is_another_language(flight: fl.FlightClient) -> None:
    for ask in (flight.get_flight_info, flight.get_schema):
        text = refusal(lambda ask=ask: ask(fl.FlightDescriptor.for_command(b"SELECT * FROM digits")))
        assert "[BAD_REQUEST] The request is not JSON. This is not Flight SQL; commands are JSON" in text


NETWORK = wire.NETWORK
RUN = {"name": "new", "stage": "pretrain", "dataset": "blocks", "network": NETWORK}
ACTIONS: dict[str, tuple[str, dict[str, Any], str | tuple[str, ...]]] = {
    "unknown action": ("Dance", {}, "OP_NOT_FOUND"),
    "describe nobody": ("DescribeModel", {"model": "nobody"}, "MODEL_NOT_FOUND"),
    "load a missing folder": ("LoadModel", {"name": "missing"}, ("MODEL_NOT_FOUND", "BAD_MODEL")),
    "delete no model": ("DeleteModel", {"model": "nobody"}, "MODEL_NOT_FOUND"),
    "delete a built-in": ("DeleteSchedule", {"schedule": "edm"}, ("BAD_REQUEST", "SCHEDULE_NOT_FOUND")),
    "save over a model": ("SaveModel", {"run": "idle", "name": "digits"}, "NAME_TAKEN"),
    "step no run": ("TrainStep", {"run": "nothing"}, "RUN_NOT_FOUND"),
    "evaluate too many": ("EvaluateSchedule", {"schedule": "edm", "points": 10**10}, "TOO_LARGE"),
    "evaluate on nothing": ("EvaluateModel", {"model": "digits", "dataset": "nothing"}, "DATASET_NOT_FOUND"),
    "evaluate too much": (
        "EvaluateModel",
        {"model": "digits", "dataset": "blocks", "points": 1 << 20, "samples": 1 << 30},
        "TOO_LARGE",
    ),
    "make what": ("MakeSchedule", {"name": "new", "kind": "linear"}, "BAD_REQUEST"),
    "run with a bad name": ("CreateRun", {**RUN, "name": "New"}, "BAD_REQUEST"),
    "run with a negative rate": ("CreateRun", {**RUN, "lr": -1}, "BAD_REQUEST"),
    "run with an unknown network": (
        "CreateRun",
        {**RUN, "network": {**NETWORK, "depth": 3}},
        ("BAD_MODEL", "BAD_REQUEST"),
    ),
}


@pytest.mark.parametrize("case", ACTIONS)
def test_actions(flight: fl.FlightClient, case: str) -> None:
    name, request, codes = ACTIONS[case]
    got = wire.code(lambda: wire.act(flight, name, request))
    assert got in codes if isinstance(codes, tuple) else got == codes


@pytest.mark.parametrize(
    ("op", "request_", "code"),
    [
        ("Dance", {}, "OP_NOT_FOUND"),
        ("WatchRun", {"run": "nothing"}, "RUN_NOT_FOUND"),
        ("Dataset", {"dataset": "nothing"}, "DATASET_NOT_FOUND"),
        ("Dataset", {"dataset": "blocks", "limit": -1}, "BAD_REQUEST"),
    ],
)
def test_gets(flight: fl.FlightClient, op: str, request_: dict[str, Any], code: str) -> None:
    assert wire.code(lambda: wire.get(flight, op, request_)) == code
    assert wire.code(lambda: flight.get_flight_info(wire.command({"op": op, **request_}))) == code


X = np.zeros((2, 8, 8, 1), np.float32)
COLUMNS = {
    "Denoise": {"x": wire.tensor(X), "label": wire.int32([0, 1]), "sigma": pa.array([1.0, 1.0])},
    "Sample": {"latent": wire.tensor(X), "label": wire.int32([0, 1])},
    "TrainStep": {"image": wire.tensor(X), "label": wire.int32([0, 1])},
    "ScheduleGradient": {
        "image": wire.tensor(X),
        "noise": wire.tensor(X),
        "probe": wire.tensor(X),
        "t": pa.array([1.0, 2.0]),
        "label": wire.int32([0, 1]),
    },
}
REQUESTS = {
    "Denoise": {"model": "digits"},
    "Sample": {"model": "digits", "steps": 2},
    "TrainStep": {"run": "idle"},
    "ScheduleGradient": {"model": "digits", "schedule": "edm"},
}
G2 = pa.FixedSizeListArray.from_arrays(pa.array([1.0, 1.0, 1.0, 1.0]), 2)
NULLED = pa.ExtensionArray.from_storage(wire.tensor(X).type, pa.array([None, [0.0] * 64], pa.list_(pa.float32(), 64)))
PERMUTED = wire.tensor(np.moveaxis(X, 3, 1).copy(), "CHW", permutation=[1, 2, 0])
TENSOR = "BAD_TENSOR"
EITHER = ("BAD_TENSOR", "BAD_REQUEST")

# What is wrong: the operation, what differs in its request and in its columns (None: left out), the code.
EXCHANGES: dict[str, tuple[str, dict[str, Any], dict[str, Any], str | tuple[str, ...]]] = {
    "nobody": ("Denoise", {"model": "nobody"}, {}, "MODEL_NOT_FOUND"),
    "unknown field": ("Denoise", {"n": 2}, {}, "BAD_REQUEST"),
    "float64": ("Denoise", {}, {"x": wire.tensor(X.astype(float))}, TENSOR),
    "permuted": ("Denoise", {}, {"x": PERMUTED}, TENSOR),
    "null": ("Denoise", {}, {"x": NULLED}, TENSOR),
    "not a number": ("Denoise", {}, {"x": wire.tensor(X * np.nan)}, TENSOR),
    "label ten": ("Denoise", {}, {"label": wire.int32([0, 10])}, EITHER),
    "no noise": ("Denoise", {}, {"sigma": None}, TENSOR),
    "two g, one subspace": ("Denoise", {"basis": "none"}, {"sigma": None, "g": G2}, TENSOR),
    "latents and n": ("Sample", {"n": 1}, {}, "BAD_REQUEST"),
    "a step of no run": ("TrainStep", {"run": "nothing"}, {}, "RUN_NOT_FOUND"),
    "gradient of nothing": ("ScheduleGradient", {"schedule": "nothing"}, {}, "SCHEDULE_NOT_FOUND"),
}


@pytest.mark.parametrize("case", EXCHANGES)
def test_exchanges(flight: fl.FlightClient, case: str) -> None:
    op, request, columns, codes = EXCHANGES[case]
    kept = {name: column for name, column in {**COLUMNS[op], **columns}.items() if column is not None}
    batches = pa.table(kept).to_batches()
    got = wire.code(lambda: wire.exchange(flight, op, {**REQUESTS[op], **request}, batches))
    assert got in codes if isinstance(codes, tuple) else got == codes


@pytest.mark.parametrize("op", ["Dance", "WatchRun", "ServerInfo"])
def test_what_is_no_exchange(flight: fl.FlightClient, op: str) -> None:
    batches = pa.table(COLUMNS["Sample"]).to_batches()
    assert wire.code(lambda: wire.exchange(flight, op, {}, batches)) == "OP_NOT_FOUND"
