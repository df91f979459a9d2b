"""Fréchet distances of samples, over blocks of seeds: the same latents and references for every sampler."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from anisoflight import NotFiniteError
from anisoflight.moments import Matrix, Moments, frechet_distance

if TYPE_CHECKING:
    from anisoflight import Client, Samples


@dataclass(frozen=True)
class Sampler:
    """A model with options of Sample."""

    name: str
    model: str
    options: Mapping[str, Any]

    def draw(self, client: Client, **more: Any) -> Samples:
        """Samples in float32; `more` are further options, such as n or labels, and seed."""
        drawn = client.sample(self.model, dtype="float32", progress=False, **{**self.options, **more})
        if not np.isfinite(drawn.images).all():
            raise NotFiniteError(f"model {self.model!r}: {drawn.notes[-1]}")
        return drawn


class Reference:
    """Features, images [N, H, W, C] in [−1, 1] to [N, D], of real images: the reference of a Fréchet distance."""

    def __init__(self, features: Callable[[ArrayLike], Matrix], images: ArrayLike) -> None:
        self._features = features
        self._moments = Moments.of(features(images))

    def distance(self, images: ArrayLike) -> float:
        """The Fréchet distance of images to the reference."""
        return frechet_distance(Moments.of(self._features(images)), self._moments)


@dataclass(frozen=True)
class Distances:
    """Fréchet distances, a list over blocks of seeds for each reference, and the evaluations that were counted."""

    by_reference: dict[str, list[float]]
    evaluations: int


@dataclass(frozen=True)
class Bench:
    """Measures samplers against references: ``count`` samples from each seed of ``seeds`` on."""

    client: Client
    references: Mapping[str, Reference]
    seeds: Sequence[int]
    count: int

    def distances(self, sampler: Sampler) -> Distances:
        """The Fréchet distances of every block."""
        found: dict[str, list[float]] = {name: [] for name in self.references}
        evaluations = 0
        for seed in self.seeds:
            drawn = sampler.draw(self.client, n=self.count, seed=seed)
            evaluations = max(evaluations, int(drawn.nfe.max()))
            for name, reference in self.references.items():
                found[name].append(reference.distance(drawn.images))
        return Distances(found, evaluations)
