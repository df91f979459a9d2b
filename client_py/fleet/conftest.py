"""A data folder with a small model, and the rows that one server measures of it."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from small import NETWORK, known, measured

import anisoflight
from anisoflight.fid.__main__ import main


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder with a small model, and its reference, too large for Ray to hand over with a call."""
    os.environ["ANISOFLIGHT_DEVICE"] = "go"  # of every server: it compiles nothing
    folder = tmp_path_factory.mktemp("fleet")
    with anisoflight.serve(data=folder / "data") as client:
        client.put_dataset("blocks", np.random.default_rng(1).integers(0, 256, (300, 8, 8, 3), np.uint8))
        client.create_run("tiny", stage="pretrain", dataset="blocks", network=NETWORK, batch=8, kimg=0.08).step(
            2, progress=False
        )
        client.run("tiny").save("tiny")
        made = ["ref", "--server", client.location, "--dataset", "blocks", "--features", "pixels", "--quiet"]
        assert main([*made, "--out", str(folder / "blocks.npz")]) == 0
    yield folder
    del os.environ["ANISOFLIGHT_DEVICE"]


@pytest.fixture(scope="session")
def one(folder: Path) -> bytes:
    """The rows of one server."""
    out = folder / "one.jsonl"
    with anisoflight.serve(data=folder / "data") as client:
        assert main([*known(folder, out), "--server", client.location]) == 0
    return measured(out)
