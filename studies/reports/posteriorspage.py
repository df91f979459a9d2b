"""The page of studies.reports.posteriors, from its rows: aims, verdicts and a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from studies.reports.page import Page, kept_rows, spread

if TYPE_CHECKING:
    from pathlib import Path

NAME, ROWS = "posteriors", "posteriors-rows.jsonl"
MOONS, MIXTURE, LINEAR = "two moons", "Gaussian mixture", "Gaussian linear"
TASKS = MOONS, MIXTURE, LINEAR
NETWORKS = range(1, 4)
"""Seeds; the study was tried on network 0."""
NFE = 3, 5, 9
OWN, FEW, PLAIN, EULER, MIDPOINT = "sbi's own solver", "few", "plain solvers", "Euler", "midpoint"
RIVALS = PLAIN, EULER, MIDPOINT
CLOSE = 0.02
"""The difference of two C2ST that counts as none at 9 evaluations."""


def rows(docs: Path) -> pd.DataFrame:
    """All rows: `c2st` is the mean over observations."""
    found = kept_rows(docs / ROWS)
    if len(found):
        found["c2st"] = [float(np.mean(values)) for values in found["c2st"]]
    return found


def compared(found: pd.DataFrame) -> pd.DataFrame:
    """By task and evaluations: the C2ST of each method, by network, and the best rival's name."""
    out = []
    for task in TASKS:
        here = found[found["task"] == task]
        own = here[here["method"] == OWN].set_index("network")
        for nfe in NFE:
            table = here[here["nfe"] == nfe].pivot_table(index="network", columns="method", values="c2st")
            if FEW not in table or PLAIN not in table or len(own) == 0:
                continue
            best = table[[name for name in RIVALS if name in table]].mean().idxmin()
            difference = (table[FEW] - table[best]).dropna()
            error = difference.std() / np.sqrt(len(difference)) if len(difference) > 1 else 0.0
            shown = {name: table.get(name, pd.Series(dtype=float)).dropna() for name in (FEW, *RIVALS)}
            out.append({"task": task, "nfe": nfe, "best": best, "difference": difference.mean(), "error": error,
                        "own": own["c2st"], "calls": own["calls"].mean(), **shown})  # fmt: skip
    return pd.DataFrame(out)


def write(docs: Path) -> Path:
    """Write the page."""
    page, found = Page(docs, NAME, "Posteriors of simulators"), rows(docs)
    page.text(
        "`few` without options, and without data, on networks that the package sbi 0.27 trains with its own settings "
        "(flow matching, `FMPE`, 10,000 simulations) on three simulators whose posterior is known exactly: two moons "
        "(2 parameters), a Gaussian mixture (2) and a linear Gaussian (10). A sampler is searched, or tuned, on 64 "
        "observations, and judged on five others. The study was tried on a network of its own, of two moons at 3 "
        "evaluations.",
        "C2ST is the accuracy of a classifier that tells 1,000 samples from 1,000 exact ones, a perceptron in five "
        "folds: ½ is perfect, smaller is better. Rivals: the best of 52 plain solvers (iPNDM-4, UniPC, "
        "DPM-Solver++(2M), DEIS from σ of 80, 40, 20 and 10 with ρ of 7, 4 and 3, and at even times of the flow), by "
        "the squared error to converged samples from the same noise; Euler's and the midpoint method at even times of "
        "the flow, the second with an evaluation less. sbi's own solver, dopri5 to its own tolerance, makes over a "
        "hundred evaluations.",
    )
    page.heading("Aims")
    page.items([
        (
            "Aim 1: for each simulator and number of evaluations, the C2ST of `few` is at most the best rival's, or "
            "its mean over networks exceeds it by no more than one standard error."
        ),
        f"Aim 2: at 9 evaluations it is at most {CLOSE} above that of sbi's own solver.",
    ])  # fmt: skip
    table = compared(found) if len(found) else pd.DataFrame()
    if len(table):
        page.heading("What came out")
        won = table["difference"] <= table["error"]
        last = table[table["nfe"] == max(NFE)]
        over = [float((row[FEW] - row["own"]).mean()) for _, row in last.iterrows()]
        page.items([
            f"Aim 1: {int(won.sum())} of {len(table)} pairs, of {len(TASKS) * len(NFE)}.",
            "Aim 2: above sbi's own solver by "
            + ", ".join(f"{value:+.3f} ({task})" for value, task in zip(over, last["task"], strict=True)) + ".",
        ])  # fmt: skip
        columns = {name: [spread(row[name], digits=3) for _, row in table.iterrows()] for name in (FEW, *RIVALS)}
        page.table(pd.DataFrame({
            "simulator": table["task"], "evaluations": table["nfe"], **columns,
            "few less the best": [f"{row.difference:+.3f} ± {row.error:.3f}" for row in table.itertuples()],
            OWN: [f"{spread(row['own'], digits=3)} ({row['calls']:.0f})" for _, row in table.iterrows()],
        }))  # fmt: skip
        page.text(
            f"± is the standard deviation over {len(NETWORKS)} networks, of differences the standard error. In "
            "brackets the evaluations of sbi's own solver."
        )
        page.numbers(found, "rows")
    return page.write()
