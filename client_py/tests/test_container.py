"""The Containerfile, as far as it can be held to its word without the images that it begins with."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.flight as fl
import pytest
import wire

import anisoflight

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def instructions() -> list[tuple[str, str]]:
    """The lines of the file: the instruction, and what it says."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "Containerfile").read_text(encoding="utf-8"))
    return [(found[1], found[2]) for found in re.finditer(r"^([A-Z]+) (.*)$", text, re.MULTILINE)]


def said(instructions: list[tuple[str, str]], word: str) -> list[str]:
    return [text for name, text in instructions if name == word]


def test_the_linter_finds_nothing() -> None:
    command = [str(Path(sys.executable).parent / "hadolint"), str(ROOT / "Containerfile")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_its_command_serves(instructions: list[tuple[str, str]], tmp_path: Path) -> None:
    """The entry point, its arguments and settings, with a folder of one's own for /data and any free port."""
    (entry,), (command,) = (said(instructions, word) for word in ("ENTRYPOINT", "CMD"))
    assert [*json.loads(entry), *json.loads(command)] == ["anisoflight", "serve", "--insecure"]
    settings = dict(pair.split("=") for text in said(instructions, "ENV") for pair in text.split() if "ANISO" in pair)
    (probe,) = said(instructions, "HEALTHCHECK")
    (port,) = said(instructions, "EXPOSE")
    assert settings["ANISOFLIGHT_LISTEN"] == f"0.0.0.0:{port}"
    assert f"-addr=127.0.0.1:{port}" in probe
    settings = {name: value.replace("/data", str(tmp_path)) for name, value in settings.items()}
    with anisoflight.serve(arguments=["--insecure"], listen="0.0.0.0:0", environment=settings) as server:
        location = server.location.replace("[::]", "127.0.0.1").replace("0.0.0.0", "127.0.0.1")
        with fl.FlightClient(location) as client:
            assert wire.act(client, "ListModels", {}) == [{"models": []}]
        assert (tmp_path / "lock").exists()
