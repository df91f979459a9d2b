"""The command ``anisoflight compare``: reads its plan as JSON from the standard input and prints what `Client.compare`
measures, as a table or as JSON. The binary runs it; from Python call `Client.compare`."""

from __future__ import annotations

import json
import os
import sys
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..program import connected_to, ended

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd


def measure(plan: Mapping[str, Any], progress: bool) -> pd.DataFrame:
    """The comparison of a plan; its schedules, grids and solvers are called what the plan calls them."""
    with connected_to(plan["location"]) as client:
        frame = client.compare(
            plan["model"],
            solvers=[choice["value"] for choice in plan["solvers"]],
            nfe=plan["nfe"],
            grids=[choice["value"] for choice in plan["grids"]],
            schedules=[choice["value"] for choice in plan["schedules"]],
            probes=plan["probes"],
            reference=plan.get("dataset"),
            features=plan["components"],
            samples=plan["samples"],
            seeds=plan["seeds"],
            **plan.get("guided", {}),
            progress=progress,
        )
    cells = list(product(plan["schedules"], plan["grids"], plan["solvers"], plan["nfe"]))
    for i, column in enumerate(["schedule", "grid", "solver"]):
        frame[column] = [cell[i]["name"] for cell in cells]
    return frame


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows for programs; what was not measured is None."""
    return frame.astype(object).where(frame.notna(), None).to_dict(orient="records")


def table(frame: pd.DataFrame) -> str:
    """The rows for people."""
    rows = [["SCHEDULE", "GRID", "SOLVER", "NFE", "ODE ERROR", "FRECHET", "S/1000"]]
    for row in records(frame):
        cells = [row["schedule"], row["grid"], row["solver"]]
        if row["code"]:
            rows.append([*cells, str(row["nfe"]), "-", "-", f"-  {row['message']}"])
            continue
        frechet = "-" if row["frechet"] is None else f"{row['frechet']:.4g} ± {row['frechet_spread']:.2g}"
        rows.append([*cells, str(row["evaluations"]), f"{row['ode_error']:.4g}", frechet, f"{row['seconds']:.3g}"])
    widths = [max(len(row[i]) for row in rows) + 2 for i in range(len(rows[0]) - 1)]
    return "\n".join("".join(map(str.ljust, row, [*widths, 0])) for row in rows)


def run() -> None:
    """Do what the plan says."""
    plan = json.load(sys.stdin)
    frame = measure(plan, progress=sys.stderr.isatty())
    if "out" in plan:
        part = Path(f"{plan['out']}.part")
        frame.to_csv(part, index=False)
        os.replace(part, plan["out"])
    print(json.dumps(records(frame), indent=2, ensure_ascii=False) if plan["json"] else table(frame))


if __name__ == "__main__":
    sys.exit(ended(run))
