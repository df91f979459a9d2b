"""T and c of schedules, from images alone."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..subspaces import dct_rows
from ..wire.pictures import Picture

_MISSED = 1e-3  # part of the data's variance
_IMAGES, _NUMBERS = 2**10, 2**25  # least number of images, and values, that are measured


class Scale:
    """T and c, as a server sets them by default for schedules made or trained on `count` images, added in order.

    The data are replaced by a Gaussian that is independent at each frequency of the orthonormal DCT and, there, in the
    principal components of the channels. With variances λ and means m of its directions,

        c = Σ λ,    T = min {T: Σ λ (1 − √(T/(λ + T)))² + m² λ/(λ + T) ≤ c/1000},

    the least variance of noise from which the exact flow misses at most a thousandth of c. Many images are measured at
    even distances, as a server does.
    """

    def __init__(self, count: int, units: Mapping[str, Any] | None) -> None:
        self.count, self.units = count, units
        self.images, self.mean, self.squares = 0, np.zeros(0), np.zeros(0)

    def add(self, number: int, picture: Picture) -> None:
        """Image `number` [H, W, C]. Images of another shape than the first are left out."""
        height, width, channels = shape = picture.shape
        too_large = max(shape) > 2**12 or picture.size * channels**2 > 2**26  # a server measures no such images
        if too_large or not _chosen(number, self.count, picture.size):
            return
        if not self.images:
            self.mean, self.squares = np.zeros(shape), np.zeros((*shape, channels))
        if self.mean.shape != shape:
            return
        values = picture / 127.5 - 1 if picture.dtype == np.uint8 else picture.astype(np.float64)
        if self.units:
            values = (values - self.units["mean"]) / self.units["scale"]
        values = dct_rows(width) @ np.tensordot(dct_rows(height), values, 1)
        self.images += 1
        before = values - self.mean
        self.mean += before / self.images
        self.squares += before[..., :, None] * (values - self.mean)[..., None, :]  # Welford's update

    def defaults(self) -> dict[str, float]:
        """T and c; nothing of images that are all alike, or too large for a server to measure."""
        if not self.squares.any():
            return {}
        variance, axes = np.linalg.eigh(self.squares / self.images)
        variance, mean = np.maximum(variance, 0), np.einsum("uvc,uvck->uvk", self.mean, axes)
        c = float(variance.sum())

        def missed(end: float) -> float:
            return float((variance * ((1 - np.sqrt(end / (variance + end))) ** 2 + mean**2 / (variance + end))).sum())

        low, high = 0.0, c
        while missed(high) > _MISSED * c:
            low, high = high, 2 * high
        while high - low > 1e-9 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if missed(middle) > _MISSED * c else (low, middle)
        return {"T": high, "c": c}


def _chosen(number: int, count: int, size: int) -> bool:
    """Whether one of `count` images of `size` values is measured: ⌊k·count/n⌋ for k < n is, where n are."""
    n = min(count, max(_IMAGES, _NUMBERS // size))
    return -(-number * n // count) * count < (number + 1) * n
