"""Runs: created, stepped, watched, saved."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.flight as fl
import pytest
import wire

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
COLUMNS += ["eval_energy", "eval_rise", "eval_rise_stderr", "gflops", "mfu"]


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


def test_the_same_seed_gives_the_same_training(flight: fl.FlightClient) -> None:
    losses = [step(flight, create(flight, f"twin-{i}", seed=7), 3)["loss"].to_pylist() for i in range(2)]
    assert losses[0] == losses[1]
    other = step(flight, create(flight, "other", seed=8), 3)["loss"].to_pylist()
    assert other != losses[0]


def test_training_learns(flight: fl.FlightClient) -> None:
    loss = step(flight, create(flight, "learning", batch=32, lr=4e-3), 60)["loss"].to_numpy()
    assert loss[-15:].mean() < 0.8 * loss[:15].mean()


@pytest.mark.parametrize("stage", ["isotropic", "anisotropic"])
def test_schedule_stages_move_the_schedule(flight: fl.FlightClient, stage: str) -> None:
    family = {"family": {"per_class": False, "basis": "dct"}} if stage == "anisotropic" else {}
    run = create(flight, stage, stage=stage, model="digits", train_network=False, schedule_lr=0.05, **family)
    frame = step(flight, run, 4).to_pandas()
    assert np.isfinite(frame[["loss", "energy", "schedule_grad_norm", "schedule_lr"]].to_numpy()).all()
    wire.act(flight, "SaveModel", {"run": run, "name": f"saved-{stage}"})
    learned = wire.get(flight, "EvaluateSchedule", {"schedule": f"saved-{stage}", "points": 32}).table.to_pandas()
    start = wire.get(flight, "EvaluateSchedule", {"schedule": {"edm": {"T": 400}}, "points": 32}).table["g"].to_numpy()
    assert sorted(learned["subspace"].unique()) == ([0, 1] if stage == "anisotropic" else [0])
    for _, curve in learned.groupby("subspace"):
        g = curve["g"].to_numpy()
        assert np.all(np.diff(g) > 0)
        np.testing.assert_allclose(g[[0, -1]], start[[0, -1]], rtol=1e-9)
        assert np.abs(np.log(g / start)).max() > 1e-3
    samples = wire.get(flight, "Sample", {"model": f"saved-{stage}", "n": 2, "steps": 3}).table
    assert samples.num_rows == 2


@pytest.mark.parametrize(("estimator", "absent"), [("full", {"backprop"}), ("backprop", set(TERMS[1:5]))])
def test_the_terms_of_the_estimate_are_reported(flight: fl.FlightClient, estimator: str, absent: set[str]) -> None:
    run = create(
        flight, f"terms-{estimator}", stage="isotropic", model="digits", train_network=False, estimator=estimator
    )
    frame = step(flight, run, 3).to_pandas()
    for term in TERMS:
        for column in (f"share_{term}", f"stderr_{term}"):
            assert frame[column].isna().all() == (term in absent), column
    np.testing.assert_allclose(frame.filter(like="share_").sum(axis=1), 1, rtol=1e-9)
    cosine = frame["schedule_grad_cosine"].to_numpy()
    assert np.isnan(cosine[0])
    assert np.all(np.abs(cosine[1:]) <= 1)


def test_a_run_that_stops_of_its_own_says_why(flight: fl.FlightClient) -> None:
    settings = {"stage": "isotropic", "model": "digits", "train_network": False, "kimg": 1.0, "schedule_lr": 10}
    options = {
        "early_stop": "energy",
        "eval_every_kimg": 0.016,
        "eval_samples": 1024,
        "schedule_ema_halflife_kimg": 0.001,
    }
    run = create(flight, "stopping", **settings, **options)
    wire.act(flight, "StartRun", {"run": run, "kimg": 1.0})
    frame = wire.get(flight, "WatchRun", {"run": run}).table.to_pandas()
    info = wire.act(flight, "GetRun", {"run": run})[0]
    assert info["state"] == "done"
    stopped = info["stopped"]
    assert stopped["reason"] == "energy"
    assert stopped["best_step"] < stopped["step"] == info["step"] == len(frame) < 125
    evaluated = frame["eval_energy"].dropna()
    assert evaluated.min() == pytest.approx(stopped["best_energy"], rel=1e-9)
    last = frame.iloc[-1]
    assert last["eval_rise"] > 3 * last["eval_rise_stderr"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("early_stop", "sometimes"),
        ("class_weighting", "heavy"),
        ("microbatch", -1),
        ("clip", -1.0),
        ("schedule_clip", -0.5),
        ("eval_samples", 0),
        ("eval_every_kimg", 0),
    ],
)
def test_options_out_of_range_are_named(flight: fl.FlightClient, field: str, value: object) -> None:
    with pytest.raises(pa.ArrowInvalid, match=rf"\[BAD_REQUEST\].*{field}"):
        create(flight, "refused", stage="isotropic", model="digits", **{field: value})


def test_a_frozen_network_stays_as_it_was(flight: fl.FlightClient) -> None:
    run = create(flight, "frozen", stage="isotropic", model="digits", train_network=False)
    step(flight, run, 2)
    wire.act(flight, "SaveModel", {"run": run, "name": "same-network"})
    rows = wire.table(
        x=wire.tensor(np.ones((1, 8, 8, 1), np.float32)), label=wire.int32([1]), sigma=pa.array([1.0])
    ).to_batches()
    before, after = (
        wire.numbers(wire.exchange(flight, "Denoise", {"model": name}, rows).table["raw"])
        for name in ("digits", "same-network")
    )
    np.testing.assert_array_equal(before, after)


def test_batches_of_the_callers_own(flight: fl.FlightClient) -> None:
    run = create(flight, "by-hand")
    images = np.random.default_rng(0).uniform(-1, 1, (24, 8, 8, 1)).astype(np.float32)
    rows = wire.table(image=wire.tensor(images), label=wire.int32(np.arange(24) % 10))
    reply = wire.exchange(flight, "TrainStep", {"run": run}, rows.to_batches(max_chunksize=8))
    assert reply.table["step"].to_pylist() == [1, 2, 3]
    assert wire.act(flight, "GetRun", {"run": run})[0]["step"] == 3


def test_a_run_is_watched_live(flight: fl.FlightClient) -> None:
    run = create(flight, "watched", lr=1e-3)
    step(flight, run, 2)
    seen: list[int] = []
    live = threading.Event()

    def watch() -> None:
        for chunk in flight.do_get(wire.ticket("WatchRun", {"run": run, "from": 0})):
            seen.extend(chunk.data["step"].to_pylist())
            if len(seen) > 2:
                live.set()

    wire.act(flight, "StartRun", {"run": run, "kimg": 1000})
    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    assert live.wait(20), "no row arrived while the run was at work"
    assert state(flight, run) == "running"
    assert wire.code(lambda: step(flight, run)) == "RUN_NOT_RUNNABLE"
    wire.act(flight, "PauseRun", {"run": run})
    watching.join(10)
    assert not watching.is_alive(), "watching goes on after the pause"
    assert seen == list(range(1, len(seen) + 1))
    assert state(flight, run) == "paused"
    assert step(flight, run)["step"].to_pylist() == [len(seen) + 1]
    late = wire.get(flight, "WatchRun", {"run": run, "from": len(seen)}).table
    assert late["step"].to_pylist() == [len(seen) + 1]
    wire.act(flight, "CancelRun", {"run": run})
    assert state(flight, run) == "cancelled"
    assert wire.code(lambda: step(flight, run)) == "RUN_NOT_RUNNABLE"


def test_a_background_run_ends_at_its_length(flight: fl.FlightClient) -> None:
    run = create(flight, "short")
    wire.act(flight, "StartRun", {"run": run, "kimg": 0.04})
    table = wire.get(flight, "WatchRun", {"run": run}).table
    assert table["step"].to_pylist() == [1, 2, 3, 4, 5]
    assert state(flight, run) == "done"


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


def test_names_are_taken_and_freed(flight: fl.FlightClient) -> None:
    run = create(flight, "named")
    assert wire.code(lambda: create(flight, "named")) == "NAME_TAKEN"
    assert wire.code(lambda: wire.act(flight, "SaveModel", {"run": run, "name": "digits"})) == "NAME_TAKEN"
    wire.act(flight, "DeleteRun", {"run": run})
    assert wire.code(lambda: wire.act(flight, "GetRun", {"run": run})) == "RUN_NOT_FOUND"
    create(flight, "named")


def test_loss_by_noise_level(flight: fl.FlightClient) -> None:
    request = {"model": "digits", "dataset": "blocks", "points": 6, "samples": 8, "seed": 3}
    table = wire.get(flight, "EvaluateModel", request).table
    assert table.column_names == ["label", "subspace", "t", "sigma", "loss", "residual", "stderr"]
    assert table.num_rows == 6
    assert np.isfinite(table.to_pandas().to_numpy()).all()
    assert table.equals(wire.act_rows(flight, "EvaluateModel", request))
    heavy = wire.get(flight, "EvaluateModel", {**request, "c": 25}).table  # ω = ġ²/(g (c + g)): less where g is small
    assert heavy["residual"].equals(table["residual"])
    ratio = heavy["loss"].to_numpy() / table["loss"].to_numpy()
    g = table["sigma"].to_numpy() ** 2
    np.testing.assert_allclose(ratio[3:], ((1 + g) / (25 + g))[3:], rtol=0.3)


def test_work_is_counted(flight: fl.FlightClient) -> None:
    run = create(flight, "counted")
    before = wire.act(flight, "ServerInfo")[0]["work"].get("step", {"gflop": 0.0, "runs": 0})
    rows = step(flight, run, 3).to_pandas()
    after = wire.act(flight, "ServerInfo")[0]["work"]["step"]
    done = (rows.gflops * rows.seconds).to_numpy()  # GFLOP of a step, whatever its time
    assert (done > 0).all()
    assert np.allclose(done, done[0])
    assert after["runs"] == before["runs"] + 3
    assert after["gflop"] - before["gflop"] == pytest.approx(done.sum())
    assert after["gflops"] == pytest.approx(after["gflop"] / after["seconds"])
    assert rows.mfu.isna().all()  # the peak was not measured
    assert "mfu" not in after


def test_a_run_tells_how_it_fits_the_memory(flight: fl.FlightClient) -> None:
    run = create(flight, "fitting")
    memory = wire.act(flight, "GetRun", {"run": run})[0]["memory"]
    assert memory["microbatch"] == 8
    assert 0 < memory["needed_bytes"] < memory["available_bytes"]
    assert "whole_bytes" not in memory  # all of the batch fits
