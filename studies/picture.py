"""``python -m studies.picture``: the picture of the README, from the numbers of studies/docs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from studies.reports.fairpage import EDGES, FD

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROOT = Path(__file__).parents[1]
FEW = {
    "iPNDM-4, polynomial": "iPNDM-4 from noise",
    "few: start, levels and solver found by the server": "few",
}
PROBLEMS = {"patches8": "8×8 patches", "fields16": "16×16 fields"}
ALONE = {
    "iPNDM-4, polynomial": "iPNDM-4 from noise",
    "fitted isotropic of order 3, polynomial": "fitted, one set for all frequencies",
    "fitted of order 3, polynomial": "fitted, each frequency its own",
}
"""Samplers of plain networks, all from noise at σ = 80."""
COLOURS = ("tab:grey", "tab:blue", "tab:red")


def draw(axes: Axes, rows: pd.DataFrame, samplers: dict[str, str], column: str, colours: tuple[str, ...]) -> None:
    """A dot per network and NFE, a line through the means."""
    rows = rows[(rows["network"] == "plain") & rows["sampler"].isin(list(samplers))]
    nfes = sorted(set(rows["nfe"]))
    for k, (sampler, label) in enumerate(samplers.items()):
        part = rows[rows["sampler"] == sampler]
        offset = 0.08 * (k - (len(samplers) - 1) / 2)
        mean = part.groupby("nfe")[column].mean()
        axes.plot([nfes.index(n) + offset for n in mean.index], mean, "-", lw=1.6, color=colours[k], label=label)
        axes.plot([nfes.index(n) + offset for n in part["nfe"]], part[column], "o", ms=4, alpha=0.6, color=colours[k])
    axes.set(xlabel="evaluations of the network", yscale="log", xticks=range(len(nfes)))
    axes.set_xticklabels([str(n) for n in nfes])
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.tick_params(axis="y", which="both", labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)


def measured() -> dict[str, pd.DataFrame]:
    """The rows of studies/docs/alone.md, by problem."""
    return {name: pd.read_csv(ROOT / "studies/docs" / f"alone-{name}.csv") for name in PROBLEMS}


def figure(problems: dict[str, pd.DataFrame]) -> Figure:
    """What `few` gains on plain networks, and what anisotropy alone does, by both distances; a row for each problem."""
    drawn = Figure(figsize=(11, 0.9 + 2.9 * len(problems)))
    few = (COLOURS[0], "tab:green")
    columns = ((FEW, FD, few), (FEW, EDGES, few), (ALONE, FD, COLOURS), (ALONE, EDGES, COLOURS))
    every = drawn.subplots(len(problems), len(columns), squeeze=False)
    for row, (problem, rows) in enumerate(problems.items()):
        for axes, (samplers, column, colours) in zip(every[row], columns, strict=True):
            draw(axes, rows, samplers, column, colours)
            axes.set_title({FD: "FD, principal components", EDGES: "FD, edges"}[column], fontsize=9)
            if row == 0:
                axes.legend(frameon=False, fontsize=7, loc="lower center", bbox_to_anchor=(0.5, 1.12))
            if row < len(problems) - 1:
                axes.set_xlabel("")
        every[row][0].set_ylabel(PROBLEMS[problem])
    drawn.tight_layout()
    return drawn


def main() -> None:
    """Write docs/images/gain.png."""
    path = ROOT / "docs/images" / "gain.png"
    figure(measured()).savefig(path, dpi=110, metadata={"Software": None})
    print(path)


if __name__ == "__main__":
    main()
