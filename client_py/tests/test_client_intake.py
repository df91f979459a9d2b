"""Images go up from every form that users hold them in, from their own memory where it can be, and come back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import pictures
from PIL import Image

from anisoflight import Client
from anisoflight.wire.intake import columns_of, dataset_table, pieces_of
from anisoflight.wire.tensors import tensor_column

IMAGES, LABELS = pictures(12, seed=7)
GREY = [Image.fromarray(image[..., 0]) for image in IMAGES]
TENSORS = tensor_column(IMAGES, "HWC")


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
