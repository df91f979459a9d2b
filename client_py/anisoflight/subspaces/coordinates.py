"""Images in DCT frequencies with axes of their own for the channels, for numpy arrays and torch tensors alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .projections import dct_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

Array = np.ndarray[Any, Any]


class Coordinates:
    """The frequencies (u, v) of the orthonormal DCT-II of images [B, C, H, W] and, at each, axes k of the channels.

        y_uvk = Σ_c A_uvkc Σ_ij R_ui S_vj x_cij,    R, S as in `dct_rows`

    axes A are [H, W, C, C]; None means the channels themselves. The transform is orthonormal.

    >>> coordinates = Coordinates(4, 4, 1)
    >>> image = np.arange(16.0).reshape(1, 1, 4, 4)
    >>> bool(np.allclose(coordinates.combine([image], [2 * np.ones(16)]), 2 * image))
    True
    """

    def __init__(self, height: int, width: int, channels: int, axes: Array | None = None) -> None:
        self.size = height * width * channels
        axes = np.broadcast_to(np.eye(channels), (height, width, channels, channels)) if axes is None else axes
        self._parts = [dct_rows(height), dct_rows(width), np.asarray(axes, np.float64)]
        self._shape = (height, width, channels)

    def combine(self, images: Sequence[Any], weights: Sequence[Array]) -> Any:
        """Σ_i F^T (w_i ∘ F x_i) of images [B, C, H, W], weights [H·W·C] each, in their own kind and dtype."""
        rows, columns, axes = (_like(images[0], part) for part in self._parts)
        einsum = _einsum(images[0])
        total: Any = 0
        for image, weight in zip(images, weights, strict=True):
            planes = einsum("ui,vj,bcij->buvc", rows, columns, image)
            own = _like(images[0], np.reshape(weight, self._shape))
            total = total + own * einsum("uvkc,buvc->buvk", axes, planes)
        return einsum("ui,vj,bcuv->bcij", rows, columns, einsum("uvkc,buvk->bcuv", axes, total))


def _like(x: Any, values: Array) -> Any:
    """Values as an array of x's kind and dtype."""
    return x.new_tensor(values) if hasattr(x, "new_tensor") else np.asarray(values, x.dtype)


def _einsum(x: Any) -> Any:
    if hasattr(x, "new_tensor"):
        import torch  # pyright: ignore[reportMissingImports]

        return torch.einsum
    return lambda form, *operands: np.einsum(form, *operands, optimize=True)
