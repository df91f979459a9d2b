"""Training a stage from the outside: create the run, follow it with a bar, save what it learned as a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    import pandas as pd

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
