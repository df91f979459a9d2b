"""Arrow tensor columns and numpy arrays, without a copy if there is one buffer.

A batch of N images of shape (H, W, C) is one column of type ``arrow.fixed_shape_tensor`` with N rows, row-major,
dim_names ``["H", "W", "C"]`` (or ``["C", "H", "W"]``) and no permutation.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import bad_tensor
from .arrays import missing


def tensor_column(values: npt.ArrayLike, dims: Sequence[str] | None) -> pa.FixedShapeTensorArray:
    """The column whose row i is values[i], with optional names of axes; it shares the memory of a contiguous array.

    >>> tensor_column(np.zeros((5, 8, 8, 1), np.float32), "HWC").type.shape
    [8, 8, 1]
    """
    array = np.ascontiguousarray(values)
    kind = pa.fixed_shape_tensor(pa.from_numpy_dtype(array.dtype), array.shape[1:], dim_names=dims and list(dims))
    width = int(np.prod(array.shape[1:]))
    return pa.ExtensionArray.from_storage(kind, pa.FixedSizeListArray.from_arrays(pa.array(array.reshape(-1)), width))


def vector_column(values: npt.ArrayLike) -> pa.FixedSizeListArray:
    """The fixed_size_list<float64> column of a 2-D array."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    return pa.FixedSizeListArray.from_arrays(pa.array(array.reshape(-1)), array.shape[1])


def to_numpy(column: pa.Array | pa.ChunkedArray, name: str = "a column") -> np.ndarray[Any, Any]:
    """A column as an array with the rows first: a read-only view of one chunk, a copy of several.

    Nulls, also inside tensors and lists, are a BadRequestError that calls the column by name.

    >>> to_numpy(tensor_column(np.ones((2, 3), np.float32), "W")).tolist()
    [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    """
    kind = column.type
    if column.null_count:
        raise missing(name, column.null_count)
    if isinstance(column, pa.ChunkedArray):
        chunks = [chunk for chunk in column.chunks if len(chunk)] or column.chunks[:1]
        chunks = chunks or [pa.array([], kind)]
        return to_numpy(chunks[0], name) if len(chunks) == 1 else np.concatenate([to_numpy(c, name) for c in chunks])
    if isinstance(kind, pa.FixedShapeTensorType):
        if kind.permutation and list(kind.permutation) != sorted(kind.permutation):
            raise bad_tensor(
                f"{name} must be tensors without permutation, got {list(kind.permutation)}; put {name}.copy()"
            )
        return to_numpy(column.storage, name).reshape(len(column), *kind.shape)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        fixed = pa.types.is_fixed_size_list(kind)
        inner = to_numpy(column.flatten(), name)
        sizes = [kind.list_size] if fixed else pc.unique(pc.list_value_length(column)).to_pylist()
        if len(sizes) > 1:
            raise bad_tensor(f"{name} must be of one size, got {sizes[0]} and {sizes[1]}")
        return inner.reshape(len(column), *sizes, *inner.shape[1:])
    return column.to_numpy(zero_copy_only=False)


def table_of(columns: Mapping[str, pa.Array | pa.ChunkedArray]) -> pa.Table:
    """A table of non-nullable columns, as the service expects."""
    schema = pa.schema([pa.field(name, column.type, nullable=False) for name, column in columns.items()])
    return pa.Table.from_arrays(list(columns.values()), schema=schema)


def batches_of(table: pa.Table, bytes_each: int = 2 << 20) -> Iterator[pa.RecordBatch]:
    """Slices of a table of about bytes_each bytes, without a copy."""
    rows = max(1, int(bytes_each * table.num_rows // max(1, table.nbytes)))
    yield from table.to_batches(max_chunksize=rows)
