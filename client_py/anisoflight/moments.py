"""Means and covariances in float64, at once or of a stream of rows, and the distance of two Gaussians."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Moments:
    """Mean [D] and unbiased covariance [D, D] of features."""

    mean: Matrix
    cov: Matrix

    @classmethod
    def of(cls, features: Matrix) -> Moments:
        """Moments of features [N, D], N ≥ 2."""
        if len(features) < 2:
            raise ValueError(f"a covariance needs at least 2 rows, got {len(features)}")
        return cls(features.mean(axis=0), np.atleast_2d(np.cov(features, rowvar=False)))


class RunningMoments:
    """Moments of a stream of rows, in constant memory.

    Rows are taken in blocks of 256, counted from the first row. Blocks A and B are merged by the formula of Chan, Golub
    and LeVeque (1979), with S = Σ (x − m)(x − m)ᵀ::

        n = n_A + n_B,    δ = m_B − m_A,    m = m_A + δ n_B/n,    S = S_A + S_B + δδᵀ n_A n_B/n

    The result does not depend, to the last bit, on how the rows are divided into calls.

    >>> running = RunningMoments(2)
    >>> for row in [[1.0, 5.0]], [[3.0, 1.0]]:
    ...     running.update(row)
    >>> running.moments().mean.tolist(), running.moments().cov.tolist()
    ([2.0, 3.0], [[2.0, -4.0], [-4.0, 8.0]])
    """

    BLOCK = 256

    def __init__(self, dimension: int) -> None:
        self._count = 0
        self._mean = np.zeros(dimension)
        self._scatter = np.zeros((dimension, dimension))
        self._pending = np.zeros((0, dimension))

    @property
    def count(self) -> int:
        """The number of rows so far."""
        return self._count + len(self._pending)

    def update(self, features: ArrayLike) -> None:
        """Add rows [n, D]. ValueError if a row is not finite or has another width."""
        rows = np.asarray(features, np.float64)
        if rows.ndim != 2 or rows.shape[1] != len(self._mean):
            raise ValueError(f"features must be rows of {len(self._mean)}, got the shape {rows.shape}")
        if not np.isfinite(rows).all():
            bad = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
            raise ValueError(f"the features of row {self.count + bad} are not finite")
        rows = np.concatenate([self._pending, rows])
        whole = len(rows) - len(rows) % self.BLOCK
        for start in range(0, whole, self.BLOCK):
            self._count, self._mean, self._scatter = self._merged(rows[start : start + self.BLOCK])
        self._pending = rows[whole:].copy()

    def moments(self) -> Moments:
        """The moments of the rows so far, at least two."""
        if self.count < 2:
            raise ValueError(f"a covariance needs at least 2 rows, got {self.count}")
        count, mean, scatter = self._merged(self._pending)
        return Moments(mean.copy(), scatter / (count - 1))

    def _merged(self, block: Matrix) -> tuple[int, Matrix, Matrix]:
        if not len(block):
            return self._count, self._mean, self._scatter
        total = self._count + len(block)
        mean = block.mean(axis=0)
        centred = block - mean
        delta = mean - self._mean
        scatter = self._scatter + centred.T @ centred
        scatter += np.outer(delta, delta * (self._count * len(block) / total))
        return total, self._mean + delta * (len(block) / total), scatter


def frechet_distance(a: Moments, b: Moments) -> float:
    """Squared 2-Wasserstein distance of two Gaussians (the formula of FID, Heusel et al. 2017)::

        |m_a − m_b|² + tr(C_a) + tr(C_b) − 2 tr((C_a^½ C_b C_a^½)^½),    tr((C_a^½ C_b C_a^½)^½) = ‖C_a^½ C_b^½‖_*

    The roots are symmetric eigendecompositions and the trace is a sum of singular values. So there is no
    regularisation, no imaginary part, and no loss of digits if C_a C_b is singular, as with more features than images.
    """
    cross = np.linalg.svd(_root(a.cov) @ _root(b.cov), compute_uv=False).sum()
    squared = ((a.mean - b.mean) ** 2).sum() + np.trace(a.cov) + np.trace(b.cov) - 2 * cross
    return max(float(squared), 0.0)  # rounding may make it negative


def _root(cov: Matrix) -> Matrix:
    """The symmetric root; eigenvalues within rounding error of 0 count as 0."""
    values, vectors = np.linalg.eigh(cov)
    noise = len(values) * np.finfo(np.float64).eps * max(values[-1], 0)
    return (vectors * np.sqrt(np.where(values > noise, values, 0))) @ vectors.T
