"""Tables that go up: datasets, schedules, bases."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from ..errors import BadRequestError
from .intake import columns_of
from .progress import Bar, followed, last
from .tensors import batches_of, integers, table_of, tensor_column, to_numpy
from .transport import Connection, command

if TYPE_CHECKING:
    import numpy.typing as npt


def send(connection: Connection, request: Mapping[str, Any], table: pa.Table, title: str | None = None) -> int:
    """Upload table under request; the rows that the server stored."""
    return send_batches(connection, request, table.schema, batches_of(table), table.num_rows, title)


def send_batches(
    connection: Connection,
    request: Mapping[str, Any],
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    rows: int | None,
    title: str | None = None,
) -> int:
    """Upload batches, of so many rows in all if that is known, as they come; the rows that the server stored. It is
    told their number, so that no part of them can pass for the whole."""
    if rows:
        request = {**request, "rows": rows}
    bar = Bar(title or "upload", "row", rows, show=title is not None)
    return int(last(followed(connection.put(command(request), schema, batches), bar, lambda event: event))["rows"])


def dataset_batches(pieces: Iterator[Any], layout: str | None = None) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The rows of PutDataset from pieces, each images or (images, labels), of which no two are held at a time.

    >>> schema, batches = dataset_batches(np.zeros((n, 2, 2, 1), np.uint8) for n in (3, 1))
    >>> [batch.num_rows for batch in batches]
    [3, 1]
    """

    def table(piece: Any) -> pa.Table:
        images, labels = piece if isinstance(piece, tuple) else (piece, None)
        return dataset_table(images, labels, layout)

    tables = map(table, pieces)
    first = next(tables, None)
    if first is None:
        raise BadRequestError("images must be one or more, got an iterator that ended at once", "BAD_TENSOR")

    def batches() -> Iterator[pa.RecordBatch]:
        for number, table in enumerate(itertools.chain([first], tables)):
            if table.schema != first.schema:
                raise BadRequestError(
                    f"piece {number} must be like the first, {_row(first)}, got {_row(table)}", "BAD_TENSOR"
                )
            yield from batches_of(table)

    return first.schema, batches()


def _row(table: pa.Table) -> str:
    """What a row of a data set's table holds."""
    kind = table.schema.field("image").type
    labels = "with a label" if "label" in table.column_names else "without label"
    return f"{kind.value_type} of shape {tuple(kind.shape)} {labels}"


def dataset_table(images: Any, labels: Any, layout: str | None = None) -> pa.Table:
    """The rows of PutDataset, in the memory of the images where they are an array or a column of tensors."""
    column, labels = columns_of(images, labels, layout)
    columns: dict[str, pa.Array | pa.ChunkedArray] = {"image": column}
    if labels is not None:
        numbers = integers(labels, "labels")
        if numbers.shape != (len(column),):
            raise BadRequestError(
                f"labels must be one number an image, got shape {numbers.shape} for {len(column)} images", "BAD_TENSOR"
            )
        columns["label"] = pa.array(numbers)
    return table_of(columns)


class PixelRange:
    """Tells images on the scale [0, 1] from those that the server expects; it looks until one value lies outside."""

    def __init__(self) -> None:
        self._low, self._high = np.inf, -np.inf

    def note(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Look at the images of a batch, and return the batch as it is."""
        if self._low >= 0 and self._high <= 1 and batch.num_rows:
            images = to_numpy(batch["image"])
            self._low, self._high = min(self._low, images.min()), max(self._high, images.max())
        return batch

    def warn(self) -> None:
        """Warn where all values lie in [0, 1], but for images of one value."""
        if 0 <= self._low < self._high <= 1:
            warnings.warn(
                f"images must be uint8 in [0, 255] or floats in [-1, 1], got values in [{self._low:g}, {self._high:g}] "
                "only; put 2 * images - 1, or pass check_range=False where they are meant so",
                stacklevel=3,
            )


def schedule_table(table: Any) -> pa.Table:
    """The rows of PutSchedule from anything with columns t, g and perhaps label and subspace.

    >>> schedule_table({"t": [0, "five"], "g": [1, 2]})
    Traceback (most recent call last):
    anisoflight.errors.BadRequestError: [BAD_SCHEDULE] Row 1 of the schedule: t is 'five'; it is a number
    """
    try:
        frame = table.to_pandas() if isinstance(table, pa.Table) else pd.DataFrame(table)
    except (ValueError, TypeError) as error:
        raise BadRequestError(f"a schedule must be a table with columns t and g, got {error}", "BAD_SCHEDULE") from None
    if missing := [name for name in ("t", "g") if name not in frame]:
        raise BadRequestError(
            f"a schedule must have the columns t and g, got {', '.join(map(str, frame.columns)) or 'none'}; "
            f"add {' and '.join(missing)}",
            "BAD_SCHEDULE",
        )
    columns = {
        "label": (pa.int32(), -1),
        "subspace": (pa.int32(), 0),
        "t": (pa.float64(), None),
        "g": (pa.float64(), None),
    }
    return table_of({name: _numbers(frame, name, *what) for name, what in columns.items()})


def _numbers(frame: pd.DataFrame, name: str, kind: pa.DataType, default: int | None) -> pa.Array:
    """A column of a schedule table; what is no number is named by its row."""
    if name not in frame:
        return pa.array(np.full(len(frame), default), kind)
    values = pd.to_numeric(frame[name], errors="coerce").to_numpy(np.float64)
    whole = pa.types.is_integer(kind)
    wrong = np.flatnonzero(np.isnan(values) | (whole & (values != np.rint(values))))
    if len(wrong):
        row, article = wrong[0], "a whole number" if whole else "a number"
        raise BadRequestError(
            f"Row {row} of the schedule: {name} is {frame[name].iloc[row]!r}; it is {article}", "BAD_SCHEDULE"
        )
    return pa.array(values).cast(kind)


def basis_table(vectors: Any, labels: npt.ArrayLike | None) -> pa.Table:
    """The rows of PutBasis: [k, H, W] with a label per row (default −1, shared), or {label: [k, H, W]}."""
    if isinstance(vectors, Mapping):
        labels = [int(label) for label, rows in vectors.items() for _ in range(len(rows))]
        vectors = np.concatenate([np.asarray(rows, np.float64) for rows in vectors.values()])
    array = np.asarray(vectors, np.float64)
    if array.ndim != 3:
        raise BadRequestError(f"vectors must have the shape [k, H, W], got {array.shape}", "BAD_TENSOR")
    column = tensor_column(array, "HW")
    return table_of({"label": pa.array([-1] * len(array) if labels is None else labels, pa.int32()), "vector": column})
