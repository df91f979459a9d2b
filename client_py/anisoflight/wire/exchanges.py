"""Rows of the operations that take tensors in, and what comes back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ..errors import BadRequestError
from .tensors import integers, layout_of, table_of, tensor_column, to_numpy, vector_column

if TYPE_CHECKING:
    import numpy.typing as npt

Array = np.ndarray[Any, Any]


def latent_rows(latents: npt.ArrayLike, labels: npt.ArrayLike | None) -> pa.Table:
    """Rows of a Sample exchange."""
    column = _images(latents, "latents")
    return table_of({"latent": column, "label": _labels(labels, len(column))})


def denoise_rows(
    x: npt.ArrayLike, sigma: npt.ArrayLike | None, g: npt.ArrayLike | None, labels: npt.ArrayLike | None
) -> pa.Table:
    """Rows of a Denoise exchange; sigma or g, one of them."""
    if (sigma is None) == (g is None):
        said = "neither" if g is None else "both"
        raise BadRequestError(f"sigma or g must be given, one of them, got {said}", "BAD_REQUEST")
    column = _images(x, "x")
    rows = len(column)
    noise: dict[str, pa.Array] = (
        {"sigma": pa.array(_per_row(sigma, rows, "sigma"))}
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
    column = _images(images, "images")
    if probe is None:
        shape = np.shape(images)
        probe = 2 * np.random.default_rng(0).integers(0, 2, shape).astype(np.float32) - 1
    return table_of(
        {
            "image": column,
            "noise": _images(noise, "noise"),
            "probe": _images(probe, "probe"),
            "t": pa.array(_per_row(t, len(column), "t")),
            "label": _labels(labels, len(column)),
        }
    )


def _images(values: npt.ArrayLike, name: str) -> pa.FixedShapeTensorArray:
    array = np.asarray(values, np.float32)
    if array.ndim != 4:
        hint = f"; put {name}[None] for one image" if array.ndim == 3 else ""
        raise BadRequestError(
            f"{name} must have the shape [n, H, W, C] or [n, C, H, W], got {array.shape}{hint}", "BAD_TENSOR"
        )
    return tensor_column(array, layout_of(array.shape[1:]))


def _labels(labels: npt.ArrayLike | None, rows: int) -> pa.Array:
    return pa.array(_spread(integers(-1 if labels is None else labels, "labels"), rows, "labels"))


def _per_row(values: npt.ArrayLike | None, rows: int, name: str) -> Array:
    """Numbers, one for every row."""
    try:
        numbers = np.asarray(values, np.float64)
    except (ValueError, TypeError):
        raise BadRequestError(f"{name} must be a number, or one for each image, got {values!r}", "BAD_TENSOR") from None
    return _spread(numbers, rows, name)


def _spread(numbers: Array, rows: int, name: str) -> Array:
    if numbers.ndim > 1 or (numbers.ndim == 1 and len(numbers) not in (1, rows)):
        raise BadRequestError(
            f"{name} must be one number, or one for each of {rows} images, got shape {numbers.shape}", "BAD_TENSOR"
        )
    return np.broadcast_to(numbers, rows)


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
