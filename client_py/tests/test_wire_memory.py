"""The server's memory stays flat however many requests it has answered; soak.py does the same at length."""

from __future__ import annotations

import pyarrow.flight as fl
import soak

import anisoflight


def test_memory_is_flat(flight: fl.FlightClient, server: anisoflight.LocalClient, model: str) -> None:
    readings = soak.soak(flight, server.server.process.pid, model, rounds=4, samples=50, steps=50)
    assert readings[-1] - readings[1] < 24, f"MiB after each round: {readings}"
