"""The widgets' Python side, moved by the traits that a page moves; the browser's test has the page's side."""

import base64
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import anisoflight
from anisoflight.errors import BadRequestError
from anisoflight.widgets import LossCurve, Previews
from anisoflight.widgets.loss import MOST, _shown


def test_previews_are_the_estimates_and_then_the_images(client: anisoflight.Client, tmp_path: Path) -> None:
    samples = client.sample("digits", n=6, steps=4, every=2, progress=False)
    widget = Previews(samples, columns=3)
    assert [frame["name"] for frame in widget.frames] == ["step 0", "step 2", "the images"]
    assert widget.place == 2
    last = tmp_path / "last.png"
    last.write_bytes(base64.b64decode(widget.frames[-1]["picture"].removeprefix("data:image/png;base64,")))
    with Image.open(last) as picture:
        assert (np.asarray(picture) == samples.grid(columns=3).squeeze(-1)).all()
    with pytest.raises(BadRequestError, match="draw them with every=1"):
        Previews(client.sample("digits", n=1, steps=2, progress=False))


def test_the_loss_of_a_run_is_followed_to_its_end(client: anisoflight.Client) -> None:
    run = client.create_run("followed", "pretrain", "blocks", model="digits", batch=8, kimg=1)
    curve = LossCurve(run)
    try:
        assert curve.shown["step"] == []
        rows = run.step(5, progress=False)
        run.cancel()
        assert curve.wait(60)
        assert curve.shown["step"] == rows["step"].tolist()
        assert curve.shown["loss"] == pytest.approx(rows["loss"].tolist())
        assert curve.shown["state"] == "cancelled"
    finally:
        curve.close()
        run.delete()


def test_a_closed_curve_follows_no_more(client: anisoflight.Client) -> None:
    run = client.create_run("unfollowed", "pretrain", "blocks", model="digits", batch=8, kimg=1)
    curve = LossCurve(run)
    curve.close()
    assert curve.wait(60)
    run.delete()


def test_long_runs_are_thinned() -> None:
    steps = list(range(1, 3 * MOST + 2))
    shown = _shown(steps, [float(step) for step in steps], "running")
    assert len(shown["step"]) <= MOST
    assert shown["step"][-1] == shown["last"] == 3 * MOST + 1
    assert shown["loss"][0] == np.mean([1, 2, 3, 4])


@pytest.mark.parametrize("widget", [Previews, LossCurve])
def test_scripts_are_modules(widget: Any, tmp_path: Path) -> None:
    """Node reads each of them; what they draw is the browser's test."""
    node = shutil.which("node") or shutil.which("node", path=str(Path(sys.executable).parent))
    if node is None:
        pytest.skip("no node here")
    path = tmp_path / "widget.mjs"
    path.write_text(str(widget._esm), encoding="utf-8")
    code = f"import('{path}').then(module => process.exit(typeof module.default.render === 'function' ? 0 : 1))"
    subprocess.run([node, "-e", code], check=True)


def test_without_anywidget_one_sentence_says_so() -> None:
    code = "import sys; sys.modules['anywidget'] = None\nimport anisoflight.widgets"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: anisoflight.widgets needs anywidget: pip install 'anisoflight[notebook]'"
    )
