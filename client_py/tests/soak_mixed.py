"""Many clients at once; bench/docs/soak.md records what this prints.

    python tests/soak_mixed.py [--clients 64] [--minutes 5]
    python tests/soak_mixed.py --operations 10000 [--clients 8] [--killed 2] [--leak]

Every client is a thread with a connection of its own that does one operation after the other, chosen at random: samples
and evaluations of all sizes, uploads, training, deletions, requests that are refused and requests that are cancelled.

For a time, one more reader takes nothing of a long reply for the second half of it: the operations' latencies of both
halves tell what that costs the others. For a number of operations, there is a verdict on the server's memory: it must
not grow from the second quarter on, or the exit status is 1. Beside the good clients, --killed ones are processes of
their own that end by kill -9 at random, in the middle of whatever they do, and begin anew: what they held must be given
back, too. No call may end as INTERNAL, nor the log tell of a failure, those of killed clients among them. With --leak
every operation leaves a schedule behind, which the server keeps: the verdict must find that, and the exit status be 1.
"""

import argparse
import collections
import math
import multiprocessing
import random
import re
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.flight as fl
import wire
from wire import resident

import anisoflight


@dataclass
class Record:
    """What the clients of one half of the time met."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: collections.defaultdict(list))
    errors: collections.Counter[str] = field(default_factory=collections.Counter)


def sample(client: fl.FlightClient, seed: int) -> None:
    count = (4, 4, 1, 9, 40)[seed % 5]
    request = {"model": "digits", "n": count, "steps": 2, "seed": seed}
    assert wire.get(client, "Sample", request).table.num_rows == count


def evaluate(client: fl.FlightClient, _: int) -> None:
    assert wire.get(client, "EvaluateSchedule", {"schedule": "edm", "points": 256}).table.num_rows == 256


def dataset(client: fl.FlightClient, seed: int) -> None:
    assert wire.get(client, "Dataset", {"dataset": "noise", "offset": seed % 7}).table.num_rows == 2048 - seed % 7


def denoise(client: fl.FlightClient, seed: int) -> None:
    count = (8, 8, 3, 64)[seed % 4]
    x = np.random.default_rng(seed).standard_normal((count, 8, 8, 1), np.float32)
    rows = wire.table(x=wire.tensor(x), label=wire.int32(np.arange(count) % 10), sigma=np.full(count, 0.5))
    assert wire.exchange(client, "Denoise", {"model": "digits"}, rows.to_batches()).table.num_rows == count


def upload(client: fl.FlightClient, seed: int) -> None:
    images = wire.tensor(np.random.default_rng(seed).integers(0, 255, (256, 8, 8, 1), np.uint8))
    name = f"upload-{threading.get_native_id()}"
    descriptor = wire.command({"op": "PutDataset", "name": name, "replace": True})
    assert wire.put(client, descriptor, wire.table(image=images)) == {"rows": 256}
    if seed % 2:
        wire.act(client, "DeleteDataset", {"dataset": name})


def refused(client: fl.FlightClient, seed: int) -> None:
    request, code = (
        ({"model": "nobody", "n": 1, "steps": 2}, "MODEL_NOT_FOUND"),
        ({"model": "digits", "n": 0, "steps": 2}, "BAD_REQUEST"),
        ({"model": "digits", "n": 1, "steps": 2, "schedule": "nothing"}, "SCHEDULE_NOT_FOUND"),
        ({"model": "digits", "n": 10**12, "steps": 2}, "TOO_LARGE"),
    )[seed % 4]
    try:
        wire.get(client, "Sample", request)
    except wire.FAILURES as error:
        if f"[{code}]" not in str(error):
            raise
    else:
        raise ValueError(f"{request} was not refused")


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


def leak(client: fl.FlightClient, seed: int) -> None:
    """Something that the server keeps: a schedule of 2,000 knots under a name of its own."""
    settings = {
        "name": f"leak-{threading.get_native_id()}-{seed}",
        "kind": "log-linear",
        "knots": 2000,
        "replace": True,
    }
    wire.act(client, "MakeSchedule", settings)


OPERATIONS = {f.__name__: f for f in (sample, evaluate, dataset, denoise, upload, cancelled, refused, lists, train)}
WEIGHTS = dict.fromkeys(OPERATIONS, 1) | {"sample": 4, "denoise": 4, "evaluate": 3, "dataset": 3, "lists": 3}


class Load:
    """How much is left to do, in operations and seconds."""

    def __init__(self, operations: float, seconds: float) -> None:
        self.operations = operations
        self.end = time.monotonic() + seconds
        self.begun = 0
        self._lock = threading.Lock()

    def more(self) -> bool:
        """Whether there is another operation, which then has begun."""
        with self._lock:
            if self.begun >= self.operations or time.monotonic() >= self.end:
                return False
            self.begun += 1
            return True

    def over(self) -> bool:
        return self.begun >= self.operations or time.monotonic() >= self.end


def work(
    location: str, number: int, load: Load, records: list[Record], half: threading.Event, leaks: bool = False
) -> None:
    """One client."""
    choose = random.Random(number)
    with fl.FlightClient(location) as client:
        while load.more():
            name = choose.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
            record, start = records[half.is_set()], time.monotonic()
            try:
                OPERATIONS[name](client, choose.randrange(1 << 30))
                if leaks:
                    leak(client, choose.randrange(1 << 30))
            except (*wire.FAILURES, AssertionError) as error:
                match = re.search(r"\[([A-Z_]+)\]", str(error))
                record.errors[match[1] if match else type(error).__name__] += 1
            else:
                record.seconds[name].append(time.monotonic() - start)


def killed(location: str, number: int, load: Load, kills: list[int]) -> None:
    """A client that is killed at random, again and again; kills is told at which of its operations."""
    choose = random.Random(-number)
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["numpy", "pyarrow.flight", "anisoflight"])  # which takes a new process long
    while not load.over():
        done = processes.Value("q", 0, lock=False)  # a process killed while it holds a lock never frees it
        process = processes.Process(target=work_on, args=(location, choose.randrange(1 << 30), done), daemon=True)
        process.start()
        while done.value == 0 and process.is_alive():  # it works
            time.sleep(0.01)
        process.join(choose.uniform(0, 1))
        process.kill()
        process.join()
        kills.append(done.value)


def work_on(location: str, seed: int, done: Any) -> None:
    """One client, until it is killed; done counts its operations."""
    load = Load(math.inf, math.inf)
    thread = threading.Thread(target=work, args=(location, seed, load, [Record()] * 2, threading.Event()))
    thread.start()
    while thread.is_alive():
        done.value = load.begun
        time.sleep(0.005)


def metrics(address: str) -> dict[str, float]:
    with urllib.request.urlopen(f"http://{address}/metrics") as reply:
        lines = reply.read().decode().splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line[0] != "#")}


def failures(log: Path, counted: dict[str, float]) -> int:
    """Print what the server's log says of failures; how many there are, or calls that ended as INTERNAL."""
    lines = [line for line in log.read_text().splitlines() if "level=ERROR" in line]
    for line in lines[:20]:
        print(line)
    internal = sum(n for name, n in counted.items() if "calls_total" in name and 'code="INTERNAL"' in name)
    print(f"failures of the server: {len(lines)} in its log, {internal:.0f} calls INTERNAL")
    return len(lines) + int(internal)


def prepare(client: fl.FlightClient) -> None:
    """A data set and a small model."""
    images = wire.tensor(np.random.default_rng(0).integers(0, 255, (2048, 8, 8, 1), np.uint8))
    rows = wire.table(image=images, label=wire.int32(np.arange(2048) % 10))
    wire.put(client, fl.FlightDescriptor.for_path("datasets", "noise"), rows)
    settings = {"stage": "pretrain", "dataset": "noise", "network": wire.NETWORK, "batch": 8}
    wire.act(client, "CreateRun", {"name": "model", **settings})
    wire.act(client, "SaveModel", {"run": "model", "name": "digits"})
    for warm in OPERATIONS.values():
        for seed in range(5):  # of every size, so that all is compiled
            warm(client, seed)


def report(records: list[Record], minutes: float) -> None:
    total = sum(len(s) for r in records for s in r.seconds.values())
    print(f"{total} operations in {minutes:.1f} minutes, {total / minutes / 60:.0f} a second")
    print(f"errors: {dict(records[0].errors + records[1].errors) or 'none'}")
    slow = bool(records[1].seconds)
    print("| operation | calls | median ms | 99 % ms |" + " median ms beside a slow reader | 99 % ms |" * slow)
    print("|---|---|---|---|" + "---|---|" * slow)
    for name in OPERATIONS:
        halves = [np.array(r.seconds[name] or [np.nan]) * 1e3 for r in records[: 1 + slow]]
        cells = [f"{np.quantile(h, q):.0f}" for h in halves for q in (0.5, 0.99)]
        print(f"| {name} | {sum(len(r.seconds[name]) for r in records)} | {' | '.join(cells)} |")


@dataclass
class Reading:
    minutes: float
    operations: int
    mib: float


def flat(readings: list[Reading]) -> bool:
    """Fit a line to the memory by operations from the second quarter on, say what it is, and judge it.

    Memory is flat where the line rises by less than 5 % of it over all those operations, or by less than two standard
    errors of the slope, which neighbouring readings make look smaller than it is.
    """
    late = [r for r in readings if r.operations > readings[-1].operations / 4]
    if len(late) < 8:
        print(f"no verdict on memory from {len(late)} readings; take more operations")
        return True
    x, y = np.array([(r.operations, r.mib) for r in late]).T
    (slope, offset), residuals, *_ = np.polyfit(x, y, 1, full=True)
    error = float(np.sqrt(residuals.sum() / (len(x) - 2) / ((x - x.mean()) ** 2).sum())) if residuals.size else 0.0
    rise = float(slope * (x[-1] - x[0]))
    good = rise < 0.05 * y.mean() or slope < 2 * error
    print(
        f"from operation {x[0]:.0f} to {x[-1]:.0f}: {slope * x[0] + offset:.0f} MiB and {rise:+.1f} MiB along the line"
    )
    print(f"slope {1000 * slope:+.2f} ± {1000 * error:.2f} MiB per 1,000 operations: {'flat' if good else 'GROWING'}")
    return good


def watch(load: Load, pid: int, start: float, every: float) -> Iterator[Reading]:
    """Readings until the load is over."""
    while not load.over():
        time.sleep(every)
        yield Reading((time.monotonic() - start) / 60, load.begun, resident(pid))


def soak(
    server: anisoflight.LocalClient,
    address: str,
    clients: int,
    minutes: float,
    operations: float,
    victims: int,
    leaks: bool,
    log: Path,
) -> bool:
    flight = fl.FlightClient(server.location)
    prepare(flight)
    timed = math.isinf(operations)
    before, pid, half = metrics(address), server.server.process.pid, threading.Event()
    records, readings, kills = [Record(), Record()], [], list[int]()
    start, load = time.monotonic(), Load(operations, minutes * 60)
    threads = [
        threading.Thread(target=work, args=(server.location, i, load, records, half, leaks), daemon=True)
        for i in range(clients)
    ] + [threading.Thread(target=killed, args=(server.location, i, load, kills)) for i in range(victims)]
    for thread in threads:
        thread.start()
    slow: Any = None
    for reading in watch(load, pid, start, every=5 if timed else 1):
        readings.append(reading)
        if timed and slow is None and reading.minutes > minutes / 2:
            request = {"model": "digits", "n": 200_000, "steps": 1, "dtype": "float32"}
            slow = flight.do_get(wire.ticket("Sample", request))  # and nothing is read
            half.set()
    for thread in threads:
        thread.join()
    if slow is not None:
        slow.cancel()
    report(records, (time.monotonic() - start) / 60)
    if victims:
        print(f"{len(kills)} clients killed, after {sum(kills)} operations of theirs")
    for run in wire.act(flight, "ListRuns")[0]["runs"]:  # those of killed clients, too
        wire.act(flight, "DeleteRun", {"run": run["name"]})
    shown = readings[:: max(1, len(readings) // 40)]
    print(f"resident MiB along the way: {' '.join(f'{r.mib:.0f}' for r in shown)}")
    good = flat(readings)
    flight.close()
    time.sleep(3)
    after = metrics(address)
    for name in ("go_goroutines", "anisoflight_calls_active", "anisoflight_connections", "anisoflight_device_waiting"):
        print(f"{name}: {before[name]:.0f} before, {after[name]:.0f} after")
    idle = after["anisoflight_calls_active"] == 0 and after["go_goroutines"] < before["go_goroutines"] + 50
    failed = failures(log, after)
    return good and idle and not failed and not records[0].errors + records[1].errors


def main() -> None:
    parser = argparse.ArgumentParser(description="Load a server of one's own with many clients.")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--minutes", type=float, help="at most; default 5, or without end where there are --operations")
    parser.add_argument("--operations", type=int, help="end after so many, without a slow reader, and judge the memory")
    parser.add_argument("--killed", type=int, default=0, help="clients that are killed at random, beside the others")
    parser.add_argument("--leak", action="store_true", help="leave something behind at every operation")
    args = parser.parse_args()
    operations = args.operations or math.inf
    minutes = args.minutes or (5 if math.isinf(operations) else math.inf)
    arguments = ["--metrics", "127.0.0.1:0", "--log-level", "info"]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with (
            log.open("w") as written,
            anisoflight.serve(
                data=Path(folder) / "data", listen="127.0.0.1:0", arguments=arguments, log=written
            ) as server,
        ):
            address = re.search(r"metrics on ([\d.:]+)", server.server.log)
            assert address
            good = soak(server, address[1], args.clients, minutes, operations, args.killed, args.leak, log)
    sys.exit(not good)


if __name__ == "__main__":
    main()
