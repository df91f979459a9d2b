"""What the report measures: Frechet distances and the distance to the converged solution. All in float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.neural_network import MLPClassifier

from .data import Images, Split

Matrix = NDArray[np.float64]
Features = Callable[[Images], Matrix]


@dataclass(frozen=True)
class Moments:
    """Mean [D] and unbiased covariance [D, D] of features."""

    mean: Matrix
    cov: Matrix

    @classmethod
    def of(cls, features: Matrix) -> Moments:
        """Moments of features [N, D]."""
        return cls(features.mean(axis=0), np.cov(features, rowvar=False))


def frechet_distance(a: Moments, b: Moments) -> float:
    """Squared 2-Wasserstein distance of two Gaussians (the FID formula)::

        |m_a - m_b|^2 + tr(C_a) + tr(C_b) - 2 tr((C_a^1/2 C_b C_a^1/2)^1/2)

    The square roots are taken by symmetric eigendecomposition, which needs no regularisation and gives no imaginary
    parts.
    """
    values, vectors = np.linalg.eigh(a.cov)
    root = (vectors * np.sqrt(np.clip(values, 0, None))) @ vectors.T
    cross = np.sqrt(np.clip(np.linalg.eigvalsh(root @ b.cov @ root), 0, None)).sum()
    return float(((a.mean - b.mean) ** 2).sum() + np.trace(a.cov) + np.trace(b.cov) - 2 * cross)


def _flat(images: ArrayLike) -> Matrix:
    """Images [N, H, W, C], clamped to [-1, 1], as float64 rows [N, H*W*C]."""
    x = np.asarray(images, np.float64)
    return np.clip(x, -1, 1).reshape(len(x), -1)


def classifier_features(train: Split) -> tuple[Features, Callable[[Split], float]]:
    """Hidden activations of a small classifier of the training split, and its accuracy on a split.

    scikit-learn's ``MLPClassifier((64,), max_iter=400, random_state=0)``; 64 ReLU units, scaled so that their total
    variance on the training split is 64.
    """
    net = MLPClassifier((64,), max_iter=400, random_state=0).fit(_flat(train.images), train.labels)

    def hidden(images: Images) -> Matrix:
        return np.maximum(_flat(images) @ net.coefs_[0] + net.intercepts_[0], 0)

    scale = np.sqrt(64 / hidden(train.images).var(axis=0).sum())
    return (
        lambda images: scale * hidden(images),
        lambda split: float(net.score(_flat(split.images), split.labels)),
    )


def principal_features(train: Split, k: int = 40) -> Features:
    """Pixels projected on the k leading principal components of the training split."""
    x = _flat(train.images)
    mean = x.mean(axis=0)
    basis = np.linalg.svd(x - mean, full_matrices=False)[2][:k]
    return lambda images: (_flat(images) - mean) @ basis.T


def ode_error(samples: ArrayLike, converged: ArrayLike) -> float:
    """100 x the rms distance per pixel of samples to the converged solution from the same latents."""
    d = np.asarray(samples, np.float64) - np.asarray(converged, np.float64)
    return 100 * float(np.sqrt((d**2).mean()))
