"""Training a stage from the outside: create the run, follow it with a bar, save what it learned as a model."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from anisoflight import Client


def train(client: Client, name: str, *, save: str, kimg: float, **config: Any) -> tuple[pd.DataFrame, float]:
    """Run one stage of ``kimg`` thousand images to its end and save it as the model ``save``.

    Returns its metric rows and the seconds it took. A run or model of that name from an earlier demo is replaced.
    """
    if name in client.runs().index:
        client.run(name).delete()
    run = client.create_run(name, kimg=kimg, **config)
    started = time.perf_counter()
    run.start(kimg)
    rows = run.wait()
    seconds = time.perf_counter() - started
    if run.state != "done":
        raise RuntimeError(f"run {name} ended as {run.state}: {run.info}")
    run.save(save, replace=True)
    return rows, seconds


@dataclass(frozen=True)
class Geodesic:
    """What is known of a geodesic: its energy, the bound that no schedule goes below, and the seconds it took."""

    energy: float
    bound: float
    bound_stderr: float
    seconds: float


def geodesic(client: Client, name: str, **options: Any) -> Geodesic:
    """Make the isotropic schedule of constant speed under a model in one pass over a data set, and store it."""
    started = time.perf_counter()
    answer = client.call("MakeSchedule", show=name, name=name, kind="geodesic", replace=True, **options)
    seconds = time.perf_counter() - started
    report = answer["report"][0]
    return Geodesic(report["energy"], report["bound"], report["bound_stderr"], seconds)
