"""Distances by neighbours among features: precision and recall, density and coverage.

B(x) is the ball around x that reaches its k-th nearest neighbour of its own set; X are real features, Y those of
samples::

    precision = mean_j 1[∃i: Y_j ∈ B(X_i)]          recall   = mean_i 1[∃j: X_i ∈ B(Y_j)]            k = 3
    density   = Σ_ij 1[Y_j ∈ B(X_i)] / (k |Y|)      coverage = mean_i 1[∃j: Y_j ∈ B(X_i)]            k = 5

(Kynkäänniemi et al. 2019; Naeem et al. 2020.)
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..moments import Matrix
from ..wire.progress import Progress

Rows = np.ndarray[Any, Any]

K_PRECISION, K_DENSITY = 3, 5
_TILE = 2048  # rows of one block of distances, and columns


class Neighbours:
    """Real features [N, D], and measures of samples among them."""

    def __init__(self, real: Rows, progress: bool = True) -> None:
        self._real, self._progress = real, progress
        self._radii = _radii(real, (K_PRECISION, K_DENSITY), progress)

    def precision_recall(self, samples: Rows) -> dict[str, float]:
        """precision and recall of features [M, D]."""
        radii = _radii(samples, (K_PRECISION,), self._progress)[0]
        within, around = np.zeros(len(samples), bool), np.zeros(len(self._real), bool)
        for i, j, squares in _blocks(self._real, samples, "neighbours", self._progress):
            within[j] |= (squares <= self._radii[0][i, None]).any(axis=0)
            around[i] |= (squares <= radii[None, j]).any(axis=1)
        return {"precision": float(within.mean()), "recall": float(around.mean())}

    def density_coverage(self, samples: Rows) -> dict[str, float]:
        """density and coverage of features [M, D]."""
        inside, covered = 0, np.zeros(len(self._real), bool)
        for i, _, squares in _blocks(self._real, samples, "neighbours", self._progress):
            within = squares <= self._radii[1][i, None]
            inside += int(within.sum())
            covered[i] |= within.any(axis=1)
        return {"density": inside / (K_DENSITY * len(samples)), "coverage": float(covered.mean())}


def _radii(rows: Rows, ks: tuple[int, ...], progress: bool) -> list[Matrix]:
    """Squared distances from every row to its k-th nearest other row, for each k."""
    most = max(ks)
    if len(rows) <= most:
        raise ValueError(f"{len(rows)} images have no {most} neighbours each")
    nearest = np.full((len(rows), most), np.inf)
    for i, j, squares in _blocks(rows, rows, "radii", progress):
        if i == j:
            np.fill_diagonal(squares, np.inf)
        nearest[i] = np.partition(np.concatenate([nearest[i], squares], axis=1), most - 1)[:, :most]
    nearest.sort(axis=1)
    return [nearest[:, k - 1] for k in ks]


def _blocks(a: Rows, b: Rows, title: str, progress: bool) -> Iterator[tuple[slice, slice, Matrix]]:
    """|a_i − b_j|² in blocks, in float64."""
    for first in Progress(range(0, len(a), _TILE), desc=title, unit="block", disable=not progress, leave=False):
        i = slice(first, min(first + _TILE, len(a)))
        left = a[i].astype(np.float64)
        for second in range(0, len(b), _TILE):
            j = slice(second, min(second + _TILE, len(b)))
            right = b[j].astype(np.float64)
            squares = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1) - 2 * left @ right.T
            yield i, j, np.maximum(squares, 0)
