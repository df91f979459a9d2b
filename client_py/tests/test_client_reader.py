"""The interrupt-safe calls, against a server that misbehaves on demand."""

import gc
import itertools
import json
import queue
import signal
import subprocess
import sys
import textwrap
import threading
import time
import types
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as fl
import pytest
from fake_server import SCHEMA, rows

from anisoflight import AnisoflightError, BusyError, Client, DeadlineError, NotFoundError
from anisoflight.wire import progress
from anisoflight.wire.calls import Connection
from anisoflight.wire.progress import Bar
from anisoflight.wire.reader import Stream

PATIENCE = 5.0  # seconds that a busy test machine may take for what is instant
PROMPT = 0.5  # seconds in which an interrupt must have been heard


class Fake:
    """The misbehaving server in a process of its own, and what it says."""

    def __init__(self) -> None:
        program = Path(__file__).with_name("fake_server.py")
        self.process = subprocess.Popen(
            [sys.executable, str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.location = self.process.stdout.readline().strip()
        self.said: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.put(line.strip())

    def next(self) -> str:
        return self.said.get(timeout=PATIENCE)


@pytest.fixture(scope="module")
def fake() -> Iterator[Fake]:
    fake = Fake()
    yield fake
    fake.process.kill()
    fake.process.wait()


@pytest.fixture
def connection(fake: Fake) -> Iterator[Connection]:
    connection = Connection(fake.location)
    yield connection
    connection.close()


def test_messages_carry_rows_and_events(connection: Connection) -> None:
    messages = list(connection.stream("Count", {}))
    assert [message.batch.num_rows for message in messages] == [0, 2, 0, 2, 0]
    assert [message.event.get("event") for message in messages] == [None, "batch", "progress", "batch", "end"]


def test_table_joins_the_rows_of_all_messages(fake: Fake) -> None:
    with Client(fake.location) as client:
        assert client.table("Count", {})["value"].to_pylist() == [0, 1, 2, 3]


def test_failure_in_the_middle_is_raised_after_what_came_before(connection: Connection) -> None:
    seen = []
    with pytest.raises(BusyError, match="Too much to do") as caught:
        seen.extend(message.batch.num_rows for message in connection.stream("Broken", {}))
    assert seen == [2]
    assert caught.value.code == "BUSY"


def test_error_of_an_action_keeps_its_code_and_sentence(connection: Connection) -> None:
    with pytest.raises(NotFoundError) as caught:
        list(connection.action("Fail"))
    assert caught.value.code == "MODEL_NOT_FOUND"
    assert caught.value.message == "There is no model named it's. Known: digits."


def test_an_action_answers_progress_and_then_its_result(fake: Fake) -> None:
    with Client(fake.location) as client:
        assert client.call("Echo", show="echo", x=1) == {"name": "Echo", "body": '{"x":1}'}


def test_a_call_may_have_a_timeout(fake: Fake) -> None:
    connection = Connection(fake.location, timeout=0.3)
    with pytest.raises(TimeoutError) as caught:
        list(connection.stream("Silent", {}))
    assert isinstance(caught.value, DeadlineError)
    connection.close()
    assert fake.next().startswith("cancelled get")


class Recorded:
    """Both sides of an exchange that write down when the input has been closed, and when reading begins.

    There is one message, after the input has been written.
    """

    def __init__(self) -> None:
        self.order: list[str] = []
        self.begun, self.reading = threading.Event(), threading.Event()
        self.threads: set[threading.Thread] = set()

    def begin(self, schema: pa.Schema) -> None:
        self.writing = threading.current_thread()
        self.begun.set()

    def write_batch(self, batch: pa.RecordBatch) -> None:
        time.sleep(0.005)

    def done_writing(self) -> None:
        self.order.append("closed")
        self.threads.add(threading.current_thread())

    def __iter__(self) -> Iterator[fl.FlightStreamChunk]:
        self.order.append("read")
        self.threads.add(threading.current_thread())
        self.reading.set()
        assert self.begun.wait(PATIENCE)
        self.writing.join(PATIENCE)
        yield types.SimpleNamespace(data=rows(), app_metadata=None)
        self.order.append("read")

    def cancel(self) -> None:
        pass

    close = cancel


def test_the_thread_that_reads_closes_the_input(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing it while a read fails is more than gRPC takes. What is short is closed before its answer is read."""

    def long() -> Iterator[pa.RecordBatch]:
        assert sides.reading.wait(PATIENCE)
        yield rows(2)

    for batches, want in ([rows(2)], ["closed", "read", "closed", "read"]), (long(), ["read", "closed", "read"]):
        sides = Recorded()
        client = types.SimpleNamespace(do_exchange=lambda *_, s=sides: (s, s), close=lambda: None)
        monkeypatch.setattr(connection, "_client", client)
        assert len(list(connection.converse("Denoise", {}, SCHEMA, batches))) == 1
        assert sides.order == want
        assert len(sides.threads) == 1
        assert sides.writing not in sides.threads


def test_leaving_the_iteration_cancels_the_call(fake: Fake, connection: Connection) -> None:
    for _ in connection.stream("Endless", {}):
        break
    gc.collect()
    assert fake.next().startswith("cancelled endless")


def test_dropping_a_stream_that_nobody_iterates_cancels_the_call(fake: Fake, connection: Connection) -> None:
    stream = connection.stream("Endless", {})
    time.sleep(0.2)
    del stream
    gc.collect()
    assert fake.next().startswith("cancelled endless")


def test_exchange_writes_while_it_reads(connection: Connection) -> None:
    values = list(range(200))
    stream = connection.converse("Double", {}, SCHEMA, (rows(value) for value in values))
    doubled = [value for message in stream for value in message.batch["value"].to_pylist()]
    assert doubled == [2 * value for value in values]


def test_an_error_in_the_callers_own_batches_ends_the_exchange(connection: Connection) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield rows(1)
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        list(connection.converse("Double", {}, SCHEMA, batches()))
    with pytest.raises(AnisoflightError, match="different schema"):
        list(connection.converse("Double", {}, pa.schema({"other": pa.int8()}), [rows(1)]))


def test_put_reports_what_was_written_and_stored(fake: Fake, connection: Connection) -> None:
    events = list(connection.upload({}, SCHEMA, iter([rows(1, 2), rows(3)])))
    assert events == [{"event": "batch", "done": 2}, {"event": "batch", "done": 3}, {"rows": 3}]
    assert fake.next() == "put clean 3"


def test_an_abandoned_put_is_never_a_complete_one(fake: Fake, connection: Connection) -> None:
    for _ in connection.upload({}, SCHEMA, (rows(1) for _ in range(1000))):
        break
    assert fake.next() == "put broken"


def test_an_error_in_the_callers_own_batches_spoils_the_put(fake: Fake, connection: Connection) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield rows(1)
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        list(connection.upload({}, SCHEMA, batches()))
    assert fake.next() == "put broken"


def test_a_slow_caller_holds_the_reading_thread_back() -> None:
    taken = itertools.count()
    stream = Stream(lambda _: (next(taken) for _ in range(100)))
    time.sleep(0.3)
    assert next(taken) < 20
    stream.close()


CALLS = {
    "get": "list(connection.stream('Silent', {}))",
    "exchange": "list(connection.converse('Stuck', {}, SCHEMA, (big for _ in range(10**6))))",
    "endless": "list(connection.stream('Endless', {}))",
}


@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c_is_heard_on_both_sides(fake: Fake, name: str) -> None:
    """A Python program that waits for a silent server, or writes to one that does not read, ends promptly."""
    program = textwrap.dedent(f"""
        import sys, time
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from fake_server import SCHEMA, rows
        from anisoflight.wire.calls import Connection
        connection = Connection({fake.location!r})
        big = rows(*range(100_000))
        print("started", flush=True)
        try:
            {CALLS[name]}
        except KeyboardInterrupt:
            print(time.time(), flush=True)
    """)
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    time.sleep(0.5)
    sent = time.time()
    process.send_signal(signal.SIGINT)
    heard = float(process.stdout.readline())
    assert heard - sent < PROMPT
    what, where, when = fake.next().split()
    assert (what, where) == ("cancelled", name)
    assert float(when) - sent < 2 * PROMPT  # the fake server looks only now and then
    assert process.wait(PATIENCE) == 0


def test_json_of_a_request_is_what_the_server_gets(fake: Fake) -> None:
    with Client(fake.location) as client:
        answer = client.call("Echo", text="ü", number=2**64 - 1, nested={"a": [1.5]})
    assert json.loads(answer["body"]) == {"text": "ü", "number": 2**64 - 1, "nested": {"a": [1.5]}}


def test_a_bar_tells_of_compilations(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    bar = Bar("sampling", "image", total=4)
    bar.follow({"event": "compiling", "program": "evaluate", "compile_s": 2.6})
    bar.close()
    assert "compiling evaluate (3 s)" in capsys.readouterr().err


def test_progress_in_a_pipe_is_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(progress, "time", types.SimpleNamespace(monotonic=lambda: now[0]))
    bar = Bar("train", "step", total=1000)
    for done in range(1, 1001):  # 100 seconds
        now[0] += 0.1
        bar.follow({"event": "batch", "done": done, "total": 1000})
        bar.follow({"event": "progress", "step": 1, "steps": 2})
    bar.close()
    short = Bar("short", "step", total=1)
    short.follow({"event": "progress", "step": 1, "steps": 2})
    short.close()
    drawn = capsys.readouterr().err
    assert 9 <= len(drawn.splitlines()) <= 11, drawn
    assert all(line.startswith("train: ") for line in drawn.splitlines())
    assert "\r" not in drawn
