"""Starts: the normal law of a data set that sampling starts from, as a file for any sampler.

A schedule with a start is sampled from states drawn from the law of data of mean μ and covariance Σ under noise of
covariance M = Σ_j g_j P_j, in place of noise alone,

    x_T = μ + (Σ + M)^½ ξ.

The file start.safetensors holds that law. Another sampler needs ten lines to use it, here at σ = 4 from the latents of
seeds 7 and 8:

>>> _ = client.make_schedule("matched", "start", dataset="blocks", sigma_max=4, replace=True, progress=False)
>>> client.schedule("matched").start.save(folder / "start.safetensors")
>>> from safetensors.numpy import load_file
>>> from scipy.fft import dctn, idctn
>>> law = load_file(folder / "start.safetensors")
>>> mean, variance, axes = (law[f"{name}.-1"] for name in ("mean", "variance", "axes"))
>>> xi = latents([7, 8], mean.shape).astype(float)  # or any unit normal noise [n, H, W, C]
>>> y = np.einsum("uvkc,nuvc->nuvk", axes, dctn(xi, axes=(1, 2), norm="ortho"))
>>> y = np.einsum("uvkc,nuvk->nuvc", axes, y * np.sqrt(variance + 4.0**2))
>>> x = mean + idctn(y, axes=(1, 2), norm="ortho")
>>> bool(np.allclose(x, client.schedule("matched").start.draw(xi, 4.0**2)))
True
"""

import hashlib
import json
from os import PathLike
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load, save

from .errors import bad_schedule
from .files import path_of
from .files.temporary import whole_file
from .latents import latents
from .plans.numpy_or_torch import like
from .subspaces import Coordinates, Subspaces, orthonormal
from .wire.arrays import array_of

__all__ = ["START_FILE", "Start", "latents"]

Array = np.ndarray[Any, Any]

START_FILE = "start.safetensors"
_FORMAT = {"format": "anisoflight-start", "version": "1", "covariance": "dct"}


class Start:
    """The law of a data set: of all its images and, if it is per class, of each class."""

    def __init__(self, file: bytes) -> None:
        self.file = file
        self._coordinates: dict[int, Coordinates] = {}
        try:
            self._tensors, length = load(file), int.from_bytes(file[:8], "little")
            self.metadata: dict[str, str] = json.loads(file[8 : 8 + length])["__metadata__"]
            self._check()
        except (SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
            message = f"{error.args[0]} is missing or of another type" if isinstance(error, KeyError) else error
            raise bad_schedule(f"not a start: {message}") from error

    def _check(self) -> None:
        """ValueError or KeyError if the server would refuse the file; see docs/wire.md, ExportStart."""
        metadata, found = self.metadata, self._tensors
        if {key: metadata.get(key) for key in _FORMAT} != _FORMAT:
            raise ValueError(f"its metadata must have {_FORMAT}, got {metadata}")
        _ = float(metadata["shrinkage"])
        labels = [int(name.removeprefix("mean.")) for name in found if name.startswith("mean.")]
        size = found["mean.-1"].shape
        units = json.loads(metadata.get("normalization") or "{}")
        fit = all(np.array(part, float).shape in [(1,), size[2:]] for part in units.values())
        if min(labels) < -1 or len(size) != 3 or not fit:
            raise ValueError(f"labels must be −1 or classes, and the normalization must fit images {size}")
        for label in labels:
            own = {name.split(".")[0]: found[name] for name in found if name.endswith(f".{label}")}
            shapes = {"mean": size, "variance": size, "axes": (*size, *size[2:]), "images": (1,)}
            for name in {"mean", "variance"} | own.keys() & shapes.keys():
                values, kind = own[name], np.int64 if name == "images" else np.float64
                fits = (values.dtype, values.shape) == (kind, shapes[name]) and values.size
                if not fits or not np.isfinite(values).all():
                    raise ValueError(f"{name}.{label} must be finite {kind.__name__} of the shape {shapes[name]}")
                if name in ("variance", "images") and values.min() < 0:
                    raise ValueError(f"{name}.{label} must not be negative, got {values.min()}")
            if "axes" in own and not orthonormal(own["axes"]):
                raise ValueError(f"the axes of {label} must be orthonormal")

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """A start from its file."""
        return cls(path_of(path).read_bytes())

    def save(self, path: str | PathLike[str]) -> None:
        """Write the file."""
        with whole_file(path) as file:
            file.write(self.file)

    def __repr__(self) -> str:
        height, width, channels = self.size
        classes = f"of {len(self.labels)} classes" if self.labels else "of all images"
        return f"Start({self.metadata['covariance']!r}, {height}×{width}×{channels}, {classes})"

    @property
    def hash(self) -> str:
        """The SHA-256 of the file, as the server lists it."""
        return hashlib.sha256(self.file).hexdigest()

    @property
    def size(self) -> tuple[int, int, int]:
        """[H, W, C] of the images."""
        height, width, channels = self._tensors["mean.-1"].shape
        return height, width, channels

    @property
    def labels(self) -> list[int]:
        """The classes with their own laws."""
        found = (int(name.removeprefix("mean.")) for name in self._tensors if name.startswith("mean."))
        return sorted(label for label in found if label >= 0)

    def draw(
        self, xi: npt.ArrayLike, g: float | npt.ArrayLike, label: int = -1, subspaces: Subspaces | None = None
    ) -> Array:
        """μ + (Σ + M)^½ ξ in float64, from unit normal ξ [n, H, W, C], for a class or, with −1, for any image.

        g is the variance of the noise: one number, or g_j for each of the subspaces. If Σ does not have the noise's
        directions, the root is that of the whole matrix.
        """
        noise, levels = array_of(xi, "xi", np.float64), np.atleast_1d(array_of(g, "g", np.float64))
        if noise.shape[1:] != self.size:
            raise ValueError(f"xi must be images [n, {', '.join(map(str, self.size))}], got {list(noise.shape)}")
        if subspaces is None and np.any(levels != levels[0]):
            raise ValueError("g must be one number unless the subspaces are given")
        return np.moveaxis(self.drawn(np.moveaxis(noise, -1, 1), levels, label, subspaces), 1, -1)

    def drawn(self, xi: Any, levels: Array, label: int, subspaces: Subspaces | None) -> Any:
        """`draw` for noise [n, C, …], a tensor or an array, in its own dtype; levels are g_j [J]."""
        label = label if f"mean.{label}" in self._tensors else -1
        mean = like(np.moveaxis(self._tensors[f"mean.{label}"], -1, 0).reshape(xi.shape[1:]), xi)
        if subspaces is None or np.all(levels == levels[0]):
            return mean + self._isotropic(xi, float(levels[0]), label)
        return mean + self._anisotropic(xi, levels, label, subspaces)

    def times(self, factor: float) -> Self:
        """The law of the data multiplied by a factor."""
        powers = {"mean": factor, "variance": factor**2}
        scaled = {name: values * powers.get(name.split(".")[0], 1) for name, values in self._tensors.items()}
        return type(self)(save(scaled, self.metadata))

    def _isotropic(self, xi: Any, g: float, label: int) -> Any:
        """(Σ + gI)^½ ξ, in the law's directions."""
        if label not in self._coordinates:
            self._coordinates[label] = Coordinates(*self.size, self._tensors.get(f"axes.{label}"))
        return self._coordinates[label].combine([xi], [np.sqrt(self._tensors[f"variance.{label}"] + g)])

    def _anisotropic(self, xi: Any, levels: Array, label: int, subspaces: Subspaces) -> Any:
        """(Σ + Σ_j g_j P_j)^½ ξ, by the root of the whole matrix."""
        size = int(np.prod(self.size))
        units = np.eye(size).reshape(size, *xi.shape[1:])
        covariance = self._isotropic(self._isotropic(units, 0.0, label), 0.0, label)
        noise = subspaces.combine([level * units for level in levels])
        values, vectors = np.linalg.eigh((covariance + noise).reshape(size, size))
        root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
        return (xi.reshape(len(xi), size) @ like(root, xi)).reshape(xi.shape)
