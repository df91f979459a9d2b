"""How samples are judged: Fréchet distances on small features, and the distance to the converged solution.

All in float64. `classifier_features` needs scikit-learn, the rest numpy alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Matrix = NDArray[np.float64]
Features = Callable[[ArrayLike], Matrix]
"""Images [N, H, W, C] in [−1, 1] to features [N, D]."""


@dataclass(frozen=True)
class Moments:
    """Mean [D] and unbiased covariance [D, D] of features."""

    mean: Matrix
    cov: Matrix

    @classmethod
    def of(cls, features: Matrix) -> Moments:
        """Moments of features [N, D]."""
        return cls(features.mean(axis=0), np.atleast_2d(np.cov(features, rowvar=False)))


def frechet_distance(a: Moments, b: Moments) -> float:
    """Squared 2-Wasserstein distance of two Gaussians (the formula of FID, Heusel et al. 2017)::

        |m_a - m_b|^2 + tr(C_a) + tr(C_b) - 2 tr((C_a^1/2 C_b C_a^1/2)^1/2)

    The square roots are taken by symmetric eigendecomposition, which needs no regularisation and gives no imaginary
    parts.
    """
    values, vectors = np.linalg.eigh(a.cov)
    root = (vectors * np.sqrt(np.clip(values, 0, None))) @ vectors.T
    cross = np.sqrt(np.clip(np.linalg.eigvalsh(root @ b.cov @ root), 0, None)).sum()
    return float(((a.mean - b.mean) ** 2).sum() + np.trace(a.cov) + np.trace(b.cov) - 2 * cross)


def flat(images: ArrayLike) -> Matrix:
    """Images [N, H, W, C], clamped to [-1, 1], as float64 rows [N, H*W*C]."""
    x = np.asarray(images, np.float64)
    return np.clip(x, -1, 1).reshape(len(x), -1)


def classifier_features(images: ArrayLike, labels: ArrayLike) -> tuple[Features, Any]:
    """Hidden activations of a small classifier of the labelled images, and the fitted classifier.

    scikit-learn's ``MLPClassifier((64,), max_iter=400, random_state=0)`` on flat pixels; 64 ReLU units, scaled so that
    their total variance on the images is 64.
    """
    from sklearn.neural_network import MLPClassifier

    net = MLPClassifier((64,), max_iter=400, random_state=0).fit(flat(images), np.asarray(labels))

    def hidden(some: ArrayLike) -> Matrix:
        return np.maximum(flat(some) @ net.coefs_[0] + net.intercepts_[0], 0)

    scale = np.sqrt(64 / hidden(images).var(axis=0).sum())
    return lambda some: scale * hidden(some), net


def principal_features(images: ArrayLike, k: int = 40) -> Features:
    """Pixels projected on the k leading principal components of the images.

        f(x) = Vᵀ (clip(x, −1, 1) − mean),    V the k leading right singular vectors of the centred images

    With k at or above the number of pixel values the distance is that of all pixels.
    """
    x = flat(images)
    mean = x.mean(axis=0)
    basis = np.linalg.eigh(np.atleast_2d(np.cov(x, rowvar=False)))[1][:, ::-1][:, :k]
    return lambda some: (flat(some) - mean) @ basis


def ode_error(samples: ArrayLike, converged: ArrayLike) -> float:
    """100 x the rms distance per pixel of samples to the converged solution from the same latents."""
    d = np.asarray(samples, np.float64) - np.asarray(converged, np.float64)
    return 100 * float(np.sqrt((d**2).mean()))
