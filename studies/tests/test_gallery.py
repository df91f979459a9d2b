"""The gallery of figures."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from matplotlib import pyplot
from PIL import Image

from anisoflight import figures
from studies.gallery import bases, panels
from studies.gallery.page import Gallery

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_gallery_is_one_page_and_its_pictures(tmp_path: Path) -> None:
    pyplot.switch_backend("agg")
    curve = pd.DataFrame({"label": -1, "subspace": 0, "t": [0.0, 200.0, 400.0], "g": [0.001, 1.0, 400.0]})
    gallery = Gallery(tmp_path / "figures")
    gallery.section("Digits & letters", "8 × 8")
    gallery.add("variances", figures.variances(curve), "g < T")
    gallery.add("dct", panels.dct_functions(4, 3), "three functions")
    page = gallery.write().read_text(encoding="utf-8")
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == ["dct.png", "index.html", "variances.png"]
    assert set(re.findall(r'(?:src|href)="([a-z]+:)', page)) == {"data:"}
    assert page.count("<img") == 2
    assert "Digits &amp; letters" in page
    assert "g &lt; T" in page
    assert not pyplot.get_fignums()


def test_the_figures_of_the_classes_bases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A picture of eight components for three classes, and a map of ten, of 12 images a class."""
    rng = np.random.default_rng(5)
    for name in bases.NAMES:
        (tmp_path / "source/train" / name).mkdir(parents=True)
        for i, pixels in enumerate(rng.integers(0, 256, (12, 8, 8, 3), np.uint8)):
            Image.fromarray(pixels).save(tmp_path / "source/train" / name / f"{i}.png")
    monkeypatch.setattr(bases, "COMPONENTS", 8)
    monkeypatch.setattr(sys, "argv", ["bases", str(tmp_path / "source"), "--out", str(tmp_path)])
    bases.main()
    for name in ("paper-6.png", "paper-7.png"):
        with Image.open(tmp_path / name) as picture:
            assert min(picture.size) > 200
            assert len(np.unique(np.asarray(picture.convert("L")))) > 10
