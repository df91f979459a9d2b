"""Training a stage from the outside: create the run, follow it with a bar, save what it learned as a model."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import yaml

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anisoflight import Client


RECIPES = Path(__file__).parents[3] / "configs"


def recipe(name: str) -> dict[str, Any]:
    """The training configuration of configs/NAME.yaml, the same file that ``anisoflight train`` takes."""
    path = RECIPES / f"{name}.yaml"
    if not path.exists():
        raise SystemExit(f"{path} is missing: the demo runs from a clone of the repository (make demo)")
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def train(client: Client, name: str, config: dict[str, Any], *, save: str) -> tuple[pd.DataFrame, float]:
    """Run one stage to its end and save it as the model ``save``.

    Returns its metric rows and the seconds it took. A run or model of that name from an earlier demo is replaced.
    """
    if name in client.runs().index:
        client.run(name).delete()
    run = client.create_run(name, **config)
    started = time.perf_counter()
    run.start(config["kimg"])
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
    report = answer["energies"][0]
    return Geodesic(report["energy"], report["bound"], report["bound_stderr"], seconds)


def cost_table(cost: Sequence[tuple[str, float]]) -> pd.DataFrame:
    """What was trained, and the seconds it took."""
    return pd.DataFrame([(what, f"{seconds:.1f}") for what, seconds in cost], columns=pd.Index(["training", "seconds"]))
