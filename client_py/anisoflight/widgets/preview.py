"""Samples at every step."""

import anywidget
import numpy as np
import traitlets

from .. import images as pictures
from ..errors import BadRequestError
from ..wire.samples import Samples
from ..wire.tensors import to_numpy
from .script import script

MOST = 64
"""Most images that are shown."""


class Previews(anywidget.AnyWidget):
    """A slider over the steps of samples that were drawn with `every`: the denoised estimates, and at the end the
    images.

    The first 64 images are shown, enlarged by `scale` (by default to about 400 pixels in all). Traits: `place` is the
    index of the shown frame, and `frames` are their names and pictures.
    """

    _esm = script("preview")
    frames = traitlets.List(traitlets.Dict()).tag(sync=True)
    place = traitlets.Int(0).tag(sync=True)
    width = traitlets.Int(0).tag(sync=True)

    def __init__(self, samples: Samples, columns: int | None = None, scale: int | None = None) -> None:
        if not samples.previews.num_rows:
            raise BadRequestError("these samples have no previews: draw them with every=1, say")
        estimates, note = samples.to_pictures(samples.previews["sample"])
        step, seed = (to_numpy(samples.previews[name]) for name in ("step", "seed"))
        shown = {}
        for number in np.unique(step):
            rows = {int(seed[row]): row for row in np.flatnonzero(step == number)}
            shown[f"step {number}"] = estimates[[rows[int(one)] for one in samples.seeds[:MOST]]]
        shown["the images"] = samples[:MOST].to_pictures()[0]
        grids = {name: pictures.grid(images, columns=columns) for name, images in shown.items()}
        wide = grids["the images"].shape[1]
        frames = [
            {"name": f"{name}, {note}" if note else name, "picture": pictures.data_uri(grid)}
            for name, grid in grids.items()
        ]
        super().__init__(frames=frames, place=len(frames) - 1, width=wide * (scale or max(1, round(400 / wide))))
