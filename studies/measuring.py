"""Tables of samplers, each at several NFE, measured by `anisoflight.compare.bench`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from anisoflight.wire.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anisoflight.compare.bench import Bench, Sampler


def measure(bench: Bench, samplers: Sequence[Sampler], nfes: Sequence[int]) -> pd.DataFrame:
    """One row per sampler and NFE: a list over seeds for each reference, ``ode_error``, ``seconds`` per 1000.

    Raises RuntimeError if the server counted another number of evaluations than asked for.
    """
    rows = []
    jobs = [(sampler, nfe) for sampler in samplers for nfe in nfes]
    for sampler, nfe in Progress(jobs, desc="samplers", unit="row"):
        found, probe = bench.distances(sampler, nfe), bench.probe(sampler, nfe)
        require_count(sampler.name, nfe, found.evaluations)
        require_count(sampler.name, nfe, probe.evaluations)
        row = {"sampler": sampler.name, "nfe": nfe, **found.by_reference}
        rows.append({**row, "seconds": found.seconds, "ode_error": probe.ode_error})
    return pd.DataFrame(rows)


def require_count(sampler: str, nfe: int, counted: int) -> None:
    """Raises RuntimeError if the server counted another number of evaluations than asked for."""
    if counted != nfe:
        raise RuntimeError(f"{sampler}: asked for {nfe} evaluations, the server counted {counted}")


def value(table: pd.DataFrame, sampler: str, nfe: int, column: str) -> float:
    """One entry of a measured table; lists over seeds give their mean."""
    cell = table[(table["sampler"] == sampler) & (table["nfe"] == nfe)][column].iloc[0]
    return float(np.mean(cell))
