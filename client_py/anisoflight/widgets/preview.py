"""Images on their way from noise."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import anywidget
import traitlets

from .. import images as pictures
from ..errors import BadRequestError
from ..wire.tensors import to_numpy
from .script import script

if TYPE_CHECKING:
    from ..samples import Samples

MOST = 64
"""Images that are shown."""


class Previews(anywidget.AnyWidget):
    """A slider over the steps of samples that were drawn with `every`: the denoised estimates, and the images last.

    The first 64 images are shown, enlarged by `scale` (about 400 pixels in all unless it is given).
    Traits: `place` is the frame that is shown, from 0, and `frames` are their names and pictures.
    """

    _esm = script("preview")
    frames = traitlets.List(traitlets.Dict()).tag(sync=True)
    place = traitlets.Int(0).tag(sync=True)
    width = traitlets.Int(0).tag(sync=True)

    def __init__(self, samples: Samples, columns: int | None = None, scale: int | None = None) -> None:
        if not samples.previews.num_rows:
            raise BadRequestError("these samples have no previews: draw them with every=1, say")
        seeds = samples.seeds[:MOST]
        order = {int(seed): place for place, seed in enumerate(seeds)}
        estimates, note = samples.to_pictures(samples.previews["sample"])
        step, seed = (to_numpy(samples.previews[name]) for name in ("step", "seed"))
        frames = []
        for number in sorted({int(s) for s in step}):
            rows = [row for row in (step == number).nonzero()[0] if int(seed[row]) in order]
            rows.sort(key=lambda row: order[int(seed[row])])
            frames.append(_frame(f"step {number}", estimates[rows], columns))
        frames.append(_frame("the images", samples[:MOST].to_pictures()[0], columns))
        for frame in frames:
            frame["name"] += f", {note}" if note else ""
        wide = frames[-1].pop("wide")
        for frame in frames[:-1]:
            frame.pop("wide")
        super().__init__(frames=frames, place=len(frames) - 1, width=wide * (scale or max(1, round(400 / wide))))


def _frame(name: str, images: Any, columns: int | None) -> dict[str, Any]:
    picture = pictures.grid(images, columns=columns)
    data = base64.b64encode(pictures.png(picture)).decode()
    return {"name": name, "picture": f"data:image/png;base64,{data}", "wide": picture.shape[1]}
