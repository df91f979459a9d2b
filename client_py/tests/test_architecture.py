"""What docs/architecture.md says of the tree: the files that a usual change touches are there, at most five of them."""

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
