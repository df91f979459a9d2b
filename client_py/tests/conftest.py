"""One server for the whole session, with a data set and a small model on it."""

import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.flight as fl
import pytest
import wire

import anisoflight

# Programs started by tests are interrupted. Where the tests themselves run with SIGINT or SIGHUP ignored, as in the
# background of a shell and under nohup, their children would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def data_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="session")
def server(data_folder: Path) -> Iterator[anisoflight.LocalClient]:
    with anisoflight.serve(data=data_folder, listen="127.0.0.1:0") as client:
        yield client
        log = client.server.log
    assert "panic" not in log, log
    assert client.server.process.returncode == 0, f"the server did not end cleanly:\n{client.server.log}"


@pytest.fixture(scope="session")
def flight(server: anisoflight.LocalClient) -> Iterator[fl.FlightClient]:
    with fl.FlightClient(server.location) as client:
        yield client


def pictures(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Images with a bright block whose place is their label."""
    labels = np.arange(count, dtype=np.int32) % 10
    images = np.random.default_rng(seed).integers(0, 40, (count, 8, 8, 1), np.uint8)
    for image, label in zip(images, labels, strict=True):
        image[label % 5 + 1 : label % 5 + 3, label // 5 * 4 : label // 5 * 4 + 3] = 240
    return images, labels


@pytest.fixture(scope="session")
def dataset(flight: fl.FlightClient) -> str:
    images, labels = pictures(64)
    rows = wire.table(image=wire.tensor(images), label=wire.int32(labels))
    assert wire.put(flight, fl.FlightDescriptor.for_path("datasets", "blocks"), rows) == {"rows": 64}
    return "blocks"


@pytest.fixture(scope="session")
def model(flight: fl.FlightClient, dataset: str) -> str:
    """A conditional model of 8×8 images, trained for a moment."""
    settings = {
        "stage": "pretrain",
        "dataset": dataset,
        "network": wire.NETWORK,
        "batch": 8,
        "kimg": 0.48,
        "lr": 5e-3,
        "T": 400,
    }
    wire.act(flight, "CreateRun", {"name": "for-model", **settings})
    assert wire.get(flight, "TrainStep", {"run": "for-model", "steps": 60}).table.num_rows == 60
    wire.act(flight, "SaveModel", {"run": "for-model", "name": "digits"})
    return "digits"


@pytest.fixture(scope="session")
def client(server: anisoflight.LocalClient, model: str) -> anisoflight.Client:
    """The package's client, on a server that has the model `digits` and the data set `blocks`."""
    assert model == "digits"
    return server


@pytest.fixture(scope="session")
def diverged(client: anisoflight.Client) -> str:
    """A run whose loss is NaN after 24 steps, and a model of it whose answers are."""
    network = {"img_resolution": 8, "img_channels": 1, "model_channels": 8, "channel_mult": [1], "num_blocks": 1}
    settings = {"batch": 8, "kimg": 1, "lr": 30.0, "ema_halflife_kimg": 0.001, "network": network}
    run = client.create_run("blown", "pretrain", "blocks", **settings)
    with pytest.warns(UserWarning, match=r"step \d+: the loss is not finite"):
        run.step(24, progress=False)
    run.save("blown", force=True)
    return "blown"
