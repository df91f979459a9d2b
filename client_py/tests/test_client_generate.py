"""EDM's spelling of generate.py: its seeds, its file names, its Heun."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from anisoflight import Client
from anisoflight.generate import main


def test_files_are_named_as_edms(client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--network", "digits", "--server", client.location, "--steps", "3", "--sigma_max", "20", "--batch", "2"]
    given = [*options, "--outdir", str(tmp_path), "--seeds", "0-2,1001", "--class", "7"]
    assert main([*given, "--subdirs"]) == 0
    names = ["000000/000000.png", "000000/000001.png", "000000/000002.png", "001000/001001.png"]
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.png")) == names
    edm = {"grid": {"edm": {"sigma_max": 20}}, "second_point": "endpoint", "progress": False}
    expected = client.sample("digits", labels=[7], seed=1001, steps=3, **edm)
    assert expected.nfe.tolist() == [5]
    with Image.open(tmp_path / names[-1]) as picture:
        np.testing.assert_array_equal(np.asarray(picture), expected.images[0, ..., 0])
    (tmp_path / names[0]).unlink()
    assert main([*given, "--subdirs"]) == 0
    assert "1 images written, 3 were there" in capsys.readouterr().out
    assert main([*given[:-2], "--seeds", "5"]) == 0
    assert (tmp_path / "000005.png").exists()


def test_mistakes(client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--outdir", str(tmp_path), "--server", client.location]
    for arguments, said in (
        (["--network", "nobody"], 'No model is called "nobody"'),
        (["--network", "digits", "--schedule", "edm", "--rho", "5"], "--rho must be left out with --schedule"),
        (["--network", "digits", "--solver", "vp"], "solver must be one of ab, deis"),
    ):
        assert main([*given, *arguments]) == 1
        assert said in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([*given, "--network", "digits", "--seeds", "5-1"])
    assert "seeds must be numbers and ranges such as 1,2,5-10, got '5-1'" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
