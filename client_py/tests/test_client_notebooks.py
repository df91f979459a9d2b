"""Every notebook is valid, carries no outputs, runs from top to bottom, and shows what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest

from anisoflight.bench import Reference
from anisoflight.metrics import principal_features

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_clean(path: Path) -> None:
    notebook: Any = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert not cell.outputs
            assert cell.execution_count is None


def check_quickstart(names: dict[str, Any], axes: list[Any]) -> None:
    """The model that it saves is good, and its schedules are drawn from t = 0 to T, from σ = 20."""
    options = {"schedule": "edm-20", "nfe": 17, "second_point": "endpoint", "dtype": "float32", "progress": False}
    samples = names["client"].sample("digits", n=1000, seed=5, **options).images
    reference = Reference(principal_features(names["images"], 40), names["images"])
    assert reference.distance(samples) <= 0.5
    assert set(names["samples"].nfe) == {17}
    assert names["before"].nfe[0] == names["after"].nfe[0] == 9

    (schedules,) = (ax for ax in axes if "g(t)" in ax.get_ylabel())
    assert [text.get_text() for text in schedules.get_legend().get_texts()] == ["geodesic", "EDM's"]
    assert schedules.get_xlim() == pytest.approx((0, 1), abs=0.1)
    for line in schedules.get_lines():
        t, g = line.get_data()
        assert (t[0], t[-1], g[-1]) == pytest.approx((0, 1, 20**2))
        assert np.ptp(t) == 1


CHECKS = {"quickstart": check_quickstart}
"""By the name of the notebook; called before its last cell, which ends its server."""


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANISOFLIGHT_QUICKSTART_STEPS", "300")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    notebook: Any = nbformat.read(path, as_version=4)
    code = [
        compile(cell.source, f"{path.name}[{number}]", "exec")
        for number, cell in enumerate(notebook.cells)
        if cell.cell_type == "code"
    ]
    names: dict[str, Any] = {"__name__": "__main__"}
    try:
        for cell in code[:-1]:
            exec(cell, names)
        CHECKS[path.stem](names, [ax for number in pyplot.get_fignums() for ax in pyplot.figure(number).axes])
        exec(code[-1], names)
    finally:
        pyplot.close("all")
        if "client" in names:
            names["client"].close()
