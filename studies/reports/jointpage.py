"""The page of the joint stages: what each branch reaches, and how two branches differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .fairpage import paired_table, table

if TYPE_CHECKING:
    import pandas as pd

    from .page import Page

ISOTROPIC, ANISOTROPIC = KINDS = ("isotropic", "anisotropic")
BASELINE = "iPNDM-4, polynomial"
BEFORE = "before"
MEASURED = """\
`make report-joint` writes this page. Each branch starts from the same converged plain network and trains network and
schedule together for {kimg} thousand images. The schedule starts from the network's geodesic. The noise follows the
schedule, with a deviation of ln σ of {spread} in each subspace. Isotropic branches have one path. Anisotropic ones have
two (DCT), and receive the ratio of their noise levels through weights that start at zero. `full` and `backprop` are the
estimators of the schedule's gradient ([method](../../docs/method.md)). An entry is **FD / edge FD**, as in
[fair.md](fair.md), mean ± standard deviation over networks. `before` is the network that all branches start from."""


def difference_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Of each sampler: anisotropic less isotropic by estimator, and full less backprop by kind."""
    pairs = [(f"{ANISOTROPIC}, {estimator}", f"{ISOTROPIC}, {estimator}") for estimator in ("backprop", "full")]
    pairs += [(f"{kind}, full", f"{kind}, backprop") for kind in KINDS]
    named = [
        ({"branch": ours, "less": theirs, "sampler": sampler}, (ours, sampler), (theirs, sampler))
        for ours, theirs in pairs
        for sampler in map(str, rows["sampler"].unique())
    ]
    return paired_table(rows, named)


def write(page: Page, name: str, rows: pd.DataFrame) -> None:
    """The section of a problem."""
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
