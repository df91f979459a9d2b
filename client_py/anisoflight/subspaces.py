"""Projections of images on subspaces, and DCT frequencies, for numpy arrays and torch tensors."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .plans.numpy_or_torch import Constants, like

Array = np.ndarray[Any, Any]

FORMULAS = ("none", "dct", "haar")  # bases without vectors


def dct_rows(size: int) -> Array:
    """The orthonormal DCT-II of `size` samples: row u is γ_u cos((2x + 1) u π / (2·size)), [size, size].

    >>> rows = dct_rows(4)
    >>> bool(np.allclose(rows @ rows.T, np.eye(4)))
    True
    """
    u, x = np.ogrid[:size, :size]
    return np.sqrt(np.where(u == 0, 1, 2) / size) * np.cos((2 * x + 1) * u * np.pi / (2 * size))


def orthonormal(rows: Array) -> bool:
    """Whether rows [..., k, d] are orthonormal within 1e-6, which the server allows."""
    products = rows @ rows.swapaxes(-1, -2)
    return bool((np.abs(products - np.eye(rows.shape[-2])) <= 1e-6).all())


def subspaces_of(file: Mapping[str, Any]) -> int:
    """The number of subspaces of the family of a plan's file."""
    family = file["family"]
    return 1 if family["basis"] == "none" else len(family.get("cuts") or [0]) + 1


class Subspaces:
    """The projectors P_j of a family, on each channel of images [B, C, H, W].

    - dct: the orthonormal DCT-II, cut at max(u, v) < √k, or at each of the cuts for J = len(cuts) + 1 nested bands.
    - haar: P_1 holds the means of k blocks of pixels of each channel.
    - Any other basis: vectors, the orthonormal rows [k, H, W] of P_1.

    >>> low = Subspaces({"basis": "dct", "k": 1})
    >>> low.combine([np.ones((1, 1, 4, 4)), 0 * np.ones((1, 1, 4, 4))]).sum().round(6)  # the mean is in P_1
    np.float64(16.0)
    """

    def __init__(self, family: Mapping[str, Any], vectors: Array | None = None) -> None:
        self._basis = family.get("basis", "none")
        self._family = family
        self.size = () if vectors is None else vectors.shape[1:]
        """[H, W] of the vectors; empty if images may have any size."""
        self._vectors = None if vectors is None else Constants(np.reshape(vectors, (len(vectors), -1)))
        if self._basis not in FORMULAS and vectors is None:
            raise ValueError(f"the basis {self._basis!r} needs its vectors [k, H, W]")
        self._filters: dict[tuple[int, int], list[Constants]] = {}

    def combine(self, parts: Sequence[Any]) -> Any:
        """Σ_j P_j y_j of one array y_j per subspace, in their kind and dtype.

        With the nested sums S_j = P_1 + … + P_j it is y_J + Σ_{j<J} S_j (y_j − y_{j+1}).
        """
        total = parts[-1]
        for j in range(len(parts) - 1):
            total = total + self._span(j, parts[j] - parts[j + 1])
        return total

    def split(self, x: Any) -> list[Any]:
        """P_j x for each subspace."""
        spans = 0 if self._basis == "none" else len(self._family.get("cuts") or [0])
        nested = [self._span(j, x) for j in range(spans)] + [x]
        return [span if j == 0 else span - nested[j - 1] for j, span in enumerate(nested)]

    def _span(self, j: int, x: Any) -> Any:
        """S_j x."""
        batch, channels, height, width = x.shape
        if self._vectors is not None:
            (rows,) = self._vectors.like(x)
            return ((x.reshape(batch, channels, height * width) @ rows.T) @ rows).reshape(x.shape)
        if (height, width) not in self._filters:
            low = _means if self._basis == "haar" else _low
            self._filters[height, width] = [
                Constants(low(height, rows), low(width, columns)) for rows, columns in self._cuts(height, width)
            ]
        down, across = self._filters[height, width][j].like(x)
        return down @ x @ across

    def _cuts(self, height: int, width: int) -> list[tuple[int, int]]:
        if cuts := self._family.get("cuts"):
            return [(cut, cut) for cut in cuts]
        k = self._family.get("k")
        if k and self._basis == "haar":
            side = round((height * width / k) ** 0.5)
            return [(height // side, width // side)]
        if k:
            return [(round(k**0.5), round(k**0.5))]
        return [(height // 2, width // 2)]


def radial_bands(height: int, width: int, number: int) -> Array:
    """The band of each frequency (u, v) of the DCT, [H, W]: the mean, and number − 1 bands of equal width in ln ρ,

        band(u, v) = 1 + min(number − 2, ⌊(number − 1) ln(ρ/ρ₁)/ln(ρ₂/ρ₁) + 1e-9⌋),    ρ = √((u/H)² + (v/W)²),

    numbered without the empty ones; ρ₁ is the least ρ above 0 and ρ₂ the greatest. If number is 0, each frequency is a
    band.

    >>> radial_bands(3, 3, 3).tolist()
    [[0, 1, 2], [1, 1, 2], [2, 2, 2]]
    """
    if number == 0:
        return np.arange(height * width).reshape(height, width)
    u, v = np.ogrid[:height, :width]
    square = np.maximum((u * width) ** 2.0 + (v * height) ** 2.0, min(height, width) ** 2.0)
    place = np.log(square / square[0, 0]) / (np.log(square[-1, -1] / square[0, 0]) or 1)
    band = np.minimum(1 + np.minimum(number - 2, np.floor((number - 1) * place + 1e-9)), number - 1)
    band[0, 0] = 0
    return np.unique(band, return_inverse=True)[1].reshape(height, width)


class Coordinates:
    """The frequencies (u, v) of the orthonormal DCT-II of images [B, C, H, W] and, at each, axes k of the channels,

        y_uvk = Σ_c A_uvkc Σ_ij R_ui S_vj x_cij,    R, S as in `dct_rows`,

    an orthonormal transform. The frequencies are divided into `radial_bands`. The axes A of the bands are [bands·C, C];
    None means the channels themselves.

    >>> coordinates = Coordinates(4, 4, 1)
    >>> image = np.arange(16.0).reshape(1, 1, 4, 4)
    >>> bool(np.allclose(coordinates.combine([image], [2 * np.ones(16)]), 2 * image))
    True
    """

    def __init__(self, height: int, width: int, channels: int, axes: Array | None = None, bands: int = 0) -> None:
        band = radial_bands(height, width, bands)
        self.shape = channels, height, width
        self.size = (int(band.max()) + 1) * channels
        axes = np.eye(channels)[None] if axes is None else np.reshape(axes, (-1, channels, channels))[band]
        self.parts = band[..., None] * channels + np.arange(channels)
        """The index of each coordinate [u, v, k], from 0 to size − 1."""
        self._parts = Constants(dct_rows(height), dct_rows(width), np.asarray(axes, np.float64), band)

    def combine(self, images: Sequence[Any], weights: Sequence[Array]) -> Any:
        """Σ_i F^T (w_i ∘ F x_i) of images [B, C, …], weights [bands·C] each, in their kind and dtype.

        Images with another number of axes are reshaped to [B, C, H, W], with the last axis as W.
        """
        rows, columns, axes, band = self._parts.like(images[0])
        total: Any = 0
        for image, weight in zip(images, weights, strict=True):
            total = total + like(np.reshape(weight, (-1, self.shape[0])), image)[band] * self.split(image)
        planes = (axes.swapaxes(-2, -1) @ total[..., None])[..., 0].swapaxes(2, 3).swapaxes(1, 2)
        return (rows.T @ planes @ columns).reshape(images[0].shape)

    def split(self, image: Any) -> Any:
        """The coordinates [B, u, v, k] of images."""
        rows, columns, axes, _ = self._parts.like(image)
        planes = rows @ image.reshape(len(image), *self.shape) @ columns.T
        return (axes @ planes.swapaxes(1, 2).swapaxes(2, 3)[..., None])[..., 0]


def _low(size: int, cut: int) -> Array:
    """The projector QᵀQ [size, size] on the first cut rows Q of the orthonormal DCT-II."""
    rows = dct_rows(size)[:cut]
    return rows.T @ rows


def _means(size: int, blocks: int) -> Array:
    """The projector [size, size] on vectors that are constant on each of `blocks` blocks."""
    side = size // blocks
    return np.kron(np.eye(blocks), np.full((side, side), 1 / side))
