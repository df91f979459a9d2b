"""Runs: created, stepped, watched, saved."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.flight as fl
import pytest
import wire
from conftest import pictures

COLUMNS = [
    "step",
    "kimg",
    "loss",
    "energy",
    "grad_norm",
    "schedule_grad_norm",
    "schedule_grad_stderr",
    "lr",
    "schedule_lr",
    "seconds",
]
TERMS = ["weight", "explicit", "implicit1", "implicit2", "implicit3", "backprop"]
COLUMNS += ["schedule_grad_cosine", *(f"share_{term}" for term in TERMS), *(f"stderr_{term}" for term in TERMS)]
COLUMNS += ["gflops", "mfu"]


def create(flight: fl.FlightClient, name: str, **settings: Any) -> str:
    network = {} if "model" in settings else {"network": wire.NETWORK}
    defaults = {"stage": "pretrain", "dataset": "blocks", "batch": 8, "T": 400, "seed": 1}
    wire.act(flight, "CreateRun", {"name": name, **defaults, **network, **settings})
    return name


def step(flight: fl.FlightClient, run: str, steps: int = 1) -> pa.Table:
    return wire.get(flight, "TrainStep", {"run": run, "steps": steps}).table


def state(flight: fl.FlightClient, run: str) -> str:
    return wire.act(flight, "GetRun", {"run": run})[0]["state"]


@pytest.fixture(autouse=True)
def _ready(model: str) -> None:
    """Every test here needs the data set and, for later stages, a model."""


def test_steps_count_from_one_and_missing_fields_are_nan(flight: fl.FlightClient) -> None:
    run = create(flight, "counting")
    table = step(flight, run, 3)
    assert table.column_names == COLUMNS
    assert table["step"].to_pylist() == [1, 2, 3]
    assert table["kimg"].to_pylist() == pytest.approx([0.008, 0.016, 0.024])
    assert step(flight, run)["step"].to_pylist() == [4]
    frame = table.to_pandas()
    assert np.isfinite(frame[["loss", "grad_norm", "lr", "seconds"]].to_numpy()).all()
    assert frame[["schedule_grad_norm", "schedule_lr"]].isna().all().all()
    assert not any(field.nullable for field in table.schema)


def test_steps_on_sent_images_tell_that_the_loss_is_not_finite(flight: fl.FlightClient, diverged: str) -> None:
    rows = wire.table(image=wire.tensor(pictures(8)[0]), label=wire.int32(np.full(8, -1)))
    reply = wire.exchange(flight, "TrainStep", {"run": diverged}, rows.to_batches())
    assert not np.isfinite(reply.table["loss"].to_numpy()).any()
    (warning,) = (event["warning"] for event in reply.events if "warning" in event)
    assert "the loss is not finite" in warning


def test_cancelling_the_call_keeps_what_was_learned(flight: fl.FlightClient) -> None:
    run = create(flight, "interrupted")
    reader = flight.do_get(wire.ticket("TrainStep", {"run": run, "steps": 1_000_000}))
    seen = 0
    while seen < 3:
        seen += reader.read_chunk().data.num_rows
    reader.cancel()
    last = step(flight, run)["step"][0].as_py()
    assert seen < last < 1000
    assert state(flight, run) == "paused"
    rows = wire.get(flight, "WatchRun", {"run": run}).table
    assert rows["step"].to_pylist() == list(range(1, last + 1))  # none lost, none twice


def test_samplers_keep_the_model_they_started_with(flight: fl.FlightClient) -> None:
    run = create(flight, "republished", lr=1e-2)
    step(flight, run, 1)
    wire.act(flight, "SaveModel", {"run": run, "name": "republished"})
    request = {"model": "republished", "n": 4, "steps": 60, "dtype": "float32", "batch_bytes": 600}
    before = wire.get(flight, "Sample", request).table
    reader = flight.do_get(wire.ticket("Sample", request))
    reader.read_chunk()
    step(flight, run, 3)
    wire.act(flight, "SaveModel", {"run": run, "name": "republished", "replace": True})
    during = wire.collect(reader).table
    assert during["sample"].combine_chunks().equals(before["sample"].combine_chunks())
    after = wire.get(flight, "Sample", request).table
    assert not after["sample"].combine_chunks().equals(before["sample"].combine_chunks())
