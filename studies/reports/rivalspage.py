"""The page of `few` and the geodesic against tuned rivals: the aims, their verdicts, and tables over networks."""

from __future__ import annotations

import json
from itertools import product
from typing import TYPE_CHECKING, Any

import pandas as pd

from anisoflight.files.cells import rows_of
from studies.reports.learnedpage import FAILED, HELD, OPEN, Verdict
from studies.reports.page import Page, spread

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

ROWS = "rivals-rows.jsonl"
DATASET, NETWORKS = "cifar10-16", tuple(f"cifar10-16-edm-s{seed}" for seed in (1, 2, 3))
FEATURES = ("classifier", "pca-64", "edges")
NFE, HEUN_NFE = (3, 5, 9), (9, 13, 17, 35)
NOISE, MATCHED = "from noise", "matched start"
FEW, MINUTES, GEODESIC = "few", "few, budget minutes", "geodesic, Heun"
BLIND = "few, blind"
"""Of the search as it was when a data set was first measured."""
SOLVERS = ("iPNDM-4", "UniPC", "DPM-Solver++(2M)", "DEIS")
PLAIN = {(solver, start): f"{solver}, {start}" for solver, start in product(SOLVERS, (MATCHED, NOISE))}
WEIGHTS, LEVELS = "levels and weights learned (S4S, DyWeight)", "levels learned (LD3)"
SHORTEST, ANALYTICAL, TUNED_HEUN = "GITS", "AFS, iPNDM-4 or UniPC", "tuned Heun"
RIVALS = (*PLAIN.values(), WEIGHTS, LEVELS, SHORTEST, ANALYTICAL, TUNED_HEUN)
ORDER = (FEW, MINUTES, BLIND, GEODESIC, *RIVALS)
KEYS = ["dataset", "network", "method", "nfe"]
COLUMNS = [*KEYS, "features", "block", "frechet", "count", "choice", "tuning", "evaluations"]

AIMS = {
    1: "the learned sampler ≤ .9 of the best tuned rival, learned ones included, at 3 and at 5 in every feature; ≤ 1 "
    "at 9",
    2: "`few` without options ≤ the best tuned plain solver with the same start at 3, 5 and 9",
    3: "The geodesic without options ≤ 1.05 of the best tuned Heun at 9, 13, 17, and ≤ 1 at 35",
}
ABOUT = {
    DATASET: "CIFAR-10 at 16×16, re-encoded as JPEG; networks of 329,075 parameters, trained on 400,000 images. "
    "Planned were 1.3 million parameters and a million images, too much for two cores; `--models` takes other ones.",
    "emoji16": "Emoji at 16×16; a network like the others, without classes, trained on 200,000 images (`python -m "
    "studies.blind`).",
    "fashion16": "Fashion-MNIST at 16×16; a network like the others, trained on 200,000 images (`python -m "
    "studies.blind`).",
}
BOUNDS = {
    1: (MINUTES, {3: 0.9, 5: 0.9, 9: 1.0}),
    2: (FEW, {3: 1.0, 5: 1.0, 9: 1.0}),
    3: (GEODESIC, {9: 1.05, 13: 1.05, 17: 1.05, 35: 1.0}),
}
READ = (
    f"The learned sampler is the row `{MINUTES}`. For each kind of features and number of evaluations, the best rival "
    "has the least mean distance over networks, by the rows shown here, which favours it. The plain solvers of aim 2 "
    "have the start that `few` has on that network. Quotients are paired over networks; their mean must be within the "
    "bound for every kind of features. ± is the standard deviation over networks."
)
TUNING = """\
Every rival is tuned on each network, on its own seeds, by a score like that of `few`: the geometric mean of the
Fréchet distance by low frequencies and of that of two by edges and random filters, each less its bias. All candidates
see the first samples, the best three more, which together takes at most what `few` spends. Plain solvers have grid
`polynomial`, ρ 7 or 3, and σ_max 80 to 5 from noise or 40 to .625 from the data's normal law, by halves. AFS has σ_max
80 to 10. Heun's method has grids `edm` and `polynomial`, σ_max 80 to 10, and ρ 7, 5 or 3. `few` has the same plain
solvers but DEIS, on the same levels, from noise not below 10 and from the law not below 1.25, and on levels for the
law.

**Blind data.** Emoji and Fashion-MNIST were each measured once with the `few` of that time, row `few, blind`, and each
showed a fault that was then mended. At first `few` had ρ 7 alone and, from the law, only levels that are good on the
normal law; emoji showed that. It did not start below σ = 5; Fashion-MNIST showed that. In between its score was
changed, which did not subtract the bias and gave edges two thirds of the weight: distances of other seeds by
`classifier` and `pca-64`, on networks 1 and 3 of CIFAR-10, showed that. So no row `few` is blind now. Rivals on
CIFAR-10 and emoji were tuned before, by the earlier score and half the samples, two in the last round.

**GITS** has the levels with the least sum of Euler's errors on 64 recorded trajectories of 40 steps, by dynamic
programming, with iPNDM-4 or 2M, σ_max 80 or 20, and a coefficient of 1, 1.15 or 1.3.

**LD3, S4S and DyWeight** start from noise of σ_max 80 or 20. They minimise the squared error to the ends of 40
steps of 2M from there, on 32 trajectories, and stop by 32 others. LD3 learns the levels through iPNDM-4, 2M or
UniPC. The other row learns the levels and, not tied to them, the weights of the state and of the last three
evaluations in every step, without AFS or, from 80, with it. Their papers take thousands of steps of a first-order
optimiser. Here it is Levenberg's and Marquardt's, which takes a few hundred evaluations of a trajectory. A
candidate may spend on it up to what `few` spends in all, more than `few` with budget minutes learns with. Both
favour the rivals. Left out are LD3's looser target, S4S's distances by features, and times for the network that
differ from the levels.

**Counting.** Evaluations of the network count, for one image. AFS replaces the first one by x, scaled down, and
takes one more step. The papers count alike: N points of a schedule are N − 1 steps and, with AFS, N − 2
evaluations.

**Judges.** `classifier`, hidden units of a small classifier, and `pca-64`, principal components, chose nothing.
Principal components overlap with the low frequencies of both scores. `edges`, random 3×3 filters by quarters of the
image, are near the third part of both, and so are no independent judge."""


def read(file: Path) -> pd.DataFrame:
    """One line for each block and kind of features of a row."""
    found: list[dict[str, Any]] = []
    for line in rows_of(file) if file.exists() else []:
        row = {**json.loads(line["key"]), **line}
        for name in FEATURES:
            blocks = enumerate(row.get(name, []), 1)
            found += [{**row, "features": name, "block": block, "frechet": value} for block, value in blocks]
    return pd.DataFrame(found, columns=pd.Index(COLUMNS))


def nfes(method: str) -> tuple[int, ...]:
    """The numbers of evaluations that a method is measured at."""
    return HEUN_NFE if method in (GEODESIC, TUNED_HEUN) else NFE


def distances(found: pd.DataFrame, features: str) -> pd.DataFrame:
    """Distances in the mean over blocks: a row for each method and nfe, a column for each network."""
    here = found[found.features == features]
    return here.pivot_table("frechet", ["method", "nfe"], "network").reindex(columns=sorted(here.network.unique()))


def rivals_of(aim: int, found: pd.DataFrame, nfe: int) -> list[Sequence[str]]:
    """The methods that an aim compares with, by network."""
    if aim == 3:
        return [(TUNED_HEUN,)] * len(NETWORKS)
    if aim == 1:
        return [tuple(method for method in RIVALS if nfe in nfes(method))] * len(NETWORKS)
    chosen = found[(found.method == FEW) & (found.nfe == nfe)].drop_duplicates("network").set_index("network").choice
    starts = [MATCHED if MATCHED in str(chosen.get(network, "")) else NOISE for network in NETWORKS]
    return [tuple(PLAIN[solver, start] for solver in SOLVERS) for start in starts]


def quotient(aim: int, found: pd.DataFrame, features: str, nfe: int) -> tuple[pd.Series, str, bool]:
    """Ours over the best rival that all networks have, by network; the rival's name, and whether none is missing."""
    means = distances(found, features).reindex(columns=NETWORKS).dropna()
    means, names, parts = means[means.index.get_level_values("nfe") == nfe].droplevel("nfe"), [], {}
    ours, complete = BOUNDS[aim][0], True
    for network, methods in zip(NETWORKS, rivals_of(aim, found, nfe), strict=True):
        there = [method for method in methods if method in means.index]
        complete &= len(there) == len(methods)
        if ours in means.index and there:
            names.append(str(means.loc[there].mean(axis=1).idxmin()))
            parts[network] = means.loc[ours, network] / means.loc[names[-1], network]
    return pd.Series(parts, dtype=float), " or ".join(dict.fromkeys(names)), complete


def verdict(aim: int, found: pd.DataFrame) -> Verdict:
    """Whether the rows say that an aim holds; one part that fails decides, whatever else is missing."""
    within, above, missing = [], [], []
    for (nfe, bound), features in product(BOUNDS[aim][1].items(), FEATURES):
        values, rival, complete = quotient(aim, found, features, nfe)
        said = f"{features} at {nfe}: {spread(values)} of {rival}"
        if not values.empty and values.mean() > bound:
            above.append(said)
        elif values.empty or not complete:
            missing.append(f"{features} at {nfe}")
        else:
            within.append(said)
    parts = {"above the bound": above, "within it": within, "without all rows": missing}
    said = "; ".join(f"{name} {', '.join(listed)}" for name, listed in parts.items() if listed)
    return Verdict(FAILED if above else OPEN if missing else HELD, said)


def table(found: pd.DataFrame, features: str) -> pd.DataFrame:
    """A row for each method: its distances by the number of evaluations, the least of a column bold."""
    means = distances(found, features)
    best = {nfe: group.dropna().mean(axis=1).idxmin() for nfe, group in means.groupby("nfe") if len(group.dropna())}
    shown = means.apply(lambda row: spread(row.dropna()), axis=1)
    for key in best.values():
        shown[key] = f"**{shown[key]}**"
    wide = shown.unstack("nfe").fillna("")
    wide = wide.reindex([method for method in ORDER if method in wide.index]).rename_axis("row").reset_index()
    return wide.rename_axis(None, axis=1)


def choices(found: pd.DataFrame) -> pd.DataFrame:
    """What each row was tuned to on each network, one choice if all are alike, and the most evaluations it took."""
    rows = found[found.choice != ""].drop_duplicates(KEYS).sort_values("network")
    shown = rows.groupby(["method", "nfe"]).agg(choice=("choice", _listed), spent=("tuning", "max"))
    shown = shown.reindex([key for key in product(ORDER, NFE + HEUN_NFE[1:]) if key in shown.index]).reset_index()
    return shown.assign(spent=shown.spent.map("{:,.0f}".format))


def _listed(choices: pd.Series) -> str:
    return choices.iloc[0] if choices.nunique() == 1 else "; ".join(choices)


def write(docs: Path) -> Path:
    """Write the page from the rows that are there."""
    everything, page = read(docs / ROWS), Page(docs, "rivals", "`few` and the geodesic against tuned rivals")
    lines = rows_of(docs / ROWS) if len(everything) else []
    accuracies = {json.loads(line["key"])["dataset"]: line["accuracy"] for line in lines if "accuracy" in line}
    page.heading("The aims")
    page.text("They were written on 27 November 2026, before any row was measured:")
    for aim, text in AIMS.items():
        found = verdict(aim, everything[everything.dataset == DATASET])
        page.text(f"({aim}) {text}. **{found.word.capitalize()}**: {found.reason}.")
    page.text(READ)
    for dataset, found in everything.groupby("dataset", sort=False):
        page.heading(f"What was measured: {dataset}")
        page.text(_about(str(dataset), found, accuracies[dataset]))
        for features in FEATURES:
            page.text(f"Fréchet distance, **{features}**, by evaluations:")
            page.table(table(found, features))
    page.heading("How rivals are tuned and judged, and how evaluations are counted")
    page.text(TUNING)
    for dataset, found in everything.groupby("dataset", sort=False):
        page.text(
            f"What rows of {dataset} were tuned to, one choice if all networks had the same, and the most evaluations:"
        )
        page.table(choices(found))
    page.numbers(everything, "rows")
    return page.write()


def _about(dataset: str, found: pd.DataFrame, accuracy: float) -> str:
    blocks = found.pivot_table("frechet", ["features", *KEYS[1:]], "block")
    apart = 100 * ((blocks[1] - blocks[2]).abs() / blocks.mean(axis=1)).median()
    what = ABOUT.get(dataset, "")
    return (
        f"{what} Networks: {found.network.nunique()}. A distance is the mean over two blocks, each of "
        f"{found['count'].iloc[0]:,} samples, to the training images; in the median of all rows the blocks are "
        f"{apart:.0f} % apart. ± is the standard deviation over networks; one network has none. All rows have the same "
        "latents and labels, which nothing else used. The classifier's hidden units tell the class of "
        f"{100 * accuracy:.0f} % of images that a linear read-out was not fitted on; their own training saw all."
    )
