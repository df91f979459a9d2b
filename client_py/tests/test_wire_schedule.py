"""The gradient of a schedule."""

import numpy as np
import pyarrow as pa
import pyarrow.flight as fl
import wire


def test_gradient_rows_add_up_to_the_knots(flight: fl.FlightClient, model: str) -> None:
    """d_logg is the chain rule applied to A and B: d L/d ℓ_k = mean Σ A ∂g/∂ℓ_k + B ∂ġ/∂ℓ_k."""
    t, g = [0.0, 10.0, 60.0, 200.0, 400.0], [1e-9, 1e-2, 1.0, 40.0, 400.0]
    knots = wire.table(label=wire.int32([-1] * 5), subspace=wire.int32([0] * 5), t=t, g=g)
    wire.put(flight, wire.command({"op": "PutSchedule", "name": "knots", "replace": True}), knots)
    rng, shape = np.random.default_rng(0), (16, 8, 8, 1)
    rows = wire.table(
        image=wire.tensor(rng.uniform(-1, 1, shape).astype(np.float32)),
        noise=wire.tensor(rng.standard_normal(shape).astype(np.float32)),
        probe=wire.tensor((2 * rng.integers(0, 2, shape) - 1).astype(np.float32)),
        t=(np.arange(16) + 0.5) * 25,
        label=wire.int32(np.arange(16) % 10),
    )
    request = {"schedule": "knots", "model": model, "mode": "backprop"}
    reply = wire.exchange(flight, "ScheduleGradient", request, rows.to_batches(max_chunksize=8))
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
