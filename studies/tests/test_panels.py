"""The gallery's own figures, on small made-up data: what is drawn is what was given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.image import AxesImage

from studies.gallery import panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


T = 400.0
TIMES = np.linspace(0, T, 33)
SLOW, FAST = 1e-3 * (T / 1e-3) ** (TIMES / T), 1e-3 * (T / 1e-3) ** np.sqrt(TIMES / T)


@pytest.fixture(autouse=True)
def agg() -> Iterator[None]:
    pyplot.switch_backend("agg")
    yield
    pyplot.close("all")


def frame(*paths: np.ndarray, label: int = -1) -> pd.DataFrame:
    return pd.concat([pd.DataFrame({"label": label, "subspace": j, "t": TIMES, "g": g}) for j, g in enumerate(paths)])


def labels_of(ax: Axes) -> list[str]:
    return ax.get_legend_handles_labels()[1]


def ys(ax: Axes) -> list[np.ndarray]:
    return [np.asarray(line.get_ydata(), float) for line in ax.get_lines()]


def test_geometric_mean() -> None:
    ax = panels.geometric_mean(frame(FAST, SLOW))
    mean, line = ys(ax)
    np.testing.assert_allclose(mean, np.sqrt(FAST * SLOW))
    np.testing.assert_allclose(line, [1e-3, T])
    assert labels_of(ax) == ["schedule", "log-linear"]


def test_class_ratios_multiply_to_one() -> None:
    ax = panels.class_ratios(pd.concat([frame(SLOW, FAST, label=0), frame(FAST, SLOW, label=1)]))
    *curves, one = ys(ax)
    assert set(one) == {1.0}
    np.testing.assert_allclose(curves[0], np.sqrt(SLOW / FAST))
    np.testing.assert_allclose(curves[0] * curves[2], 1)  # P_1 of both classes
    np.testing.assert_allclose(curves[1] * curves[3], 1)
    assert [line.get_linestyle() for line in ax.get_lines()][:4] == ["-", "--", "-", "--"]
    mean = ys(panels.class_ratios(pd.concat([frame(SLOW, FAST, label=0), frame(FAST, SLOW, label=1)]), mean=True))
    np.testing.assert_allclose(mean[0], 1)  # the subspaces make up for each other here
    with pytest.raises(ValueError, match="shared"):
        panels.class_ratios(frame(SLOW))


def patterns(figure: Figure) -> list[np.ndarray]:
    images = [child for ax in figure.axes for child in ax.get_children() if isinstance(child, AxesImage)]
    return [np.asarray(image.get_array()) for image in images]


def test_dct_functions_are_orthonormal_and_by_frequency() -> None:
    drawn = patterns(panels.dct_functions(8, 9))
    flat = np.reshape(drawn, (9, 64))
    np.testing.assert_allclose(flat @ flat.T, np.eye(9), atol=1e-12)
    np.testing.assert_allclose(drawn[0], 1 / 8)
    x = np.cos((2 * np.arange(8) + 1) * np.pi / 16) / np.sqrt(32)
    np.testing.assert_allclose(drawn[1], np.tile(x, (8, 1)))


def test_subspace_distances() -> None:
    rng = np.random.default_rng(0)
    vectors = {y: np.linalg.qr(rng.standard_normal((16, 3)))[0].T.reshape(3, 4, 4) for y in range(4)}
    d = panels.subspace_distances(vectors)
    projectors = [v.reshape(3, 16).T @ v.reshape(3, 16) for v in vectors.values()]
    for i, p in enumerate(projectors):
        for k, q in enumerate(projectors):
            assert d[i, k] == pytest.approx(np.linalg.norm(p - q) / np.sqrt(6), abs=1e-9)


def test_scaling_is_exact_in_the_plane() -> None:
    points = np.random.default_rng(1).standard_normal((7, 2))
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    found, share = panels.classical_mds(distances)
    np.testing.assert_allclose(np.linalg.norm(found[:, None] - found, axis=2), distances, atol=1e-10)
    assert share == pytest.approx(1)
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-12)
    line, share = panels.classical_mds(distances, dims=1)
    assert line.shape == (7, 1)
    assert 0.5 < share < 1
    same, _ = panels.classical_mds(np.zeros((3, 3)))
    np.testing.assert_array_equal(same, np.zeros((3, 2)))


def test_subspace_map() -> None:
    axes = np.eye(16).reshape(16, 4, 4)
    ax = panels.subspace_map({0: axes[:2], 1: axes[1:3], 5: axes[8:10]}, names=["cat", "dog"])
    assert [text.get_text() for text in ax.texts] == ["cat", "dog", "class 5"]
    spots = np.asarray(ax.collections[0].get_offsets())
    assert np.linalg.norm(spots[0] - spots[1]) == pytest.approx(np.sqrt(0.5))
    assert np.linalg.norm(spots[0] - spots[2]) == pytest.approx(1)


def test_loss_by_level() -> None:
    rows = pd.DataFrame({"label": -1, "subspace": [0, 0, 1, 1], "t": [100.0, 300, 100, 300], "sigma": [1, 5, 2, 6.0]})
    rows["loss"], rows["residual"], rows["stderr"] = [4, 3, 2, 1.0], [32, 16, 24, 12.0], [1, 1, 1, 1.0]
    figure = panels.loss_by_level(rows, dims=[16, 48])
    left, right = figure.axes
    assert left.get_xscale() == left.get_yscale() == right.get_yscale() == "log"
    np.testing.assert_allclose(ys(left), [[2, 1], [0.5, 0.25]])
    np.testing.assert_allclose(ys(right), np.array([[4, 3], [2, 1]]) * T**2)
    np.testing.assert_allclose(np.asarray(right.get_lines()[0].get_xdata(), float), [0.25, 0.75])
    assert len(left.collections) == 2
    np.testing.assert_allclose(ys(panels.loss_by_level(rows).axes[0])[0], [32, 16])
