"""The quick start in JupyterLab, run in a browser: what a reader sees is read off the page."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
MINUTES = 60_000  # of playwright, in milliseconds

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


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """JupyterLab on a copy of the notebooks: the address of its page."""
    folder = tmp_path_factory.mktemp("lab")
    for path in (ROOT / "client_py/notebooks").glob("*.ipynb"):
        shutil.copy(path, folder)
    paths = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    told = {"PATH": paths, "PYTHONPATH": str(ROOT / "client_py"), "ANISOFLIGHT_QUICKSTART_STEPS": "60"}
    told |= {"JUPYTER_RUNTIME_DIR": str(folder / "run"), "JUPYTER_CONFIG_DIR": str(folder / "config")}
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.port=0"]
    command += [f"--ServerApp.root_dir={folder}", "--IdentityProvider.token=browser"]
    process = subprocess.Popen(command, env={**os.environ, **told}, stderr=subprocess.PIPE, text=True)
    assert process.stderr
    try:
        address = next(found[0] for line in process.stderr if (found := re.search(r"http://127\.0\.0\.1:\d+", line)))
        os.set_blocking(process.stderr.fileno(), False)
        yield address
    finally:
        process.terminate()
        process.wait(60)


def chromium() -> str:
    """The browser: ANISOFLIGHT_CHROMIUM, else one on the PATH."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = os.environ.get("ANISOFLIGHT_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    assert found, "no browser: install Debian's package chromium, or name one in ANISOFLIGHT_CHROMIUM"
    return found


@pytest.fixture(scope="module")
def page(lab: str) -> Iterator[Page]:
    """The quick start, after all of its cells have run."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1000, "height": 4000})  # tall: cells out of sight are not drawn
        page.set_default_timeout(5 * MINUTES)
        page.goto(f"{lab}/lab/tree/quickstart.ipynb?token=browser&reset")
        page.wait_for_selector(".jp-Notebook .jp-CodeCell")
        page.wait_for_selector(
            '[title*="Idle"], [aria-label*="Idle"], .jp-Notebook-ExecutionIndicator[data-status="idle"]'
        )
        page.keyboard.press("Escape")
        page.click("text=Run >> nth=0")
        page.click("text=Run All Cells")
        cells = page.locator(".jp-Notebook .jp-CodeCell")
        last = cells.nth(cells.count() - 1).locator(".jp-InputPrompt")
        end = time.monotonic() + 900
        while not re.fullmatch(r"\[\d+\]:", last.inner_text()):
            error = page.locator('.jp-OutputArea-output[data-mime-type="application/vnd.jupyter.error"]')
            assert not error.count(), error.first.inner_text()
            assert time.monotonic() < end, "the notebook has not ended"
            page.wait_for_timeout(500)
        yield page
        browser.close()


def test_every_picture_is_drawn(page: Page) -> None:
    """Images of the data, of the samples, and the figures, each with light and dark in it."""
    images = page.locator(".jp-OutputArea-output img")
    found = [image.evaluate(PICTURE) for image in images.all()]
    assert len(found) >= 5
    for picture in found:
        assert picture["width"] >= 64, found
        assert picture["most"] - picture["least"] > 100, found


def test_bars_are_full(page: Page) -> None:
    """The progress bars of upload, training and sampling are widgets, and at their ends."""
    bars = page.locator(".jp-OutputArea-output .progress-bar")
    assert bars.count() >= 3
    for bar in bars.all():
        assert float(re.findall(r"width: ([0-9.]+)%", bar.get_attribute("style") or "")[0]) == pytest.approx(
            100, abs=0.5
        )
    text = " ".join(page.locator(".jp-OutputArea-output .widget-html-content").all_inner_texts())
    assert "60/60" in text


def test_tables_are_tables(page: Page) -> None:
    headings = page.locator(".jp-OutputArea-output table.dataframe th").all_inner_texts()
    assert {"seed", "nfe"} <= set(headings)


def test_screenshot(page: Page) -> None:
    """That of docs/tutorial.md, taken anew where ANISOFLIGHT_SCREENSHOTS is set."""
    notebook = page.locator(".jp-NotebookPanel")
    assert (box := notebook.bounding_box())
    assert box["height"] > 1000
    if os.environ.get("ANISOFLIGHT_SCREENSHOTS"):
        notebook.screenshot(path=IMAGES / "notebook-quickstart.png")
