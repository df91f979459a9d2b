"""The server's memory over many requests: ``python tests/soak.py`` takes 1,000 training steps and 1,000 samples.

It prints the resident memory, in MiB, before and after each of ten rounds; it should stay where it is after the first.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow.flight as fl
import wire

import anisoflight


def resident(pid: int, which: str = "VmRSS") -> float:
    """MiB of resident memory; VmHWM is its peak."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(which):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"no {which}")


def soak(flight: fl.FlightClient, pid: int, model: str, rounds: int, samples: int, steps: int) -> list[float]:
    """Readings before the first and after every round of sample requests and of training steps."""
    settings = {"stage": "pretrain", "dataset": "blocks", "network": wire.NETWORK, "batch": 8}
    wire.act(flight, "CreateRun", {"name": "soak", **settings})
    readings = [resident(pid)]
    for round_ in range(rounds):
        for i in range(samples):
            request = {"model": model, "n": 4, "steps": 2, "seed": round_ * samples + i}
            assert wire.get(flight, "Sample", request).table.num_rows == 4
        for _ in range(steps):
            assert wire.get(flight, "TrainStep", {"run": "soak"}).table.num_rows == 1
        readings.append(round(resident(pid), 1))
    wire.act(flight, "DeleteRun", {"run": "soak"})
    return readings


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, anisoflight.serve(data=folder, listen="127.0.0.1:0") as server:
        flight = fl.FlightClient(server.location)
        images = wire.tensor(np.zeros((32, 8, 8, 1), np.uint8))
        rows = wire.table(image=images, label=wire.int32(np.arange(32) % 10))
        wire.put(flight, fl.FlightDescriptor.for_path("datasets", "blocks"), rows)
        settings = {"stage": "pretrain", "dataset": "blocks", "network": wire.NETWORK, "batch": 8}
        wire.act(flight, "CreateRun", {"name": "model", **settings})
        wire.act(flight, "SaveModel", {"run": "model", "name": "model"})
        readings = soak(flight, server.server.process.pid, "model", rounds=10, samples=100, steps=100)
        print("MiB:", *readings)
        print(f"growth after the first round: {readings[-1] - readings[1]:.1f} MiB")


if __name__ == "__main__":
    main()
