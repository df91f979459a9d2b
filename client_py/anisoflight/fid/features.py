"""Features of images: a network's file, or a small built-in.

Built-ins are for small images, and a Fréchet distance on them is *not* FID:

- ``pixels``: all pixels in [−1, 1];
- ``pca-N``: pixels projected on the N leading principal components of the reference images;
- ``classifier``: 64 hidden units of a small classifier of the labelled reference images (scikit-learn).

They are fitted when the reference is made, and stored in its file.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..files import path_of
from ..images import Pixels, to_float
from ..moments import Matrix, RunningMoments
from . import networks
from .builtin import HiddenUnits, Principal, classifier_features, flat
from .errors import FidError, needs
from .networks import Loading
from .reference import Reference
from .sources import Source

MOST_VALUES = 4096
"""Most pixel values per image of built-ins, whose covariance has the square of that."""
_BUILTIN = re.compile(r"pixels|classifier|pca-[1-9][0-9]*")
_SUFFIXES = (".pt", ".torchscript", ".pkl", ".onnx")
_INCEPTION = 2048  # features of the network of published FIDs


@dataclass(frozen=True)
class Features:
    """A function of uint8 images [n, H, W, C] to float64 features [n, dimension]."""

    name: str
    hash: str
    """SHA-256 of everything that the features depend on, except the image."""
    dimension: int
    published: bool
    """Whether a Fréchet distance on them is an FID, comparable with published ones."""
    function: Callable[[Pixels], Matrix] = field(repr=False)
    parameters: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """What a reference file stores of a built-in."""

    def __call__(self, images: Pixels) -> Matrix:
        return self.function(images)

    @property
    def facts(self) -> dict[str, Any]:
        """Their entry in a row."""
        return {name: getattr(self, name) for name in ("name", "hash", "dimension", "published")}


def for_reference(name: str, source: Source, loading: Loading) -> Features:
    """The features of a new reference: a network's file, or a built-in fitted to its images."""
    return _fitted(name, source) if _BUILTIN.fullmatch(name) else _load(name, loading)


def for_calc(name: str | None, reference: Reference, loading: Loading) -> Features:
    """The features for a comparison with a reference; built-ins come from the reference (also for None).

    A FidError if they do not fit the reference.
    """
    made = reference.provenance.get("features", {})
    if name is None or _BUILTIN.fullmatch(name):
        known = made.get("name", "features that it does not name")
        if not reference.parameters or name not in (None, known):
            asked = f"--features {name}" if name else "no --features"
            raise FidError(f"{asked}, but the reference is of {known}", "BAD_FEATURES")
        return _restored(known, reference.parameters)
    features = _load(name, loading)
    if reason := _misfit(features, reference):
        raise FidError(f"{name} {reason}", "BAD_REFERENCE")
    return features


def for_each(names: Sequence[str], references: Sequence[Reference], loading: Loading) -> list[Features]:
    """The features of several references: its built-in, or the first of the networks' files that fits."""
    if len(references) == 1 and len(names) < 2:
        return [for_calc(names[0] if names else None, references[0], loading)]
    made = [
        reference.provenance.get("features", {}).get("name", "a network that it does not name")
        for reference in references
    ]
    if wrong := [name for name in names if _BUILTIN.fullmatch(name) and name not in made]:
        raise FidError(f"--features {wrong[0]}, but the references are of {', '.join(made)}", "BAD_FEATURES")
    networks = [_load(name, loading) for name in names if not _BUILTIN.fullmatch(name)]

    def fitting(reference: Reference, known: str) -> Features:
        if reference.parameters:
            return for_calc(None, reference, loading)
        if found := [features for features in networks if not _misfit(features, reference)]:
            return found[0]
        message = f"the reference of {reference.dimension} features of {known} needs its network among --features"
        raise FidError(message, "BAD_FEATURES")

    return list(map(fitting, references, made))


def _misfit(features: Features, reference: Reference) -> str:
    """Why a network does not fit the reference; empty if it may fit."""
    made = reference.provenance.get("features", {})
    if "hash" in made and made["hash"] != features.hash:
        return f"is not the network of the reference, which is of {made['name']}"
    if features.dimension != reference.dimension:
        return f"gives {features.dimension} features, the reference has {reference.dimension}"
    return ""


def _load(name: str, loading: Loading) -> Features:
    path = path_of(name)
    if path.suffix not in _SUFFIXES:
        choices = f"a file {', '.join(_SUFFIXES)}, pixels, pca-N or classifier"
        raise FidError(f"{name!r} names no features; they are {choices}", "BAD_FEATURES")
    if not path.is_file():
        raise FidError(f"there is no file {path}", "BAD_FEATURES")
    prepared = networks.declared(path)
    run, inception, axes = networks.load(path, loading)

    def function(images: Pixels) -> Matrix:
        rows = np.asarray(run(prepared(images)), np.float64)
        if rows.ndim > 2 and rows[0].size == rows.shape[1]:
            rows = rows.reshape(len(rows), -1)
        if rows.ndim != 2:
            message = f"{prepared.name} gives {rows.shape}; features are one row per image, [n, d]"
            raise FidError(message, "BAD_FEATURES")
        return rows

    sides = (axes[2:] if prepared.layout == "NCHW" else axes[1:3]) or (64, 64)
    black = np.zeros((1, *(side if isinstance(side, int) else 64 for side in sides), 3), np.uint8)
    dimension = function(black).shape[1]
    published = prepared.published or (inception and dimension == _INCEPTION)
    digest = hashlib.sha256()
    for part in (path, path.with_name(path.name + ".json")):
        if part.exists():
            with part.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return Features(prepared.name, digest.hexdigest(), dimension, published, function)


def _restored(name: str, kept: Mapping[str, Any]) -> Features:
    """The built-in in a reference file."""
    shape = tuple(int(size) for size in kept["shape"])
    parameters = {part: value for part, value in kept.items() if part != "shape"}
    if name == "pixels":
        of_floats, dimension = flat, int(np.prod(shape))
    elif "basis" in kept:
        of_floats, dimension = Principal(kept["mean"], kept["basis"]), kept["basis"].shape[1]
    else:
        of_floats = HiddenUnits(kept["weights"], kept["bias"], float(kept["scale"]))
        dimension = len(kept["bias"])
    digest = hashlib.sha256(f"{name} {shape}".encode())
    for part in sorted(parameters):
        digest.update(np.ascontiguousarray(parameters[part], np.float64).tobytes())

    def function(images: Pixels) -> Matrix:
        if images.shape[1:] != shape:
            sizes = f"{'×'.join(map(str, images.shape[1:]))}, the reference's {'×'.join(map(str, shape))}"
            raise FidError(f"the images are {sizes}", "BAD_IMAGES")
        return of_floats(to_float(images))

    return Features(name, digest.hexdigest(), dimension, False, function, {**kept, "shape": np.array(shape)})


def _fitted(name: str, source: Source) -> Features:
    """The built-in of that name, fitted to the images of a source."""
    shape = next(iter(source.read(0, 1))).shape[1:]
    values = int(np.prod(shape))
    if values > MOST_VALUES:
        sizes = f"of {values} values, more than {MOST_VALUES}"
        raise FidError(f"{name} is for small images; these are {sizes}. Use a network's file", "BAD_FEATURES")
    if name == "pixels":
        return _restored(name, {"shape": shape})
    if name == "classifier":
        units = _classified(source)
        return _restored(name, {"shape": shape, "weights": units.weights, "bias": units.bias, "scale": units.scale})
    components = int(name.removeprefix("pca-"))
    if components > values:
        raise FidError(f"{name}: the images have {values} values", "BAD_FEATURES")
    running = RunningMoments(values)
    for images in source.read(0, source.count):
        running.update(flat(to_float(images)))
    principal = Principal.of(running.moments(), components)
    return _restored(name, {"shape": shape, "mean": principal.mean, "basis": principal.basis})


def _classified(source: Source) -> HiddenUnits:
    labels = source.labels()
    if labels is None:
        raise FidError("features classifier are fitted to labelled images; these have no labels", "BAD_FEATURES")
    images = to_float(np.concatenate(list(source.read(0, source.count))))
    try:
        return classifier_features(images, labels)[0]
    except ImportError:
        raise needs("scikit-learn", "features classifier") from None
