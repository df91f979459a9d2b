"""Schedules: tabulated, uploaded, and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.flight as fl
import pytest
import wire


def evaluate(flight: fl.FlightClient, **request: object) -> pa.Table:
    return wire.get(flight, "EvaluateSchedule", request).table


def put(flight: fl.FlightClient, name: str, label: object, subspace: object, t: object, g: object, **options: object):
    rows = wire.table(
        label=wire.int32(np.asarray(label)),
        subspace=wire.int32(np.asarray(subspace)),
        t=pa.array(np.asarray(t, float)),
        g=pa.array(np.asarray(g, float)),
    )
    return wire.put(flight, wire.command({"op": "PutSchedule", "name": name, **options}), rows)


@pytest.fixture(scope="module")
def two(flight: fl.FlightClient) -> str:
    """A shared schedule of two subspaces with knots of their own."""
    t = [0, 5, 100, 400, 0, 40, 400]
    g = [1e-9, 1e-2, 30, 400, 1e-9, 1, 400]
    answer = put(flight, "two", [-1] * 7, [0] * 4 + [1] * 3, t, g, basis="dct", k=16)
    assert answer == {"rows": 7}
    return "two"


def test_an_action_answers_the_same_rows(flight: fl.FlightClient, two: str) -> None:
    request = {"schedule": two, "points": 9}
    assert wire.act_rows(flight, "EvaluateSchedule", request).equals(evaluate(flight, **request))


def test_rows_are_sorted_whatever_their_order_was(flight: fl.FlightClient) -> None:
    labels, t, g = [3, 3, 1, 1, 3], [0, 7, 0, 10, 10], [1e-6, 2, 1e-6, 9, 9]
    put(flight, "per-class", labels, [0] * 5, t, g)
    table = evaluate(flight, schedule="per-class", t=[0, 10])
    assert table["label"].to_pylist() == [1, 1, 3, 3]
    only = evaluate(flight, schedule="per-class", t=[7], labels=[3])
    assert only["g"].to_pylist() == pytest.approx([2])
    refused = wire.code(lambda: evaluate(flight, schedule="per-class", labels=[2]))
    assert refused in ("BAD_REQUEST", "BAD_SCHEDULE")


BAD = {
    "t falls": ([-1] * 3, [0] * 3, [0, 5, 4], [1e-3, 1, 2]),
    "g falls": ([-1] * 3, [0] * 3, [0, 2, 4], [1e-3, 2, 1]),
    "g nan": ([-1] * 3, [0] * 3, [0, 2, 4], [1e-3, np.nan, 1]),
    "subspace missing": ([-1] * 2, [1] * 2, [0, 4], [1e-3, 1]),
    "shared and per class": ([-1, -1, 0, 0], [0] * 4, [0, 4, 0, 4], [1e-3, 1, 1e-3, 1]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_schedules_are_refused_and_leave_nothing(flight: fl.FlightClient, case: str) -> None:
    assert wire.code(lambda: put(flight, "bad", *BAD[case])) == "BAD_SCHEDULE"
    assert wire.code(lambda: evaluate(flight, schedule="bad")) == "SCHEDULE_NOT_FOUND"


# Files


def listed(flight: fl.FlightClient) -> dict[str, dict[str, Any]]:
    return wire.entries(wire.act(flight, "ListSchedules"))


FILE = {
    "format": "anisoflight-schedule",
    "version": 1,  # which had no provenance
    "family": {"per_class": False, "basis": "none"},
    "paths": [[{"t": [0, 1, 4], "g": [1e-9, 2, 4]}]],
}


def test_files_of_the_first_version_are_read(flight: fl.FlightClient) -> None:
    wire.act(flight, "ImportSchedule", {"name": "first-version", "file": FILE})
    assert evaluate(flight, schedule="first-version", t=[1.0])["g"].to_pylist() == [2]
    assert listed(flight)["first-version"]["provenance"]["kind"] == "upload"


# The gradient


def gradient_batches(count: int, T: float, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    shape = (count, 8, 8, 1)
    return wire.table(
        image=wire.tensor(rng.uniform(-1, 1, shape).astype(np.float32)),
        noise=wire.tensor(rng.standard_normal(shape).astype(np.float32)),
        probe=wire.tensor((2 * rng.integers(0, 2, shape) - 1).astype(np.float32)),
        t=pa.array((np.arange(count) + 0.5) / count * T),
        label=wire.int32(np.arange(count) % 10),
    )


def gradient(flight: fl.FlightClient, schedule: object, rows: pa.Table, **options: object) -> wire.Reply:
    request = {"schedule": schedule, "model": "digits", **options}
    return wire.exchange(flight, "ScheduleGradient", request, rows.to_batches(max_chunksize=8))


def test_gradient_rows_add_up_to_the_knots(flight: fl.FlightClient, model: str) -> None:
    """d_logg is the chain rule applied to A and B: d L/d ℓ_k = mean Σ A ∂g/∂ℓ_k + B ∂ġ/∂ℓ_k."""
    t, g = [0.0, 10.0, 60.0, 200.0, 400.0], [1e-9, 1e-2, 1.0, 40.0, 400.0]
    put(flight, "knots", [-1] * 5, [0] * 5, t, g, replace=True)
    rows = gradient_batches(16, 400)
    reply = gradient(flight, "knots", rows, mode="backprop")
    assert reply.table.column_names == ["loss", "A", "B"]
    assert reply.table.schema.field("A").type == pa.list_(pa.float64(), 1)
    A, B = (wire.numbers(reply.table[name])[:, 0] for name in "AB")
    expected = np.zeros(5)
    for time, a, b in zip(rows["t"].to_numpy(), A, B, strict=True):
        k = int(np.searchsorted(t, time, side="left"))
        width = t[k] - t[k - 1]
        share = (time - t[k - 1]) / width
        here = np.exp(np.interp(time, t, np.log(g)))
        slope = np.log(g[k] / g[k - 1]) / width
        for knot, weight, tilt in ((k - 1, 1 - share, -1 / width), (k, share, 1 / width)):
            expected[knot] += (a * here * weight + b * here * (slope * weight + tilt)) / 16
    np.testing.assert_allclose(reply.end["d_logg"][0][0], expected, rtol=1e-9, atol=1e-12)


def test_backprop_is_the_derivative_of_the_returned_loss(flight: fl.FlightClient, model: str) -> None:
    """With image, noise and t held, the loss is a function of the knots; central differences of it agree."""
    t, g = [0.0, 10.0, 60.0, 200.0, 400.0], np.array([1e-3, 5e-2, 1.0, 40.0, 400.0])
    rows = gradient_batches(24, 400, seed=1)

    def loss(logg: np.ndarray) -> float:
        put(flight, "knots", [-1] * 5, [0] * 5, t, np.exp(logg), replace=True)
        return float(np.mean(gradient(flight, "knots", rows, mode="backprop").table["loss"].to_numpy()))

    put(flight, "knots", [-1] * 5, [0] * 5, t, g, replace=True)
    claimed = np.array(gradient(flight, "knots", rows, mode="backprop").end["d_logg"][0][0])
    measured = []
    for knot in range(5):
        step = np.zeros(5)
        step[knot] = 0.02
        measured.append((loss(np.log(g) + step) - loss(np.log(g) - step)) / 0.04)
    np.testing.assert_allclose(claimed, measured, rtol=5e-3, atol=5e-3 * np.abs(measured).max())
