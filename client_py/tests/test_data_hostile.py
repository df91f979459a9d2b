"""Hostile and damaged data sets: one error that names the file and the entry, nothing executed, nothing exhausted."""

import contextlib
import gzip
import io
import json
import os
import pickle
import random
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pickles
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pickles import Call, Name
from test_data_formats import DOT, WRITERS, binary_batch, python2_batch, tarred, written, zipped
from test_data_transforms import encoded, picture

from anisoflight.data import Conversion, DataError, folders, open_source

pytestmark = pytest.mark.slow

SMALL = encoded(np.zeros((2, 3, 3), np.uint8))


def bomb(side: int) -> bytes:
    """A PNG whose head claims so many pixels."""
    head = b"IHDR" + struct.pack(">II", side, side) + DOT[24:29]
    return DOT[:12] + head + struct.pack(">I", zlib.crc32(head)) + DOT[33:]


def refusal(path: Path, labels: str = "auto") -> DataError:
    with pytest.raises(DataError) as caught, open_source(path, labels) as source:
        for _ in Conversion(source):
            pass
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 700
    assert str(path) in caught.value.message or str(path.parent) in caught.value.message
    return caught.value


@pytest.mark.parametrize("kind", ["folder", "zip"])
@pytest.mark.parametrize(
    ("held", "entry", "says"),
    [
        pytest.param({}, "", "holds no PNG, JPEG, WebP or BMP", id="empty"),
        pytest.param(
            {"x/a": b"GIF89a"}, "x/a", "is an image of a format that is not read; make it a PNG", id="another kind"
        ),
        pytest.param({"a.png": b"hello"}, "a.png", "is no PNG, JPEG, WebP or BMP", id="no image"),
        pytest.param({"a.png": encoded(picture(24, 20))[:200]}, "a.png", "is damaged", id="cut short"),
        pytest.param({"a.png": bomb(9000)}, "a.png", "claims 9000×9000 pixels; at most 67,108,864", id="bomb"),
        pytest.param({"a.png": bomb(65535)}, "a.png", "claims too many pixels", id="large bomb"),
        pytest.param({"a.png": DOT, "b.png": SMALL}, "b.png", "has 2×3×3 uint8, those before have 2×2×3", id="sizes"),
        pytest.param(
            {"a.png": DOT, "b.png": encoded(np.zeros((2, 2), np.uint8))},
            "b.png",
            "has 2×2×1 uint8, those before have 2×2×3 uint8; --resolution and --channels of",
            id="channels",
        ),
        pytest.param({"a/a.png": DOT, "b.png": DOT}, "b.png", "lies beside folders", id="beside classes"),
    ],
)
def test_images(held: dict[str, bytes], entry: str, says: str, kind: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    path = written(tmp_path / "folder", **held) if kind == "folder" else zipped(tmp_path / "a.zip", held)
    error = refusal(path)
    assert error.entry == entry
    assert says in error.message


@pytest.mark.parametrize(
    ("labels", "entry", "says"),
    [
        ('[["a.png", 0]]', "dataset.json", "it differs in 'b.png'"),
        ('[["a.png", 0], ["b.png", 0], ["../c.png", 1]]', "dataset.json", "it differs in '../c.png'"),
        ('[["a.png", 0], ["a.png", 0]]', "dataset.json", "gives an image two labels"),
        ('[["a.png", -1], ["b.png", 0]]', "dataset.json", "gives a.png the label '-1'"),
        ('[["a.png", "cat"], ["b.png", 0]]', "dataset.json", "whole numbers from 0"),
        ('[["a.png", true], ["b.png", 0]]', "dataset.json", "whole numbers from 0"),
        ('[["a.png", 4294967296], ["b.png", 0]]', "dataset.json", "whole numbers from 0"),
        ('[[["a.png"], 1], ["b.png", 0]]', "dataset.json", "is not {"),
        ('["a.png"]', "dataset.json", "is not {"),
        ("5", "dataset.json", "is not {"),
        ("[" * 100_000, "dataset.json", "is not {"),
    ],
)
def test_dataset_json(labels: str, entry: str, says: str, tmp_path: Path) -> None:
    held = {"a.png": DOT, "b.png": DOT, "dataset.json": f'{{"labels": {labels}}}'.encode()}
    error = refusal(zipped(tmp_path / "a.zip", held))
    assert error.entry == entry
    assert says in error.message


@pytest.mark.parametrize("name", ["../a.png", "/etc/a.png", "x/../../a.png", "x\\..\\a.png", "./a.png", "x//a.png"])
def test_names_that_lead_out(name: str, tmp_path: Path) -> None:
    error = refusal(zipped(tmp_path / "a.zip", {name: DOT}))
    assert error.entry == name
    assert "names are relative and never lead out of it" in error.message


def test_damaged_zips(tmp_path: Path) -> None:
    assert "is empty" in refusal(written(tmp_path, **{"empty.zip": b""}) / "empty.zip").message
    whole = zipped(tmp_path / "a.zip", {"a.png": DOT}).read_bytes()
    assert "not a zip file" in refusal(written(tmp_path, **{"a.zip": whole[:-30]}) / "a.zip").message
    flipped = bytearray(whole)
    flipped[60] ^= 0xFF
    assert refusal(written(tmp_path, **{"a.zip": bytes(flipped)}) / "a.zip").entry == "a.png"
    with zipfile.ZipFile(tmp_path / "twice.zip", "w") as file:
        file.writestr("a.png", DOT)
        with pytest.warns(UserWarning, match="Duplicate"):
            file.writestr("a.png", DOT)
    assert "is there twice" in refusal(tmp_path / "twice.zip").message


def test_large_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry is never unpacked beyond its bound."""
    monkeypatch.setattr(folders, "MAX_ENCODED", 1 << 16)
    path = zipped(tmp_path / "a.zip", {"a.png": bytes(1 << 22)}, compression=zipfile.ZIP_DEFLATED)
    assert len(path.read_bytes()) < 1 << 14
    assert "has more than 65,536 bytes, which no such file has" in refusal(path).message


def npy(shape: tuple[int, ...], values: bytes = b"", kind: str = "|u1") -> bytes:
    """An array whose head claims a shape."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": kind, "fortran_order": False, "shape": shape})
    return file.getvalue() + values


ONE = npy((1, 1, 1, 1), b"1")
HELD: list[tuple[bytes, str]] = [
    (npy((1, 1, 1, 1), bytes(8), "<i8"), "must be uint8 in [0, 255] or floats in [-1, 1], got int64"),
    (npy((8,), bytes(8)), "of grey, got (0,)"),
    (npy((), bytes(1)), "images must have the shape [n, H, W, C]"),
    (npy((1, 10, 9, 8), bytes(720)), "in 10 channels"),
    (npy((1 << 40, 2, 2, 3), bytes(12)), "has 12 bytes of values; the shape"),
    (npy((1, 2, 2, 3), bytes(13)), "has 13 bytes of values; the shape"),
    (npy((1,), kind="|O") + pickle.dumps([os.system]), "object"),
    (b"no array", "magic"),
    (npy((2, 1, 1, 1), struct.pack("<ff", 0, 3), "<f4"), "row 1: has the value 3.0"),
    (npy((1, 1, 1, 1), struct.pack("<f", np.nan), "<f4"), "row 0: has the value nan"),
]
LABELLED: list[tuple[bytes, str]] = [
    (npy((2,), b"12"), "labels must be one number per image, got shape (2,) for 1 images"),
    (npy((1,), struct.pack("<q", 1 << 40), "<i8"), "labels must be in the range of int32, got 1099511627776"),
    (npy((1,), struct.pack("<f", 1.5), "<f4"), "labels must be integers, got 1.5"),
]


def test_npz(tmp_path: Path) -> None:
    two = zipped(tmp_path / "a.npz", {"a.npy": ONE, "b.npy": ONE})
    assert (
        "a column named image, images, img, sample, samples, pixel_values, arr_0, got a, b; rename one"
        in refusal(two).message
    )
    for images, says in HELD:
        error = refusal(zipped(tmp_path / "a.npz", {"images.npy": images}))
        assert error.entry.startswith("images.npy")
        assert says in error.message
    for labels, says in LABELLED:
        error = refusal(zipped(tmp_path / "a.npz", {"images.npy": ONE, "labels.npy": labels}))
        assert error.entry == "labels.npy"
        assert says in error.message


@pytest.mark.parametrize(
    ("batch", "says"),
    [
        pytest.param(binary_batch([1, 2], [3, 10]), "row 1 has the label 10; CIFAR-10's are 0 to 9", id="label"),
        pytest.param(bytes(3000), "no whole number of records", id="binary, cut short"),
        pytest.param(python2_batch([1], [2])[:-9], "cut short", id="cut short"),
        pytest.param(pickle.dumps([1, 2]), "is no batch", id="no dict"),
        pytest.param(pickle.dumps({"labels": [1]}), "is no batch", id="no data"),
        pytest.param(
            pickle.dumps({"data": np.zeros((2, 3072), np.uint8), "labels": [1]}),
            "got shape (1,) for 2 images",
            id="labels",
        ),
        pytest.param(pickle.dumps({"data": np.zeros((1, 3072)), "labels": [1]}), "of another form", id="floats"),
        pytest.param(pickle.dumps({"data": np.zeros((1, 9), np.uint8), "labels": [1]}), "of another form", id="width"),
        pytest.param(b"\x80\x04\x8e" + b"\xff" * 7 + b"\x7f.", "cut short", id="claims more than there is"),
        pytest.param(b"\x80\x04Nr\xff\xff\xff\xff.", "is no batch", id="a far place in the memo"),
    ],
)
def test_batches(batch: bytes, says: str, tmp_path: Path) -> None:
    error = refusal(written(tmp_path, **{"data_batch_1.bin": batch}) / "data_batch_1.bin")
    assert error.entry == "data_batch_1.bin"
    assert says in error.message


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize(
    ("module", "name"), [("os", "system"), ("builtins", "eval"), ("numpy", "load"), ("numpy.core.multiarray", "scalar")]
)
def test_pickles_execute_nothing(module: str, name: str, protocol: int, tmp_path: Path) -> None:
    marker = tmp_path / "executed"
    batch = {"data": Call(Name(module, name), (f"touch {marker}",)), "labels": [1]}
    path = written(tmp_path, data_batch_1=pickles.dumps(batch, protocol)) / "data_batch_1"
    assert f"the pickle asks for {module}.{name}, which is not among the names that are read" in refusal(path).message
    assert not marker.exists()


def test_tars(tmp_path: Path) -> None:
    batch = binary_batch([1], [2])
    other = tarred(tmp_path / "a.tar", "w", {"../readme": b""})
    assert "readme, but no data_batch_1" in refusal(other).message
    many = tarred(tmp_path / "b.tar", "w", {f"data_batch_{i}": batch for i in range(65)})
    assert "is batch number 65; CIFAR-10 has 5" in refusal(many).message
    whole = tarred(tmp_path / "c.tar.gz", "w:gz", {"data_batch_1": os.urandom(9000)}).read_bytes()
    assert refusal(written(tmp_path, **{"c.tar.gz": whole[:4000]}) / "c.tar.gz").entry == ""
    outside = tarred(tmp_path / "d.tar", "w", {"../../data_batch_1": batch})
    with open_source(outside) as source:  # nothing is unpacked: a name that leads out is a name
        assert source.count == 1
    assert not list(tmp_path.parent.parent.glob("data_batch_1"))


TENSOR = pa.fixed_shape_tensor(pa.uint8(), (2, 2, 3))


def tensor(kind: Any, values: Any) -> pa.Array:
    storage = pa.array([values], pa.list_(kind.value_type, int(np.prod(kind.shape))))
    return pa.ExtensionArray.from_storage(kind, storage)


@pytest.mark.parametrize(
    ("table", "entry", "says"),
    [
        ({"picture": [b""]}, "", "images must be an array or a column named image, images, img"),
        ({"image": ["text"]}, "column image", "is of string; images are encoded bytes"),
        ({"image": [[1, 2]]}, "column image", "images must have the shape [n, H, W, C]"),
        ({"image": pa.array([None, DOT])}, "row 0", "has 0 bytes; an encoded image has 1 to"),
        (
            {"image": pa.array([{"bytes": None}], pa.struct({"bytes": pa.binary()}))},
            "row 0",
            "has 0 bytes; an encoded image has 1 to",
        ),
        ({"image": [b"no image"]}, "row 0", "is no PNG, JPEG, WebP or BMP"),
        ({"image": [DOT], "label": [1.5]}, "column label", "labels must be integers, got 1.5"),
        (
            {"image": [DOT], "label": pa.array([None], pa.int32())},
            "column label",
            "labels must have all values, got 1 missing",
        ),
        ({"image": [DOT], "label": [-2]}, "column label", "labels must be 0 or more, or −1 for none, got -2"),
        (
            {"image": [DOT], "label": pa.array([2**64 - 1], pa.uint64())},
            "column label",
            "labels must be in the range of int32, got 184467",
        ),
        (
            {"image": tensor(pa.fixed_shape_tensor(pa.uint8(), (2, 3, 1), permutation=[1, 0, 2]), range(6))},
            "column image",
            "images must be tensors without permutation, got [1, 0, 2]",
        ),
        (
            {"image": tensor(pa.fixed_shape_tensor(pa.int16(), (2, 3, 1)), range(6))},
            "column image",
            "images must be uint8 in [0, 255] or floats in [-1, 1], got int16",
        ),
    ],
)
def test_tables(table: dict[str, Any], entry: str, says: str, tmp_path: Path) -> None:
    pq.write_table(pa.table(table), tmp_path / "a.parquet")
    error = refusal(tmp_path / "a.parquet")
    assert error.entry == entry
    assert says in error.message


def test_no_format(tmp_path: Path) -> None:
    path = written(tmp_path, **{"a.h5": b"\x89HDF\r\n\x1a\n...."}) / "a.h5"
    assert "has no format that is read: folders and zips of PNG" in refusal(path).message
    with pytest.raises(FileNotFoundError):
        open_source(tmp_path / "absent")


LATENTS = {f"00000/img-mean-std-{i:08d}.npy": npy((8, 4, 4), bytes(128)) for i in range(300)}


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        (
            "a.gz",
            gzip.compress(b"\0\0\x08\x03" + bytes(800), mtime=0),  # every worker collects the same
            "is in MNIST's idx format, which is not read: np.savez",
        ),
        (
            "a.arrow",
            b"\xff\xff\xff\xff" + bytes(9),
            "is a stream of Arrow, as datasets saves to disk; Dataset.to_parquet",
        ),
        ("a-ubyte", b"\0\0\x08\x01" + bytes(9), "is in MNIST's idx format, which is not read: np.savez"),
        ("a.zip", LATENTS, "holds EDM2's encoded latents, 00000/img-mean-std-00000000, "),
        ("b.zip", {f"{i}.npy": ONE for i in range(300)}, "got 0, 1, 10 and 297 more; rename one"),
        ("c.zip", {f"{i}.parquet": b"PAR1" for i in range(300)}, "but 0.parquet, 1.parquet, 10.parquet and 297 more"),
        ("l.npz", {"labels.npy": npy((1,), b"1")}, "images must be an array or a column named image, "),
        ("a.npz", {"images.npy": ONE, "labels.npy": npy((1,), b"", "|O")}, "labels are whole numbers, −1 for none"),
        (
            "train",
            pickle.dumps({"data": np.zeros((1, 3072), np.uint8), "fine_labels": [1]}),
            "is CIFAR-100's, which is",
        ),
    ],
)
def test_what_is_not_read_is_called_what_it_is(name: str, content: Any, says: str, tmp_path: Path) -> None:
    path = tmp_path / name
    _ = zipped(path, content) if isinstance(content, dict) else path.write_bytes(content)
    error = refusal(path)
    assert says in error.message
    assert len(error.message) < 400


def test_a_tar_that_is_not_read_is_named(tmp_path: Path) -> None:
    shard = tarred(tmp_path / "shard.tar", "w", {f"{i:03d}.{kind}": DOT for i in range(300) for kind in ("png", "cls")})
    message = refusal(shard).message
    assert "000.png" in message
    assert "unpack it, and make a folder for each class" in message
    assert len(message) < 400


def test_batches_of_other_names_are_none_of_cifar(tmp_path: Path) -> None:
    for name in ("data_batch_a", "data_batch_b"):
        (tmp_path / name).write_bytes(binary_batch([1], [2]))
    assert "data_batch_1" in refusal(tmp_path).message


def test_a_stored_data_set_that_is_cut_short(tmp_path: Path) -> None:
    folder = tmp_path / "stored"
    folder.mkdir()
    (folder / "dataset.json").write_text(json.dumps({"format": "anisoflight-dataset", "version": 1, "layout": "HWC"}))
    (folder / "images.npy").write_bytes(npy((9, 2, 2, 3), bytes(50)))
    assert refusal(folder).entry == "images.npy"


FORMS = [name for name in WRITERS if name != "stored data set"]


@pytest.mark.parametrize("form", [*FORMS, "python batch", "tar"])
def test_damage_is_an_error_or_nothing(form: str, tmp_path: Path) -> None:
    """Cut anywhere, or with any byte changed, a file reads as images or is refused by name; nothing else happens."""
    whole = tmp_path / "whole"
    if form == "python batch":
        whole.write_bytes(python2_batch([1], [2]))
    elif form == "tar":
        tarred(whole, "w:gz", {"data_batch_1": binary_batch([1], [2])})
    else:
        WRITERS[form](whole)
    content, chance = whole.read_bytes(), random.Random(form)
    for _ in range(60):
        damaged = bytearray(content[: chance.randrange(1, len(content)) if chance.random() < 0.3 else None])
        for _ in range(chance.randrange(3)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        (tmp_path / "damaged").write_bytes(damaged)
        with contextlib.suppress(DataError), open_source(tmp_path / "damaged") as source:
            for image, _ in Conversion(source):
                assert image.dtype in (np.uint8, np.float32)
