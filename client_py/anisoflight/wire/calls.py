"""Calls of a server, as JSON requests and record batches.

A call that changes nothing is repeated while the server cannot be reached, such as during a restart. A call that
creates, replaces, deletes or trains is never repeated: it may have been done although no answer came.
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import re
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeAlias, TypeVar
from urllib.parse import quote, unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.flight as fl

from ..errors import BadRequestError, from_arrow, warn
from ..files import path_of
from .contract import READS
from .progress import Bar
from .reader import Abandoned, Call, Stream, abandon, start_thread
from .tensors import batches_of

T = TypeVar("T")
PEM: TypeAlias = "bytes | str | os.PathLike[str]"
"""Certificates or a key in PEM, or the path of their file."""

DEFAULT_LOCATION = "grpc://127.0.0.1:8815"
_PAUSE, _MAX_PAUSE = 0.1, 2.0  # seconds between two calls; the pause doubles
# What pyarrow raises when a call fails.
_FAILURES = (fl.FlightError, pa.ArrowException, OSError)
_SHORT = 0.05  # seconds that an exchange waits for a short input before it reads

_connections: weakref.WeakSet[Connection] = weakref.WeakSet()
_process = 0  # id of the process that made the first connection


def location_of(address: str) -> str:
    """The Flight location of an address HOST:PORT or unix:PATH; other addresses are returned unchanged.

    >>> location_of("127.0.0.1:8815"), location_of("unix:/run/a server.sock")
    ('grpc://127.0.0.1:8815', 'grpc+unix:///run/a%20server.sock')
    """
    if address.startswith("unix:"):
        return "grpc+unix://" + quote(os.path.abspath(path_of(address.removeprefix("unix:").removeprefix("//"))))
    return "grpc://" + address if re.fullmatch(r"(\[[\da-fA-F:.]+\]|[^\s:/]+):\d+", address) else address


def seconds_of(name: str, value: Any, least: float = 0) -> float:
    """The value of an option in seconds: a finite number from `least` to 1e9, about thirty years."""
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        if not isinstance(value, str | bytes | bool) and least <= float(value) <= 1e9:
            return float(value)
    raise BadRequestError(f"{name} must be a number of seconds from {least:g} to 1e9, got {value!r:.100}")


def _visible(token: str | None) -> str | None:
    """A token without the white space around it, such as the end of the line of a file; None if nothing is left."""
    if token is not None and not isinstance(token, str):
        raise BadRequestError(f"token must be a str, got {type(token).__name__}")
    token = (token or "").strip()
    if wrong := re.search(r"[^!-~]", token):
        place = f"character {wrong.start() + 1} is not"
        raise BadRequestError(f"token must consist of visible ASCII characters without spaces; {place}")
    return token or None


def _pem(name: str, given: PEM | None) -> bytes | None:
    """The content of a PEM that is given itself or by its path."""
    if given is None:
        return None
    content = given.encode() if isinstance(given, str) and "-----BEGIN" in given else given
    if not isinstance(content, bytes):
        try:
            content = path_of(content).read_bytes()
        except (OSError, TypeError, ValueError) as error:
            raise BadRequestError(f"{name} must be PEM or the path of its file; {error}") from None
    if b"-----BEGIN" not in content:
        what = f"{str(given)!r} holds none" if given is not content else f"got {len(content)} other bytes"
        raise BadRequestError(f"{name} must be PEM, which begins with -----BEGIN; {what}")
    return content


def _connected(location: str, certificates: Mapping[str, Any]) -> fl.FlightClient:
    """Arrow's client. The path of a socket is quoted twice more, since Arrow and gRPC both unquote it."""
    if location.startswith(unix := "grpc+unix://"):
        location = unix + quote(quote(unquote(location.removeprefix(unix))))
    local = re.fullmatch(r"localhost|127\..*|0\.0\.0\.0|::1?", urlsplit(location).hostname or "")
    options = [("grpc.enable_http_proxy", 0)] if local else []
    return fl.FlightClient(location, generic_options=options, **certificates)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: abandon(_connections))


@dataclass(frozen=True)
class Message:
    """One message of a stream: its rows (none in a heartbeat) and its JSON metadata."""

    batch: pa.RecordBatch
    event: dict[str, Any]


class Connection:
    """A connection to one server. `call`, `stream` and `table` reach operations that have no method."""

    def __init__(
        self,
        location: str = DEFAULT_LOCATION,
        token: str | None = None,
        tls_root_certs: PEM | None = None,
        timeout: float | None = None,
        cert_chain: PEM | None = None,
        private_key: PEM | None = None,
        retry: float = 2.0,
    ) -> None:
        global _process
        if not isinstance(location, str):
            raise BadRequestError(f"location must be text such as localhost:8815 or unix:PATH, got {location!r:.100}")
        self.location, self._retry = location_of(location), seconds_of("retry", retry)
        timeout = None if timeout is None else seconds_of("timeout", timeout, 1e-3)
        token = _visible(token)
        given = {"tls_root_certs": tls_root_certs, "cert_chain": cert_chain, "private_key": private_key}
        certificates = {name: _pem(name, one) for name, one in given.items()}
        roots, chain, key = certificates.values()
        self._arguments = (self.location, token, roots, timeout, chain, key, retry)
        if (cert_chain is None) != (private_key is None):
            raise BadRequestError("cert_chain and private_key must be given together, got one of them")
        try:
            self._client = _connected(self.location, certificates) if _process in (0, os.getpid()) else Abandoned()
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise BadRequestError(
                "location must be HOST:PORT, grpc://HOST:PORT, grpc+tls://HOST:PORT or grpc+unix:///PATH, "
                f"got {location!r}; write localhost:8815 for a server on this machine"
            ) from error
        _process = _process or os.getpid()
        _connections.add(self)
        headers = [(b"authorization", b"Bearer " + token.encode())] if token else None
        self._options = fl.FlightCallOptions(headers=headers, timeout=timeout)

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.location!r})"

    # Flight calls, as streams; leaving the iteration cancels the call

    def operations(self) -> dict[str, str]:
        """Every action of the server with its description."""
        actions = Stream(lambda _: iter(self._client.list_actions(self._options)))
        return {action.type: action.description for action in actions}

    def action(self, name: str, request: Mapping[str, Any] | None = None) -> Stream[dict[str, Any]]:
        """The JSON objects that an action answers."""
        body = _encode(request or {})

        def results(_: Call) -> Iterator[dict[str, Any]]:
            # Dropping the iterator cancels the action; pyarrow has no other way.
            for result in self._client.do_action(fl.Action(name, body), self._options):
                yield json.loads(result.body.to_pybytes())

        return Stream(self._repeated(results, name, lambda _: True))

    def stream(self, op: str, request: Mapping[str, Any]) -> Stream[Message]:
        """The messages of an operation; leaving the iteration cancels it."""
        ticket = fl.Ticket(_encode({"op": op, **request}))

        def messages(call: Call) -> Iterator[Message]:
            reader = self._client.do_get(ticket, self._options)
            call.on_cancel(reader.cancel)
            return _messages(reader)

        return Stream(self._repeated(messages, op, lambda message: message.batch.num_rows > 0))

    def converse(
        self,
        op: str,
        request: Mapping[str, Any],
        schema: pa.Schema,
        batches: Iterable[pa.RecordBatch],
        ended: Callable[[], None] | None = None,
    ) -> Stream[Message]:
        """The messages of an operation that takes rows; a second thread writes `batches` meanwhile.

        Batches that wait for messages must end when `ended` is called, after the message "found" or a failure. With
        `ended`, heartbeats are dropped here, so that the stream is read while the caller works on an answer for
        minutes.
        """
        descriptor = fl.FlightDescriptor.for_command(_encode({"op": op, **request}))

        def messages(call: Call) -> Iterator[Message]:
            writer, reader = self._client.do_exchange(descriptor, self._options)
            call.on_cancel(reader.cancel)
            writing = start_thread(_write, call, writer, schema, batches)

            def end_input() -> None:
                # Called by the reading thread alone: a failed read also ends the input, and gRPC aborts the process if
                # two threads end it at once (WritableDataStream in Arrow's grpc_client.cc). An unfinished input is
                # ended at the next message, within half a second. Ending it twice does nothing.
                if not writing.is_alive():
                    with contextlib.suppress(*_FAILURES):  # the next read raises the server's refusal
                        writer.done_writing()

            try:
                writing.join(_SHORT)
                end_input()
                for message in _messages(reader):
                    kind = message.event.get("event")
                    if ended is not None and kind == "found":
                        ended()
                        writing.join()
                    end_input()
                    if ended is None or kind != "progress":
                        yield message
            finally:
                if ended is not None:
                    ended()
                # Last, because closing or dropping a writer discards the replies still to come.
                writing.join()
                with contextlib.suppress(*_FAILURES):
                    writer.close()

        return Stream(messages)

    def upload(
        self, request: Mapping[str, Any], schema: pa.Schema, batches: Iterable[pa.RecordBatch]
    ) -> Stream[dict[str, Any]]:
        """Upload batches: yields the number of rows after each, then the server's answer."""
        descriptor = fl.FlightDescriptor.for_command(_encode(request))

        def written(call: Call) -> Iterator[dict[str, Any]]:
            writer, answers = self._client.do_put(descriptor, schema, self._options)
            rows = 0
            try:
                for batch in batches:
                    writer.write_batch(batch)
                    rows += batch.num_rows
                    yield {"event": "batch", "done": rows}
            except BaseException as error:
                # Closing or dropping a writer completes the stream, and pyarrow cannot cancel it. So an upload that
                # fails ends with a row that the server must refuse.
                refusal = _spoil(writer, schema)
                if isinstance(error, fl.FlightError) and refusal is not None:
                    raise refusal from error  # the reason for which the write failed
                raise
            writer.done_writing()
            answer = answers.read()
            writer.close()  # raises the server's refusal, if it has one
            yield json.loads(answer.to_pybytes())

        return Stream(written)

    def _repeated(
        self, source: Callable[[Call], Iterator[T]], op: str, counts: Callable[[T], bool]
    ) -> Callable[[Call], Iterator[T]]:
        """A source that starts again while the server cannot be reached, until it has given an item that counts."""
        if op not in READS or self._retry <= 0:
            return source

        def repeated(call: Call) -> Iterator[T]:
            end, pause, seen = time.monotonic() + self._retry, _PAUSE, False
            while True:
                try:
                    for item in source(call):
                        seen = seen or counts(item)
                        yield item
                except (fl.FlightError, pa.ArrowException) as error:
                    unreachable = from_arrow(error).code in ("UNAVAILABLE", "DRAINING")
                    if seen or not unreachable or time.monotonic() + pause > end or call.stopped.wait(pause):
                        raise
                    pause = min(2 * pause, _MAX_PAUSE)
                else:
                    return

        return repeated

    # Whole calls, with progress bars

    def call(self, action: str, *, show: str | None = None, **request: Any) -> dict[str, Any]:
        """The last JSON object that an action answers; `show` is the title of a progress bar."""
        return _last(Bar(show or action, "step", show=show is not None).over(self.action(action, request)))

    def table(
        self,
        op: str,
        request: Mapping[str, Any],
        title: str = "",
        unit: str = "row",
        total: int | None = None,
        progress: bool = False,
    ) -> pa.Table:
        """All rows of an operation, one chunk per message with rows."""
        return joined(Bar(title or op, unit, total, progress).over(self.stream(op, request)))

    def exchange(
        self, op: str, request: Mapping[str, Any], rows: pa.Table, title: str, progress: bool
    ) -> tuple[pa.Table, dict[str, Any]]:
        """All rows that an operation answers to `rows`, and its last event."""
        stream = self.converse(op, request, rows.schema, batches_of(rows))
        messages = list(Bar(title, "row", rows.num_rows, progress).over(stream))
        return joined(messages), messages[-1].event

    def put(self, request: Mapping[str, Any], table: pa.Table, title: str | None = None) -> None:
        """Upload a table; a title shows a progress bar."""
        self.put_batches(request, table.schema, batches_of(table), table.num_rows, title)

    def put_batches(
        self,
        request: Mapping[str, Any],
        schema: pa.Schema,
        batches: Iterable[pa.RecordBatch],
        rows: int | None,
        title: str | None = None,
    ) -> None:
        """Upload batches as they come. With `rows`, the server refuses an upload that was cut off."""
        bar = Bar(title or "upload", "row", rows, show=title is not None)
        _last(bar.over(self.upload({**request, "rows": rows or None}, schema, batches)))


def joined(messages: Iterable[Message]) -> pa.Table:
    """The rows of all messages as one table, one chunk per message with rows. Warns of the notes in its metadata, to
    which the warnings of the messages are added.
    """
    pairs = [(message.batch, message.event.get("warning")) for message in messages]
    batches, warnings = [batch for batch, _ in pairs], [warning for _, warning in pairs if warning]
    table = pa.Table.from_batches([batch for batch in batches if batch.num_rows] or batches[:1])
    metadata = table.schema.metadata or {}
    notes = json.loads(metadata.get(b"notes", b"[]")) + warnings
    if warnings:
        table = table.replace_schema_metadata({**metadata, b"notes": json.dumps(notes).encode()})
    warn(notes)
    return table


def _last(items: Iterable[T]) -> T:
    return collections.deque(items, maxlen=1)[0]


def _encode(request: Mapping[str, Any]) -> bytes:
    """A request as JSON, without the fields that are None."""
    fields = {}
    for name, value in request.items():
        try:
            if value is not None:
                fields[name] = json.dumps(value, separators=(",", ":"), default=_python_numbers, allow_nan=False)
        except BadRequestError:
            raise
        except ValueError:
            raise BadRequestError(f"{name} must hold finite numbers, got {value!r:.100}") from None
    return ("{" + ",".join(f"{json.dumps(name)}:{value}" for name, value in fields.items()) + "}").encode()


def _python_numbers(value: Any) -> Any:
    """numpy's numbers as Python's."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise BadRequestError(f"a request holds numbers, strings, lists and mappings, got {value!r}")


def _messages(reader: fl.FlightStreamReader) -> Iterator[Message]:
    for chunk in reader:
        metadata = chunk.app_metadata
        event = json.loads(metadata.to_pybytes()) if metadata is not None and metadata.size else {}
        yield Message(chunk.data, event)


def _write(call: Call, writer: fl.FlightStreamWriter, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Thread: write every batch. The reading thread ends the input."""
    try:
        writer.begin(schema)
        for batch in batches:
            if call.stopped.is_set():
                return
            writer.write_batch(batch)
    except Exception as error:  # from the caller's own iterator, or the server's refusal
        call.fail(error)
        call.cancel()


def _spoil(writer: fl.FlightStreamWriter, schema: pa.Schema) -> Exception | None:
    """End an upload with a row of nulls; returns the server's refusal."""
    with contextlib.suppress(*_FAILURES):
        writer.write_batch(pa.record_batch([pa.nulls(1, field.type) for field in schema], schema=schema))
    try:
        writer.close()
    except _FAILURES as refusal:
        return refusal
    return None
