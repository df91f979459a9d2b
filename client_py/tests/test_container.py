"""The Containerfile, as far as it can be held to its word without the images that it begins with."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pyarrow.flight as fl
import pytest
import wire

import anisoflight
from anisoflight.serving.local import find_binary

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


def test_its_context_is_what_it_is_built_from(tmp_path: Path) -> None:
    """docker and podman read .dockerignore: patterns match from the root; what they leave lists the program's files."""
    patterns = [
        line for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if not line.startswith("#")
    ]

    def left_out(folder: str, names: list[str]) -> list[str]:
        paths = {name: Path(folder, name).relative_to(ROOT).as_posix() for name in names}
        return [name for name, path in paths.items() if any(fnmatch(f"/{path}", f"/{p}") for p in patterns)]

    context = shutil.copytree(ROOT, tmp_path / "context", ignore=left_out, symlinks=True)
    assert not {".git", ".venv", "bin", "bench", "studies"} & {path.name for path in context.iterdir()}
    assert (context / "client_py/requirements.txt").exists()
    done = subprocess.run(
        ["go", "list", "-deps", "."], cwd=context, env={**os.environ, "GOFLAGS": ""}, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_its_plugin_is_the_one_that_was_measured(instructions: list[tuple[str, str]]) -> None:
    (install,) = (text for text in said(instructions, "RUN") if "cuda13" in text)
    page = (ROOT / "bench/docs/gpu.md").read_text(encoding="utf-8")
    assert re.findall(r"with-cuda]==([0-9.]+)", install) == re.findall(r"CUDA plugin of JAX ([0-9]+[0-9.]*[0-9])", page)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The files of Debian's smallest image, without a compiler's libraries, with the program and what pip brings."""
    if not shutil.which("debootstrap") or os.getuid() != 0:
        pytest.skip("debootstrap and root are needed to make the image's file tree")
    folder = tmp_path_factory.mktemp("container") / "tree"
    release = re.search(r"^ARG DEBIAN=(\w+)$", (ROOT / "Containerfile").read_text(encoding="utf-8"), re.MULTILINE)
    assert release
    run("debootstrap", "--variant=minbase", release[1], str(folder))
    shutil.copy(find_binary(), folder / "usr/local/bin/anisoflight")
    lines = (ROOT / "client_py/requirements.txt").read_text(encoding="utf-8").splitlines()
    wheels = [line for line in lines if re.match(r"(fastatomstruct-xla-cpu|cmeel-mimalloc)==", line)]
    pip = [sys.executable, "-m", "pip", "install", "-q", "--ignore-installed", "--no-deps"]
    run(*pip, "--prefix", str(folder / "usr/local"), *wheels)
    run("mount", "-t", "proc", "proc", str(folder / "proc"))
    yield folder
    run("umount", str(folder / "proc"))


def run(*command: str) -> str:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}"
    return done.stdout


def test_the_image_serves(instructions: list[tuple[str, str]], tree: Path) -> None:
    """Before the image's packages are there, as from the wheel on a slim image, and afterwards with mimalloc."""

    def malloc() -> tuple[str, str]:
        """What doctor says of the allocator, and what a server that answers has loaded."""
        found = re.search(r"{.*", run("chroot", str(tree), "anisoflight", "doctor", "--json"), re.DOTALL)
        assert found
        device = json.loads(found[0])["device"]
        assert device["name"] == "xla:cpu"
        script = tree.with_name("anisoflight")  # which `serve` starts
        script.write_text(f'#!/bin/sh\nexec chroot {tree} anisoflight "$@"\n', encoding="utf-8")
        script.chmod(0o755)
        with anisoflight.serve(data="/data", listen="127.0.0.1:0", binary=script) as client:
            assert client.info()["device"]["name"] == "xla:cpu"
            maps = Path(f"/proc/{client.server.process.pid}/maps").read_text(encoding="utf-8")
        assert ("libmimalloc" in maps) == ("libmimalloc" in device["allocator"])
        return device["allocator"], device.get("allocator_reason", "")

    allocator, reason = malloc()
    assert allocator.endswith("/libc.so.6")
    assert "libatomic.so.1: cannot open shared object file" in reason
    assert "libatomic1" in reason
    for command in said(instructions, "RUN"):
        if command.startswith(("apt-get", "useradd")):
            run("chroot", str(tree), "sh", "-c", command)
    allocator, reason = malloc()
    assert allocator.endswith("/libmimalloc.so.3")
    assert reason == ""
