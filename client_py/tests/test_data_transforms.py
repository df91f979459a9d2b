"""What becomes of an image: decoding, channels, and the transforms of EDM's dataset tool."""

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from anisoflight.data.transforms import check, transformed
from anisoflight.wire.pictures import decoded, pixels_of

Array = np.ndarray[Any, Any]


def picture(height: int, width: int) -> Array:
    """Smooth, with edges and noise."""
    y, x, c = np.meshgrid(np.arange(height), np.arange(width), np.arange(3), indexing="ij")
    noise = (x * 7919 + y * 104729 + c * 1299709) % 61
    return ((x * (3 + c) + y * 5 + 120 * ((x // 7 + y // 5) % 2) + noise) % 256).astype(np.uint8)


def encoded(image: Array | Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    (image if isinstance(image, Image.Image) else Image.fromarray(image)).save(file, kind, **options)
    return file.getvalue()


COLOUR = picture(24, 20)
ALPHA = np.dstack([COLOUR, np.full((24, 20), 77, np.uint8)])
GREY = COLOUR[:, :, :1]
WIDE = np.arange(6, dtype=np.uint16).reshape(2, 3) * 9001


@pytest.mark.parametrize(
    ("data", "want"),
    [
        pytest.param(encoded(COLOUR), COLOUR, id="colour"),
        pytest.param(encoded(COLOUR, "WEBP", lossless=True), COLOUR, id="lossless WebP"),
        pytest.param(encoded(GREY[..., 0]), GREY, id="grey"),
        pytest.param(encoded(ALPHA), COLOUR, id="alpha is dropped, not blended"),
        pytest.param(encoded(np.dstack([GREY, GREY // 2])), GREY, id="grey with alpha"),
        pytest.param(encoded(Image.fromarray(GREY[..., 0] > 99)), (GREY > 99) * np.uint8(255), id="one bit"),
        pytest.param(encoded(Image.fromarray(WIDE)), (WIDE >> 8)[..., None], id="the upper 8 of 16 bits"),
    ],
)
def test_pixels(data: bytes, want: Array) -> None:
    got = decoded(data)
    assert (got.dtype, got.shape) == (np.uint8, want.shape)
    assert (got == want).all()


@pytest.mark.filterwarnings("error")
def test_palettes_are_looked_up() -> None:
    """Also one with transparent colours, of which Pillow warns if it is made RGB at once."""
    image = Image.fromarray(COLOUR).quantize(16)
    want = np.asarray(image.convert("RGB"))
    for data in (encoded(image), encoded(image, transparency=bytes([0, 99]))):
        assert (decoded(data) == want).all()


@pytest.mark.parametrize("mode", ["1", "L", "LA", "I;16", "I;16B", "I;16L", "P", "PA", "RGB", "RGBA", "RGBX"])
def test_an_image_of_pillow_is_decoded_as_a_file_is(mode: str) -> None:
    """One level of grey in every mode: 16 bits hold it in the upper 8, palettes by index."""
    image = Image.new("L", (3, 2), 255).convert(mode) if "16" not in mode else Image.new(mode, (3, 2), 0xFF12)
    if mode[0] == "P":
        image = Image.new(mode, (3, 2), 0)
        image.putpalette([255, 255, 255] * 256)
    want = np.full((2, 3, 1 if mode in ("1", "L", "LA") or "16" in mode else 3), 255, np.uint8)
    got = pixels_of(image)
    assert (got.dtype, got.shape) == (np.uint8, want.shape)
    assert (got == want).all()


@pytest.mark.parametrize("mode", ["I", "F", "LAB", "La", "RGBa"])
def test_a_mode_without_a_scale_is_refused(mode: str) -> None:
    with pytest.raises(ValueError, match=f"has Pillow's mode {mode}, which .* convert it to L or RGB"):
        pixels_of(Image.new(mode, (3, 2)))


def test_a_file_that_is_cut_off_is_refused() -> None:
    """Pillow reads its head when it is opened, and the rest in `pixels_of`."""
    cut = Image.open(io.BytesIO(encoded(COLOUR)[:150]))
    with pytest.raises(ValueError, match="is damaged: "):
        pixels_of(cut)


def crop_wide(image: Array, height: int, width: int) -> Array | None:
    """EDM's center-crop-wide, as its formulas read."""
    rows = int(np.round(width * image.shape[0] / image.shape[1]))
    if image.shape[1] < width or rows < height:
        return None
    cut = image[(image.shape[0] - rows) // 2 : (image.shape[0] + rows) // 2]
    canvas = np.zeros((width, width, 3), np.uint8)
    canvas[(width - height) // 2 : (width + height) // 2] = lanczos(cut, height, width)
    return canvas


def crop_dhariwal(image: Array, height: int, width: int) -> Array:
    """ADM's preparation of ImageNet."""
    im = Image.fromarray(image)
    while min(im.size) >= 2 * height:
        im = im.resize((im.width // 2, im.height // 2), Image.Resampling.BOX)
    scale = height / min(im.size)
    im = im.resize((round(im.width * scale), round(im.height * scale)), Image.Resampling.BICUBIC)
    top, left = (im.height - height) // 2, (im.width - height) // 2
    return np.asarray(im)[top : top + height, left : left + width]


def crop(image: Array, height: int, width: int) -> Array:
    side = min(image.shape[:2])
    top, left = (image.shape[0] - side) // 2, (image.shape[1] - side) // 2
    return lanczos(image[top : top + side, left : left + side], height, width)


def lanczos(image: Array, height: int, width: int) -> Array:
    return np.asarray(Image.fromarray(image).resize((width, height), Image.Resampling.LANCZOS))


EDM = {"resize": lanczos, "center-crop": crop, "center-crop-wide": crop_wide, "center-crop-dhariwal": crop_dhariwal}


@pytest.mark.parametrize("shape", [(37, 53), (64, 41), (30, 40), (20, 33), (9, 16)])
@pytest.mark.parametrize("size", [(16, 16), (9, 9), (7, 20)])
@pytest.mark.parametrize("transform", EDM)
def test_transforms(transform: str, size: tuple[int, int], shape: tuple[int, int]) -> None:
    if transform == "center-crop-dhariwal" and size[0] != size[1]:
        with pytest.raises(ValueError, match="makes squares"):
            check(transform, size, None)
        return
    got, want = transformed(picture(*shape), transform, size, None), EDM[transform](picture(*shape), *size)
    assert (got is None) == (want is None)
    assert got is None or (got == want).all()


def test_channels() -> None:
    """Grey by ITU-R 601-2 in 16 binary places, (19595·R + 38470·G + 7471·B + 2¹⁵)/2¹⁶; colour repeats it."""
    image = np.array([[[255, 0, 0], [0, 255, 0], [10, 20, 250]]], np.uint8)
    grey = transformed(image, None, None, 1)
    assert grey is not None
    assert grey.ravel().tolist() == [76, 150, 43]
    colour = transformed(grey, None, None, 3)
    assert colour is not None
    assert colour.tolist() == grey.repeat(3, 2).tolist()


@pytest.mark.parametrize(
    ("transform", "size", "channels", "says"),
    [
        (
            "center",
            (2, 2),
            None,
            "transform must be one of resize, center-crop, center-crop-wide, center-crop-dhariwal",
        ),
        ("center-crop", None, None, "needs a resolution"),
        ("center-crop-dhariwal", (2, 3), None, "makes squares, got the resolution 3x2"),
        ("center-crop-wide", (3, 2), None, "makes wide images, got the resolution 2x3"),
        (None, (0, 2), None, "resolution must have 1 to"),
        (None, (1 << 20, 1 << 20), None, "resolution must have 1 to"),
        (None, None, 2, "channels must be 1 or 3, got 2"),
    ],
)
def test_settings(transform: str | None, size: tuple[int, int] | None, channels: int | None, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        check(transform, size, channels)
