"""The page of the comparison without network error: one table a mixture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from .fairpage import EDGES, FD, spread

if TYPE_CHECKING:
    from .page import Page

MEASURED = """`make report-gain` writes this page. The data are draws from a mixture of normal laws, one for each of the
clusters (k-means) of 8×8 patches, with covariances that keep the channels of each DCT frequency; the network is the
mixture's exact score, told of every noise level. What a sampler errs here is its own error alone. An entry is **FD /
edge FD** of 2,000 samples to 8,000 draws, mean ± standard deviation over seeds of the latents: Fréchet distances on 40
principal components and on random convolutions (`studies/features.py`); all samplers draw the same latents.
Standard starts are pure noise at σ = 80, matched ones the draws' own normal law at a lower σ. Nodes are placed on that
law for DPM-Solver++(2M), J bands of frequencies apart; the others take EDM's levels, n + 1 for n evaluations. `local`
steps every frequency by itself, on isotropic noise. Best FD of each column in bold."""
ISOTROPIC, ANISOTROPIC = "isotropic", "anisotropic"


def side(sampler: str) -> str:
    """Whether a sampler treats all directions of an image alike."""
    alike = not sampler.startswith("local") and ("nodes" not in sampler or "J = 1," in sampler)
    return ISOTROPIC if alike else ANISOTROPIC


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """A row per sampler, a column per NFE."""
    averages = means(rows)
    best = averages.loc[averages.groupby("nfe")[FD].idxmin()].set_index("nfe")["sampler"]
    found = []
    for sampler, part in rows.groupby("sampler", sort=False):
        row = {"": side(str(sampler)), "sampler": sampler}
        for nfe in sorted(set(rows["nfe"])):
            here = part[part["nfe"] == nfe]
            if here.empty:
                row[f"NFE {nfe}"] = ""
                continue
            shown = f"**{spread(here[FD])}**" if sampler == best[nfe] else spread(here[FD])
            row[f"NFE {nfe}"] = f"{shown} / {spread(here[EDGES])}"
        found.append(row)
    return pd.DataFrame(found)


def means(rows: pd.DataFrame) -> pd.DataFrame:
    """A row per sampler and NFE: the means over the seeds."""
    return rows.groupby(["sampler", "nfe"], sort=False, as_index=False)[[FD, EDGES]].mean()


def verdict(rows: pd.DataFrame) -> str:
    """The best of both sides with the same starts, by NFE and start."""
    said = []
    for nfe, part in means(rows).groupby("nfe"):
        for start in ("standard", "matched"):
            here = part[part["sampler"].str.contains(start)]
            best = {kind: here[here["sampler"].map(side) == kind] for kind in (ISOTROPIC, ANISOTROPIC)}
            if any(found.empty for found in best.values()):
                continue
            named = [best[kind].loc[best[kind][FD].idxmin()] for kind in (ANISOTROPIC, ISOTROPIC)]
            ours, theirs = ((row["sampler"].rsplit(f", {start}", 1)[0], row[FD]) for row in named)
            said.append(
                f"NFE {nfe}, {start} start: {ours[0]} {ours[1]:.2f} against {theirs[0]} {theirs[1]:.2f}, "
                f"{ours[1] / theirs[1]:.2f} times."
            )
    return " ".join(said)


def write(page: Page, name: str, rows: pd.DataFrame) -> None:
    """A mixture's section, as far as it has been measured."""
    page.heading(name)
    if rows.empty:
        page.text("Not measured yet.")
        return
    page.table(table(rows))
    page.text(f"The best anisotropic sampler against the best isotropic one, FD: {verdict(rows)}")
    page.numbers(rows, name)
