"""Images go up from every form that users hold them in, from their own memory where it can be, and come back."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import pictures
from PIL import Image

from anisoflight import BadRequestError, Client
from anisoflight.wire.arrays import integers
from anisoflight.wire.exchanges import denoise_rows, latent_rows
from anisoflight.wire.intake import columns_of, dataset_batches, dataset_table, pieces_of
from anisoflight.wire.pictures import pixels_of
from anisoflight.wire.tensors import tensor_column

IMAGES, LABELS = pictures(12, seed=7)
GREY = [Image.fromarray(image[..., 0]) for image in IMAGES]
TENSORS = tensor_column(IMAGES, "HWC")
NESTED = pa.list_(pa.list_(pa.list_(pa.uint8(), 1), 8), 8)  # as polars has its arrays
LISTS = pa.list_(pa.list_(pa.list_(pa.uint8())))

FORMS: dict[str, tuple[Any, Any]] = {
    "array": (IMAGES, LABELS),
    "without channels": (IMAGES[..., 0], LABELS),
    "list of arrays": (list(IMAGES), list(LABELS)),
    "Pillow": (GREY, LABELS),
    "column": (TENSORS, LABELS),
    "chunked column": (pa.chunked_array([TENSORS[:5], TENSORS[5:]]), pa.array(LABELS)),
    "unnamed dims": (pa.FixedShapeTensorArray.from_numpy_ndarray(IMAGES), LABELS),
    "table": (pa.table({"img": TENSORS, "labels": LABELS}), None),
    "table, other labels": (pa.table({"img": TENSORS, "label": 0 * LABELS}), LABELS),
    "batch": (pa.record_batch({"image": TENSORS, "label": LABELS}), None),
    "pandas of arrays": (pd.DataFrame({"image": list(IMAGES), "label": LABELS}), None),
    "pandas of Pillow": (pd.DataFrame({"image": GREY, "label": LABELS}), None),
    "nested lists of Arrow": (pa.table({"image": pa.array(IMAGES.tolist(), NESTED), "label": LABELS}), None),
    "lists of Arrow of any size": (pa.table({"image": pa.array(IMAGES.tolist(), LISTS)}), LABELS),
    "series": (pd.DataFrame({"image": list(IMAGES)})["image"].to_list(), pd.Series(LABELS)),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms(form: str) -> None:
    table = dataset_table(*FORMS[form])
    assert table.schema.field("image").type == TENSORS.type
    assert table["image"].combine_chunks().to_numpy_ndarray().tolist() == IMAGES.tolist()
    assert table["label"].to_pylist() == LABELS.tolist()
    assert not table.schema.field("image").nullable


def address(column: pa.ChunkedArray) -> int:
    return column.chunk(0).storage.flatten().buffers()[1].address


def test_memory_is_shared() -> None:
    """Arrays, columns, tables and this package's own are sent from where they lie."""
    floats = np.zeros((3, 4, 4, 3), np.float32)
    for images in (IMAGES, floats, floats[1:]):
        assert address(dataset_table(images, None)["image"]) == images.__array_interface__["data"][0]
    own = pa.chunked_array([TENSORS])
    for images in (TENSORS, own, pa.table({"image": TENSORS}), pa.FixedShapeTensorArray.from_numpy_ndarray(IMAGES)):
        assert address(dataset_table(images, LABELS)["image"]) == address(own)


def test_own_tables_round_trip(client: Client, tmp_path: Path) -> None:
    """Samples become a data set, and that another one, through memory, files and frames."""
    samples = client.sample("digits", labels=[3, 1, 4, 1], steps=2, progress=False)
    assert address(dataset_table(samples, None)["image"]) == address(samples.table["sample"])
    for name in ("copy.parquet", "copy.arrow", "copy.feather"):
        samples.save(tmp_path / name)
    given = {
        "samples": samples,
        "slice": samples[:],
        "capsule": pa.table(samples),
        "parquet": pq.read_table(tmp_path / "copy.parquet"),
        "arrow": pa.ipc.open_file(tmp_path / "copy.arrow").read_all(),
        "pandas": samples.to_pandas(),
        "huggingface": pa.table(samples).select(["sample", "label"]),
    }
    for images in given.values():
        client.put_dataset("round", images, replace=True, progress=False)
        stored = client.dataset("round")
        np.testing.assert_array_equal(stored.images, samples.images)
        assert stored.labels.tolist() == [3, 1, 4, 1]
    client.put_dataset("round", client.dataset("round"), replace=True, progress=False)
    np.testing.assert_array_equal(client.dataset("round").images, samples.images)
    client.delete_dataset("round")


def test_samples_are_a_sequence_of_images(client: Client, tmp_path: Path) -> None:
    samples = client.sample("digits", n=5, steps=2, seed=11, dtype="float32", layout="CHW", progress=False)
    assert [image.shape for image in samples] == [(1, 8, 8)] * 5
    np.testing.assert_array_equal(samples[-1], samples.images[4])
    part = samples[1:4]
    assert part.seeds.tolist() == [12, 13, 14]
    assert address(part.table["sample"]) == address(samples.table["sample"])
    assert samples[::-2].seeds.tolist() == [15, 13, 11]
    assert len(samples[3:1]) == 0
    assert np.shares_memory(np.asarray(samples), samples.images)
    assert np.array(samples, np.float64).dtype == np.float64
    assert [(image.mode, image.size) for image in samples.to_pil()] == [("L", (8, 8))] * 5
    samples.save(tmp_path / "x.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), samples.images)
    samples.save(tmp_path / "x.npz")
    with np.load(tmp_path / "x.npz") as arrays:
        assert sorted(arrays) == ["images", "labels", "seeds"]
    samples.save(tmp_path / "X.PNG", columns=5, scale=1)
    with Image.open(tmp_path / "X.PNG") as picture:
        assert picture.size == (5 * 8 + 4, 8)
    with pytest.raises(ValueError, match=r"path must end in \.png, .*, got '.*x\.gif'"):
        samples.save(tmp_path / "x.gif")


def test_data_sets_of_hugging_face(client: Client) -> None:
    datasets = pytest.importorskip("datasets")  # requirements-dev.txt has it
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(10)})
    whole = datasets.Dataset.from_dict({"image": GREY, "label": LABELS.tolist()}, features=features)
    arrays = datasets.Dataset.from_dict(
        {"img": IMAGES.tolist()}, features=datasets.Features({"img": datasets.Array3D((8, 8, 1), "uint8")})
    )
    for images, labels in ((whole, LABELS), (whole.to_iterable_dataset(), LABELS), (arrays, None)):
        client.put_dataset("hugging", images, replace=True, progress=False)
        stored = client.dataset("hugging")
        np.testing.assert_array_equal(stored.images, IMAGES)
        assert labels is None or stored.labels.tolist() == labels.tolist()
    assert pieces_of(IMAGES) is None
    with pytest.raises(ValueError, match="must come with the pieces"):
        client.put_dataset("hugging", whole, LABELS)
    client.delete_dataset("hugging")


def test_colour_and_other_types() -> None:
    rgba = Image.new("RGBA", (4, 6), (255, 0, 0, 9))
    column, _ = columns_of([rgba, rgba.convert("P")], None)
    assert column.type.shape == [6, 4, 3]
    assert column.combine_chunks().to_numpy_ndarray()[1, 0, 0].tolist() == [255, 0, 0]
    column, _ = columns_of(np.zeros((2, 3, 8, 8), np.float64), None)
    assert (column.type.value_type, column.type.dim_names) == (pa.float32(), ["C", "H", "W"])
    permuted = pa.FixedShapeTensorArray.from_numpy_ndarray(np.asfortranarray(IMAGES.transpose(0, 3, 2, 1)).copy())
    assert columns_of(permuted, None)[0].type.dim_names == ["C", "H", "W"]


NULL = pa.ExtensionArray.from_storage(
    TENSORS.type, pa.FixedSizeListArray.from_arrays(pa.array([None, *range(63)], pa.uint8()), 64)
)
MISSING: dict[str, Any] = {
    "masked array": np.ma.masked_less(IMAGES, 5),
    "list of masked arrays": list(np.ma.masked_less(IMAGES, 5)),
    "null in a tensor": NULL,
    "chunks with a null in a tensor": pa.chunked_array([TENSORS, NULL]),
    "table with a null in a tensor": pa.table({"image": NULL}),
    "null row": pa.array([None, [[[1]]]], pa.list_(pa.list_(pa.list_(pa.uint8(), 1), 1), 1)),
    "null in a list": pa.array([[[[1], [None]]]], LISTS),
    "frame of masked arrays": pd.DataFrame({"image": list(np.ma.masked_less(IMAGES, 5))}),
    "None": [[[None, 1.0]]],
    "NA": np.array([[[[pd.NA], [0.5]]]]),
}


@pytest.mark.parametrize("form", MISSING)
def test_missing_values_are_refused_by_name(form: str) -> None:
    with pytest.raises(BadRequestError, match=r"images must have all values, got \d+ missing"):
        dataset_table(MISSING[form], None)


@pytest.mark.parametrize(
    "labels",
    [
        [0, None],
        [0.0, np.nan],
        pa.array([0, None]),
        pd.Series([0, None], dtype="Int64"),
        [0, pd.NA],
        np.ma.array([0, 1], mask=[False, True]),
    ],
)
def test_missing_labels_are_refused(labels: Any) -> None:
    with pytest.raises(BadRequestError, match="labels must have all values, got 1 missing"):
        dataset_table(IMAGES[:2], labels)
    with pytest.raises(BadRequestError, match="labels must have all values, got 1 missing"):
        integers(labels, "labels")


def test_missing_values_are_refused_wherever_arrays_come_in() -> None:
    unknown: Any = None
    masked, plain = np.ma.masked_less(np.ones((2, 4, 4, 1)), 2), np.ones((2, 4, 4, 1))
    refused: dict[str, Any] = {
        "latents": lambda: latent_rows(masked, None),
        "x": lambda: denoise_rows(masked, 1, None, None),
        "sigma": lambda: denoise_rows(plain, np.ma.array([1, 2], mask=[True, False]), None, None),
        "g": lambda: denoise_rows(plain, None, [[unknown], [1]], None),
        "labels": lambda: denoise_rows(plain, 1, None, [unknown, 1]),
    }
    for name, call in refused.items():
        with pytest.raises(BadRequestError, match=f"{name} must have all values"):
            call()
    unmasked = np.ma.array(IMAGES)
    assert address(dataset_table(unmasked, None)["image"]) == IMAGES.__array_interface__["data"][0]


class Named(np.ndarray[Any, Any]):
    """An array whose axes have names, as xarray's and torch's."""

    dims: tuple[str, ...]


def named(array: np.ndarray[Any, Any], *dims: str) -> Named:
    view = array.view(Named)
    view.dims = dims
    return view


FIELD = np.arange(6 * 3 * 8 * 4, dtype=np.float32).reshape(6, 3, 8, 4)


@pytest.mark.parametrize(
    ("order", "dims", "layout"),
    [
        ((0, 1, 2, 3), ("time", "variable", "lat", "lon"), "CHW"),
        ((0, 1, 3, 2), ("time", "level", "lon", "lat"), "CHW"),
        ((2, 3, 0, 1), ("y", "x", "batch", "band"), "HWC"),
        ((0, 2, 3, 1), ("N", "H", "W", "C"), "HWC"),
        ((1, 0, 2, 3), ("channel", "run", "y", "x"), "CHW"),
        ((0, 1, 2, 3), ("time", "whatever", "y", "x"), "CHW"),
    ],
)
def test_axes_with_names_are_taken_by_them(order: tuple[int, ...], dims: tuple[str, ...], layout: str) -> None:
    column, _ = columns_of(named(FIELD.transpose(order), *dims), None)
    assert column.type.dim_names == list(layout)
    want = FIELD if layout == "CHW" else FIELD.transpose(0, 2, 3, 1)
    np.testing.assert_array_equal(column.chunk(0).to_numpy_ndarray(), want)
    rows = latent_rows(named(FIELD.transpose(order), *dims), None)
    assert rows["latent"].type == column.type


def test_axes_with_names_that_are_not_known_are_refused() -> None:
    grey, _ = columns_of(named(FIELD[:, 0], "time", "lat", "lon"), None)
    assert (grey.type.shape, grey.type.dim_names) == ([8, 4, 1], ["H", "W", "C"])
    listed, _ = columns_of([named(field, "variable", "lat", "lon") for field in FIELD], None)
    assert (listed.type.shape, listed.type.dim_names) == ([3, 8, 4], ["C", "H", "W"])
    plain, _ = columns_of(named(FIELD[:, :, :, :3], "dim_0", "dim_1", "dim_2", "dim_3"), None)
    assert plain.type.dim_names == ["H", "W", "C"]  # xarray's names of axes without any
    for dims in (("p", "q", "lat", "lon"), ("time", "level", "x", "z"), ("time", "variable", "level", "lat")):
        with pytest.raises(BadRequestError, match=rf"images must have axes with names .*\({', '.join(dims)}\)"):
            columns_of(named(FIELD, *dims), None)
    with pytest.raises(BadRequestError, match="axes with names"):
        columns_of(named(FIELD[0], "variable", "lat", "lon"), None)
    with pytest.raises(BadRequestError, match="layout must be CHW, as the axes of images say, got HWC"):
        columns_of(named(FIELD, "n", "c", "h", "w"), None, "HWC")


def test_names_of_arrow_s_axes_outlive_a_cast() -> None:
    stored = pa.FixedShapeTensorArray.from_numpy_ndarray(np.zeros((2, 5, 8, 3)), dim_names=["C", "H", "W"])
    assert columns_of(stored, None)[0].type.dim_names == ["C", "H", "W"]
    permuted = pa.FixedShapeTensorArray.from_numpy_ndarray(np.zeros((2, 3, 4, 5), np.uint8).transpose(0, 2, 3, 1))
    with pytest.raises(BadRequestError, match="without permutation, got"):
        columns_of(permuted, None)


MODES = ["P", "PA", "RGBA", "LA", "L", "1", "I;16", "CMYK"]


@pytest.mark.parametrize("mode", MODES)
def test_pictures_of_every_mode_are_decoded_alike(mode: str) -> None:
    """In lists and in data sets of Hugging Face, whatever format those have been given."""
    datasets = pytest.importorskip("datasets")
    rng = np.random.default_rng(3)
    if mode == "I;16":
        images = [Image.fromarray(rng.integers(0, 1 << 16, (8, 8), np.uint16)) for _ in range(3)]
    else:
        images = [Image.fromarray(rng.integers(0, 256, (8, 8, 3), np.uint8)).convert(mode) for _ in range(3)]
    want = np.stack([pixels_of(image) for image in images])
    np.testing.assert_array_equal(dataset_table(images, None)["image"].chunk(0).to_numpy_ndarray(), want)
    stored = [
        image.convert("RGB") if mode == "CMYK" else image.convert("RGBA") if mode == "PA" else image for image in images
    ]
    table = datasets.Dataset.from_dict({"image": stored}, features=datasets.Features({"image": datasets.Image()}))
    for form in (table, table.with_format("numpy"), table.with_format("pandas"), table.to_iterable_dataset()):
        _, batches = dataset_batches(pieces_of(form) or ())
        got = np.concatenate([batch["image"].to_numpy_ndarray() for batch in batches])
        np.testing.assert_array_equal(got, want)


def test_what_a_data_set_of_hugging_face_says_of_its_rows_holds() -> None:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")})
    table = datasets.Dataset.from_dict({"image": GREY, "label": LABELS.tolist()}, features=features)

    def stored(form: Any) -> tuple[Any, Any]:
        _, batches = dataset_batches(pieces_of(form) or ())
        rows = pa.Table.from_batches(list(batches))
        return rows["image"].combine_chunks().to_numpy_ndarray(), rows[
            "label"
        ].to_pylist() if "label" in rows.column_names else None

    flipped = table.with_transform(lambda rows: {"pixel_values": [np.asarray(x)[::-1, :, None] for x in rows["image"]]})
    np.testing.assert_array_equal(stored(flipped)[0], IMAGES[:, ::-1])
    mapped = table.to_iterable_dataset().map(lambda row: {"image": np.asarray(row["image"])[:, :, None], "label": 5})
    assert stored(mapped)[1] == [5] * 12
    images, labels = stored(table.with_format("torch" if "torch" in sys.modules else "numpy", columns=["image"]))
    np.testing.assert_array_equal(images, IMAGES)
    assert labels is None
    with pytest.raises(BadRequestError, match=r"got \{'dtype': .*float32.*put with_format\(None\)"):
        stored(table.with_format("numpy", dtype=np.float32))
    with pytest.raises(BadRequestError, match=r"images must be pixels, .* encoded images, got \{'bytes"):
        stored(table.cast_column("image", datasets.Image(decode=False)))


def test_iterables_and_what_is_no_piece() -> None:
    class Batches:  # such as a loader
        def __iter__(self) -> Any:
            return iter([(IMAGES[:5], LABELS[:5]), {"pixel_values": IMAGES[5:], "labels": LABELS[5:]}])

    _, batches = dataset_batches(pieces_of(Batches()) or ())
    rows = pa.Table.from_batches(list(batches))
    assert rows["label"].to_pylist() == LABELS.tolist()
    np.testing.assert_array_equal(rows["image"].combine_chunks().to_numpy_ndarray(), IMAGES)
    with pytest.raises(BadRequestError, match=r"a piece must be images, a pair .* got 3 parts"):
        dataset_batches([(IMAGES, LABELS, LABELS)])
    ragged: list[Any] = [IMAGES[0], IMAGES[0, :3]]
    for images, says in (
        (ragged, "of one form"),
        ([b"\x89PNG"], "encoded images"),
        ([{"bytes": b""}], "encoded images"),
        (pa.array([[[[1]]], [[[1]], [[2]]]], LISTS), "of one size"),
        (object(), "images must be pixels"),
        ([Image.new("F", (4, 4))], "mode F, which does not tell its scale"),
    ):
        with pytest.raises(BadRequestError, match=says):
            dataset_table(images, None)


def test_images_that_do_not_agree_are_refused() -> None:
    """Doubled columns, names or types that differ within a list, a layout for images without channels."""
    turned = [named(FIELD[0], "variable", "lat", "lon"), named(FIELD[0], "variable", "lon", "lat")]
    doubled = pa.Table.from_arrays([TENSORS, TENSORS], names=["image", "image"])
    for images, layout, says in (
        (doubled, None, "image must be one column, got 2"),
        (pd.DataFrame([[IMAGES[0], IMAGES[1]]], columns=pd.Index(["img", "img"])), None, "img must be one column"),
        (turned, None, "the same names of axes"),
        ([FIELD[0], turned[0]], None, "the same names of axes"),
        ([IMAGES[0], IMAGES[0] / np.float32(255)], None, "of one form, got .* of uint8"),
        (FIELD[0], "CHW", r"put \[images\] for one image"),
        (FIELD[:, :0], None, "must have the shape"),
        (pa.table({"image": TENSORS, "label": LABELS}).rename_columns(["image", "image"]), None, "must be one column"),
    ):
        with pytest.raises(BadRequestError, match=says):
            columns_of(images, None, layout)


def test_what_a_network_sees_are_floats() -> None:
    """Bytes are no values in a model's units, and variances are [J] or [n, J]."""
    for values in (IMAGES, IMAGES > 5, IMAGES * 1j):
        with pytest.raises(BadRequestError, match=f"must be floats in the model's units, got {values.dtype}"):
            denoise_rows(values, 1, None, None)
        with pytest.raises(BadRequestError, match="latents must be floats"):
            latent_rows(values, None)
    x = np.zeros((2, 8, 8, 1), np.float32)
    assert denoise_rows(x, None, 2.0, None)["g"].to_pylist() == [[2.0], [2.0]]
    for g in ([[1.0]] * 3, np.ones((2, 1, 1)), []):
        with pytest.raises(BadRequestError, match=r"g must be \[J\] variances, or \[2, J\]"):
            denoise_rows(x, None, g, None)
    nothing: Any = {}
    with pytest.raises(BadRequestError, match="sigma must be a number"):
        denoise_rows(x, nothing, None, None)
