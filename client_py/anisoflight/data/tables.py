"""Parquet and Arrow files with a column of images."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..images import IMAGES, LABELS
from ..wire.tensors import to_numpy
from .arrays import labels_of, rows
from .pictures import MAX_ENCODED, channels_last, decoded
from .source import DataError, Item, Source, named, some

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    Array = np.ndarray[Any, Any]

_ROWS = 64  # that are read at a time


def shards(path: Path, names: Sequence[str], ignored: Sequence[str]) -> Source:
    """Parquet files in a folder as one source, in this order."""
    parts = {name: table(path / name) for name in names}
    first, *others = parts.values()
    for other in others:
        if (other.labelled, other.units) != (first.labelled, first.units):
            raise DataError(other.path, "", f"must have labels and units if {first.path.name} has them; give one alone")

    def items() -> Iterator[Item]:
        for name, part in parts.items():
            yield from (replace(item, name=f"{name} {item.name}") for item in part.items())

    count = sum(part.count for part in parts.values())
    form = f"folder of {len(names)} Parquet files"
    return replace(first, path=path, format=form, count=count, items=items, ignored=ignored)


def table(path: Path) -> Source:
    """A Parquet or Arrow file; a few rows of it are held at a time, and all labels."""
    with named(path):
        file = _opened(path)
        if isinstance(file, pq.ParquetFile):
            form, schema, count = "Parquet", file.schema_arrow, file.metadata.num_rows
        else:
            form, schema = "Arrow", file.schema
            count = sum(file.get_batch(k).num_rows for k in range(file.num_record_batches))
        units = json.loads((schema.metadata or {}).get(b"normalization", b"null"))
        if units is not None and {*units} != {"mean", "scale"}:
            raise ValueError("has metadata normalization other than mean and scale")
        names = schema.names
    images, labels = (next((name for name in known if name in names), None) for known in (IMAGES, LABELS))
    if images is None:
        raise DataError(path, "", f"has the columns {some(names)}; images are the column {', '.join(IMAGES)}")
    if twice := [name for name in (images, labels) if names.count(name) > 1]:
        raise DataError(path, "", f"has the column {twice[0]} {names.count(twice[0])} times; rename all but one")
    numbers = None
    if labels is not None:
        with named(path, f"column {labels}"):
            found = [_labels(column) for column in _column(path, labels)]
            numbers = labels_of(np.concatenate(found or [np.zeros(0, int)]), count)

    def items() -> Iterator[Item]:
        first = 0
        with named(path):
            for column in _column(path, images):
                with named(path, f"column {images}"):
                    found = _items(column, None if numbers is None else numbers[first:], first)
                yield from found
                first += len(column)

    return Source(path, form, count, numbers is not None, items, units=units)


def _opened(path: Path) -> pq.ParquetFile | pa.RecordBatchFileReader:
    with path.open("rb") as file:
        parquet = file.read(4) == b"PAR1"
    if parquet:
        return pq.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False)
    return pa.ipc.open_file(pa.memory_map(str(path)))


def _column(path: Path, name: str) -> Iterator[pa.Array]:
    """A column, a few rows at a time."""
    file = _opened(path)
    if isinstance(file, pq.ParquetFile):
        pieces = (batch[name] for batch in file.iter_batches(_ROWS, columns=[name]))
    else:
        columns = (file.get_batch(k)[name] for k in range(file.num_record_batches))
        pieces = (column.slice(i, _ROWS) for column in columns for i in range(0, len(column), _ROWS))
    for piece in pieces:
        piece.validate(full=True)
        yield piece


def _labels(column: pa.Array) -> Array:
    if column.null_count:
        raise ValueError("has rows without a label; −1 means none")
    return column.to_numpy(zero_copy_only=False)


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
