"""The images of a scaled-down twin: waves for each class, and noise, in the format of the real images."""

import io
import json
import math
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from .recipe import Dataset


def generate(dataset: Dataset, target: Path) -> None:
    """Write the images of a twin. Equal entries give equal images."""
    if target.is_dir():
        shutil.rmtree(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    if dataset.generate == "edm-zip":
        with zipfile.ZipFile(target, "w") as archive:
            for name, content in _files(dataset):
                archive.writestr(name, content)
        return
    for name, content in _files(dataset):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes(content)


def _files(dataset: Dataset) -> Iterator[tuple[str, bytes]]:
    labels = [i % dataset.classes if dataset.classes else 0 for i in range(dataset.images)]

    def picture(i: int, width: int, height: int) -> npt.NDArray[np.uint8]:
        rng = np.random.default_rng(i)
        angle = math.pi * labels[i] / max(1, dataset.classes)
        x, y = np.arange(width) / width, np.arange(height)[:, None] / height
        turns = 2 * (math.cos(angle) * x + math.sin(angle) * y) + rng.random()
        wave = np.sin(2 * math.pi * turns)[..., None] * np.array([1.0, 0.5, -0.5])
        return (128 + 90 * wave + 30 * rng.random((height, width, 3))).astype(np.uint8)

    if dataset.generate == "cifar10-batches":  # for each image its label, and the planes of red, green and blue
        rows = [bytes([label]) + picture(i, 32, 32).transpose(2, 0, 1).tobytes() for i, label in enumerate(labels)]
        for batch in range(5):
            yield f"data_batch_{batch + 1}.bin", b"".join(rows[batch::5])
        return
    names = []
    for i, label in enumerate(labels):
        match dataset.generate:
            case "png-folders":
                split = "train" if i < dataset.images // 2 else "test"
                name, size = f"{split}/class{label:04d}/{i:08d}.png", (20, 20)
            case "jpeg-folders":
                name, size = f"class{label:04d}/{i:08d}.JPEG", (24, 20)
            case _:
                name, size = f"{i // 1000:05d}/img{i:08d}.png", (dataset.resolution, dataset.resolution)
        names.append(name)
        file = io.BytesIO()
        Image.fromarray(picture(i, *size)).save(file, "JPEG" if name.endswith("JPEG") else "PNG")
        yield name, file.getvalue()
    if dataset.generate == "edm-zip":
        pairs = list(zip(names, labels, strict=True)) if dataset.classes else None
        yield "dataset.json", json.dumps({"labels": pairs}).encode()
