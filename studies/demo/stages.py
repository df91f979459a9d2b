"""Training a stage from the outside: create the run, follow it with a bar, save what it learned as a model."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anisoflight import Client


RECIPES = Path(__file__).parents[2] / "configs"


def recipe(name: str) -> dict[str, Any]:
    """The training configuration of configs/NAME.yaml, the same file that ``anisoflight train`` takes."""
    path = RECIPES / f"{name}.yaml"
    if not path.exists():
        raise SystemExit(f"{path} is missing: the demo runs from a clone of the repository (make demo)")
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def train(client: Client, name: str, config: dict[str, Any], *, save: str) -> pd.DataFrame:
    """Run one stage to its end, save it as the model ``save``, and return its metric rows.

    A run or model of that name from an earlier demo is replaced.
    """
    if name in client.runs().index:
        client.run(name).delete()
    run = client.create_run(name, **config)
    run.start(config["kimg"])
    rows = run.wait()
    if run.state != "done":
        raise RuntimeError(f"run {name} ended as {run.state}: {run.info}")
    run.save(save, replace=True)
    return rows


@dataclass(frozen=True)
class Geodesic:
    """What is known of a geodesic: its energy, and the bound that no schedule goes below."""

    energy: float
    bound: float
    bound_stderr: float


def geodesic(client: Client, name: str, **options: Any) -> Geodesic:
    """Make the isotropic schedule of constant speed under a model in one pass over a data set, and store it."""
    answer = client.call("MakeSchedule", show=name, name=name, kind="geodesic", order=1, replace=True, **options)
    report = answer["energies"][0]
    return Geodesic(report["energy"], report["bound"], report["bound_stderr"])


class Clock:
    """Announces each stage, and keeps the seconds that it took."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, float]] = []

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """A stage of the demo: its name is printed when it begins, its seconds when it ends."""
        print(f"{len(self._rows) + 1}. {name}", flush=True)
        started = time.perf_counter()
        yield
        seconds = time.perf_counter() - started
        self._rows.append((name, seconds))
        print(f"   {seconds:.1f} s", flush=True)

    def table(self) -> pd.DataFrame:
        """The stages and their seconds."""
        rows = [(name, f"{seconds:.1f}") for name, seconds in self._rows]
        return pd.DataFrame(rows, columns=pd.Index(["stage", "seconds"]))
