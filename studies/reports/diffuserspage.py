"""studies/docs/diffusers.md, from the rows that studies.reports.diffusers measures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from anisoflight.fid.cells import rows_of
from studies.floors import floor
from studies.reports.page import Page, difference, spread

if TYPE_CHECKING:
    from collections.abc import Sequence

DOCS = Path(__file__).parents[1] / "docs"
ROWS = "diffusers-rows.jsonl"
FEATURES = ("classifier", "pca-64")
NFE = (3, 5, 9)
NETWORKS = 3
PAIRED, WIDE, DATA = "few", "few, budget 16000", "few, with data"
OURS = (PAIRED, WIDE, DATA)
BEST, CONVERGED = "best of diffusers", "converged"
STEPS = {"UNet, ε": 1200, "DiT, flow": 500, "conditional UNet, v": 450}
"""Of training, of BATCH images each."""
BATCH = 64
EARLY = "UNet, ε, after 28,800 images"
"""A network that was measured before it was trained on."""
AIM = (
    "At 3, 5 and 9 evaluations the plan of `few` has a lower Fréchet distance than the best of all of diffusers' "
    "schedulers, on each of the three networks and by both features: without data, and with data."
)


def best(features: str) -> str:
    """The sampler of diffusers that was chosen by these features."""
    return f"{BEST}, by {features}"


def read(file: Path) -> pd.DataFrame:
    """The rows: network, sampler, nfe, block, evaluations, chosen, and a column for each of the features."""
    return pd.DataFrame(rows_of(file) if file.exists() else [])


def distances(found: pd.DataFrame, features: str) -> pd.DataFrame:
    """Distances by sampler and nfe, a column for each network, blocks averaged; BEST is the lower of those chosen."""
    if found.empty:
        return pd.DataFrame()
    by = found.groupby(["sampler", "nfe", "network"], sort=False)[features].mean().reset_index()
    by["sampler"] = by.sampler.where(~by.sampler.isin([best(one) for one in FEATURES]), BEST)
    return by.groupby(["sampler", "nfe", "network"], sort=False)[features].min().unstack()


def _early(found: pd.DataFrame) -> str:
    """What was measured of the network that was trained on."""
    words = []
    for nfe, rows in found[found.network == EARLY].groupby("nfe"):
        by = {features: distances(rows, features)[EARLY] for features in FEATURES}
        for sampler in (PAIRED, DATA, BEST):
            if all((sampler, nfe) in one.index for one in by.values()):
                words.append(f"{sampler} {' / '.join(f'{one[(sampler, nfe)]:.1f}' for one in by.values())} at {nfe}")
    if not words:
        return ""
    return (
        "**The first network of ε was replaced, trained further, after `few` had lost on it.** These comparisons are "
        "not among those above. After 28,800 images its converged "
        "samples had a standard deviation of 3; the images have ½. Without data `few` follows a network wherever it "
        f"leads. Classifier / pca-64: {', '.join(words)} evaluations. On such a network schedulers that start below "
        "its bad noise levels are better, and so is `few` with data."
    )


def losses(found: pd.DataFrame, samplers: Sequence[str] = OURS) -> list[str]:
    """Where ours is above the best of diffusers: a sentence for each network, number of evaluations and features."""
    said = []
    for features in FEATURES:
        by = distances(found, features)
        for (sampler, nfe), row in by.iterrows():
            if sampler not in samplers or (BEST, nfe) not in by.index:
                continue
            for network, ours in row.dropna().items():
                theirs = by.loc[(BEST, nfe), network]
                if ours >= theirs:
                    said.append(f"{sampler}, {nfe} evaluations, {network}, {features}: {ours:.2f}, theirs {theirs:.2f}")
    return said


def table(found: pd.DataFrame, features: str, real: str = "not measured") -> pd.DataFrame:
    """A row a sampler and nfe: mean ± standard deviation over networks, each network, and the difference; then the
    converged networks and real images.
    """
    by = distances(found, features)
    rows = []
    for nfe in NFE:
        for sampler in (*OURS, BEST):
            if (sampler, nfe) not in by.index:
                continue
            own = by.loc[(sampler, nfe)].dropna()
            row = {"evaluations": nfe, "sampler": sampler, "mean ± spread": spread(own)}
            row |= {name: f"{own[name]:.2f}" if name in own else "" for name in by.columns}
            less = ""
            if sampler != BEST and (BEST, nfe) in by.index:
                less = difference((own - by.loc[(BEST, nfe)]).dropna())
            rows.append(row | {"less the best of diffusers": less})
    converged = by[by.index.get_level_values("sampler") == CONVERGED]
    for (_, nfe), own in converged.iterrows():
        row = {"evaluations": nfe, "sampler": "UniPC-2, converged", "mean ± spread": spread(own.dropna())}
        rows.append(
            row | {name: f"{value:.2f}" for name, value in own.dropna().items()} | {"less the best of diffusers": ""}
        )
    rows.append({"evaluations": "", "sampler": "real images", "mean ± spread": real})
    return pd.DataFrame(rows).fillna("")


def _facts(found: pd.DataFrame) -> str:
    """Parameters of each network, and how many schedulers were tried on it."""
    parts = []
    for network, rows in found.groupby("network", sort=False):
        words = f"{network} ({rows.parameters.iloc[0]:,} parameters, {STEPS.get(network, 0) * BATCH:,} images"
        if "tried" in rows and rows.tried.notna().any():
            words += f"; {rows.tried.max():.0f} schedulers tried"
        parts.append(words + ")")
    return ", ".join(parts)


def _chosen(found: pd.DataFrame) -> pd.DataFrame:
    """What was chosen on each network at each number of evaluations, and what the search cost."""
    named = found[found.sampler.isin((*OURS, *map(best, FEATURES)))].drop_duplicates(["network", "nfe", "sampler"])
    named = named.assign(chosen=named.chosen.str.split(":").str[0])
    named = named.sort_values(["network", "nfe", "sampler"])
    columns = named[["network", "nfe", "sampler", "chosen"]]
    if "search" in named:
        columns = columns.assign(search=named.search.map(lambda n: f"{n:,.0f}" if pd.notna(n) else ""))
    return columns.rename(columns={"nfe": "evaluations", "search": "evaluations of the search"})


def verdict(found: pd.DataFrame) -> str:
    """Whether the aim was met, and what was not."""
    missing = [
        f"{sampler} at {nfe}"
        for sampler in (PAIRED, DATA, BEST)
        for nfe in NFE
        if found.empty or (sampler, nfe) not in (by := distances(found, FEATURES[0])).index
        or by.loc[(sampler, nfe)].count() < NETWORKS
    ]  # fmt: skip
    lost = losses(found) if len(found) else []
    said = "**Not all is measured**: three networks lack " + ", ".join(missing) + ". " if missing else ""
    if lost:
        parts = ", ".join(f"{name} {len(losses(found, (name,)))} of {compared(found, (name,))}" for name in OURS)
        return said + f"**The aim was not met.** `few` loses in {len(lost)} of {compared(found)} comparisons: {parts}."
    return (
        said + ("" if missing else "**The aim was met.** ") + f"`few` loses in none of {compared(found)} comparisons."
    )


def compared(found: pd.DataFrame, samplers: Sequence[str] = OURS) -> int:
    """The number of comparisons of ours with the best of diffusers, by network, number of evaluations and features."""
    total = 0
    for features in FEATURES:
        by = distances(found, features)
        for sampler, nfe in by.index:
            if sampler in samplers and (BEST, nfe) in by.index:
                total += int((by.loc[(sampler, nfe)] - by.loc[(BEST, nfe)]).count())
    return total


def write(folder: Path = DOCS) -> Path:
    """Write the page from the rows that are there."""
    everything = read(folder / ROWS)
    found = everything if everything.empty else everything[everything.network != EARLY]
    page = Page(folder, "diffusers", "`few` against diffusers' schedulers, on networks in torch")
    page.text(
        "`make report-diffusers` writes this page. **All rows are of an earlier search**, of 27 November 2026; its "
        "candidates and its score were changed since. The aim is of that day, too. Git cannot show that it is older "
        "than the rows: both came with commit 4a3491b4."
    )
    page.quote(AIM)
    page.text(verdict(found))
    if found.empty:
        return page.write()
    if lost := losses(found):
        page.items(lost)
    page.heading("What was measured")
    blocks, count = found.block.nunique(), int(found["count"].min())
    each = found.groupby(["network", "sampler", "nfe"], sort=False).block.nunique()
    fewer = [f"{sampler} at {nfe} ({network})" for network, sampler, nfe in each[each < blocks].index]
    page.text(
        "Networks, trained in torch for minutes on CIFAR-10 at 16×16 (re-encoded as JPEG) and never uploaded: "
        f"{_facts(found)}. They are small and far from converged: the distance of their converged samples, the last "
        "row, is mostly the networks' own error. Their lengths of training, and the times that ε was trained at, were "
        "changed while they ran, so a repetition has other weights.",
        f"An entry is the Fréchet distance of {count:,} samples to the 50,000 training images, the mean of {blocks} "
        "blocks of seeds by which nothing was chosen. All samplers of a network have the same noise. ± is the "
        "standard deviation over networks, for a difference its standard error, bold beyond two of them. `classifier` "
        "are the 64 hidden units of a classifier, `pca-64` the leading principal components of the pixels. `few` sees "
        "neither. Without data it compares samples with converged ones; with data it compares low frequencies, edges "
        "and responses of random filters. Low frequencies are near the principal components.",
        "**The rival is favoured.** It is the best of diffusers' schedulers on each network and at each number of "
        "evaluations, with every solver order and every spacing that they offer (leading, linspace, trailing; "
        "Karras', exponential, beta and Lu's levels; for the flow, four shifts). It was chosen twice, on its own "
        "seeds, by each of the features that judge it, and the better of the two where it is judged is shown. "
        "Evaluations are calls of the network: a method with two in a step takes half as many steps, and none takes "
        "more than the column says. Not tried were SASolver, DPMSolverSDE, ancestral KDPM2 and IPNDM, and on the flow "
        "Karras', exponential and beta levels of multistep solvers.",
        "Without data `few` has to reproduce the network's converged samples from σ = 80, and knows nothing of the "
        "images. A scheduler that was chosen by its distance to the images can be nearer to them than those are.",
    )
    if fewer:
        page.text(f"Entries of fewer blocks are less certain: {', '.join(fewer)}. Empty entries were not measured.")
    for features in FEATURES:
        page.heading(f"Features: {features}")
        page.text(
            "± is the standard deviation over networks, of differences the standard error of their mean, of real "
            f"images the standard deviation of 20 draws of {count} images."
        )
        real = floor(folder, "cifar10-16", features, count) or "not measured"
        page.table(table(found, features, real))
    if early := _early(everything):
        page.text(early)
    page.heading("What was chosen")
    page.table(_chosen(found))
    page.numbers(everything, "rows")
    return page.write()
