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
from anisoflight.widgets import LossCurve, Previews, ScheduleEditor
from anisoflight.widgets.loss import MOST, _shown

TWO_PATHS = {"t": [0, 200, 400] * 2, "g": [1e-9, 1.0, 400, 1e-9, 2.0, 400], "subspace": [0] * 3 + [1] * 3}


@pytest.fixture(scope="module")
def begin(client: anisoflight.Client) -> anisoflight.Schedule:
    return client.make_schedule("begin", "edm", T=400, replace=True)


def moved(editor: ScheduleEditor, knot: int, factor: float, subspace: int = 0) -> list[dict[str, Any]]:
    """The editor's paths with σ of one knot changed."""
    paths = [{**path, "sigma": list(path["sigma"])} for path in editor.paths]
    paths[subspace]["sigma"][knot] *= factor
    return paths


def test_the_editor_measures_what_the_server_measures(client: anisoflight.Client, begin: anisoflight.Schedule) -> None:
    editor = ScheduleEditor(client, begin, dataset="blocks", model="digits", nfe=5, solver="ipndm", probes=16)
    assert editor.schedule.name == "begin-drawn"
    drawn = {"before": "begin", "now": "begin-drawn"}
    bench = client.bench_schedule("blocks", list(drawn.values()), ["ipndm"], [5], progress=False)
    whole = bench[bench["subspace"] == -1].set_index("schedule")["w2_squared"]
    table = client.compare(
        "digits", solvers=["ipndm"], nfe=[5], schedules=["begin"], probes=16, seeds=1, progress=False
    )
    for column, name in drawn.items():
        assert editor.measures[column]["W₂²"] == whole[name]
    assert editor.measures["before"]["ODE error"] == pytest.approx(table["ode_error"].iloc[0], rel=1e-5)
    knots = editor.knots
    assert knots["t"].iloc[[0, -1]].tolist() == [0, 400]
    assert knots["g"].iloc[-1] == pytest.approx(400)


def test_a_drag_moves_the_schedule_and_its_measures(client: anisoflight.Client, begin: anisoflight.Schedule) -> None:
    editor = ScheduleEditor(client, begin, dataset="blocks", model="digits", nfe=5, probes=8)
    before = editor.measures["now"]
    paths = moved(editor, 4, 1.5)
    editor.edit = {"number": 7, "paths": paths, "nfe": 5, "solver": "ipndm"}
    assert editor.result["number"] == 7
    assert editor.paths == paths
    assert (editor.measures["now"] != before).all()
    on_server = editor.schedule.knots()
    assert on_server["g"].to_numpy() == pytest.approx(np.square(paths[0]["sigma"]))
    saved = editor.save("drawn", replace=True)
    assert saved.knots().equals(on_server)
    editor.reset()
    assert editor.measures["now"].to_numpy() == pytest.approx(before.to_numpy())


def test_other_solvers_and_evaluations_are_measured_anew(
    client: anisoflight.Client, begin: anisoflight.Schedule
) -> None:
    editor = ScheduleEditor(client, begin, dataset="blocks", nfe=5)
    five = editor.measures["before"]["W₂²"]
    editor.nfe = 17
    assert editor.measures["before"]["W₂²"] < five
    editor.solver = "heun"
    bench = client.bench_schedule("blocks", ["begin"], ["heun"], [17], progress=False)
    assert editor.measures["before"]["W₂²"] == bench.loc[bench["subspace"] == -1, "w2_squared"].iloc[0]


def test_what_the_server_refuses_is_told(client: anisoflight.Client, begin: anisoflight.Schedule) -> None:
    editor = ScheduleEditor(client, begin, dataset="blocks", nfe=5)
    paths = moved(editor, 4, 1e6)
    editor.edit = {"number": 1, "paths": paths, "nfe": 5, "solver": "ipndm"}
    assert editor.result["number"] == 1
    assert editor.result["measures"] == []
    assert "must" in editor.result["message"]
    editor.edit = {"number": 2, "paths": editor.original, "nfe": 5, "solver": "ipndm"}
    assert editor.result["message"] == ""


def test_subspaces_are_drawn_apart(client: anisoflight.Client) -> None:
    client.put_schedule("bands", TWO_PATHS, basis="dct", k=16, replace=True)
    editor = ScheduleEditor(client, "bands", dataset="blocks", model="digits", nfe=4, solver="euler", probes=8)
    assert [path["name"] for path in editor.paths] == ["subspace 0", "subspace 1"]
    before = editor.schedule.knots()
    editor.paths = moved(editor, 3, 1.3, subspace=1)
    after = editor.schedule.knots()
    same = before["g"] == after["g"]
    assert same[before["subspace"] == 0].all()
    assert not same[before["subspace"] == 1].all()
    assert editor.schedule.file["family"]["basis"] == "dct"


def test_vectors_of_a_basis_come_along(client: anisoflight.Client) -> None:
    vectors = np.linalg.qr(np.random.default_rng(0).standard_normal((64, 4)))[0].T.reshape(4, 8, 8)
    client.put_basis("few-vectors", {-1: vectors}, replace=True)
    client.put_schedule("on-vectors", TWO_PATHS, basis="few-vectors", replace=True)
    editor = ScheduleEditor(client, "on-vectors", dataset="blocks", nfe=4, solver="euler", knots=3)
    drawn = editor.schedule.vectors()
    assert drawn is not None
    assert np.allclose(drawn[-1], vectors)


def test_the_editor_says_what_it_needs(client: anisoflight.Client) -> None:
    client.put_schedule("drawn-by-class", {"label": [0, 0, 1, 1], "t": [0, 4] * 2, "g": [1e-9, 4] * 2}, replace=True)
    cases: tuple[tuple[str, dict[str, Any], str], ...] = (
        ("edm", {}, "give one"),
        ("edm", {"dataset": "blocks", "knots": 2}, "knots must be at least 3, got 2"),
        ("drawn-by-class", {"dataset": "blocks"}, "schedule must have the same paths for all classes"),
    )
    for name, options, message in cases:
        with pytest.raises(BadRequestError, match=message):
            ScheduleEditor(client, name, **options)


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


@pytest.mark.parametrize("widget", [ScheduleEditor, Previews, LossCurve])
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
