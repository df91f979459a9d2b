"""How samplers are compared: same latents, same network, every evaluation counted, every figure with its spread."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from .metrics import Features, Moments, frechet_distance, ode_error
from .report import pm

if TYPE_CHECKING:
    from anisoflight import Client, Samples

    from .data import Images


PROBE_SEED = 10**12
"""Of the latents that the ODE error is measured on; no repetition draws from there."""


@dataclass(frozen=True)
class Sampler:
    """A way to sample: a model and Sample's options, and the path whose converged solution it approximates."""

    name: str
    model: str
    options: Mapping[str, Any]
    path: str

    def with_options(self, **more: Any) -> Sampler:
        """The same sampler with further options."""
        return replace(self, options={**self.options, **more})

    def draw(self, client: Client, **more: Any) -> Samples:
        """Samples in float32, by this sampler and what more says (n or labels, seed, nfe)."""
        return client.sample(self.model, dtype="float32", progress=False, **self.options, **more)


class Reference:
    """Real images, seen through features: what a Frechet distance is taken to."""

    def __init__(self, features: Features, images: Images) -> None:
        self._features = features
        self._moments = Moments.of(features(images))

    def distance(self, images: Images) -> float:
        """The Frechet distance of images to the reference."""
        return frechet_distance(Moments.of(self._features(images)), self._moments)


@dataclass
class Bench:
    """Measures samplers against references, each a column of the table under its own name.

    seeds are the repetitions' base seeds; each draws ``count`` samples for the Frechet distances. The ODE error is
    measured on ``probes`` latents of their own, the same ones for every sampler.
    """

    client: Client
    references: Mapping[str, Reference]
    seeds: Sequence[int]
    count: int
    probes: int = 512
    _converged: dict[str, Images] = field(default_factory=dict)
    _exact: dict[str, Sampler] = field(default_factory=dict)

    def converged(self, path: str, sampler: Sampler) -> None:
        """Let this sampler's result stand for the exact solution of a path."""
        self._converged[path] = sampler.draw(self.client, n=self.probes, seed=PROBE_SEED).images
        self._exact[path] = sampler

    def exact(self, path: str) -> dict[str, str]:
        """The distances of a path's converged samples to every reference, with their spread over the seeds."""
        drawn = [self._exact[path].draw(self.client, n=self.count, seed=seed).images for seed in self.seeds]
        return {name: pm([real.distance(images) for images in drawn]) for name, real in self.references.items()}

    def measure(self, samplers: Sequence[Sampler], nfes: Sequence[int]) -> pd.DataFrame:
        """One row per sampler and NFE: a list over seeds for each reference, ``ode_error``, ``seconds`` per 1000.

        Raises RuntimeError if the server counted another number of evaluations than asked for.
        """
        jobs = [(sampler, nfe) for sampler in samplers for nfe in nfes]
        rows = []
        for sampler, nfe in tqdm(jobs, desc="samplers", unit="row"):
            rows.append(self._row(sampler, nfe))
        return pd.DataFrame(rows)

    def _row(self, sampler: Sampler, nfe: int) -> dict[str, Any]:
        row: dict[str, Any] = {"sampler": sampler.name, "nfe": nfe, **{name: [] for name in self.references}}
        started = time.perf_counter()
        for seed in self.seeds:
            drawn = sampler.draw(self.client, n=self.count, seed=seed, nfe=nfe)
            if counted := set(np.unique(drawn.nfe).tolist()) - {nfe}:
                raise RuntimeError(f"{sampler.name}: asked for {nfe} evaluations, the server counted {counted}")
            for name, reference in self.references.items():
                row[name].append(reference.distance(drawn.images))
        row["seconds"] = (time.perf_counter() - started) / (len(self.seeds) * self.count) * 1000
        probe = sampler.draw(self.client, n=self.probes, seed=PROBE_SEED, nfe=nfe).images
        row["ode_error"] = ode_error(probe, self._converged[sampler.path])
        return row


def value(table: pd.DataFrame, sampler: str, nfe: int, column: str) -> float:
    """One entry of a measured table; lists over seeds give their mean."""
    cell = table[(table["sampler"] == sampler) & (table["nfe"] == nfe)][column].iloc[0]
    return float(np.mean(cell))


def layout(table: pd.DataFrame) -> pd.DataFrame:
    """The measured table as the report prints it: distances as mean ± half the range over seeds."""
    columns = {"sampler": table["sampler"], "NFE": table["nfe"]}
    for name in table.columns.difference(["sampler", "nfe", "ode_error", "seconds"], sort=False):
        columns[str(name)] = table[name].map(pm)
    columns["ODE error × 100"] = table["ode_error"].map(lambda e: f"{e:.2f}")
    columns["s / 1000 samples"] = table["seconds"].map(lambda s: f"{s:.2f}")
    return pd.DataFrame(columns)
