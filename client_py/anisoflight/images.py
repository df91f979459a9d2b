"""Images: bytes to floats and back, grids, PNG bytes and data URIs, with numpy and zlib alone."""

import base64
import math
import re
import struct
import zlib
from collections.abc import Collection, Sequence
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import bad_tensor
from .wire.arrays import images_of, integers, layout_of

Pixels = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]

IMAGES = ("image", "images", "img", "sample", "samples", "pixel_values", "arr_0")
LABELS = ("label", "labels", "arr_1")
"""Names of columns and arrays, in files and in memory; the first that exists is used."""
_LIKE_LABELS = re.compile("(^|_)(labels?|class(es)?|categor(y|ies)|targets?|cls|y)(_?(ids?|idx|index|names?))?$")

_FLOATS = (np.arange(256) / 127.5 - 1).astype(np.float32)


def like_labels(names: Collection[str]) -> list[str]:
    """The names that columns of labels have.

    >>> like_labels(["y", "key", "coarse_label", "classId", "Target"])
    ['y', 'coarse_label', 'classId', 'Target']
    """
    return [name for name in names if _LIKE_LABELS.search(str(name).lower())]


def find_columns(
    names: Sequence[str], labels: str | None = "", hint: str = "rename one of them to label, or drop them"
) -> tuple[str, str | None]:
    """The column or array of images among names, and that of labels if there is one: `labels`, or by default one of
    LABELS. Others that may be labels are not guessed: they are an error with the hint. None takes no labels.

    >>> find_columns(["path", "img", "label"])
    ('img', 'label')
    """
    pixels = next((name for name in IMAGES if name in names), None)
    if pixels is None:
        message = f"images must be an array or a column named {', '.join(IMAGES)}, got {shortlist([*map(str, names)])}"
        raise bad_tensor(f"{message}; rename one, or pass that column alone")
    if labels == "":
        labels = next((name for name in LABELS if name in names), None)
        if labels is None and (similar := like_labels(names)):
            got = f"got {shortlist(similar)}; {hint.format(similar[0])}"
            raise bad_tensor(f"labels must be in a column named label or labels, {got}")
    elif labels is not None and labels not in names:
        raise bad_tensor(f"labels must be in a column, got {labels!r}, but there are {shortlist([*map(str, names)])}")
    for name in (pixels, labels):
        if (count := names.count(name)) > 1:
            raise bad_tensor(f"{name} must be one column, got {count}; rename all but one")
    return pixels, labels


def labels_of(values: Any, count: int) -> npt.NDArray[np.int32]:
    """The labels of `count` images: 0 or more, or −1 for none."""
    labels = integers(values, "labels")
    if labels.shape != (count,):
        raise bad_tensor(f"labels must be one number per image, got shape {labels.shape} for {count} images")
    if (least := labels.min(initial=0)) < -1:
        raise bad_tensor(f"labels must be 0 or more, or −1 for none, got {least}")
    return labels


def shortlist(names: Collection[str]) -> str:
    """The first of many names, for a message.

    >>> shortlist(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(islice(names, 3)) + more if names else "none"


def to_float(images: npt.ArrayLike) -> Floats:
    """Images of uint8 as float32 in [−1, 1], x/127.5 − 1 rounded once, as the server does; floats are returned
    unchanged.

    >>> to_float(np.array([0, 51, 255], np.uint8)).tolist()
    [-1.0, -0.6000000238418579, 1.0]
    """
    array = np.asarray(images)
    return _FLOATS[array] if array.dtype == np.uint8 else array


def to_uint8(images: npt.ArrayLike) -> Pixels:
    """Pixels of images in [−1, 1]: clamp(round(127.5·x + 127.5)) in float64, NaN as 0; uint8 is returned unchanged.

    >>> to_uint8(np.array([-1.0, 0.0, 1.0, 3.0])).tolist()
    [0, 128, 255, 255]
    """
    array = np.asarray(images)
    if array.dtype == np.uint8:
        return array
    rounded = np.rint(127.5 * array.astype(np.float64) + 127.5)
    return np.clip(np.nan_to_num(rounded, nan=0.0), 0, 255).astype(np.uint8)


def grid(images: npt.ArrayLike, columns: int | None = None, scale: int = 1, gap: int = 1) -> Pixels:
    """One picture [h, w, C] of images [N, H, W, C] or [N, C, H, W] in rows of `columns` (by default about a square).

    `scale` repeats every pixel; `gap` is the width of the white line between images, in pixels of the result.

    >>> grid(np.zeros((6, 8, 8, 1)), columns=3, scale=2).shape
    (33, 50, 1)
    """
    array, layout = images_of(to_uint8(images), "images")
    if (layout or layout_of(array.shape[1:])) == "CHW":
        array = np.moveaxis(array, 1, 3)
    array = array.repeat(scale, axis=1).repeat(scale, axis=2)
    count, height, width, channels = array.shape
    columns = min(columns or math.ceil(math.sqrt(count)), max(count, 1))
    rows = math.ceil(count / columns)
    picture = np.full((rows * (height + gap) - gap, columns * (width + gap) - gap, channels), 255, np.uint8)
    for i, image in enumerate(array):
        top, left = i // columns * (height + gap), i % columns * (width + gap)
        picture[top : top + height, left : left + width] = image
    return picture


def png(picture: npt.ArrayLike) -> bytes:
    """The PNG file of a picture [h, w] or [h, w, 1|3|4] of uint8.

    >>> png(np.zeros((2, 2), np.uint8))[:4]
    b'\\x89PNG'
    """
    pixels = np.ascontiguousarray(picture, dtype=np.uint8)
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    height, width, channels = pixels.shape
    if channels not in (1, 3, 4):
        raise ValueError(f"a picture has 1, 3 or 4 channels, got {channels}")
    colour = {1: 0, 3: 2, 4: 6}[channels]
    lines = np.zeros((height, 1 + width * channels), np.uint8)  # each line starts with filter 0
    lines[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    body = _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(lines.tobytes(), 6)) + _chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def data_uri(picture: npt.ArrayLike) -> str:
    """The picture as a ``data:image/png`` address, for self-contained pages."""
    return "data:image/png;base64," + base64.b64encode(png(picture)).decode()


def thumbnails(images: Pixels, columns: int | None = None) -> str:
    """HTML of images as one grid, enlarged to about 48 pixels each if they are smaller."""
    if not len(images):
        return "<p>no images</p>"
    picture = grid(images, columns=columns, scale=max(1, 48 // max(images.shape[1:3])), gap=2)
    return f'<img alt="{len(images)} images" style="image-rendering:pixelated" src="{data_uri(picture)}">'
