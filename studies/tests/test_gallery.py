"""The gallery of figures."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pandas as pd
from matplotlib import pyplot

from anisoflight import figures
from studies.gallery import panels
from studies.gallery.page import Gallery

if TYPE_CHECKING:
    from pathlib import Path


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
