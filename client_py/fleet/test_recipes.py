"""Recipes as a graph of tasks: every distinct command once, and the models and rows that anisoflight.recipe makes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anisoflight.files.cells import rows_of
from anisoflight.fleet.__main__ import main
from anisoflight.fleet.recipes import graph
from anisoflight.recipe.recipe import load
from anisoflight.recipe.stages import Place, stages_of

ray = pytest.importorskip("ray")

BASE = """
name: small
dataset: {source: images.npz, labels: none, images: 40, resolution: 8, channels: 3}
network:
  name: edm
  config: {img_resolution: 8, img_channels: 3, model_channels: 8, channel_mult: [1], num_blocks: 1}
  pretrain: {batch: 4, kimg: 0.008}
train: {stage: isotropic, family: {basis: none}, batch: 4, kimg: 0.008}
fid: {solver: heun, second_point: endpoint, nfe: [1, 3], seeds: [0-19], baselines: [heun]}
"""
RECIPES = {
    "isotropic": "base: base.yaml\n",
    "dct": "base: base.yaml\nafter: isotropic.yaml\ntrain: {stage: anisotropic, family: {basis: dct}}\n",
}


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ANISOFLIGHT_DEVICE", "go")  # before Ray starts, which hands its environment to its workers
        ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="warning")
        yield
        ray.shutdown()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    images = np.random.default_rng(3).integers(0, 256, (40, 8, 8, 3), np.uint8)
    np.savez(tmp_path / "images.npz", images=images)
    for name, text in {"base": BASE, **RECIPES}.items():
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    return tmp_path


def kept(path: Path) -> list[dict[str, Any]]:
    """Rows but for time and versions, in an order of their own: stages end as they come."""
    apart = ("seconds", "finished", "versions", "key")
    rows = [{k: v for k, v in row.items() if k not in apart} for row in rows_of(path)]
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


def test_a_graph_of_two_recipes(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = ["isotropic.yaml", "dct.yaml"]
    recipes = [stages_of(recipe, Place(place / "data", "pixels")) for recipe in load(files)]
    steps = graph(recipes)
    commands = [stage.command for stages in recipes for stage in stages]
    assert len(steps) == len(set(commands)) < len(commands)
    last = list(steps.values())[-1]
    assert last.stage.kind == "table"
    assert len(last.after) == 3  # of both recipes: the network's, and each method's

    assert main([*files, "--data", "data", "--features", "pixels", "--actors", "2"]) == 0
    told = capsys.readouterr().out
    assert told.count("train small-dct: run small-dct: done") == 1
    assert "| method" in told

    Path("alone").mkdir()
    alone = [sys.executable, "-m", "anisoflight.recipe", *files, "--features", "pixels", "--data"]
    subprocess.run([*alone, "alone"], check=True, capture_output=True)
    for model in ("small-edm", "small-isotropic", "small-dct"):
        ours, theirs = (Path(data, "models", model, "model.safetensors") for data in ("data", "alone"))
        assert ours.read_bytes() == theirs.read_bytes()
    assert kept(Path("data/fid/small.jsonl")) == kept(Path("alone/fid/small.jsonl"))
    assert not list(Path("data/fleet").iterdir())

    capsys.readouterr()
    assert main([*files, "--data", "data", "--features", "pixels"]) == 0  # and nothing twice
    assert capsys.readouterr().out.count("is there") == 5
    again = subprocess.run([*alone, "data"], check=True, capture_output=True, text=True)
    assert "train --data" not in again.stderr


def test_what_fails_is_named_once_and_keeps_back_what_waits_for_it(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "images.npz").unlink()
    assert main(["isotropic.yaml", "--data", "data"]) == 1
    said = capsys.readouterr().err
    assert "3 of 3 stages failed" in said
    assert "images.npz" in said
