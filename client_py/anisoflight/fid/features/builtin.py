"""Features that need no network's file, for small images. A Fréchet distance on them is *not* FID.

- ``pixels``: all pixels in [−1, 1];
- ``pca-N``: pixels projected on the N leading principal components of the reference images;
- ``classifier``: 64 hidden units of a small classifier of the labelled reference images (scikit-learn).

They are fitted when the reference is made and kept in its file.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm.auto import tqdm

from ...compare.metrics import PASSES, HiddenUnits, Principal, classifier_features, flat
from ...images import to_float
from ...moments import RunningMoments
from ..errors import FidError, needs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...images import Pixels
    from ...moments import Matrix
    from ..sources import Source

MOST_VALUES = 4096
"""Pixel values per image up to which these are offered: their covariance has the square of that many entries."""
_PCA = re.compile(r"pca-([1-9][0-9]*)")


@dataclass(frozen=True)
class Builtin:
    """A function of pixels in [−1, 1], and its parameters."""

    name: str
    shape: tuple[int, ...]
    """Of the images [H, W, C] that it takes."""
    dimension: int
    parameters: dict[str, Any]
    function: Callable[[Any], Matrix]
    published: bool = False

    def __call__(self, images: Pixels) -> Matrix:
        if images.shape[1:] != self.shape:
            sizes = f"{'×'.join(map(str, images.shape[1:]))}, the reference's {'×'.join(map(str, self.shape))}"
            raise FidError(f"the images are {sizes}", "BAD_IMAGES")
        return self.function(to_float(images))

    @property
    def hash(self) -> str:
        digest = hashlib.sha256(f"{self.name} {self.shape}".encode())
        for name in sorted(self.parameters):
            digest.update(np.ascontiguousarray(self.parameters[name], np.float64).tobytes())
        return digest.hexdigest()

    def arrays(self) -> dict[str, Any]:
        return {"shape": np.array(self.shape), **self.parameters}


def is_builtin(name: str) -> bool:
    return name in ("pixels", "classifier") or _PCA.fullmatch(name) is not None


def restored(name: str, arrays: Mapping[str, Any]) -> Builtin:
    """The features that `arrays` were kept of."""
    shape = tuple(int(size) for size in arrays["shape"])
    if name == "pixels":
        return Builtin(name, shape, int(np.prod(shape)), {}, flat)
    if name == "classifier":
        units = HiddenUnits(arrays["weights"], arrays["bias"], float(arrays["scale"]))
        return _classifier(shape, units)
    return _principal(name, shape, Principal(arrays["mean"], arrays["basis"]))


def fitted(name: str, source: Source, progress: bool = False) -> Builtin:
    """The features of that name, fitted to the images of a source; `progress` shows a bar where that takes a while."""
    first = next(iter(source.read(0, 1)))
    shape = first.shape[1:]
    values = int(np.prod(shape))
    if values > MOST_VALUES:
        sizes = f"of {values} values, more than {MOST_VALUES}"
        raise FidError(f"{name} is for small images; these are {sizes}. Use a network's file", "BAD_FEATURES")
    if name == "pixels":
        return Builtin(name, shape, values, {}, flat)
    if match := _PCA.fullmatch(name):
        return _pca(name, shape, int(match[1]), source)
    return _classified(shape, source, progress)


def _pca(name: str, shape: tuple[int, ...], k: int, source: Source) -> Builtin:
    values = int(np.prod(shape))
    if k > values:
        raise FidError(f"{name}: the images have {values} values", "BAD_FEATURES")
    running = RunningMoments(values)
    for images in source.read(0, source.count):
        running.update(flat(to_float(images)))
    return _principal(name, shape, Principal.of(running.moments(), k))


def _classified(shape: tuple[int, ...], source: Source, progress: bool) -> Builtin:
    labels = source.labels()
    if labels is None:
        raise FidError("features classifier are fitted to labelled images; these have no labels", "BAD_FEATURES")
    images = to_float(np.concatenate(list(source.read(0, source.count))))
    try:
        with tqdm(total=PASSES, desc="fitting the classifier", unit="pass", disable=not progress) as bar:
            units, _ = classifier_features(images, labels, lambda done: bar.update(done - bar.n))
    except ImportError:
        raise needs("scikit-learn", "features classifier") from None
    return _classifier(shape, units)


def _principal(name: str, shape: tuple[int, ...], principal: Principal) -> Builtin:
    kept = {"mean": principal.mean, "basis": principal.basis}
    return Builtin(name, shape, principal.basis.shape[1], kept, principal)


def _classifier(shape: tuple[int, ...], units: HiddenUnits) -> Builtin:
    kept = {"weights": units.weights, "bias": units.bias, "scale": units.scale}
    return Builtin("classifier", shape, len(units.bias), kept, units)
