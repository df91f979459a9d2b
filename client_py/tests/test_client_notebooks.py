"""Every notebook is valid, runs from top to bottom, and shows what it says; its outputs are those of such a run.

`python client_py/tests/notebooks.py NAME` refreshes the outputs.
"""

import contextlib
import io
import re
import tempfile
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest

from anisoflight.fid.builtin import principal_features
from anisoflight.moments import Moments, frechet_distance

pytestmark = pytest.mark.slow

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
TORCH = ["torch-pipeline"]
"""Run by client_py/integration, which has torch."""


WITHOUT_OUTPUTS = ["learned", "schedules", "torch-pipeline"]
"""learned and schedules take half an hour, torch-pipeline needs torch."""
MOST_BYTES = 300_000
"""Of a notebook with its outputs."""


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_clean(path: Path) -> None:
    """It has all outputs, of one run, or none: no errors, progress, widgets, or paths of the machine."""
    notebook: Any = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = code_cells(notebook)
    outputs = [output for cell in cells for output in cell.outputs]
    if path.stem in WITHOUT_OUTPUTS:
        assert not outputs
        assert {cell.execution_count for cell in cells} == {None}
        return
    assert [cell.execution_count for cell in cells] == [*range(1, len(cells) + 1)]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert path.stat().st_size <= MOST_BYTES
    assert "widgets" not in notebook.metadata
    for output in outputs:
        assert output.output_type in ("display_data", "execute_result", "stream")
        assert output.get("name") != "stderr"
        assert not any("widget" in kind for kind in output.get("data", {}))
        for folder in (tempfile.gettempdir(), str(Path.home()), str(path.parents[2])):
            assert f"{folder}/" not in str(output)


def check_quickstart(names: dict[str, Any], axes: list[Any]) -> None:
    """The model that it saves is good, and its schedules are drawn from t = 0 to T, from σ = 20."""
    options = {"schedule": "edm-20", "nfe": 17, "second_point": "endpoint", "dtype": "float32", "progress": False}
    samples = names["client"].sample("digits", n=1000, seed=5, **options).images
    features = principal_features(names["images"], 40)
    assert frechet_distance(Moments.of(features(samples)), Moments.of(features(names["images"]))) <= 0.5
    assert set(names["samples"].nfe) == {17}
    edm, ipndm, few, converged = names["distances"].values()
    assert few < 0.5 * edm
    assert few < 1.1 * ipndm
    assert converged < edm

    (schedules,) = (ax for ax in axes if "g(t)" in ax.get_ylabel())
    assert [text.get_text() for text in schedules.get_legend().get_texts()] == ["geodesic", "EDM's"]
    assert schedules.get_xlim() == pytest.approx((0, 1), abs=0.1)
    for line in schedules.get_lines():
        t, g = line.get_data()
        assert (t[0], t[-1], g[-1]) == pytest.approx((0, 1, 20**2))
        assert np.ptp(t) == 1


def check_a_plan(names: dict[str, Any], axes: list[Any]) -> None:
    """Its last panel has samples near each of the points."""
    assert [ax.get_title() for ax in axes] == ["σ = 20", "σ = 6.6", "σ = 1.77", "σ = 0.349", "σ = 0.0421", "samples"]
    distances = np.linalg.norm(names["loop"].x[:, None] - names["points"], axis=2)
    assert np.mean(distances.min(axis=1) < 0.05) > 0.95
    assert np.ptp(np.bincount(distances.argmin(axis=1))) < 100
    np.testing.assert_array_equal(axes[-1].collections[0].get_offsets(), names["loop"].x)


def check_anisotropy(names: dict[str, Any], axes: list[Any]) -> None:
    """Its parts add up, most of the variance is in P₁, two paths are closer than one, and iPNDM-4 than both."""
    assert np.allclose(sum(names["parts"]), np.moveaxis(names["images"][:6], 3, 1), atol=1e-5)
    assert 0.6 < names["variance"][0] / sum(names["variance"]) < 1
    distances = [re.findall(r"with ([\d.]+) times", names[path].info["summary"]) for path in ("one", "two")]
    (one, than_ipndm, _), (two, than_ipndm_too, _) = (map(float, found) for found in distances)
    assert 3.5 < one / two < 4.5
    assert one < 1
    assert min(than_ipndm, than_ipndm_too) > 10
    (ratio,) = (ax for ax in axes if ax.get_ylabel() == "g₁ / g₂")
    assert np.ptp(ratio.get_lines()[0].get_ydata()) > 0.1
    assert sum(len(ax.images) for ax in axes) == 36


def check_your_data(names: dict[str, Any], axes: list[Any]) -> None:
    assert names["client"].datasets()["rows"].tolist() == [400]
    assert names["pieces"].images.shape == (400, 8, 8, 3)
    assert names["rows"]["loss"].iloc[-5:].mean() < names["rows"]["loss"].iloc[:5].mean()
    assert names["samples"].labels.tolist() == [0] * 10 + [1] * 10
    assert np.ptp(names["samples"].images) > 50
    assert sum(len(ax.images) for ax in axes) == 40


def check_edm_checkpoint(names: dict[str, Any], axes: list[Any]) -> None:
    """The loop of EDM's program draws what the server draws."""
    assert names["difference"] < 2e-3
    assert names["sigmas"][0] == pytest.approx(80)
    assert names["sigmas"][-1] == 0
    assert (np.diff(names["sigmas"]) < 0).all()
    assert len(names["table"]) == 8
    assert (names["table"]["ode_error"] > 0).all()


def check_fid(names: dict[str, Any], axes: list[Any]) -> None:
    rows = names["rows"]
    assert len(rows) == 2 * 3 * 3
    mean = rows.groupby(["method", "nfe"])["frechet"].mean()
    assert mean["geodesic", 9] < mean["EDM's grid", 9]
    assert mean["geodesic", 17] < mean["geodesic", 5]
    assert not rows["comparable"].any()
    assert axes[-1].get_xlabel() == "evaluations of the network"


def check_schedules(names: dict[str, Any], axes: list[Any]) -> None:
    """At nine evaluations the geodesic is closer to the data than EDM's levels, though nothing was set for it."""
    table = names["table"]
    assert table.loc["Heun, geodesic", 9] < 0.9 * table.loc["Heun, EDM's levels", 9]
    assert table.notna().sum(axis=1).to_dict() == {
        "Heun, EDM's levels": 3, "Heun, geodesic": 3, "iPNDM-4, EDM's levels": 3, "few": 1, "Heun, learned": 3
    }  # fmt: skip
    assert [ax.get_title() for ax in axes[-2:]] == ["EDM's levels", "geodesic"]
    assert all(len(ax.images) == 1 for ax in axes[-2:])


def check_learned(names: dict[str, Any], axes: list[Any]) -> None:
    """Two paths in two colours, each subspace on its way from noise, and samples no worse than those of the start."""
    (left, *reverse) = (ax for ax in axes if "g(t)" in ax.get_ylabel())
    for j, line in enumerate(left.get_lines()):
        own = names["learned"].evaluate(points=513)
        np.testing.assert_allclose(line.get_ydata(), own[own["subspace"] == j]["g"])
    assert len({line.get_color() for line in left.get_lines()}) == 2
    assert [len(ax.get_lines()) for ax in reverse] == [1, 2]
    assert [ax.get_ylabel() for ax in axes if ax.images and ax.get_ylabel()] == ["$x_t$", "$P_1x_t$", "$P_2x_t$"] * 2
    assert sum(len(ax.images) for ax in axes) == 2 * 3 * 8 + 2
    table = names["table"]
    assert set(table["nfe"]) == {9}
    assert table["frechet"]["learned: Heun, its two paths"] < 1.1 * table["frechet"]["start: Heun, geodesic"]
    assert [ax.get_ylabel() for ax in axes[-2:]] == ["$\\sqrt{g_1 g_2}$", "$g_1 / g_2$"]


def check_your_own_solver(names: dict[str, Any], axes: list[Any]) -> None:
    assert names["agreement"] < 1e-3
    for solver, errors in names["errors"].items():
        assert errors == sorted(errors, reverse=True), solver
    assert names["errors"]["heun"][-1] < names["errors"]["euler"][-1] / 2
    assert names["errors"]["adams_bashforth"][-1] < names["errors"]["euler"][-1]
    assert [len(line.get_xdata()) for line in axes[-1].get_lines()] == [4, 4, 4]


CHECKS = {
    "a-plan": check_a_plan,
    "anisotropy": check_anisotropy,
    "edm-checkpoint": check_edm_checkpoint,
    "fid": check_fid,
    "learned": check_learned,
    "quickstart": check_quickstart,
    "schedules": check_schedules,
    "your-data": check_your_data,
    "your-own-solver": check_your_own_solver,
}
"""By the name of the notebook; called before its last cell, which ends its server if it has one."""


@pytest.mark.parametrize("path", [path for path in NOTEBOOKS if path.stem not in TORCH], ids=lambda path: path.stem)
def test_notebook_runs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"QUICKSTART_STEPS": 300, "NOTEBOOK_STEPS": 40, "NOTEBOOK_SAMPLES": 300}.items():
        monkeypatch.setenv(f"ANISOFLIGHT_{name}", str(value))
    monkeypatch.chdir(path.parent)
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    cells = code_cells(nbformat.read(path, as_version=4))
    code = [compile(cell.source, f"{path.name}[{number}]", "exec") for number, cell in enumerate(cells)]
    names: dict[str, Any] = {"__name__": "__main__"}
    try:
        for cell, compiled in zip(cells[:-1], code, strict=False):
            figures, printed = len(pyplot.get_fignums()), io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compiled, names)
            if path.stem not in WITHOUT_OUTPUTS:
                drawn = sum("image/png" in output.get("data", {}) for output in cell.outputs)
                assert drawn == len(pyplot.get_fignums()) - figures, cell.source
                assert any(output.get("name") == "stdout" for output in cell.outputs) == bool(printed.getvalue())
        CHECKS[path.stem](names, [ax for number in pyplot.get_fignums() for ax in pyplot.figure(number).axes])
        exec(code[-1], names)
    finally:
        pyplot.close("all")
        if "client" in names:
            names["client"].close()
