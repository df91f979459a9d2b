"""One image: encoded bytes to pixels and back, by Pillow."""

import contextlib
import io
import re
from collections.abc import Callable
from typing import IO, Any

import numpy as np

from ..errors import AnisoflightError

try:
    from PIL import Image, ImageOps
except ImportError:
    raise AnisoflightError("images need the package Pillow: pip install 'anisoflight[data]'", "NEEDS_PACKAGE") from None

Picture = np.ndarray[Any, Any]
"""An image [H, W, C]: uint8, or float32 in [−1, 1]."""

MAX_PIXELS = 1 << 26
"""Most pixels of an image that is read, 8192 × 8192; a file that claims more is not decoded."""

MAX_ENCODED = 1 << 28  # bytes of an encoded image
TOLERANCE = 1e-6  # by which a float may leave [−1, 1]

_DAMAGED = (OSError, SyntaxError, EOFError)  # what Pillow raises of bytes that it cannot decode

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp")
OTHERS = (".gif", ".tif", ".tiff", ".ppm", ".pgm", ".avif", ".heic", ".jxl", ".jp2")
HEAD = 16  # bytes that tell a format
_FORMATS = re.compile(rb"\x89PNG\r\n\x1a\n|\xff\xd8\xff|RIFF....WEBP|BM....\0{4}", re.DOTALL)
_OTHER_FORMATS = re.compile(rb"GIF8[79]a|II\*\0|MM\0\*|\0\0\0\x0c(JXL |jP  )|....ftyp(avi|hei|hev|mif|msf)", re.DOTALL)


def is_picture(name: str, head: Callable[[], bytes]) -> bool:
    """Whether a file is an image, by its suffix or its first bytes. ValueError if its format is not read: leaving it
    out silently would give another data set.
    """
    if name.lower().endswith(SUFFIXES):
        return True
    begin = head()
    if _FORMATS.match(begin):
        return True
    if name.lower().endswith(OTHERS) or _OTHER_FORMATS.match(begin):
        raise ValueError("is an image of a format that is not read; make it a PNG, JPEG, WebP or BMP")
    return False


def read_at_most(file: IO[bytes], most: int) -> bytes:
    """All bytes of a file of at most `most` bytes."""
    data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"has more than {most:,} bytes, which no such file has")
    return data


def decoded(data: bytes | None) -> Picture:
    """The pixels of a PNG, JPEG, WebP or BMP."""
    if not data or len(data) > MAX_ENCODED:
        raise ValueError(f"has {len(data or b''):,} bytes; an encoded image has 1 to {MAX_ENCODED:,}, not a path")
    try:
        with Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "WEBP", "BMP")) as image:
            return pixels_of(image)
    except Image.DecompressionBombError as error:
        raise ValueError(f"claims too many pixels; at most {MAX_PIXELS:,} are decoded") from error
    except Image.UnidentifiedImageError as error:
        raise ValueError("is no PNG, JPEG, WebP or BMP") from error
    except _DAMAGED as error:
        raise ValueError(f"is damaged: {error}") from error


def pixels_of(image: Image.Image) -> Picture:
    """The bytes [H, W, C] of an image of Pillow: one channel for grey modes, else three, red first.

    The orientation of EXIF is applied, palettes are resolved, alpha is dropped, and of 16-bit grey the upper 8 bits are
    kept. ValueError if the mode does not tell its scale, such as I (32 bits) and F (floats), or the image is damaged.
    Every image of a file, table or list is decoded here.

    >>> pixels_of(Image.new("LA", (4, 2))).shape, pixels_of(Image.new("P", (4, 2))).shape
    ((2, 4, 1), (2, 4, 3))
    """
    if image.width * image.height > MAX_PIXELS:
        raise ValueError(f"claims {image.height}×{image.width} pixels; at most {MAX_PIXELS:,} are decoded")
    try:
        image.load()
        with contextlib.suppress(*_DAMAGED):  # EXIF that cannot be read turns nothing
            image = ImageOps.exif_transpose(image)
        match image.mode:
            case "1" | "L" | "LA":
                pixels = np.asarray(image.convert("L"))
            case "I;16" | "I;16L" | "I;16B" | "I;16N":
                pixels = (np.asarray(image) >> 8).astype(np.uint8)
            case "P" | "PA":
                pixels = np.asarray(image.convert("RGBA").convert("RGB"))  # direct conversion may warn of transparency
            case "RGB" | "RGBA" | "RGBX" | "CMYK" | "YCbCr" | "HSV":
                pixels = np.asarray(image.convert("RGB"))
            case mode:
                raise ValueError(f"has Pillow's mode {mode}, which does not tell its scale; convert it to L or RGB")
    except _DAMAGED as error:
        raise ValueError(f"is damaged: {error}") from error
    return pixels.reshape(*pixels.shape[:2], -1)


def image_of(picture: Picture) -> Image.Image:
    """An array of bytes with one or three channels as an image of Pillow."""
    return Image.fromarray(picture[:, :, 0] if picture.shape[2] == 1 else picture)


def checked(picture: Picture, own_units: bool = False) -> Picture:
    """The picture, if its values lie in [−1, 1] or, in other units, are finite."""
    if picture.dtype == np.uint8:
        return picture
    wrong = picture[~(np.isfinite(picture) if own_units else np.abs(picture) <= 1 + TOLERANCE)]
    if wrong.size:
        message = "images of floats are finite and lie in [−1, 1], others come with --mean and --scale"
        raise ValueError(f"has the value {wrong[0]}; {'fields are finite' if own_units else message}")
    return picture


def check_alike(picture: Picture, first: Picture) -> None:
    """ValueError unless a picture has the shape and type of the first."""
    if (picture.shape, picture.dtype) != (first.shape, first.dtype):
        has, have = (f"{'×'.join(map(str, one.shape))} {one.dtype}" for one in (picture, first))
        message = "--resolution and --channels of data convert make them alike"
        raise ValueError(f"has {has}, those before have {have}; {message}")
