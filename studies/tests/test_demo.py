"""The demo's measures and report, on answers known in closed form. `make demo` itself is run by people."""

from __future__ import annotations

import re
from contextlib import nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from anisoflight.compare import metrics
from anisoflight.compare.bench import Reference
from anisoflight.compare.metrics import classifier_features
from studies.demo import __main__ as demo
from studies.demo import data, figures, stages
from studies.demo.checks import Check, Checks, missing
from studies.demo.energy import Energy
from studies.demo.report import Report, pm
from studies.features import clipped_gaussian, edge_features
from studies.measuring import require_count

if TYPE_CHECKING:
    from pathlib import Path


def test_classifier_features_are_those_of_the_recipe() -> None:
    digits = data.digits()
    features, net = classifier_features(digits.train.images, digits.train.labels)
    assert features(digits.train.images).var(axis=0).sum() == pytest.approx(64)
    assert net.score(metrics.flat(digits.test.images), digits.test.labels) > 0.97
    real = Reference(features, digits.test.images).distance(digits.train.images)
    assert real == pytest.approx(0.74, abs=0.02)  # the floor that the recipe states


def test_principal_features_keep_all_variance_with_all_components() -> None:
    patches = data.patches(per_class=100)
    flat = patches.train.images.reshape(200, -1).astype(np.float64)
    full = metrics.principal_features(patches.train.images, 192)(patches.train.images)
    few = metrics.principal_features(patches.train.images, 5)(patches.train.images)
    assert full.var(axis=0).sum() == pytest.approx(flat.var(axis=0).sum())
    assert np.all(np.diff(few.var(axis=0)) <= 0)
    assert few.shape == (200, 5)


def test_edge_features_see_more_than_mean_and_covariance() -> None:
    """To principal components a Gaussian of the same moments is the data; to edges it is not."""
    rng = np.random.default_rng(3)
    signs = rng.choice([-0.5, 0.5], size=(4000, 8, 8, 1)).astype(np.float32)
    normal = (0.5 * rng.standard_normal(signs.shape)).astype(np.float32) / 4
    real, same, law = signs[:2000] / 4, signs[2000:] / 4, normal[:2000]
    linear = Reference(metrics.principal_features(real, 64), real)
    edges = Reference(edge_features(real), real)
    assert linear.distance(law) < 1.2 * linear.distance(same)
    assert edges.distance(law) > 3 * edges.distance(same)


def test_edge_features_of_a_flat_image_are_those_of_any_other() -> None:
    images = data.patches(per_class=50).train.images
    edges = edge_features(images)
    flat = edges(np.stack([np.full((8, 8, 3), level, np.float32) for level in (-0.5, 0.0, 0.7)]))
    assert flat == pytest.approx(flat[:1].repeat(3, axis=0), abs=1e-9)
    assert flat.shape == (3, 4 * 32)
    assert edges(images).var(axis=0).sum() == pytest.approx(64)
    assert np.array_equal(edges(images), edge_features(images)(images))


def test_the_clipped_gaussian_has_the_moments_of_the_data() -> None:
    rng = np.random.default_rng(4)
    images = (0.1 * rng.standard_normal((500, 3, 3, 2)) @ rng.standard_normal((2, 2)) + 0.2).astype(np.float32)
    drawn = clipped_gaussian(images, 40_000, seed=1)
    assert drawn.shape == (40_000, 3, 3, 2)
    assert np.abs(drawn).max() <= 1
    rows, law = images.reshape(500, -1), drawn.reshape(40_000, -1)
    assert law.mean(axis=0) == pytest.approx(rows.mean(axis=0), abs=5e-3)
    assert np.cov(law.T) == pytest.approx(np.cov(rows.T), abs=3e-3)


def test_data_sets_are_the_same_every_time() -> None:
    digits, patches = data.digits(), data.patches(per_class=10)
    assert digits.train.images.shape == (1297, 8, 8, 1)
    assert len(digits.test.images) == 500
    assert patches.train.images.shape == patches.test.images.shape == (20, 8, 8, 3)
    for split in (digits.train, digits.test, patches.train):
        assert split.images.dtype == np.float32
        assert np.abs(split.images).max() <= 1
    assert np.array_equal(patches.train.images, data.patches(per_class=10).train.images)


def test_what_depends_on_the_network_is_not_broken() -> None:
    checks = Checks()
    checks.at_most("small", 1.0, 1.0)
    checks.at_most("large", 1.01, 1.0)
    checks.at_least("enough", 3.0, 2.0)
    assert [c.met for c in checks.items] == [True, False, True]
    assert checks.broken == []
    assert [c.verdict for c in checks.items] == ["met", "not met on this network", "met"]
    assert "not met on this network" in str(Check("large", 2, 1))


def test_what_holds_on_every_network_is_broken_if_it_is_not_met() -> None:
    checks = Checks()
    checks.at_most("theorem", 1.0, 1.0, required=True)
    checks.at_most("theorem missed", 1.01, 1.0, required=True)
    checks.at_least("no number", float("nan"), 1.0)
    checks.at_least("infinite", float("inf"), 1.0)
    assert [c.claim for c in checks.broken] == ["theorem missed", "no number", "infinite"]
    assert [c.verdict for c in checks.items] == ["met", "BROKEN", "BROKEN", "BROKEN"]


def test_missing_rows_and_numbers_are_counted() -> None:
    table = pd.DataFrame(
        {
            "sampler": ["a", "a", "b"],
            "nfe": [3, 5, 3],
            "FD": [[1.0, 2.0], [1.0, float("nan")], [1.0, 1.0]],
            "ode_error": [1.0, 2.0, float("nan")],
        }
    )
    assert missing(table, ["a"], [3], ["FD", "ode_error"]) == 0
    assert missing(table, ["a"], [3, 5], ["FD", "ode_error"]) == 1
    assert missing(table, ["b"], [3], ["FD"]) == 0
    assert missing(table, ["a", "b"], [3, 5], ["FD", "ode_error"]) == 1 + 1 + 2


@pytest.mark.parametrize(
    ("value_", "required", "differ", "status", "verdict"),
    [
        (0.432, False, 0, 0, "not met on this network"),
        (0.3, False, 0, 0, "met"),
        (0.432, True, 0, 1, "BROKEN"),
        (float("nan"), False, 0, 1, "BROKEN"),
        (0.3, False, 1, 1, "BROKEN"),
    ],
    ids=["luck", "met", "theorem", "NaN", "restart"],
)
def test_the_demo_fails_only_if_something_is_broken(
    value_: float,
    required: bool,
    differ: int,
    status: int,
    verdict: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """The command with experiments that reach these values; the server that was restarted draws other images."""

    def experiment(
        _client: object, _report: Report, checks: Checks, clock: stages.Clock, *_: object, full: bool
    ) -> pd.DataFrame:
        with clock.stage("digits: network"):
            checks.at_most("FD iPNDM-4 / EDM Heun, NFE 9", value_, 0.4, required=required)
        assert not full
        return pd.DataFrame({"sampler": ["few"], "nfe": [3], "FD": [[1.0]], "ode_error": [None], "seconds": [1.0]})

    drawn = iter([np.zeros(4), np.full(4, float(differ))])
    monkeypatch.setattr(demo.digits, "run", experiment)
    monkeypatch.setattr(demo.digits, "redraw", lambda _client, _seed: next(drawn))
    server = nullcontext(SimpleNamespace(info=lambda: {"version": "v", "device": {"name": "cpu"}}))
    monkeypatch.setattr(demo.anisoflight, "serve", lambda **_: server)
    assert demo.main(["--out", str(tmp_path)]) == status
    printed = capsys.readouterr()
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert verdict in printed.out
    assert f">{verdict}</span>" in page
    assert ("broken:" in printed.err) == bool(status)
    assert "1. digits: network" in printed.out
    assert "<td>digits: network</td>" in page


def test_energy_differences_are_paired() -> None:
    common = np.random.default_rng(2).normal(0, 10, 1000)
    a, b = Energy(common + 1), Energy(common)
    assert a.minus(b).mean == pytest.approx(1)
    assert a.minus(b).stderr == pytest.approx(0, abs=1e-12)
    assert a.stderr == pytest.approx(10 / np.sqrt(1000), rel=0.1)


def test_pictures_are_data(tmp_path: Path) -> None:
    t = np.linspace(0, 400, 5)
    table = pd.DataFrame({"subspace": [0] * 5 + [1] * 5, "t": [*t, *t], "g": np.r_[1e-3 + t, 1e-3 + t**2 / 400]})
    uris = [
        figures.schedule_curves({"one": table}, "title"),
        figures.ratio_curve(table),
        figures.energy_curves({"full": [3, 2, 1]}, {"bound": 1}),
        figures.error_curves(pd.DataFrame({"sampler": ["a", "a"], "nfe": [5, 9], "ode_error": [2, 1]})),
    ]
    assert all(uri.startswith("data:image/png;base64,iVBOR") for uri in uris)


def test_report_stands_on_its_own(tmp_path: Path) -> None:
    checks = Checks()
    checks.at_most("a < b & so on", 2, 1)
    report = Report("title")
    report.text("1 < 2")
    report.mosaics(figures.mosaics({"panel": np.zeros((4, 8, 8, 3), np.float32)}), "caption")
    report.table(pd.DataFrame({"x": [1]}), "table")
    report.checks(checks.items)
    report.summary(checks, "what it is about")
    report.write(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert set(re.findall(r'(?:src|href)="([a-z]+:)', page)) == {"data:"}
    assert "1 &lt; 2" in page
    assert "a &lt; b &amp; so on" in page
    assert 'class="unmet"' in page
    order = [
        page.index(text) for text in ("<h1>title", "0 of 1 thresholds met, 0 broken", "what it is about", "1 &lt; 2")
    ]
    assert order == sorted(order)
    assert "<dt>NFE</dt>" in page
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_every_curve_has_a_colour_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"sampler {i}" for i in range(9)]
    table = pd.DataFrame({"sampler": names * 2, "nfe": [5] * 9 + [9] * 9, "ode_error": np.arange(1.0, 19)})
    drawn: list[Axes] = []
    monkeypatch.setattr(figures, "_drawn", drawn.append)
    figures.error_curves(table)
    lines = drawn[0].get_lines()
    assert [line.get_label() for line in lines] == names
    assert len({to_hex(line.get_color()) for line in lines}) == 9


def test_spread_is_half_the_range() -> None:
    assert pm([1.0, 2.0, 1.5]) == "1.50 ± 0.50"
    assert pm([2.0]) == "2.00"


def test_recipes_are_the_files_in_configs() -> None:
    assert stages.recipe("digits-isotropic")["T"] == 400
    with pytest.raises(SystemExit, match="make demo"):
        stages.recipe("no-such-recipe")


def test_another_count_of_evaluations_is_refused() -> None:
    with pytest.raises(RuntimeError, match="asked for 5 evaluations, the server counted 6"):
        require_count("s", 5, 6)
