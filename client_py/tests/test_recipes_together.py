"""Recipes at the same time on one folder: they wait for each other, and every stage is done once."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import anisoflight
from anisoflight.files.cells import rows_of
from anisoflight.serve import find_binary

CIFAR = Path(__file__).parents[2] / "configs" / "cifar10"
DEVICE = ["--device", "go"]


class Recipe:
    """`anisoflight recipe` on the twins of two methods that share a network, a stage and their baselines."""

    def __init__(self, data: Path, *more: str) -> None:
        files = [CIFAR / "isotropic.yaml", CIFAR / "dct.yaml"]
        command = [find_binary(), "recipe", *files, "--twin", "--data", data, "--python", sys.executable, *more]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self) -> tuple[str, str]:
        out, err = self.process.communicate(timeout=500)
        assert self.process.returncode == 0, err
        return out, err


@pytest.fixture(params=["a server", "no server"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, list[str]]]:
    """A folder, and what recipes on it are told besides."""
    if request.param == "no server":
        yield tmp_path, DEVICE
        return
    with anisoflight.serve(data=tmp_path, arguments=DEVICE):
        yield tmp_path, []


def test_two_recipes_on_one_folder_both_succeed(folder: tuple[Path, list[str]]) -> None:
    data, more = folder
    both = [Recipe(data, *more) for _ in range(2)]
    (out, err), (other_out, other_err) = (recipe.end() for recipe in both)
    assert out.splitlines()[-5:] == other_out.splitlines()[-5:]  # of the table
    assert "waiting" in err + other_err
    trained = [line for line in (err + other_err).splitlines() if " train --data " in line]
    assert len(trained) == 3  # the network, isotropic, dct: each once
    assert len(set(trained)) == 3
    rows = rows_of(data / "fid" / "cifar10-twin.jsonl")
    assert len({row["key"] for row in rows}) == len(rows)
    assert {row["method"] for row in rows} >= {"isotropic", "dct"}
    assert not (data / "fid" / "cifar10-twin.jsonl.state").exists()


def test_the_stage_of_a_recipe_that_was_killed_is_taken_up(tmp_path: Path) -> None:
    with anisoflight.serve(data=tmp_path, arguments=DEVICE):
        first = Recipe(tmp_path)
        end = time.monotonic() + 300
        while not (tmp_path / "leases").exists() and time.monotonic() < end:
            time.sleep(0.02)
        second = Recipe(tmp_path)
        while not list(tmp_path.glob("runs/*/status.json")) and time.monotonic() < end:
            time.sleep(0.02)
        first.process.kill()
        first.process.communicate()
        second.end()
    states = {path.parent.name: json.loads(path.read_text())["state"] for path in tmp_path.glob("runs/*/status.json")}
    assert states == dict.fromkeys(["cifar10-twin-edm", "cifar10-twin-isotropic", "cifar10-twin-dct"], "done")
