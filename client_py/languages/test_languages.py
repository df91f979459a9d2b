"""The programs in other languages: built, run against a server, and compared with pyarrow.

Java's server has TLS and tokens, the others' has neither.

A language whose tools are not on the machine is skipped. What is built stays in bin/languages, for the next time.
"""

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
from documents import ROOT
from guarded import Guarded, certificate, guarded_server

import anisoflight

PROJECTS = Path(__file__).parent
BUILT = ROOT / "bin" / "languages"


@dataclass(frozen=True)
class Language:
    source: str  # the program
    tools: tuple[str, ...]
    build: str
    run: str


LANGUAGES = {
    "rust": Language("src/main.rs", ("cargo", "cc"), "cargo build -q --locked", "target/debug/samples"),
    "go": Language("main.go", ("go",), "go build -mod=readonly -o samples .", "./samples"),
    "java": Language("src/main/java/Samples.java", ("java", "mvn"), "mvn -q -B compile", "mvn -q -B exec:exec"),
    "node": Language("samples.js", ("node", "npm"), "npm ci --no-audit --no-fund --ignore-scripts", "node samples.js"),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[anisoflight.LocalClient]:
    """A server with a model `digits` that needs no training."""
    with anisoflight.serve(data=tmp_path_factory.mktemp("data"), listen="127.0.0.1:0") as client:
        images = np.random.default_rng(0).integers(0, 256, (64, 8, 8, 1), np.uint8)
        client.put_dataset("digits", images, np.arange(64) % 4, progress=False)
        client.make_mixture("digits", "digits", covariance="dct", progress=False)
        yield client


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    certificate(folder, "server")
    with guarded_server(folder) as server:
        yield server


@pytest.mark.parametrize("name", LANGUAGES)
def test_programs(name: str, server: anisoflight.LocalClient, guarded: Guarded) -> None:
    language = LANGUAGES[name]
    if missing := [tool for tool in language.tools if shutil.which(tool) is None]:
        pytest.skip(f"{name}: {' and '.join(missing)} not found")
    place = BUILT / name
    shutil.copytree(PROJECTS / name, place, dirs_exist_ok=True)
    port = guarded.port if name == "java" else server.location.rpartition(":")[2]
    shutil.copy(guarded.roots, place)
    program = (PROJECTS / name / language.source).read_text(encoding="utf-8")
    (place / language.source).write_text(re.sub(r"\b8815\b", port, program), encoding="utf-8")

    def run(command: str) -> str:
        environment = {**os.environ, "GOFLAGS": "", "ANISOFLIGHT_TOKEN": guarded.token}
        done = subprocess.run(
            command.split(), cwd=place, env=environment, capture_output=True, text=True, check=False, timeout=1800
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)  # Maven's colours

    run(language.build)
    request = {"model": "digits", "n": 16, "nfe": 9, "second_point": "endpoint", "seed": 1}
    with fl.FlightClient(server.location) as flight:
        samples = wire.get(flight, "Sample", request).table["sample"]
    assert run(language.run).strip() == f"16 images, sum {wire.numbers(samples).sum(dtype=int)}"
