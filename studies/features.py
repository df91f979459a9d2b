"""Features for Fréchet distances that see more than mean and covariance of the pixels.

Principal components are linear: a Gaussian with the data's moments is as good to them as the data. Here it is not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from anisoflight.moments import Matrix

_ROWS = 1000  # images at a time, which bounds the memory of the responses


@dataclass(frozen=True)
class Edges:
    """Features f(x) = scale · mean over a quarter of the image of max(0, clip(x, −1, 1) ∗ w + b).

    weights [3·3·C, K] are K random filters whose sum over the window is 0 in every channel, so that a flat image has
    no response; bias [K]. There are 4 K features, one for each filter and quarter.
    """

    weights: Matrix
    bias: NDArray[np.float64]
    scale: float = 1.0

    def __call__(self, images: ArrayLike) -> Matrix:
        x = np.clip(np.asarray(images, np.float64), -1, 1)
        parts = [self._quarters(x[i : i + _ROWS]) for i in range(0, len(x), _ROWS)]
        return self.scale * np.concatenate(parts)

    def _quarters(self, x: NDArray[np.float64]) -> Matrix:
        active = np.maximum(responses(x, self.weights) + self.bias, 0)
        halves = [half for rows in np.array_split(active, 2, axis=1) for half in np.array_split(rows, 2, axis=2)]
        return np.concatenate([half.mean(axis=(1, 2)) for half in halves], axis=1)


def responses(x: NDArray[np.float64], weights: Matrix) -> NDArray[np.float64]:
    """Images [N, H, W, C] under the filters [9·C, K], without padding: [N, H−2, W−2, K]."""
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))  # [N, H−2, W−2, C, 3, 3]
    return windows.reshape(*windows.shape[:3], -1) @ weights


def edge_features(images: ArrayLike, filters: int = 32, seed: int = 0) -> Edges:
    """`Edges` for images like these: normal filters and biases of the seed, in units of the filters' own responses.

    Each response has standard deviation 1 on the images, and all features together have variance 64 there.
    """
    x = np.clip(np.asarray(images, np.float64), -1, 1)
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((x.shape[-1], 9, filters))
    weights = (weights - weights.mean(axis=1, keepdims=True)).reshape(-1, filters)
    weights /= responses(x[:_ROWS], weights).std(axis=(0, 1, 2))
    edges = Edges(weights, rng.standard_normal(filters))
    return replace(edges, scale=float(np.sqrt(64 / edges(x).var(axis=0).sum())))
