"""Every kind of bad request is refused by its own code, whichever way it came in, and the server lives."""

from __future__ import annotations

import json
import re
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
    """A model, a data set, a run and a per-class schedule to err about."""
    assert model
    settings = {"stage": "pretrain", "dataset": dataset, "network": wire.NETWORK, "batch": 4}
    wire.act(flight, "CreateRun", {"name": "idle", **settings})
    rows = wire.table(
        label=wire.int32([0, 0, 1, 1]),
        subspace=wire.int32([0, 0, 0, 0]),
        t=pa.array([0.0, 4, 0, 4]),
        g=pa.array([1e-3, 4, 1e-3, 4]),
    )
    wire.put(flight, wire.command({"op": "PutSchedule", "name": "by-class"}), rows)


SAMPLE: dict[str, tuple[dict[str, Any] | bytes, str]] = {
    "unknown model": ({**OK, "model": "nobody"}, "MODEL_NOT_FOUND"),
    "model that is no name": ({**OK, "model": "../digits"}, "MODEL_NOT_FOUND"),
    "no model": ({"n": 1, "steps": 2}, "BAD_REQUEST"),
    "unknown schedule": ({**OK, "schedule": "nothing"}, "SCHEDULE_NOT_FOUND"),
    "negative n": ({**OK, "n": -1}, "BAD_REQUEST"),
    "no images": ({**OK, "n": 0}, "BAD_REQUEST"),
    "n too large": ({**OK, "n": 10**9}, "TOO_LARGE"),
    "n beyond 64 bits": ({**OK, "n": 2**70}, "TOO_LARGE"),
    "n a fraction": ({**OK, "n": 1.5}, "BAD_REQUEST"),
    "n null, which is absent": ({**OK, "n": None}, "BAD_REQUEST"),
    "unknown field null": ({**OK, "temperature": None}, "BAD_REQUEST"),
    "n and labels": ({**OK, "labels": [1]}, "BAD_REQUEST"),
    "neither n nor labels": ({"model": "digits", "steps": 2}, "BAD_REQUEST"),
    "label too large": ({"model": "digits", "labels": [10], "steps": 2}, "BAD_REQUEST"),
    "label a fraction": ({"model": "digits", "labels": [0.5], "steps": 2}, "BAD_REQUEST"),
    "a class without a schedule": (
        {"model": "digits", "labels": [5], "steps": 2, "schedule": "by-class"},
        "BAD_REQUEST",
    ),
    "no steps": ({"model": "digits", "n": 1}, "BAD_REQUEST"),
    "steps and nfe": ({**OK, "nfe": 4}, "BAD_REQUEST"),
    "zero steps": ({**OK, "steps": 0}, "BAD_REQUEST"),
    "unknown solver": ({**OK, "solver": "magic"}, "BAD_REQUEST"),
    "unknown grid": ({**OK, "grid": "graph paper"}, "BAD_REQUEST"),
    "grid upside down": ({"model": "digits", "n": 1, "grid": {"sigma": [1, 2, 3]}}, "BAD_REQUEST"),
    "unknown dtype": ({**OK, "dtype": "float16"}, "BAD_REQUEST"),
    "negative seed": ({**OK, "seed": -1}, "BAD_REQUEST"),
    "negative every": ({**OK, "every": -1}, "BAD_REQUEST"),
    "order four of ab": ({**OK, "solver": "ab", "order": 4}, "BAD_REQUEST"),
    "unknown table": ({**OK, "grid": {"table": "ays-sd3"}}, "BAD_REQUEST"),
    "churn of a multistep solver": ({**OK, "solver": "ab", "S_churn": 1}, "BAD_REQUEST"),
    "schedule of another form": ({**OK, "schedule": {"ddim": {}}}, "BAD_REQUEST"),
    "unknown field": ({**OK, "temperature": 1}, "BAD_REQUEST"),
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


def test_a_body_that_names_another_operation(flight: fl.FlightClient) -> None:
    """It sampled, whatever the body said."""
    assert wire.code(lambda: wire.act(flight, "Sample", {**OK, "op": "Denoise"})) == "BAD_REQUEST"
    assert wire.code(lambda: wire.act(flight, "ListModels", {"op": "ServerInfo"})) == "BAD_REQUEST"
    assert wire.bodies(flight, "Sample", {**OK, "op": "Sample"})


def test_the_numbers_of_other_languages(flight: fl.FlightClient) -> None:
    """8.0 is 8, null is absent, and a seed may be text; what the server resolved them to is what integers say."""
    said = wire.get(flight, "Sample", {**OK, "steps": 2.0, "seed": str(2**64 - 1), "every": None, "schedule": None})
    plain = wire.get(flight, "Sample", {**OK, "seed": 2**64 - 1})
    assert said.table.equals(plain.table)
    assert said.schema.metadata == plain.schema.metadata
    metadata = wire.get(flight, "Dataset", {"dataset": "blocks"}).schema.metadata
    assert json.loads(metadata[b"request"]) == {"dataset": "blocks", "offset": 0}


NO_GO = r"json:|Go struct|unmarshal|goroutine|runtime error|arrow/|proto:|\b(u?int|float)(32|64)\b of type|interface \{"


@pytest.mark.parametrize(
    ("name", "request_"),
    [
        ("CreateRun", {"name": "x", "stage": "pretrain", "dataset": "blocks", "network": {"model_type": 3}}),
        (
            "CreateRun",
            {"name": "x", "stage": "pretrain", "dataset": "blocks", "network": {**wire.NETWORK, "dropout": "x"}},
        ),
        (
            "CreateRun",
            {"name": "x", "stage": "pretrain", "dataset": "blocks", "network": {"model_type": "Graph", "graph": 3}},
        ),
        (
            "CreateRun",
            {
                "name": "x",
                "stage": "pretrain",
                "dataset": "blocks",
                "network": {"model_type": "Graph", "img_channels": "x", "graph": {}},
            },
        ),
        (
            "CreateRun",
            {
                "name": "x",
                "stage": "pretrain",
                "dataset": "blocks",
                "network": {"model_type": "Mixture", "components": 1},
            },
        ),
        (
            "CreateRun",
            {
                "name": "x",
                "stage": "pretrain",
                "dataset": "blocks",
                "network": {**wire.NETWORK, "parametrization": {"kind": "edm", "sigma_data": "x"}},
            },
        ),
        ("ImportSchedule", {"name": "x", "file": {"format": 3}}),
        ("ImportSchedule", {"name": "x", "file": {"format": "anisoflight-schedule", "version": "x"}}),
        ("ImportSchedule", {"name": "x", "file": {}, "start": "not base64"}),
    ],
)
def test_messages_name_nothing_of_go(flight: fl.FlightClient, name: str, request_: dict[str, Any]) -> None:
    text = refusal(lambda: wire.act(flight, name, request_))
    assert re.search(r"\[BAD_[A-Z]+\]", text), text
    assert not re.search(NO_GO, text), text


NETWORK = wire.NETWORK
RUN = {"name": "new", "stage": "pretrain", "dataset": "blocks", "network": NETWORK}
ACTIONS: dict[str, tuple[str, dict[str, Any], str | tuple[str, ...]]] = {
    "unknown action": ("Dance", {}, "OP_NOT_FOUND"),
    "action of a get": ("WatchRun", {"run": "idle"}, ("OP_NOT_FOUND", "BAD_REQUEST")),
    "info with a field": ("ServerInfo", {"x": 1}, "BAD_REQUEST"),
    "describe nobody": ("DescribeModel", {"model": "nobody"}, "MODEL_NOT_FOUND"),
    "load a missing folder": ("LoadModel", {"name": "new", "path": "missing"}, ("MODEL_NOT_FOUND", "BAD_MODEL")),
    "load outside": ("LoadModel", {"name": "new", "path": "../models/digits/.."}, "BAD_MODEL"),
    "delete no model": ("DeleteModel", {"model": "nobody"}, "MODEL_NOT_FOUND"),
    "delete a built-in": ("DeleteSchedule", {"schedule": "edm"}, ("BAD_REQUEST", "SCHEDULE_NOT_FOUND")),
    "get no run": ("GetRun", {"run": "nothing"}, "RUN_NOT_FOUND"),
    "start backwards": ("StartRun", {"run": "idle", "kimg": -1}, "BAD_REQUEST"),
    "save over a model": ("SaveModel", {"run": "idle", "name": "digits"}, "NAME_TAKEN"),
    "step no run": ("TrainStep", {"run": "nothing"}, "RUN_NOT_FOUND"),
    "steps a text": ("TrainStep", {"run": "idle", "steps": "3"}, "BAD_REQUEST"),
    "evaluate no schedule": ("EvaluateSchedule", {"schedule": "nothing"}, "SCHEDULE_NOT_FOUND"),
    "evaluate too many": ("EvaluateSchedule", {"schedule": "edm", "points": 10**10}, "TOO_LARGE"),
    "evaluate beyond T": ("EvaluateSchedule", {"schedule": "edm", "t": [1e9]}, "BAD_REQUEST"),
    "evaluate on nothing": ("EvaluateModel", {"model": "digits", "dataset": "nothing"}, "DATASET_NOT_FOUND"),
    "evaluate too much": (
        "EvaluateModel",
        {"model": "digits", "dataset": "blocks", "points": 1 << 20, "samples": 1 << 30},
        "TOO_LARGE",
    ),
    "make what": ("MakeSchedule", {"name": "new", "kind": "linear"}, "BAD_REQUEST"),
    "make over edm": ("MakeSchedule", {"name": "edm", "kind": "cosine"}, "BAD_REQUEST"),
    "make an unknown basis": ("MakeBasis", {"name": "new", "kind": "fft", "dataset": "blocks", "k": 4}, "BAD_REQUEST"),
    "run on nothing": ("CreateRun", {**RUN, "dataset": "nothing"}, "DATASET_NOT_FOUND"),
    "run with a bad name": ("CreateRun", {**RUN, "name": "New"}, "BAD_REQUEST"),
    "run with a taken name": ("CreateRun", {**RUN, "name": "idle"}, "NAME_TAKEN"),
    "run with an unknown field": ("CreateRun", {**RUN, "momentum": 0.9}, "BAD_REQUEST"),
    "run with a negative rate": ("CreateRun", {**RUN, "lr": -1}, "BAD_REQUEST"),
    "run with an unknown family": (
        "CreateRun",
        {**RUN, "family": {"basis": "nothing"}},
        ("BAD_REQUEST", "BASIS_NOT_FOUND"),
    ),
    "run with an unknown network": (
        "CreateRun",
        {**RUN, "network": {**NETWORK, "depth": 3}},
        ("BAD_MODEL", "BAD_REQUEST"),
    ),
    "run with another size": ("CreateRun", {**RUN, "network": {**NETWORK, "img_resolution": 16}}, "BAD_REQUEST"),
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
        ("ServerInfo", {}, "OP_NOT_FOUND"),
        ("WatchRun", {"run": "nothing"}, "RUN_NOT_FOUND"),
        ("WatchRun", {"run": "idle", "from": -1}, "BAD_REQUEST"),
        ("Dataset", {"dataset": "nothing"}, "DATASET_NOT_FOUND"),
        ("Dataset", {"dataset": "blocks", "offset": -1}, "BAD_REQUEST"),
        ("Dataset", {"dataset": "blocks", "limit": -1}, "BAD_REQUEST"),
        ("TrainStep", {"run": "nothing"}, "RUN_NOT_FOUND"),
        ("EvaluateSchedule", {"schedule": "nothing"}, "SCHEDULE_NOT_FOUND"),
        ("EvaluateModel", {"model": "nobody", "dataset": "blocks"}, "MODEL_NOT_FOUND"),
    ],
)
def test_gets(flight: fl.FlightClient, op: str, request_: dict[str, Any], code: str) -> None:
    assert wire.code(lambda: wire.get(flight, op, request_)) == code
    if op != "ServerInfo":
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
    "another size": ("Denoise", {}, {"x": wire.tensor(X[:, :7])}, TENSOR),
    "permuted": ("Denoise", {}, {"x": PERMUTED}, TENSOR),
    "null": ("Denoise", {}, {"x": NULLED}, TENSOR),
    "not a number": ("Denoise", {}, {"x": wire.tensor(X * np.nan)}, TENSOR),
    "no label": ("Denoise", {}, {"label": None}, TENSOR),
    "label of text": ("Denoise", {}, {"label": pa.array(["0", "1"])}, TENSOR),
    "label ten": ("Denoise", {}, {"label": wire.int32([0, 10])}, EITHER),
    "no noise": ("Denoise", {}, {"sigma": None}, TENSOR),
    "both noises": ("Denoise", {"basis": "dct"}, {"g": G2}, TENSOR),
    "two g, one subspace": ("Denoise", {"basis": "none"}, {"sigma": None, "g": G2}, TENSOR),
    "unknown basis": ("Denoise", {"basis": "missing"}, {"sigma": None, "g": G2}, "BASIS_NOT_FOUND"),
    "latents and n": ("Sample", {"n": 1}, {}, "BAD_REQUEST"),
    "latents of another size": ("Sample", {}, {"latent": wire.tensor(X[:, :4])}, TENSOR),
    "a step of no run": ("TrainStep", {"run": "nothing"}, {}, "RUN_NOT_FOUND"),
    "a step of noise": ("TrainStep", {}, {"image": wire.tensor(X + np.float32(np.nan))}, TENSOR),
    "gradient of nothing": ("ScheduleGradient", {"schedule": "nothing"}, {}, "SCHEDULE_NOT_FOUND"),
    "gradient in no mode": ("ScheduleGradient", {"mode": "exact"}, {}, "BAD_REQUEST"),
    "gradient beyond T": ("ScheduleGradient", {}, {"t": pa.array([1.0, 1e9])}, EITHER),
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
