"""The scaled-down twin of every recipe in configs/: all stages, on the pure-Go device, which compiles nothing."""

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import anisoflight
from anisoflight.recipe.recipe import load
from anisoflight.recipe.stages import Place, stages_of

pytestmark = pytest.mark.slow

CONFIGS = Path(__file__).parents[2] / "configs"
RECIPES = sorted(p for p in CONFIGS.glob("*/*.yaml") if p.stem not in ("base", "conditional"))


def command(*arguments: str | Path) -> list[str]:
    words = [sys.executable, "-m", "anisoflight.recipe", *arguments, "--twin", "--device", "go"]
    return [str(word) for word in words]


def recipe(data: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    words = command("--data", data, *arguments)
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder that has the models of all twins."""
    data = tmp_path_factory.mktemp("twins")
    recipe(data, *RECIPES, "--features", "none")
    return data


def name(path: Path) -> str:
    return f"{path.parent.name}-{path.stem}"


def theta(model: Path) -> list[Any] | None:
    """The parameters of a model's schedule, None where it has none."""
    file = model / "schedule.json"
    return json.loads(file.read_text(encoding="utf-8"))["theta"] if file.exists() else None


def ended(run: Path) -> tuple[str, int]:
    """The state of a run and its step, as they are stored."""
    status, state = (json.loads((run / name).read_text(encoding="utf-8")) for name in ("status.json", "state/run.json"))
    return status["state"], state["step"]


@pytest.mark.parametrize("path", RECIPES, ids=name)
def test_twin(twins: Path, path: Path) -> None:
    model = twins / "models" / f"{path.parent.name}-twin-{path.stem}"
    assert ended(twins / "runs" / model.name) == ("done", 2)
    family = json.loads((model / "schedule.json").read_text(encoding="utf-8"))["family"]
    assert family["per_class"] == path.stem.endswith("-per-class")
    assert family["basis"] == {"iso": "none", "pap": "none", "dct": "dct"}.get(path.stem[:3], family["basis"])
    assert (model / "basis.safetensors").exists() == path.stem.startswith("pca")
    paths = theta(model)
    assert paths is not None
    one = family["basis"] == "none"
    assert {len(row) for row in paths} == {1 if one else 2}
    if family["per_class"]:  # classes of the batches that were seen have moved, each its own way
        assert len({tuple(row[0]) for row in paths}) > 1
    if not one:
        assert any(row[0] != row[1] for row in paths)
    with Image.open(twins / "figures" / f"{model.name}.png") as picture:  # a panel for each thing that can be shown
        panels = 1 if one else 2
        panels *= 2 if family["per_class"] else 1
        assert picture.width / picture.height == pytest.approx(4.6 * panels / 3.6, rel=0.02)


def test_distances(twins: Path) -> None:
    """Of one data set's recipes, to the table."""
    methods = ["isotropic", "dct-per-class"]
    printed = recipe(twins, *(CONFIGS / "cifar10" / f"{method}.yaml" for method in methods)).stdout
    rows = [
        json.loads(line) for line in (twins / "fid" / "cifar10-twin.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    variants = [f"{method}{more}" for method in methods for more in ("", ", EDM's grid", ", EDM's grid, midpoint")]
    measured = sorted((row["method"], row["nfe"]) for row in rows if row["frechet"] > 0)
    assert measured == sorted((m, nfe) for m in ("EDM", "EDM, uniform in t", *variants) for nfe in (3, 5))
    assert all(f"| {method} |" in printed for method in methods)


def test_stopped_runs_go_on_to_the_same_end(twins: Path, tmp_path: Path) -> None:
    """The runs of a data set's twins are stopped in the middle; the recipes then end as if they had not been."""
    files = [path for path in RECIPES if path.parent.name == "cifar10"]
    shutil.copytree(twins, tmp_path, dirs_exist_ok=True)
    shutil.rmtree(tmp_path / "runs")
    stages = [stage for recipe in load(files, twin=True) for stage in stages_of(recipe, Place(tmp_path))]
    runs = {stage.makes: stage.request for stage in stages if stage.trains}
    with anisoflight.serve(data=tmp_path, arguments=["--device", "go"]) as client:
        for run, settings in runs.items():
            client.create_run(run, **settings).step(1)
    before = {run: (tmp_path / "models" / run / "model.safetensors").stat().st_mtime_ns for run in runs}
    assert recipe(tmp_path, *files, "--features", "none").stderr.count("continues after step 1") == len(runs)
    for run in runs:
        assert ended(tmp_path / "runs" / run) == ("done", 2)
        again, once = (folder / "models" / run / "model.safetensors" for folder in (tmp_path, twins))
        assert again.stat().st_mtime_ns > before[run]
        assert again.read_bytes() == once.read_bytes()
        assert theta(again.parent) == theta(once.parent)
    assert "continues" not in recipe(tmp_path, *files, "--features", "none").stderr


def started(data: Path) -> subprocess.Popen[str]:
    words = command(CONFIGS / "cifar10" / "isotropic.yaml", "--data", data, "--features", "none")
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_two_recipes_on_one_folder(tmp_path: Path) -> None:
    """One waits for the other, and every stage is done once."""
    both = [started(tmp_path) for _ in range(2)]
    (out, err), (other_out, other_err) = (process.communicate(timeout=500) for process in both)
    assert [process.returncode for process in both] == [0, 0], err + other_err
    assert out.splitlines()[-5:] == other_out.splitlines()[-5:]
    message = (err + other_err).splitlines()
    assert sum("waiting" in line for line in message) == 1
    assert sum(": anisoflight train --data " in line for line in message) == 2  # the network, isotropic


def test_a_recipe_that_was_killed_is_taken_up(tmp_path: Path) -> None:
    """The run that it had begun goes on on the server; the next recipe waits for it and saves it."""
    with anisoflight.serve(data=tmp_path, arguments=["--device", "go"]):
        with started(tmp_path) as first:
            end = time.monotonic() + 300
            while not list(tmp_path.glob("runs/*/status.json")) and time.monotonic() < end:
                time.sleep(0.02)
            first.kill()
        with started(tmp_path) as second:
            _, err = second.communicate(timeout=500)
        assert second.returncode == 0, err
    states = {path.parent.name: json.loads(path.read_text())["state"] for path in tmp_path.glob("runs/*/status.json")}
    assert states == dict.fromkeys(["cifar10-twin-edm", "cifar10-twin-isotropic"], "done")


def test_an_interrupt_pauses_the_run(tmp_path: Path) -> None:
    with anisoflight.serve(data=tmp_path, arguments=["--device", "go"]) as client:
        with started(tmp_path) as first:
            end = time.monotonic() + 300
            while all(run["state"] == "created" for run in client.call("ListRuns")["runs"]) and time.monotonic() < end:
                time.sleep(0.02)
            first.send_signal(signal.SIGTERM)
            _, err = first.communicate(timeout=60)
        assert first.returncode == 130, err
        assert "the same command continues" in err
        assert "running" not in set(client.runs()["state"])
