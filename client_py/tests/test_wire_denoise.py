"""Denoise: the formulas of the preconditioning, exactly, from its own three outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.flight as fl
import pytest
import wire

SIGMA_DATA = 0.5


@pytest.fixture(autouse=True)
def _ready(model: str) -> None:
    """Every test here needs the model."""


def images(count: int, scale: Any = 1.0) -> np.ndarray:
    return (np.random.default_rng(3).standard_normal((count, 8, 8, 1)) * scale).astype(np.float32)


def denoise(flight: fl.FlightClient, x: np.ndarray, dims: str = "HWC", size: int = 100, **more: object) -> wire.Reply:
    request = {key: more.pop(key) for key in ("basis", "k") if key in more}
    rows = wire.table(x=wire.tensor(x, dims), label=wire.int32([1] * len(x)), **more)
    return wire.exchange(flight, "Denoise", {"model": "digits", **request}, rows.to_batches(max_chunksize=size))


def test_outputs_obey_the_preconditioning(flight: fl.FlightClient) -> None:
    sigma = np.array([0.002, 0.1, 0.5, 3.0, 20.0])
    x = images(5, np.sqrt(sigma**2 + 0.25)[:, None, None, None])
    table = denoise(flight, x, sigma=pa.array(sigma)).table
    D, flow, F = (wire.numbers(table[name]).astype(float) for name in ("denoised", "flow", "raw"))
    s = sigma[:, None, None, None]
    total = s**2 + SIGMA_DATA**2
    np.testing.assert_allclose(D, SIGMA_DATA**2 / total * x + s * SIGMA_DATA / np.sqrt(total) * F, atol=2e-5)
    np.testing.assert_allclose(flow, -s / total * x + SIGMA_DATA / np.sqrt(total) * F, atol=2e-5)
    np.testing.assert_allclose(s * flow, D - x, atol=2e-5 * (1 + np.abs(x).max()))


def test_replies_keep_order_batches_and_layout(flight: fl.FlightClient) -> None:
    x = images(7)
    sigma = pa.array(np.linspace(0.1, 2, 7))
    whole = denoise(flight, x, sigma=sigma)
    parts = denoise(flight, x, sigma=sigma, size=2)
    assert sum(batch.num_rows > 0 for batch in parts.batches) == 4
    np.testing.assert_allclose(wire.numbers(parts.table["raw"]), wire.numbers(whole.table["raw"]), rtol=0, atol=1e-5)
    chw = denoise(flight, np.ascontiguousarray(np.moveaxis(x, 3, 1)), "CHW", sigma=sigma)
    assert chw.schema.field("raw").type.dim_names == ["C", "H", "W"]
    np.testing.assert_allclose(
        np.moveaxis(wire.numbers(chw.table["raw"]), 1, 3), wire.numbers(whole.table["raw"]), rtol=0, atol=1e-6
    )
