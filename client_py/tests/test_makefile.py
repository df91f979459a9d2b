"""The Makefiles in a fresh clone: a copy of them without anything that a target makes."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    required = (path.relative_to(ROOT) for path in ROOT.glob("client_py/[rp]*.*"))  # requirements and pyproject.toml
    for name in (*required, "client_py/anisoflight/VERSION", "Makefile", "bench/Makefile", "studies/Makefile"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def make(folder: Path, *words: str) -> str:
    done = subprocess.run(["make", *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_clean_leaves_no_environment(clone: Path) -> None:
    """Whatever git ignores in the root is made by a target and goes, except the user's data."""
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    made = [clone / line.strip("/") for line in ignored if line.startswith("/") and line.count("/") == 2]
    assert clone / ".venv-gpu" in made
    for folder in made:
        folder.mkdir()
    make(clone, "clean")
    assert [folder.name for folder in made if folder.exists()] == ["data"]


@pytest.mark.parametrize("part", ["bench", "studies"])
def test_the_tests_make_their_environment_first(clone: Path, part: str) -> None:
    steps = make(clone, "-n", "-C", part, "test")
    order = [steps.index(step) for step in ("-m venv .venv\n", "requirements-dev.txt\n", "pytest -q")]
    assert order == sorted(order)


def test_only_a_version_without_dev_is_released(clone: Path) -> None:
    (clone / "client_py/anisoflight/VERSION").write_text("1.2.0.dev0\n")
    done = subprocess.run(["make", "release"], cwd=clone, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.count("VERSION must be X.Y.Z for a release, got 1.2.0.dev0")) == (2, 1)
    (clone / "client_py/anisoflight/VERSION").write_text("1.2.0\n")
    assert "grep -F 'anisoflight 1.2.0 '" in make(clone, "-n", "release")
