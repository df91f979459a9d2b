"""An attack on a real server: everything hostile that a client can send.

It survives, answers by the right codes, and its memory and goroutines go back to where they were.
"""

import concurrent.futures
import contextlib
import json
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.flight as fl
import pytest
import wire
from test_wire_security import SCOPES, new_token
from wire import resident

import anisoflight

pytestmark = pytest.mark.slow

MIB = 1 << 20
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DO_GET = b"/arrow.flight.protocol.FlightService/DoGet"
SETTINGS = b"\0\0\0\4\0\0\0\0\0"


@dataclass
class Victim:
    """A server with tokens and metrics, and a model whose images are one value."""

    pid: int
    address: tuple[str, int]
    metrics_address: str
    tokens: dict[str, str]
    alive: Callable[[], bool]

    def connect(self) -> fl.FlightClient:
        return fl.FlightClient("grpc://{}:{}".format(*self.address))

    def options(self, name: str = "all") -> fl.FlightCallOptions:
        return fl.FlightCallOptions(headers=[(b"authorization", b"Bearer " + self.tokens[name].encode())])

    def socket(self) -> socket.socket:
        return socket.create_connection(self.address, timeout=10)

    def metrics(self) -> dict[str, float]:
        with urllib.request.urlopen(f"http://{self.metrics_address}/metrics") as reply:
            lines = reply.read().decode().splitlines()
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line[0] != "#")}

    @contextlib.contextmanager
    def costs_at_most(self, mib: int, seconds: float) -> Iterator[None]:
        """What happens inside takes the server no more memory, at any moment, and no more time."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")  # its peak begins anew
        before, start = self.memory("VmRSS"), time.monotonic()
        yield
        assert time.monotonic() - start < seconds
        assert self.memory("VmHWM") - before < mib

    def memory(self, which: str) -> float:
        """MiB of the process's memory, as Linux counts it."""
        return resident(self.pid, which)

    def code(self, call: Callable[[fl.FlightClient, fl.FlightCallOptions], object]) -> str:
        """The code with which a call with all scopes is refused."""
        with self.connect() as client:
            return wire.code(lambda: call(client, self.options()))


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    folder = tmp_path_factory.mktemp("victim")
    tokens = {scope: new_token(folder / "tokens", scope, scope) for scope in SCOPES}
    tokens["all"] = new_token(folder / "tokens", "all", ",".join(SCOPES))
    (folder / "secret").mkdir()
    (folder / "secret" / "config.json").write_text("{}")
    (folder / "data" / "models").mkdir(parents=True)
    (folder / "data" / "models" / "link").symlink_to(folder / "secret")
    arguments = ["--tokens", str(folder / "tokens"), "--metrics", "127.0.0.1:0", "--device", "go"]
    arguments += ["--max-message-bytes", str(16 * MIB), "--max-connections", "700"]
    server = anisoflight.serve(
        data=folder / "data", listen="127.0.0.1:0", arguments=arguments, token=tokens["all"], environment={"GOGC": "25"}
    )
    with server:
        two = {"name": "two", "means": [[-1], [1]], "covariances": [[[0.01]], [[0.01]]], "labels": [0, 1]}
        server.call("MakeModel", **two)
        server.sample("two", n=4, steps=2, progress=False)
        host, port = server.location.removeprefix("grpc://").split(":")
        metrics = re.search(r"metrics on ([\d.:]+)", server.server.log)
        assert metrics
        process = server.server.process
        victim = Victim(process.pid, (host, int(port)), metrics[1], tokens, lambda: process.poll() is None)
        before = victim.metrics()
        yield victim
        assert victim.alive()

        def recovered() -> bool:
            server.models()  # allocates, so that the collector runs
            now = victim.metrics()
            return (
                now["go_memstats_heap_alloc_bytes"] < before["go_memstats_heap_alloc_bytes"] + 32 * MIB
                and now["go_goroutines"] < before["go_goroutines"] + 10
                and now["anisoflight_calls_active"] == 0
            )

        assert wire.within(20, recovered), (before, victim.metrics())
        log = server.server.log
    assert "panic" not in log, log


@pytest.fixture(autouse=True)
def bounded(victim: Victim, request: pytest.FixtureRequest) -> Iterator[None]:
    """No attack takes more memory at any moment, nor keeps the server longer, than this."""
    mib = 768 if request.function is test_the_largest_label else 256
    with victim.costs_at_most(mib=mib, seconds=120):
        yield


def image(shape: tuple[int, ...], **options: Any) -> pa.ExtensionArray:
    return wire.tensor(np.zeros(shape, np.uint8), **options)


def upload(client: fl.FlightClient, options: fl.FlightCallOptions, table: pa.Table, to: object = None) -> None:
    """An upload of what may be refused at any moment."""
    descriptor = to or wire.command({"op": "PutDataset", "name": "x", "replace": True})
    writer, answers = client.do_put(descriptor, table.schema, options)
    writer.write_table(table)
    writer.done_writing()
    answers.read()
    writer.close()


def test_bombs(victim: Victim) -> None:
    """Small messages that unpack to more than a message may have."""
    zeros = wire.table(image=image((1, 8192, 8192, 1)))
    for kind in ("lz4", "zstd"):
        small = pa.ipc.IpcWriteOptions(compression=kind)
        options = fl.FlightCallOptions(headers=victim.options().headers, write_options=small)
        assert victim.code(lambda c, _, o=options: upload(c, o, zeros)) == "TOO_LARGE"
    assert victim.code(lambda c, o: list(c.do_action(fl.Action("ListModels", b" " * (17 * MIB)), o))) == "TOO_LARGE"
    assert victim.code(lambda c, o: list(c.do_action(fl.Action("ListModels", b"[" * MIB), o))) == "BAD_REQUEST"


def test_tensors(victim: Victim) -> None:
    """Permutations, nulls, huge shapes and shapes that overflow."""
    permuted = pa.fixed_shape_tensor(pa.uint8(), [2, 2, 1], permutation=[1, 2, 0])
    storage = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(4, np.uint8)), 4)
    nulls = pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.uint8(), [2, 2, 1]), pa.array([None], pa.list_(pa.uint8(), 4))
    )
    for column in (
        pa.ExtensionArray.from_storage(permuted, storage),
        nulls,
        pa.array([None], pa.int32()),
        pa.array([["x"]]),
        pa.nulls(3),
    ):
        assert victim.code(lambda c, o, x=column: upload(c, o, pa.table({"image": x}))) == "BAD_TENSOR"
    schemas = {
        "[-1, 2, 1]": 4,
        "[4611686018427387904, 4, 1]": 0,
        "[2147483648, 2147483648, 4]": 0,
        "[1e9, 2, 1]": 4,
        "[0, 2, 1]": 0,
        "[[[[[[]]]]]]": 4,
        "null": 4,
    }
    for shape, size in schemas.items():
        metadata = {
            "ARROW:extension:name": "arrow.fixed_shape_tensor",
            "ARROW:extension:metadata": f'{{"shape":{shape}}}',
        }
        field = pa.field("image", pa.list_(pa.uint8(), size), nullable=False, metadata=metadata)
        table = pa.schema([field]).empty_table()  # carries the schema as it is
        assert victim.code(lambda c, o, t=table: upload(c, o, t)) == "BAD_TENSOR", shape


@pytest.mark.parametrize(
    ("request_", "codes"),
    [
        ({"n": 2**62, "steps": 1}, {"TOO_LARGE"}),
        ({"n": 2**63, "steps": 1}, {"TOO_LARGE"}),
        ({"n": 10**9, "steps": 1}, {"TOO_LARGE"}),
        ({"n": -1, "steps": 1}, {"BAD_REQUEST"}),
        ({"n": 1, "steps": 2**62}, {"TOO_LARGE"}),
        ({"n": 1, "steps": 1, "batch_bytes": 2**62}, {"TOO_LARGE"}),
        ({"n": 1, "steps": 1, "every": -1}, {"BAD_REQUEST"}),
        ({"n": 1e300, "steps": 1}, {"BAD_REQUEST"}),
        ({"labels": [2**31], "steps": 1}, {"BAD_REQUEST", "TOO_LARGE"}),
        ({"labels": [7], "steps": 1}, {"BAD_REQUEST"}),
        ({"n": 1, "steps": 1, "seed": 2**64}, {"BAD_REQUEST"}),
        ({"n": 1, "grid": {"t": [float("1e308"), 0]}}, {"BAD_REQUEST"}),
        ({"n": 1, "steps": 1, "__proto__": {}}, {"BAD_REQUEST"}),
    ],
)
def test_numbers(victim: Victim, request_: dict[str, Any], codes: set[str]) -> None:
    assert (
        victim.code(lambda c, o: c.do_get(wire.ticket("Sample", {"model": "two", **request_}), o).read_all()) in codes
    )


def test_many_samples_cost_what_is_read(victim: Victim) -> None:
    """A million images, of which the client reads the first: the server makes no more than travel."""
    with victim.costs_at_most(mib=64, seconds=60), victim.connect() as client:
        reader = client.do_get(wire.ticket("Sample", {"model": "two", "n": 10**6, "steps": 1}), victim.options())
        while (chunk := reader.read_chunk()).data is None or not chunk.data.num_rows:
            pass
        reader.cancel()
        assert wire.within(20, lambda: victim.metrics()["anisoflight_calls_active"] == 0)


def test_strangers_cost_nothing(victim: Victim) -> None:
    """Without a token, 64 KiB are looked at: bodies of 300 KB once took 3 s each, and four of 400 MB 4.9 GB."""
    key = b'{"' + b"k" * 150_000 + b'":[0' + b",0" * 75_000 + b"]}"
    large = b" " * (64 * MIB)
    with victim.costs_at_most(mib=96, seconds=20), victim.connect() as client:

        def ask(body: bytes) -> str:
            return wire.code(lambda: list(client.do_action(fl.Action("ServerInfo", body))))

        assert ask(key) == "TOO_LARGE"
        assert ask(b'{"a":"' + b"x" * 60_000 + b'"}') == "BAD_REQUEST"

        def refused(body: bytes) -> bool:
            with pytest.raises(wire.FAILURES, match="message larger than max"):
                list(client.do_action(fl.Action("ServerInfo", body)))
            return True

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            assert all(pool.map(refused, [large] * 4))
        assert list(client.do_action(fl.Action("ServerInfo", b"")))


@pytest.mark.parametrize("label", [2**31 - 1, 2**20])
def test_large_labels(victim: Victim, label: int) -> None:
    """A label of 2³¹ − 1 was stored, and then ended the server in MakeModel."""
    labelled = wire.table(image=image((1, 2, 2, 1)), label=wire.int32([label]))
    with victim.costs_at_most(mib=32, seconds=10):
        assert victim.code(lambda c, o: upload(c, o, labelled)) == "BAD_TENSOR"


@pytest.mark.parametrize("op", ["MakeModel", "CreateRun", "MakeBasis", "MakeSchedule"])
def test_the_largest_label(victim: Victim, op: str) -> None:
    """2²⁰ classes of which one has an image: whatever counts classes stays small and answers."""
    to = wire.command({"op": "PutDataset", "name": "classes", "replace": True})
    labelled = wire.table(image=image((1, 2, 2, 1)), label=wire.int32([2**20 - 1]))
    with victim.connect() as client:
        upload(client, victim.options(), labelled, to)
    per_class = {"basis": "none", "per_class": True}
    requests: dict[str, dict[str, Any]] = {
        "MakeModel": {"name": "m", "dataset": "classes"},
        "CreateRun": {
            "name": "r",
            "stage": "isotropic",
            "dataset": "classes",
            "batch": 1,
            "family": per_class,
            "network": {**wire.NETWORK, "img_resolution": 2, "label_dim": 2**20},
        },
        "MakeBasis": {"name": "b", "kind": "pca_per_class", "dataset": "classes", "k": 1},
        "MakeSchedule": {"name": "s", "kind": "geodesic", "model": "two", "dataset": "classes", "per_class": True},
    }
    with victim.costs_at_most(mib=700, seconds=30):
        body = json.dumps(requests[op]).encode()
        assert victim.code(lambda c, o: list(c.do_action(fl.Action(op, body), o))) in ("BAD_REQUEST", "TOO_LARGE")


def test_frames(victim: Victim) -> None:
    """What is not HTTP/2, or not gRPC, or breaks off."""
    rng = np.random.default_rng(0)
    attacks = [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01" + bytes(512), PREFACE[:10], PREFACE, PREFACE + SETTINGS[:5]]
    attacks += [PREFACE + SETTINGS + rng.bytes(4096) for _ in range(20)]
    attacks += [
        PREFACE + SETTINGS + frame(kind, flags, stream, rng.bytes(64))
        for kind in range(12)
        for flags in (0, 4, 5, 255)
        for stream in (0, 1)
    ]
    attacks.append(PREFACE + SETTINGS + b"\xff\xff\xff\0\0\0\0\0\1")  # a frame that claims 16 MiB
    attacks += [
        PREFACE + SETTINGS + headers(DO_GET) + frame(0, 1, 1, body)
        for body in (b"\0\xff\xff\xff\xff", b"\0\0\0\0\5abc", b"\1\0\0\0\4abcd", b"\7\0\0\0\0")
    ]
    for attack in attacks:
        with victim.socket() as s, contextlib.suppress(OSError):
            s.sendall(attack)
            s.shutdown(socket.SHUT_WR)
            s.settimeout(0.05)
            while s.recv(4096):
                pass
    assert victim.alive()


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def literal(name: bytes, value: bytes) -> bytes:
    """A header in HPACK, without indexing and without Huffman's code."""
    return b"\0" + prefixed(len(name)) + name + prefixed(len(value)) + value


def prefixed(n: int) -> bytes:
    if n < 127:
        return bytes([n])
    out, n = b"\x7f", n - 127
    while n >= 128:
        out, n = out + bytes([n % 128 + 128]), n // 128
    return out + bytes([n])


def headers(path: bytes, stream: int = 1, more: bytes = b"", flags: int = 4) -> bytes:
    fields = (
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", path),
        (b":authority", b"x"),
        (b"te", b"trailers"),
        (b"content-type", b"application/grpc"),
    )
    return frame(1, flags, stream, b"".join(literal(*f) for f in fields) + more)


def test_header_floods(victim: Victim) -> None:
    """Headers without end: large ones, many, and continuations that never stop."""
    with victim.connect() as client:
        flood = fl.FlightCallOptions(headers=[(b"x-%d" % i, b"y" * 100) for i in range(1000)])
        with pytest.raises(wire.FAILURES):
            list(client.list_flights(options=flood))
    with victim.socket() as s, contextlib.suppress(OSError):
        s.sendall(PREFACE + SETTINGS + headers(b"/x", flags=0))
        for _ in range(2000):
            s.sendall(frame(9, 0, 1, literal(b"x", b"y" * 8000)))
    with victim.socket() as s, contextlib.suppress(OSError):
        for stream in range(1, 20_001, 2):  # opened and reset at once
            s.sendall(headers(DO_GET, stream) + frame(3, 0, stream, b"\0\0\0\10"))
    assert wire.within(10, lambda: victim.metrics()["anisoflight_calls_active"] == 0)


def test_a_thousand_connections(victim: Victim) -> None:
    """Beyond the bound connections are closed; once they are gone there is room again."""
    with contextlib.ExitStack() as stack:
        for i in range(1000):
            with contextlib.suppress(OSError):
                s = stack.enter_context(victim.socket())
                if i % 2:
                    s.sendall(PREFACE + SETTINGS)
        assert victim.alive()

    def served() -> bool:
        try:
            with victim.connect() as client:
                return bool(wire.act(client, "ServerInfo"))
        except wire.FAILURES:
            return False

    assert wire.within(15, served)


def test_rapid_cancels(victim: Victim) -> None:
    with victim.connect() as client:

        def cancel(i: int) -> None:
            reader = client.do_get(
                wire.ticket("Sample", {"model": "two", "n": 64, "steps": 2_000, "seed": i}), victim.options()
            )
            if i % 2:
                reader.read_chunk()
            reader.cancel()

        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            list(pool.map(cancel, range(100)))
    assert wire.within(10, lambda: victim.metrics()["anisoflight_calls_active"] == 0)


def test_clients_that_vanish(victim: Victim) -> None:
    """A process killed while it samples leaves no work behind."""
    script = f"""
import pyarrow.flight as fl, sys
options = fl.FlightCallOptions(headers=[(b"authorization", b"Bearer {victim.tokens["all"]}")])
client = fl.FlightClient("grpc://{victim.address[0]}:{victim.address[1]}")
for i in range(8):
    reader = client.do_get(fl.Ticket(b'{{"op":"Sample","model":"two","n":64,"steps":5000}}'), options)
    globals()[f"r{{i}}"] = reader
print("ready", flush=True)
sys.stdin.read()
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout
    assert process.stdout.readline() == b"ready\n"
    assert wire.within(5, lambda: victim.metrics()["anisoflight_calls_active"] == 8)
    process.kill()
    process.communicate()
    assert wire.within(5, lambda: victim.metrics()["anisoflight_calls_active"] == 0)
