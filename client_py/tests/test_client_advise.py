"""`Client.advise` and ``anisoflight advise``: the same advice, as settings, a table and a picture."""

import json
import math
import shlex
import subprocess
from pathlib import Path

import numpy as np
import pytest

import anisoflight
from anisoflight import Client
from anisoflight.advice import Advice
from anisoflight.advise import main
from anisoflight.serve import find_binary


def test_advice_of_a_model(client: Client) -> None:
    advice = client.advise("blocks", "digits", nfe=[5], samples=8, progress=False)
    images = client.dataset("blocks").images / 127.5 - 1
    assert advice["sigma_data"] == pytest.approx(math.sqrt(images.var(axis=0).mean()))
    assert advice["sigma_max"] ** 2 == pytest.approx(advice["T"])
    assert 0 < len(advice["model_ratio"]) < len(advice["sigma"])
    assert advice.commands()["5 evaluations"] == [
        "client.make_schedule(dataset='blocks', kind='few', model='digits', name='digits-few-5', nfe=5)",
        "client.sample(model='digits', n=16, nfe=5, schedule='digits-few-5')",
    ]
    assert repr(advice).splitlines()[1].startswith("sigma_data  ")
    assert advice.table.loc["P_mean", "because"] in advice._repr_html_()


def test_figure(client: Client) -> None:
    advice = client.advise("blocks", progress=False)
    figure = advice.figure()
    spectrum, loss, samplers = figure.axes
    np.testing.assert_array_equal(spectrum.get_lines()[0].get_ydata(), advice["variance"])
    np.testing.assert_array_equal(loss.get_lines()[0].get_ydata(), advice["ratio"])
    best = [row["ipndm"]["w2_squared"] for row in advice["samplers"]]
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


def unlike_images(kind: str) -> np.ndarray:
    """64 images of 8×8: a smooth spectrum, strokes on black, or grey shapes on white, whose mean is large."""
    rng = np.random.default_rng(11)
    if kind == "smooth":
        waves = np.cos(np.pi * np.outer(np.arange(8) + 0.5, np.arange(4)) / 8)
        return np.clip(127 + 40 * (waves @ rng.normal(size=(64, 4, 4)) @ waves.T), 0, 255).astype(np.uint8)[..., None]
    images = np.full((64, 8, 8, 1), 255 if kind == "white" else 0, np.uint8)
    for image in images:
        row, column = rng.integers(1, 4, 2)
        size = 4 if kind == "white" else 1
        image[row : row + 4, column : column + size] = rng.integers(0, 200) if kind == "white" else 250
    return images


@pytest.mark.parametrize("kind", ["smooth", "black", "white"])
def test_what_it_prints_runs(client: anisoflight.LocalClient, tmp_path: Path, kind: str) -> None:
    """With a model, and without one, when the network that it prints is trained first."""
    images, name = unlike_images(kind), f"unlike-{kind}"
    client.put_dataset(name, images, progress=False)
    alone = client.advise(name, nfe=[9], progress=False)
    assert alone["sigma_max"] ** 2 == pytest.approx(alone["T"])

    def follow(advice: Advice) -> None:
        for what, lines in advice.commands(shell=True).items():
            for line in lines:
                program, *words = shlex.split(line)
                assert program == "anisoflight"
                if words[0] == "train":
                    words += ["--kimg", "0.016", "--batch", "8"]
                    small = '{"model_channels": 8, "channel_mult": [1], "num_blocks": 1, '
                    words = [word.replace("{", small) for word in words]
                if "geodesic" in words:
                    words += ["--points", "8", "--samples", "4"]
                if "few" in words:
                    words += ["--samples", "64", "--solvers", "ipndm"]
                done = subprocess.run(
                    [find_binary(), *words, "--server", client.location], capture_output=True, text=True, cwd=tmp_path
                )
                assert done.returncode == 0, f"{what}: {line}\n{done.stderr}"

    follow(alone)
    drawn = client.sample(name, n=2, steps=4, schedule=f"{name}-geodesic", progress=False)
    assert drawn.images.shape[1:] == images.shape[1:]
    client.delete_schedule(f"{name}-geodesic")
    with_model = client.advise(name, name, nfe=[3, 9], samples=8, progress=False)
    assert with_model["sigma_max"] ** 2 == pytest.approx(with_model["T"])
    assert with_model["sigma_max"] <= alone["sigma_max"] * 1.001
    follow(with_model)
    exec(with_model.commands()["9 evaluations"][0], {"client": client})
    for made in (name, f"{name}-further"):
        client.delete_model(made)


def test_refusals(client: anisoflight.LocalClient, capsys: pytest.CaptureFixture[str]) -> None:
    client.put_dataset("grey", np.full((3, 4, 4, 1), 7, np.uint8), replace=True, progress=False)
    with pytest.raises(anisoflight.BadRequestError, match="must differ") as refused:
        client.advise("grey")
    assert refused.value.code == "BAD_REQUEST"
    for words, why in ((["nowhere"], "nowhere"), (["blocks", "--picture", "advice.bmp"], ".png or .svg")):
        assert main([*words, "--server", client.location]) == 1
        assert why in capsys.readouterr().err
