"""The data sets of the demo and the figures, as float32 images [N, H, W, C] in [-1, 1] with int32 labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits, load_sample_images

Images = NDArray[np.float32]
Labels = NDArray[np.int32]


@dataclass(frozen=True)
class Split:
    """Images [N, H, W, C] in [-1, 1] and their class numbers [N]."""

    images: Images
    labels: Labels


@dataclass(frozen=True)
class Data:
    """A training split, a held-out split and the names of the classes."""

    train: Split
    test: Split
    classes: tuple[str, ...]


def digits() -> Data:
    """The 1797 handwritten digits, 8 x 8 x 1: 1297 to train, 500 held out (fixed permutation)."""
    pixels, target = load_digits(return_X_y=True)
    images = (pixels.reshape(-1, 8, 8, 1) / 8 - 1).astype(np.float32)  # grey levels 0..16
    order = np.random.RandomState(0).permutation(len(images))
    train, test = order[:1297], order[1297:]
    return Data(
        train=Split(images[train], target[train].astype(np.int32)),
        test=Split(images[test], target[test].astype(np.int32)),
        classes=tuple(str(i) for i in range(10)),
    )


def patches(per_class: int = 4000, size: int = 8) -> Data:
    """Random crops, size x size x 3, of two photographs downsampled by two; one class per photograph.

    Both splits are crops of the same photographs, so the held-out split measures sampling noise, not generalisation.
    """
    rng = np.random.default_rng(0)
    crops, labels = [], []
    for label, photo in enumerate(load_sample_images().images):
        photo = photo.astype(np.float32)[: photo.shape[0] // 2 * 2, : photo.shape[1] // 2 * 2]
        half = photo.reshape(photo.shape[0] // 2, 2, photo.shape[1] // 2, 2, 3).mean(axis=(1, 3)) / 127.5 - 1
        for _ in range(2 * per_class):
            y, x = rng.integers(half.shape[0] - size + 1), rng.integers(half.shape[1] - size + 1)
            crops.append(half[y : y + size, x : x + size])
            labels.append(label)
    images, target = np.stack(crops), np.asarray(labels, np.int32)
    order = rng.permutation(len(images))
    train, test = order[: 2 * per_class], order[2 * per_class :]
    return Data(Split(images[train], target[train]), Split(images[test], target[test]), ("china", "flower"))
