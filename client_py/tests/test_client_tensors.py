"""Arrow columns and numpy arrays: same numbers, and no copies where none are needed."""

import numpy as np
import pyarrow as pa

from anisoflight.operations import schedules
from anisoflight.wire import exchanges, intake, tensors


def test_a_column_shares_the_array_and_the_view_shares_the_column() -> None:
    array = np.arange(2 * 4 * 4 * 3, dtype=np.float32).reshape(2, 4, 4, 3)
    column = tensors.tensor_column(array, "HWC")
    view = tensors.to_numpy(column)
    assert view.__array_interface__["data"][0] == array.__array_interface__["data"][0]
    assert not view.flags.writeable
    np.testing.assert_array_equal(view, array)


def test_the_type_has_names_and_no_permutation() -> None:
    kind = tensors.tensor_column(np.zeros((1, 3, 8, 9), np.uint8), "CHW").type
    assert (kind.shape, kind.dim_names, kind.permutation) == ([3, 8, 9], ["C", "H", "W"], None)
    assert kind.value_type == pa.uint8()


def test_a_strided_array_is_copied_in_the_right_order() -> None:
    array = np.arange(2 * 3 * 4 * 4, dtype=np.float32).reshape(2, 3, 4, 4)
    moved = np.moveaxis(array, 1, 3)
    np.testing.assert_array_equal(tensors.to_numpy(tensors.tensor_column(moved, "HWC")), moved)


def test_slices_and_chunks_keep_their_rows() -> None:
    array = np.arange(10 * 4, dtype=np.float64).reshape(10, 2, 2)
    column = tensors.tensor_column(array, "HW")
    np.testing.assert_array_equal(tensors.to_numpy(column[3:7]), array[3:7])
    chunked = pa.chunked_array([column[:4], column[4:4], column[4:]])
    np.testing.assert_array_equal(tensors.to_numpy(chunked), array)
    one = pa.chunked_array([column[:0], column])
    assert np.shares_memory(tensors.to_numpy(one), array)


def test_no_rows_keep_their_shape() -> None:
    column = tensors.tensor_column(np.zeros((0, 8, 8, 1), np.float32), "HWC")
    assert tensors.to_numpy(column).shape == (0, 8, 8, 1)
    assert tensors.to_numpy(pa.chunked_array([], column.type)).shape == (0, 8, 8, 1)


def test_vectors_and_scalars() -> None:
    rows = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(tensors.to_numpy(tensors.vector_column(rows)), rows)
    assert tensors.to_numpy(pa.array([1, 2], pa.int32())).dtype == np.int32


def test_batches_are_about_as_large_as_asked_and_in_order() -> None:
    table = tensors.table_of({"image": tensors.tensor_column(np.zeros((1000, 32, 32, 3), np.uint8), "HWC")})
    sizes = [batch.num_rows for batch in tensors.batches_of(table, 1 << 20)]
    assert sum(sizes) == 1000
    assert max(sizes) == 341
    assert not any(field.nullable for field in table.schema)


def test_dataset_rows() -> None:
    table = intake.dataset_table(np.zeros((3, 8, 8, 1)), [0, 1, 2])
    assert table["image"].type.value_type == pa.float32()
    assert table["label"].type == pa.int32()
    assert "label" not in intake.dataset_table(np.zeros((3, 8, 8, 1), np.uint8), None).column_names


def test_schedule_rows_have_their_defaults() -> None:
    table = schedules.schedule_table({"t": [0, 1], "g": [1e-9, 1]})
    assert table["label"].to_pylist() == [-1, -1]
    assert table["subspace"].to_pylist() == [0, 0]
    assert table["g"].type == pa.float64()


def test_basis_rows_by_label() -> None:
    table = schedules.basis_table({0: np.zeros((2, 4, 4)), 3: np.ones((1, 4, 4))}, None)
    assert table["label"].to_pylist() == [0, 0, 3]
    assert table["vector"].type.dim_names == ["H", "W"]


def test_denoise_rows_take_one_kind_of_noise() -> None:
    x = np.zeros((3, 8, 8, 1))
    rows = exchanges.denoise_rows(x, 0.5, None, None)
    assert rows["sigma"].to_pylist() == [0.5] * 3
    assert rows["label"].to_pylist() == [-1] * 3
    assert exchanges.denoise_rows(x, None, [1.0, 2.0], [0, 1, 2])["g"].to_pylist() == [[1.0, 2.0]] * 3


def test_gradient_probe_is_of_signs() -> None:
    rows = exchanges.gradient_rows(np.zeros((2, 8, 8, 1)), np.zeros((2, 8, 8, 1)), None, [1, 2], None)
    probe = tensors.to_numpy(rows["probe"])
    assert set(np.unique(probe)) == {-1.0, 1.0}
