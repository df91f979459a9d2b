"""The report of the demo, and so the frame of the gallery, as wide as a telephone: nothing stands out sideways."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import numpy as np
import pandas as pd
from playwright.sync_api import Browser

from studies.demo.report import Report, mosaics

IMAGES = Path(__file__).parents[2] / "docs" / "images"
WIDTH = 390


def page(path: Path) -> None:
    """A report of every kind of block, with tables and pictures as wide as the demo's."""
    report = Report("anisoflight: learned noise schedules")
    report.text("Seed 1; xla:cpu, 2 cores; 14.2 minutes in all. " * 3)
    measured = pd.DataFrame({"sampler": ["Heun on EDM's levels", "iPNDM-4, noise levels made for it"], "nfe": [5, 9]})
    for name in ("frequencies", "edges", "clipped Gaussian"):
        measured[name] = [[1.1, 1.2], [0.4, 0.5]]
    report.table(measured, "Distances, mean ± half the range over seeds.")
    for name in ("samples", "figures-components", "figures-variances"):
        uri = "data:image/png;base64," + b64encode((IMAGES / f"{name}.png").read_bytes()).decode()
        report.figure(uri, "A figure.", wide=True)
    noise = np.random.default_rng(0).uniform(-1, 1, (40, 8, 8, 3)).astype(np.float32)
    report.mosaics(mosaics({f"iPNDM-4, {n} evaluations": noise for n in (5, 9)}, columns=10), "Pictures.")
    report.write(path)


def test_a_report_is_readable_on_a_telephone(browser: Browser, tmp_path: Path) -> None:
    page(tmp_path / "report.html")
    view = browser.new_page(viewport={"width": WIDTH, "height": 844}, device_scale_factor=2, is_mobile=True)
    view.goto((tmp_path / "report.html").as_uri())
    assert view.evaluate("document.documentElement.scrollWidth") == WIDTH
    sizes = "[...document.querySelectorAll('p, td')].map(x => parseFloat(getComputedStyle(x).fontSize))"
    assert np.min(view.evaluate(sizes)) >= 13
    wide = "[...document.querySelectorAll('.scroll')].map(x => x.clientWidth)"
    assert max(view.evaluate(wide)) <= WIDTH
    pictures = "[...document.querySelectorAll('.plot, .mosaics img')].map(x => x.getBoundingClientRect())"
    for box in view.evaluate(pictures):
        assert box["left"] >= 0
        assert box["right"] <= WIDTH
        assert box["width"] > 0.9 * (WIDTH - 2 * 0.8 * 16)  # all that there is between the margins
    view.screenshot(path=tmp_path / "page.png", full_page=True)
    view.close()
