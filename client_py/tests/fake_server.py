"""A Flight server whose operations misbehave on demand, for tests of the client's own machinery.

Run as a program it prints its location and serves until its standard input closes; every line it prints afterwards
says what it saw: ``cancelled NAME SECONDS`` when a stream was abandoned, ``put clean ROWS`` or ``put broken`` when an
upload ended.
"""

import contextlib
import json
import sys
import threading
import time

import pyarrow as pa
import pyarrow.flight as fl

SCHEMA = pa.schema([pa.field("value", pa.int64(), nullable=False)])
EMPTY = pa.record_batch([pa.array([], pa.int64())], schema=SCHEMA)


def rows(*values: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(values, pa.int64())], schema=SCHEMA)


def say(*words: object) -> None:
    print(*words, flush=True)


class FakeServer(fl.FlightServerBase):
    def do_get(self, context: fl.ServerCallContext, ticket: fl.Ticket) -> fl.FlightDataStream:
        request = json.loads(ticket.ticket)
        return fl.GeneratorStream(SCHEMA, getattr(self, "get_" + request["op"].lower())(context))

    def get_count(self, _context):
        """Four rows in two batches, with heartbeats between."""
        yield EMPTY, b""
        yield rows(0, 1), b'{"event":"batch","done":2,"total":4}'
        yield EMPTY, b'{"event":"progress","step":1,"steps":2}'
        yield rows(2, 3), b'{"event":"batch","done":4,"total":4}'
        yield EMPTY, b'{"event":"end","rows":4}'

    def get_broken(self, _context):
        """Two rows, then a failure."""
        yield rows(0, 1), b""
        raise fl.FlightServerError("[BUSY] Too much to do. Try again later.")

    def get_silent(self, context):
        """A first message, then nothing until cancelled."""
        yield EMPTY, b""
        self.until_cancelled(context, "get")
        yield EMPTY, b""

    def get_endless(self, context):
        """Heartbeats for ever."""
        try:
            while not context.is_cancelled():
                yield EMPTY, b'{"event":"progress","step":1,"steps":9}'
                time.sleep(0.05)
        finally:
            say("cancelled endless", time.time())

    def do_exchange(self, context, descriptor, reader, writer) -> None:
        op = json.loads(descriptor.command)["op"]
        writer.begin(SCHEMA)
        if op == "Double":
            with self.heartbeats(writer) as lock:
                for chunk in reader:
                    with lock:
                        writer.write_batch(rows(*(2 * value for value in chunk.data["value"].to_pylist())))
            return
        self.until_cancelled(context, "exchange")  # Stuck: never reads what the client writes

    def do_put(self, _context, _descriptor, reader, writer) -> None:
        count = 0
        try:
            for chunk in reader:
                if chunk.data["value"].null_count:
                    raise fl.FlightServerError("[BAD_TENSOR] A null.")
                count += chunk.data.num_rows
                time.sleep(0.02)
        except fl.FlightServerError:
            say("put broken")
            raise
        say("put clean", count)
        writer.write(json.dumps({"rows": count}).encode())

    def do_action(self, _context, action):
        if action.type == "Fail":
            raise fl.FlightServerError("[MODEL_NOT_FOUND] There is no model named it's. Known: digits.")
        for step in range(3):
            yield fl.Result(json.dumps({"event": "progress", "step": step, "steps": 3}).encode())
        yield fl.Result(json.dumps({"name": action.type, "body": action.body.to_pybytes().decode()}).encode())

    @staticmethod
    @contextlib.contextmanager
    def heartbeats(writer):
        """Messages without rows all the while; the lock is for those with rows."""
        lock, ended = threading.Lock(), threading.Event()

        def beat():
            while not ended.wait(0.05):
                with lock:
                    writer.write_batch(EMPTY)

        beating = threading.Thread(target=beat)
        beating.start()
        try:
            yield lock
        finally:
            ended.set()
            beating.join()

    @staticmethod
    def until_cancelled(context, name: str) -> None:
        while not context.is_cancelled():
            time.sleep(0.02)
        say("cancelled", name, time.time())


def main() -> None:
    server = FakeServer("grpc://127.0.0.1:0")
    threading.Thread(target=server.serve, daemon=True).start()
    say(f"grpc://127.0.0.1:{server.port}")
    sys.stdin.read()


if __name__ == "__main__":
    main()
