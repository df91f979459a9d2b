"""EDM's transforms of images to one resolution, by the names of its dataset tool, with Pillow's filters."""

from collections.abc import Callable

import numpy as np
from PIL import Image

from ..wire.pictures import MAX_PIXELS, Picture, image_of

_Resampling = Image.Resampling


def resize(image: Image.Image, height: int, width: int) -> Image.Image:
    """Lanczos, without keeping proportions."""
    return image.resize((width, height), _Resampling.LANCZOS)


def center_crop(image: Image.Image, height: int, width: int) -> Image.Image:
    """Lanczos of the largest central square."""
    side = min(image.size)
    left, top = (image.width - side) // 2, (image.height - side) // 2
    return resize(image.crop((left, top, left + side, top + side)), height, width)


def center_crop_wide(image: Image.Image, height: int, width: int) -> Image.Image | None:
    """Lanczos of the middle at the target's width and the image's proportions, between black bars in a square of that
    width.

    None for an image narrower than the target, or with fewer rows.
    """
    rows = round(width * image.height / image.width)
    if image.width < width or rows < height:
        return None
    cut = image.crop((0, (image.height - rows) // 2, image.width, (image.height + rows) // 2))
    square = Image.new(image.mode, (width, width))
    square.paste(resize(cut, height, width), (0, (width - height) // 2))
    return square


def center_crop_dhariwal(image: Image.Image, height: int, width: int) -> Image.Image:
    """ADM's: halve by a box filter while twice the target fits, bicubic to the shorter side, the middle square."""
    while min(image.size) >= 2 * height:
        image = image.resize((image.width // 2, image.height // 2), _Resampling.BOX)
    scale = height / min(image.size)
    image = image.resize((round(image.width * scale), round(image.height * scale)), _Resampling.BICUBIC)
    left, top = (image.width - width) // 2, (image.height - height) // 2
    return image.crop((left, top, left + width, top + height))


TRANSFORMS: dict[str, Callable[[Image.Image, int, int], Image.Image | None]] = {
    "resize": resize,
    "center-crop": center_crop,
    "center-crop-wide": center_crop_wide,
    "center-crop-dhariwal": center_crop_dhariwal,
}


def check(transform: str | None, size: tuple[int, int] | None, channels: int | None) -> None:
    """ValueError unless a transform can make images of size (height, width) with these channels."""
    if transform is not None and transform not in TRANSFORMS:
        raise ValueError(f"transform must be one of {', '.join(TRANSFORMS)}, got {transform!r}")
    if channels not in (None, 1, 3):
        raise ValueError(f"channels must be 1 or 3, got {channels}")
    if size is None:
        if transform is not None:
            raise ValueError(f"transform {transform} needs a resolution, such as 64")
        return
    height, width = size
    if height < 1 or width < 1 or height * width > MAX_PIXELS:
        raise ValueError(f"resolution must have 1 to {MAX_PIXELS:,} pixels, got {width}x{height}")
    if transform == "center-crop-dhariwal" and height != width:
        raise ValueError(f"center-crop-dhariwal makes squares, got the resolution {width}x{height}")
    if transform == "center-crop-wide" and height > width:
        raise ValueError(f"center-crop-wide makes wide images, got the resolution {width}x{height}")


def transformed(
    picture: Picture, transform: str | None, size: tuple[int, int] | None, channels: int | None
) -> Picture | None:
    """A picture at size (height, width) with 1 or 3 channels, None keeping what it has; None if it is left out."""
    if picture.dtype != np.uint8:
        if channels not in (None, picture.shape[2]) or size not in (None, picture.shape[:2]) or transform is not None:
            raise ValueError("is of floats; only images of bytes are resized or change their channels")
        return picture
    channels = picture.shape[2] if channels is None else channels
    if channels == picture.shape[2] and size in (None, picture.shape[:2]) and transform is None:
        return picture
    if picture.shape[2] not in (1, 3):
        raise ValueError(f"has {picture.shape[2]} channels; only images of 1 or 3 are resized or change their channels")
    image: Image.Image | None = image_of(picture).convert("L" if channels == 1 else "RGB")
    if size is not None:
        image = TRANSFORMS[transform or "resize"](image, *size)
    return None if image is None else np.asarray(image).reshape(image.height, image.width, -1)
