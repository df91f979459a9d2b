"""What the package is made of: its modules import in one direction, and its wheel holds them alone."""

from __future__ import annotations

import ast
import graphlib
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "anisoflight"


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(name: str, path: Path, known: dict[str, Path]) -> Iterator[str]:
    """The modules of the package that one names in an import, wherever that stands: in functions, for types alone."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            base = package.rsplit(".", node.level - 1)[0] if node.level else ""
            source = ".".join(part for part in (base, node.module) if part)
            # From a package, a module is meant where there is one of that name; else the package's own names.
            for alias in node.names:
                target = f"{source}.{alias.name}"
                if target in known:
                    yield target
                elif source in known:
                    yield source


def test_no_module_imports_itself_by_way_of_others() -> None:
    known = modules()
    assert "anisoflight.operations.sampling" in set(imported("anisoflight.client", known["anisoflight.client"], known))
    graph = {name: set(imported(name, path, known)) - {name} for name, path in known.items()}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail("these modules import each other: " + " ← ".join(error.args[1]))


def test_the_wheel_holds_the_package_alone(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "-w", str(tmp_path), str(ROOT)], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        files = {name for name in archive.namelist() if ".dist-info/" not in name}
    source = (path.relative_to(ROOT) for path in PACKAGE.rglob("*") if path.is_file())
    assert files == {path.as_posix() for path in source if "__pycache__" not in path.parts}
    assert {"anisoflight/client.py", "anisoflight/py.typed", "anisoflight/fid/published.json"} <= files
