"""Arrow tensor columns and numpy arrays, without copies where there is one buffer.

A batch of N images of shape (H, W, C) is one column of type ``arrow.fixed_shape_tensor`` with N rows, row-major,
dim_names ``["H", "W", "C"]`` (or ``["C", "H", "W"]``) and never a permutation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ..errors import BadRequestError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt


def layout_of(shape: Sequence[int]) -> str:
    """The layout of an image shape without names: HWC when the last size is at most 4, else CHW.

    >>> layout_of((8, 8, 3)), layout_of((3, 32, 32))
    ('HWC', 'CHW')
    """
    return "HWC" if shape[-1] <= 4 else "CHW"


def tensor_column(values: npt.ArrayLike, dims: Sequence[str] | None) -> pa.FixedShapeTensorArray:
    """The column whose row i is values[i], its axes named or not; a contiguous array's memory is shared, not copied.

    >>> tensor_column(np.zeros((5, 8, 8, 1), np.float32), "HWC").type.shape
    [8, 8, 1]
    """
    array = np.ascontiguousarray(values)
    kind = pa.fixed_shape_tensor(pa.from_numpy_dtype(array.dtype), array.shape[1:], dim_names=dims and list(dims))
    width = int(np.prod(array.shape[1:]))
    return pa.ExtensionArray.from_storage(kind, pa.FixedSizeListArray.from_arrays(pa.array(array.reshape(-1)), width))


def integers(values: npt.ArrayLike, name: str) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Whole numbers as int32; name is what an error calls them.

    >>> integers([3.0, 1], "labels").tolist()
    [3, 1]
    >>> integers(["cat", "dog"], "labels")
    Traceback (most recent call last):
    anisoflight.errors.BadRequestError: [BAD_TENSOR] labels must be integers, got 'cat'; number the classes from 0
    """
    array = np.asarray(values)
    with np.errstate(invalid="ignore"):
        wrong = array[array != array.astype(np.int32)] if array.dtype.kind in "iubf" else array.reshape(-1)[:1]
    if wrong.size:
        first = wrong.tolist()[0]
        want = "in the range of int32" if isinstance(first, int) else "integers"
        raise BadRequestError(f"{name} must be {want}, got {first!r}; number the classes from 0", "BAD_TENSOR")
    return array.astype(np.int32)


def vector_column(values: npt.ArrayLike) -> pa.FixedSizeListArray:
    """The fixed_size_list<float64> column of a 2-D array."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    return pa.FixedSizeListArray.from_arrays(pa.array(array.reshape(-1)), array.shape[1])


def to_numpy(column: pa.Array | pa.ChunkedArray) -> np.ndarray[Any, Any]:
    """A column as an array with the rows first: a read-only view of one chunk, a copy of several.

    >>> to_numpy(tensor_column(np.ones((2, 3), np.float32), "W")).tolist()
    [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    """
    if isinstance(column, pa.ChunkedArray):
        chunks = [chunk for chunk in column.chunks if len(chunk)] or [pa.array([], column.type)]
        return to_numpy(chunks[0]) if len(chunks) == 1 else np.concatenate([to_numpy(chunk) for chunk in chunks])
    if isinstance(column.type, pa.FixedShapeTensorType):
        return column.to_numpy_ndarray()
    if isinstance(column.type, pa.FixedSizeListType):
        return column.flatten().to_numpy().reshape(len(column), column.type.list_size)
    return column.to_numpy()


def table_of(columns: Mapping[str, pa.Array | pa.ChunkedArray]) -> pa.Table:
    """A table of non-nullable columns, as the service writes and expects them."""
    schema = pa.schema([pa.field(name, column.type, nullable=False) for name, column in columns.items()])
    return pa.Table.from_arrays(list(columns.values()), schema=schema)


def batches_of(table: pa.Table, bytes_each: int = 2 << 20) -> Iterator[pa.RecordBatch]:
    """Slices of table of about bytes_each bytes, in order; nothing is copied."""
    rows = max(1, int(bytes_each * table.num_rows // max(1, table.nbytes)))
    yield from table.to_batches(max_chunksize=rows)
