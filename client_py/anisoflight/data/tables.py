"""Tables with a column of images: Parquet, and Arrow IPC files and streams."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..wire.tensors import to_numpy
from .arrays import labels_of, rows
from .pictures import MAX_ENCODED, channels_last, decoded
from .source import DataError, Item, Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

IMAGES = ("image", "images", "img")
LABELS = ("label", "labels")

_ROWS = 64  # of Parquet that are read at a time

Batches = "Callable[[], Iterator[pa.RecordBatch]]"


def parquet(path: Path) -> Source:
    """A Parquet file; a few rows of it are held at a time."""

    def opened() -> pq.ParquetFile:
        return pq.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False)

    def batches() -> Iterator[pa.RecordBatch]:
        with opened() as file:
            wanted = [name for name in file.schema_arrow.names if name in IMAGES + LABELS]
            yield from file.iter_batches(_ROWS, columns=wanted)

    with _named(path), opened() as file:
        return _source(path, "Parquet", file.metadata.num_rows, file.schema_arrow, batches)


def arrow(path: Path) -> Source:
    """An Arrow IPC file or stream, mapped into memory."""

    @contextmanager
    def opened() -> Iterator[pa.RecordBatchReader]:
        with pa.memory_map(str(path)) as file:
            if file.read(6) == b"ARROW1":
                file.seek(8)  # the file format is the stream with a head of 8 bytes, and a foot that a stream lacks
            else:
                file.seek(0)
            with pa.ipc.open_stream(file) as reader:
                yield reader

    def batches() -> Iterator[pa.RecordBatch]:
        with opened() as reader:
            yield from reader

    with _named(path), opened() as reader:
        return _source(path, "Arrow IPC", sum(batch.num_rows for batch in reader), reader.schema, batches)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """pyarrow's failures as errors that name the file."""
    try:
        yield
    except DataError:
        raise
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError) as error:
        raise DataError(path, "", f"is damaged: {str(error).partition(chr(10))[0]}") from error


def _source(
    path: Path, form: str, count: int, schema: pa.Schema, batches: Callable[[], Iterator[pa.RecordBatch]]
) -> Source:
    def column(names: tuple[str, ...]) -> str | None:
        return next((name for name in names if schema.names.count(name) == 1), None)

    images, labels = column(IMAGES), column(LABELS)
    if images is None:
        raise DataError(
            path, "", f"has the columns {', '.join(schema.names)}; images are the column {', '.join(IMAGES)}"
        )

    def items() -> Iterator[Item]:
        first = 0
        with _named(path):
            for batch in batches():
                batch.validate(full=True)
                numbers = None
                if labels is not None:
                    with _column(path, labels):
                        numbers = _labels(batch[labels])
                with _column(path, images):
                    found = _items(batch[images], numbers, first)
                yield from found
                first += batch.num_rows

    return Source(path, form, count, labels is not None, items)


@contextmanager
def _column(path: Path, name: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, pa.ArrowException) as error:
        raise DataError(path, f"column {name}", error) from error


def _labels(column: pa.Array) -> np.ndarray[Any, Any]:
    if column.null_count:
        raise ValueError("has rows without a label; −1 means none")
    return labels_of(column.to_numpy(zero_copy_only=False), len(column))


def _items(column: pa.Array, labels: np.ndarray[Any, Any] | None, first: int) -> Iterator[Item]:
    """Images of a column: tensors, bytes of encoded images, or structs with such bytes, as Hugging Face has them."""
    if column.null_count:
        raise ValueError("has rows without an image")
    kind = column.type
    if isinstance(kind, pa.FixedShapeTensorType):
        if kind.permutation and list(kind.permutation) != sorted(kind.permutation):
            raise ValueError(f"has the permutation {kind.permutation}; store the tensors in their own order")
        return rows(channels_last(to_numpy(column), kind.dim_names), labels, "", first)
    if pa.types.is_struct(kind) and kind.get_field_index("bytes") >= 0:
        column = column.field("bytes")
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        return _encoded(column, labels, first)
    raise ValueError(f"is of {kind}; images are arrow.fixed_shape_tensor of uint8 or float32, or encoded bytes")


def _encoded(column: pa.Array, labels: np.ndarray[Any, Any] | None, first: int) -> Iterator[Item]:
    def picture(scalar: pa.Scalar) -> np.ndarray[Any, Any]:
        data = scalar.as_py()
        if data is None:
            raise ValueError("has no bytes")
        if len(data) > MAX_ENCODED:
            raise ValueError(f"has {len(data):,} bytes; an encoded image has at most {MAX_ENCODED:,}")
        return decoded(data)

    for i, scalar in enumerate(column):
        yield Item(f"row {first + i}", -1 if labels is None else int(labels[i]), lambda scalar=scalar: picture(scalar))
