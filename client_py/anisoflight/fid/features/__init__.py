"""What images are seen through: a network's file of the user's own, or a small built-in.

`load_features` opens a file, `builtin.fitted` makes a built-in; both are `Features`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import FidError
from . import builtin, onnxfile, torchfile

if TYPE_CHECKING:
    from ...images import Pixels
    from ...moments import Matrix
    from ..reference import Reference
    from ..sources import Source

__all__ = ["Features", "Loading", "for_calc", "for_reference"]


class Features(Protocol):
    """Images to features, with a name and a hash to tell what was measured."""

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    @property
    def hash(self) -> str:
        """SHA-256 of all that its features depend on beside the image."""
        ...

    @property
    def dimension(self) -> int:
        """Features per image."""
        ...

    @property
    def published(self) -> bool:
        """Whether a Fréchet distance on them is an FID, comparable with published ones."""
        ...

    def __call__(self, images: Pixels) -> Matrix:
        """Features [n, dimension], float64, of uint8 images [n, H, W, C]."""
        ...

    def arrays(self) -> dict[str, Any]:
        """What a reference file keeps so that the features can be made again from it; nothing, of a network's file."""
        ...


@dataclass(frozen=True)
class Loading:
    """How a network's file is run."""

    device: str = "auto"
    """Of torch and onnxruntime: auto, cpu, cuda, cuda:1."""
    trust: bool = False
    """Whether a pickle, which executes code of its own, may be loaded."""


def for_reference(name: str, source: Source, loading: Loading, progress: bool = False) -> Features:
    """The features that a reference is made with: a network's file, or a built-in fitted to its images.

    `progress` shows a bar while a built-in is fitted.
    """
    return builtin.fitted(name, source, progress) if builtin.is_builtin(name) else _load(name, loading)


def for_calc(name: str | None, reference: Reference, loading: Loading) -> Features:
    """The features that samples are compared to a reference with; built-ins come from the reference (name None too).

    What does not fit the reference is a `FidError`.
    """
    made = reference.provenance.get("features", {})
    if name is None or builtin.is_builtin(name):
        known = made.get("name", "features that it does not name")
        if not reference.parameters or name not in (None, known):
            asked = f"--features {name}" if name else "no --features"
            raise FidError(f"{asked}, but the reference is of {known}", "BAD_FEATURES")
        return builtin.restored(known, reference.parameters)
    features = _load(name, loading)
    if "hash" in made and made["hash"] != features.hash:
        raise FidError(f"{name} is not the network of the reference, which is of {made['name']}", "BAD_REFERENCE")
    if features.dimension != reference.dimension:
        sizes = f"{features.dimension} features, the reference has {reference.dimension}"
        raise FidError(f"{name} gives {sizes}", "BAD_REFERENCE")
    return features


def _load(name: str, loading: Loading) -> Features:
    path = Path(name)
    loaders = {".pt": torchfile.load_torch, ".torchscript": torchfile.load_torch, ".pkl": torchfile.load_torch}
    loader = {**loaders, ".onnx": onnxfile.load_onnx}.get(path.suffix)
    if loader is None:
        choices = "a .pkl, .pt, .torchscript or .onnx file, pixels, pca-N or classifier"
        raise FidError(f"{name!r} names no features; they are {choices}", "BAD_FEATURES")
    if not path.is_file():
        raise FidError(f"there is no file {path}", "BAD_FEATURES")
    beside = path.with_name(path.name + ".json")
    digest = hashlib.sha256()
    for part in (path, *([beside] if beside.exists() else [])):
        with part.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return loader(path, digest.hexdigest(), loading)
