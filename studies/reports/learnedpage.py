"""The page of what learning a schedule gains: the aims, their verdicts, and tables over networks."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import pandas as pd

from anisoflight.fid.cells import rows_of
from studies.floors import floor
from studies.reports.page import Page, spread, with_bounds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

ROWS, OUTCOMES, TUNING = "learned-rows.jsonl", "learned-outcomes.jsonl", "learned-tuning.jsonl"
FEATURES = ("classifier", "pca-64")
NETWORKS = (1, 2, 3)
NFE = (9, 13, 17, 35)
HEUN, IPNDM = "Heun", "iPNDM-4"
GEODESIC, START = "geodesic", "start's network"
STARTS = {HEUN: GEODESIC, IPNDM: START}
"""With each sampler, the row that the others are compared with."""
ONE, TWO = "g", ("DCT", "PCA")
LEARNED = (ONE, "{g_y}", *TWO)
LOSS, TUNED = "EDM's loss continued", "tuned"
CONTROLS = (LOSS, "trajectory loss, path stays", "path alone")
ALONG_START = ", start's geodesic"
COLUMNS = ["features", "network", "sampler", "method", "nfe", "seeds", "frechet", "count", "floor", "grid"]
_SAMPLER = {"heun": HEUN, "ipndm": IPNDM}

WRITTEN = "27 November 2026"
AIMS = {
    "a": "no default run is worse than its start by more than the spread at any of these",
    "b": "joint training beats EDM's loss for as many images by a tenth at 9 with both samplers",
    "c": "two subspaces beat one by more than the spread somewhere that a user would be",
}
READ = {
    "a": "The default runs are g, {g_y}, DCT and PCA. With Heun's method each follows its own path, and its start is "
    "the geodesic on the start's network. With iPNDM-4 it has EDM's levels, and its start is the start's network. "
    "“These” are both samplers at 9, 13, 17 and 35 evaluations, by both kinds of features. Differences are paired over "
    "networks, and the spread is their standard deviation. The aim fails if the mean of one difference is above its "
    "spread.",
    "b": "Joint training is g. Its distance is divided by that of EDM's loss continued. The mean of this quotient over "
    "networks must be at most .9, with both samplers and by both kinds of features. Heun's method follows the learned "
    "path on the network of g, and the start's geodesic on the other network.",
    "c": "DCT and PCA are compared with g. At each number of evaluations each has the sampler whose mean is lower, as "
    "a user would choose. The aim holds if at one number of evaluations the mean of the paired difference is below "
    "minus its standard deviation, by both kinds of features. These are eight chances; on three networks one of them "
    "may come up by luck.",
}
HELD, FAILED, OPEN = "held", "failed", "not measured yet"


@dataclass(frozen=True)
class Verdict:
    """Whether an aim holds, and the numbers or the missing rows that say so."""

    word: str
    reason: str


def read(file: Path) -> pd.DataFrame:
    """The rows of fid calc, one for each block of seeds, by COLUMNS; of a row that was measured again the last."""
    lines = rows_of(file) if file.exists() else []
    found = pd.DataFrame([_row(line) for line in lines], columns=pd.Index(COLUMNS))
    return found.drop_duplicates(COLUMNS[:6], keep="last").reset_index(drop=True)


def _row(line: dict[str, Any]) -> dict[str, Any]:
    sample, grid = line["source"]["sample"], line["source"]["sample"].get("grid")
    return {
        "features": line["features"]["name"],
        "network": int(line["benchmark"].split()[-1]),
        "sampler": _SAMPLER[sample["solver"]],
        "method": line["method"],
        "nfe": line["asked"]["nfe"],  # the most that may be spent
        "seeds": line["seeds"],
        "frechet": line["frechet"],
        "count": line["count"],
        "floor": line["reference"]["floor"].get(str(line["count"]), float("nan")),
        "grid": json.dumps(grid) if isinstance(grid, dict) else grid or "",
    }


def distances(found: pd.DataFrame) -> pd.Series:
    """Distances in the mean over blocks, by features, sampler, method, nfe and network."""
    return found.groupby(["features", "sampler", "method", "nfe", "network"]).frechet.mean()


def of(means: pd.Series, features: str, sampler: str, method: str, nfe: int) -> pd.Series:
    """A row's distances by network; empty if it is not there."""
    key = (features, sampler, method, nfe)
    return means.loc[key] if key in means.index.droplevel("network") else pd.Series(dtype=float)


def _complete(found: pd.Series) -> bool:
    return set(NETWORKS) <= set(found.index)


def _missing(rows: Iterable[str]) -> str:
    """The first of the rows, each once."""
    names = list(dict.fromkeys(rows))
    more = f"; and {len(names) - 6} more" if len(names) > 6 else ""
    return f"not all three networks have {'; '.join(names[:6])}{more}"


def verdicts(found: pd.DataFrame) -> dict[str, Verdict]:
    """By the aim, whether the rows say that it holds."""
    means = distances(found)
    return {"a": _no_worse(means), "b": _beats_loss(means), "c": _two_beat_one(means)}


def _no_worse(means: pd.Series) -> Verdict:
    worse, missing, compared = [], [], 0
    for nfe, (sampler, start), method, features in product(NFE, STARTS.items(), LEARNED, FEATURES):
        difference = (of(means, features, sampler, method, nfe) - of(means, features, sampler, start, nfe)).dropna()
        where = f"{method} with {sampler} at {nfe}"
        if not _complete(difference):
            missing.append(where)
            continue
        compared += 1
        if difference.mean() > difference.std():
            worse.append(f"{where}, {features}: {spread(difference, signed=True)}")
    if worse:
        return Verdict(FAILED, f"{len(worse)} of {compared} differences are above their spread: {'; '.join(worse)}")
    if missing:
        return Verdict(OPEN, _missing(missing))
    return Verdict(HELD, f"none of {compared} differences is above its spread")


def _beats_loss(means: pd.Series) -> Verdict:
    shown, missing, above = [], [], False
    for sampler, features in product(STARTS, FEATURES):
        found = quotient(means, features, sampler, ONE)
        if not _complete(found):
            missing.append(f"{ONE} or {LOSS} with {sampler} at 9")
            continue
        above |= bool(found.mean() > 0.9)
        shown.append(f"{sampler}, {features}: {spread(found)}")
    if above or not missing:
        return Verdict(FAILED if above else HELD, f"quotients {'; '.join(shown)}")
    return Verdict(OPEN, _missing(missing))


def quotient(means: pd.Series, features: str, sampler: str, method: str, nfe: int = 9) -> pd.Series:
    """A row's distance over that of EDM's loss continued, by network."""
    return (of(means, features, sampler, method, nfe) / of(means, features, sampler, LOSS, nfe)).dropna()


def _two_beat_one(means: pd.Series) -> Verdict:
    better, shown, missing = [], [], []
    for nfe, method in product(NFE, TWO):
        parts = [_two_less_one(means, features, method, nfe) for features in FEATURES]
        if not all(map(_complete, parts)):
            missing.append(f"{method} or {ONE} at {nfe}")
            continue
        said = " / ".join(spread(part, signed=True) for part in parts)
        shown.append(f"{method} at {nfe}: {said}")
        if all(part.mean() < -part.std() for part in parts):
            better.append(shown[-1])
    if better:
        return Verdict(HELD, f"differences ({' / '.join(FEATURES)}): {'; '.join(better)}")
    if missing:
        return Verdict(OPEN, _missing(missing))
    return Verdict(FAILED, f"differences ({' / '.join(FEATURES)}): {'; '.join(shown)}")


def _two_less_one(means: pd.Series, features: str, method: str, nfe: int) -> pd.Series:
    """The paired difference of the rows, each with the sampler whose mean is lower; empty unless all are there."""
    best = []
    for row in (method, ONE):
        found = [of(means, features, sampler, row, nfe) for sampler in STARTS]
        if not all(map(_complete, found)):
            return pd.Series(dtype=float)
        best.append(min(found, key=lambda each: each.mean()))
    return best[0] - best[1]


def table(found: pd.DataFrame, features: str, sampler: str) -> pd.DataFrame:
    """A row for each method: its distances by the number of evaluations, then their paired differences to the start."""
    means = distances(found)
    here = found[(found.features == features) & (found.sampler == sampler)]
    nfes = sorted(here.nfe.unique())
    shown = []
    for method in sorted(here.method.unique(), key=_order):
        values = {nfe: of(means, features, sampler, method, nfe) for nfe in nfes}
        cells = {str(nfe): spread(value) for nfe, value in values.items()}
        for nfe, value in values.items():
            less = (value - of(means, features, sampler, STARTS[sampler], nfe)).dropna()
            cells[f"{nfe}, less start"] = "" if method == STARTS[sampler] else spread(less, signed=True)
        shown.append({"row": method, **cells})
    return pd.DataFrame(shown)


def _order(method: str) -> tuple[int, str]:
    """The start, then what is not trained, then the controls, then what is learned."""
    if method in STARTS.values():
        return 0, ""
    if method in CONTROLS:
        return 2, str(CONTROLS.index(method))
    name = method.removesuffix(ALONG_START)
    return (3, f"{LEARNED.index(name)}{method}") if name in LEARNED else (1, method)


def quotient_table(found: pd.DataFrame, sampler: str) -> pd.DataFrame:
    """What each training on the trajectory loss has over EDM's loss continued, by the number of evaluations."""
    means, shown = distances(found), []
    for method in (CONTROLS[1], *LEARNED):
        cells = {}
        for nfe in sorted(found.nfe.unique()):
            said = [spread(quotient(means, features, sampler, method, nfe)) for features in FEATURES]
            cells[str(nfe)] = " / ".join(said) if all(said) else ""
        if any(cells.values()):
            shown.append({"row": method, **cells})
    return pd.DataFrame(shown)


def tuned_table(found: pd.DataFrame) -> pd.DataFrame:
    """The levels that were chosen, by network and features."""
    rows = found[found.method == TUNED].drop_duplicates(["features", "network", "nfe"])
    shown = [
        {"network": r.network, "evaluations": r.nfe, "features": r.features, "levels": _levels(json.loads(r.grid))}
        for r in rows.sort_values(["network", "nfe", "features"]).itertuples()
    ]
    return pd.DataFrame(shown)


def _levels(grid: dict[str, dict[str, float]]) -> str:
    ((name, rule),) = grid.items()
    return f"{name}, σ_max {rule['sigma_max']:g}, ρ {rule['rho']:g}"


def outcomes(file: Path) -> pd.DataFrame:
    """What each run said at its end."""
    lines = {(r["network"], r["row"]): r for r in (rows_of(file) if file.exists() else [])}
    return pd.DataFrame(
        [
            {"network": network, "row": row, "images": f"{1000 * line['kimg']:,.0f}", "outcome": _said(line["outcome"])}
            for (network, row), line in sorted(lines.items(), key=lambda item: (item[0][0], _order(item[0][1])))
        ]
    )


def _said(outcome: Any) -> str:
    """The sentences of an outcome; all of it if it has none."""
    if isinstance(outcome, dict):
        return str(outcome.get("summary") or json.dumps(outcome, ensure_ascii=False))
    return str(outcome or "")


def _introduction(found: pd.DataFrame) -> Iterator[str]:
    yield (
        "CIFAR-10 at 16×16, re-encoded as JPEG. The networks have 329,075 parameters and were trained on 400,000 "
        "images by EDM's loss (configs/cifar10-16). Each run starts from one of them and sees the same number of "
        "images, with the same learning rate and half-life of the average. `make report-learned` repeats it."
    )
    yield (
        "The defaults were chosen on network 1, by runs of half the length and samples of other seeds "
        "([rows](learned-choice.csv)). The other networks had no part in it. The rates were chosen for the trajectory "
        f"loss. {LOSS} has the same ones, which were not tuned for it."
    )
    if found.empty:
        yield "**No row is measured yet.**"
        return
    counts = " and ".join(f"{count:,}" for count in sorted(found["count"].unique()))
    yield (
        f"Networks measured: {found.network.nunique()} of {len(NETWORKS)}. A distance is the mean of the Fréchet "
        f"distances of the blocks of seeds {' and '.join(sorted(found.seeds.unique(), key=len))}, each of {counts} "
        "samples, to the training images. ± is the standard deviation over networks, for differences that of the "
        "paired differences; one network has none."
    )
    yield (
        "A column has the evaluations that a row may take. Heun's method with the second point at the end of the step "
        f"takes 2n − 1 in n steps. `midpoint` takes one less than it may, and so does `{TUNED}` on grid `polynomial`, "
        "which ends with the denoised image at σ = .002. iPNDM-4 has EDM's levels."
    )


def write(docs: Path) -> Path:
    """Write the page from the rows that are there."""
    found = read(docs / ROWS)
    page = Page(docs, "learned", "What learning a schedule gains on CIFAR-10 at 16×16")
    page.heading("The aims")
    page.text(f"They were written on {WRITTEN}, before any row was measured:")
    found_verdicts = verdicts(found)
    for name, aim in AIMS.items():
        verdict = found_verdicts[name]
        page.text(f"({name}) {aim}. **{verdict.word[0].upper()}{verdict.word[1:]}**: {verdict.reason}.", READ[name])
    page.heading("What was measured")
    page.text(*_introduction(found))
    if not found.empty:
        for sampler in STARTS:
            if not (quotients := quotient_table(found, sampler)).empty:
                page.heading(f"{sampler}, over EDM's loss for as many images")
                page.text(
                    f"Distance divided by that of {LOSS} (below 1 is better), {' / '.join(FEATURES)}, ± standard "
                    "deviation over networks:"
                )
                page.table(quotients)
        for features, sampler in product(FEATURES, STARTS):
            here = found[(found.features == features) & (found.sampler == sampler)]
            if not here.empty:
                page.heading(f"{sampler}, {features}")
                page.text(
                    "± is the standard deviation over networks, of a difference that of the paired differences, of "
                    "real images that over 20 draws. A converged sampler was not measured; the most evaluations are in "
                    "the last column of distances."
                )
                page.table(with_bounds(table(found, features, sampler), "", floor(docs, "cifar10-16", features)))
        tuning = "The best of 24 levels, by the distance on seeds that no other row is measured on."
        kept = (
            "A learned row is the best state of its run, by its own samples at 9 evaluations; a control is the last, "
            "which favours the learned rows."
        )
        for heading, note, shown in (
            ("What Heun's method was tuned to", tuning, tuned_table(found)),
            ("What the runs said", kept, outcomes(docs / OUTCOMES)),
        ):
            if not shown.empty:
                page.heading(heading)
                page.text(note)
                page.table(shown)
        page.numbers(found, "rows")
    return page.write()
