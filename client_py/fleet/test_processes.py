"""One training by several processes that mpiexec starts: the bits of one process, whatever ends in the middle of it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small import NETWORK

import anisoflight
from anisoflight.serving.local import find_binary

MPIEXEC = Path(sys.executable).with_name("mpiexec")
STAGES: dict[str, list[str]] = {
    "edm": ["--stage", "pretrain", "--network", json.dumps(NETWORK)],
    "backprop": ["--stage", "isotropic", "--model", "tiny", "--estimator", "backprop", "--knots", "6"],
    "full": ["--stage", "anisotropic", "--model", "tiny", "--estimator", "full", "--knots", "6"],
}
TIMES = [9, -2, -1]
"""Of a row: its seconds, and the rates that follow from them."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("processes") / "data"
    with anisoflight.serve(data=folder, environment={"ANISOFLIGHT_DEVICE": "cpu"}) as client:
        client.put_dataset("blocks", np.random.default_rng(1).integers(0, 256, (300, 8, 8, 3), np.uint8))
        client.create_run("tiny", stage="pretrain", dataset="blocks", network=NETWORK, batch=8, kimg=0.08).step(
            2, progress=False
        )
        client.run("tiny").save("tiny")
    return folder


def train(data: Path, name: str, *more: str, processes: int = 1) -> subprocess.Popen[str]:
    launcher = [str(MPIEXEC), "-n", str(processes)] if processes > 1 else []
    words = [find_binary(), "train", "--data", str(data), "--name", name, "--device", "cpu", *more]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ANISOFLIGHT")}
    return subprocess.Popen(
        launcher + words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def trained(data: Path, name: str, *more: str, processes: int = 1) -> str:
    with train(data, name, *more, processes=processes) as job:
        output, _ = job.communicate(timeout=300)
    assert job.returncode == 0, output
    return output


def state(data: Path, name: str) -> dict[str, Any]:
    """All of a stored state, tensors as their bytes, but for what time its steps took."""
    folder = data / "runs" / name / "state"
    text = (folder / "state.safetensors").read_bytes()
    size = int.from_bytes(text[:8], "little")
    found: dict[str, Any] = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    for tensor, about in json.loads(text[8 : 8 + size]).items():
        if tensor != "__metadata__":
            first, last = about["data_offsets"]
            found[tensor] = text[8 + size + first : 8 + size + last]
            if tensor == "rows":
                rows = np.frombuffer(found[tensor]).reshape(about["shape"])
                found[tensor] = np.delete(rows, TIMES, axis=1).tobytes()
    if (folder / "schedule.json").exists():
        found["schedule"] = json.loads((folder / "schedule.json").read_text(encoding="utf-8"))
        found["schedule"].pop("provenance", None)
    return found


def second(name: str) -> int:
    """The process of rank 1 that trains the run."""
    for place in Path("/proc").iterdir():
        try:
            words, environment = (place / "cmdline").read_bytes(), (place / "environ").read_bytes()
        except OSError:
            continue
        ours = words.startswith(find_binary().encode() + b"\0train\0") and name.encode() in words.split(b"\0")
        if ours and b"PMI_RANK=1" in environment.split(b"\0"):
            return int(place.name)
    raise AssertionError(f"nobody follows {name}")


def under_way(data: Path, name: str, job: subprocess.Popen[str]) -> None:
    """Waits until some steps are stored."""
    stored = data / "runs" / name / "state" / "run.json"
    end = time.monotonic() + 120
    while not stored.exists() or json.loads(stored.read_text(encoding="utf-8"))["step"] == 0:
        assert job.poll() is None, job.communicate()[0]
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("stage", STAGES)
def test_processes_are_devices_are_parts(data: Path, stage: str) -> None:
    """Parameters, moments, average, θ and losses, to the bit; also of two processes with two devices, and of four."""
    common = ["--dataset", "blocks", "--batch", "8", "--kimg", "0.048", *STAGES[stage]]
    trained(data, f"{stage}-parts", *common, "--microbatch", "4")
    trained(data, f"{stage}-devices", *common, "--devices", "2")
    trained(data, f"{stage}-processes", *common, processes=2)
    want = state(data, f"{stage}-parts")
    assert want["step"] == 6
    assert len(want) > 12
    for kind in ("devices", "processes"):
        found = state(data, f"{stage}-{kind}")
        assert {k for k in want if found[k] != want[k]} == set(), kind
    trained(data, f"{stage}-four", *common, "--devices", "2", processes=2)
    trained(data, f"{stage}-each", *common, processes=4)
    trained(data, f"{stage}-quarters", *common, "--microbatch", "2")
    quarters = state(data, f"{stage}-quarters")
    for kind in ("four", "each"):
        found = state(data, f"{stage}-{kind}")
        assert {k for k in quarters if found[k] != quarters[k]} == set(), kind
    assert quarters != want  # parts of another size round otherwise


LONG = ["--dataset", "blocks", "--batch", "8", "--kimg", "2.4", *STAGES["backprop"]]


@pytest.fixture(scope="module")
def whole(data: Path) -> dict[str, Any]:
    """A run that nothing has interrupted."""
    trained(data, "whole", *LONG, processes=2)
    return state(data, "whole")


@pytest.mark.parametrize(
    ("end", "says"),
    [
        ("killed", ["BAD TERMINATION", "EXIT CODE: 9"]),  # a process
        (
            "told",
            ["The run cannot go on: process 1 of 2 has ended", "go on with: anisoflight train --name told --resume"],
        ),
        ("ended", ["run ended: paused after step"]),  # the job, as a batch system does before the end of its time
    ],
)
def test_what_ends_in_the_middle_goes_on(
    data: Path, whole: dict[str, Any], tmp_path: Path, end: str, says: list[str]
) -> None:
    """With two processes, and a copy of the run with one, to the same bits."""
    with train(data, end, *LONG, processes=2) as job:
        under_way(data, end, job)
        if end == "ended":
            job.send_signal(signal.SIGTERM)
        else:
            os.kill(second(end), signal.SIGKILL if end == "killed" else signal.SIGTERM)
        output, _ = job.communicate(timeout=60)
    assert [message for message in says if message not in output] == []
    assert end != "killed" or job.returncode != 0
    shutil.copytree(data, tmp_path / "data")
    trained(data, end, "--resume", processes=2)
    trained(tmp_path / "data", end, "--resume")
    for folder in (data, tmp_path / "data"):
        found = state(folder, end)
        assert {k for k in whole if found[k] != whole[k]} == set(), folder


def test_what_is_in_the_way_is_said(data: Path, tmp_path: Path) -> None:
    def refused(*more: str, processes: int = 2) -> str:
        with train(data, "refused", "--dataset", "blocks", *STAGES["edm"], *more, processes=processes) as job:
            output, _ = job.communicate(timeout=60)
        assert job.returncode != 0, output
        return output

    assert "pip install mpich" in refused("--processes", str(tmp_path / "libmpi_abi.so"), processes=1)
    other = Path(sys.prefix) / "lib" / "libmpi.so.12"
    assert "it is no libmpi_abi.so" in refused("--processes", str(other), processes=1)
    for _ in range(5):  # the launcher ends all with the first that ends, which may be one that has only heard of it
        assert "network must be left out" in refused("--model", "nothing", processes=4)
    with anisoflight.serve(data=data, environment={"ANISOFLIGHT_DEVICE": "cpu"}) as client:
        assert f"2 processes cannot train on the server {client.location}" in refused()


def test_what_is_in_the_way_of_another_process_is_said(data: Path) -> None:
    words = [find_binary(), "train", "--data", str(data), "--name", "refused", "--dataset", "blocks", *STAGES["edm"]]
    job = [str(MPIEXEC), "-n", "1", *words, "--device", "go", ":", "-n", "1", *words, "--device", "/nowhere.so"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ANISOFLIGHT")}
    for _ in range(5):
        done = subprocess.run(job, env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode != 0
        assert "plugin /nowhere.so (from configuration): there is no such file" in done.stdout + done.stderr
