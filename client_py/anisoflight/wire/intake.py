"""Images in the forms that users hold them in, as rows of PutDataset; memory is shared wherever it can be."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ..errors import BadRequestError, warn
from ..images import IMAGES, LABELS
from ..samples import ImageTable
from .tensors import batches_of, integers, layout_of, table_of, tensor_column, to_numpy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_ROWS = 1024  # of a data set of Hugging Face that are decoded at a time


def dataset_batches(pieces: Iterable[Any], layout: str | None = None) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The rows of PutDataset from pieces, each images or (images, labels), of which no two are held at a time.

    >>> schema, batches = dataset_batches(np.zeros((n, 2, 2, 1), np.uint8) for n in (3, 1))
    >>> [batch.num_rows for batch in batches]
    [3, 1]
    """
    pairs = (piece if isinstance(piece, tuple) else (piece, None) for piece in pieces)
    tables = (dataset_table(images, labels, layout) for images, labels in pairs)
    first = next(tables, None)
    if first is None:
        raise BadRequestError("images must be one or more, got an iterator that ended at once", "BAD_TENSOR")

    def batches() -> Iterator[pa.RecordBatch]:
        for number, table in enumerate(itertools.chain([first], tables)):
            if table.schema != first.schema:
                wanted, got = (", ".join(map(str, schema.types)) for schema in (first.schema, table.schema))
                raise BadRequestError(f"piece {number} must be like the first, {wanted}, got {got}", "BAD_TENSOR")
            yield from batches_of(table)

    return first.schema, batches()


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
        self._bytes = False

    def note(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Look at the images of a batch, and return the batch as it is."""
        if self._low >= 0 and self._high <= 1 and batch.num_rows:
            images = to_numpy(batch["image"])
            self._bytes = images.dtype == np.uint8
            self._low, self._high = min(self._low, images.min()), max(self._high, images.max())
        return batch

    def warn(self) -> None:
        """Warn if all values lie in [0, 1], unless all are equal."""
        if 0 <= self._low < self._high <= 1:
            note = (
                f"images must be uint8 in [0, 255] or floats in [-1, 1], got values in [{self._low:g}, {self._high:g}] "
                f"only; put {'255 * images' if self._bytes else '2 * images - 1'}, "
                "or pass check_range=False where they are meant so"
            )
            warn([note])


def pieces_of(images: Any) -> Iterator[tuple[Any, Any]] | None:
    """A `datasets.Dataset` as pieces (images, labels) of some rows each, its images decoded; None of anything else."""
    datasets = sys.modules.get("datasets")
    if datasets is None or not isinstance(images, datasets.Dataset | datasets.IterableDataset):
        return None
    pixels, labels = _columns(list(images.column_names or []))

    def pieces() -> Iterator[tuple[Any, Any]]:
        for part in images.with_format("numpy").iter(_ROWS):
            found = _array(list(part[pixels]))
            if found.dtype == np.int64 and found.min() >= 0 and found.max() <= 255:  # bytes that were no images there
                found = found.astype(np.uint8)
            yield found, None if labels is None else part[labels]

    return pieces()


def columns_of(images: Any, labels: Any, layout: str | None = None) -> tuple[pa.ChunkedArray, Any]:
    """The column of images and the labels, or None, of whatever holds images: see `Client.put_dataset`.

    >>> column, labels = columns_of([np.zeros((2, 2, 1), np.uint8)] * 3, [0, 1, 0])
    >>> column.type.shape, labels
    ([2, 2, 1], [0, 1, 0])
    """
    if isinstance(images, ImageTable):
        known = images.labels if labels is None and (images.labels >= 0).any() else labels
        return columns_of(images.column, known)
    if isinstance(images, pa.Array | pa.ChunkedArray):
        return _tensors(pa.chunked_array(images) if isinstance(images, pa.Array) else images), labels
    if isinstance(images, Mapping) or hasattr(images, "column_names") or hasattr(images, "columns"):
        pandas = hasattr(images, "iloc")
        frame: Any = images if pandas or isinstance(images, Mapping | pa.Table) else pa.table(images)
        pixels, named = _columns(frame.column_names if isinstance(frame, pa.Table) else list(frame))
        # Of pandas a list: Arrow would take a column of arrays apart.
        found = frame[pixels].to_list() if pandas else frame[pixels]
        return columns_of(found, frame[named] if labels is None and named is not None else labels)
    if layout not in (None, "HWC", "CHW"):
        raise BadRequestError(f"layout must be HWC or CHW, got {layout!r}")
    if hasattr(images, "to_list"):  # a column of a frame, which numpy reads as objects
        images = images.to_list()
    return pa.chunked_array([_column(_array(images), layout)]), labels


def _columns(names: list[str]) -> tuple[str, str | None]:
    """The column of images among names, and that of labels, if there is one."""
    pixels, labels = (next((name for name in wanted if name in names), None) for wanted in (IMAGES, LABELS))
    if pixels is None:
        raise BadRequestError(
            f"images must be a column named {', '.join(IMAGES)}, got {', '.join(map(str, names)) or 'no columns'}; "
            "rename one, or pass that column alone",
            "BAD_TENSOR",
        )
    return pixels, labels


def _tensors(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of tensors as it is sent, of the same memory where it can be."""
    kind = column.type
    if not isinstance(kind, pa.FixedShapeTensorType):
        raise BadRequestError(
            f"a column of images must be one of tensors, got {kind}; store encoded images with python -m "
            "anisoflight.data",
            "BAD_TENSOR",
        )
    if column.null_count:
        raise BadRequestError(f"images must not be null, got {column.null_count} rows without one", "BAD_TENSOR")
    permuted = kind.permutation and list(kind.permutation) != sorted(kind.permutation)
    if permuted or len(kind.shape) != 3 or kind.value_type not in (pa.uint8(), pa.float32()):
        return pa.chunked_array([_column(chunk.to_numpy_ndarray()) for chunk in column.chunks])
    names = kind.dim_names or list(layout_of(kind.shape))
    wanted = pa.fixed_shape_tensor(kind.value_type, kind.shape, dim_names=names)
    return pa.chunked_array([pa.ExtensionArray.from_storage(wanted, chunk.storage) for chunk in column.chunks], wanted)


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
    if isinstance(images, str | os.PathLike):
        raise BadRequestError(
            f"images must be pixels, got the path {os.fspath(images)!r}; store files with python -m anisoflight.data",
            "BAD_TENSOR",
        )
    library = type(images).__module__.partition(".")[0]
    if library == "torch":
        images = images.detach().cpu()
        images = (images.float() if images.dtype.is_floating_point and images.dtype.itemsize < 4 else images).numpy()
    elif library == "PIL" and images.mode not in ("L", "RGB"):
        images = images.convert("L" if images.mode == "1" else "RGB")
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
        put = {"u2": "images / 32767.5 - 1", "b1": "images * np.uint8(255)"}.get(array.dtype.str[1:])
        raise BadRequestError(
            f"images must be uint8 in [0, 255] or floats in [-1, 1], got {array.dtype}; put "
            f"{put or 'images.astype(np.uint8) where they are bytes'}",
            "BAD_TENSOR",
        )
    return tensor_column(array, layout or _guessed_layout(array.shape[1:]))


def _guessed_layout(shape: tuple[int, ...]) -> str:
    """`layout_of`, with a warning of a guess that makes oblong images where the other layout makes square ones."""
    layout = layout_of(shape)
    other = "CHW" if layout == "HWC" else "HWC"
    sizes, of_other = (dict(zip(axes, shape, strict=True)) for axes in (layout, other))
    if sizes["H"] != sizes["W"] and of_other["H"] == of_other["W"]:
        note = (
            f"images of shape {shape} are taken as {layout}: {sizes['C']} channels of {sizes['H']}×{sizes['W']} "
            f'pixels; give layout="{other}" if the channels are on the other side'
        )
        warn([note])
    return layout
