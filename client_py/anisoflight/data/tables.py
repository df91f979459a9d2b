"""Tables with a column of images: Parquet, and Arrow IPC files and streams."""

from __future__ import annotations

from contextlib import contextmanager
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
    from pathlib import Path

    Array = np.ndarray[Any, Any]

IMAGES = ("image", "images", "img")
LABELS = ("label", "labels")

_ROWS = 64  # of Parquet that are read at a time


def parquet(path: Path) -> Source:
    """A Parquet file; a few rows of it are held at a time."""

    def batches() -> Iterator[pa.RecordBatch]:
        with pq.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False) as file:
            wanted = [name for name in file.schema_arrow.names if name in IMAGES + LABELS]
            yield from file.iter_batches(_ROWS, columns=wanted)

    with _named(path), pq.ParquetFile(path) as file:
        return _source(path, "Parquet", file.metadata.num_rows, file.schema_arrow, batches)


def arrow(path: Path) -> Source:
    """An Arrow IPC file or stream, mapped into memory."""

    def batches() -> Iterator[pa.RecordBatch]:
        with pa.memory_map(str(path)) as file:
            # The file format is the stream with a head of 8 bytes, and a foot that a stream lacks.
            file.seek(8 if file.read(6) == b"ARROW1" else 0)
            with pa.ipc.open_stream(file) as reader:
                yield from reader

    count, schema = 0, pa.schema([])
    with _named(path):
        for batch in batches():
            count, schema = count + batch.num_rows, batch.schema
        return _source(path, "Arrow IPC", count, schema, batches)


@contextmanager
def _named(path: Path, entry: str = "") -> Iterator[None]:
    """pyarrow's failures, and values that are none, as errors that name the file and the column."""
    try:
        yield
    except DataError:
        raise
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError) as error:
        damaged = "" if entry else "is damaged: "
        raise DataError(path, entry, damaged + str(error).partition("\n")[0]) from error


def _source(
    path: Path, form: str, count: int, schema: pa.Schema, batches: Callable[[], Iterator[pa.RecordBatch]]
) -> Source:
    images, labels = (next((n for n in names if schema.names.count(n) == 1), None) for names in (IMAGES, LABELS))
    if images is None:
        said = f"has the columns {', '.join(schema.names)}; images are the column {', '.join(IMAGES)}"
        raise DataError(path, "", said)

    def items() -> Iterator[Item]:
        first = 0
        with _named(path):
            for batch in batches():
                batch.validate(full=True)
                numbers = None
                if labels is not None:
                    with _named(path, f"column {labels}"):
                        numbers = _labels(batch[labels])
                with _named(path, f"column {images}"):
                    found = _items(batch[images], numbers, first)
                yield from found
                first += batch.num_rows

    return Source(path, form, count, labels is not None, items)


def _labels(column: pa.Array) -> Array:
    if column.null_count:
        raise ValueError("has rows without a label; −1 means none")
    return labels_of(column.to_numpy(zero_copy_only=False), len(column))


def _items(column: pa.Array, labels: Array | None, first: int) -> Iterator[Item]:
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
    if not pa.types.is_binary(column.type) and not pa.types.is_large_binary(column.type):
        raise ValueError(f"is of {kind}; images are arrow.fixed_shape_tensor of uint8 or float32, or encoded bytes")
    return (
        Item(f"row {first + i}", -1 if labels is None else int(labels[i]), lambda scalar=scalar: _picture(scalar))
        for i, scalar in enumerate(column)
    )


def _picture(scalar: pa.Scalar) -> Array:
    data = scalar.as_py()
    if data is None:
        raise ValueError("has no bytes")
    if len(data) > MAX_ENCODED:
        raise ValueError(f"has {len(data):,} bytes; an encoded image has at most {MAX_ENCODED:,}")
    return decoded(data)
