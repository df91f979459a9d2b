"""Writes pillow.npz: what Pillow makes of one picture, for resample's tests. Needs numpy and pillow."""

from pathlib import Path

import numpy as np
import PIL.Image

filters = {"box": PIL.Image.BOX, "bicubic": PIL.Image.BICUBIC, "lanczos": PIL.Image.LANCZOS}


def picture(height: int, width: int) -> np.ndarray:
    """A picture by formula: smooth, with edges and noise. Tests in Go make the same."""
    y, x, c = np.meshgrid(np.arange(height), np.arange(width), np.arange(3), indexing="ij")
    noise = (x * 7919 + y * 104729 + c * 1299709) % 61
    return ((x * (3 + c) + y * 5 + 120 * ((x // 7 + y // 5) % 2) + noise) % 256).astype(np.uint8)


def resize(im: PIL.Image.Image, width: int, height: int, kind: int) -> PIL.Image.Image:
    """Rows, then columns, as every Pillow did until 12; newer ones may choose the other order."""
    return im.resize((width, im.height), kind).resize((width, height), kind)


def crop_dhariwal(image: np.ndarray, side: int) -> np.ndarray:
    """ADM's preparation of ImageNet, from the description in the paper's appendix."""
    im = PIL.Image.fromarray(image)
    while min(im.size) >= 2 * side:
        im = resize(im, im.width // 2, im.height // 2, PIL.Image.BOX)
    scale = side / min(im.size)
    im = resize(im, round(im.width * scale), round(im.height * scale), PIL.Image.BICUBIC)
    left, top = (im.width - side) // 2, (im.height - side) // 2
    return np.asarray(im.crop((left, top, left + side, top + side)))


arrays = {}
for height, width in [(37, 53), (64, 41)]:
    im = PIL.Image.fromarray(picture(height, width))
    for name, kind in filters.items():
        for h, w in [(16, 16), (9, 30), (40, 60)]:
            arrays[f"{name}_{height}x{width}_{h}x{w}"] = np.asarray(resize(im, w, h, kind))
    arrays[f"dhariwal_{height}x{width}_9x9"] = crop_dhariwal(picture(height, width), 9)
np.savez_compressed(Path(__file__).with_name("pillow.npz"), **arrays)
