"""The scaled-down twin of every recipe in configs/: all stages, on the pure-Go device, which compiles nothing."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import anisoflight
from anisoflight.serve import find_binary

CONFIGS = Path(__file__).parents[2] / "configs"
RECIPES = sorted(p for p in CONFIGS.glob("*/*.yaml") if p.stem not in ("base", "conditional"))
METHODS = {"isotropic", "isotropic-per-class", "dct", "dct-per-class", "pca", "pca-per-class"}


def recipe(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [find_binary(), "recipe", *RECIPES, "--twin", "--device", "go", "--python", sys.executable, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The data folder in which all twins have been done, and what was printed."""
    data = tmp_path_factory.mktemp("twins")
    return data, recipe("--data", data).stdout


def name(path: Path) -> str:
    return f"{path.parent.name}-{path.stem}"


def theta(model: Path) -> list[Any] | None:
    """The parameters of a model's schedule, None where it has none."""
    file = model / "schedule.json"
    return json.loads(file.read_text(encoding="utf-8"))["theta"] if file.exists() else None


def test_every_data_set_has_its_recipes() -> None:
    assert {folder.name: {p.stem for p in RECIPES if p.parent == folder} for folder in {p.parent for p in RECIPES}} == {
        "cifar10": METHODS,
        "afhqv2": METHODS,
        "ffhq": {"isotropic", "dct", "pca"},  # no classes
        "imagenet64": METHODS,
    }


def ended(run: Path) -> tuple[str, int]:
    """The state of a run and its step, as they are stored."""
    status, state = (json.loads((run / name).read_text(encoding="utf-8")) for name in ("status.json", "state/run.json"))
    return status["state"], state["step"]


@pytest.mark.parametrize("path", RECIPES, ids=name)
def test_twin(twins: tuple[Path, str], path: Path) -> None:
    data, _ = twins
    twin = f"{path.parent.name}-twin"
    model = data / "models" / f"{twin}-{path.stem}"
    assert ended(data / "runs" / model.name) == ("done", 2)
    family = json.loads((model / "schedule.json").read_text(encoding="utf-8"))["family"]
    assert family["per_class"] == path.stem.endswith("-per-class")
    assert family["basis"] == {"iso": "none", "dct": "dct"}.get(path.stem[:3], family["basis"])
    assert (model / "basis.safetensors").exists() == path.stem.startswith("pca")
    rows = [json.loads(line) for line in (data / "fid" / f"{twin}.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {r["nfe"] for r in rows if r["method"] == path.stem and r["frechet"] > 0} == {3, 5}
    paths = theta(model)
    assert paths is not None
    assert {len(row) for row in paths} == {1 if path.stem.startswith("isotropic") else 2}
    if family["per_class"]:  # classes of the batches that were seen have moved, each its own way
        assert len({tuple(row[0]) for row in paths}) > 1
    if not path.stem.startswith("isotropic"):
        assert any(row[0] != row[1] for row in paths)


def test_tables(twins: tuple[Path, str]) -> None:
    _, printed = twins
    for path in RECIPES:
        assert path.stem in printed


def plans(data: Path) -> list[dict[str, Any]]:
    return json.loads(recipe("--data", data, "--dry-run", "--flops-per-second", "1e9", "--json").stdout)


def test_stopped_runs_go_on_to_the_same_end(twins: tuple[Path, str], tmp_path: Path) -> None:
    """Every run of every twin is stopped in the middle; the recipes then end as if it had not been."""
    done, _ = twins
    shutil.copytree(done, tmp_path, dirs_exist_ok=True)
    shutil.rmtree(tmp_path / "runs")
    runs = {s["makes"]: s["settings"] for p in plans(tmp_path) for s in p["stages"] if "settings" in s}
    with anisoflight.serve(data=tmp_path, arguments=["--device", "go"]) as client:
        for run, settings in runs.items():
            client.create_run(run, **settings).step(1)
    before = {run: (tmp_path / "models" / run / "model.safetensors").stat().st_mtime_ns for run in runs}
    assert "--resume" in recipe("--data", tmp_path, "--features", "none").stderr
    for run in runs:
        assert ended(tmp_path / "runs" / run) == ("done", 2)
        again, once = (folder / "models" / run / "model.safetensors" for folder in (tmp_path, done))
        assert again.stat().st_mtime_ns > before[run]
        assert again.read_bytes() == once.read_bytes()
        assert theta(again.parent) == theta(once.parent)
    assert "--resume" not in recipe("--data", tmp_path, "--features", "none").stderr
