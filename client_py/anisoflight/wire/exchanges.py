"""Rows of the operations that take tensors, and their results."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import BadRequestError, bad_tensor
from .arrays import array_of, images_of, integers
from .tensors import table_of, tensor_column, to_numpy, vector_column

OptionalArray = npt.ArrayLike | None


Array = np.ndarray[Any, Any]

_PROBE = 0x70726F62  # seed of a probe, independent of noise that a caller draws by seed 0


def latent_rows(latents: npt.ArrayLike, labels: OptionalArray, layout: str | None = None) -> pa.Table:
    """Rows of a Sample exchange. The layout, that of the samples, is used if the shape fits both ways."""
    column = _images(latents, "latents", layout if len({*np.shape(latents)[1:]}) == 1 else None)
    return table_of({"latent": column, "label": _labels(labels, len(column))})


def denoise_rows(
    x: npt.ArrayLike, sigma: OptionalArray, g: OptionalArray, labels: OptionalArray, layout: str | None = None
) -> pa.Table:
    """Rows of a Denoise exchange, with either sigma or g."""
    if (sigma is None) == (g is None):
        raise BadRequestError(f"sigma or g must be given, one of them, got {'neither' if g is None else 'both'}")
    column = _images(x, "x", layout)
    rows = len(column)
    columns = {"x": column, "label": _labels(labels, rows)}
    if g is None:
        return table_of({**columns, "sigma": _per_row(sigma, rows, "sigma")})
    variances = np.atleast_2d(array_of(g, "g", np.float64))
    if variances.ndim > 2 or not variances.size or len(variances) not in (1, rows):
        raise bad_tensor(f"g must be [J] variances, or [{rows}, J], got the shape {variances.shape}")
    return table_of({**columns, "g": vector_column(np.broadcast_to(variances, (rows, variances.shape[-1])))})


def gradient_rows(
    images: npt.ArrayLike,
    noise: npt.ArrayLike,
    probe: OptionalArray,
    t: npt.ArrayLike,
    labels: OptionalArray,
    layout: str | None = None,
) -> pa.Table:
    """Rows of a ScheduleGradient exchange; the default probe is drawn from {−1, 1}."""
    if probe is None:
        probe = np.random.default_rng(_PROBE).choice([-1.0, 1.0], np.shape(images))
    given = {"image": (images, "images"), "noise": (noise, "noise"), "probe": (probe, "probe")}
    rows = {column: _images(values, name, layout) for column, (values, name) in given.items()}
    count = len(rows["image"])
    return table_of({**rows, "t": _per_row(t, count, "t"), "label": _labels(labels, count)})


def _images(values: npt.ArrayLike, name: str, layout: str | None) -> pa.FixedShapeTensorArray:
    """The column of images; without a layout the server infers the axes from the model's size."""
    array, layout = images_of(values, name, layout)
    if array.dtype.kind != "f":
        hint = "put anisoflight.images.to_float(...) of bytes" if array.dtype == np.uint8 else "put floats"
        raise bad_tensor(f"{name} must be floats in the model's units, got {array.dtype}; {hint}")
    return tensor_column(array.astype(np.float32, copy=False), layout)


def _labels(labels: npt.ArrayLike | None, rows: int) -> pa.Array:
    return _per_row(integers(-1 if labels is None else labels, "labels"), rows, "labels", np.int32)


def _per_row(values: Any, rows: int, name: str, dtype: type[np.number] = np.float64) -> pa.Array:
    """One number per row, from a single number or one per row."""
    array = array_of(values, name)
    try:
        return pa.array(np.broadcast_to(array.astype(dtype), rows))
    except (ValueError, TypeError):
        given = f"shape {array.shape}" if array.ndim else repr(array.item())
        raise bad_tensor(f"{name} must be a number, or one for each of {rows} images, got {given}") from None


class Denoised:
    """The result of `Client.denoise`: arrays in the layout of x, read-only views of a single batch."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self.denoised = to_numpy(table["denoised"])
        """D(x), the posterior mean of the clean image."""
        self.flow = to_numpy(table["flow"])
        """M^{-1/2}(D(x) − x), about −ε."""
        self.raw = to_numpy(table["raw"])
        """F, the network's own output."""


class Gradient:
    """The result of `Client.schedule_gradient`."""

    def __init__(self, table: pa.Table, end: dict[str, Any]) -> None:
        self.table = table
        self.loss = to_numpy(table["loss"])
        """[n] losses."""
        self.A = to_numpy(table["A"])
        """[n, J] derivatives by g_j(t)."""
        self.B = to_numpy(table["B"])
        """[n, J] derivatives by ġ_j(t)."""
        self.d_logg: list[Any] = end.get("d_logg", [])
        """Gradient of the mean loss by the knots' ln g, [label][subspace][knot]."""
        self.d_theta: list[Any] = end.get("d_theta", [])
        """The same by θ, [label][subspace][knot − 1]."""
