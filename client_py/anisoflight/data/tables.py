"""Parquet and Arrow files with a column of images."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.dataset import dataset
from pyarrow.fs import LocalFileSystem

from ..images import IMAGES, LABELS, labels_of, like_labels
from ..wire.pictures import decoded
from .arrays import channels_last, columns_by_rule, has_labels, rows
from .source import DataError, Item, Source, named

Array = np.ndarray[Any, Any]


_ROWS = 64  # read at a time


def shards(path: Path, names: Sequence[str], ignored: Sequence[str], rule: str) -> Source:
    """Parquet or Arrow files of a folder as one source, in this order."""
    parts = {name: table(path / name, rule) for name in names}
    first, *others = parts.values()
    for other in others:
        if (other.labelled, other.units) != (first.labelled, first.units):
            raise DataError(other.path, "", f"must have labels and units if {first.path.name} has them; give one alone")

    def items() -> Iterator[Item]:
        for name, part in parts.items():
            yield from (replace(item, name=f"{name} {item.name}") for item in part.items())

    count = sum(part.count for part in parts.values())
    form = f"folder of {len(names)} {first.format} files"
    return replace(first, path=path, format=form, count=count, items=items, ignored=[*ignored, *first.ignored])


def table(path: Path, rule: str = "auto") -> Source:
    """A Parquet or Arrow file; a few rows are in memory at a time, and all labels."""
    with named(path):
        form, schema, count, _ = _opened(path)
        units = json.loads((schema.metadata or {}).get(b"normalization", b"null"))
        if units is not None and {*units} != {"mean", "scale"}:
            raise ValueError("has metadata normalization other than mean and scale")
        images, listed = columns_by_rule(schema.names, rule)
    labels = None
    if listed is not None:
        with named(path, f"column {listed}"):
            labels = labels_of(pa.chunked_array(_column(path, listed), schema.field(listed).type), count)

    def items() -> Iterator[Item]:
        first = 0
        with named(path):
            for part in _column(path, images):
                with named(path, f"column {images}"):
                    found = _items(part, labels, first)
                yield from found
                first += len(part)

    unread = {*IMAGES, *like_labels(schema.names)} - {images, listed, *LABELS}
    ignored = [f"column {name}" for name in schema.names if name in unread]
    return Source(path, form, count, has_labels(labels), items, units=units, ignored=ignored)


def _opened(path: Path) -> tuple[str, pa.Schema, int, Callable[..., Iterator[pa.RecordBatch]]]:
    """The format of a file, its schema, its number of rows, and a function that reads `columns` in small batches."""
    with path.open("rb") as head:
        kind = head.read(4)
    if kind == b"\xff\xff\xff\xff":
        raise ValueError("is a stream of Arrow, as datasets saves to disk; Dataset.to_parquet writes what is read")
    if kind == b"PAR1":
        file = pq.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False)
        return "Parquet", file.schema_arrow, file.metadata.num_rows, partial(file.iter_batches, _ROWS)
    mapped = dataset(str(path), format="ipc", filesystem=LocalFileSystem(use_mmap=True))
    batches = partial(mapped.to_batches, batch_size=_ROWS, batch_readahead=0, use_threads=False)
    return "Arrow", mapped.schema, mapped.count_rows(), batches


def _column(path: Path, name: str) -> Iterator[pa.Array]:
    *_, read = _opened(path)
    for batch in read(columns=[name]):
        batch.validate(full=True)
        yield batch[name]


def _items(column: pa.Array, labels: Array | None, first: int) -> Iterator[Item]:
    """Images of a column: encoded, also in structs as of Hugging Face, or as `Client.put_dataset` takes them."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        raise ValueError("is of string; images are encoded bytes, not paths: store the files' bytes")
    if pa.types.is_struct(column.type) and column.type.get_field_index("bytes") >= 0:
        column = column.field("bytes")
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        return (
            Item(f"row {i}", -1 if labels is None else int(labels[i]), lambda scalar=scalar: decoded(scalar.as_py()))
            for i, scalar in enumerate(column, first)
        )
    if not pa.types.is_nested(column.type) and not isinstance(column.type, pa.FixedShapeTensorType):
        raise ValueError(f"is of {column.type}; images are encoded bytes, tensors, or lists of numbers")
    return rows(channels_last(column), labels, "", first)
