"""How samplers are measured: the same latents, the same network, counted evaluations, and a spread for each number."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import NotFiniteError
from ..moments import Moments, frechet_distance
from ..operations.sampling import Sampling
from ..samples import ImageTable, Samples
from .metrics import Features, ode_error

PROBE_SEED = 10**12
"""Seed of the latents of the ODE error; no repetition uses it."""


@dataclass(frozen=True)
class Sampler:
    """A model with options of Sample, and the name of the path whose converged solution it approximates."""

    name: str
    model: str
    options: Mapping[str, Any]
    path: str

    def draw(self, client: Sampling, **more: Any) -> Samples:
        """Samples in float32; `more` are further options, such as n or labels, seed and nfe."""
        drawn = client.sample(self.model, dtype="float32", progress=False, **{**self.options, **more})
        if not np.isfinite(drawn.images).all():
            raise NotFiniteError(f"model {self.model!r}: {drawn.notes[-1]}")
        return drawn


def normalized(images: ImageTable, like: Mapping[str, Sequence[float]] | None = None) -> np.ndarray[Any, Any]:
    """Images as the network sees them, (x − mean)/scale by channel, so that distances do not depend on a channel's
    units.

    mean and scale are those of `like`, by default the images' own. Images without any are returned as they are.
    """
    numbers = like or images.normalization
    if numbers is None:
        return images.images
    channels = (1, -1, 1, 1) if images.layout == "CHW" else (1, 1, 1, -1)
    mean, scale = (np.reshape(numbers[name], channels) for name in ("mean", "scale"))
    return (images.images.astype(np.float64) - mean) / scale


class Reference:
    """Features of real images: the reference of a Fréchet distance."""

    def __init__(self, features: Features, images: ArrayLike) -> None:
        self._features = features
        self._moments = Moments.of(features(images))

    def distance(self, images: ArrayLike) -> float:
        """The Fréchet distance of images to the reference."""
        return frechet_distance(Moments.of(self._features(images)), self._moments)


@dataclass(frozen=True)
class Probe:
    """ODE error, 100 × the rms distance per pixel to the converged solution; evaluations counted; seconds per 1000."""

    ode_error: float
    evaluations: int
    seconds: float


@dataclass(frozen=True)
class Distances:
    """Fréchet distances, a list over seeds for each reference; evaluations counted; seconds per 1000 samples."""

    by_reference: dict[str, list[float]]
    evaluations: int
    seconds: float


@dataclass
class Bench:
    """Measures samplers against references.

    seeds are the base seeds of the repetitions; each draws ``count`` samples for the Fréchet distances. The ODE error
    is measured on ``probes`` other latents, the same for every sampler.
    """

    client: Sampling
    references: Mapping[str, Reference]
    seeds: Sequence[int]
    count: int
    probes: int = 512
    _converged: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)

    def converged(self, path: str, sampler: Sampler) -> None:
        """Use this sampler's result as the exact solution of a path."""
        self._converged[path] = normalized(sampler.draw(self.client, n=self.probes, seed=PROBE_SEED))

    def distances(self, sampler: Sampler, nfe: int) -> Distances:
        """The Fréchet distances of ``count`` samples for every seed."""
        found: dict[str, list[float]] = {name: [] for name in self.references}
        evaluations, spent = 0, 0.0
        for seed in self.seeds:
            started = time.perf_counter()
            drawn = sampler.draw(self.client, n=self.count, seed=seed, nfe=nfe)
            spent += time.perf_counter() - started
            evaluations = max(evaluations, int(drawn.nfe.max()))
            for name, reference in self.references.items():
                found[name].append(reference.distance(normalized(drawn)))
        return Distances(found, evaluations, 1000 * spent / (len(self.seeds) * self.count))

    def probe(self, sampler: Sampler, nfe: int) -> Probe:
        """The ODE error on its own latents."""
        started = time.perf_counter()
        drawn = sampler.draw(self.client, n=self.probes, seed=PROBE_SEED, nfe=nfe)
        seconds = 1000 * (time.perf_counter() - started) / self.probes
        error = ode_error(normalized(drawn), self._converged[sampler.path])
        return Probe(error, int(drawn.nfe.max()), seconds)


def half_range(values: Sequence[float]) -> float:
    """Half the range of a few repetitions: the spread printed after ±."""
    return (max(values) - min(values)) / 2
