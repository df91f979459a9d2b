"""The page of the fair comparison: one table and one figure a problem, spread over networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd
from matplotlib.figure import Figure

from .page import difference, spread, standard_error

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .page import Page

MEASURED = """\
`make report-fair` writes this page; [README.md](README.md) reads it. The baseline is a **plain** network: EDM's
SongUNet with 16 channels, trained on isotropic noise for 1200 steps of 128. An **anisotropic** network has the same
size, data and budget. It is trained on anisotropic noise (DCT, J = 2) and receives the ratio of the two noise levels.
Every network is trained by itself, with its own seed."""
DEFINED = """\
A row is a sampler of one kind of network. Grid `polynomial` has n + 1 levels of EDM's rule (ρ = 7, 80 to 0.002) for n
evaluations, as is usual for multistep solvers. Grid `edm` has n levels and ends at t = 0. `learned` and `geodesic` are
schedules made for that network, sampled uniformly in their time. `nodes` suit the solver on the normal law of the
data; `refined` nodes were then moved to suit the network.

An entry is **FD / edge FD**, mean ± standard deviation over networks. Both are Fréchet distances to held-out images.
FD, of 40 principal components, sees mean and covariance alone. Edge FD, of 128 random convolutions with ReLU
(`studies/features.py`), sees edges. A number in brackets is the number of networks if some lack the entry. All networks
and samplers have the same latents and labels. `clipped Gaussian` draws from the mean and covariance of the training
images, without a network; `real` are training images."""

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
"""Samplers of plain networks that differ in anisotropy alone: the same start, levels and order, and a step
for every frequency against one for all.
"""


ALONE_TEXT = """\
**Anisotropy alone**: both samplers run on plain networks with the same start, levels and order and, if they are
fitted, the same trajectories. The first has coefficients for every frequency, the second one set for all. An entry is
FD / edge FD of the first less the second, paired by network, mean ± standard error (bold beyond two of them), then the
quotient of the means and the number of networks."""


@dataclass(frozen=True)
class Measured:
    """Rows (network, seed, sampler, nfe, FD, edge FD), and the energy of each network's learned schedule."""

    rows: pd.DataFrame
    energies: pd.DataFrame


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """A row per kind of network, which is the first column, and sampler; a column per NFE. NFE 0 is in all of them."""
    kind, nfes = str(rows.columns[0]), sorted(set(rows["nfe"]) - {0})
    networks = rows.groupby(kind)["seed"].nunique()
    found = []
    for (name, sampler), part in rows.groupby([kind, "sampler"], sort=False):
        cells = {kind: name, "sampler": sampler}
        for nfe in nfes:
            here = part[part["nfe"].isin([nfe, 0])]
            fewer = f" ({len(here)})" if len(here) < networks[name] else ""
            cells[f"NFE {nfe}"] = f"{spread(here[FD])} / {spread(here[EDGES])}{fewer}" if len(here) else ""
        found.append(cells)
    return pd.DataFrame(found)


def with_best(table: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """The table with the least mean FD of each NFE bold, of the samplers that all networks of their kind have."""
    networks = rows.groupby("network")["seed"].nunique()
    for nfe in sorted(set(rows["nfe"]) - {0}):
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
    ours, theirs = (rows_of(rows, name, nfe)[column] for name in ((kind, sampler), BASELINE))
    return (ours - theirs).dropna()


def rows_of(rows: pd.DataFrame, sampler: Sampler, nfe: int) -> pd.DataFrame:
    """The rows of a sampler by seed."""
    chosen = (rows["nfe"] == nfe) & (rows[rows.columns[0]] == sampler[0]) & (rows["sampler"] == sampler[1])
    return rows[chosen].set_index("seed")


def paired_table(
    rows: pd.DataFrame, pairs: Iterable[tuple[dict[str, str], Sampler, Sampler]], *, quotients: bool = False
) -> pd.DataFrame:
    """A row for each pair of samplers with its labels, a column per NFE: FD / edge FD of the first less the second, on
    the networks that both were measured on, mean ± standard error; and the quotients of the means, if they are asked
    for. A pair without such a network has no row.
    """
    nfes = sorted(set(rows["nfe"]) - {0})
    found = []
    for labels, *names in pairs:
        row = dict.fromkeys((f"NFE {nfe}" for nfe in nfes), "")
        for nfe in nfes:
            ours, theirs = (rows_of(rows, name, nfe) for name in names)
            seeds = ours.index.intersection(theirs.index)
            if seeds.empty:
                continue
            cells = []
            for column in (FD, EDGES):
                first, second = ours.loc[seeds, column], theirs.loc[seeds, column]
                quotient = f" ({first.mean() / second.mean():.2f}×)" if quotients else ""
                cells.append(difference(first - second) + quotient)
            row[f"NFE {nfe}"] = " / ".join(cells) + (f" on {len(seeds)}" if quotients else "")
        if any(row.values()):
            found.append(labels | row)
    return pd.DataFrame(found)


def difference_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Every sampler less the baseline."""
    samplers = rows.loc[rows["network"] != "none", ["network", "sampler"]].drop_duplicates()
    named = [(kind, sampler) for kind, sampler in samplers.to_numpy() if (kind, sampler) != BASELINE]
    return paired_table(rows, [({"network": name[0], "sampler": name[1]}, name, BASELINE) for name in named])


def alone_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Each sampler with coefficients for every frequency less the one with one set for all."""
    pairs = [({"sampler": ours, "less": theirs}, ("plain", ours), ("plain", theirs)) for ours, theirs in ALONE]
    return paired_table(rows, pairs, quotients=True)


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
        medians = f"medians of FD {ours:.2f} and {rows_of(rows, BASELINE, nfe)[FD].median():.2f}"
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
    """The section of a problem with plain networks alone."""
    page.heading(name)
    plain = rows[rows["network"] == "plain"]
    if plain.empty:
        page.text("Not measured yet.")
        return
    page.text(f"Networks: {plain['seed'].nunique()} plain.")
    page.table(with_best(table(rows), rows))
    if len(alone := alone_table(rows)):
        page.text(ALONE_TEXT)
        page.table(alone)
    page.text(f"Each sampler less {BASELINE[1]}, paired by network, mean ± standard error (bold beyond two of them):")
    page.table(difference_table(rows))
    page.numbers(rows, name)


def write(page: Page, name: str, measured: Measured) -> None:
    """The section of a problem."""
    page.heading(name)
    rows = measured.rows
    networks = rows[rows["network"] != "none"]
    if networks.empty:
        page.text("Not measured yet.")
        return
    counts = networks.groupby("network")["seed"].nunique()
    page.text(f"Networks: {', '.join(f'{count} {kind}' for kind, count in counts.items())}.")
    page.table(with_best(table(rows), rows))
    page.text(verdict(rows))
    page.text("Each sampler less the baseline, paired by seed, mean ± standard error (bold beyond two of them):")
    page.table(difference_table(rows))
    if len(measured.energies):
        page.text(energy_sentence(measured.energies))
    page.numbers(rows, name)
    caption = f"Distances on {name}: a dot is a network, a line runs through their means."
    page.figure(figure(rows), name, caption)
