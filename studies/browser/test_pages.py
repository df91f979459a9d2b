"""The report of the demo, and so the frame of the gallery, as wide as a telephone: nothing stands out sideways."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import numpy as np
import pandas as pd
from playwright.sync_api import Browser

from studies.demo import figures
from studies.demo.checks import Checks
from studies.demo.report import Report, layout

IMAGES = Path(__file__).parents[2] / "docs" / "images"
WIDTH = 390


def page(path: Path) -> None:
    """A report of every kind of block, with tables and pictures as wide as the demo's."""
    checks = Checks()
    checks.at_most("geodesic at 9 evaluations: Fréchet distance over EDM's with twice as many evaluations", 0.7, 1)
    checks.at_most("ODE error of the learned schedule over that of the one before", 1.4, 1)
    report = Report("anisoflight: learned noise schedules")
    report.heading("Thresholds")
    report.checks(checks.items)
    report.text("Seed 1; xla:cpu, 2 cores; 14.2 minutes in all. " * 3)
    measured = pd.DataFrame({"sampler": ["Heun on EDM's levels", "iPNDM-4, noise levels made for it"], "nfe": [5, 9]})
    for name in ("frequencies", "edges", "clipped Gaussian"):
        measured[name] = [[1.1, 1.2], [0.4, 0.5]]
    report.table(layout(measured.assign(ode_error=1.5, seconds=2.0)), "Distances, mean ± half the range over seeds.")
    for name in ("samples", "figures-components", "figures-variances"):
        uri = "data:image/png;base64," + b64encode((IMAGES / f"{name}.png").read_bytes()).decode()
        report.figure(uri, "A figure.", wide=True)
    runs = {"isotropic": np.geomspace(60, 45, 200), "anisotropic": np.geomspace(60, 40, 200)}
    report.figure(figures.energy_curves(runs, {"bound": 38}), "The loss while a schedule is learned.")
    drawn = pd.DataFrame({"nfe": [5, 7, 9] * 12, "ode_error": np.geomspace(100, 1, 36)})
    drawn["sampler"] = [f"a sampler with a long name, number {i // 3}" for i in range(36)]
    report.figure(figures.error_curves(drawn), "The distance to the converged sample.")
    noise = np.random.default_rng(0).uniform(-1, 1, (40, 8, 8, 3)).astype(np.float32)
    report.mosaics(figures.mosaics({f"plain network: iPNDM-4, NFE {n}": noise for n in (5, 9)}), "Pictures.")
    report.summary(checks, "What the report is about, in a sentence or two, as long as the demo's own.")
    report.write(path)


def test_a_report_is_readable_on_a_telephone(browser: Browser, tmp_path: Path) -> None:
    page(tmp_path / "report.html")
    view = browser.new_page(viewport={"width": WIDTH, "height": 844}, device_scale_factor=2, is_mobile=True)
    view.goto((tmp_path / "report.html").as_uri())
    view.click("text=Terms")
    assert view.evaluate("document.documentElement.scrollWidth") == WIDTH
    sizes = "[...document.querySelectorAll('p, td, dd')].map(x => parseFloat(getComputedStyle(x).fontSize))"
    assert np.min(view.evaluate(sizes)) >= 13
    wide = "[...document.querySelectorAll('.scroll')].map(x => x.clientWidth)"
    assert max(view.evaluate(wide)) <= WIDTH
    verdicts = "[...document.querySelectorAll('td > span')].map(x => x.getBoundingClientRect().right)"
    assert max(view.evaluate(verdicts)) <= WIDTH  # what is asked first is seen without moving the table
    pictures = "[...document.querySelectorAll('.plot, .mosaics img')].map(x => x.getBoundingClientRect())"
    for box in view.evaluate(pictures):
        assert box["left"] >= 0
        assert box["right"] <= WIDTH
        assert box["width"] > 0.9 * (WIDTH - 2 * 0.8 * 16)  # all that there is between the margins
    view.screenshot(path=tmp_path / "page.png", full_page=True)
    view.close()
