"""The connection of a client, and the calls that every operation is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import pandas as pd

from . import notes
from .progress import Bar, followed, last
from .retry import RETRY
from .tensors import batches_of
from .transport import Connection, joined

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow as pa

    from .transport import Message

DEFAULT_LOCATION = "grpc://127.0.0.1:8815"


class Calls:
    """A connection to one server, and what can be asked over it in terms of JSON and tables.

    `call`, `stream` and `table` reach operations that have no method of their own.
    """

    def __init__(
        self,
        location: str = DEFAULT_LOCATION,
        token: str | None = None,
        tls_root_certs: bytes | None = None,
        timeout: float | None = None,
        cert_chain: bytes | None = None,
        private_key: bytes | None = None,
        retry: float = RETRY,
    ) -> None:
        self._connection = Connection(location, token, tls_root_certs, timeout, cert_chain, private_key, retry)

    @property
    def location(self) -> str:
        return self._connection.location

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.location!r})"

    def call(self, action: str, *, show: str | None = None, **request: Any) -> dict[str, Any]:
        """The last JSON object that an action answers; with `show`, its progress on a bar of that title."""
        bar = Bar(show or action, "step", show=show is not None)
        return last(followed(self._connection.action(action, request), bar, lambda event: event))

    def stream(self, op: str, request: Mapping[str, Any]) -> Iterable[Message]:
        """The messages of an operation as they come; leaving the iteration cancels it."""
        return self._connection.get(op, request)

    def follow(
        self,
        op: str,
        request: Mapping[str, Any],
        title: str,
        unit: str,
        total: int | None = None,
        progress: bool = True,
    ) -> Iterator[Message]:
        """`stream` with a progress bar."""
        return followed(self.stream(op, request), Bar(title, unit, total, progress), lambda message: message.event)

    def table(
        self,
        op: str,
        request: Mapping[str, Any],
        title: str = "",
        unit: str = "row",
        total: int | None = None,
        progress: bool = False,
    ) -> pa.Table:
        """All rows of an operation, one chunk per message that has any."""
        rows = joined(self.follow(op, request, title or op, unit, total, progress))
        notes.warn_of(rows)
        return rows

    def exchange(
        self,
        op: str,
        request: Mapping[str, Any],
        rows: pa.Table,
        title: str,
        progress: bool,
        events: dict[str, Any] | None = None,
    ) -> pa.Table:
        """All rows that an operation answers to `rows`; what the end of the stream says goes into `events`."""
        stream = self._connection.exchange(op, request, rows.schema, batches_of(rows))
        bar = Bar(title, "row", rows.num_rows, progress)

        def noted() -> Iterator[Message]:
            for message in followed(stream, bar, lambda message: message.event):
                if events is not None and message.event.get("event") == "end":
                    events.update(message.event)
                yield message

        answered = joined(noted())
        notes.warn_of(answered)
        return answered


class Listing(pd.DataFrame):
    """A DataFrame with a column for every field, which prints those in `shown`. Slices of it print all they have."""

    _metadata: ClassVar[list[str]] = ["shown"]
    shown: tuple[str, ...]

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame

    def _narrow(self) -> pd.DataFrame:
        return self[[name for name in self.shown if name in self.columns]]

    def __repr__(self) -> str:
        return f"{self._narrow()!r}\n{self._rest()}".rstrip()

    def _repr_html_(self) -> str:
        return f"{self._narrow().to_html(max_rows=pd.get_option('display.max_rows'))}<p>{self._rest()}</p>"

    def _rest(self) -> str:
        rest = [name for name in self.columns if name not in self.shown]
        return f"not shown: {', '.join(rest)}" if rest else ""


def frame_of(rows: list[dict[str, Any]], *shown: str) -> pd.DataFrame:
    """Entries with names as a DataFrame indexed by them, which prints the columns in `shown`, or all without.

    >>> frame = frame_of([{"name": "fast", "T": 400, "family": {"basis": "dct", "k": 16}}], "T")
    >>> repr(frame).splitlines()[-2:], list(frame.columns)
    (['fast  400', 'not shown: family'], ['T', 'family'])
    """
    frame = pd.DataFrame.from_records(rows, columns=None if rows else ["name"]).set_index("name")
    if not shown:
        return frame
    listing = Listing(frame)
    listing.shown = shown
    return listing


def given(**fields: Any) -> dict[str, Any]:
    """The fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}
