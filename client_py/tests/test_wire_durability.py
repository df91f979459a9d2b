"""Runs outlive their server: killed, told to end, without anybody to log to, and on a full disk."""

import contextlib
import json
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.flight as fl
import pytest
import wire

import anisoflight
from anisoflight.serving.local import find_binary

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


def test_too_many_open_files_are_no_damage(tmp_path: Path) -> None:
    """They are STORAGE, of what is written and of what is read, until there are fewer."""
    binary = tmp_path / "anisoflight"
    limit = "import os, resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))"
    binary.write_text(f"#!{sys.executable}\n{limit}\nos.execv({find_binary()!r}, sys.argv)\n")
    binary.chmod(0o755)
    options = {"listen": "127.0.0.1:0", "binary": binary, "arguments": ["--device", "go"]}
    with anisoflight.serve(data=tmp_path / "data", **options) as client, contextlib.ExitStack() as stack:
        images = np.zeros((8, 8, 8, 1), np.uint8)
        client.put_dataset("images", images, progress=False)
        client.make_mixture("m", "images", progress=False)
        port = int(client.location.rpartition(":")[2])
        files = Path(f"/proc/{client.server.process.pid}/fd")
        while len(list(files.iterdir())) < 64:
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            time.sleep(0.01)
        for call in (
            lambda: client.put_dataset("more", images, progress=False),
            lambda: client.sample("m", n=2, steps=2),
            lambda: client.call("LoadModel", name="m", precision="bfloat16"),
            lambda: client.delete_model("m"),
        ):
            with pytest.raises(anisoflight.AnisoflightError, match=r"too many open files; raise its limit") as raised:
                call()
            assert raised.value.code == "STORAGE"
        assert client.models().loc["m", "integrity"] == "ok"
        stack.close()
        assert wire.within(10, lambda: len(list(files.iterdir())) < 60)
        assert client.sample("m", n=2, steps=2).images.shape == (2, 8, 8, 1)
