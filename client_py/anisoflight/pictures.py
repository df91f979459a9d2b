"""Pictures of whatever a network draws: images as they are, fields and latents as a map of their values, or through a
decoder that the caller names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import BadRequestError
from .images import to_uint8

if TYPE_CHECKING:
    from collections.abc import Callable

    from .images import Pixels

    Decoder = Callable[[np.ndarray[Any, Any]], Any]
    """Values [N, H, W, C] in the data's own units to images: [N, h, w, 1 or 3], or without the last axis, of uint8 or
    floats in [−1, 1]."""


def pictures_of(values: np.ndarray[Any, Any], *, own_units: bool, decode: Decoder | None) -> tuple[Pixels, str]:
    """Images [N, h, w, 1 or 3] of uint8 of values [N, H, W, C], and a note of what they show; empty for plain images.

    A decoder makes them, where there is one. Values in units of their own are mapped from their least to their
    greatest, channel by channel, over all N; channels that are not 1 or 3 stand side by side.

    >>> pixels, note = pictures_of(np.array([[[[270.0]], [[290.0]]]]), own_units=True, decode=None)
    >>> pixels.ravel().tolist(), note
    ([0, 255], 'black to white: 270 to 290')
    """
    if decode is not None:
        return _checked(np.asarray(decode(values)), len(values)), "decoded"
    if not own_units:
        return to_uint8(values), ""
    if not values.size:
        return np.zeros((*values.shape[:3], 1), np.uint8), ""
    wide = values.astype(np.float64)
    low, high = wide.min((0, 1, 2)), wide.max((0, 1, 2))
    mapped = np.rint((wide - low) * (255 / np.where(high > low, high - low, 1))).astype(np.uint8)
    ranges = ", ".join(f"{a:.4g} to {b:.4g}" for a, b in zip(low, high, strict=True))
    channels = mapped.shape[3]
    if channels == 3:
        return mapped, f"red, green, blue: {ranges}"
    if channels == 1:
        return mapped, f"black to white: {ranges}"
    beside = np.concatenate([mapped[..., c : c + 1] for c in range(channels)], axis=2)
    return beside, f"{channels} channels side by side, black to white: {ranges}"


def _checked(images: np.ndarray[Any, Any], count: int) -> Pixels:
    """What a decoder gave, if it is images."""
    if images.ndim == 3:
        images = images[..., None]
    if images.ndim != 4 or len(images) != count or images.shape[3] not in (1, 3):
        raise BadRequestError(
            f"decode must return {count} images [N, h, w, 1 or 3], got the shape {images.shape}", "BAD_REQUEST"
        )
    if images.dtype != np.uint8 and images.dtype.kind != "f":
        raise BadRequestError(f"decode must return uint8 or floats in [−1, 1], got {images.dtype}", "BAD_REQUEST")
    return to_uint8(images)
