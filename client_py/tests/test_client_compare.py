"""`Client.compare`: every cell measured, or its error told; the numbers are those of the samples themselves."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anisoflight
from anisoflight import metrics
from anisoflight.bench import PROBE_SEED
from anisoflight.comparison import CONVERGED, label
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


def test_the_error_is_least_with_the_most_evaluations(table: pd.DataFrame) -> None:
    for _, part in table.groupby(["grid", "solver"]):
        assert part["ode_error"].iloc[-1] == part["ode_error"].min()


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
        ({"solvers": "ab"}, "solvers must be a list of at least one, not 'ab'"),
        ({"nfe": 5}, "nfe must be a list"),
        ({"grids": []}, "grids must be a list"),
        ({"seeds": 0}, "seeds ≥ 1"),
        ({"samples": 1}, "samples ≥ 2"),
    ],
)
def test_lists_that_are_none_are_refused(client: anisoflight.Client, wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        client.compare("digits", **{"solvers": ["ab"], "nfe": [5], "progress": False, **wrong})


def test_a_reference_in_another_layout_is_the_same_reference(client: anisoflight.Client, dataset: str) -> None:
    stored = client.dataset(dataset)
    client.put_dataset("blocks-chw", np.moveaxis(stored.images, 3, 1).copy(), stored.labels, replace=True)
    options = {"solvers": ["ab"], "nfe": [3], "seeds": 1, "samples": 20, "probes": 4, "features": 5, "progress": False}
    one, other = (client.compare("digits", reference=name, **options) for name in (dataset, "blocks-chw"))  # pyright: ignore[reportArgumentType]
    for column in ("ode_error", "frechet"):
        assert one[column][0] == pytest.approx(other[column][0], rel=1e-4)


def test_the_command_line_measures_the_same(
    client: anisoflight.Client, dataset: str, data_folder: Path, tmp_path: Path
) -> None:
    for part in ("models", "datasets"):
        shutil.copytree(data_folder / part, tmp_path / part)
    flags = {"nfe": "3,9", "grids": "schedule,edm", "seeds": "2", "samples": "40", "probes": "16", "components": "6"}
    command = [find_binary(), "compare", "--model", "digits", "--dataset", dataset, "--data", str(tmp_path), "--json"]
    command += [
        "--solvers",
        "heun:second_point=endpoint,ab:order=9,ipndm:order=3",
        "--out",
        str(tmp_path / "table.csv"),
    ]
    command += [word for name, text in flags.items() for word in (f"--{name}", text)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    theirs = pd.DataFrame(json.loads(done.stdout))
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
    for column in ("grid", "nfe", "evaluations", "code"):
        assert theirs[column].fillna(-1).tolist() == ours[column].fillna(-1).tolist(), column
    for column in ("ode_error", "frechet", "frechet_min", "frechet_max", "frechet_spread"):
        assert theirs[column].to_numpy(float) == pytest.approx(ours[column].to_numpy(float), rel=1e-4, nan_ok=True), (
            column
        )
    assert pd.read_csv(tmp_path / "table.csv")["frechet"].tolist() == pytest.approx(
        theirs["frechet"].tolist(), nan_ok=True
    )


def test_labels() -> None:
    assert label(None) == "model's own"
    assert label({"solver": "ab", "order": 2, "afs": True, "lower_order_final": False}) == (
        "ab order=2 afs no lower_order_final"
    )


def test_plot(table: pd.DataFrame) -> None:
    for column in ("ode_error", "frechet"):
        ax = anisoflight.plot_comparison(table, column)
        assert len(ax.get_legend().get_texts()) == 4
        assert ax.get_yscale() == "log"
