"""The images of a recipe's scaled-down twin: waves of each class, and noise, in the format of the real images."""

from __future__ import annotations

import io
import json
import math
import shutil
import zipfile
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from .recipe import Dataset

_SIDE = 20  # of files in folders, the shorter one
_BATCHES = 5  # of CIFAR-10


def generate(dataset: Dataset, target: Path) -> None:
    """Write the images of a twin. The same entries give the same images."""
    if target.is_dir():
        shutil.rmtree(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    FORMATS[dataset.generate](dataset, target)


def _picture(dataset: Dataset, i: int, width: int, height: int) -> npt.NDArray[np.uint8]:
    rng = np.random.default_rng(i)
    angle = math.pi * _label(dataset, i) / max(1, dataset.classes)
    x, y = np.arange(width) / width, np.arange(height)[:, None] / height
    turns = 2 * (math.cos(angle) * x + math.sin(angle) * y) + rng.random()
    wave = np.sin(2 * math.pi * turns)[..., None] * np.array([1.0, 0.5, -0.5])
    return (128 + 90 * wave + 30 * rng.random((height, width, 3))).astype(np.uint8)


def _label(dataset: Dataset, i: int) -> int:
    return i % dataset.classes if dataset.classes else 0


def _encoded(pixels: npt.NDArray[np.uint8], form: str) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, form)
    return file.getvalue()


def _cifar(dataset: Dataset, target: Path) -> None:
    """data_batch_1.bin to data_batch_5.bin: for each image a byte of label and the planes of red, green and blue."""
    target.mkdir()
    for batch, images in enumerate(np.array_split(np.arange(dataset.images), _BATCHES), 1):
        rows = [bytes([_label(dataset, i)]) + _picture(dataset, i, 32, 32).transpose(2, 0, 1).tobytes() for i in images]
        (target / f"data_batch_{batch}.bin").write_bytes(b"".join(rows))


def _pngs(dataset: Dataset, target: Path) -> None:
    """Class folders of PNGs in train and in test, as AFHQv2."""
    for i in range(dataset.images):
        split = "train" if i < dataset.images // 2 else "test"
        file = target / split / f"class{_label(dataset, i):04d}" / f"{i:08d}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(_encoded(_picture(dataset, i, _SIDE, _SIDE), "PNG"))


def _jpegs(dataset: Dataset, target: Path) -> None:
    """Class folders of JPEGs that are not square, as ImageNet."""
    for i in range(dataset.images):
        file = target / f"class{_label(dataset, i):04d}" / f"{i:08d}.JPEG"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(_encoded(_picture(dataset, i, _SIDE + 4, _SIDE), "JPEG"))


def _zip(dataset: Dataset, target: Path) -> None:
    """EDM's zip of PNGs of the final size, and dataset.json, whose labels are null without classes."""
    size = dataset.resolution
    labels = []
    with zipfile.ZipFile(target, "w") as out:
        for i in range(dataset.images):
            name = f"{i // 1000:05d}/img{i:08d}.png"
            out.writestr(name, _encoded(_picture(dataset, i, size, size), "PNG"))
            labels.append([name, _label(dataset, i)])
        out.writestr("dataset.json", json.dumps({"labels": labels if dataset.classes else None}))


FORMATS = {"cifar10-batches": _cifar, "png-folders": _pngs, "jpeg-folders": _jpegs, "edm-zip": _zip}
"""The formats, those in which the real images are downloaded."""
