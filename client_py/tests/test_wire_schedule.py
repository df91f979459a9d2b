"""The gradient of a schedule."""

import numpy as np
import pyarrow as pa
import pyarrow.flight as fl
import wire


def put(flight: fl.FlightClient, name: str, label: object, subspace: object, t: object, g: object, **options: object):
    rows = wire.table(
        label=wire.int32(np.asarray(label)),
        subspace=wire.int32(np.asarray(subspace)),
        t=pa.array(np.asarray(t, float)),
        g=pa.array(np.asarray(g, float)),
    )
    return wire.put(flight, wire.command({"op": "PutSchedule", "name": name, **options}), rows)


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
