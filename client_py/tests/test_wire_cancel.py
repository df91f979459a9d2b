"""Work ends with the caller: after a cancel, a deadline, or a connection that is gone."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pyarrow.flight as fl
import pytest
import wire

import anisoflight

LONG = {"model": "digits", "n": 4096, "steps": 50_000}
TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def is_idle(pid: int) -> bool:
    before = cpu_seconds(pid)
    time.sleep(0.25)
    return cpu_seconds(pid) - before < 0.05


def becomes_idle(flight: fl.FlightClient, pid: int) -> bool:
    """Whether the server rests after a second of processors' time at most, however busy the machine is otherwise."""
    most, end = cpu_seconds(pid) + 1.0, time.monotonic() + 60
    while cpu_seconds(pid) < most and time.monotonic() < end:
        if not wire.act(flight, "ServerInfo")[0]["active_requests"] and is_idle(pid):
            return True
    return False


@pytest.fixture
def pid(server: anisoflight.LocalClient, flight: fl.FlightClient, model: str) -> int:
    """The server, with the programs for LONG compiled: a compilation goes on to its end, for the next who needs it."""
    wire.get(flight, "Sample", {**LONG, "model": model, "steps": 1})
    return server.server.process.pid


def test_cancelling_a_get(flight: fl.FlightClient, pid: int) -> None:
    reader = flight.do_get(wire.ticket("Sample", LONG))
    first_step = None
    for chunk in reader:
        if chunk.app_metadata is not None and b'"step"' in chunk.app_metadata.to_pybytes():
            first_step = first_step or cpu_seconds(pid)
            if cpu_seconds(pid) - first_step > 0.2:
                break  # it is under way, and at work
    else:
        pytest.fail("the sample ended")
    assert wire.act(flight, "ServerInfo")[0]["active_requests"] == 1
    reader.cancel()
    assert becomes_idle(flight, pid)


def test_a_deadline(flight: fl.FlightClient, pid: int) -> None:
    options = fl.FlightCallOptions(timeout=1.0)
    with pytest.raises(fl.FlightTimedOutError):
        flight.do_get(wire.ticket("Sample", LONG), options).read_all()
    assert becomes_idle(flight, pid)


def test_an_abandoned_action(flight: fl.FlightClient, pid: int) -> None:
    options = fl.FlightCallOptions(timeout=1.0)
    with pytest.raises(fl.FlightTimedOutError):
        list(flight.do_action(fl.Action("Sample", wire.encode(LONG)), options))
    assert becomes_idle(flight, pid)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_client_that_vanishes(
    server: anisoflight.LocalClient, flight: fl.FlightClient, pid: int, how: signal.Signals
) -> None:
    program = textwrap.dedent(f"""
        import sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import pyarrow.flight as fl
        import wire
        client = fl.FlightClient({server.location!r})
        reader = client.do_get(wire.ticket("Sample", {LONG!r}))
        for chunk in reader:
            if chunk.app_metadata is not None and b'"step"' in chunk.app_metadata.to_pybytes():
                print("started", flush=True)
    """)
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    assert process.stdout.readline() == b"started\n"
    process.send_signal(how)
    process.wait(60)
    assert becomes_idle(flight, pid)
