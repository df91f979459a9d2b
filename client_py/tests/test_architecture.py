"""What docs/architecture.md says of the tree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text()
CHANGES = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", PAGE.split("## Where a change goes")[1], re.MULTILINE))
del CHANGES["change"]


def named(text: str) -> list[str]:
    """The paths that a text names."""
    return re.findall(r"`([\w/]+(?:/NAME)?\.\w+|[\w]+(?:/\w+)+|__init__\.py)`", text) + [
        f"docs/{page}" for page in re.findall(r"\]\((\w+\.md)\)", text)
    ]


def test_there_are_at_least_ten_usual_changes() -> None:
    assert len(CHANGES) >= 10


@pytest.mark.parametrize("change", CHANGES)
def test_the_files_of_a_change_are_there_and_at_most_five(change: str) -> None:
    paths = named(CHANGES[change])
    assert 1 <= len(paths) <= 5, paths
    for path in paths:
        place = Path(path).parent if Path(path).stem == "NAME" else Path(path)
        above = (ROOT, ROOT / "client_py/tests", ROOT / "client_py/anisoflight/fid/features")
        assert any((folder / place).exists() for folder in above), path


def test_every_room_of_the_picture_is_there() -> None:
    picture = PAGE.split("```text")[1].split("```")[0]
    rooms = re.findall(r"(?<![\w/])((?:base|flight|internal|train|kernels|schedule|client_py)(?:/\w+)+)", picture)
    assert len(rooms) > 20
    for room in rooms:
        assert (ROOT / room).is_dir(), room


ENDS_ALONE = {
    "flight/server.go": "gRPC's own end",
    "flight/client/rows.go": "of the client",
    "train/checkpoint/atomicdir/file.go": "a hash of bytes in memory",
}


def test_a_panic_in_a_goroutine_ends_nothing_else() -> None:
    """Below the command line, what runs in a goroutine of its own is recovered."""
    found = 0
    for folder in ("flight", "internal/engine", "train", "kernels", "schedule"):
        for path in sorted((ROOT / folder).rglob("*.go")):
            place = str(path.relative_to(ROOT))
            if place.endswith("_test.go") or place in ENDS_ALONE:
                continue
            lines = path.read_text().splitlines()
            for i, line in enumerate(lines):
                if re.search(r"\bgo func\(|\.Go\(func\(|^\s*go \w", line):
                    found += 1
                    body = "\n".join(lines[i : i + 8])
                    assert "safely.Do(" in body or "recovered(" in body, f"{place}:{i + 1}"
    assert found > 5


def test_the_walks_name_what_is_there() -> None:
    walks = PAGE.split("## Two walks")[1].split("\n## ")[0]
    passed = re.findall(r"`((?:\w+/)+\w+)(\.go:(\w+))?`", walks)
    assert len(passed) >= 18
    for path, function, name in passed:
        if not function:
            assert (ROOT / path).is_dir(), path
            continue
        text = (ROOT / f"{path}.go").read_text()
        assert re.search(rf"^func (\([^)]*\) )?{name}[(\[]", text, re.MULTILINE), f"{path}.go has no {name}"
