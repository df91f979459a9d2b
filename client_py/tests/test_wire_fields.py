"""Fields and latents: floats in units of their own, of sizes that are not square, trained, sampled and measured."""

import json

import numpy as np
import pyarrow.flight as fl
import pytest
import wire

import anisoflight
from anisoflight.fid.errors import FidError
from anisoflight.fid.sources import ServerDataset, ServerSamples

NETWORK = {
    "model_type": "SongUNet",
    "img_resolution": [4, 8],
    "img_channels": 2,
    "model_channels": 8,
    "channel_mult": [1, 2],
    "num_blocks": 1,
    "attn_resolutions": [],
    "dropout": 0,
}
MEAN, SCALE = [288.0, -3.0], [24.0, 9.0]


def fields(count: int, seed: int = 0) -> np.ndarray:
    """Smooth Gaussian fields [n, 4, 8, 2]: low cosines with normal coefficients, as a temperature and a wind."""
    rng = np.random.default_rng(seed)
    rows = np.cos(np.pi * np.outer(np.arange(3), np.arange(4) + 0.5) / 4)
    columns = np.cos(np.pi * np.outer(np.arange(3), np.arange(8) + 0.5) / 8)
    spread = 1 / (1 + np.add.outer(np.arange(3), np.arange(3)))[..., None]
    waves = rng.standard_normal((count, 3, 3, 2)) * spread
    seen = 0.4 * np.einsum("nuvc,uh,vw->nhwc", waves, rows, columns)
    return (seen * SCALE + MEAN).astype(np.float32)


@pytest.fixture(scope="module")
def field(flight: fl.FlightClient) -> str:
    command = {"op": "PutDataset", "name": "weather", "mean": MEAN, "scale": SCALE}
    assert wire.put(flight, wire.command(command), wire.table(image=wire.tensor(fields(64)))) == {"rows": 64}
    return "weather"


@pytest.fixture(scope="module")
def trained(flight: fl.FlightClient, field: str) -> str:
    run = {"name": "weather", "stage": "pretrain", "dataset": field, "network": NETWORK, "batch": 16, "kimg": 1}
    wire.act(flight, "CreateRun", {**run, "lr": 5e-3})
    rows = wire.get(flight, "TrainStep", {"run": "weather", "steps": 8}).table
    assert np.isfinite(rows["loss"].to_numpy()).all()
    wire.act(flight, "SaveModel", {"run": "weather", "name": "weather"})
    return "weather"


def test_fields_come_back_to_the_bit(flight: fl.FlightClient, field: str) -> None:
    reply = wire.get(flight, "Dataset", {"dataset": field})
    np.testing.assert_array_equal(wire.numbers(reply.table["image"]), fields(64))
    assert json.loads((reply.schema.metadata or {})[b"normalization"]) == {"mean": MEAN, "scale": SCALE}
    listed = {info["name"]: info for info in wire.act(flight, "ListDatasets")[0]["datasets"]}
    assert listed[field]["normalization"] == {"mean": MEAN, "scale": SCALE}
    assert "normalization" not in listed.get("blocks", {})


def test_the_package(client: anisoflight.Client, field: str, trained: str) -> None:
    stored = client.dataset(field)
    assert stored.normalization == {"mean": MEAN, "scale": SCALE}
    client.put_dataset("again", stored[:8], replace=True)
    assert client.datasets().loc["again", "normalization"] == {"mean": MEAN, "scale": SCALE}
    client.put_dataset("again", stored.table, replace=True)
    assert client.dataset("again").normalization == {"mean": MEAN, "scale": SCALE}
    client.put_dataset("again", stored.table, scale=30, replace=True)
    assert client.dataset("again").normalization == {"mean": [0, 0], "scale": [30, 30]}
    samples = client.sample(trained, n=4, steps=4, every=2)
    assert samples.images.dtype == np.float32
    assert samples.normalization == stored.normalization
    assert samples.to_pil()[0].size == (16, 4)  # both channels side by side
    assert "2 channels side by side, black to white: 2" in samples._repr_html_()
    assert samples.grid().dtype == np.uint8
    client.put_dataset("drawn", samples, replace=True)
    assert client.dataset("drawn").normalization == stored.normalization

    seen: list[np.ndarray] = []

    def decode(values: np.ndarray) -> np.ndarray:
        seen.append(values)
        return np.clip((values[..., :1] - 288) / 24, -1, 1).repeat(2, 1).repeat(2, 2)

    decoded = client.sample(trained, n=4, steps=4, layout="CHW", decode=decode)
    assert decoded[1:3].to_pil()[0].size == (16, 8)
    np.testing.assert_array_equal(seen[-1], samples.images[1:3])
    assert "decoded" in decoded._repr_html_()
    with pytest.raises(anisoflight.BadRequestError, match=r"decode must return 4 images"):
        client.sample(trained, n=4, steps=1, decode=lambda values: values).to_pil()


def test_many_channels_last(client: anisoflight.Client) -> None:
    x = np.random.default_rng(0).normal(size=(3, 6, 5, 7)).astype(np.float32)
    client.put_dataset("seven", x, scale="measured", layout="HWC", replace=True)
    assert client.datasets().loc["seven", "shape"] == [6, 5, 7]
    np.testing.assert_array_equal(client.dataset("seven").images, x)
    assert client.dataset("seven").to_pil()[0].size == (35, 6)


def test_fid_is_of_images(client: anisoflight.Client, field: str, trained: str) -> None:
    with pytest.raises(FidError, match=r"data set 'weather' has float32 in other units"):
        ServerDataset(client, field)
    with pytest.raises(FidError, match=r"model 'weather' has float32 in other units"):
        ServerSamples(client, trained, 0, 4, {"nfe": 3})
