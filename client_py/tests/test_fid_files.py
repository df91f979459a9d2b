"""Images and references in files: what is read, what is written, and what is refused by name."""

import pickle
import shlex
import subprocess
import sys
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anisoflight.data import DataError
from anisoflight.errors import AnisoflightWarning
from anisoflight.fid.errors import FidError
from anisoflight.fid.features import Features, for_calc, for_reference
from anisoflight.fid.networks import Loading
from anisoflight.fid.reference import Reference, load_reference
from anisoflight.fid.sources import Files
from anisoflight.fid.stretches import Pace, Seen, look, see
from anisoflight.images import png
from anisoflight.moments import Moments

QUIET = Pace(batch=7, checkpoint=11, progress=False)


def seen(source: Files, features: Features, folder: Path, pace: Pace = QUIET) -> Seen:
    return see(partial(look, source, features, pace.batch), source.count, features.dimension, folder, pace, "", True)


@pytest.fixture
def images() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (30, 6, 5, 3), np.uint8)


def folder_of(path: Path, images: np.ndarray) -> Path:
    for i, image in enumerate(images):
        inside = path / f"{i // 10:05d}"
        inside.mkdir(parents=True, exist_ok=True)
        (inside / f"{i:06d}.png").write_bytes(png(image))
    return path


def zip_of(path: Path, images: np.ndarray) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        for i, image in enumerate(images):
            file.writestr(f"00000/img{i:08d}.png", png(image))
    return path


def npz_of(path: Path, images: np.ndarray) -> Path:
    np.savez_compressed(path, images=images)
    return path


def test_all_containers_hold_the_same_images(tmp_path: Path, images: np.ndarray) -> None:
    paths = [folder_of(tmp_path / "f", images), zip_of(tmp_path / "z.zip", images), npz_of(tmp_path / "n.npz", images)]
    digests = set()
    features = for_reference("pixels", Files(paths[0]), Loading())
    for i, path in enumerate(paths):
        source = Files(path)
        assert source.count == 30
        np.testing.assert_array_equal(np.concatenate(list(source.read(4, 29))), images[4:29])
        digests.add(seen(source, features, tmp_path / f"state{i}").digest)
    assert len(digests) == 1
    assert digests == {
        seen(Files(paths[0]), features, tmp_path / "again", Pace(30, 30, False)).digest
    }  # whatever the batches


def test_pictures_in_hidden_folders_are_none(tmp_path: Path, images: np.ndarray) -> None:
    """The distance is that of the other pictures, and a warning names the folder."""
    folder = folder_of(tmp_path / "f", images)
    features = for_reference("pixels", Files(folder), Loading())
    want = seen(Files(folder), features, tmp_path / "a").digest
    folder_of(folder / ".ipynb_checkpoints", images[:3])
    with pytest.warns(AnisoflightWarning, match=r"\.ipynb_checkpoints are not read"):
        source = Files(folder)
    assert seen(source, features, tmp_path / "b").digest == want


def test_a_folder_of_tables_is_known_again(tmp_path: Path, images: np.ndarray) -> None:
    """Parquet files are images as others are; a row that goes on knows them by their first and last file."""
    (tmp_path / "hub").mkdir()

    def write(name: str, some: np.ndarray) -> None:
        column = pa.FixedShapeTensorArray.from_numpy_ndarray(some)
        pq.write_table(pa.table({"image": column}), tmp_path / "hub" / name)

    write("0.parquet", images[:15])
    write("1.parquet", images[15:])
    source = Files(tmp_path / "hub")
    np.testing.assert_array_equal(np.concatenate(list(source.read(0, 30))), images)
    before = source.identity()
    assert before == Files(tmp_path / "hub").identity()
    write("1.parquet", images[16:])
    assert before != Files(tmp_path / "hub").identity()


def refused(path: Path) -> str:
    def read() -> None:
        source = Files(path)
        list(source.read(0, source.count))

    with pytest.raises((DataError, FidError)) as caught:
        read()
    return caught.value.message


def test_what_is_wrong_is_named_with_its_entry(tmp_path: Path, images: np.ndarray) -> None:
    folder = folder_of(tmp_path / "f", images)
    odd = folder / "00001" / "000015.png"
    odd.write_bytes(png(images[0][:4]))
    assert "00001/000015.png: has 4×5×3 uint8, those before have 6×5×3 uint8" in refused(folder)
    odd.write_bytes(png(images[0])[:60])
    assert "00001/000015.png: is damaged" in refused(folder)
    assert "images.npy row 0: holds float32 (6, 5, 3); FID sees uint8" in refused(
        npz_of(tmp_path / "n.npz", images[:2] / 255)
    )
    assert "there is nothing at" in refused(tmp_path / "nowhere")


def test_edm_references_are_read(tmp_path: Path) -> None:
    """EDM's fid.py writes np.savez(path, mu=…, sigma=…) in float64."""
    features = np.random.default_rng(0).standard_normal((50, 4))
    moments = Moments.of(features)
    np.savez(tmp_path / "edm.npz", mu=moments.mean, sigma=moments.cov)
    reference = load_reference(tmp_path / "edm.npz")
    assert reference.moments.cov.tobytes() == moments.cov.tobytes()
    assert (reference.provenance, reference.parameters, reference.rows) == ({}, {}, None)
    with pytest.raises(FidError, match="no --features, but the reference is of features that it does not name"):
        for_calc(None, reference, Loading())


def test_references_are_written_for_edm_to_read(tmp_path: Path, images: np.ndarray) -> None:
    source = Files(npz_of(tmp_path / "n.npz", images))
    features = for_reference("pca-4", source, Loading())
    found = seen(source, features, tmp_path / "state")
    moments = found.running.moments()
    provenance = {"features": {"name": features.name, "hash": features.hash}}
    Reference(moments, provenance, features.parameters, found.rows()).save(tmp_path / "r.npz")
    with np.load(tmp_path / "r.npz") as file:  # as EDM's fid.py reads it
        ref = dict(file)
    assert (ref["mu"].shape, ref["sigma"].shape, ref["mu"].dtype) == ((4,), (4, 4), np.float64)
    back = load_reference(tmp_path / "r.npz", rows=True)
    assert back.hash == Reference(moments).hash
    assert back.rows is not None
    assert back.rows.shape == (30, 4)
    again = for_calc(None, back, Loading())
    assert again.hash == features.hash
    np.testing.assert_array_equal(again(images), features(images))
    np.testing.assert_allclose(moments.mean, 0, atol=1e-12)  # principal components of these very images
    assert (np.diff(np.diag(moments.cov)) < 0).all()


def test_what_is_said_of_a_pickle_makes_a_reference_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """EDM2 keeps several statistics in a pickle; nothing of it is executed unasked."""
    monkeypatch.chdir(tmp_path)
    parts = {name: {"mu": np.full(3, float(k)), "sigma": np.eye(3)} for k, name in enumerate(("fid", "fd_dinov2"))}
    path = tmp_path / "img512.pkl"
    path.write_bytes(pickle.dumps(parts))
    with pytest.raises(FidError, match="is a pickle, as EDM2 writes references") as caught:
        load_reference(path)
    command = caught.value.message.partition("as npz: ")[2]
    subprocess.run([sys.executable, *shlex.split(command)[1:]], check=True)
    np.testing.assert_array_equal(load_reference(tmp_path / "ref.npz").moments.mean, np.zeros(3))


def test_references_that_are_none(tmp_path: Path) -> None:
    path, eye = tmp_path / "r.npz", np.eye(3)

    def says() -> str:
        with pytest.raises(FidError) as caught:
            load_reference(path)
        assert caught.value.code == "BAD_REFERENCE"
        return caught.value.message

    assert "there is no reference" in says()
    np.savez(path, mu=np.zeros(3), cov=eye)
    assert "no entry sigma; a reference has mu and sigma, not mu, cov" in says()
    np.savez(path, mu=np.zeros(4), sigma=eye)
    assert "mu (4,) and sigma (3, 3)" in says()
    np.savez(path, mu=np.zeros(3), sigma=eye + np.eye(3, k=1))
    assert "entry sigma: a covariance is symmetric" in says()
    np.savez(path, mu=np.full(3, np.nan), sigma=eye)
    assert "entry mu: not finite" in says()
    np.savez(path, mu=np.zeros(3), sigma=eye)
    whole = path.read_bytes()
    place = whole.index(b"sigma.npy") + 200
    path.write_bytes(whole[:place] + b"\0\1\2\3" + whole[place + 4 :])
    assert "entry sigma: not a whole npz" in says()
    path.write_bytes(whole[:-50])
    assert "not a whole npz" in says()
    np.savez(path, mu=np.array([{}]), sigma=eye)
    assert "entry mu: not a whole npz" in says()  # objects would have to be unpickled
