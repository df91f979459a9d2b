"""Bases that the server makes of data sets, and the families that use them."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.flight as fl
import wire


def make(flight: fl.FlightClient, **request: Any) -> dict[str, Any]:
    return wire.act(flight, "MakeBasis", request)[-1]


def vectors(flight: fl.FlightClient, **request: Any) -> dict[int, np.ndarray]:
    table = wire.get(flight, "Basis", request).table
    labels, rows = wire.numbers(table["label"]), wire.numbers(table["vector"])
    return {int(label): rows[labels == label].reshape(-1, 64) for label in np.unique(labels)}


def test_a_class_is_split_by_its_own_basis(flight: fl.FlightClient, model: str, dataset: str) -> None:
    """ScheduleGradient on a basis per class against Denoise: loss = Σ_j ω_j |P_j r|², B_j = 2 ω_j |P_j r|²/ġ_j with
    r = flow(x_0 + Σ_j √g_j P_j ε) + ε and the sample's own P_j."""
    make(flight, name="own", kind="pca_per_class", dataset=dataset, k=5, replace=True)
    knots = wire.table(
        label=wire.int32([-1] * 5), subspace=wire.int32([0, 0, 1, 1, 1]), t=[0.0, 9, 0, 4, 9], g=[1e-3, 9, 1e-3, 1, 9]
    )
    wire.put(flight, wire.command({"op": "PutSchedule", "name": "on-own", "basis": "own", "replace": True}), knots)
    rng = np.random.default_rng(1)
    labels, t = np.array([3, 0, 7, 3], np.int32), np.array([2.0, 5, 7, 8])
    at = wire.get(flight, "EvaluateSchedule", {"schedule": "on-own", "t": t.tolist()}).table
    g, speed = (wire.numbers(at[name]).reshape(2, 4).T for name in ("g", "gdot"))
    x0, noise, probe = (rng.standard_normal((4, 8, 8, 1)).astype(np.float32) for _ in range(3))
    own = vectors(flight, basis="own")
    low = np.stack([own[label].T @ own[label] for label in labels])
    split = np.stack([low, np.eye(64) - low], 1)  # [sample, subspace, 64, 64]
    noisy = x0.reshape(4, 64) + np.einsum("nj,njab,nb->na", np.sqrt(g), split, noise.reshape(4, 64))
    levels = pa.FixedSizeListArray.from_arrays(pa.array(g.ravel()), 2)
    x = wire.tensor(noisy.reshape(4, 8, 8, 1).astype(np.float32))
    rows = wire.table(x=x, label=wire.int32(labels), g=levels).to_batches()
    flow = wire.numbers(wire.exchange(flight, "Denoise", {"model": model, "basis": "own"}, rows).table["flow"])
    residual = np.einsum("njab,nb->nja", split, (flow + noise).reshape(4, 64))
    parts = (residual**2).sum(2) * speed**2 / (g * (1 + g))

    request = {"schedule": "on-own", "model": model}
    columns = {"image": wire.tensor(x0), "noise": wire.tensor(noise), "probe": wire.tensor(probe), "t": t}
    rows = wire.table(**columns, label=wire.int32(labels)).to_batches()
    table = wire.exchange(flight, "ScheduleGradient", {**request, "mode": "explicit"}, rows).table
    np.testing.assert_allclose(wire.numbers(table["loss"]), parts.sum(1), rtol=1e-3)
    np.testing.assert_allclose(wire.numbers(table["B"]), 2 * parts / speed, rtol=1e-3)
    rows = wire.table(**columns, label=wire.int32([3, 0, -1, 3])).to_batches()
    assert wire.code(lambda: wire.exchange(flight, "ScheduleGradient", request, rows)) == "BAD_REQUEST"

    evaluate = {"model": model, "dataset": dataset, "schedule": "on-own", "points": 4, "samples": 4}
    table = wire.get(flight, "EvaluateModel", evaluate).table
    assert table["subspace"].to_pylist() == [0] * 4 + [1] * 4
    assert (wire.numbers(table["residual"]) > 0).all()
    assert (wire.numbers(table["stderr"]) > 0).all()


def test_a_schedule_outlives_its_basis(flight: fl.FlightClient, model: str, dataset: str) -> None:
    make(flight, name="fleeting", kind="pca", dataset=dataset, k=3)
    table = wire.table(
        label=wire.int32([-1] * 5), subspace=wire.int32([0, 0, 1, 1, 1]), t=[0.0, 9, 0, 4, 9], g=[1e-6, 9, 1e-6, 1, 9]
    )
    wire.put(flight, wire.command({"op": "PutSchedule", "name": "kept", "basis": "fleeting"}), table)
    request = {"model": model, "n": 2, "steps": 2, "schedule": "kept"}
    before = wire.get(flight, "Sample", request).table["sample"]
    make(flight, name="fleeting", kind="haar", dataset=dataset, replace=True)
    wire.act(flight, "DeleteBasis", {"basis": "fleeting"})
    assert wire.get(flight, "Sample", request).table["sample"].equals(before)
    assert vectors(flight, schedule="kept")[-1].shape == (3, 64)
