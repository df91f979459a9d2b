"""Many clients at once; docs/benchmarks/soak.md records what this prints.

    python tests/soak_mixed.py [--clients 64] [--minutes 5]

Every client is a thread with a connection of its own that does one operation after the other, chosen at random. Beside
them one reader takes nothing of a long reply for the second half of the time: the operations' latencies of both halves
tell what that costs the others.
"""

from __future__ import annotations

import argparse
import collections
import random
import re
import tempfile
import threading
import time
import urllib.request
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow.flight as fl
import wire
from soak import resident

import anisoflight


@dataclass
class Record:
    """What the clients of one half of the time met."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: collections.defaultdict(list))
    errors: collections.Counter[str] = field(default_factory=collections.Counter)


def sample(client: fl.FlightClient, seed: int) -> None:
    request = {"model": "digits", "n": 4, "steps": 2, "seed": seed}
    assert wire.get(client, "Sample", request).table.num_rows == 4


def evaluate(client: fl.FlightClient, _: int) -> None:
    assert wire.get(client, "EvaluateSchedule", {"schedule": "edm", "points": 256}).table.num_rows == 256


def dataset(client: fl.FlightClient, seed: int) -> None:
    assert wire.get(client, "Dataset", {"dataset": "noise", "offset": seed % 7}).table.num_rows == 2048 - seed % 7


def denoise(client: fl.FlightClient, seed: int) -> None:
    x = np.random.default_rng(seed).standard_normal((8, 8, 8, 1), np.float32)
    rows = wire.table(x=wire.tensor(x), label=wire.int32(np.arange(8)), sigma=np.full(8, 0.5))
    assert wire.exchange(client, "Denoise", {"model": "digits"}, rows.to_batches()).table.num_rows == 8


def upload(client: fl.FlightClient, seed: int) -> None:
    images = wire.tensor(np.random.default_rng(seed).integers(0, 255, (256, 8, 8, 1), np.uint8))
    name = f"upload-{threading.get_native_id()}"
    descriptor = wire.command({"op": "PutDataset", "name": name, "replace": True})
    assert wire.put(client, descriptor, wire.table(image=images)) == {"rows": 256}


def cancelled(client: fl.FlightClient, seed: int) -> None:
    reader = client.do_get(wire.ticket("Sample", {"model": "digits", "n": 64, "steps": 500, "seed": seed}))
    reader.read_chunk()
    reader.cancel()


def lists(client: fl.FlightClient, _: int) -> None:
    assert wire.act(client, "ListModels")
    assert list(client.list_flights())


def train(client: fl.FlightClient, _: int) -> None:
    run = f"run-{threading.get_native_id()}"
    settings = {"stage": "pretrain", "dataset": "noise", "network": wire.NETWORK, "batch": 8, "replace": True}
    wire.act(client, "CreateRun", {"name": run, **settings})
    assert wire.get(client, "TrainStep", {"run": run}).table.num_rows == 1
    wire.act(client, "DeleteRun", {"run": run})


OPERATIONS = {f.__name__: f for f in (sample, evaluate, dataset, denoise, upload, cancelled, lists, train)}
WEIGHTS = {"sample": 4, "denoise": 4, "evaluate": 3, "dataset": 3, "lists": 3, "upload": 1, "cancelled": 1, "train": 1}


def work(location: str, number: int, end: float, records: list[Record], half: threading.Event) -> None:
    """One client."""
    choose = random.Random(number)
    with fl.FlightClient(location) as client:
        while time.monotonic() < end:
            name = choose.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
            record, start = records[half.is_set()], time.monotonic()
            try:
                OPERATIONS[name](client, choose.randrange(1 << 30))
            except wire.FAILURES as error:
                match = re.search(r"\[([A-Z_]+)\]", str(error))
                record.errors[match[1] if match else type(error).__name__] += 1
            else:
                record.seconds[name].append(time.monotonic() - start)


def metrics(address: str) -> dict[str, float]:
    with urllib.request.urlopen(f"http://{address}/metrics") as reply:
        lines = reply.read().decode().splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line[0] != "#")}


def prepare(client: fl.FlightClient) -> None:
    """A data set and a small model."""
    images = wire.tensor(np.random.default_rng(0).integers(0, 255, (2048, 8, 8, 1), np.uint8))
    rows = wire.table(image=images, label=wire.int32(np.arange(2048) % 10))
    wire.put(client, fl.FlightDescriptor.for_path("datasets", "noise"), rows)
    settings = {"stage": "pretrain", "dataset": "noise", "network": wire.NETWORK, "batch": 8}
    wire.act(client, "CreateRun", {"name": "model", **settings})
    wire.act(client, "SaveModel", {"run": "model", "name": "digits"})
    for warm in OPERATIONS.values():
        warm(client, 0)


def report(records: list[Record], minutes: float) -> None:
    total = sum(len(s) for r in records for s in r.seconds.values())
    print(f"{total} operations, {total / minutes / 60:.0f} a second")
    print(f"errors: {dict(records[0].errors + records[1].errors) or 'none'}")
    print("| operation | calls | median ms | 99 % ms | median ms beside a slow reader | 99 % ms |")
    print("|---|---|---|---|---|---|")
    for name in OPERATIONS:
        halves = [np.array(r.seconds[name] or [np.nan]) * 1e3 for r in records]
        cells = [f"{np.quantile(h, q):.0f}" for h in halves for q in (0.5, 0.99)]
        print(f"| {name} | {sum(len(r.seconds[name]) for r in records)} | {' | '.join(cells)} |")


def soak(server: anisoflight.LocalClient, address: str, clients: int, minutes: float) -> None:
    flight = fl.FlightClient(server.location)
    prepare(flight)
    before, pid, half = metrics(address), server.server.process.pid, threading.Event()
    records, readings = [Record(), Record()], []
    start = time.monotonic()
    end = start + minutes * 60
    threads = [
        threading.Thread(target=work, args=(server.location, i, end, records, half), daemon=True)
        for i in range(clients)
    ]
    for thread in threads:
        thread.start()
    slow: Any = None
    while time.monotonic() < end:
        time.sleep(min(5, max(0.0, end - time.monotonic())))
        readings.append((time.monotonic() - start, resident(pid)))
        if slow is None and time.monotonic() > start + minutes * 30:
            request = {"model": "digits", "n": 200_000, "steps": 1, "dtype": "float32"}
            slow = flight.do_get(wire.ticket("Sample", request))  # and nothing is read
            half.set()
    for thread in threads:
        thread.join()
    if slow is not None:
        slow.cancel()
    report(records, minutes)
    at, mib = np.array([r for r in readings if r[0] > minutes * 15]).T  # after a quarter of the time
    slope = np.polyfit(at / 60, mib, 1)[0] if len(at) > 2 else float("nan")
    print(f"resident MiB every 5 s: {' '.join(f'{m:.0f}' for _, m in readings)}")
    print(f"slope after the first quarter: {slope:+.1f} MiB a minute, standard deviation {mib.std():.1f} MiB")
    flight.close()
    time.sleep(3)
    after = metrics(address)
    for name in ("go_goroutines", "anisoflight_calls_active", "anisoflight_connections", "anisoflight_device_waiting"):
        print(f"{name}: {before[name]:.0f} before, {after[name]:.0f} after")


def main() -> None:
    parser = argparse.ArgumentParser(description="Load a server of one's own with many clients.")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--minutes", type=float, default=5)
    args = parser.parse_args()
    arguments = ["--metrics", "127.0.0.1:0", "--log-level", "info"]
    with (
        tempfile.TemporaryDirectory() as folder,
        anisoflight.serve(data=folder, listen="127.0.0.1:0", arguments=arguments) as server,
    ):
        address = re.search(r"metrics on ([\d.:]+)", server.server.log)
        assert address
        soak(server, address[1], args.clients, args.minutes)


if __name__ == "__main__":
    main()
