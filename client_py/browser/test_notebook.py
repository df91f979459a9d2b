"""Notebooks in JupyterLab, run in a browser: what a reader sees is read off the page."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
MINUTES = 60_000  # of playwright, in milliseconds
STEPS = 150 if os.environ.get("ANISOFLIGHT_SCREENSHOTS") else 60  # of training: pictures to look at take more

PICTURE = """image => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const pixels = context.getImageData(0, 0, canvas.width, canvas.height).data;
    const greys = [];
    for (let i = 0; i < pixels.length; i += 4) if (pixels[i + 3] > 0) greys.push(pixels[i]);
    return {width: canvas.width, height: canvas.height,
        least: greys.reduce((a, b) => Math.min(a, b)), most: greys.reduce((a, b) => Math.max(a, b))};
}"""


BARS = """() => [...document.querySelectorAll(".jp-OutputArea-output .widget-hbox")].map(box =>
    [(box.querySelector(".progress-bar")?.style.width ?? "").replace("%", ""), box.innerText])"""


WIDGETS = [
    """
import tempfile
import anisoflight
from anisoflight.widgets import LossCurve, Previews
from sklearn.datasets import load_digits
client = anisoflight.serve(data=tempfile.mkdtemp())
digits = load_digits()
client.put_dataset("digits", (digits.images[..., None] / 8 - 1).astype("float32"), digits.target)
client.make_mixture("mixture", "digits", covariance="full")
Previews(client.sample("mixture", n=20, nfe=23, every=1), columns=10)
""",
    """
network = {"img_resolution": 8, "img_channels": 1, "label_dim": 10, "model_channels": 16, "channel_mult": [1, 2],
           "num_blocks": 1, "attn_resolutions": [4], "dropout": 0}
run = client.create_run("small", "pretrain", "digits", network=network, batch=64, kimg=2.56, lr=4e-3, seed=1)
LossCurve(run)
""",
    "run.start()\nrun.wait()",
]
"""The cells of a notebook with the widgets."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """JupyterLab on a copy of the notebooks, without outputs and their last cells, which end their servers."""
    folder = tmp_path_factory.mktemp("lab")
    for path in (ROOT / "client_py/notebooks").glob("*.ipynb"):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        notebook["cells"].pop()
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                cell |= {"outputs": [], "execution_count": None}
        (folder / path.name).write_text(json.dumps(notebook), encoding="utf-8")
    cells = [nbformat.v4.new_code_cell(cell) for cell in WIDGETS]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3 (ipykernel)"}}  # else JupyterLab asks
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), folder / "widgets.ipynb")
    paths = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    settings = {"PATH": paths, "PYTHONPATH": str(ROOT / "client_py")}
    settings |= {"ANISOFLIGHT_QUICKSTART_STEPS": str(STEPS), "ANISOFLIGHT_NOTEBOOK_STEPS": "40"}
    settings |= {"JUPYTER_RUNTIME_DIR": str(folder / "run"), "JUPYTER_CONFIG_DIR": str(folder / "config")}
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.port=0"]
    command += [f"--ServerApp.root_dir={folder}", "--IdentityProvider.token=browser"]
    news = folder / "settings/@jupyterlab/apputils-extension/notification.jupyterlab-settings"
    news.parent.mkdir(parents=True)
    news.write_text('{"fetchNews": "false", "checkForUpdates": false}', encoding="utf-8")
    settings |= {"JUPYTERLAB_SETTINGS_DIR": str(folder / "settings")}
    log = tmp_path_factory.mktemp("log") / "lab.log"
    with log.open("w") as written:  # no pipe: it would fill up, and JupyterLab would stand still
        process = subprocess.Popen(command, env={**os.environ, **settings}, stderr=written)
    try:
        end, found = time.monotonic() + 180, None
        while found is None:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.2)
            found = re.search(r"http://127\.0\.0\.1:\d+", log.read_text())
        yield found[0]
    finally:
        process.terminate()
        process.wait(60)


def opened(lab: str, browser: Browser, name: str, height: int, bars: list[tuple[float, str]] | None = None) -> Page:
    """A notebook, after all of its cells have run; bars takes the widths and texts of progress bars seen meanwhile."""
    page = browser.new_page(viewport={"width": 1000, "height": height})  # tall: cells out of sight are not drawn
    page.set_default_timeout(3 * MINUTES)
    page.goto(f"{lab}/lab/workspaces/{name}/tree/{name}.ipynb?token=browser&reset")
    page.wait_for_selector(".jp-Notebook .jp-CodeCell")
    # Before it has its kernel a notebook seems idle, too, and then forgets what it is told to run.
    page.wait_for_selector('.jp-Toolbar-kernelName:has-text("Python 3")')
    page.wait_for_selector('.jp-Notebook-ExecutionIndicator[data-status="idle"]')
    page.keyboard.press("Escape")
    page.keyboard.press("Control+b")  # the list of files goes: the notebook has the width
    page.click('.lm-MenuBar-itemLabel >> text="Run"')
    page.click("text=Run All Cells")
    cells = page.locator(".jp-Notebook .jp-CodeCell")
    last = cells.nth(cells.count() - 1).locator(".jp-InputPrompt")
    end = time.monotonic() + 900
    while not re.fullmatch(r"\[\d+\]:", last.inner_text()):
        error = page.locator('.jp-OutputArea-output[data-mime-type="application/vnd.jupyter.error"]')
        assert not error.count(), error.first.inner_text()
        assert time.monotonic() < end, "the notebook has not ended"
        if bars is not None:
            bars += [(float(width or 0), text) for width, text in page.evaluate(BARS)]
        page.wait_for_timeout(50)
    return page


def kept(page: Page, selector: str, name: str) -> None:
    """A picture of a part of the page; written into the documents' folder where ANISOFLIGHT_SCREENSHOTS is set."""
    part = page.locator(selector).first
    assert (box := part.bounding_box())
    assert box["height"] > 50
    if os.environ.get("ANISOFLIGHT_SCREENSHOTS"):
        path = IMAGES / f"{name}.png"
        part.screenshot(path=path)
        with Image.open(path) as picture:  # of few colours, a third of the size
            picture.convert("RGB").quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)


@pytest.fixture(scope="module")
def bars() -> list[tuple[float, str]]:
    """Progress bars that were seen while the quick start ran: widths in percent, and texts."""
    return []


@pytest.fixture(scope="module")
def page(lab: str, browser: Browser, bars: list[tuple[float, str]]) -> Page:
    """The quick start."""
    return opened(lab, browser, "quickstart", 4000, bars)


@pytest.fixture(scope="module")
def widgets(lab: str, browser: Browser) -> Page:
    """The notebook of the widgets."""
    return opened(lab, browser, "widgets", 3000)


def test_every_picture_is_drawn(page: Page) -> None:
    """Images of the data, of the samples, and the figures, each with light and dark in it."""
    images = page.locator(".jp-OutputArea-output img")
    found = [image.evaluate(PICTURE) for image in images.all()]
    assert len(found) >= 5
    for picture in found:
        assert picture["width"] >= 64, found
        assert picture["most"] - picture["least"] > 100, found


def test_training_shows_a_bar(page: Page, bars: list[tuple[float, str]]) -> None:
    """A widget that grows with the steps, and tells the loss; it goes when they are done."""
    training = [(width, text) for width, text in bars if "train" in text and f"/{STEPS}" in text]
    widths = [width for width, _ in training]
    assert any("loss" in text for _, text in training), bars
    assert widths == sorted(widths)
    assert max(widths) > 0
    assert page.locator(".jp-OutputArea-output .progress-bar:visible").count() == 0


def test_tables_are_tables(page: Page) -> None:
    headings = page.locator(".jp-OutputArea-output table.dataframe th").all_inner_texts()
    assert {"seed", "nfe"} <= set(headings)


def test_screenshot(page: Page) -> None:
    """That of docs/tutorial.md."""
    kept(page, ".jp-NotebookPanel", "notebook-quickstart")


def test_previews_go_from_noise_to_images(widgets: Page) -> None:
    previews = widgets.locator(".anisoflight-previews").first
    frame = previews.locator("img")
    last: dict[str, Any] = frame.evaluate(PICTURE)
    assert last["most"] - last["least"] > 200
    shown = frame.get_attribute("src")
    previews.locator(".anisoflight-place").fill("0")
    expect(previews.locator("output")).to_have_text("step 0")
    assert frame.get_attribute("src") != shown
    previews.locator(".anisoflight-play").click()
    expect(previews.locator("output")).to_have_text("the images", timeout=60_000)
    assert frame.get_attribute("src") == shown
    kept(widgets, ".anisoflight-previews", "widget-previews")


def test_the_loss_is_drawn(widgets: Page) -> None:
    curve = widgets.locator(".anisoflight-loss").first
    expect(curve.locator(".anisoflight-state")).to_have_text(re.compile(r"done, step 40, loss [0-9.]+"), timeout=60_000)
    lines = curve.locator("polyline")
    assert lines.count() == 2
    points = np.array(
        [list(map(float, pair.split(","))) for pair in (lines.last.get_attribute("points") or "").split()]
    )
    assert len(points) == 40
    assert (np.diff(points[:, 0]) > 0).all()
    assert points[-1, 1] > points[0, 1]  # downwards on the page: the loss has fallen
    kept(widgets, ".anisoflight-loss", "widget-loss")
