"""Calls that are made again while a server is away: those that change nothing, and no others."""

import json
import threading
import time
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.flight as fl
import pytest

from anisoflight import Client, UnavailableError

SCHEMA = pa.schema([pa.field("value", pa.int64(), nullable=False)])
EMPTY = pa.record_batch([pa.array([], pa.int64())], schema=SCHEMA)
ROW = pa.record_batch([pa.array([7], pa.int64())], schema=SCHEMA)


class Away(fl.FlightServerBase):
    """A server that is away for its first calls, as `fails` says of each; then it answers."""

    def __init__(self, location: str = "grpc://127.0.0.1:0") -> None:
        super().__init__(location)
        self.fails: list[str] = []
        self.calls = 0

    def _fail(self) -> None:
        self.calls += 1
        if self.calls <= len(self.fails):
            raise fl.FlightUnavailableError(self.fails[self.calls - 1])

    def do_action(self, _context: object, action: fl.Action) -> Iterator[bytes]:
        self._fail()
        yield json.dumps({"name": action.type}).encode()

    def do_get(self, _context: object, ticket: fl.Ticket) -> fl.FlightDataStream:
        late = json.loads(ticket.ticket).get("late")

        def messages() -> Iterator[tuple[pa.RecordBatch, bytes]]:
            yield EMPTY, b"{}"
            if late:
                yield ROW, b"{}"
            self._fail()
            yield ROW, b"{}"

        return fl.GeneratorStream(SCHEMA, messages())


@pytest.fixture
def away() -> Iterator[Away]:
    with Away() as server:
        yield server


@pytest.fixture
def client(away: Away) -> Iterator[Client]:
    with Client(f"grpc://127.0.0.1:{away.port}", retry=5) as client:
        yield client


@pytest.mark.parametrize("said", ["nobody home", "[DRAINING] The server is shutting down. Try again in a moment."])
def test_an_operation_that_changes_nothing_is_called_again(away: Away, client: Client, said: str) -> None:
    away.fails = [said] * 2
    assert client.call("ServerInfo") == {"name": "ServerInfo"}
    assert away.calls == 3


@pytest.mark.parametrize("op", ["CreateRun", "TrainStep", "DeleteModel", "MakeSchedule", "SaveModel", "StartRun"])
def test_one_that_changes_something_is_not(away: Away, client: Client, op: str) -> None:
    away.fails = ["gone"]
    with pytest.raises(UnavailableError):
        client.call(op)
    assert away.calls == 1


def test_rows_begin_anew_before_any_has_come(away: Away, client: Client) -> None:
    away.fails = ["gone"]
    assert client.table("Sample", {})["value"].to_pylist() == [7]
    assert away.calls == 2


def read(client: Client, values: list[int]) -> None:
    for message in client.stream("Sample", {"late": True}):
        values += message.batch["value"].to_pylist()


def test_rows_that_have_come_are_not_given_twice(away: Away, client: Client) -> None:
    away.fails = ["gone"]
    values: list[int] = []
    with pytest.raises(UnavailableError):
        read(client, values)
    assert (values, away.calls) == ([7], 1)


def test_other_errors_are_not_called_again(away: Away, client: Client) -> None:
    away.fails = ["[BUSY] Too much to do."]
    with pytest.raises(RuntimeError):
        client.call("ServerInfo")
    assert away.calls == 1


def test_it_ends_after_the_time_that_was_given(away: Away) -> None:
    away.fails = ["gone"] * 1000
    with Client(f"grpc://127.0.0.1:{away.port}", retry=0.5) as client, pytest.raises(UnavailableError):
        client.call("ServerInfo")
    assert away.calls == 3  # at 0, 0.1 and 0.3 seconds; the next would be at 0.7
    with Client(f"grpc://127.0.0.1:{away.port}", retry=0) as client, pytest.raises(UnavailableError):
        client.call("ServerInfo")
    assert away.calls == 4


def test_a_server_that_comes_back_is_found(away: Away) -> None:
    location = f"grpc://127.0.0.1:{away.port}"
    with Client(location, retry=30) as client:
        assert client.call("ServerInfo")
        away.shutdown()
        threading.Thread(target=lambda: (time.sleep(0.5), again.append(Away(location))), daemon=True).start()
        again: list[Away] = []
        assert client.call("ServerInfo") == {"name": "ServerInfo"}
        again[0].shutdown()
