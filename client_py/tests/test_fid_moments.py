"""Moments as rows stream by, and the Fréchet distance, against closed forms and an independent formula."""

import numpy as np
import pytest
import scipy.linalg

from anisoflight.fid.neighbours import Neighbours
from anisoflight.fid.reference import floor_of
from anisoflight.moments import Moments, RunningMoments, frechet_distance


def rows(count: int, dimension: int, seed: int = 0, shift: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return shift + rng.standard_normal((count, dimension)) @ rng.standard_normal((dimension, dimension))


def streamed(features: np.ndarray, sizes: list[int]) -> RunningMoments:
    """The features taken in batches of these sizes, over and over."""
    running, start = RunningMoments(features.shape[1]), 0
    while start < len(features):
        for size in sizes:
            running.update(features[start : start + size])
            start += size
    return running


@pytest.mark.parametrize("shift", [0.0, 1e4])
@pytest.mark.parametrize("count", [2, 255, 256, 257, 2000])
def test_streaming_agrees_with_the_batch(count: int, shift: float) -> None:
    features = rows(count, 7, shift=shift)
    whole, running = Moments.of(features), streamed(features, [64]).moments()
    scale = np.abs(whole.cov).max()
    np.testing.assert_allclose(running.mean, whole.mean, rtol=1e-10)
    np.testing.assert_allclose(running.cov, whole.cov, rtol=0, atol=1e-10 * scale)


def test_the_size_of_batches_moves_no_bit() -> None:
    features = rows(1500, 5)
    first, *others = [streamed(features, sizes).moments() for sizes in ([1500], [1], [64], [300, 7, 1], [256])]
    for other in others:
        assert other.mean.tobytes() == first.mean.tobytes()
        assert other.cov.tobytes() == first.cov.tobytes()


def test_rows_that_cannot_be_taken() -> None:
    running = RunningMoments(3)
    running.update(np.zeros((4, 3)))
    with pytest.raises(ValueError, match=r"must be rows of 3, got the shape \(1, 2\)"):
        running.update(np.zeros((1, 2)))
    with pytest.raises(ValueError, match="row 5 are not finite"):
        running.update([[0, 0, 0], [0, np.nan, 0]])
    assert running.count == 4
    with pytest.raises(ValueError, match="at least 2 rows"):
        RunningMoments(3).moments()


@pytest.mark.parametrize(("count", "dimension"), [(500, 8), (400, 64), (40, 64)])
def test_frechet_distance_agrees_with_the_formula_of_sqrtm(count: int, dimension: int) -> None:
    """|m_a − m_b|² + tr(C_a + C_b − 2 (C_a C_b)^½), with scipy's general matrix square root."""
    a, b = Moments.of(rows(count, dimension, 1)), Moments.of(rows(count, dimension, 2, shift=0.3))
    ridge = 0.0 if count > dimension else 1e-9  # sqrtm has no root of a singular product
    eye = ridge * np.eye(dimension)
    root = np.real(scipy.linalg.sqrtm((a.cov + eye) @ (b.cov + eye)))
    expected = ((a.mean - b.mean) ** 2).sum() + np.trace(a.cov + b.cov - 2 * root)
    assert frechet_distance(a, b) == pytest.approx(expected, rel=1e-6)


def test_frechet_distance_where_features_outnumber_images() -> None:
    """A distance to itself is none, and directions without variance add only their own."""
    few = Moments.of(rows(20, 200))
    assert abs(frechet_distance(few, few)) < 1e-10 * np.trace(few.cov)
    wider = Moments(few.mean, few.cov + 0.0)
    assert frechet_distance(few, Moments(few.mean + 1, wider.cov)) == pytest.approx(200, rel=1e-9)


def test_the_floor_of_normal_features_is_that_of_theory() -> None:
    """Unit normals in D dimensions: E d² → (D + D (D + 1)/4) (1/N + 1/M), of means and covariances."""
    dimension, count, sizes = 40, 20_000, [1000, 2000, 10_000]
    features = np.random.default_rng(0).standard_normal((count, dimension))
    found = floor_of(np.split(features, 8), dimension, count, sizes, b"seed", progress=False)
    expected = {str(n): dimension * (1 + (dimension + 1) / 4) * (1 / n + 2 / count) for n in sizes}
    assert found == pytest.approx(expected, rel=0.1)  # two standard deviations
    assert floor_of([np.ones((6, 3))], 3, 6, [2, 3], b"", progress=False) == {"2": 0.0, "3": 0.0}


def test_neighbours_against_their_definitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anisoflight.fid.neighbours._TILE", 16)  # several blocks
    rng = np.random.default_rng(0)
    real, fake = rng.standard_normal((50, 3)).astype(np.float32), 0.5 + rng.standard_normal((41, 3)).astype(np.float32)

    def distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.linalg.norm(a[:, None].astype(float) - b[None], axis=2)

    def radius(points: np.ndarray, k: int) -> np.ndarray:
        return np.sort(distances(points, points), axis=1)[:, k]  # the nearest is the point itself

    across = distances(real, fake)
    found = Neighbours(real, progress=False)
    pair = found.precision_recall(fake)
    assert pair["precision"] == (across <= radius(real, 3)[:, None]).any(axis=0).mean()
    assert pair["recall"] == (across <= radius(fake, 3)[None]).any(axis=1).mean()
    other = found.density_coverage(fake)
    assert other["density"] == pytest.approx((across <= radius(real, 5)[:, None]).sum() / (5 * 41))
    assert other["coverage"] == (across <= radius(real, 5)[:, None]).any(axis=1).mean()
    assert found.precision_recall(real) == {"precision": 1.0, "recall": 1.0}
    with pytest.raises(ValueError, match="5 images have no 5 neighbours"):
        Neighbours(real[:5], progress=False)
