"""The commands ``python -m anisoflight.data``: their settings, what they print, and where they write."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_data_transforms import picture

from anisoflight.data.__main__ import main
from anisoflight.images import png


@pytest.fixture
def three(tmp_path: Path) -> Path:
    """Three images with labels."""
    path = tmp_path / "in.npz"
    np.savez(path, images=np.stack([picture(8, 8)] * 3), labels=[1, 0, 1])
    return path


def report(path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["inspect", str(path), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_to_the_data_folder_and_back(three: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An .npz becomes a data set of the data folder, that one a zip, that one a folder; all have the same hash."""
    want = report(three, capsys)["hash"]
    data = tmp_path / "data"
    convert = ["convert", str(three), "--data", str(data), "--name", "three"]
    assert main(convert) == 0
    stored = data / "datasets" / "three"
    assert capsys.readouterr().out == f"{stored}: 3 images of 8×8 pixels in 3 channels, with labels\n"
    assert main(["convert", str(stored), "--out", str(tmp_path / "out.zip")]) == 0
    assert main(["convert", str(tmp_path / "out.zip"), "--out", str(tmp_path / "out" / "folder"), "--json"]) == 0
    message = json.loads(capsys.readouterr().out.splitlines()[-1])
    shape = {"height": 8, "width": 8, "channels": 3, "labels": True}
    assert message == {
        "path": str(tmp_path / "out" / "folder"),
        "images": 3,
        "left_out": 0,
        "bad": 0,
        "ignored": [],
        **shape,
    }
    for path in (stored, tmp_path / "out.zip", tmp_path / "out" / "folder"):
        assert report(path, capsys)["hash"] == want
    assert main(convert) == 1
    assert "already called" in capsys.readouterr().err
    smaller = ["--resolution", "4x2", "--channels", "1", "--labels", "none", "--replace"]
    assert main([*convert, *smaller]) == 0
    assert report(stored, capsys)["sizes"] == [{"height": 2, "width": 4, "channels": 1, "images": 3}]
    assert main(["convert", str(three), "--out", str(tmp_path / "out" / "folder"), *smaller]) == 0
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["folder"], "something is left behind"


def test_inspect(three: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(three)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["format   .npz", "images   3 uint8", "size     8×8, 3 channels: 3 images"]
    assert lines[-2:] == ["class 0  : 1 images", "class 1  : 2 images"]


def test_bad_images_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.png").write_bytes(b"no image")
    (tmp_path / "in" / "b.png").write_bytes(png(picture(4, 4)))
    convert = ["convert", str(tmp_path / "in"), "--out", str(tmp_path / "out.zip")]
    assert main(convert) == 1
    assert capsys.readouterr().err == f"anisoflight: {tmp_path / 'in'}: a.png: is no PNG, JPEG, WebP or BMP\n"
    assert not (tmp_path / "out.zip").exists()
    assert main([*convert, "--skip-bad"]) == 0
    out, err = capsys.readouterr()
    assert out.endswith("1 images of 4×4 pixels in 3 channels, without labels; 1 bad and left out\n")
    assert err == f"left out: [BAD_DATA] {tmp_path / 'in'}: a.png: is no PNG, JPEG, WebP or BMP\n"
    assert main(convert) == 1
    assert "exists; --replace replaces it" in capsys.readouterr().err


def test_what_is_ignored_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In lines and in JSON, by both commands."""
    folder = tmp_path / "in"
    for name in ("cat/0.png", "dog/0.png", ".ipynb_checkpoints/0-checkpoint.png"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(png(picture(4, 4)))
    assert report(folder, capsys)["ignored"] == [".ipynb_checkpoints"]
    assert main(["inspect", str(folder)]) == 0
    assert "ignored  .ipynb_checkpoints" in capsys.readouterr().out.splitlines()
    convert = ["convert", str(folder), "--out", str(tmp_path / "out.zip"), "--replace"]
    assert main(convert) == 0
    assert capsys.readouterr().out.endswith("3 channels, with labels; ignored .ipynb_checkpoints\n")
    assert main([*convert, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ignored"] == [".ipynb_checkpoints"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("convert in.npz", "one of the arguments --name --out is required"),
        ("convert in.npz --name a --out b", "not allowed with"),
        ("convert in.npz --name a --resolution big", "must be a number of pixels, or WIDTHxHEIGHT, got 'big'"),
        ("convert in.npz --name a --transform squash", "invalid choice: 'squash'"),
        ("convert in.npz --name a --transform center-crop", "transform center-crop needs a resolution, such as 64"),
        ("inspect", "PATH"),
    ],
)
def test_wrong_usage(arguments: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments.split())
    assert ended.value.code == 2
    assert says in capsys.readouterr().err


def test_fields(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An .npy of winds becomes a data set in its own units, and a stored one brings them along."""
    winds = np.random.default_rng(0).normal([3, 288], [5, 20], (6, 4, 8, 2))
    np.save(tmp_path / "winds.npy", winds)
    message = report(tmp_path / "winds.npy", capsys)
    sizes = [{"height": 4, "width": 8, "channels": 2, "images": 6}]
    assert (message["dtype"], message["bad"], message["sizes"]) == ("float32", [], sizes)
    for name, want in {"low": winds.min, "high": winds.max, "mean": winds.mean, "std": winds.std}.items():
        np.testing.assert_allclose(message[name], want((0, 1, 2)), 1e-6)
    data = tmp_path / "data"
    convert = ["convert", str(tmp_path / "winds.npy"), "--data", str(data), "--name", "winds"]
    assert main(convert) == 1
    assert "others come with --mean and --scale" in capsys.readouterr().err
    assert main([*convert, "--scale", "measured"]) == 0
    stored = np.load(data / "datasets" / "winds" / "images.npy")
    np.testing.assert_array_equal(stored, winds.astype(np.float32))
    found = report(data / "datasets" / "winds", capsys)
    np.testing.assert_allclose(found["normalization"]["scale"], 2 * stored.astype(float).std((0, 1, 2)))
    assert found["hash"] == json.loads((data / "datasets" / "winds" / "dataset.json").read_text())["hash"]
    assert main(["convert", str(data / "datasets" / "winds"), "--out", str(tmp_path / "again")]) == 0
    assert report(tmp_path / "again", capsys)["hash"] == found["hash"]
    assert main([*convert, "--mean=-3,288", "--scale", "10", "--replace"]) == 0
    units = json.loads((data / "datasets" / "winds" / "dataset.json").read_text())["normalization"]
    assert units == {"mean": [-3, 288], "scale": [10, 10]}
    np.savez(tmp_path / "latents.npz", images=np.ones((2, 5, 6, 7), np.float32), labels=[1, 0])
    assert report(tmp_path / "latents.npz", capsys)["sizes"][0]["channels"] == 5
    capsys.readouterr()
    assert main(["inspect", str(tmp_path / "latents.npz"), "--layout", "HWC", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sizes"][0]["channels"] == 7
    bad = winds.copy()
    bad[4, 0, 0, 0] = np.nan
    np.save(tmp_path / "bad.npy", bad)
    assert main(["convert", str(tmp_path / "bad.npy"), "--out", str(tmp_path / "bad"), "--scale", "measured"]) == 1
    assert "bad.npy row 4: has the value nan" in capsys.readouterr().err
