"""What a network's file wants its images to be: declared in a JSON file beside it, FILE.json.

    {"name": "dinov2-vitl14", "size": [224, 224], "range": [0, 1],
     "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225], "layout": "NCHW"}

Every field has a default; without the file the network is given uint8 NCHW with three channels, as EDM's Inception
network takes it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import FidError, needs

if TYPE_CHECKING:
    from pathlib import Path

    from ...images import Pixels


@dataclass(frozen=True)
class Preparation:
    """From uint8 [n, H, W, C] to what the network takes.

    x = (low + (high − low) pixel/255 − mean) / std
    """

    name: str = ""
    """Default: the file's name."""
    size: tuple[int, int] | None = None
    """[height, width] to which Pillow resizes, bicubic with antialiasing; default: as they come."""
    range: tuple[float, float] | None = None
    """[low, high] of float32 pixels; default: uint8."""
    mean: tuple[float, ...] = (0.0, 0.0, 0.0)
    std: tuple[float, ...] = (1.0, 1.0, 1.0)
    """By channel; for float32 pixels."""
    layout: str = "NCHW"
    """Or NHWC."""
    published: bool = False
    """Whether this is the Inception network of published FIDs."""

    def __call__(self, images: Pixels) -> np.ndarray[Any, Any]:
        if self.size is not None and images.shape[1:3] != self.size:
            images = _resized(images, self.size)
        if images.shape[3] == 1:
            images = np.repeat(images, 3, axis=3)
        prepared: np.ndarray[Any, Any] = images
        if self.range is not None:
            low, high = self.range
            prepared = ((low + (high - low) * (images / 255) - self.mean) / self.std).astype(np.float32)
        return np.ascontiguousarray(prepared.transpose(0, 3, 1, 2) if self.layout == "NCHW" else prepared)


def declared(path: Path) -> Preparation:
    """What FILE.json says; the default without one."""
    beside = path.with_name(path.name + ".json")
    if not beside.exists():
        return Preparation(name=path.name)
    try:
        said = json.loads(beside.read_text(encoding="utf-8"))
        known = {field.name for field in fields(Preparation)}
        if unknown := sorted(set(said) - known):
            raise ValueError(f"{unknown[0]} is not one of {', '.join(sorted(known))}")
        given = {name: tuple(value) if isinstance(value, list) else value for name, value in said.items()}
        return _checked(Preparation(**{"name": path.name, **given}))
    except (ValueError, TypeError) as error:
        raise FidError(f"{beside}: {error}", "BAD_FEATURES") from error


def _checked(given: Preparation) -> Preparation:
    lengths = {"size": (given.size, 2), "range": (given.range, 2), "mean": (given.mean, 3), "std": (given.std, 3)}
    for name, (value, length) in lengths.items():
        if value is not None and (not isinstance(value, tuple) or len(value) != length):
            raise ValueError(f"{name} is a list of {length} numbers, not {value}")
    if given.layout not in ("NCHW", "NHWC"):
        raise ValueError(f"layout is NCHW or NHWC, not {given.layout!r}")
    plain = Preparation()
    if given.range is None and (given.mean, given.std) != (plain.mean, plain.std):
        raise ValueError("mean and std are of float32 pixels: declare their range, such as [0, 1]")
    return given


def _resized(images: Pixels, size: tuple[int, int]) -> Pixels:
    try:
        from PIL import Image
    except ImportError:
        raise needs("pillow", "resizing images for this network") from None
    grey = images.shape[3] == 1
    target = (size[1], size[0])
    found = [np.asarray(_picture(Image, image, grey).resize(target, Image.Resampling.BICUBIC)) for image in images]
    stacked = np.stack(found)
    return stacked[..., None] if grey else stacked


def _picture(library: Any, image: Pixels, grey: bool) -> Any:
    return library.fromarray(image[:, :, 0] if grey else image)
