"""Kills of a real server under clients, and ends of it in bad moments: ``python tests/crash.py [--kills 200]``.

Four clients store, replace, delete and train without a pause, each under names of its own, and note what the server
has acknowledged. The server is killed at random, started again on its folder, and asked for everything. Wanted:
what was acknowledged is there to the value, what was under way is as before or as after, and nothing lies about.

Then the server is told to end while a run is at work: with a watcher, while it compiles, with nobody to read its log,
and by SIGHUP. Two seconds later it is killed if it is still there, as a container would be; or, where the device does
not answer that soon, after twice what PauseRun took a moment before, which waits for the step under way and stores it.
Wanted: the run is stored.

It prints what it did and ends with 1 where anything was lost. docs/durability.md records what it prints.
"""

import argparse
import collections
import contextlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.flight as fl
import wire

import anisoflight
from anisoflight.serving.local import find_binary

CLIENTS = 4
RUN = {"stage": "pretrain", "network": wire.NETWORK, "batch": 8, "kimg": 1000}


@dataclass
class Expected:
    """What a client knows of the server's folder: the value of each name, None where there is nothing of it."""

    is_: dict[str, Any] = field(default_factory=dict)
    pending: tuple[str, Any] | None = None  # a name, and what it is to become


def images(value: int, rows: int) -> Any:
    return wire.table(image=wire.tensor(np.full((rows, 8, 8, 1), value, np.uint8)), label=wire.int32([0] * rows))


class Worker:
    """One client. What it stores under a name is a number, which can be read back from what is stored."""

    def __init__(self, number: int) -> None:
        self.number, self.choose, self.known = number, random.Random(number), Expected()
        self.done: collections.Counter[str] = collections.Counter()

    def work(self, location: str, stop: threading.Event) -> None:
        with fl.FlightClient(location) as client, contextlib.suppress(*wire.FAILURES):
            while not stop.is_set():
                self.step(client)

    def step(self, client: fl.FlightClient) -> None:
        kind = self.choose.choice(["datasets", "schedules", "models", "runs", "runs"])
        name = f"{kind}/{kind[0]}{self.number}-{self.choose.randrange(2)}"  # a model's schedule has its name
        value: Any = self.choose.randrange(1, 200)
        if self.known.is_.get(name) is not None and self.choose.random() < 0.2:
            value = None
        elif kind == "runs":
            value = (self.known.is_.get(name) or 0) + 1 if self.known.is_.get(name) is not None else 0
        self.known.pending = (name, value)
        self.store(client, kind, name.split("/")[1], value)
        self.known.is_[name], self.known.pending = value, None
        self.done[f"delete {kind}" if value is None else f"store {kind}"] += 1

    def store(self, client: fl.FlightClient, kind: str, name: str, value: Any) -> None:
        singular = {"datasets": "dataset", "schedules": "schedule", "models": "model", "runs": "run"}[kind]
        if value is None:
            wire.act(client, f"Delete{singular.capitalize()}", {singular: name})
        elif kind == "datasets":
            descriptor = wire.command({"op": "PutDataset", "name": name, "replace": True})
            wire.put(client, descriptor, images(value, 100 + value))
        elif kind == "schedules":
            wire.act(client, "MakeSchedule", {"name": name, "kind": "log-linear", "T": value, "replace": True})
        elif kind == "models":
            law = {"means": [[value / 100, 0]], "covariances": [[[1e-6, 0], [0, 1e-6]]]}
            wire.act(client, "MakeModel", {"name": name, "replace": True, **law})
        elif value == 0:
            wire.act(client, "CreateRun", {"name": name, "dataset": "few", "replace": True, **RUN})
        else:
            assert wire.get(client, "TrainStep", {"run": name}).table.num_rows == 1

    def check(self, client: fl.FlightClient, listed: dict[str, Any]) -> list[str]:
        """What is not as it should be after a kill; then what is there is what is known."""
        wrong = []
        for i in range(2):
            for kind in ("datasets", "schedules", "models", "runs"):
                name = f"{kind}/{kind[0]}{self.number}-{i}"
                allowed = [self.known.is_.get(name)]
                if self.known.pending and self.known.pending[0] == name:
                    allowed.append(self.known.pending[1])
                have = read(client, kind, name.split("/")[1], listed.get(name))
                if have not in allowed:
                    wrong.append(f"{name} is {have}, want {' or '.join(map(str, allowed))}")
                self.known.is_[name] = have
        self.known.pending = None
        return wrong


def read(client: fl.FlightClient, kind: str, name: str, info: dict[str, Any] | None) -> Any:
    """The number of a stored thing, read from what it holds; None where there is none."""
    if info is None:
        return None
    if kind == "datasets":
        rows = wire.get(client, "Dataset", {"dataset": name}).table
        values = wire.numbers(rows["image"])
        value = int(values.flat[0])
        return value if (values == value).all() and rows.num_rows == 100 + value else "half a data set"
    if kind == "schedules":
        return round(wire.get(client, "EvaluateSchedule", {"schedule": name}).table["t"].to_pylist()[-1])
    if kind == "models":
        sample = wire.get(client, "Sample", {"model": name, "n": 32, "nfe": 9, "dtype": "float32"}).table
        return round(100 * float(np.mean([np.ravel(row)[0] for row in wire.numbers(sample["sample"])])))
    return info["step"]


def listed(client: fl.FlightClient) -> dict[str, Any]:
    out = {}
    for kind in ("datasets", "schedules", "models", "runs"):
        for info in wire.act(client, f"List{kind.capitalize()}")[-1][kind]:
            out[f"{kind}/{info['name']}"] = info
    return out


def leftovers(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in folder.rglob(".tmp-*")]


def kills(folder: Path, count: int) -> int:
    """Kill the server so many times; the number of things that were wrong."""
    workers, chance, wrong = [Worker(i) for i in range(CLIENTS)], random.Random(0), 0
    start = time.monotonic()
    for i in range(count + 1):
        with contextlib.ExitStack() as stack:
            server = stack.enter_context(anisoflight.serve(data=folder, listen="127.0.0.1:0"))
            client = stack.enter_context(fl.FlightClient(server.location))
            if i == 0:
                wire.put(client, fl.FlightDescriptor.for_path("datasets", "few"), images(1, 16))
            entries = listed(client)
            complaints = [f"{path} lies about" for path in leftovers(folder)]
            for worker in workers:
                complaints += worker.check(client, entries)
            known = {name for w in workers for name, value in w.known.is_.items() if value is not None}
            ours = {name for name in entries if re.fullmatch(r"(.).*/\1\d-\d", name)}
            complaints += [f"{name} is nobody's" for name in ours - known]
            for complaint in complaints:
                print(f"kill {i}: {complaint}", flush=True)
            wrong += len(complaints)
            if i == count:
                break
            stop = threading.Event()
            threads = [threading.Thread(target=w.work, args=(server.location, stop)) for w in workers]
            for thread in threads:
                thread.start()
            time.sleep(chance.uniform(0.05, 2))
            server.server.process.kill()
            stop.set()
            for thread in threads:
                thread.join()
    done = sum((w.done for w in workers), collections.Counter())
    print(
        f"{count} kills in {(time.monotonic() - start) / 60:.1f} minutes, {sum(done.values())} operations acknowledged:"
    )
    print(", ".join(f"{name} {n}" for name, n in sorted(done.items())))
    print(f"{wrong} things lost, half there, or lying about")
    return wrong


def location(server: subprocess.Popen[str]) -> str:
    """Where a server listens, once it does."""
    assert server.stderr
    for line in server.stderr:
        if match := re.search(r"listening on ([\d.:]+)", line):
            return "grpc://" + match[1]
    raise RuntimeError("the server did not start")


def stepped(client: fl.FlightClient, run: str) -> None:
    """Wait until a run at work has taken two more steps."""
    first = wire.act(client, "GetRun", {"run": run})[0]["step"]
    while wire.act(client, "GetRun", {"run": run})[0]["step"] < first + 2:
        time.sleep(0.01)


def pause(client: fl.FlightClient, run: str) -> float:
    """The seconds that PauseRun takes on a run at work, which goes on afterwards."""
    stepped(client, run)
    start = time.monotonic()
    wire.act(client, "PauseRun", {"run": run})
    took = time.monotonic() - start
    wire.act(client, "StartRun", {"run": run})
    return took


def ends(folder: Path) -> int:
    """End the server in bad moments; the number of runs that were not stored."""
    wrong = 0
    for moment in ("with a watcher", "with nobody to read its log", "by SIGHUP", "while it compiles"):
        data = folder / moment.replace(" ", "-")
        arguments = [find_binary(), "serve", "--data", str(data), "--listen", "127.0.0.1:0"]
        server = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True)
        with fl.FlightClient(location(server)) as client:
            wire.put(client, fl.FlightDescriptor.for_path("datasets", "few"), images(1, 16))
            wire.act(client, "CreateRun", {"name": "r", "dataset": "few", **RUN})
            wire.act(client, "StartRun", {"run": "r"})
            if moment == "while it compiles":
                network = {**wire.NETWORK, "model_channels": 64, "num_blocks": 3}
                wire.act(client, "CreateRun", {"name": "large", "dataset": "few", **RUN, "network": network})
                wire.act(client, "StartRun", {"run": "large"})
            allowed = max(2.0, 2 * max(pause(client, "r") for _ in range(3)))
            watcher = client.do_get(wire.ticket("WatchRun", {"run": "r"}))
            if moment == "with nobody to read its log":
                assert server.stderr is not None
                server.stderr.close()
            else:
                watcher.read_chunk()
            stepped(client, "r")
            before, start = wire.act(client, "GetRun", {"run": "r"})[0]["step"], time.monotonic()
            server.send_signal(signal.SIGHUP if moment == "by SIGHUP" else signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(allowed)
            took, code = time.monotonic() - start, server.poll()
            server.kill()
            server.wait()
            watcher.cancel()
        with anisoflight.serve(data=data, listen="127.0.0.1:0") as again, fl.FlightClient(again.location) as client:
            after = wire.act(client, "GetRun", {"run": "r"})[0]["step"]
        lost = after < before
        wrong += lost
        how = (
            f"still at it after {allowed:.1f} s and killed"
            if code is None
            else f"over after {took:.1f} s with code {code}"
        )
        print(f"end {moment}: {how}; at step {before} before, {after} stored{': LOST' * lost}", flush=True)
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill a server of one's own, and look at what is left.")
    parser.add_argument("--kills", type=int, default=200)
    args = parser.parse_args()
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which under nohup the servers would be started without
    with tempfile.TemporaryDirectory() as folder:
        wrong = kills(Path(folder) / "kills", args.kills) + ends(Path(folder))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
