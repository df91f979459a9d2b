"""Formats of data sets: what other programs write of the same pictures reads alike, to the byte."""

import io
import json
import os
import pickle
import tarfile
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import ExifTags, Image
from test_data_transforms import encoded, picture

import anisoflight
from anisoflight.data import Conversion, DataError, Source, inspect, open_source, upload, write_folder, write_zip
from anisoflight.data.scale import _chosen
from anisoflight.errors import AnisoflightWarning, BadRequestError
from anisoflight.wire.intake import columns_of, dataset_batches, pieces_of
from anisoflight.wire.pictures import decoded
from anisoflight.wire.tensors import to_numpy

Array = np.ndarray[Any, Any]

IMAGES = np.stack([picture(4, 5) + np.uint8(k) for k in range(3)])
LABELS = np.array([2, 0, 1])


def read(path: Path, labels: str = "auto", **settings: Any) -> tuple[list[Array], list[int]]:
    with open_source(path, labels) as source:
        pairs = list(Conversion(source, **settings))
    return [image for image, _ in pairs], [label for _, label in pairs]


def written(folder: Path, **files: bytes) -> Path:
    """A folder of files, whose names are spelled with ' for /."""
    for name, content in files.items():
        path = folder / name.replace("'", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def zipped(path: Path, files: dict[str, bytes], **options: Any) -> Path:
    with zipfile.ZipFile(path, "w", **options) as file:
        for name, content in files.items():
            file.writestr(name, content)
    return path


def table(images: pa.Array, name: str = "image") -> pa.Table:
    return pa.table({name: images, "label": pa.array(LABELS)})


TENSORS = pa.FixedShapeTensorArray.from_numpy_ndarray(IMAGES)


def edm_zip(path: Path) -> None:
    names = [f"00000/img{i:08d}.png" for i in range(3)]
    labels = {"labels": [[name, int(label)] for name, label in zip(names, LABELS, strict=True)]}
    pictures = {name: encoded(image) for name, image in zip(names, IMAGES, strict=True)}
    zipped(path, {**pictures, "dataset.json": json.dumps(labels).encode()})


def stored(path: Path) -> None:
    np.savez(path.with_suffix(".npz"), images=IMAGES, labels=LABELS)
    with open_source(path.with_suffix(".npz")) as source:
        write_folder(path, Conversion(source))


def arrow(path: Path, rows: pa.Table, **options: Any) -> None:
    with pa.ipc.new_file(path, rows.schema, options=pa.ipc.IpcWriteOptions(**options)) as file:
        file.write_table(rows, 2)


PLANES = np.ascontiguousarray(np.moveaxis(IMAGES, 3, 1))
HUGGING_FACE = pa.array([{"bytes": encoded(image), "path": None} for image in IMAGES])

WRITERS = {
    "named npz": lambda path: np.savez_compressed(path.open("wb"), images=IMAGES, labels=LABELS),
    "positional npz, channels first": lambda path: np.savez(path.open("wb"), PLANES, LABELS.astype(np.uint16)),
    "EDM's zip": edm_zip,
    "Parquet of tensors": lambda path: pq.write_table(table(TENSORS), path, compression="zstd", row_group_size=2),
    "Parquet of Hugging Face": lambda path: pq.write_table(table(HUGGING_FACE, "img"), path),
    "Parquet of lists": lambda path: pq.write_table(
        table(pa.array(IMAGES.tolist(), pa.list_(pa.list_(pa.list_(pa.uint8()))))), path
    ),
    "Parquet of bytes": lambda path: pq.write_table(table(pa.array([encoded(image) for image in IMAGES])), path),
    "Arrow of tensors": lambda path: arrow(path, table(TENSORS)),
    "Arrow of bytes, compressed": lambda path: arrow(path, table(HUGGING_FACE), compression="lz4"),
    "stored data set": stored,
}


@pytest.mark.parametrize("form", WRITERS)
def test_formats_agree(form: str, tmp_path: Path) -> None:
    path = tmp_path / "data"
    WRITERS[form](path)
    images, labels = read(path)
    assert (np.stack(images) == IMAGES).all()
    assert labels == LABELS.tolist()
    assert read(path, "none")[1] == [-1, -1, -1]
    with open_source(path) as source:
        assert (source.count, source.labelled) == (3, True)


def test_floats_stay_as_they_are(tmp_path: Path) -> None:
    values = np.linspace(-1, 1, 2 * 3 * 9 * 8, dtype=np.float32).reshape(2, 3, 9, 8)
    np.savez(tmp_path / "floats.npz", images=values)
    images, _ = read(tmp_path / "floats.npz")
    assert (np.stack(images) == np.moveaxis(values, 1, 3)).all()
    with pytest.raises(DataError, match="only images of bytes are resized"):
        read(tmp_path / "floats.npz", size=(4, 4))


def python2_batch(values: list[int], labels: list[int]) -> bytes:
    """A batch as Python 2 wrote CIFAR-10's: images of one value each."""
    head = b"\x80\x02}q\x01(U\x0bbatch_labelq\x02U\x15training batch 1 of 5q\x03U\x06labelsq\x04]q\x05("
    numbers = b"".join(b"K" + bytes([label]) for label in labels)
    array = b"eU\x04dataq\x06cnumpy.core.multiarray\n_reconstruct\nq\x07cnumpy\nndarray\nq\x08K\x00\x85U\x01b\x87Rq\x09"
    shape = b"(K\x01K" + bytes([len(values)]) + b"M\x00\x0c\x86"
    kind = (
        b"cnumpy\ndtype\nq\x0aU\x02u1K\x00K\x01\x87Rq\x0b(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T"
    )
    pixels = b"".join(bytes([value]) * 3072 for value in values)
    return head + numbers + array + shape + kind + len(pixels).to_bytes(4, "little") + pixels + b"tbu."


def python3_batch(values: list[int], labels: list[int], protocol: int) -> bytes:
    data = np.repeat(np.array(values, np.uint8)[:, None], 3072, 1)
    return pickle.dumps({b"data": data, b"labels": labels, b"filenames": [b"a"]}, protocol)


def binary_batch(values: list[int], labels: list[int]) -> bytes:
    return b"".join(bytes([label]) + bytes([value]) * 3072 for value, label in zip(values, labels, strict=True))


def tarred(path: Path, mode: Any, batches: dict[str, bytes]) -> Path:
    with tarfile.open(path, mode) as tar:
        for name, content in batches.items():
            info = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def test_cifar(tmp_path: Path) -> None:
    """Batches of Python 2 and 3, and binary ones; folders and tars of them, in the order of their names."""
    one, two = python2_batch([10, 20], [6, 9]), python2_batch([30], [0])
    batches = {"data_batch_2": two, "test_batch": two, "readme.html": b"", "data_batch_1": one}
    whole = ([10, 20, 30], [6, 9, 0])
    binary = binary_batch([5, 6], [1, 2])
    for path, (values, labels) in {
        written(tmp_path / "folder", **batches): whole,
        tarred(tmp_path / "a.tar", "w", batches): whole,
        tarred(tmp_path / "a.tar.gz", "w:gz", batches): whole,
        tmp_path / "folder" / "test_batch": ([30], [0]),
        written(tmp_path, two=python3_batch([7, 8], [6, 9], 2)) / "two": ([7, 8], [6, 9]),
        written(tmp_path, four=python3_batch([7, 8], [6, 9], 4)) / "four": ([7, 8], [6, 9]),
        written(tmp_path, **{"data_batch_1.bin": binary}) / "data_batch_1.bin": ([5, 6], [1, 2]),
        written(tmp_path / "bin", **{"data_batch_1.bin": binary, "batches.meta.txt": b""}): ([5, 6], [1, 2]),
    }.items():
        images, found = read(path)
        assert found == labels, path
        assert [image.shape for image in images] == [(32, 32, 3)] * len(values)
        assert [set(image.ravel()) for image in images] == [{value} for value in values], path
    record = bytearray(3073)
    record[1 + 1024 + 33] = 200  # green, row 1, column 1
    images, _ = read(written(tmp_path, **{"data_batch_1.bin": bytes(record)}) / "data_batch_1.bin")
    assert np.argwhere(images[0]).tolist() == [[1, 1, 1]]


DOT = encoded(np.zeros((2, 2, 3), np.uint8))


@pytest.mark.parametrize(
    ("files", "rule", "labels", "classes"),
    [
        ({"old/cat/a.png": DOT, "old/dog/b.png": DOT, "young/cat/c.png": DOT}, "auto", [0, 0, 1], ["old", "young"]),
        ({"test/cat/a.png": DOT, "test/dog/b.png": DOT, "train/cat/c.png": DOT}, "folder", [0, 1, 0], ["cat", "dog"]),
        ({"test/cat/a.png": DOT, "train/cat/c.png": DOT}, "none", [-1, -1], []),
        ({"x/a.png": DOT, "dataset.json": b'{"labels": [["x/a.png", 7]]}'}, "auto", [7], []),
        ({"x/a.png": DOT, "y/b.png": DOT, "dataset.json": b'{"labels": null}'}, "auto", [-1, -1], []),
        ({"x/a.png": DOT, "y/b.png": DOT, "dataset.json": b'{"labels": null}'}, "folder", [0, 1], ["x", "y"]),
        ({"00000/a.png": DOT, "00000/b.png": DOT, "notes.txt": b""}, "auto", [-1, -1], []),
    ],
)
def test_labels(files: dict[str, bytes], rule: str, labels: list[int], classes: list[str], tmp_path: Path) -> None:
    """dataset.json, then top-level folders; the folder itself, or none, on demand."""
    for path in (written(tmp_path / "folder", **files), zipped(tmp_path / "a.zip", files)):
        with open_source(path, rule) as source:
            assert [item.label for item in source.items()] == labels
            assert list(source.classes) == classes
            assert source.labelled == (labels[0] >= 0)


HIDDEN = (
    ".ipynb_checkpoints/0-checkpoint.png", "cat/.ipynb_checkpoints/0-checkpoint.png", "__MACOSX/cat/._0.png",
    "cat/._0.png", "@eaDir/0.png/SYNOPHOTO_THUMB_M.jpg", ".thumbnails/normal/0.png", ".Trash-1000/files/0.png",
    "$RECYCLE.BIN/0.png", "lost+found/0.gif", ".git/0.png",
)  # fmt: skip
IGNORED = [
    "$RECYCLE.BIN", ".Trash-1000", ".git", ".ipynb_checkpoints", ".thumbnails", "@eaDir", "__MACOSX", "cat/._0.png",
    "cat/.ipynb_checkpoints", "lost+found",
]  # fmt: skip


@pytest.mark.parametrize("rule", ["auto", "folder", "none"])
def test_what_systems_add_is_no_picture_and_no_class(rule: str, tmp_path: Path) -> None:
    """Pictures and classes are those without it, and it is named; so are an array beside pictures and a linked folder.
    Small files that hold no pictures are not."""
    files = dict.fromkeys(("cat/0.png", "dog/0.png", *HIDDEN), DOT) | {".DS_Store": b"x", "cat/Thumbs.db": b"x"}
    (tmp_path / "linked").mkdir()
    folder, archive = written(tmp_path / "folder", **files), zipped(tmp_path / "a.zip", files)
    for path, ignored in ((folder, IGNORED), (archive, IGNORED)):
        with open_source(path, rule) as source:
            assert [item.name for item in source.items()] == ["cat/0.png", "dog/0.png"]
            assert list(source.classes) == ([] if rule == "none" else ["cat", "dog"])
            assert source.ignored == ignored
            report = inspect(source)
        assert (report["images"], report["ignored"]) == (2, ignored)
    written(folder, **{"dog/mean.npy": b""})
    (folder / "bird").symlink_to(tmp_path / "linked")
    with open_source(folder, rule) as source:
        assert set(source.ignored) - set(IGNORED) == {"dog/mean.npy", "bird"}
        assert list(source.classes) == (["bird", "cat", "dog"] if rule != "none" else [])
    with open_source(folder, under=".git") as source:
        assert source.count == 1, "a folder that is named is read"


def test_batches_in_hidden_folders_are_none(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as tar:
        for name, value in {"cifar/data_batch_1": 1, "cifar/.Trash/data_batch_1": 2}.items():
            data = binary_batch([value], [0])
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    assert read(path)[0][0].max() == 1


@pytest.mark.parametrize("bad", [b"no image", encoded(IMAGES[0][:2])])
def test_a_class_has_a_picture_that_is_used(bad: bytes, tmp_path: Path) -> None:
    """Where bad files are skipped the classes keep their numbers; inspecting tells of those without images."""
    good = encoded(IMAGES[0])
    files = {"ant/0.png": good, "bee/0.png": bad, "cat/0.png": bad, "cat/1.png": good}
    for path in (written(tmp_path / "folder", **files), zipped(tmp_path / "a.zip", files)):
        with open_source(path) as source:
            images = Conversion(source, skip=lambda error: None)
            assert [label for _, label in images] == [0, 2], "numbers do not shift"
            assert (images.source.without_images(images.used), images.bad) == (["bee"], 2)
            if bad == b"no image":
                classes = inspect(source)["classes"]
                assert [found["images"] for found in classes] == [1, 0, 1]
        with open_source(path) as source, pytest.raises(DataError, match=r"bee/0\.png"):
            list(Conversion(source))


def test_a_class_of_a_table_whose_images_are_bad_is_named(tmp_path: Path) -> None:
    good = encoded(IMAGES[0])
    pq.write_table(pa.table({"image": [good, b"bad", good], "label": [0, 1, 2]}), tmp_path / "a.parquet")
    with open_source(tmp_path / "a.parquet") as source:
        images = Conversion(source, skip=lambda error: None)
        assert [label for _, label in images] == [0, 2], "numbers do not shift"
        assert source.without_images(images.used, images.seen) == ["1"]
        assert [found["images"] for found in inspect(source)["classes"]] == [1, 0, 1]


def test_a_class_of_pictures_too_small_has_a_number(tmp_path: Path) -> None:
    large, small = encoded(picture(9, 9)), encoded(picture(3, 3))
    folder = written(tmp_path / "folder", **{"ant/0.png": large, "bee/0.png": small, "cat/0.png": large})
    images, labels = read(folder, size=(4, 6), transform="center-crop-wide")
    assert (len(images), labels) == (2, [0, 2])


def test_folders_of_parquet_files(tmp_path: Path) -> None:
    """As Hugging Face lays them out; parts are read one at a time."""
    files = {
        name: table(HUGGING_FACE).slice(first, rows)
        for name, first, rows in (
            ("train-00000-of-00002", 0, 2),
            ("train-00001-of-00002", 2, 1),
            ("test-00000-of-00001", 1, 2),
        )
    }
    (tmp_path / "hub/data").mkdir(parents=True)
    written(tmp_path / "hub", **{"README.md": b"", ".gitattributes": b""})
    for name, rows in files.items():
        pq.write_table(rows, tmp_path / "hub/data" / f"{name}.parquet")
    with pytest.raises(DataError, match="has the parts test, train; --under data/train reads one of them"):
        open_source(tmp_path / "hub")
    for under, first in (("data/train", 0), ("data/test", 1)):
        with open_source(tmp_path / "hub", under=under) as source:
            pairs = list(Conversion(source))
            assert source.labelled
        assert [label for _, label in pairs] == LABELS[first:].tolist()
        assert (np.stack([image for image, _ in pairs]) == IMAGES[first:]).all()
    (tmp_path / "hub/data/test-00000-of-00001.parquet").unlink()
    images, _ = read(tmp_path / "hub")
    assert (np.stack(images) == IMAGES).all()
    (tmp_path / "feathers").mkdir()
    for k in range(3):
        arrow(tmp_path / f"feathers/{k}.feather", table(HUGGING_FACE).slice(k, 1))
    images, labels = read(tmp_path / "feathers")
    assert (np.stack(images) == IMAGES).all()
    assert labels == LABELS.tolist()
    pq.write_table(files["train-00000-of-00002"].drop_columns("label"), tmp_path / "hub/data/x.parquet")
    with pytest.raises(DataError, match=r"x\.parquet: must have labels and units if train-00000-of-00002"):
        open_source(tmp_path / "hub")


def test_columns_and_arrays(tmp_path: Path) -> None:
    """One array under any name; a column that is there twice is neither."""
    np.savez(tmp_path / "a.npz", faces=IMAGES, labels=LABELS)
    images, labels = read(tmp_path / "a.npz")
    assert (np.stack(images) == IMAGES).all()
    assert labels == LABELS.tolist()
    np.save(tmp_path / "one.npy", np.zeros((8, 8, 3), np.uint8))
    with pytest.raises(DataError, match=r"got \(8, 8, 3\); put \[images\] for one image"):
        open_source(tmp_path / "one.npy")
    np.savez(tmp_path / "none.npz", images=IMAGES, labels=[-1, -1, -1])
    with open_source(tmp_path / "none.npz") as source:
        assert not source.labelled, "−1 is no label"
    doubled = pa.Table.from_arrays([pa.array([DOT]), pa.array([1]), pa.array([2])], ["image", "label", "label"])
    pq.write_table(doubled, tmp_path / "a.parquet")
    with pytest.raises(DataError, match="label must be one column, got 2; rename all but one"):
        open_source(tmp_path / "a.parquet")


@pytest.mark.parametrize("layout", ["HWC", "CHW"])
@pytest.mark.parametrize("kind", ["npy", "npz", "parquet", "arrow", "feather"])
def test_what_samples_are_saved_as_is_read(kind: str, layout: str, client: anisoflight.Client, tmp_path: Path) -> None:
    """By this package's readers and by put_dataset, with the same images and labels; none has no label."""
    samples = client.sample("digits", n=3, steps=2, layout=layout, progress=False)
    path = tmp_path / f"a.{kind}"
    samples.save(path)
    want = np.moveaxis(samples.images, 1, 3) if layout == "CHW" else samples.images
    with open_source(path) as source:
        pairs = list(Conversion(source))
        assert source.labelled == bool(kind != "npy" and (samples.labels >= 0).any())
    assert (np.stack([image for image, _ in pairs]) == want).all()
    if source.labelled:
        assert [label for _, label in pairs] == samples.labels.tolist()
    loads: dict[str, Any] = {"npy": np.load, "npz": np.load, "parquet": pq.read_table}
    loaded = loads.get(kind, lambda path: pa.ipc.open_file(path).read_all())(path)
    client.put_dataset("saved", loaded, replace=True, progress=False)
    assert (client.dataset("saved", progress=False).images == samples.images).all()
    client.delete_dataset("saved")


def test_samples_in_units_of_their_own_bring_them(client: anisoflight.Client, tmp_path: Path) -> None:
    winds = np.random.default_rng(0).normal([3, 288], [5, 20], (6, 4, 8, 2)).astype(np.float32)
    client.put_dataset("winds", winds, scale="measured", replace=True, progress=False)
    stored = client.dataset("winds", progress=False)
    for kind in ("parquet", "arrow"):
        stored.save(tmp_path / f"winds.{kind}")
        with open_source(tmp_path / f"winds.{kind}") as source:
            assert source.units == stored.normalization
            assert inspect(source)["hash"] == client.datasets().loc["winds", "hash"]
    client.delete_dataset("winds")


def test_rules_of_labels(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=IMAGES)
    with pytest.raises(DataError, match=r"labels by folder are for images in folders and zips; this is a \.npz"):
        open_source(tmp_path / "a.npz", "folder")
    np.save(tmp_path / "a.npy", IMAGES)
    with pytest.raises(ValueError, match=r"labels must be one of auto, .*, none, or a column of a table or \.npz, got"):
        open_source(tmp_path / "a.npy", "y")


def test_parts_of_a_dataset_are_no_classes(tmp_path: Path) -> None:
    names = [f"{part}/{kind}/{i}.png" for part in ("train", "test") for kind in ("cat", "dog") for i in range(2)]
    path = tmp_path / "both.zip"
    with zipfile.ZipFile(path, "w") as file:
        for name in names:
            file.writestr(name, encoded(IMAGES[0]))
            (tmp_path / "both" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "both" / name).write_bytes(encoded(IMAGES[0]))
    for place in (path, tmp_path / "both"):
        with pytest.raises(DataError, match="test, train, which are parts of a data set and no classes; --under train"):
            open_source(place)
        with open_source(place, under="train") as source:
            assert [item.label for item in source.items()] == [0, 0, 1, 1]
            assert list(source.classes) == ["cat", "dog"]
        with open_source(place, labels="folder") as source:
            assert source.count == 8
        with pytest.raises(DataError, match="is no folder"):
            open_source(place, under="other")
        with pytest.raises(ValueError, match="under must be a folder"):
            open_source(place, under="../both")


def test_order_is_that_of_names(tmp_path: Path) -> None:
    """Many images, decoded at different speeds."""
    files = {f"{i:03d}.png": encoded(np.full((1 + 40 * (i % 3),) * 2, i, np.uint8)) for i in range(200)}
    images, _ = read(written(tmp_path / "many", **files), size=(2, 2))
    assert [image[0, 0, 0] for image in images] == list(range(200))


def test_edm_zip(tmp_path: Path) -> None:
    """Names, storage and labels are those of EDM's tool."""
    np.savez(tmp_path / "in.npz", images=IMAGES, labels=LABELS)
    out = tmp_path / "out.zip"
    with open_source(tmp_path / "in.npz") as source:
        write_zip(out, Conversion(source))
    names = [f"00000/img{i:08d}.png" for i in range(3)]
    with zipfile.ZipFile(out) as file:
        assert file.namelist() == [*names, "dataset.json"]
        assert {info.compress_type for info in file.infolist()} == {zipfile.ZIP_STORED}
        assert json.loads(file.read("dataset.json")) == {
            "labels": [list(pair) for pair in zip(names, [2, 0, 1], strict=True)]
        }
    images, labels = read(out)
    assert (np.stack(images) == IMAGES).all()
    assert labels == LABELS.tolist()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.npz", "out.zip"]
    np.savez(tmp_path / "floats.npz", images=np.zeros((1, 2, 2, 3), np.float32))
    with open_source(tmp_path / "floats.npz") as source, pytest.raises(DataError, match="cannot be a PNG of float32"):
        write_zip(tmp_path / "floats.zip", Conversion(source))
    assert not (tmp_path / "floats.zip").exists()


def test_inspect(tmp_path: Path) -> None:
    """Counts and moments are those of the pixels."""
    files = {f"c{i % 2}/{i}.png": encoded(np.full((3, 4, 3), 51 * (i % 2), np.uint8)) for i in range(6)}
    folder = written(tmp_path / "grey", **files)
    with open_source(folder) as source:
        report = inspect(source)
    assert (report["images"], report["n_bad"], report["dtype"]) == (6, 0, "uint8")
    assert report["sizes"] == [{"height": 3, "width": 4, "channels": 3, "images": 6}]
    assert report["classes"] == [{"label": k, "name": f"c{k}", "images": 3} for k in range(2)]
    assert np.allclose(report["mean"], -0.8)  # values −1 and −0.6
    assert np.allclose(report["std"], 0.2)
    written(folder, **{"c0/bad.png": b"no image"})
    with open_source(folder) as source:
        report = inspect(source)
    assert report["bad"] == [{"name": "c0/bad.png", "error": "is no PNG, JPEG, WebP or BMP"}]
    assert (report["images"], report["n_bad"], "hash" in report) == (6, 1, False)


@pytest.mark.parametrize("kind", ["colours", "own units"])
def test_scale_is_what_a_run_takes(client: anisoflight.Client, tmp_path: Path, kind: str) -> None:
    """T and c, on channels that depend on each other, and under a normalization."""
    rng = np.random.default_rng(7)
    waves = np.cumsum(rng.normal(size=(30, 8, 8, 3)), axis=1) @ rng.normal(size=(3, 3))
    images = (128 + 12 * waves).clip(0, 255).astype(np.uint8)
    if kind == "own units":
        images = (waves * [1, 5, 20] + [3, -40, 288]).astype(np.float32)
    client.put_dataset("scaled", images, scale="measured" if kind == "own units" else None, progress=False)
    client.dataset("scaled", progress=False).save(tmp_path / "scaled.arrow")
    client.make_mixture("scaled", "scaled", floor=1e-6, progress=False)
    run = client.create_run("scaled", "isotropic", "scaled", model="scaled", batch=8, kimg=0.1, train_network=False)
    with open_source(tmp_path / "scaled.arrow") as source:
        report = inspect(source, progress=False)
    config = run.info["config"]
    assert (report["T"], report["c"]) == pytest.approx((config["T"], config["c"]), rel=1e-6)
    run.delete()
    client.delete_model("scaled")
    client.delete_dataset("scaled")


@pytest.mark.parametrize("count", [1, 1023, 1024, 1025, 3000, 4097])
def test_scale_is_measured_on_images_at_even_distances(count: int) -> None:
    n = min(count, 1024)
    assert [i for i in range(count) if _chosen(i, count, 2**20)] == [k * count // n for k in range(n)]


def test_a_server_stores_what_is_uploaded(client: anisoflight.Client, tmp_path: Path) -> None:
    """Byte by byte, with the hash that inspecting tells; what fails on its way leaves nothing."""
    np.savez(tmp_path / "in.npz", images=IMAGES, labels=LABELS)
    with open_source(tmp_path / "in.npz") as source:
        want = inspect(source)["hash"]
        upload(client, "three", Conversion(source))
    got = client.dataset("three")
    assert (got.images == IMAGES).all()
    assert got.labels.tolist() == LABELS.tolist()
    assert client.datasets().loc["three", "hash"] == want
    files = {f"{i}.png": DOT if i else encoded(picture(3, 3)) for i in range(9)}
    with (
        open_source(written(tmp_path / "mixed", **files)) as source,
        pytest.raises(DataError, match=r"1\.png: has 2×2"),
    ):
        upload(client, "mixed", Conversion(source))
    assert "mixed" not in client.datasets().index
    client.delete_dataset("three")


def sources_of_many(folder: Path, count: int) -> list[Path]:
    """The same 64×64 images, 12 KiB each, in formats that could be read at once."""
    image = picture(64, 64)
    many = np.broadcast_to(image, (count, *image.shape))
    np.savez(folder / "many.npz", images=many)
    kind = pa.fixed_shape_tensor(pa.uint8(), image.shape)
    with pq.ParquetWriter(folder / "many.parquet", pa.schema({"image": kind})) as file:
        for first in range(0, count, 128):
            file.write_table(
                pa.table({"image": pa.FixedShapeTensorArray.from_numpy_ndarray(many[first : first + 128].copy())})
            )
    return [
        folder / "many.npz",
        folder / "many.parquet",
        zipped(folder / "many.zip", {f"{i:05d}.png": encoded(image) for i in range(count)}),
    ]


def test_more_is_converted_than_held(tmp_path: Path) -> None:
    """30 MiB of images go through less than 14, and more would go through as much."""
    for path in sources_of_many(tmp_path, 2560):
        with open_source(path) as source:
            tracemalloc.start()
            before = pa.total_allocated_bytes()
            most, images = 0, Conversion(source)
            for _ in images:
                if images.images % 128 == 0:
                    most = max(most, pa.total_allocated_bytes() - before)
            most += tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert images.images == 2560
        assert most < 14 << 20, path


def test_an_interrupted_conversion_reads_no_further(tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", images=np.zeros((5000, 2, 2, 3), np.uint8))
    seen = 0
    with open_source(tmp_path / "in.npz") as source:

        def counted() -> Any:
            nonlocal seen
            for item in source.items():
                seen += 1
                yield item

        counting = Source(source.path, source.format, source.count, False, counted)
        for _ in Conversion(counting):
            break
    assert seen < 200


def test_what_is_no_png_by_name_is_read_or_named(tmp_path: Path) -> None:
    """Content decides, in folders as in zips: other suffixes, none, wrong ones, an array next to images; in folders
    also links and pipes."""
    good = encoded(IMAGES[0])
    files = {"ant/0.jfif": good, "ant/1": good, "bee/notes.txt": b"none", "cat/2.PNG": good, "cat/3.npy": good}
    files["mean.npy"] = b"\x93NUMPY"
    for path in (written(tmp_path / "a", **files), zipped(tmp_path / "a.zip", files)):
        with pytest.warns(AnisoflightWarning, match=r"bee/notes\.txt, mean\.npy"):
            opened = open_source(path)
        with opened as source:
            pairs = [(item.name, item.label) for item in source.items()]
            assert pairs == [("ant/0.jfif", 0), ("ant/1", 0), ("cat/2.PNG", 2), ("cat/3.npy", 2)]
            assert all((item.read() == IMAGES[0]).all() for item in source.items())
    os.mkfifo(tmp_path / "a/ant/pipe.png")
    with pytest.warns(AnisoflightWarning, match=r"ant/pipe\.png"), open_source(tmp_path / "a") as source:
        assert source.count == 4
    with pytest.raises(DataError, match="is no file or folder"):
        open_source(tmp_path / "a/ant/pipe.png")
    (tmp_path / "b").mkdir()
    (tmp_path / "b/linked").symlink_to(tmp_path / "a/cat")
    with open_source(tmp_path / "b") as source:
        assert source.count == 2


@pytest.mark.parametrize("links", [{"cat/up": "."}, {"cat/out": ".."}, {"cat/x": "dog", "dog/y": "cat"}])
def test_links_that_lead_back_are_refused(links: dict[str, str], tmp_path: Path) -> None:
    folder = written(tmp_path / "pets", **{"cat/0.png": DOT, "dog/0.png": DOT})
    for link, target in links.items():
        (folder / link).symlink_to(folder / target)
    with pytest.raises(DataError, match="is a link to a folder that holds it"):
        open_source(folder)


@pytest.mark.parametrize("left", ["", ".DS_Store", ".cache/0.png", "deep/er/.DS_Store", "notes.txt"])
def test_a_class_of_which_nothing_is_read_is_named_and_keeps_its_number(left: str, tmp_path: Path) -> None:
    files = {"ant/": b"", "ant/0.png": DOT, "cat/0.png": DOT, f"bee/{left}": b""}
    folder = written(tmp_path / "a", **{name: data for name, data in files.items() if not name.endswith("/")})
    (folder / "bee").mkdir(exist_ok=True)
    for path in (folder, zipped(tmp_path / "a.zip", files)):
        with pytest.warns(AnisoflightWarning, match="bee"):
            opened = open_source(path)
        with opened as source:
            assert [item.label for item in source.items()] == [0, 2]
            assert all(name.startswith("bee") for name in source.ignored)
            assert source.without_images({0, 2}) == ["bee"]


@pytest.mark.parametrize(
    ("name", "text", "labels", "classes"),
    [
        ("metadata.jsonl", '{"file_name": "a.png", "label": 1}\n{"file_name": "b.png", "label": 0}\n', [1, 0], []),
        ("metadata.csv", "file_name,label\na.png,dog\nb.png,cat\n", [1, 0], ["cat", "dog"]),
        ("labels.csv", "filename,label\na.png,3\nb.png,\n", [3, -1], []),
        ("labels.csv", "file,label\na.png,10.0\nb.png,2.0\n", [10, 2], []),
    ],
)
def test_labels_beside_pictures(name: str, text: str, labels: list[int], classes: list[str], tmp_path: Path) -> None:
    files = {"a.png": encoded(IMAGES[0]), "b.png": encoded(IMAGES[0]), name: text.encode()}
    for path in (written(tmp_path / "folder", **files), zipped(tmp_path / "a.zip", files)):
        with open_source(path) as source:
            assert ([item.label for item in source.items()], list(source.classes)) == (labels, classes)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        (
            "metadata.jsonl",
            '{"file_name": "a.png", "label": 1}\n5\n',
            r'must have a row \{"file_name": …, "label": …\}',
        ),
        ("metadata.jsonl", '{"file_name": "a.png", "label": [1, 2]}', r"has the label \[1, 2\]; an image has one"),
        ("metadata.csv", "file_name,label\na.png,1\na.png,1\n", "gives an image two labels"),
        ("metadata.csv", "file_name,label\nb.png,1\n", "differs in 'a.png'"),
        ("labels.csv", "file_name,label\na.png,0.5\n", "the label '0.5'; labels are whole numbers"),
        ("labels.csv", 'file_name,label\na.png,"' + "x" * 200_000, "field larger than field limit"),
    ],
)
def test_lists_of_labels_are_refused_by_name_or_not_asked(name: str, text: str, says: str, tmp_path: Path) -> None:
    files = {"a.png": DOT, name: text.encode()}
    for path in (written(tmp_path / "folder", **files), zipped(tmp_path / "a.zip", files)):
        with pytest.raises(DataError, match=rf"{name}: .*{says}"):
            open_source(path)
        with open_source(path, "none") as source:
            assert source.count == 1


def test_the_orientation_of_exif_is_applied_on_every_route(tmp_path: Path) -> None:
    """The same turned JPEG: a folder, a zip, tables of bytes, a data set of Hugging Face, Pillow's images."""
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    photo = encoded(picture(16, 24), "JPEG", exif=exif)
    want = np.rot90(np.asarray(Image.open(io.BytesIO(photo))), -1)
    written(tmp_path / "folder", **{"0.jpg": photo})
    zipped(tmp_path / "a.zip", {"0.jpg": photo})
    column = pa.array([{"bytes": photo, "path": None}])
    pq.write_table(pa.table({"image": [photo]}), tmp_path / "bytes.parquet")
    pq.write_table(pa.table({"image": column}), tmp_path / "hub.parquet")
    arrow(tmp_path / "hub.arrow", pa.table({"image": column}))
    for name in ("folder", "a.zip", "bytes.parquet", "hub.parquet", "hub.arrow"):
        assert (read(tmp_path / name)[0][0] == want).all(), name
    datasets = pytest.importorskip("datasets")  # requirements-dev.txt has it
    features = datasets.Features({"image": datasets.Image()})
    pieces = pieces_of(datasets.Dataset.from_dict({"image": column.to_pylist()}, features=features))
    assert pieces is not None
    _, batches = dataset_batches(pieces)
    opened = Image.open(io.BytesIO(photo))
    columns = [next(batches)["image"], *(columns_of([image], None)[0] for image in (opened, opened.convert("RGB")))]
    assert all((to_numpy(column)[0] == want).all() for column in columns)


def test_damaged_exif_turns_nothing() -> None:
    plain = encoded(picture(4, 5), exif=b"Exif\0\0no TIFF")
    assert (decoded(plain) == picture(4, 5)).all()


@pytest.mark.parametrize("name", ["y", "targets", "Labels", "fine_label", "class_id"])
def test_label_arrays_of_other_names_are_asked_for(name: str, tmp_path: Path) -> None:
    """In an .npz; put_dataset takes them as labels=, or asks for another name."""
    arrays = {"x": IMAGES, name: LABELS}
    np.savez(tmp_path / "a.npz", allow_pickle=False, **arrays)
    with pytest.raises(DataError, match=rf"got {name}; --labels {name} \(labels=\"{name}\"\) takes it"):
        open_source(tmp_path / "a.npz")
    assert read(tmp_path / "a.npz", name)[1] == LABELS.tolist()
    with pytest.warns(AnisoflightWarning, match=name):
        assert read(tmp_path / "a.npz", "none")[1] == [-1, -1, -1]
    table = {"image": IMAGES, name: LABELS}
    with pytest.raises(BadRequestError, match=rf"got {name}; rename one of them to label, or drop them"):
        columns_of(table, None)
    assert columns_of(table, LABELS)[1] is LABELS


def test_arrays_that_are_not_read_are_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=IMAGES, labels=LABELS, masks=IMAGES, class_names=["a", "b", "c"])
    with pytest.warns(AnisoflightWarning, match=r"class_names\.npy, masks\.npy are not read"):
        assert read(tmp_path / "a.npz")[1] == LABELS.tolist()
    with pytest.raises(DataError, match="labels must be in a column, got 'y', but there are"):
        open_source(tmp_path / "a.npz", "y")


def test_label_columns_of_other_names_are_asked_for(tmp_path: Path) -> None:
    columns = {"img": [encoded(IMAGES[0])], "fine_label": [5], "coarse_label": [2]}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    with pytest.raises(DataError, match="fine_label, coarse_label; --labels fine_label"):
        open_source(tmp_path / "a.parquet")
    with pytest.warns(AnisoflightWarning, match="fine_label"):
        source = open_source(tmp_path / "a.parquet", labels="coarse_label")
    assert [item.label for item in source.items()] == [2]
