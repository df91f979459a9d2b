"""The server's memory stays flat however many requests it has answered."""

import time
from pathlib import Path

import numpy as np
import pyarrow.flight as fl
import wire

import anisoflight


def test_memory_is_flat(tmp_path: Path) -> None:
    """Of a server of its own: what earlier requests have left to collect is no part of it."""
    images = np.random.default_rng(0).integers(0, 256, (64, 8, 8, 1), np.uint8)
    settings = {"stage": "pretrain", "dataset": "blocks", "network": wire.NETWORK, "batch": 8}
    with anisoflight.serve(data=tmp_path, listen="127.0.0.1:0") as client, fl.FlightClient(client.location) as flight:
        client.put_dataset("blocks", images, np.arange(64) % 10, progress=False)
        wire.act(flight, "CreateRun", {"name": "soak", **settings})
        assert wire.get(flight, "TrainStep", {"run": "soak"}).table.num_rows == 1
        wire.act(flight, "SaveModel", {"run": "soak", "name": "digits"})
        readings = []
        for start in range(0, 120, 40):
            for seed in range(start, start + 40):
                request = {"model": "digits", "n": 4, "steps": 2, "seed": seed}
                assert wire.get(flight, "Sample", request).table.num_rows == 4
                assert wire.get(flight, "TrainStep", {"run": "soak"}).table.num_rows == 1
            readings.append(wire.resident(client.server.process.pid))
    assert readings[-1] - readings[0] < 24, f"MiB after each round: {readings}"


def test_memory_of_a_deleted_run_is_given_back(tmp_path: Path) -> None:
    """A server that is idle has no more than before, although no program runs and little is left to collect."""
    network = {**wire.NETWORK, "model_channels": 128}
    with anisoflight.serve(data=tmp_path, listen="127.0.0.1:0") as client:
        client.put_dataset("blocks", np.zeros((8, 8, 8, 1), np.uint8), progress=False)
        before = wire.resident(client.server.process.pid)
        run = client.create_run("gone", "pretrain", "blocks", network={**network, "channel_mult": [4]})
        after = wire.resident(client.server.process.pid)
        assert after - before > 200
        run.delete()
        end = time.monotonic() + 40
        while (left := wire.resident(client.server.process.pid) - before) > (after - before) / 4:
            assert time.monotonic() < end, f"{left:.0f} MiB are left of {after - before:.0f}"
            time.sleep(0.5)
