"""Rows of the operations that take tensors in, and what comes back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from .tensors import integers, layout_of, table_of, tensor_column, to_numpy, vector_column

if TYPE_CHECKING:
    import numpy.typing as npt

Array = np.ndarray[Any, Any]


def latent_rows(latents: npt.ArrayLike, labels: npt.ArrayLike | None) -> pa.Table:
    """Rows of a Sample exchange."""
    column = _images(latents)
    return table_of({"latent": column, "label": _labels(labels, len(column))})


def denoise_rows(
    x: npt.ArrayLike, sigma: npt.ArrayLike | None, g: npt.ArrayLike | None, labels: npt.ArrayLike | None
) -> pa.Table:
    """Rows of a Denoise exchange; sigma or g, one of them."""
    if (sigma is None) == (g is None):
        raise ValueError("give sigma or g, one of them")
    column = _images(x)
    rows = len(column)
    noise: dict[str, pa.Array] = (
        {"sigma": pa.array(np.broadcast_to(np.asarray(sigma, np.float64), rows))}
        if g is None
        else {"g": vector_column(np.broadcast_to(np.asarray(g, np.float64), (rows, np.shape(g)[-1])))}
    )
    return table_of({"x": column, "label": _labels(labels, rows), **noise})


def gradient_rows(
    images: npt.ArrayLike,
    noise: npt.ArrayLike,
    probe: npt.ArrayLike | None,
    t: npt.ArrayLike,
    labels: npt.ArrayLike | None,
) -> pa.Table:
    """Rows of a ScheduleGradient exchange; a missing probe is drawn from {−1, 1}."""
    column = _images(images)
    if probe is None:
        shape = np.shape(images)
        probe = 2 * np.random.default_rng(0).integers(0, 2, shape).astype(np.float32) - 1
    return table_of(
        {
            "image": column,
            "noise": _images(noise),
            "probe": _images(probe),
            "t": pa.array(np.broadcast_to(np.asarray(t, np.float64), len(column))),
            "label": _labels(labels, len(column)),
        }
    )


def _images(values: npt.ArrayLike) -> pa.FixedShapeTensorArray:
    array = np.asarray(values, np.float32)
    if array.ndim != 4:
        raise ValueError(f"expected images of shape [n, H, W, C] or [n, C, H, W], got {array.shape}")
    return tensor_column(array, layout_of(array.shape[1:]))


def _labels(labels: npt.ArrayLike | None, rows: int) -> pa.Array:
    return pa.array(np.broadcast_to(integers(-1 if labels is None else labels, "labels"), rows))


class Denoised:
    """What `Client.denoise` returns: arrays in the layout of x, as read-only views where one batch came."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    @property
    def denoised(self) -> Array:
        """D(x), the posterior mean of the clean image."""
        return to_numpy(self.table["denoised"])

    @property
    def flow(self) -> Array:
        """M^{-1/2}(D(x) − x), about −ε."""
        return to_numpy(self.table["flow"])

    @property
    def raw(self) -> Array:
        """F, the network's own output."""
        return to_numpy(self.table["raw"])


class Gradient:
    """What `Client.schedule_gradient` returns."""

    def __init__(self, table: pa.Table, end: dict[str, Any]) -> None:
        self.table = table
        self.d_logg: list[Any] = end.get("d_logg", [])
        """Gradient of the mean loss by the knots' ln g, [label][subspace][knot]."""
        self.d_theta: list[Any] = end.get("d_theta", [])
        """The same by θ, [label][subspace][knot − 1]."""

    @property
    def loss(self) -> Array:
        """[n] losses."""
        return to_numpy(self.table["loss"])

    @property
    def A(self) -> Array:  # noqa: N802
        """[n, J] derivatives by g_j(t)."""
        return to_numpy(self.table["A"])

    @property
    def B(self) -> Array:  # noqa: N802
        """[n, J] derivatives by ġ_j(t)."""
        return to_numpy(self.table["B"])
