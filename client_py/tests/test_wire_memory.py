"""The server's memory stays flat however many requests it has answered."""

import pyarrow.flight as fl
import wire

import anisoflight


def test_memory_is_flat(flight: fl.FlightClient, server: anisoflight.LocalClient, model: str) -> None:
    settings = {"stage": "pretrain", "dataset": "blocks", "network": wire.NETWORK, "batch": 8}
    wire.act(flight, "CreateRun", {"name": "soak", **settings})
    readings = []
    for start in range(0, 120, 40):
        for seed in range(start, start + 40):
            assert wire.get(flight, "Sample", {"model": model, "n": 4, "steps": 2, "seed": seed}).table.num_rows == 4
            assert wire.get(flight, "TrainStep", {"run": "soak"}).table.num_rows == 1
        readings.append(wire.resident(server.server.process.pid))
    wire.act(flight, "DeleteRun", {"run": "soak"})
    assert readings[-1] - readings[0] < 24, f"MiB after each round: {readings}"
