"""The page of the fair comparison: one table and one figure a problem, spread over networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .page import Page

MEASURED = """`make report-fair` writes this page; [README.md](README.md) says what it means. The baseline is a
**plain** network: EDM's SongUNet with 16 channels, trained on isotropic noise as everybody trains, 1200 steps of 128.
An **anisotropic** network has the same size, data and budget, is trained on anisotropic noise (DCT, J = 2) and told the
ratio of the two noise levels. Every network is a training of its own, with a seed of its own."""
DEFINED = """A row is a sampler of one kind of network. Grid `polynomial` has n + 1 levels of EDM's rule (ρ = 7, 80 to
0.002) for n evaluations, as the literature samples with multistep solvers; `edm` has n and goes on to t = 0. `learned`
and `geodesic` are schedules made for that very network, sampled uniformly in their time; `nodes` suit the solver on the
data's own Gaussian, `refined` those moved on with the network. An entry is **FD / edge FD**, mean ± standard deviation
over networks: Fréchet distances to held-out images on 40 principal components, which see mean and covariance alone,
and on 128 random convolutions with ReLU, which see edges (`studies/features.py`). A number behind an entry
counts the networks where they are fewer. All networks and samplers draw the same latents and labels. `clipped Gaussian`
draws from the training images' mean and covariance, without a network; `real` are training images."""

FD, EDGES = "FD", "edge FD"
Sampler = tuple[str, str]
"""The kind of network, and the sampler's name."""
BASELINE: Sampler = ("plain", "iPNDM-4, polynomial")
_STARTS = ("polynomial", *(f"matched start at {sigma}" for sigma in (20, 10)))
_PAIRS = (
    ("fitted of order 3", "fitted isotropic of order 3"),
    ("fitted", "fitted isotropic"),
    ("local-2", "2M"),
)
ALONE = tuple((f"{ours}, {start}", f"{theirs}, {start}") for ours, theirs in _PAIRS for start in _STARTS)
"""Samplers of plain networks that differ in anisotropy alone: the same start, levels and order, and a step of its own
for every frequency against one for all.
"""


ALONE_TEXT = """**Anisotropy alone**: both sides on plain networks, with the same start, levels, order and, where
fitted, the same trajectories; one side has coefficients of its own for every frequency, the other one set for all. FD /
edge FD of the first less the second, paired by network, mean ± standard error (bold beyond two of them), the quotient
of the means, and how many networks:"""


@dataclass(frozen=True)
class Measured:
    """Rows (network, seed, sampler, nfe, FD, edge FD), and the energy of each network's learned schedule."""

    rows: pd.DataFrame
    energies: pd.DataFrame


def spread(values: Sequence[float] | pd.Series) -> str:
    """Mean ± standard deviation over networks; the value alone where there is one."""
    if len(values) < 2:
        return f"{np.mean(values):.2f}"
    return f"{np.mean(values):.2f} ± {np.std(values, ddof=1):.2f}"


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """A row per kind of network and sampler, a column per NFE; bold the least mean FD over all networks of a kind."""
    nfes = sorted(set(rows["nfe"]) - {0})
    networks = rows.groupby("network")["seed"].nunique()
    found = []
    for (kind, sampler), part in rows.groupby(["network", "sampler"], sort=False):
        cells = {"network": kind, "sampler": sampler}
        for nfe in nfes:
            here = part[part["nfe"].isin([nfe, 0])]
            fewer = f" ({len(here)})" if len(here) < networks[kind] else ""
            cells[f"NFE {nfe}"] = f"{spread(here[FD])} / {spread(here[EDGES])}{fewer}" if len(here) else ""
        found.append(cells)
    table = pd.DataFrame(found)
    for nfe in nfes:
        part = rows[rows["nfe"] == nfe].groupby(["network", "sampler"])[FD].agg(["mean", "size"])
        whole = part[part["size"] == networks.reindex(part.index.get_level_values("network")).to_numpy()]["mean"]
        if len(whole):
            kind, sampler = whole.idxmin()  # pyright: ignore[reportGeneralTypeIssues]
            row = (table["network"] == kind) & (table["sampler"] == sampler)
            first, rest = table.loc[row, f"NFE {nfe}"].iloc[0].split(" / ")
            table.loc[row, f"NFE {nfe}"] = f"**{first}** / {rest}"
    return table


def less_baseline(rows: pd.DataFrame, kind: str, sampler: str, nfe: int, column: str) -> pd.Series:
    """A sampler's distance less the baseline's, by seed of the networks; an anisotropic network is paired with the
    plain one of its seed, which makes the differences independent of each other.
    """
    return less(rows, (kind, sampler), BASELINE, nfe, column)


def less(rows: pd.DataFrame, ours: Sampler, theirs: Sampler, nfe: int, column: str) -> pd.Series:
    """A sampler's distance less another's, by seed of the networks that both were measured on."""
    return (of(rows, ours, nfe)[column] - of(rows, theirs, nfe)[column]).dropna()


def of(rows: pd.DataFrame, sampler: Sampler, nfe: int) -> pd.DataFrame:
    """The rows of a sampler by seed."""
    chosen = (rows["nfe"] == nfe) & (rows["network"] == sampler[0]) & (rows["sampler"] == sampler[1])
    return rows[chosen].set_index("seed")


def standard_error(differences: pd.Series) -> float:
    """Of their mean; NaN for fewer than two."""
    return float(differences.std(ddof=1) / np.sqrt(len(differences)))


def difference_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Every sampler less the baseline: mean ± standard error over networks, FD / edge FD, bold beyond two of them."""
    nfes = sorted(set(rows["nfe"]) - {0})
    found = []
    for kind, sampler in rows[rows["network"] != "none"][["network", "sampler"]].drop_duplicates().to_numpy():
        if (kind, sampler) == BASELINE:
            continue
        row = {"network": kind, "sampler": sampler}
        for nfe in nfes:
            columns = [less_baseline(rows, kind, sampler, nfe, column) for column in (FD, EDGES)]
            row[f"NFE {nfe}"] = " / ".join(difference(column) for column in columns) if len(columns[0]) else ""
        found.append(row)
    return pd.DataFrame(found)


def alone_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Anisotropy alone: each sampler that steps frequencies by themselves less the one that steps them alike, paired by
    network, and the quotient of the means over those networks.
    """
    nfes = sorted(set(rows["nfe"]) - {0})
    found = []
    for ours, theirs in ALONE:
        row = {"sampler": ours, "less": theirs}
        for nfe in nfes:
            both = [of(rows, ("plain", name), nfe) for name in (ours, theirs)]
            seeds = both[0].index.intersection(both[1].index)
            if seeds.empty:
                row[f"NFE {nfe}"] = ""
                continue
            columns = []
            for column in (FD, EDGES):
                first, second = (part.loc[seeds, column] for part in both)
                columns.append(f"{difference(first - second)} ({first.mean() / second.mean():.2f}×)")
            row[f"NFE {nfe}"] = " / ".join(columns) + f" on {len(seeds)}"
        if any(row[f"NFE {nfe}"] for nfe in nfes):
            found.append(row)
    return pd.DataFrame(found)


def difference(values: pd.Series) -> str:
    """Mean ± standard error, bold beyond two of them."""
    if len(values) < 2:
        return f"{values.mean():+.2f}"
    text = f"{values.mean():+.2f} ± {standard_error(values):.2f}"
    return f"**{text}**" if abs(values.mean()) > 2 * standard_error(values) else text


def verdict(rows: pd.DataFrame) -> str:
    """At each NFE: the anisotropic sampler of least mean FD against the baseline, and whether it is below it."""
    sentences = []
    for nfe in sorted(set(rows["nfe"]) - {0}):
        part = rows[(rows["nfe"] == nfe) & (rows["network"] == "anisotropic")]
        if part.empty:
            continue
        name = str(part.groupby("sampler")[FD].mean().idxmin())
        words = []
        for column in (FD, EDGES):
            less = less_baseline(rows, "anisotropic", name, nfe, column)
            error = standard_error(less)
            side = "lower" if less.mean() < 0 else "higher"
            beyond = f"{side} by" if abs(less.mean()) > 2 * error else "no different beyond two standard errors,"
            words.append(f"{column} {beyond} {less.mean():+.2f} ± {error:.2f}")
        ours = part[part["sampler"] == name][FD].median()
        medians = f"medians of FD {ours:.2f} and {of(rows, BASELINE, nfe)[FD].median():.2f}"
        sentences.append(f"NFE {nfe}: {name}: {', '.join(words)}; {medians}.")
    return "The best sampler of the anisotropic networks less iPNDM-4 of the plain ones. " + " ".join(sentences)


def energy_sentence(energies: pd.DataFrame) -> str:
    """How much less energy the two learned paths of an anisotropic network have than the path of a plain one."""
    wide = energies.pivot(index="seed", columns="network", values="energy").dropna()
    if wide.empty or wide.shape[1] < 2:
        return ""
    gain = 100 * (1 - wide["anisotropic"] / wide["plain"])
    error = f" ± {standard_error(gain):.1f}" if len(gain) > 1 else ""
    each = ", ".join(f"{value:.1f}" for value in gain)
    return (
        f"Energy of the learned schedules on the same images, noise and times: plain {spread(wide['plain'])}, "
        f"anisotropic {spread(wide['anisotropic'])}; lower by {gain.mean():.1f}{error} % (standard error over "
        f"networks; by seed {each})."
    )


_SEEN = {FD: "FD on 40 principal components", EDGES: "edge FD on random convolutions"}
SHOWN = {
    BASELINE: "plain network, iPNDM-4 (the baseline)",
    ("plain", "AB3, learned"): "plain network, learned isotropic schedule, AB3",
    ("anisotropic", "AB3, learned J = 2"): "anisotropic network, learned J = 2, AB3",
}


def figure(rows: pd.DataFrame) -> Figure:
    """Both distances against NFE: a dot per network, a line through the means; the clipped Gaussian as a level."""
    drawn = Figure(figsize=(9, 4.6))
    nfes = sorted(set(rows["nfe"]) - {0})
    for i, column in enumerate((FD, EDGES)):
        axes = drawn.add_subplot(1, 2, i + 1)
        for k, ((kind, sampler), label) in enumerate(SHOWN.items()):
            part = rows[(rows["network"] == kind) & (rows["sampler"] == sampler)]
            if part.empty:
                continue
            mean = part.groupby("nfe")[column].mean()
            x = [nfes.index(nfe) + 0.07 * (k - 2) for nfe in mean.index]
            line = axes.plot(x, mean, "-", lw=1.6, label=label)[0]
            offsets = [nfes.index(nfe) + 0.07 * (k - 2) for nfe in part["nfe"]]
            axes.plot(offsets, part[column], "o", ms=4, color=line.get_color(), alpha=0.6)
        levels = rows[rows["network"] == "none"].groupby("sampler")[column].mean()
        for name, style in (("clipped Gaussian", "--"), ("real", ":")):
            if name in levels:
                label = {"clipped Gaussian": "clipped Gaussian, no evaluation", "real": "real images"}[name]
                axes.axhline(levels[name], color="black", ls=style, lw=0.9, label=label)
        axes.set(xlabel="evaluations of the network (NFE)", ylabel=_SEEN[column], yscale="log", xticks=range(len(nfes)))
        axes.set_xticklabels([str(nfe) for nfe in nfes])
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    drawn.tight_layout(rect=(0, 0.16, 1, 1))
    drawn.legend(*drawn.axes[0].get_legend_handles_labels(), frameon=False, fontsize=9, loc="lower center", ncols=2)
    return drawn


def write_alone(page: Page, name: str, rows: pd.DataFrame) -> None:
    """A problem's section of what plain networks have, as far as it has been measured."""
    page.heading(name)
    plain = rows[rows["network"] == "plain"]
    if plain.empty:
        page.text("Not measured yet.")
        return
    page.text(f"Networks: {plain['seed'].nunique()} plain.")
    page.table(table(rows))
    if len(alone := alone_table(rows)):
        page.text(ALONE_TEXT)
        page.table(alone)
    page.text(f"Each sampler less {BASELINE[1]}, paired by network, mean ± standard error (bold beyond two of them):")
    page.table(difference_table(rows))
    page.numbers(rows, name)


def write(page: Page, name: str, measured: Measured) -> None:
    """A problem's section, as far as it has been measured."""
    page.heading(name)
    rows = measured.rows
    networks = rows[rows["network"] != "none"]
    if networks.empty:
        page.text("Not measured yet.")
        return
    counts = networks.groupby("network")["seed"].nunique()
    page.text(f"Networks: {', '.join(f'{count} {kind}' for kind, count in counts.items())}.")
    page.table(table(rows))
    page.text(verdict(rows))
    page.text("Each sampler less the baseline, paired by seed, mean ± standard error (bold beyond two of them):")
    page.table(difference_table(rows))
    alone = alone_table(rows)
    if len(alone):
        page.text(ALONE_TEXT)
        page.table(alone)
    if len(measured.energies):
        page.text(energy_sentence(measured.energies))
    page.numbers(rows, name)
    caption = f"Distances on {name}: a dot is a network, a line runs through their means."
    page.figure(figure(rows), name, caption)
