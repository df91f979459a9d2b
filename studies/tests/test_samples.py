"""The picture of samples: what stands in it are the samples of the samplers that it names."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from PIL import Image

import anisoflight
from studies import samples

NETWORK = {
    "img_resolution": 8, "img_channels": 1, "label_dim": 10, "model_channels": 16,
    "channel_mult": [1], "num_blocks": 1, "attn_resolutions": [], "dropout": 0,
}  # fmt: skip


def test_three_samplers_from_the_same_seeds(tmp_path: Path) -> None:
    labels = np.arange(80) % 10
    images = np.random.default_rng(0).integers(0, 255, (80, 8, 8, 1), np.uint8)
    np.savez(tmp_path / "images.npz", images=images, labels=labels)
    with anisoflight.serve(data=tmp_path / "trained") as client:
        client.put_dataset("noise", images, labels)
        run = client.create_run("net", "pretrain", "noise", network=NETWORK, batch=8, kimg=0.04)
        run.step(5)
        run.save("net")
    words = [tmp_path / "trained/models/net", tmp_path / "images.npz", "--data", tmp_path / "data"]
    words += ["--out", tmp_path / "three.png", "--samples", "64", "--rows", "2"]
    samples.main([*map(str, words)])
    picture = np.asarray(Image.open(tmp_path / "three.png"))
    report = json.loads((tmp_path / "three.json").read_text())
    width, height = samples.COLUMNS * 16, 2 * 16
    assert picture.shape == (samples.BANNER + height, 3 * width + 2 * samples.GAP, 3)
    with anisoflight.serve(data=tmp_path / "data") as client:
        common = {"labels": [*range(2 * samples.COLUMNS)], "seed": 0, "progress": False}
        few = client.plan(plan="net-few3").info
        assert report == {key: few[key] for key in samples.KEPT}
        plain = few["against"]
        levels = {"polynomial": {"sigma_max": plain["sigma_max"], "rho": samples.RHO[plain["levels"]]}}
        wanted = [
            client.sample("net", schedule="edm", solver=plain["solver"], grid=levels, nfe=3, **common),
            client.sample("net", plan="net-few3", **common),
            client.sample("net", schedule="edm", solver="heun", grid="edm", steps=18, **common),
        ]
    for number, drawn in enumerate(wanted):
        left = number * (width + samples.GAP)
        panel = picture[samples.BANNER :: 2, left : left + width : 2, 0]
        rows = drawn.images[..., 0].reshape(2, samples.COLUMNS, 8, 8).swapaxes(1, 2).reshape(panel.shape)
        np.testing.assert_array_equal(panel, rows)
