"""Images in the forms that users have, as rows of PutDataset, without copies if possible."""

import itertools
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import BadRequestError, bad_tensor, warn
from ..images import IMAGES, find_columns, labels_of
from .arrays import array_of, images_of, layout_of
from .samples import ImageTable
from .tensors import batches_of, table_of, tensor_column, to_numpy

_ROWS = 1024  # decoded at a time, of a data set of Hugging Face or torch


def dataset_batches(pieces: Iterable[Any], layout: str | None = None) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The rows of PutDataset from pieces, each images or (images, labels), one at a time.

    >>> schema, batches = dataset_batches(np.zeros((n, 2, 2, 1), np.uint8) for n in (3, 1))
    >>> [batch.num_rows for batch in batches]
    [3, 1]
    """
    tables = (dataset_table(*_pair(piece), layout) for piece in pieces)
    first = next(tables, None)
    if first is None:
        raise bad_tensor("images must be one or more, got an iterator that ended at once")

    def batches() -> Iterator[pa.RecordBatch]:
        for number, table in enumerate(itertools.chain([first], tables)):
            if table.schema != first.schema:
                wanted, got = (", ".join(map(str, schema.types)) for schema in (first.schema, table.schema))
                raise bad_tensor(f"piece {number} must be like the first, {wanted}, got {got}")
            yield from batches_of(table)

    return first.schema, batches()


def dataset_table(images: Any, labels: Any, layout: str | None = None) -> pa.Table:
    """The rows of PutDataset, which share the memory of an array or a column of tensors."""
    column, labels = columns_of(images, labels, layout)
    if labels is None:
        return table_of({"image": column})
    return table_of({"image": column, "label": pa.array(labels_of(labels, len(column)))})


class PixelRange:
    """Detects images on the scale [0, 1]; it looks until a value lies outside."""

    _low, _high, _bytes = np.inf, -np.inf, False

    def note(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Look at the images of a batch, and return the batch."""
        if self._low >= 0 and self._high <= 1 and batch.num_rows:
            images = to_numpy(batch["image"])
            self._bytes = images.dtype == np.uint8
            self._low, self._high = min(self._low, images.min()), max(self._high, images.max())
        return batch

    def warn(self) -> None:
        """Warn if all values lie in [0, 1] and are not all equal."""
        if 0 <= self._low < self._high <= 1:
            note = (
                f"images must be uint8 in [0, 255] or floats in [-1, 1], got values in [{self._low:g}, {self._high:g}] "
                f"only; put {'255 * images' if self._bytes else '2 * images - 1'}, "
                "or pass check_range=False if that is intended"
            )
            warn([note])


def _pair(piece: Any) -> tuple[Any, Any]:
    """The images and labels of a piece."""
    parts = piece if isinstance(piece, tuple) else (piece,)
    if len(parts) not in (1, 2):
        raise bad_tensor(
            f"a piece must be images, a pair (images, labels) or a dict of columns, got {len(parts)} parts"
        )
    return parts[0], parts[1] if len(parts) == 2 else None


def pieces_of(images: Any) -> Iterator[Any] | None:
    """The pieces of iterators, and of data sets and loaders of Hugging Face and torch, some rows at a time; None of
    other images.
    """
    datasets, torch = sys.modules.get("datasets"), sys.modules.get("torch")
    if datasets is not None and isinstance(images, datasets.Dataset | datasets.IterableDataset):
        return _hugging_face(images, datasets)
    loader = type(images).__module__ == "torch.utils.data.dataloader"  # or its iterator
    if torch is not None and (loader or isinstance(images, torch.utils.data.Dataset)):
        if getattr(images, "_auto_collation", loader):
            return (tuple(batch) if isinstance(batch, list) else batch for batch in images)
        sized = hasattr(images, "__len__") and not loader
        rows = (images[place] for place in range(len(images))) if sized else iter(images)
        return map(_collated, iter(lambda: list(itertools.islice(rows, _ROWS)), []))
    lazy = isinstance(images, Iterable) and not hasattr(images, "__len__") and not hasattr(images, "__array__")
    return iter(images) if lazy else None


def _collated(rows: list[Any]) -> Any:
    """Rows of a torch data set as a piece: a dict of columns, a tuple of them, or images."""
    if isinstance(rows[0], Mapping):
        return {name: [row[name] for row in rows] for name in rows[0]}
    return tuple(map(list, zip(*rows, strict=True))) if isinstance(rows[0], tuple | list) else rows


def _hugging_face(table: Any, datasets: Any) -> Iterator[tuple[Any, Any]]:
    """Pieces of a `datasets.Dataset`, in its transform and columns; images are decoded here."""
    form = table.format if isinstance(table, datasets.Dataset) else {"type": None, "format_kwargs": {}}
    if form["type"] != "custom":  # a transform's
        pictures = [name for name, kind in (table.features or {}).items() if isinstance(kind, datasets.Image)]
        if pictures and form["format_kwargs"]:
            got = f"got {form['format_kwargs']}; put with_format(None)"
            raise BadRequestError(f"images must have a format without options, {got}")
        if pictures or form["type"] not in ("numpy", "torch", "jax", "tensorflow"):
            columns = {"columns": form["columns"]} if "columns" in form else {}
            table = table.with_format("numpy" if table.features and not pictures else None, **columns)
    for part in table.iter(_ROWS):
        pixels, labels = find_columns(list(part))
        found = array_of(list(part[pixels]), "images")
        if found.dtype == np.int64 and found.min() >= 0 and found.max() <= 255:  # bytes in a column of integers
            found = found.astype(np.uint8)
        yield found, None if labels is None else part[labels]


def columns_of(images: Any, labels: Any, layout: str | None = None) -> tuple[pa.ChunkedArray, Any]:
    """The column of images and the labels, or None, of images as `Client.put_dataset` takes them.

    >>> column, labels = columns_of([np.zeros((2, 2, 1), np.uint8)] * 3, [0, 1, 0])
    >>> column.type.shape, labels
    ([2, 2, 1], [0, 1, 0])
    """
    if isinstance(images, ImageTable):
        known = images.labels if labels is None and (images.labels >= 0).any() else labels
        return columns_of(images.column, known)
    if hasattr(images, "data_vars") and not {*IMAGES} & {*images}:
        names = ", ".join(map(str, images))
        raise bad_tensor(f"images must be one array, got the variables {names}; put one of them, or to_dataarray()")
    if isinstance(images, Mapping) or hasattr(images, "column_names") or hasattr(images, "columns"):
        pandas = hasattr(images, "iloc")
        try:
            frame: Any = images if pandas or isinstance(images, Mapping | pa.Table) else pa.table(images)
        except (TypeError, ValueError, pa.ArrowException) as error:
            raise bad_tensor(f"images must be a table that Arrow takes, got {error}") from None
        columns = frame.column_names if isinstance(frame, pa.Table) else list(frame)
        pixels, named = find_columns(columns, "" if labels is None else None)
        # A list for pandas, because Arrow would flatten a column of arrays.
        found = frame[pixels].to_list() if pandas else frame[pixels]
        return columns_of(found, labels if named is None else frame[named], layout)
    parts: Any = [images]
    if isinstance(images, pa.ChunkedArray) and isinstance(images.type, pa.FixedShapeTensorType):
        parts = images.chunks or parts  # sent without a copy
    return pa.chunked_array([_column(part, layout) for part in parts]), labels


def _column(images: Any, layout: str | None) -> pa.FixedShapeTensorArray:
    """The column of images of one shape."""
    array, layout = pixels_in(images, layout)
    return tensor_column(array if array.dtype == np.uint8 else array.astype(np.float32, copy=False), layout)


def pixels_in(images: Any, layout: str | None = None) -> tuple[np.ndarray[Any, Any], str]:
    """Images of bytes or floats as an array of four axes, and their layout, guessed if it is unknown."""
    array, layout = images_of(images, "images", layout)
    if array.dtype != np.uint8 and array.dtype.kind != "f":
        put = {"u2": "images / 32767.5 - 1", "b1": "images * np.uint8(255)"}.get(array.dtype.str[1:])
        put = put or "images.astype(np.uint8) if they are bytes"
        raise bad_tensor(f"images must be uint8 in [0, 255] or floats in [-1, 1], got {array.dtype}; put {put}")
    return array, layout or _guessed_layout(array.shape[1:])


def _guessed_layout(shape: tuple[int, ...]) -> str:
    """`layout_of`, with a warning if that makes oblong images and the other layout square ones."""
    layout = layout_of(shape)
    last = layout == "HWC"
    height, width, channels = shape if last else (*shape[1:], shape[0])
    other, square = ("CHW", shape[1] == shape[2]) if last else ("HWC", shape[0] == shape[1])
    if height != width and square:
        note = (
            f"images of shape {shape} are taken as {layout}: {channels} channels of {height}×{width} "
            f'pixels; give layout="{other}" if the channels are on the other side'
        )
        warn([note])
    return layout
