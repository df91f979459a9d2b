"""The data sets of the demo and the reports, as float32 images [N, H, W, C] in [-1, 1] with int32 labels."""

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


FIELD_EXPONENTS = (3.0, 4.0)
"""Of the power laws of `fields`, one class each."""


def fields(per_class: int = 4000, size: int = 16) -> Data:
    """Smooth fields that are not Gaussian, size x size x 1, a stand-in for weather; one class for each exponent β.

    A field is tanh(0.6 u + 0.3 (u² − 1)) of a Gaussian field u of variance 1 with power spectrum k^(−β) on a torus
    eight times as wide, of which a corner is kept: steep spectra, skewed values with a floor. The splits are draws of
    their own.
    """
    rng = np.random.default_rng(0)
    wide = 8 * size
    frequency = np.hypot(*np.meshgrid(np.fft.fftfreq(wide), np.fft.rfftfreq(wide), indexing="ij")) * wide
    crops, labels = [], []
    for label, exponent in enumerate(FIELD_EXPONENTS):
        amplitude = np.where(frequency > 0, np.maximum(frequency, 1) ** (-exponent / 2), 0)
        for _ in range(2 * per_class):
            wave = np.fft.irfft2(amplitude * np.fft.rfft2(rng.standard_normal((wide, wide))), s=(wide, wide))
            u = wave[:size, :size] / wave.std()
            crops.append(np.tanh(0.6 * u + 0.3 * (u**2 - 1)).astype(np.float32)[:, :, None])
            labels.append(label)
    images, target = np.stack(crops), np.asarray(labels, np.int32)
    order = rng.permutation(len(images))
    train, test = order[: 2 * per_class], order[2 * per_class :]
    return Data(Split(images[train], target[train]), Split(images[test], target[test]), ("β = 3", "β = 4"))
