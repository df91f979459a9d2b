"""The functions behind the built-in features, in float64. `classifier_features` needs scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..moments import Matrix, Moments


def flat(images: ArrayLike) -> Matrix:
    """Images [N, H, W, C], clamped to [-1, 1], as float64 rows [N, H*W*C]."""
    x = np.asarray(images, np.float64)
    return np.clip(x, -1, 1).reshape(len(x), -1)


@dataclass(frozen=True)
class HiddenUnits:
    """Features f(x) = scale · max(0, clip(x, −1, 1) W + b): the hidden layer of a small classifier."""

    weights: Matrix
    bias: Matrix
    scale: float

    def __call__(self, images: ArrayLike) -> Matrix:
        return self.scale * np.maximum(flat(images) @ self.weights + self.bias, 0)


def classifier_features(images: ArrayLike, labels: ArrayLike) -> tuple[HiddenUnits, Any]:
    """Hidden activations of a small classifier of the labelled images, and the fitted classifier.

    It is scikit-learn's ``MLPClassifier((64,), max_iter=400, random_state=0)`` on flat pixels: 64 ReLU units, scaled to
    a total variance of 64 on the images.
    """
    from sklearn.neural_network import MLPClassifier
    from threadpoolctl import threadpool_limits

    net = MLPClassifier((64,), max_iter=400, random_state=0)
    with threadpool_limits(1):  # its products are small: several threads wait for each other longer than they work
        net.fit(flat(images), np.asarray(labels))
    hidden = HiddenUnits(net.coefs_[0], net.intercepts_[0], 1.0)
    return replace(hidden, scale=float(np.sqrt(64 / hidden(images).var(axis=0).sum()))), net


@dataclass(frozen=True)
class Principal:
    """Features f(x) = Vᵀ (clip(x, −1, 1) − mean): pixels projected on k orthonormal directions V [H·W·C, k]."""

    mean: Matrix
    basis: Matrix

    @classmethod
    def of(cls, pixels: Moments, k: int) -> Principal:
        """The k leading principal components of flat pixels of these moments."""
        return cls(pixels.mean, np.linalg.eigh(pixels.cov)[1][:, ::-1][:, :k])

    def __call__(self, images: ArrayLike) -> Matrix:
        return (flat(images) - self.mean) @ self.basis


def principal_features(images: ArrayLike, k: int = 40) -> Principal:
    """Pixels projected on the k leading principal components of the images."""
    return Principal.of(Moments.of(flat(images)), k)
