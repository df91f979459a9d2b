"""Energies of schedules on one fixed evaluation set, so that two schedules can be compared sample by sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from anisoflight import Client

    from .data import Split


@dataclass(frozen=True)
class Energy:
    """E = T² · mean loss, with the loss of every evaluation kept: samples [N], already times T²."""

    samples: NDArray[np.float64]

    @property
    def mean(self) -> float:
        """The estimate of E."""
        return float(self.samples.mean())

    @property
    def stderr(self) -> float:
        """Standard error of the mean, as if t were drawn freely (stratified t makes the true one smaller)."""
        return float(self.samples.std(ddof=1) / np.sqrt(len(self.samples)))

    def minus(self, other: Energy) -> Energy:
        """Sample-by-sample difference: its stderr is that of the paired comparison."""
        return Energy(self.samples - other.samples)


class EnergyMeter:
    """Evaluates the trajectory loss of any schedule at the same images, noise and places in [0, 1].

    Times are stratified: evaluation i of n takes t/T uniform in [i/n, (i+1)/n].
    """

    def __init__(self, client: Client, model: str, split: Split, c: float, n: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        chosen = rng.integers(len(split.images), size=n)
        self._client, self._model, self._c = client, model, c
        self._images = np.ascontiguousarray(split.images[chosen])
        self._labels = split.labels[chosen]
        self._noise = rng.standard_normal(self._images.shape, dtype=np.float32)
        self._places = (np.arange(n) + rng.random(n)) / n

    def measure(self, schedule: str) -> Energy:
        """The energy of the schedule of that name under the meter's model."""
        horizon = float(self._client.schedule(schedule).evaluate(points=2)["t"].max())
        result = self._client.schedule_gradient(
            schedule,
            self._model,
            images=self._images,
            noise=self._noise,
            t=self._places * horizon,
            labels=self._labels,
            mode="explicit",
            c=self._c,
            progress=False,
        )
        return Energy(horizon**2 * np.asarray(result.loss, np.float64))
