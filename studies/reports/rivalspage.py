"""The page of `few` and the geodesic against tuned rivals: the aims, their verdicts, and tables over networks."""

from __future__ import annotations

import json
from itertools import product
from typing import TYPE_CHECKING, Any

import pandas as pd

from anisoflight.fid.cells import rows_of
from studies.floors import floor
from studies.reports.learnedpage import FAILED, HELD, OPEN, Verdict
from studies.reports.page import Page, spread, with_bounds

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

ROWS = "rivals-rows.jsonl"
DATASET, NETWORKS = "cifar10-16", tuple(f"cifar10-16-edm-s{seed}" for seed in (1, 2, 3))
FEATURES = ("classifier", "pca-64", "edges")
NFE, HEUN_NFE = (3, 5, 9), (9, 13, 17, 35)
NOISE, MATCHED = "from noise", "matched start"
FEW, MINUTES, GEODESIC = "few", "few, budget minutes", "geodesic, Heun"
CONVERGED_ROWS = "blind-rows.jsonl"
BLIND = "few, blind"
"""Of the search as it was when a data set was first measured."""
SOLVERS = ("iPNDM-4", "UniPC", "DPM-Solver++(2M)", "DEIS")
PLAIN = {(solver, start): f"{solver}, {start}" for solver, start in product(SOLVERS, (MATCHED, NOISE))}
WEIGHTS, LEVELS = "levels and weights learned (ours, after S4S)", "levels learned (ours, after LD3)"
SHORTEST, ANALYTICAL, TUNED_HEUN = "GITS", "AFS, iPNDM-4 or UniPC", "tuned Heun"
RIVALS = (*PLAIN.values(), WEIGHTS, LEVELS, SHORTEST, ANALYTICAL, TUNED_HEUN)
EARLIER = {method: f"{method}, earlier score" for method in (FEW, MINUTES)}
"""Rows of the search before its score was changed, on the same judging seeds."""
ENDPOINT_HEUN = "tuned Heun, second point at the end"
ORDER = (FEW, MINUTES, BLIND, *EARLIER.values(), GEODESIC, *RIVALS, ENDPOINT_HEUN)
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
    "bound for every kind of features. ± is the standard deviation over networks; of three it is uncertain "
    "by a factor of two."
)
WRITTEN = (
    "They are dated 27 November 2026. Git cannot show that they are older than the rows: both came with commit "
    "da24337c. Aims 1 and 2 were judged again, by the same judging seeds, after the search had been changed twice, so "
    "they are no longer one test. Aim 3 says “without options”; its row sets `second_point` to the end of the step, "
    "while the default is the middle:"
)
TUNING = """\
Every rival is tuned on each network, on its own seeds, by a score like that of `few`: the geometric mean of the
Fréchet distance by low frequencies and of that of two by edges and random filters, each less its bias. All candidates
see the first samples, the best three more, which together takes at most what `few` spends. Plain solvers have grid
`polynomial`, ρ 7 or 3, and σ_max 80 to 5 from noise or 40 to .625 from the data's normal law, by halves. AFS has σ_max
80 to 10. Heun's method has grids `edm` and `polynomial`, σ_max 80 to 10, and ρ 7, 5 or 3. `few` has the same plain
solvers but DEIS, on the same levels, from noise not below 10 and from the law not below 1.25, and on levels for the
law.

**Two scores.** The rows `few` and those of Fashion-MNIST have the present score. Rivals on CIFAR-10 and emoji were
tuned by an earlier one and half the samples, two in the last round, and were not tuned again. Exceptions, tuned by the
present one: at 9 DEIS and 2M with the matched start, AFS, GITS and the learned weights, and Heun at 17. So a column can
mix both.

**Blind data.** Emoji and Fashion-MNIST were each measured once with the `few` of that time, row `few, blind`, and each
showed a fault. At first `few` had ρ 7 alone and, from the law, only levels that are good on the normal law; emoji
showed that. It did not start below σ = 5; Fashion-MNIST showed that. The search was changed after each, for plain
solvers alone: fits still start at σ 40 and 20, `local` not below 5. And it still chooses worse than it could: on emoji
at 3 it is behind iPNDM-4 from noise (σ_max 40, ρ 3) by the classifier, on Fashion-MNIST at 5 behind UniPC with the
matched start (σ_max 2.5, ρ 3) by all features; both are in its list. In between its score was changed, which did not
subtract the bias and gave edges two thirds of the weight: distances of other seeds by `classifier` and `pca-64`, on
networks 1 and 3 of CIFAR-10, showed that. So no row `few` is blind now. Rows `earlier score` are of the search before;
they had been taken out of the file and are back from its history. So is Heun's method tuned with the second point at
the end alone, on two networks.

**Evaluations spent.** Those of rivals are counted. Those of `few` are what the search would take at most, by a formula
that was corrected twice, so that rows have what it said when they were measured. Within a search nothing is repeated:
each row `few` is one search, and how far its choice depends on its own seed was not measured.

**GITS** has the levels with the least sum of Euler's errors on 64 recorded trajectories of 40 steps, by dynamic
programming, with iPNDM-4 or 2M, σ_max 80 or 20, and a coefficient of 1, 1.15 or 1.3.

**The two learned rivals are ours**, after LD3 and S4S, and neither method itself; rows had their names until 28
November 2026. They start from noise of σ_max 80 or 20 and minimise the squared error to the ends of 40 steps of 2M from
there, on 32 trajectories, and stop by 32 others. One learns the levels through iPNDM-4, 2M or UniPC. The other learns
the levels and, not tied to them, the weights of the state and of the last three evaluations in every step, without AFS
or, from 80, with it. The papers take thousands of steps of a first-order optimiser. Here it is scipy's trust-region
method of least squares (`trf`) with differences, which takes a few hundred evaluations of a trajectory. A candidate may
spend on it up to what `few` spends in all, more than `few` with budget minutes learns with. Both favour the rivals.
Left out are LD3's looser target, S4S's distances by features, and times for the network that differ from the levels,
as DyWeight has.

**Counting.** Evaluations of the network count, for one image. AFS replaces the first one by x, scaled down, and
takes one more step. The papers count alike: N points of a schedule are N − 1 steps and, with AFS, N − 2
evaluations.

**Judges.** `classifier`, hidden units of a small classifier, and `pca-64`, principal components, chose no sampler.
They helped to choose the score of `few`, on networks 1 and 3 of CIFAR-10; network 2 alone is independent of them.
Principal components overlap with the low frequencies of both scores. `edges`, random 3×3 filters by quarters of the
image, are near the third part of both, and so are no independent judge.

**Real images** are the mean and standard deviation of 20 draws of 2,500 images against all others
(`python -m studies.floors`). The classifier is fitted again for them in the same way; that of the rows is not kept."""


LIMITS = """\
**Network 2 alone judges independently.** There `few` has {second3} of the learned weights' distances (classifier /
pca-64) at 3, {second5} at 5.

**At 3 the plain rivals with the matched start are at the edge of their list.** All four solvers chose σ_max .625 on all
networks, by the score that was then changed. So the quotient of aim 2 there, {law3} by the classifier, is against a
rival that may be better. The strongest plain rival is AFS: {afs3}.

**At 5 `few` gains nothing over a tuned plain solver for certain**: over AFS {afs5} by the classifier and {afs5_edges}
by edges, over UniPC with the matched start {law5} by the classifier, over iPNDM-4 from noise {noise5} by components.

**At 9 `few` is worse by components** than iPNDM-4 with the matched start, which is in its list: {law9} times.

**By the classifier the changed search is worse than the earlier one**: classifier / pca-64 / edges {now3} for
{earlier3} at 3, {now5} for {earlier5} at 5. On network 1 at 5 it went from a fit to plain iPNDM-4.

**Budget minutes** takes {more3} % more evaluations at 3, {more5} % at 5. It changed the choice at 3 alone, on network
3: {minutes} for {seconds}. The learned weights spent up to {spent5} times what `few` spends at 5, {spent9} times at 9.

**Heun's method.** Most of the geodesic's loss by components at 9 is the second point at the end of the step. With the
middle, on other seeds, the geodesic has 1.14 ± 0.12 / 1.57 ± 0.19 ([learned](learned.md), row `midpoint`). By the
classifier, too, tuned Heun is better on networks 1 and 2, with 8 evaluations. 35 was not measured.

**Not measured on CIFAR-10**: UniPC, 2M and DEIS from noise at 3 and 5, and learned levels at 9."""
"""What the verdicts do not say of the rows of CIFAR-10."""


def limits(found: pd.DataFrame) -> list[str]:
    """LIMITS with its numbers; nothing unless the rows are there."""
    by = {name: distances(found, name).reindex(columns=NETWORKS).dropna() for name in FEATURES}
    spent = found.groupby(["method", "nfe"]).tuning.max()
    classifier, components, edges = FEATURES
    unipc, law, noise = PLAIN["UniPC", MATCHED], PLAIN["iPNDM-4", MATCHED], PLAIN["iPNDM-4", NOISE]

    def over(features: str, theirs: str, nfe: int) -> pd.Series:
        return by[features].loc[FEW, nfe] / by[features].loc[theirs, nfe]

    def cells(method: str, nfe: int, network: str = "") -> str:
        rows = (by[name].loc[method, nfe] for name in FEATURES)
        return " / ".join(f"{row[network] if network else row.mean():.2f}" for row in rows)

    def second(nfe: int) -> str:
        return " / ".join(f"{over(name, WEIGHTS, nfe)[NETWORKS[1]]:.2f}" for name in (classifier, components))

    try:
        said = LIMITS.format(
            second3=second(3), second5=second(5), law3=spread(over(classifier, unipc, 3)),
            afs3=spread(over(classifier, ANALYTICAL, 3)), afs5=spread(over(classifier, ANALYTICAL, 5)),
            afs5_edges=spread(over(edges, ANALYTICAL, 5)), law5=spread(over(classifier, unipc, 5)),
            noise5=spread(over(components, noise, 5)), law9=spread(over(components, law, 9)),
            now3=cells(FEW, 3), now5=cells(FEW, 5), earlier3=cells(EARLIER[FEW], 3), earlier5=cells(EARLIER[FEW], 5),
            more3=_more(spent, 3), more5=_more(spent, 5), minutes=cells(MINUTES, 3, NETWORKS[2]),
            seconds=cells(FEW, 3, NETWORKS[2]), spent5=f"{spent[WEIGHTS, 5] / spent[FEW, 5]:.1f}",
            spent9=f"{spent[WEIGHTS, 9] / spent[FEW, 9]:.1f}",
        )  # fmt: skip
    except KeyError:
        return []
    return said.split("\n\n")


def _more(spent: pd.Series, nfe: int) -> str:
    return f"{100 * (spent[MINUTES, nfe] / spent[FEW, nfe] - 1):.0f}"


def ahead(found: pd.DataFrame, features: str) -> str:
    """The rivals whose distance is below that of `few` in the mean over networks, by the number of evaluations."""
    means, said = distances(found, features).dropna().mean(axis=1), []
    for nfe in NFE:
        ours = means.get((FEW, nfe))
        theirs = means[means.index.get_level_values("nfe") == nfe].droplevel("nfe")
        better = theirs[theirs.index.isin(RIVALS)].sort_values()
        if ours is not None:
            names = [f"{name} {value:.2f}" for name, value in better[better < ours].items()]
            said.append(f"at {nfe} ({ours:.2f}) {', '.join(names) or 'none'}")
    return "; ".join(said)


CONVERGED = {
    DATASET: "The networks are not kept, and none was sampled until it converged. The nearest rows are Heun's at 17 "
    "and, at 79, those on the three networks of [real](real.md), trained alike: 0.83 ± 0.05 / 1.32 ± 0.18 "
    "(classifier / pca-64).",
    "emoji16": "The network is not kept, and was not sampled until it converged.",
}
"""Why a table has no row of the converged network."""


def converged(docs: Path, dataset: str, features: str, method: str = "iPNDM-4, start", nfe: int = 17) -> str:
    """The distance of samples with many evaluations, in the mean over blocks, as studies.blind measured it."""
    rows = rows_of(docs / CONVERGED_ROWS) if (docs / CONVERGED_ROWS).exists() else []
    found = [
        row["frechet"]
        for row in rows
        if (row["benchmark"], row["features"]["name"], row["method"], row["nfe"]) == (dataset, features, method, nfe)
    ]
    return f"{sum(found) / len(found):.2f}" if found else ""


def _broken(docs: Path, dataset: str) -> str:
    """What the converged distance says of a network that was trained too little; nothing if it was not measured."""
    if not (ends := [converged(docs, dataset, name) for name in FEATURES[:2]])[0]:
        return CONVERGED.get(dataset, "")
    more = " / ".join(converged(docs, dataset, name, "iPNDM-4, EDM's loss continued", 9) for name in FEATURES[:2])
    return (
        f"**This network is far from converged.** Its samples with 17 evaluations of iPNDM-4 from noise have "
        f"{' / '.join(ends)} (classifier / pca-64), and after 102,400 more images of EDM's loss {more}. So rows from "
        "noise show the network's error at high noise, which a start at σ = 2.5 from the law skips, and the table "
        "ranks starts on a network that is wrong there, not solvers."
    )


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
    page.text(WRITTEN)
    for aim, text in AIMS.items():
        found = verdict(aim, everything[everything.dataset == DATASET])
        page.text(f"({aim}) {text}. **{found.word.capitalize()}**: {found.reason}.")
    page.text(READ)
    if items := limits(everything[everything.dataset == DATASET]):
        page.heading("What limits them")
        page.items(items)
    for dataset, found in everything.groupby("dataset", sort=False):
        page.heading(f"What was measured: {dataset}")
        page.text(_about(str(dataset), found, accuracies[dataset]))
        if said := _broken(docs, str(dataset)):
            page.text(said)
        for features in FEATURES:
            page.text(f"Fréchet distance, **{features}**, by evaluations, ± standard deviation over networks:")
            ends, real = converged(docs, str(dataset), features), floor(docs, str(dataset), features)
            page.table(with_bounds(table(found, features), ends, real))
            if said := ahead(found, features):
                page.text(f"Rivals ahead of `few`: {said}.")
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
    apart = 100 * (blocks[1] - blocks[2]).abs() / blocks.mean(axis=1)
    groups = apart.groupby(["features", "network"]).mean()
    what = ABOUT.get(dataset, "")
    return (
        f"{what} Networks: {found.network.nunique()}. A distance is the mean over two blocks, each of "
        f"{found['count'].iloc[0]:,} samples, to the training images; in the median of all rows the blocks are "
        f"{apart.median():.0f} % apart, at most {groups.max():.0f} % in the mean ({', '.join(groups.idxmax())}). ± is "
        "the standard deviation over networks, of real images that over draws; one network has none. All rows have the "
        "same latents and labels, which nothing else used. The classifier's hidden units tell the class of "
        f"{100 * accuracy:.0f} % of images that a linear read-out was not fitted on; their own training saw all."
    )
