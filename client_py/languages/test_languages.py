"""The programs of docs/wire.md in other languages: built, run against a server, and compared with pyarrow.

A language whose tools are not on the machine is skipped. What is built stays in bin/languages, for the next time.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.flight as fl
import pytest
import wire
from documents import ROOT, blocks

import anisoflight

PROJECTS = Path(__file__).parent
BUILT = ROOT / "bin" / "languages"


@dataclass(frozen=True)
class Language:
    sources: dict[str, str]  # the file that a block of each language becomes
    tools: tuple[str, ...]
    build: str
    run: str


LANGUAGES = {
    "rust": Language({"rust": "src/main.rs"}, ("cargo", "cc"), "cargo build -q --locked", "target/debug/samples"),
    "go": Language({"go": "main.go"}, ("go",), "go build -mod=readonly -o samples .", "./samples"),
    "java": Language(
        {"java": "src/main/java/Samples.java"},
        ("java", "mvn"),
        "mvn -q -B compile",
        "mvn -q -B exec:exec",
    ),
    "node": Language(
        {"js": "samples.js", "proto": "flight.proto"},
        ("node", "npm"),
        "npm ci --no-audit --no-fund --ignore-scripts",
        "node samples.js",
    ),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[anisoflight.LocalClient]:
    """A server with a model `digits` that needs no training."""
    with anisoflight.serve(data=tmp_path_factory.mktemp("data"), listen="127.0.0.1:0") as client:
        images = np.random.default_rng(0).integers(0, 256, (64, 8, 8, 1), np.uint8)
        client.put_dataset("digits", images, np.arange(64) % 4, progress=False)
        client.make_mixture("digits", "digits", covariance="dct", progress=False)
        yield client


def programs() -> dict[str, str]:
    """The programs of the document by the languages of their blocks."""
    found = [block for block in blocks("docs/wire.md") if block.language not in ("python", "sh", "json", "text")]
    codes = {block.language: block.code for block in found}
    assert len(codes) == len(found), "two programs in one language"
    assert codes.keys() == {name for language in LANGUAGES.values() for name in language.sources}
    return codes


@pytest.mark.parametrize("name", LANGUAGES)
def test_programs_of_the_document(name: str, server: anisoflight.LocalClient) -> None:
    language, codes = LANGUAGES[name], programs()
    if missing := [tool for tool in language.tools if shutil.which(tool) is None]:
        pytest.skip(f"{name}: {' and '.join(missing)} not found")
    place = BUILT / name
    shutil.copytree(PROJECTS / name, place, dirs_exist_ok=True)
    port = server.location.rpartition(":")[2]
    for fence, file in language.sources.items():
        (place / file).parent.mkdir(parents=True, exist_ok=True)
        (place / file).write_text(re.sub(r"\b8815\b", port, codes[fence]), encoding="utf-8")

    def run(command: str) -> str:
        environment = {**os.environ, "GOFLAGS": ""}
        done = subprocess.run(
            command.split(), cwd=place, env=environment, capture_output=True, text=True, check=False, timeout=1800
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)  # Maven's colours

    run(language.build)
    (ticket,) = {match.replace('\\"', '"') for match in re.findall(r'\{\\?"op.*?\}', "\n".join(codes.values()))}
    with fl.FlightClient(server.location) as flight:
        samples = wire.get(flight, "Sample", json.loads(ticket)).table["sample"]
    assert run(language.run).strip() == f"16 images, sum {wire.numbers(samples).sum(dtype=int)}"
