"""The page of studies.reports.images, from its rows: aims, verdicts and tables over networks."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from studies.floors import COUNT, floor
from studies.reports.page import Page, kept_rows, spread, with_bounds

if TYPE_CHECKING:
    from pathlib import Path

NAME, ROWS = "images", "images-rows.jsonl"
DATASET, AGAIN_TRAINED = "cifar10-16", "cifar10-16, trained again"
LARGE = "cifar10-32"
"""Sections of the page: a data set, and after a comma what differs."""
BLOCKS, TRAINED = {LARGE: 1250}, {LARGE: 1}
"""Samples of a block, and networks, where they are not 2,500 and three."""
NETWORKS = tuple(f"cifar10-16-edm-s{seed}" for seed in (1, 2, 3))
FEATURES = ("classifier", "pca-64", "edges")
NFE = (3, 5, 9)
NOISE, MATCHED = "noise", "the law"
SCALED, ONE, BANDS, FITTED, LEARNED = "noise of a fitted deviation", "one set", "bands", "fitted", "learned"
CONVERGED, FEW, AGAIN, AGREEMENT = "converged", "few", ", search ", "agreement"
SOLVERS = ("iPNDM-4", "UniPC", "DPM-Solver++(2M)", "DEIS")
PLAIN = {(solver, start): f"{solver}, from {start}" for start, solver in product((MATCHED, NOISE), SOLVERS)}
WEIGHTS, LEVELS = "levels and weights learned (ours, after S4S)", "levels learned (ours, after LD3)"
SHORTEST, ANALYTICAL = "levels by the shortest path (after GITS)", "AFS, iPNDM-4 or UniPC"
STARTS = NOISE, SCALED, MATCHED
COEFFICIENTS = (
    f"{SCALED}, plain",
    *(f"{start}, {which}, {how}" for start, which, how in product(STARTS, (ONE, BANDS), (FITTED, LEARNED))),
)
"""Samplers of coefficients: of a start, with one set or by bands, fitted or then learned."""
RIVALS = (*PLAIN.values(), ANALYTICAL, SHORTEST, LEVELS, WEIGHTS)
ABOUT = {
    AGAIN_TRAINED: "CIFAR-10 at 16×16, re-encoded as JPEG; networks trained by the recipe of the next section, whose "
    "weights were gone. The search of commit c891f58e, which has analytical first steps (AFS) and fits from noise "
    "among its candidates, and was changed after letters (below); rivals tuned again, judging seeds that nothing used "
    "before. The samplers of coefficients and the agreement of score and judges are of these networks. Searches by "
    "seeds 3 and 4, and at 9 by all but seed 0, ran later; eleven of those at 9 on commit b07a356f, which takes less "
    "time, and on network 1 finds what seed 0 had found at 3 and 5, to all digits.",
    LARGE: "CIFAR-10 at 32×32, re-encoded as JPEG; one network of 8.8 M parameters that this project trained on a GPU, "
    "against the rivals that were best at 16×16. The search of commit 734d511e, which was never run at this size "
    "before; blocks of 1,250 samples, 24 steps for converged ones. One network has no spread: the verdict is by the "
    "mean of the two blocks.",
    DATASET: "CIFAR-10 at 16×16, re-encoded as JPEG; networks of 329,075 parameters, trained on 400,000 images by "
    "EDM's loss. While the search was built, samples of plain solvers on network 1 were judged, of other seeds; they "
    "told to try the best ones with other ρ. Networks 2 and 3 were run once, with the search of commit 54476c07. There "
    "`few` at 3 on network 3 lost by components, 2.55 for 1.65 of learned weights: two fits were alike by the samples "
    "of the race, and only the first of them was judged on others. Both are since; no row is of that.",
    "glyphs16": "Letters of eleven scripts at 16×16, in classes by script; networks like the others, trained on "
    "200,000 images (`python -m studies.blind`). Nothing was tuned on them; run once, with the search of commit "
    "1261d5fd, at 3 and 5 and against four rivals. An analytical first step (AFS) beat it, and the converged network "
    "by edges. The search has had such steps as candidates since, and fits and learns from noise as well; looked at on "
    "networks 1 and 2 with other seeds, at 3 it then had 1.68 and 1.62 by the classifier in place of 1.89 and 1.97.",
    "earth16": "Pieces of a picture of the Earth at 16×16; networks like the others, without classes, trained on "
    "200,000 images (`python -m studies.blind`). Nothing was tuned on them; run once, with the search that has "
    "analytical first steps (commit 68c388eb), at 3 and 5 and against four rivals, which may spend what an "
    "earlier search did. Converged samples of networks 2 and 3 are far from the data, and starts from the data's law, "
    "which `few` and two rivals have, mend that. Networks differ so much that the verdict decides little.",
}
AIM = (
    "At 3, 5 and 9 evaluations, by each kind of features, the distance of `few` without options over that of every "
    "rival is at most 1 by one standard error over three networks."
)
METHOD = """\
**Rivals** are tuned on each network, on seeds of their own, by a score like that of `few`: the geometric mean of the
Fréchet distance by low frequencies and of that of two by edges and random filters, each less its bias. All candidates
see the first samples, the best three more, which together takes at most what `few` spends. Plain solvers have EDM's
rule with ρ of 7, 4 and 3 from σ_max of 80 to 5 from noise, 40 to .625 from the data's normal law, by halves; AFS, which
replaces the first evaluation by x, scaled down, and takes one step more, 80 to 10. The shortest path is that of Euler's
errors on 64 recorded trajectories of 40 steps, with iPNDM-4 or 2M, σ_max of 80 or 20 and coefficients of 1, 1.15 and
1.3.

**The two learned rivals are ours**, after LD3 and S4S, and neither method itself. They start from noise of σ_max 80 or
20 and minimise the squared error to the ends of 40 steps of 2M from there, on 32 trajectories, and stop by 32 others.
One learns the levels through iPNDM-4, 2M or UniPC; the other the levels and, not tied to them, the weights of the state
and of the last three evaluations in every step, from 80 also with AFS. Each candidate may spend on it what `few` spends
in all, the levels a third.

**Judges**: `classifier`, hidden units of a small classifier, and `pca-64`, principal components, choose no sampler, but
helped to choose the score of an earlier search. Principal components overlap with the low frequencies of both scores;
`edges`, random 3×3 filters by quarters of the image, are near the third part of both. A distance is the mean over two
blocks of 2,500 samples, with the same latents and labels for all rows, which nothing else used."""


def nfes(method: str) -> tuple[int, ...]:
    """The numbers of evaluations that a method is measured at."""
    return {CONVERGED: NFE[:1], AGREEMENT: NFE[1:2]}.get(method, NFE[:2] if method in COEFFICIENTS else NFE)


def rows(docs: Path) -> pd.DataFrame:
    """All measured rows: a distance is the mean over the blocks."""
    found = kept_rows(docs / ROWS)
    if not len(found):
        return pd.DataFrame(columns=pd.Index(["dataset", "network", "method", "nfe", "choice", *FEATURES]))
    for name in FEATURES:
        found[name] = [float(np.mean(blocks)) if isinstance(blocks, list) else np.nan for blocks in found.get(name, [])]
    return found


def distances(found: pd.DataFrame, features: str) -> pd.DataFrame:
    """A row for each method and nfe, a column for each network."""
    here = found[found["nfe"].notna() & found[features].notna()]
    return here.pivot_table(features, ["method", "nfe"], "network")


def quotients(found: pd.DataFrame) -> pd.DataFrame:
    """`few` over each rival: features, nfe, rival, mean and standard error over the networks that have both."""
    out: list[dict[str, Any]] = []
    for name, nfe, method in product(FEATURES, NFE, RIVALS):
        by = distances(found, name)
        if (FEW, nfe) in by.index and (method, nfe) in by.index:
            over = (by.loc[(FEW, nfe)] / by.loc[(method, nfe)]).dropna()
            error = over.std() / np.sqrt(len(over)) if len(over) > 1 else np.nan
            out.append({"features": name, "nfe": nfe, "rival": method, "mean": over.mean(), "error": error,
                        "networks": len(over)})  # fmt: skip
    return pd.DataFrame(out)


def strongest(found: pd.DataFrame) -> pd.DataFrame:
    """Of each kind of features and number of evaluations the rival with the largest quotient."""
    over = quotients(found)
    return over.loc[over.groupby(["features", "nfe"])["mean"].idxmax()] if len(over) else over


def verdict(found: pd.DataFrame, networks: int) -> str:
    """How many of the comparisons that are measured hold, and which do not."""
    over = quotients(found)
    if not len(over):
        return "**Not measured yet.**"
    complete = len(over) == len(FEATURES) * len(NFE) * len(RIVALS) and (over["networks"] == networks).all()
    lost = over[over["mean"] - over["error"].fillna(0) > 1]
    measured, pairs = (one.groupby(["features", "nfe"]).ngroups for one in (over, lost))
    word = "Failed" if pairs else "Held" if complete else "Held so far"
    said = f"**{word}**: {measured - pairs} of {measured} comparisons hold"
    said += "." if complete else ", as far as rows are there."
    for (features, nfe), rivals in lost.groupby(["features", "nfe"]):
        names = ", ".join(f"{_quotient(row)} of {row.rival}" for row in rivals.itertuples(name="Row"))
        said += f" By {features} at {nfe}: {names}."
    return said


def _quotient(row: Any) -> str:
    return f"{row.mean:.2f}" + (f" ± {row.error:.2f}" if row.networks > 1 else "")


def as_good_as_converged(found: pd.DataFrame, within: float) -> dict[int, list[str]]:
    """By the number of evaluations the methods whose distances are, in the mean over networks, within this factor of
    those of the converged network, by every kind of features.
    """
    by = {name: distances(found, name) for name in FEATURES}
    ends = {name: table[table.index.get_level_values("method") == CONVERGED] for name, table in by.items()}
    if any(end.empty for end in ends.values()):
        return {}

    def good(method: str, nfe: int) -> bool:
        there = all((method, nfe) in table.index for table in by.values())
        return there and all((by[name].loc[(method, nfe)] / ends[name].iloc[0]).mean() <= within for name in FEATURES)

    measured = [nfe for nfe in NFE if (FEW, nfe) in by[FEATURES[0]].index]
    return {nfe: [method for method in (FEW, *RIVALS) if good(method, nfe)] for nfe in measured}


def table(found: pd.DataFrame, features: str) -> pd.DataFrame:
    """A row for each method: its distances by the number of evaluations, the least of a column bold."""
    means = distances(found, features)
    methods = [name for name in (FEW, *RIVALS) if name in means.index.get_level_values("method")]
    out = []
    for method in methods:
        cells = {"row": method}
        for nfe in NFE:
            there = means.loc[(method, nfe)].dropna() if (method, nfe) in means.index else pd.Series(dtype=float)
            column = means[means.index.get_level_values("nfe") == nfe].mean(axis=1)
            least = len(there) and there.mean() <= column[column.index.get_level_values("method").isin(methods)].min()
            cells[str(nfe)] = f"**{spread(there)}**" if least else spread(there)
        out.append(cells)
    return pd.DataFrame(out, columns=pd.Index(["row", *map(str, NFE)]))


def searches(found: pd.DataFrame) -> pd.DataFrame:
    """By the number of evaluations each network's mean over seeds of the search, and their spread in a network."""
    own = found[found["method"].str.startswith(FEW)]
    out = []
    for nfe, group in own.groupby("nfe"):
        row: dict[str, Any] = {"evaluations": f"{nfe:.0f}", "searches": len(group)}
        for name in FEATURES:
            by = group.groupby("network")[name]
            row[f"{name}, mean"] = spread(by.mean())
            row[f"{name}, spread"] = f"{(by.std() / by.mean()).mean():.0%}" if by.size().min() > 1 else ""
        row["seconds"] = f"{group['seconds'].median():.0f}"
        out.append(row)
    return pd.DataFrame(out)


def choices(found: pd.DataFrame) -> pd.DataFrame:
    """What each row was tuned to, by network, and the most evaluations that took."""
    here = found[found["choice"].notna() & (found["choice"] != "")].sort_values("network")
    out = []
    for method, nfe in product((FEW, *RIVALS), NFE):
        rows = here[(here["method"] == method) & (here["nfe"] == nfe)]
        if len(rows):
            told = list(rows["choice"])
            spent = rows["tuning"].max() if "tuning" in rows else np.nan
            choice = told[0] if len(set(told)) == 1 else "; ".join(told)
            cells = {"row": method, "evaluations": nfe, "choice": choice}
            out.append({**cells, "spent": f"{spent:,.0f}" if spent == spent else ""})
    return pd.DataFrame(out)


def write(docs: Path) -> Path:
    """Write the page from the rows that are there."""
    page, everything = Page(docs, NAME, "`few` with images"), rows(docs)
    page.text(
        "`few` with images, without options, against rivals that are tuned on each network by a like score, on "
        "networks of ours. Fréchet distances to the training images, smaller is better; ± is the standard "
        "deviation over networks, in verdicts the standard error."
    )
    page.heading("The aim")
    page.text(AIM)
    sections = sorted(everything.groupby("dataset", sort=False), key=lambda one: [*ABOUT, one[0]].index(one[0]))
    for dataset, found in sections:
        networks = found["network"].nunique()
        page.heading(f"What came out: {dataset}")
        page.text(f"{ABOUT.get(str(dataset), '')} Networks: {networks}.", verdict(found, TRAINED.get(str(dataset), 3)))
        over = strongest(found)
        if len(over):
            page.table(pd.DataFrame({
                "features": over["features"], "evaluations": over["nfe"],
                "`few` over the strongest rival": [_quotient(row) for row in over.itertuples(name="Row")],
                "rival": over["rival"],
            }))  # fmt: skip
        good = "; ".join(
            f"at {nfe} {', '.join(names) or 'none'}" for nfe, names in as_good_as_converged(found, 1.2).items()
        )
        if good:
            page.text(f"By every kind of features at most 1.2 times the converged network's distance: {good}.")
        for features in FEATURES:
            page.text(f"Fréchet distance, **{features}**, by evaluations:")
            ends = distances(found[found["method"] == CONVERGED], features)
            end = spread(ends.iloc[0].dropna()) if len(ends) else ""
            real = floor(docs, str(dataset).partition(",")[0], features, BLOCKS.get(str(dataset), COUNT))
            page.table(with_bounds(table(found, features), end, real))
        if len(found[found["method"].str.startswith(FEW)]):
            page.text("`few` by seeds of the search. Spread is that of seeds on one network, as a mean over networks:")
            page.table(searches(found))
        _coefficients(page, found)
        _agreement(page, found[found["method"] == AGREEMENT])
    page.heading("How rivals are tuned and judged")
    page.text(METHOD)
    for dataset, found in sections:
        page.text(f"What rows of {dataset} were tuned to, one choice if all networks had the same:")
        page.table(choices(found))
    page.numbers(everything[["dataset", "network", "method", "nfe", "choice", *FEATURES]], "rows")
    return page.write()


def _coefficients(page: Page, found: pd.DataFrame) -> None:
    """Tables of starts by coefficients."""
    if not found["method"].isin(COEFFICIENTS).any():
        return
    page.heading("What starts, coefficients and learning gain")
    page.text(
        "Samplers of the study's own, whose weights are the same in all parts of an image, or differ between 8 bands "
        "of frequencies in each channel; fitted step by step to 64 converged trajectories, or then learned with the "
        "levels, as the search does. *Plain* is the best of four solvers, from the tables above. Starts: noise from σ "
        "of 80 or 40, noise of a fitted deviation from 40 to 5, the data's normal law from 40 to 2.5."
    )
    for features in FEATURES:
        means, out = distances(found, features), []
        for nfe, start in product(NFE[:2], STARTS):
            row = {"evaluations": str(nfe), "start": start}
            plain = [f"{SCALED}, plain"] if start == SCALED else [PLAIN[solver, start] for solver in SOLVERS]
            there = [means.loc[(name, nfe)] for name in plain if (name, nfe) in means.index]
            row["plain"] = spread(min(there, key=lambda by: by.mean()).dropna()) if there else ""
            for which, how in product((ONE, BANDS), (FITTED, LEARNED)):
                key = f"{start}, {which}, {how}", nfe
                row[f"{which}, {how}"] = spread(means.loc[key].dropna()) if key in means.index else ""
            out.append(row)
        page.text(f"Fréchet distance, **{features}**:")
        page.table(pd.DataFrame(out))


def _agreement(page: Page, found: pd.DataFrame) -> None:
    if not len(found):
        return
    page.text(
        "Spearman's correlation of the score with the judges, over all plain solvers and over those within twice the "
        "best score, by the geometric mean of the score's three distances, which the search takes, and by the worst of "
        "them over the best solver's:"
    )
    out = []
    for score, some in product(("mean", "worst"), ("all", "near")):
        row = {"score": score, "solvers": some}
        for name in FEATURES:
            row[name] = spread(pd.Series([cell[name] for cell in found[f"{score}, {some}"]]))
        out.append(row)
    page.table(pd.DataFrame(out))
