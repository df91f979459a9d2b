"""Images in the forms that users hold them in, as rows of PutDataset; memory is shared wherever it can be."""

from __future__ import annotations

import itertools
import os
import sys
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ..errors import BadRequestError, warn
from ..samples import ImageTable
from .tensors import batches_of, integers, layout_of, table_of, tensor_column, to_numpy

if TYPE_CHECKING:
    from collections.abc import Iterator

IMAGES = ("image", "images", "img", "sample", "pixel_values")
LABELS = ("label", "labels", "fine_label")
_ROWS = 1024  # of a data set of Hugging Face that are decoded at a time


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
    if labels is None:
        return table_of({"image": column})
    numbers = integers(labels, "labels")
    if numbers.shape != (len(column),):
        raise BadRequestError(
            f"labels must be one number an image, got shape {numbers.shape} for {len(column)} images", "BAD_TENSOR"
        )
    return table_of({"image": column, "label": pa.array(numbers)})


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
        """Warn if all values lie in [0, 1], unless all are equal."""
        if 0 <= self._low < self._high <= 1:
            warnings.warn(
                f"images must be uint8 in [0, 255] or floats in [-1, 1], got values in [{self._low:g}, {self._high:g}] "
                "only; put 2 * images - 1, or pass check_range=False where they are meant so",
                stacklevel=3,
            )


def pieces_of(images: Any) -> Iterator[tuple[Any, Any]] | None:
    """A `datasets.Dataset` as pieces (images, labels) of some rows each, its images decoded; None of anything else."""
    datasets = sys.modules.get("datasets")
    if datasets is None or not isinstance(images, datasets.Dataset | datasets.IterableDataset):
        return None
    names = list(images.column_names or [])
    pixels, labels = one_of(names, IMAGES), next((name for name in LABELS if name in names), None)

    def pieces() -> Iterator[tuple[Any, Any]]:
        for part in images.with_format("numpy").iter(_ROWS):
            found = part[pixels]  # whole numbers as int64, where they are not decoded images
            found = _narrowed(found) if isinstance(found, np.ndarray) and found.dtype != object else list(found)
            yield found, None if labels is None else part[labels]

    return pieces()


def columns_of(images: Any, labels: Any, layout: str | None = None) -> tuple[pa.ChunkedArray, Any]:
    """The column of images and the labels, or None, of whatever holds images: see `Client.put_dataset`.

    >>> column, labels = columns_of([np.zeros((2, 2, 1), np.uint8)] * 3, [0, 1, 0])
    >>> column.type.shape, labels
    ([2, 2, 1], [0, 1, 0])
    """
    if isinstance(images, ImageTable):
        images, kept = images.table, images.labels
        labels = kept if labels is None and (kept >= 0).any() else labels
        images = images.drop_columns(["label"])
    if isinstance(images, pa.Array | pa.ChunkedArray):
        return _tensors(pa.chunked_array(images) if isinstance(images, pa.Array) else images), labels
    if isinstance(images, Mapping) or hasattr(images, "column_names") or hasattr(images, "columns"):
        return _of_frame(images, labels)
    _check_kind(images)
    if layout not in (None, "HWC", "CHW"):
        raise BadRequestError(f"layout must be HWC or CHW, got {layout!r}")
    return pa.chunked_array([_column(_array(images), layout)]), labels


def one_of(names: list[str], wanted: tuple[str, ...]) -> str:
    """The column of images among names."""
    for name in wanted:
        if name in names:
            return name
    raise BadRequestError(
        f"images must be a column named {', '.join(wanted)}, got {', '.join(map(str, names)) or 'no columns'}; "
        "rename one, or pass that column alone",
        "BAD_TENSOR",
    )


def _check_kind(images: Any) -> None:
    """Tell what is often put where images belong."""
    first = images[0] if isinstance(images, list | tuple) and images else images
    if isinstance(first, str | os.PathLike):
        raise BadRequestError(
            f"images must be pixels, got the path {os.fspath(first)!r}; store files with python -m anisoflight.data",
            "BAD_TENSOR",
        )
    if first is None:
        raise BadRequestError("images must be an array, a table or a list of images, got None", "BAD_TENSOR")


def _of_frame(table: Any, labels: Any) -> tuple[pa.ChunkedArray, Any]:
    """Columns of an Arrow table, or of a frame of pandas or of another library that Arrow reads."""
    if isinstance(table, Mapping):
        names, column = list(table), lambda name: table[name]
    elif hasattr(table, "iloc"):  # pandas: a column of arrays, which Arrow would take apart
        names, column = list(table.columns), lambda name: table[name].to_list()
    else:
        table = table if isinstance(table, pa.Table) else pa.table(table)
        names, column = table.column_names, table.column
    found = column(one_of(names, IMAGES))
    named = next((name for name in LABELS if name in names), None)
    if labels is None and named is not None:
        labels = column(named)
        labels = to_numpy(labels) if isinstance(labels, pa.ChunkedArray) else labels
    return columns_of(found, labels)


def _tensors(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of tensors as it is sent, of the same memory where it can be; of other columns the images decoded."""
    kind = column.type
    if not isinstance(kind, pa.FixedShapeTensorType):
        return pa.chunked_array([_column(np.stack([_decoded(value) for value in column.to_pylist()]))])
    permuted = kind.permutation and list(kind.permutation) != sorted(kind.permutation)
    if permuted or len(kind.shape) != 3 or kind.value_type not in (pa.uint8(), pa.float32()) or column.null_count:
        if column.null_count:
            raise BadRequestError(f"images must not be null, got {column.null_count} rows without one", "BAD_TENSOR")
        chunks = [chunk.to_numpy_ndarray() for chunk in column.chunks]
        return pa.chunked_array([_column(chunk) for chunk in chunks])
    names = kind.dim_names or list(layout_of(kind.shape))
    wanted = pa.fixed_shape_tensor(kind.value_type, kind.shape, dim_names=names)
    return pa.chunked_array([pa.ExtensionArray.from_storage(wanted, chunk.storage) for chunk in column.chunks], wanted)


def _decoded(value: Any) -> np.ndarray[Any, Any]:
    """The image of a row: nested lists, encoded bytes, or Hugging Face's struct of bytes and path."""
    if isinstance(value, dict) and "bytes" in value:
        value = value["bytes"]
    if isinstance(value, bytes):
        from ..data.pictures import decoded

        return decoded(value)
    if value is None:
        raise BadRequestError("images must not be null, got a row without one", "BAD_TENSOR")
    return _narrowed(np.asarray(value))


def _narrowed(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Whole numbers that bytes can hold as bytes."""
    bytes_all = array.size and array.dtype.kind in "iu" and array.min() >= 0 and array.max() <= 255
    return array.astype(np.uint8, copy=False) if bytes_all else array


def _array(images: Any) -> np.ndarray[Any, Any]:
    """Arrays, torch tensors, Pillow's images and lists of them as one array, without a copy of what is one already."""
    if isinstance(images, list | tuple):
        parts = [_array(image) for image in images]
        shapes = sorted({part.shape for part in parts})
        if len(shapes) > 1:
            raise BadRequestError(
                f"images must be of one size, got {shapes[0]} and {shapes[1]}; anisoflight.data resizes files",
                "BAD_TENSOR",
            )
        return np.stack(parts) if parts else np.zeros(0)
    if type(images).__module__.partition(".")[0] == "torch":
        images = images.detach().cpu()
        images = (images.float() if images.dtype.is_floating_point and images.dtype.itemsize < 4 else images).numpy()
    if type(images).__module__.startswith("PIL."):
        images = images if images.mode in ("L", "RGB") else images.convert("L" if images.mode == "1" else "RGB")
    return np.asarray(images)


def _column(array: np.ndarray[Any, Any], layout: str | None = None) -> pa.FixedShapeTensorArray:
    """The column of an array of images [n, H, W, C], [n, C, H, W] or [n, H, W]."""
    if array.ndim == 3 and array.shape[-1] > 4:
        array = array[..., None]
    if array.ndim != 4:
        hint = "; put images[None] for one image" if array.ndim in (2, 3) else ""
        raise BadRequestError(
            f"images must have the shape [n, H, W, C] or [n, C, H, W], or [n, H, W] of grey, got {array.shape}{hint}",
            "BAD_TENSOR",
        )
    if array.dtype.kind == "f":
        array = array.astype(np.float32, copy=False)
    elif array.dtype != np.uint8:
        raise BadRequestError(
            f"images must be uint8 in [0, 255] or floats in [-1, 1], got {array.dtype}; put images.astype(np.uint8) "
            "where they are bytes",
            "BAD_TENSOR",
        )
    if layout is None:
        layout = layout_of(array.shape[1:])
        _doubt(array.shape[1:], layout)
    return tensor_column(array, layout)


def _doubt(shape: tuple[int, ...], layout: str) -> None:
    """Warn of a guess at the layout that makes oblong images where the other layout makes square ones."""
    first, middle, last = shape
    sides = {"HWC": first == middle, "CHW": middle == last}
    other = "CHW" if layout == "HWC" else "HWC"
    if sides[other] and not sides[layout]:
        (height, width), channels = (shape[:2], last) if layout == "HWC" else (shape[1:], first)
        moved = "1, -1" if layout == "HWC" else "-1, 1"
        note = (
            f"images of shape {shape} are taken as {layout}: {channels} channels of {height}×{width} pixels; give "
            f'layout="{other}" if the channels are on the other side, or np.moveaxis(images, {moved})'
        )
        warn([note])
