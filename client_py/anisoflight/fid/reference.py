"""References: mean and covariance of real images' features, in the npz of EDM, {mu, sigma}.

Files written here also hold ``provenance`` (JSON: features, images, their digest and number), ``features.*``
(parameters of built-in features) and, on request, ``rows``, the features [N, D] as float32, for the distances by
neighbours.
"""

import hashlib
import json
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..files.temporary import whole_file
from ..moments import Moments, RunningMoments, frechet_distance
from ..wire.progress import Progress
from .errors import FidError

Rows = np.ndarray[Any, Any]

_PREFIX = "features."
_PICKLE = """{0} is a pickle, as EDM2 writes references; loading it executes code in it. If you trust its \
source, write its part fid, or fd_dinov2, as npz: python -c "import pickle, numpy; \
numpy.savez('ref.npz', **pickle.load(open('{0}', 'rb'))['fid'])\""""


@dataclass(frozen=True)
class Reference:
    """The reference of a Fréchet distance."""

    moments: Moments
    provenance: dict[str, Any] = field(default_factory=dict)
    """Empty for a file from elsewhere."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Those of built-in features."""
    rows: Rows | None = None

    @property
    def dimension(self) -> int:
        return len(self.moments.mean)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of mu and sigma."""
        return hashlib.sha256(self.moments.mean.tobytes() + self.moments.cov.tobytes()).hexdigest()

    def save(self, path: Path) -> None:
        """Write the file; readers see the old or the new one."""
        provenance = np.array(json.dumps(self.provenance))
        entries = {"mu": self.moments.mean, "sigma": self.moments.cov, "provenance": provenance}
        entries |= {_PREFIX + name: value for name, value in self.parameters.items()}
        save_arrays(path, entries if self.rows is None else {**entries, "rows": self.rows})


def load_reference(path: Path, *, rows: bool = False) -> Reference:
    """A reference file, EDM's or one written here; the features only with `rows`."""
    entry = ""
    try:
        with np.load(path, allow_pickle=False) as file:
            found: dict[str, Any] = {}
            for entry in file.files:
                if entry != "rows" or rows:
                    found[entry] = file[entry]
        provenance = json.loads(str(found.get("provenance", "{}")))
    except FileNotFoundError:
        message = f"there is no reference at {path}; python -m anisoflight.fid ref makes one"
        raise FidError(message, "BAD_REFERENCE") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, OSError, TypeError, AttributeError) as error:
        with path.open("rb") as file:
            if file.read(1) == b"\x80":
                raise FidError(_PICKLE.format(path), "BAD_REFERENCE") from None
        where = f"{path}, entry {entry}" if entry else str(path)
        raise FidError(f"{where}: not a whole npz ({error})", "BAD_REFERENCE") from error
    for name in ("mu", "sigma"):
        if name not in found:
            message = f"no entry {name}; a reference has mu and sigma, not {', '.join(found)}"
            raise FidError(f"{path}: {message}", "BAD_REFERENCE")
        if found[name].dtype.kind != "f" or not np.isfinite(found[name]).all():
            raise FidError(f"{path}, entry {name}: not finite floating-point numbers", "BAD_REFERENCE")
    mean, cov = found["mu"], found["sigma"]
    if mean.ndim != 1 or cov.shape != (len(mean), len(mean)):
        raise FidError(f"{path}: mu {mean.shape} and sigma {cov.shape} are not [D] and [D, D]", "BAD_REFERENCE")
    if not np.allclose(cov, cov.T, rtol=0, atol=1e-6 * np.abs(cov).max()):
        raise FidError(f"{path}, entry sigma: a covariance is symmetric", "BAD_REFERENCE")
    parameters = {name.removeprefix(_PREFIX): found[name] for name in found if name.startswith(_PREFIX)}
    moments = Moments(mean.astype(np.float64), cov.astype(np.float64))
    return Reference(moments, provenance, parameters, found.get("rows"))


def floor_sizes(asked: Sequence[int] | None, count: int) -> list[int]:
    """The N of `floor_of` for a number of images: the requested ones, or 1000, 2000, 5000 … and half of the images.

    >>> floor_sizes(None, 5000), floor_sizes(None, 64), floor_sizes([], 64)
    ([1000, 2000, 2500], [32], [])
    """
    half = count // 2
    if asked is None:
        rounds = {digit * 10**power for digit in (1, 2, 5) for power in range(3, 7)}
        return sorted(size for size in {*rounds, half} if 2 <= size <= half)
    if wrong := [size for size in asked if not 2 <= size <= half]:
        raise FidError(f"--floor must be 2 to {half}, half of the {count} images, got {wrong[0]}", "BAD_REQUEST")
    return sorted(set(asked))


def floor_of(
    features: Iterable[Rows], dimension: int, count: int, sizes: Sequence[int], seed: bytes, progress: bool
) -> dict[str, float]:
    """The Fréchet distance of N random images to the half of all `count` images without them, by N.

    The seed is the images' digest: a constant could be the one by which an ordered set was shuffled.
    """
    rank, start = np.random.default_rng(list(seed)).permutation(count), 0
    rest, drawn = RunningMoments(dimension), {size: RunningMoments(dimension) for size in sizes}
    for part in features if sizes else ():
        ranks = rank[start : start + len(part)]
        start += len(part)
        rest.update(part[ranks >= count // 2])
        for size, running in drawn.items():
            running.update(part[ranks < size])
    bar = Progress(drawn.items(), desc="real images", unit="distance", disable=not progress, leave=False)
    return {str(size): frechet_distance(running.moments(), rest.moments()) for size, running in bar}


def save_arrays(path: Path, entries: dict[str, Any]) -> None:
    """Write an npz; readers see the old or the new file."""
    with whole_file(path) as file:
        np.savez(file, **entries)
