"""`Client.compare`: every cell measured, or its error told; the numbers are those of the samples themselves."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anisoflight
from anisoflight.compare import metrics
from anisoflight.compare.__main__ import main
from anisoflight.compare.bench import PROBE_SEED
from anisoflight.compare.comparison import CONVERGED, label
from anisoflight.images import to_float
from anisoflight.moments import Moments, frechet_distance
from anisoflight.serve import find_binary

ENDPOINT = {"solver": "heun", "second_point": "endpoint"}


@pytest.fixture(scope="module")
def table(client: anisoflight.Client, dataset: str) -> pd.DataFrame:
    return client.compare(
        "digits",
        solvers=["ab", ENDPOINT],
        nfe=[1, 3, 15],
        grids=["schedule", "edm"],
        schedules=[{"edm": {"T": 400}}],
        seeds=2,
        samples=40,
        probes=16,
        reference=dataset,
        features=6,
        progress=False,
    )


def test_a_row_for_every_cell_in_order(table: pd.DataFrame) -> None:
    assert table["solver"].tolist() == (["ab"] * 3 + ["heun endpoint"] * 3) * 2
    assert table["grid"].tolist() == ["schedule"] * 6 + ["edm"] * 6
    assert set(table["schedule"]) == {"edm T=400"}
    assert table["nfe"].tolist() == [1, 3, 15] * 4


def test_numbers_are_those_of_the_samples(client: anisoflight.Client, dataset: str, table: pd.DataFrame) -> None:
    options = {"schedule": {"edm": {"T": 400}}, "dtype": "float32", "progress": False}

    def draw(**more: object) -> np.ndarray:
        return client.sample("digits", **{**options, **more}).images  # pyright: ignore[reportArgumentType]

    row = table[(table["grid"] == "edm") & (table["solver"] == "ab") & (table["nfe"] == 3)].iloc[0]
    probe, exact = draw(n=16, seed=PROBE_SEED, solver="ab", grid="edm", nfe=3), draw(n=16, seed=PROBE_SEED, **CONVERGED)
    assert row["ode_error"] == pytest.approx(100 * np.sqrt(np.mean((probe - exact) ** 2)), rel=1e-5)
    assert row["evaluations"] == 3

    real = to_float(client.dataset(dataset).images)
    features = metrics.principal_features(real, 6)
    moments = Moments.of(features(real))
    found = [
        frechet_distance(Moments.of(features(draw(n=40, seed=seed, solver="ab", grid="edm", nfe=3))), moments)
        for seed in (0, 40)
    ]
    assert row["frechet"] == pytest.approx(np.mean(found), rel=1e-4)
    assert (row["frechet_min"], row["frechet_max"]) == pytest.approx((min(found), max(found)), rel=1e-4)
    assert row["frechet_spread"] == pytest.approx((max(found) - min(found)) / 2, rel=1e-3, abs=1e-6)
    assert row["seconds"] > 0


def test_a_cell_that_cannot_be_is_told_not_raised(client: anisoflight.Client) -> None:
    table = client.compare("digits", solvers=["unipc", {"solver": "ab", "order": 9}], nfe=[5], probes=4, progress=False)
    good, bad = table.iloc[0], table.iloc[1]
    assert (good["code"], bad["code"]) == ("", "BAD_REQUEST")
    assert "9" in bad["message"]
    assert np.isnan(bad["ode_error"])
    assert np.isnan(good["frechet"])  # no reference was given


def test_what_is_wrong_with_every_cell_is_raised(client: anisoflight.Client) -> None:
    with pytest.raises(KeyError):
        client.compare("no-such-model", solvers=["ab"], nfe=[5], progress=False)
    with pytest.raises(KeyError):
        client.compare("digits", solvers=["ab"], nfe=[5], schedules=["no-such-schedule"], progress=False)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"solvers": "ab"}, "solvers must be a list of one or more, got 'ab'"),
        ({"nfe": 5}, "nfe must be a list"),
        ({"grids": []}, "grids must be a list"),
        ({"seeds": 0}, "seeds ≥ 1"),
        ({"samples": 1}, "samples ≥ 2"),
    ],
)
def test_lists_that_are_none_are_refused(client: anisoflight.Client, wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        client.compare("digits", **{"solvers": ["ab"], "nfe": [5], "progress": False, **wrong})


def test_guidance_is_of_every_row_and_of_the_converged_solution(
    client: anisoflight.Client, capsys: pytest.CaptureFixture[str]
) -> None:
    guided: dict[str, Any] = {"guidance": 2.0, "guidance_interval": (0.3, 5.0)}
    frame = client.compare("digits", solvers=[ENDPOINT], nfe=[9], probes=8, **guided, progress=False)
    asked: dict[str, Any] = {"n": 8, "seed": PROBE_SEED, "dtype": "float32", "progress": False, **guided}
    drawn = client.sample("digits", nfe=9, **ENDPOINT, **asked)
    assert frame["nfe"].tolist() == [9]
    assert 9 < frame["evaluations"].iloc[0] == drawn.nfe[0] < 18
    exact = client.sample("digits", **CONVERGED, **asked)
    assert frame["ode_error"].iloc[0] == metrics.ode_error(drawn.images, exact.images)
    words = ["--model", "digits", "--server", client.location, "--solvers", "heun:second_point=endpoint", "--nfe", "9"]
    words += ["--probes", "8", "--guidance", "2", "--guidance-interval", "[0.3, 5]", "--json"]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)[0]["ode_error"] == frame["ode_error"].iloc[0]


def test_a_reference_in_another_layout_is_the_same_reference(client: anisoflight.Client, dataset: str) -> None:
    stored = client.dataset(dataset)
    client.put_dataset("blocks-chw", np.moveaxis(stored.images, 3, 1).copy(), stored.labels, replace=True)
    options = {"solvers": ["ab"], "nfe": [3], "seeds": 1, "samples": 20, "probes": 4, "features": 5, "progress": False}
    one, other = (client.compare("digits", reference=name, **options) for name in (dataset, "blocks-chw"))  # pyright: ignore[reportArgumentType]
    for column in ("ode_error", "frechet"):
        assert one[column][0] == pytest.approx(other[column][0], rel=1e-4)


def test_the_command_line_measures_the_same(client: anisoflight.Client, dataset: str, tmp_path: Path) -> None:
    out = tmp_path / "table.csv"
    words = [find_binary(), "compare", "--model", "digits", "--server", client.location, "--dataset", dataset]
    words += ["--solvers", "heun:second_point=endpoint,ab:order=9,ipndm:order=3", "--seeds", "2", "--samples", "40"]
    words += ["--nfe", "3,9", "--grids", "schedule,edm", "--probes", "16", "--components", "6", "--out", str(out)]
    environment = {**os.environ, "ANISOFLIGHT_PYTHON": sys.executable}
    done = subprocess.run([*words, "--json"], capture_output=True, text=True, timeout=120, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    theirs = pd.DataFrame(rows)
    ours = client.compare(
        "digits",
        solvers=[ENDPOINT, {"solver": "ab", "order": 9}, {"solver": "ipndm", "order": 3}],
        nfe=[3, 9],
        grids=["schedule", "edm"],
        seeds=2,
        samples=40,
        probes=16,
        reference=dataset,
        features=6,
        progress=False,
    )
    assert theirs.columns.tolist() == ours.columns.tolist()
    assert theirs["schedule"].tolist() == ["own"] * len(ours)
    assert theirs["solver"].tolist()[:3] == ["heun:second_point=endpoint"] * 2 + ["ab:order=9"]
    for column in ("grid", "nfe", "code", "message"):
        assert theirs[column].tolist() == ours[column].tolist(), column
    figures = ["evaluations", "ode_error", "frechet", "frechet_min", "frechet_max", "frechet_spread"]
    for column in figures:
        np.testing.assert_array_equal(theirs[column].to_numpy(float), ours[column].to_numpy(float), column)
    assert rows[2]["code"] == "BAD_REQUEST"
    assert rows[2]["frechet"] is None
    stored = pd.read_csv(out)
    np.testing.assert_array_equal(stored[figures].to_numpy(float), theirs[figures].to_numpy(float))


def test_the_command_prints_a_table(client: anisoflight.Client, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--model", "digits", "--nfe", "3", "--solvers", "ab,ab:order=9", "--probes", "4"]
    assert main([*words, "--server", client.location]) == 0
    head, good, bad = capsys.readouterr().out.splitlines()
    assert head.split() == ["SCHEDULE", "GRID", "SOLVER", "NFE", "ODE", "ERROR", "FRECHET", "S/1000"]
    assert good.split()[:4] == ["own", "schedule", "ab", "3"]
    assert good.split()[5] == "-"  # no data set was named
    assert bad.split()[:6] == ["own", "schedule", "ab:order=9", "3", "-", "-"]
    assert "9" in bad.split("-", 3)[-1]


def test_labels() -> None:
    assert label(None) == "model's own"
    assert label({"solver": "ab", "order": 2, "corrector": True, "lower_order_final": False}) == (
        "ab order=2 corrector no lower_order_final"
    )


def test_plot(table: pd.DataFrame) -> None:
    for column in ("ode_error", "frechet"):
        ax = anisoflight.plot_comparison(table, column)
        assert len(ax.get_legend().get_texts()) == 4
        assert ax.get_yscale() == "log"


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["--model", "no-such-model"], 1, "no-such-model"),
        (["--schedules", "no-such-schedule"], 1, "no-such-schedule"),
        (["--dataset", "no-such-set"], 1, "no-such-set"),
        (["--nfe", "five"], 2, "--nfe"),
        (["--seeds", "0"], 2, "must be at least 1"),
        (["--solvers", "ab:2"], 1, "NAME:FIELD=VALUE"),
        (["--out", "nowhere/a.csv"], 1, "there is no folder nowhere"),
    ],
)
def test_the_command_refuses(
    client: anisoflight.Client, words: list[str], status: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        found = main(["--server", client.location, "--model", "digits", *words])
    except SystemExit as wrong_usage:
        found = wrong_usage.code
    assert found == status
    assert message in capsys.readouterr().err
