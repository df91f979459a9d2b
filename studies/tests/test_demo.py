"""The demo in small, and its measures on answers known in closed form."""

from __future__ import annotations

import html
import re
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from anisoflight.fid import builtin
from anisoflight.fid.builtin import classifier_features
from studies.demo import __main__ as demo
from studies.demo import data, stages
from studies.demo.distances import Bench, Reference, Sampler
from studies.demo.report import pm
from studies.features import edge_features

if TYPE_CHECKING:
    from pathlib import Path


def test_classifier_features_are_those_of_the_recipe() -> None:
    digits = data.digits()
    features, net = classifier_features(digits.train.images, digits.train.labels)
    assert features(digits.train.images).var(axis=0).sum() == pytest.approx(64)
    assert net.score(builtin.flat(digits.test.images), digits.test.labels) > 0.97
    real = Reference(features, digits.test.images).distance(digits.train.images)
    assert real == pytest.approx(0.74, abs=0.02)  # the floor that the recipe states


def test_principal_features_keep_all_variance_with_all_components() -> None:
    patches = data.patches(per_class=100)
    flat = patches.train.images.reshape(200, -1).astype(np.float64)
    full = builtin.principal_features(patches.train.images, 192)(patches.train.images)
    few = builtin.principal_features(patches.train.images, 5)(patches.train.images)
    assert full.var(axis=0).sum() == pytest.approx(flat.var(axis=0).sum())
    assert np.all(np.diff(few.var(axis=0)) <= 0)
    assert few.shape == (200, 5)


def test_edge_features_see_more_than_mean_and_covariance() -> None:
    """To principal components a Gaussian of the same moments is the data; to edges it is not."""
    rng = np.random.default_rng(3)
    signs = rng.choice([-0.5, 0.5], size=(4000, 8, 8, 1)).astype(np.float32)
    normal = (0.5 * rng.standard_normal(signs.shape)).astype(np.float32) / 4
    real, same, law = signs[:2000] / 4, signs[2000:] / 4, normal[:2000]
    linear = Reference(builtin.principal_features(real, 64), real)
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


def test_data_sets_are_the_same_every_time() -> None:
    digits, patches = data.digits(), data.patches(per_class=10)
    assert digits.train.images.shape == (1297, 8, 8, 1)
    assert len(digits.test.images) == 500
    assert patches.train.images.shape == patches.test.images.shape == (20, 8, 8, 3)
    for split in (digits.train, digits.test, patches.train):
        assert split.images.dtype == np.float32
        assert np.abs(split.images).max() <= 1
    assert np.array_equal(patches.train.images, data.patches(per_class=10).train.images)


def test_the_demo_opens_with_its_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In small. Its sentence has the numbers of its table; a second run trains and searches nothing."""
    monkeypatch.setattr(demo, "NFES", (3,))
    for name, small in {"KIMG": 0.512, "SAMPLES": 64, "COUNT": 40}.items():
        monkeypatch.setattr(demo, name, small)
    small_patches = data.patches(per_class=100)
    monkeypatch.setattr(demo.data, "patches", lambda: small_patches)
    demo.main(["--out", str(tmp_path)])
    *_, sentence, last = capsys.readouterr().out.splitlines()
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert last == str(tmp_path / "report.html")
    order = [page.index(text) for text in ("<h1>", "iPNDM-4, 3", "few, 3", "Heun, 35", html.escape(sentence), "<table")]
    assert order == sorted(order)
    assert set(re.findall(r'(?:src|href)="([a-z]+:)', page)) == {"data:"}
    cells = [html.unescape(cell) for cell in re.findall(r"<td>(.*?)</td>", page)]
    samplers, evaluations, _, edges = (cells[i::4] for i in range(4))
    assert samplers == [demo.STANDARD, demo.FEW, demo.CONVERGED, demo.REAL]
    assert evaluations == ["3", "3", "35", "0"]
    assert all(distance in sentence for distance in edges)
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("data/models/*/*")}
    demo.main(["--out", str(tmp_path)])
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("data/models/*/*")} == kept
    assert capsys.readouterr().out.splitlines()[-2] == sentence


def test_spread_is_half_the_range() -> None:
    assert pm([1.0, 2.0, 1.5]) == "1.50 ± 0.50"
    assert pm([2.0]) == "2.00"


def test_recipes_are_the_files_in_configs() -> None:
    assert stages.recipe("digits-isotropic")["T"] == 400
    with pytest.raises(SystemExit, match="make demo"):
        stages.recipe("no-such-recipe")


def test_another_count_of_evaluations_is_refused() -> None:
    with pytest.raises(RuntimeError, match="asked for 5 evaluations, the server counted 6"):
        demo.require_count("s", 5, 6)


class _Client:
    """Samples that are off by 0.1 / nfe."""

    def sample(self, _model: str, *, n: int, seed: int, nfe: int, **_: object) -> SimpleNamespace:
        noise = np.random.default_rng(seed).standard_normal((n, 2, 2, 1)).clip(-3, 3) / 4
        return SimpleNamespace(images=noise + 0.1 / nfe, nfe=np.full(n, nfe, np.int32))


def test_distances_are_those_of_what_was_put_in() -> None:
    real = (np.random.default_rng(5).standard_normal((500, 2, 2, 1)).clip(-3, 3) / 4).astype(np.float32)
    bench = Bench(_Client(), {"FD": Reference(builtin.flat, real)}, seeds=(1, 2), count=400)  # pyright: ignore[reportArgumentType]
    one, five = (bench.distances(Sampler("s", "m", {"nfe": nfe})) for nfe in (1, 5))
    means = [np.mean(found.by_reference["FD"]) for found in (one, five)]
    assert means[0] - means[1] == pytest.approx(4 * (0.01 - 0.0004), rel=0.5)
    assert (one.evaluations, five.evaluations) == (1, 5)
