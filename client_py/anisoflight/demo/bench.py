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

    from .data import Data, Images


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


@dataclass
class Bench:
    """Measures samplers against the training and the held-out split of one data set.

    seeds are the repetitions' base seeds; each draws ``count`` samples for the Frechet distances. The ODE error is
    measured on ``probes`` latents of their own, the same ones for every sampler.
    """

    client: Client
    data: Data
    features: Features
    seeds: Sequence[int]
    count: int
    probes: int = 512
    _moments: dict[str, Moments] = field(default_factory=dict)
    _converged: dict[str, Images] = field(default_factory=dict)
    _exact: dict[str, Sampler] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._moments = {
            "test": Moments.of(self.features(self.data.test.images)),
            "train": Moments.of(self.features(self.data.train.images)),
        }

    @property
    def floor(self) -> float:
        """The distance between the two splits of real data."""
        return frechet_distance(self._moments["train"], self._moments["test"])

    def converged(self, path: str, sampler: Sampler) -> None:
        """Let this sampler's result stand for the exact solution of a path."""
        self._converged[path] = sampler.draw(self.client, n=self.probes, seed=PROBE_SEED).images
        self._exact[path] = sampler

    def pm_converged(self, path: str) -> str:
        """The distances of a path's converged samples to the held-out and to the training split, with their spread."""
        moments = [self._drawn(self._exact[path], seed)[0] for seed in self.seeds]
        by = {split: pm([frechet_distance(m, self._moments[split]) for m in moments]) for split in ("test", "train")}
        return f"{by['test']} from held-out and {by['train']} from training ones"

    def measure(self, samplers: Sequence[Sampler], nfes: Sequence[int]) -> pd.DataFrame:
        """One row per sampler and NFE: lists ``fd`` and ``fd_train`` over seeds, ``ode_error``, ``seconds`` per 1000.

        Raises RuntimeError if the server counted another number of evaluations than asked for.
        """
        jobs = [(sampler, nfe) for sampler in samplers for nfe in nfes]
        rows = []
        for sampler, nfe in tqdm(jobs, desc="samplers", unit="row"):
            rows.append(self._row(sampler, nfe))
        return pd.DataFrame(rows)

    def _row(self, sampler: Sampler, nfe: int) -> dict[str, Any]:
        row: dict[str, Any] = {"sampler": sampler.name, "nfe": nfe, "fd": [], "fd_train": []}
        started = time.perf_counter()
        for seed in self.seeds:
            moments, counted = self._drawn(sampler.with_options(nfe=nfe), seed)
            if counted != {nfe}:
                raise RuntimeError(f"{sampler.name}: asked for {nfe} evaluations, the server counted {counted}")
            row["fd"].append(frechet_distance(moments, self._moments["test"]))
            row["fd_train"].append(frechet_distance(moments, self._moments["train"]))
        row["seconds"] = (time.perf_counter() - started) / (len(self.seeds) * self.count) * 1000
        probe = sampler.draw(self.client, n=self.probes, seed=PROBE_SEED, nfe=nfe).images
        row["ode_error"] = ode_error(probe, self._converged[sampler.path])
        return row

    def _drawn(self, sampler: Sampler, seed: int) -> tuple[Moments, set[int]]:
        """Moments of the features of ``count`` samples, and the evaluations counted."""
        drawn = sampler.draw(self.client, n=self.count, seed=seed)
        return Moments.of(self.features(drawn.images)), set(np.unique(drawn.nfe).tolist())


def value(table: pd.DataFrame, sampler: str, nfe: int, column: str) -> float:
    """One entry of a measured table; lists over seeds give their mean."""
    cell = table[(table["sampler"] == sampler) & (table["nfe"] == nfe)][column].iloc[0]
    return float(np.mean(cell))


def layout(table: pd.DataFrame) -> pd.DataFrame:
    """The measured table as the report prints it: mean ± half the range over seeds."""
    return pd.DataFrame(
        {
            "sampler": table["sampler"],
            "NFE": table["nfe"],
            "FD": table["fd"].map(pm),
            "FD to train": table["fd_train"].map(pm),
            "ODE error × 100": table["ode_error"].map(lambda e: f"{e:.2f}"),
            "s / 1000 samples": table["seconds"].map(lambda s: f"{s:.2f}"),
        }
    )
