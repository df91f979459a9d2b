"""What a network's file wants its images to be: declared in a JSON file beside it, FILE.json.

    {"name": "dinov2-vitl14", "size": [224, 224], "range": [0, 1],
     "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225], "layout": "NCHW"}

Every field has a default. Without the file the network is given uint8 NCHW with three channels, as EDM's Inception
network takes it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL.Image import Resampling

from ..data.pictures import image_of
from .errors import FidError

if TYPE_CHECKING:
    from pathlib import Path

    from ..images import Pixels

_LENGTHS = {"size": 2, "range": 2, "mean": 3, "std": 3}


@dataclass(frozen=True)
class Preparation:
    """From uint8 [n, H, W, C] to what the network takes.

    x = (low + (high − low) pixel/255 − mean) / std
    """

    name: str
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
            width_first = (self.size[1], self.size[0])
            resized = [np.asarray(image_of(image).resize(width_first, Resampling.BICUBIC)) for image in images]
            images = np.stack(resized).reshape(len(images), *self.size, images.shape[3])
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
        return Preparation(path.name)
    try:
        said = json.loads(beside.read_text(encoding="utf-8"))
        known = [field.name for field in fields(Preparation)]
        if unknown := sorted(set(said) - set(known)):
            raise ValueError(f"{unknown[0]} is not one of {', '.join(sorted(known))}")
        for name, length in _LENGTHS.items():
            if name in said and (not isinstance(said[name], list) or len(said[name]) != length):
                raise ValueError(f"{name} is a list of {length} numbers, not {said[name]}")
        if said.get("layout", "NCHW") not in ("NCHW", "NHWC"):
            raise ValueError(f"layout is NCHW or NHWC, not {said['layout']!r}")
        if "range" not in said and ("mean" in said or "std" in said):
            raise ValueError("mean and std are of float32 pixels: declare their range, such as [0, 1]")
        given = {name: tuple(value) if isinstance(value, list) else value for name, value in said.items()}
        return Preparation(**{"name": path.name, **given})
    except (ValueError, TypeError) as error:
        raise FidError(f"{beside}: {error}", "BAD_FEATURES") from error
