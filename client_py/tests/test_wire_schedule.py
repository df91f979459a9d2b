"""Schedules: tabulated, uploaded, and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.flight as fl
import pytest
import wire

G0 = 1e-9
K = 32


def edm_knots(T: float) -> tuple[np.ndarray, np.ndarray]:
    """t and g of the EDM schedule: its ρ = 7 grid of σ, squared, on uniform times, with both ends exact."""
    s = np.arange(K) / (K - 1)
    top = np.sqrt(T) ** (1 / 7)
    g = ((top + s * (0.002 ** (1 / 7) - top)) ** 7)[::-1] ** 2
    g[0], g[-1] = G0, T
    return np.linspace(0, T, K), g


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


def test_the_schedule_of_edm_is_its_grid(flight: fl.FlightClient) -> None:
    table = evaluate(flight, schedule={"edm": {"T": 400}}, points=K)
    t, g = edm_knots(400)
    np.testing.assert_allclose(table["t"].to_numpy(), t, rtol=1e-12)
    np.testing.assert_allclose(table["g"].to_numpy(), g, rtol=1e-6)  # θ adds 1e-8 to every increment of ln g
    np.testing.assert_allclose(table["g"].to_numpy()[[0, -1]], g[[0, -1]], rtol=1e-12)
    np.testing.assert_allclose(table["sigma"].to_numpy() ** 2, table["g"].to_numpy(), rtol=1e-12)
    assert table["label"].to_pylist() == [-1] * K
    assert table["subspace"].to_pylist() == [0] * K
    assert table.schema.types == [pa.int32(), pa.int32()] + [pa.float64()] * 4
    assert not any(field.nullable for field in table.schema)


def test_defaults(flight: fl.FlightClient) -> None:
    table = evaluate(flight, schedule="edm")
    assert table.num_rows == 256
    assert (table["t"][0].as_py(), table["t"][-1].as_py()) == (0, 6400)


def test_between_knots_ln_g_is_linear(flight: fl.FlightClient) -> None:
    t, g = edm_knots(400)
    between = np.sort(np.random.default_rng(0).uniform(0, 400, 50))
    table = evaluate(flight, schedule={"edm": {"T": 400}}, t=between.tolist())
    np.testing.assert_allclose(np.log(table["g"].to_numpy()), np.interp(between, t, np.log(g)), rtol=0, atol=1e-6)
    interval = np.searchsorted(t, between, side="left") - 1  # the left interval at a knot
    slope = (np.diff(np.log(g)) / np.diff(t))[interval]
    np.testing.assert_allclose(table["gdot"].to_numpy(), table["g"].to_numpy() * slope, rtol=1e-6)


def test_an_action_answers_the_same_rows(flight: fl.FlightClient, two: str) -> None:
    request = {"schedule": two, "points": 9}
    assert wire.act_rows(flight, "EvaluateSchedule", request).equals(evaluate(flight, **request))


def test_an_uploaded_schedule_passes_through_its_knots(flight: fl.FlightClient, two: str) -> None:
    table = evaluate(flight, schedule=two, t=[0, 5, 40, 100, 400]).to_pandas()
    first = table[table["subspace"] == 0]
    assert first["t"].tolist() == [0, 5, 40, 100, 400]
    np.testing.assert_allclose(first["g"].to_numpy()[[0, 1, 3, 4]], [1e-9, 1e-2, 30, 400], rtol=1e-12)
    np.testing.assert_allclose(table[table["subspace"] == 1]["g"].to_numpy()[[0, 2, 4]], [1e-9, 1, 400], rtol=1e-12)
    assert two in listed(flight)


def test_rows_are_sorted_whatever_their_order_was(flight: fl.FlightClient) -> None:
    labels, t, g = [3, 3, 1, 1, 3], [0, 7, 0, 10, 10], [1e-6, 2, 1e-6, 9, 9]
    put(flight, "per-class", labels, [0] * 5, t, g)
    table = evaluate(flight, schedule="per-class", t=[0, 10])
    assert table["label"].to_pylist() == [1, 1, 3, 3]
    only = evaluate(flight, schedule="per-class", t=[7], labels=[3])
    assert only["g"].to_pylist() == pytest.approx([2])
    refused = wire.code(lambda: evaluate(flight, schedule="per-class", labels=[2]))
    assert refused in ("BAD_REQUEST", "BAD_SCHEDULE")


def test_a_name_is_taken_until_replaced(flight: fl.FlightClient) -> None:
    row = ([-1, -1], [0, 0], [0, 4], [1e-3, 2])
    put(flight, "mine", *row)
    assert wire.code(lambda: put(flight, "mine", *row)) == "NAME_TAKEN"
    put(flight, "mine", [-1, -1], [0, 0], [0, 5], [1e-3, 2], replace=True)
    assert evaluate(flight, schedule="mine", points=2)["t"].to_pylist() == [0, 5]
    wire.act(flight, "DeleteSchedule", {"schedule": "mine"})
    assert wire.code(lambda: evaluate(flight, schedule="mine")) == "SCHEDULE_NOT_FOUND"


def test_a_models_name_is_not_for_schedules(flight: fl.FlightClient, model: str) -> None:
    assert wire.code(lambda: put(flight, model, [-1, -1], [0, 0], [0, 4], [1e-3, 2])) == "NAME_TAKEN"
    assert evaluate(flight, schedule=model)["t"][-1].as_py() > 0


BAD = {
    "t falls": ([-1] * 3, [0] * 3, [0, 5, 4], [1e-3, 1, 2]),
    "t repeats": ([-1] * 3, [0] * 3, [0, 4, 4], [1e-3, 1, 2]),
    "t starts late": ([-1] * 2, [0] * 2, [1, 4], [1e-3, 2]),
    "t negative": ([-1] * 3, [0] * 3, [-1, 0, 4], [1e-3, 1, 2]),
    "g falls": ([-1] * 3, [0] * 3, [0, 2, 4], [1e-3, 2, 1]),
    "g stays": ([-1] * 3, [0] * 3, [0, 2, 4], [1e-3, 1, 1]),
    "g zero": ([-1] * 2, [0] * 2, [0, 4], [0, 1]),
    "g negative": ([-1] * 2, [0] * 2, [0, 4], [-1, 1]),
    "g nan": ([-1] * 3, [0] * 3, [0, 2, 4], [1e-3, np.nan, 1]),
    "g infinite": ([-1] * 2, [0] * 2, [0, 4], [1e-3, np.inf]),
    "t infinite": ([-1] * 2, [0] * 2, [0, np.inf], [1e-3, 1]),
    "one knot": ([-1], [0], [0], [1]),
    "ends apart in t": ([0, 0, 1, 1], [0] * 4, [0, 4, 0, 5], [1e-3, 1, 1e-3, 1]),
    "subspace missing": ([-1] * 2, [1] * 2, [0, 4], [1e-3, 1]),
    "subspace negative": ([-1] * 2, [-1] * 2, [0, 4], [1e-3, 1]),
    "label below -1": ([-2] * 2, [0] * 2, [0, 4], [1e-3, 1]),
    "shared and per class": ([-1, -1, 0, 0], [0] * 4, [0, 4, 0, 4], [1e-3, 1, 1e-3, 1]),
    "two subspaces without a basis": ([-1] * 4, [0, 0, 1, 1], [0, 4, 0, 4], [1e-3, 1, 1e-3, 1]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_schedules_are_refused_and_leave_nothing(flight: fl.FlightClient, case: str) -> None:
    assert wire.code(lambda: put(flight, "bad", *BAD[case])) == "BAD_SCHEDULE"
    assert wire.code(lambda: evaluate(flight, schedule="bad")) == "SCHEDULE_NOT_FOUND"


def test_no_rows_are_no_schedule(flight: fl.FlightClient) -> None:
    empty = wire.table(
        label=wire.int32([]), subspace=wire.int32([]), t=pa.array([], pa.float64()), g=pa.array([], pa.float64())
    )
    batch = pa.RecordBatch.from_arrays([column.chunk(0) for column in empty.columns], schema=empty.schema)
    descriptor = wire.command({"op": "PutSchedule", "name": "bad"})
    assert wire.code(lambda: wire.put(flight, descriptor, [batch])) == "BAD_SCHEDULE"


def test_schedules_by_formula(flight: fl.FlightClient) -> None:
    for kind in ("edm", "log-linear", "cosine"):
        wire.act(flight, "MakeSchedule", {"name": f"made-{kind}", "kind": kind, "T": 400, "knots": 12})
        g = evaluate(flight, schedule=f"made-{kind}", points=12)["g"].to_numpy()
        assert np.all(np.diff(g) > 0)
        np.testing.assert_allclose([g[0], g[-1]], [G0, 400], rtol=1e-9)
    log = np.log(evaluate(flight, schedule="made-log-linear", points=7)["g"].to_numpy())
    np.testing.assert_allclose(np.diff(log, 2), 0, atol=1e-8)


def test_the_geodesic_moves_at_constant_speed(flight: fl.FlightClient, model: str, dataset: str) -> None:
    request = {"name": "geodesic", "kind": "geodesic", "model": model, "dataset": dataset, "T": 400, "knots": 24}
    *progress, answer = wire.act(flight, "MakeSchedule", request)
    assert answer
    assert all(event["event"] == "progress" for event in progress)
    g = evaluate(flight, schedule="geodesic", points=24)["g"].to_numpy()
    assert np.all(np.diff(g) > 0)
    # Its own measure of the loss: where the schedule is slow in ln g the residual is large.
    levels = wire.get(
        flight, "EvaluateModel", {"model": model, "dataset": dataset, "schedule": "geodesic", "points": 24}
    )
    loss = levels.table["loss"].to_numpy()
    inner = loss[3:-3]
    assert np.isfinite(loss).all()
    assert inner.max() / np.median(inner) < 4  # flat, where EDM's start varies by orders of magnitude


# Files


def listed(flight: fl.FlightClient) -> dict[str, dict[str, Any]]:
    return wire.entries(wire.act(flight, "ListSchedules"))


def test_a_schedule_tells_where_it_came_from(flight: fl.FlightClient, model: str, dataset: str) -> None:
    request = {"name": "told", "kind": "geodesic", "model": model, "dataset": dataset, "T": 400, "points": 8, "seed": 3}
    wire.act(flight, "MakeSchedule", {**request, "samples": 4})
    told = listed(flight)["told"]["provenance"]
    (described,) = wire.act(flight, "DescribeModel", {"model": model})
    assert (told["kind"], told["seed"], told["dataset"]["name"]) == ("geodesic", 3, dataset)
    assert told["model"] == {"name": model, "hash": described["hash"]}
    assert 0 < told["energy_after"]["value"] < told["energy_before"]["value"]
    (file,) = wire.act(flight, "ExportSchedule", {"schedule": "told"})
    assert (file["format"], file["version"]) == ("anisoflight-schedule", 2)
    assert file["provenance"] == told

    wire.act(flight, "ImportSchedule", {"name": "copy-of-told", "file": file})
    assert listed(flight)["copy-of-told"]["provenance"] == told
    knots = evaluate(flight, schedule="told", knots=True)
    assert evaluate(flight, schedule="copy-of-told", knots=True).equals(knots)
    assert wire.act(flight, "ExportSchedule", {"schedule": "copy-of-told"}) == [file]

    put(flight, "knots-of-told", *(knots[c].to_numpy() for c in ("label", "subspace", "t", "g")))
    assert listed(flight)["knots-of-told"]["provenance"]["kind"] == "upload"
    again = evaluate(flight, schedule="knots-of-told", points=50)["g"]
    np.testing.assert_allclose(again, evaluate(flight, schedule="told", points=50)["g"], rtol=1e-12)


FILE = {
    "format": "anisoflight-schedule",
    "version": 1,  # which had no provenance
    "family": {"per_class": False, "basis": "none"},
    "paths": [[{"t": [0, 1, 4], "g": [1e-9, 2, 4]}]],
}
BAD_FILES = {
    "of another format": {"format": "tables"},
    "of a version to come": {"version": 99},
    "with a field of its own": {"colour": "red"},
    "with theta and paths": {"theta": [[[1.0, 2.0]]], "T": 4, "g0": 1e-9},
    "that falls": {"paths": [[{"t": [0, 1, 4], "g": [1e-9, 5, 4]}]]},
    "without paths": {"paths": []},
}


def test_files_of_the_first_version_are_read(flight: fl.FlightClient) -> None:
    wire.act(flight, "ImportSchedule", {"name": "first-version", "file": FILE})
    assert evaluate(flight, schedule="first-version", t=[1.0])["g"].to_pylist() == [2]
    assert listed(flight)["first-version"]["provenance"]["kind"] == "upload"


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_files_are_refused_and_leave_nothing(flight: fl.FlightClient, case: str) -> None:
    request = {"name": "bad-file", "file": {**FILE, **BAD_FILES[case]}}
    assert wire.code(lambda: wire.act(flight, "ImportSchedule", request)) == "BAD_SCHEDULE"
    assert "bad-file" not in listed(flight)


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


def test_theta_is_the_chain_rule_on_the_knots(flight: fl.FlightClient, model: str) -> None:
    """θ of the EDM schedule: increments softplus(θ) + 1e-8, normalised; d_theta = (∂ℓ/∂θ)ᵀ d_logg."""
    T = 400.0
    end = gradient(flight, {"edm": {"T": T}}, gradient_batches(8, T), mode="backprop").end
    d_logg, d_theta = np.array(end["d_logg"][0][0]), np.array(end["d_theta"][0][0])
    assert (len(d_logg), len(d_theta)) == (K, K - 1)
    _, g = edm_knots(T)
    increments = np.diff(np.log(g))
    theta = increments + np.log(-np.expm1(-increments))

    def knots(theta: np.ndarray) -> np.ndarray:
        inc = np.logaddexp(0, theta) + 1e-8
        return np.log(G0) + np.log(T / G0) * np.concatenate([[0], np.cumsum(inc)]) / inc.sum()

    h = 1e-6
    jacobian = np.stack([(knots(theta + h * e) - knots(theta - h * e)) / (2 * h) for e in np.eye(K - 1)], axis=1)
    np.testing.assert_allclose(d_theta, jacobian.T @ d_logg, rtol=1e-4, atol=1e-5 * np.abs(d_theta).max())


def test_modes_share_the_loss_and_b(flight: fl.FlightClient, model: str) -> None:
    rows = gradient_batches(8, 400)
    schedule = {"edm": {"T": 400}}
    replies = {mode: gradient(flight, schedule, rows, mode=mode).table for mode in ("full", "backprop", "explicit")}
    for table in replies.values():
        np.testing.assert_allclose(table["loss"].to_numpy(), replies["full"]["loss"].to_numpy(), rtol=1e-4)
        np.testing.assert_allclose(wire.numbers(table["B"]), wire.numbers(replies["full"]["B"]), rtol=1e-4)
    assert not np.allclose(wire.numbers(replies["full"]["A"]), wire.numbers(replies["explicit"]["A"]), rtol=1e-2)
    auto = gradient(flight, schedule, rows).table  # an isotropic schedule: the network sees all of g
    np.testing.assert_allclose(wire.numbers(auto["A"]), wire.numbers(replies["backprop"]["A"]), rtol=1e-4)


def test_gradient_of_two_subspaces(flight: fl.FlightClient, model: str, two: str) -> None:
    reply = gradient(flight, two, gradient_batches(8, 400), mode="full")
    assert wire.numbers(reply.table["A"]).shape == (8, 2)
    assert [len(path) for path in reply.end["d_logg"][0]] == [4, 3]
    assert np.isfinite(wire.numbers(reply.table["A"])).all()
