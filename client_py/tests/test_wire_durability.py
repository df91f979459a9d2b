"""Runs outlive their server: killed, told to end, without anybody to log to, and on a full disk."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import resource
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.flight as fl
import pytest
import wire

import anisoflight
from anisoflight.serve import find_binary

RUN = {"stage": "pretrain", "dataset": "blocks", "batch": 8, "T": 400, "network": wire.NETWORK}


@contextlib.contextmanager
def started(folder: Path) -> Iterator[anisoflight.LocalClient]:
    """A server on a folder with the data set `blocks`; it may be killed within."""
    with anisoflight.serve(data=folder) as client:
        if not (folder / "datasets" / "blocks").exists():
            images = np.random.default_rng(0).integers(0, 255, (16, 8, 8, 1), np.uint8)
            client.put_dataset("blocks", images, np.arange(16, dtype=np.int32) % 10)
        yield client


def stored_step(folder: Path, run: str) -> int:
    """What the disk says, without the server."""
    return json.loads((folder / "runs" / run / "state" / "run.json").read_text())["step"]


def test_acknowledged_steps_survive_a_kill(tmp_path: Path) -> None:
    with started(tmp_path) as client:
        run = client.create_run("r", **RUN)
        losses = run.step(200, progress=False)["loss"].tolist()
        assert run.stored_step == 200
        assert run.store_error is None
        os.kill(client.server.process.pid, signal.SIGKILL)
        client.server.process.wait()
    with started(tmp_path) as client:
        run = client.run("r")
        assert run.info["step"] == 200
        assert run.metrics()["loss"].tolist() == losses
        assert not list((tmp_path / "runs").rglob(".tmp-*"))


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_a_signal_stores_before_calls_are_waited_for(tmp_path: Path, name: str) -> None:
    """A watcher of a run that has not begun, and an exchange that stays open, hold nothing up."""
    with started(tmp_path) as client:
        process = client.server.process
        client.create_run("idle", **RUN)
        client.create_run("stepped", **RUN)
        background = client.create_run("background", **RUN)
        background.start(kimg=1e6)
        watches, ended = threading.Event(), queue.Queue[str]()

        def watch() -> None:
            with fl.FlightClient(client.location) as flight:
                reader = flight.do_get(wire.ticket("WatchRun", {"run": "idle"}))
                reader.read_chunk()
                watches.set()
                ended.put(wire.code(lambda: wire.collect(reader)))

        threading.Thread(target=watch, daemon=True).start()
        assert watches.wait(60)
        assert wire.within(60, lambda: background.info["step"] > 0)
        with fl.FlightClient(client.location) as flight:
            writer, reader = flight.do_exchange(wire.command({"op": "TrainStep", "run": "stepped"}))
            images = np.zeros((8, 8, 8, 1), np.uint8)
            rows = wire.table(image=wire.tensor(images), label=wire.int32([0] * 8))
            writer.begin(rows.schema)
            for _ in range(5):
                writer.write_table(rows)
                while (chunk := reader.read_chunk()).data is None or not chunk.data.num_rows:
                    pass
            process.send_signal(getattr(signal, name))
            assert wire.within(5, lambda: stored_step(tmp_path, "stepped") == 5), "the exchange's steps are not stored"
            assert ended.get(timeout=60) == "DRAINING"
            with fl.FlightClient(client.location) as late:  # the exchange is still open
                assert wire.code(lambda: wire.get(late, "WatchRun", {"run": "idle"})) == "DRAINING"
            writer.close()
        assert process.wait(30) == 0
        assert stored_step(tmp_path, "background") > 0
    with started(tmp_path) as client:
        assert client.run("background").state == "paused"
        assert client.run("stepped").info["step"] == 5


def test_a_terminal_that_closes_leaves_a_server_under_nohup_alone(tmp_path: Path) -> None:
    """SIGHUP, which the server's parent ignores, is ignored by the server, too."""
    with contextlib.ExitStack() as stack:
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            client = stack.enter_context(started(tmp_path))
        finally:
            signal.signal(signal.SIGHUP, before)
        client.server.process.send_signal(signal.SIGHUP)
        assert client.create_run("r", **RUN).step(20, progress=False)["loss"].size == 20
        assert "shutting down" not in client.server.log


def test_a_log_that_nobody_reads_does_not_end_the_server_unstored(tmp_path: Path) -> None:
    """As when the notebook that started the server is killed: its pipes are broken when the signal comes."""
    with started(tmp_path):
        pass
    socket = tmp_path / "socket"
    command = [find_binary(), "serve", "--data", str(tmp_path)]
    process = subprocess.Popen(
        [*command, "--listen", f"unix:{socket}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert any("listening" in line for line in process.stderr)
    with anisoflight.connect(f"grpc+unix://{socket}") as client:
        run = client.create_run("r", **RUN)
        run.start(kimg=1e6)
        assert wire.within(20, lambda: run.info["step"] > 2)
        process.stdout.close()
        process.stderr.close()
        process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    assert stored_step(tmp_path, "r") > 2


@contextlib.contextmanager
def full_disk(pid: int) -> Iterator[None]:
    """No file of the process may grow beyond 64 bytes: what a full disk is where file systems cannot be mounted."""
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (64, before[1]))
    yield
    resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


def test_a_run_on_a_full_disk_waits_in_memory(tmp_path: Path) -> None:
    with started(tmp_path) as client:
        run, twin = (client.create_run(name, **RUN) for name in ("r", "twin"))
        twin.step(1, progress=False)
        twin.save("want")
        with full_disk(client.server.process.pid):
            run.start(kimg=0.008)  # one step, which a slow machine takes, too, before a store fails
            run.wait(progress=False)
            info: dict[str, Any] = run.info
            assert (info["state"], info["step"], info["stored_step"]) == ("paused", 1, 0)
            assert run.store_error
            assert "kept in memory at step 1, and stored up to step 0" in info["error"]
            with pytest.raises(anisoflight.StorageError, match="kept in memory at step 1"):
                run.pause()
            with pytest.raises(anisoflight.StorageError, match="nothing was changed"):
                run.save("got")
            with pytest.raises(anisoflight.StorageError, match="nothing was changed"):
                client.create_run("s", **RUN)
        run.save("got")
        assert wire.within(60, lambda: run.state == "done")
        assert (run.stored_step, run.store_error) == (1, None)
    got, want = ((tmp_path / "models" / name / "model.safetensors").read_bytes() for name in ("got", "want"))
    assert got == want
