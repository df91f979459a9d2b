"""Parquet files with a column of images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..images import IMAGES, LABELS
from ..wire.tensors import to_numpy
from .arrays import labels_of, rows
from .pictures import MAX_ENCODED, channels_last, decoded
from .source import DataError, Item, Source, named

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    Array = np.ndarray[Any, Any]

_ROWS = 64  # that are read at a time


def parquet(path: Path) -> Source:
    """A Parquet file; a few rows of it are held at a time."""
    with named(path), pq.ParquetFile(path) as file:
        count, names = file.metadata.num_rows, file.schema_arrow.names
    images, labels = (next((n for n in known if names.count(n) == 1), None) for known in (IMAGES, LABELS))
    if images is None:
        raise DataError(path, "", f"has the columns {', '.join(names)}; images are the column {', '.join(IMAGES)}")

    def items() -> Iterator[Item]:
        first, wanted = 0, [name for name in (images, labels) if name is not None]
        with named(path), pq.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False) as file:
            for batch in file.iter_batches(_ROWS, columns=wanted):
                batch.validate(full=True)
                numbers = None
                if labels is not None:
                    with named(path, f"column {labels}"):
                        numbers = _labels(batch[labels])
                with named(path, f"column {images}"):
                    found = _items(batch[images], numbers, first)
                yield from found
                first += batch.num_rows

    return Source(path, "Parquet", count, labels is not None, items)


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
