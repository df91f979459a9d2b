"""Fields and latents: floats in units of their own, of sizes that are not square, trained, sampled and measured."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
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


def test_what_is_measured(flight: fl.FlightClient) -> None:
    x = fields(50, 3)
    command = {"op": "PutDataset", "name": "measured", "scale": "measured"}
    wire.put(flight, wire.command(command), wire.table(image=wire.tensor(x)).to_batches(7))
    found = next(i for i in wire.act(flight, "ListDatasets")[0]["datasets"] if i["name"] == "measured")["normalization"]
    wide = x.astype(np.float64)
    np.testing.assert_allclose(found["mean"], wide.mean((0, 1, 2)), rtol=1e-12)
    np.testing.assert_allclose(found["scale"], 2 * wide.std((0, 1, 2)), rtol=1e-12)


def test_sixteen_channels(flight: fl.FlightClient) -> None:
    x = np.random.default_rng(0).normal(5, 3, (6, 16, 2, 4)).astype(np.float32)
    command = {"op": "PutDataset", "name": "latents", "mean": 5, "scale": 6}
    wire.put(flight, wire.command(command), wire.table(image=wire.tensor(x, "CHW")))
    np.testing.assert_array_equal(wire.numbers(wire.get(flight, "Dataset", {"dataset": "latents"}).table["image"]), x)
    listed = {info["name"]: info for info in wire.act(flight, "ListDatasets")[0]["datasets"]}
    assert listed["latents"]["normalization"] == {"mean": [5] * 16, "scale": [6] * 16}


def test_samples_have_the_units_of_the_fields(flight: fl.FlightClient, trained: str) -> None:
    info = wire.act(flight, "DescribeModel", {"model": trained})[0]
    assert (info["img_resolution"], info["img_width"], info["img_channels"]) == (4, 8, 2)
    assert info["normalization"] == {"mean": MEAN, "scale": SCALE} == info["config"]["normalization"]
    reply = wire.get(flight, "Sample", {"model": trained, "n": 3, "steps": 4, "every": 2})
    assert reply.schema.field("sample").type.value_type == pa.float32()
    metadata = {key.decode(): value.decode() for key, value in reply.schema.metadata.items()}
    assert json.loads(metadata["request"])["dtype"] == "float32"
    assert json.loads(metadata["normalization"]) == {"mean": MEAN, "scale": SCALE}
    x = wire.numbers(reply.table["sample"])
    assert x.shape == (9, 4, 8, 2)
    assert np.abs((x.mean((0, 1, 2)) - MEAN) / SCALE).max() < 1
    # The reply is what a loop outside gets from the denoiser, which sees (x − mean)/scale.
    plan = wire.act(flight, "PlanSampler", {"model": trained, "steps": 2, "solver": "euler"})[0]
    latents = np.random.default_rng(1).standard_normal((2, 4, 8, 2)).astype(np.float32)
    rows = wire.table(latent=wire.tensor(latents), label=wire.int32([-1, -1])).to_batches()
    drawn = wire.exchange(flight, "Sample", {"model": trained, "steps": 2, "solver": "euler"}, rows).table
    state = plan["init"][0] * latents
    for stage in plan["stages"]:
        sigma = pa.array(np.full(2, np.sqrt(stage["g"][0])))
        rows = wire.table(x=wire.tensor(state), label=wire.int32([-1, -1]), sigma=sigma).to_batches()
        flow = wire.numbers(wire.exchange(flight, "Denoise", {"model": trained}, rows).table["flow"])
        state = (stage["alpha"][0] * state + stage["beta"][0][0] * flow).astype(np.float32)
    np.testing.assert_allclose(wire.numbers(drawn["sample"]), state * SCALE + MEAN, rtol=0, atol=2e-3)


def test_bytes_are_refused(flight: fl.FlightClient, trained: str) -> None:
    request = {"model": trained, "n": 1, "steps": 2, "dtype": "uint8"}
    assert wire.code(lambda: wire.get(flight, "Sample", request)) == "BAD_REQUEST"
    image = wire.tensor(np.zeros((2, 4, 8, 2), np.uint8))
    command = wire.command({"op": "PutDataset", "name": "bytes", "scale": 2})
    assert wire.code(lambda: wire.put(flight, command, wire.table(image=image))) == "BAD_REQUEST"


@pytest.mark.parametrize(
    ("units", "values", "code"),
    [
        ({}, 288, "BAD_TENSOR"),
        ({"scale": "measured"}, 288, "BAD_TENSOR"),
        ({"scale": 1}, np.nan, "BAD_TENSOR"),
        ({"scale": [1, 2, 3]}, 1, "BAD_REQUEST"),
        ({"scale": -1}, 1, "BAD_REQUEST"),
        ({"mean": 1e400}, 1, "BAD_REQUEST"),
        ({"mean": "mine"}, 1, "BAD_REQUEST"),
    ],
)
def test_what_is_no_field(flight: fl.FlightClient, units: dict[str, object], values: float, code: str) -> None:
    rows = wire.table(image=wire.tensor(np.full((2, 4, 8, 2), values, np.float32)))
    body = json.dumps({"op": "PutDataset", "name": "refused", **units}).replace("Infinity", "1e400")
    descriptor = fl.FlightDescriptor.for_command(body.encode())
    assert wire.code(lambda: wire.put(flight, descriptor, rows)) == code
    assert wire.code(lambda: wire.get(flight, "Dataset", {"dataset": "refused"})) == "DATASET_NOT_FOUND"


def test_the_normal_law_of_fields(client: anisoflight.Client, field: str) -> None:
    """A mixture of one component is the fields' own normal law; sampled to the end it has their moments."""
    client.put_dataset("law", fields(500, 7), scale="measured", replace=True)
    client.make_mixture("law", "law", covariance="full", replace=True)
    real, drawn = fields(500, 7).reshape(500, -1), client.sample("law", n=500, steps=18, grid="edm").images
    deviation = real.std(0)
    error = (drawn.reshape(500, -1).mean(0) - real.mean(0)) / deviation
    assert np.abs(error).max() < 5 / np.sqrt(500)
    ratio = drawn.reshape(500, -1).std(0) / deviation
    assert np.abs(ratio - 1).max() < 5 / np.sqrt(1000)


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


def test_fields_are_measured(client: anisoflight.Client) -> None:
    """Compare sees fields as the network does: unclamped, every channel alike, in the model's own normalization."""
    x = fields(400, 11)
    client.put_dataset("real", x, scale="measured", replace=True)
    client.put_dataset("redeclared", x, mean=[0, 0], scale=[1, 1000], replace=True)
    far = (x - x.mean(0)) * 2 + x.mean(0)
    client.put_dataset("wide", far, scale="measured", replace=True)
    client.make_mixture("exact", "real", covariance="full", replace=True)
    options: dict[str, Any] = {"solvers": ["unipc"], "nfe": [12], "grids": ["polynomial"], "seeds": 1, "samples": 300}
    found = {
        name: float(
            client.compare("exact", reference=name, features=8, probes=16, progress=False, **options)["frechet"].iloc[0]
        )
        for name in ("real", "redeclared", "wide")
    }
    assert found["real"] == pytest.approx(found["redeclared"], rel=1e-6)
    assert found["wide"] > 5 * found["real"]


def test_fields_start_from_their_law(client: anisoflight.Client) -> None:
    real = fields(200, 11)
    client.put_dataset("started", real, scale="measured", replace=True)
    client.make_mixture("started", "started", replace=True)
    client.make_schedule(
        "field-start", "start", dataset="started", schedule="edm", sigma_max=3, replace=True, progress=False
    )
    drawn = client.sample("started", n=200, nfe=6, solver="dpmpp2m", grid="polynomial", schedule="field-start").images
    assert np.abs((drawn.mean((0, 1, 2)) - real.mean((0, 1, 2))) / real.std((0, 1, 2))).max() < 0.2


def test_fid_is_of_images(client: anisoflight.Client, field: str, trained: str) -> None:
    with pytest.raises(FidError, match=r"data set 'weather' has float32 in units of its own"):
        ServerDataset(client, field)
    with pytest.raises(FidError, match=r"model 'weather' has float32 in units of its own"):
        ServerSamples(client, trained, 0, 4, {"nfe": 3})
