"""The page of the joint stages: what each branch reaches, and what tells two branches apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from .fairpage import EDGES, FD, difference, spread

if TYPE_CHECKING:
    from .page import Page

ISOTROPIC, ANISOTROPIC = KINDS = ("isotropic", "anisotropic")
BASELINE = "iPNDM-4, polynomial"
BEFORE = "before"
MEASURED = """`make report-gain` writes this page. Each branch goes on from the same converged plain network:
network and schedule are trained together for {kimg} thousand images, the schedule from the network's geodesic, the
noise at the schedule's with a deviation of ln σ of {spread} in each subspace. Isotropic branches have one path,
anisotropic ones two (DCT) and are told the ratio of their noise levels through weights that start at zero. `full` and
`backprop` are the estimators of the schedule's gradient ([method](../method.md)). An entry is **FD / edge FD**, as in
[fair.md](fair.md), mean ± standard deviation over networks; `before` is the network that all branches start from."""


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """A row per branch and sampler, a column per NFE."""
    nfes = sorted(set(rows["nfe"]))
    networks = rows["seed"].nunique()
    found = []
    for (branch, sampler), part in rows.groupby(["branch", "sampler"], sort=False):
        cells = {"branch": branch, "sampler": sampler}
        for nfe in nfes:
            here = part[part["nfe"] == nfe]
            fewer = f" ({len(here)})" if len(here) < networks else ""
            cells[f"NFE {nfe}"] = f"{spread(here[FD])} / {spread(here[EDGES])}{fewer}" if len(here) else ""
        found.append(cells)
    return pd.DataFrame(found)


def difference_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Of each sampler: anisotropic less isotropic by estimator, and full less backprop by kind, paired by network."""
    nfes = sorted(set(rows["nfe"]))
    pairs = [(f"{ANISOTROPIC}, {estimator}", f"{ISOTROPIC}, {estimator}") for estimator in ("backprop", "full")]
    pairs += [(f"{kind}, full", f"{kind}, backprop") for kind in KINDS]
    found = []
    for ours, theirs in pairs:
        for sampler in rows["sampler"].unique():
            row = {"branch": ours, "less": theirs, "sampler": sampler}
            for nfe in nfes:
                here = rows[(rows["nfe"] == nfe) & (rows["sampler"] == sampler)]
                both = [here[here["branch"] == name].set_index("seed") for name in (ours, theirs)]
                less = [(both[0][column] - both[1][column]).dropna() for column in (FD, EDGES)]
                row[f"NFE {nfe}"] = " / ".join(difference(column) for column in less) if len(less[0]) else ""
            if any(row[f"NFE {nfe}"] for nfe in nfes):
                found.append(row)
    return pd.DataFrame(found)


def write(page: Page, name: str, rows: pd.DataFrame) -> None:
    """A problem's section, as far as it has been measured."""
    page.heading(name)
    if rows.empty or set(rows["branch"]) == {BEFORE}:
        page.text("Not measured yet.")
        return
    trained = rows[rows["branch"] != BEFORE]
    page.text(f"Networks: {trained['seed'].nunique()}.")
    page.table(table(rows[rows["seed"].isin(trained["seed"])]))
    if len(differences := difference_table(trained)):
        page.text("Paired by network, mean ± standard error (bold beyond two of them; one network has none):")
        page.table(differences)
    page.numbers(rows, name)
