"""`Client.advise` and ``anisoflight advise``: the same advice, as settings, a table and a picture."""

from __future__ import annotations

import json
import math
import subprocess
from pathlib import Path

import numpy as np
import pytest

import anisoflight
from anisoflight import Client
from anisoflight.advise import main
from anisoflight.serve import find_binary


def test_advice_of_a_model(client: Client) -> None:
    advice = client.advise("blocks", "digits", nfe=[5], samples=8, progress=False)
    images = client.dataset("blocks").images / 127.5 - 1
    assert advice["sigma_data"] == pytest.approx(math.sqrt(images.var(axis=0).mean()))
    assert advice["sigma_max"] ** 2 == pytest.approx(advice["T"])
    assert 0 < len(advice["model_ratio"]) < len(advice["sigma"])
    assert "nfe=5" in advice.table.loc["5 evaluations", "because"]
    assert repr(advice).splitlines()[1].startswith("sigma_data  ")
    assert advice.table.loc["P_mean", "because"] in advice._repr_html_()


def test_figure(client: Client) -> None:
    advice = client.advise("blocks", progress=False)
    figure = advice.figure()
    spectrum, loss, samplers = figure.axes
    np.testing.assert_array_equal(spectrum.get_lines()[0].get_ydata(), advice["variance"])
    np.testing.assert_array_equal(loss.get_lines()[0].get_ydata(), advice["ratio"])
    best = [row["best"]["w2_squared"] for row in advice["samplers"]]
    np.testing.assert_array_equal(samplers.get_lines()[2].get_ydata(), best)


def test_the_command(client: anisoflight.LocalClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture, server = tmp_path / "advice.png", ["--server", client.location]
    command = [find_binary(), "advise", "blocks", "--nfe", "3,9", "--json", "--picture", str(picture), *server]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == client.advise("blocks", nfe=[3, 9])
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert main(["blocks", *server]) == 0
    table = capsys.readouterr().out
    assert table.startswith("WHAT ")
    assert "18 evaluations" in table


def test_refusals(client: anisoflight.LocalClient, capsys: pytest.CaptureFixture[str]) -> None:
    client.put_dataset("grey", np.full((3, 4, 4, 1), 7, np.uint8), replace=True, progress=False)
    with pytest.raises(anisoflight.BadRequestError, match="must differ") as refused:
        client.advise("grey")
    assert refused.value.code == "BAD_REQUEST"
    for words, why in ((["nowhere"], "nowhere"), (["blocks", "--picture", "advice.bmp"], ".png or .svg")):
        assert main([*words, "--server", client.location]) == 1
        assert why in capsys.readouterr().err
