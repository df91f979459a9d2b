"""The four Flight calls, as the service speaks them: actions, gets, exchanges and puts.

Everything here is in terms of JSON requests and record batches; what they mean is the business of
`anisoflight.operations`.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.flight as fl

from ..errors import BadRequestError
from .reader import Call, Stream, in_thread, start_thread
from .retry import RETRY, again

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


# What pyarrow raises when a call fails: FlightError for Flight's own, else the class of the gRPC code.
_FAILURES = (fl.FlightError, pa.ArrowException, OSError)
# Seconds that the reading of an exchange waits for a short input to be written. Where the server refuses a call, the
# reader of Arrow closes the writing side, too, and without a lock: if done_writing closes it at the same moment, gRPC
# aborts the process (WritableDataStream in Arrow's grpc_client.cc). A short input is closed before the answer is read.
_SHORT = 0.05


@dataclass(frozen=True)
class Message:
    """One message of a stream: its rows (none in a heartbeat) and its JSON metadata."""

    batch: pa.RecordBatch
    event: dict[str, Any]


class Connection:
    """A Flight client with the token in its headers, whose every call can be interrupted."""

    def __init__(
        self,
        location: str,
        token: str | None = None,
        tls_root_certs: bytes | None = None,
        timeout: float | None = None,
        cert_chain: bytes | None = None,
        private_key: bytes | None = None,
        retry: float = RETRY,
    ) -> None:
        self.location, self._retry = location, retry
        if (cert_chain is None) != (private_key is None):
            raise BadRequestError("cert_chain and private_key must be given together, got one of them", "BAD_REQUEST")
        certificates = {"tls_root_certs": tls_root_certs, "cert_chain": cert_chain, "private_key": private_key}
        try:
            self._client = fl.FlightClient(location, **certificates)
        except (pa.ArrowException, TypeError) as error:
            raise BadRequestError(
                "location must be grpc://HOST:PORT, grpc+tls://HOST:PORT or grpc+unix:///PATH, "
                f"got {location!r}; write grpc://localhost:8815 for a server on this machine",
                "BAD_REQUEST",
            ) from error
        headers = [(b"authorization", b"Bearer " + token.encode())] if token else None
        self._options = fl.FlightCallOptions(headers=headers, timeout=timeout)

    def close(self) -> None:
        self._client.close()

    def operations(self) -> dict[str, str]:
        actions = in_thread(lambda: self._client.list_actions(self._options))
        return {action.type: action.description for action in actions}

    def action(self, name: str, request: Mapping[str, Any] | None = None) -> Stream[dict[str, Any]]:
        """The JSON objects that an action answers, one by one."""
        client, options, body = self._client, self._options, _encode(request or {})

        def results(_: Call) -> Iterator[dict[str, Any]]:
            # Dropping the iterator is what cancels an action; pyarrow has no other way.
            for result in client.do_action(fl.Action(name, body), options):
                yield json.loads(result.body.to_pybytes())

        return Stream(again(results, name, self._retry, lambda _: True))

    def get(self, op: str, request: Mapping[str, Any]) -> Stream[Message]:
        """The messages of a DoGet."""
        client, options, ticket = self._client, self._options, fl.Ticket(_encode({"op": op, **request}))

        def messages(call: Call) -> Iterator[Message]:
            reader = client.do_get(ticket, options)
            call.on_cancel(reader.cancel)
            return _messages(reader)

        return Stream(again(messages, op, self._retry, lambda message: message.batch.num_rows > 0))

    def exchange(
        self,
        op: str,
        request: Mapping[str, Any],
        schema: pa.Schema,
        batches: Iterable[pa.RecordBatch],
        ended: Callable[[], None] | None = None,
    ) -> Stream[Message]:
        """The messages of a DoExchange; a second thread writes `batches` while they come in.

        Batches that wait for messages must end when `ended` is called: no more will come. Heartbeats are then passed
        over here: a caller that works on an answer for minutes must not keep the stream from being read.
        """
        client, options = self._client, self._options
        descriptor = fl.FlightDescriptor.for_command(_encode({"op": op, **request}))

        def messages(call: Call) -> Iterator[Message]:
            writer, reader = client.do_exchange(descriptor, options)
            call.on_cancel(reader.cancel)
            writing = start_thread(_write, call, writer, schema, batches)
            writing.join(_SHORT)
            try:
                for message in _messages(reader):
                    if ended is None or message.event.get("event") != "progress":
                        yield message
            finally:
                if ended is not None:
                    ended()
                # Not before: a writer that is closed, or dropped, throws away the replies still to come.
                writing.join()
                with contextlib.suppress(*_FAILURES):
                    writer.close()

        return Stream(messages)

    def put(
        self, descriptor: fl.FlightDescriptor, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
    ) -> Stream[dict[str, Any]]:
        """Upload batches: the rows written so far after each, at the end the server's answer."""
        client, options = self._client, self._options

        def written(call: Call) -> Iterator[dict[str, Any]]:
            writer, answers = client.do_put(descriptor, schema, options)
            rows = 0
            try:
                for batch in batches:
                    writer.write_batch(batch)
                    rows += batch.num_rows
                    yield {"event": "batch", "done": rows}
            except BaseException as error:
                # Closing or dropping a writer ends the stream as if it were complete, and pyarrow cannot cancel it:
                # an upload that stops short is spoilt with a row that the server must refuse.
                refusal = _spoil(writer, schema)
                if isinstance(error, fl.FlightError) and refusal is not None:
                    raise refusal from error  # the write failed because the server had refused; this says why
                raise
            writer.done_writing()
            answer = answers.read()
            writer.close()  # raises the server's refusal, if it has one
            yield json.loads(answer.to_pybytes())

        return Stream(written)


def joined(messages: Iterable[Message]) -> pa.Table:
    """The rows of all messages as one table, one chunk per message that has any."""
    batches = [message.batch for message in messages]
    filled = [batch for batch in batches if batch.num_rows]
    return pa.Table.from_batches(filled or batches[:1])


def command(request: Mapping[str, Any]) -> fl.FlightDescriptor:
    """A descriptor that carries a JSON request."""
    return fl.FlightDescriptor.for_command(_encode(request))


def _encode(request: Mapping[str, Any]) -> bytes:
    return json.dumps(request, separators=(",", ":"), default=_python_numbers).encode()


def _python_numbers(value: Any) -> Any:
    """The numbers of numpy as Python's."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise BadRequestError(f"a request holds numbers, strings, lists and mappings, got {value!r}", "BAD_REQUEST")


def _messages(reader: fl.FlightStreamReader) -> Iterator[Message]:
    for chunk in reader:
        metadata = chunk.app_metadata
        event = json.loads(metadata.to_pybytes()) if metadata is not None and metadata.size else {}
        yield Message(chunk.data, event)


def _write(call: Call, writer: fl.FlightStreamWriter, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Thread: write every batch, then say so. What the server refuses is reported by the reading side."""
    try:
        writer.begin(schema)
        for batch in batches:
            if call.stopped.is_set():
                return
            writer.write_batch(batch)
        writer.done_writing()
    except _FAILURES:
        return
    except Exception as error:  # from the caller's own iterator
        call.fail(error)


def _spoil(writer: fl.FlightStreamWriter, schema: pa.Schema) -> Exception | None:
    """End an upload with a row of nulls; gives the server's refusal."""
    with contextlib.suppress(*_FAILURES):
        writer.write_batch(pa.record_batch([_nulls(field.type) for field in schema], schema=schema))
    try:
        writer.close()
    except _FAILURES as refusal:
        return refusal
    return None


def _nulls(kind: pa.DataType) -> pa.Array:
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, pa.nulls(1, kind.storage_type))
    return pa.nulls(1, kind)
