"""The page of studies.reports.speechrobots, from its rows: the aim, the verdict and a table."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from studies.reports.page import Page, kept_rows, spread

if TYPE_CHECKING:
    from pathlib import Path

NAME, ROWS = "speechrobots", "speechrobots-rows.jsonl"
POLICY, F5, MATCHA = PACKAGES = "lerobot's policy", "F5-TTS", "Matcha-TTS"
NETWORKS, LONGER, TIMES = range(1, 4), range(11, 14), 5
"""Seeds, also of networks that are trained five times as long; the study was tried on network 0."""
NFE = (4,)
FEW, PLAIN, OWN, TUNED = METHODS = "few", "plain solvers", "own sampler", "own sampler, tuned"
RIVALS = PLAIN, OWN, TUNED
UNTOLD = "few without temperature"


def compared(found: pd.DataFrame) -> pd.DataFrame:
    """By training, package and evaluations: the errors of each method by network, few's divided by the best rival's,
    and its name.
    """
    out = []
    for networks, package, nfe in product((NETWORKS, LONGER), PACKAGES, NFE):
        here = found[found["network"].isin(networks) & (found["package"] == package) & (found["nfe"] == nfe)]
        table = here.pivot_table(index="network", columns="method", values="error")
        if not {FEW, *RIVALS} <= {*table}:
            continue
        best = np.log(table[[*RIVALS]]).mean().idxmin()
        ratio = (table[FEW] / table[best]).dropna()
        error = ratio.std() / np.sqrt(len(ratio)) if len(ratio) > 1 else 0.0
        out.append({"package": package, "nfe": nfe, "best": best, "ratio": ratio.mean(), "error": error,
                    "longer": networks == LONGER, "trained": here["trained"].mean(),
                    **{name: table[name] for name in (*METHODS, UNTOLD) if name in table}})  # fmt: skip
    return pd.DataFrame(out)


def write(docs: Path) -> Path:
    """Write the page."""
    page, found = Page(docs, NAME, "Speech and robots"), kept_rows(docs / ROWS)
    page.text(
        "`few` without data on networks of three packages, at a tiny size and trained for seconds on "
        "made-up tasks: lerobot 0.4.4's diffusion policy (hands that go to a goal around one side or the other), "
        "F5-TTS 1.1.22 (spectra of 24 frames and 8 rows, from a text and a prompt of 8 frames, guided at a strength of "
        "2) and Matcha-TTS 0.0.7.2 (the same spectra, at a temperature of 0.667). They say nothing of networks of a "
        "useful size.",
        "A sampler is searched, or tuned, under 64 conditions, and judged under 128 others with noise of other seeds: "
        "by the mean squared error to converged samples from the same noise, for F5-TTS without the frames of the "
        "prompt. Rivals: the best of up to 104 plain solvers (iPNDM-4, UniPC, DPM-Solver++(2M), DEIS from σ of 80, 40, "
        "20 and 10 with ρ of 7, 4 and 3, and at even times of a flow, to 0 or 0.002; for the policy at whole times); "
        "and the package's own sampler, by its defaults and with its best option: DDIM with three spacings; Euler's or "
        "the midpoint method with nine coefficients of sway sampling, and with pruned steps; Euler's with the same "
        "nine. The study was tried on a network of its own of each package, trained for seconds.",
    )
    page.heading("Aims")
    page.items([
        (
            "Aim 1: for each package and number of evaluations, the error of `few` divided by the best rival's, in the "
            "mean over networks, is below 1 by more than a standard error."
        ),
        f"Aim 2, after those rows: the same of other networks that are trained {TIMES} times as long.",
    ])  # fmt: skip
    table = compared(found) if len(found) else pd.DataFrame()
    if len(table):
        page.heading("What came out")
        won = table["ratio"] + table["error"] < 1
        page.items([
            f"Aim {aim}: {int(won[here].sum())} of {int(here.sum())} pairs, of {len(PACKAGES) * len(NFE)}."
            if here.any() else f"Aim {aim}: not measured yet."
            for aim, here in ((1, ~table["longer"]), (2, table["longer"]))
        ])  # fmt: skip
        columns = {name: [spread(1000 * row[name], digits=1) for _, row in table.iterrows()] for name in METHODS}
        page.table(pd.DataFrame({
            "package": table["package"], "trained": [f"{seconds:.0f} s" for seconds in table["trained"]],
            "evaluations": table["nfe"], **columns,
            "few / the best": [f"{row.ratio:.2f} ± {row.error:.2f} ({row.best})" for row in table.itertuples()],
        }))  # fmt: skip
        page.text(
            f"Trained: seconds of a core. Errors in thousandths; ± is the standard deviation over {len(NETWORKS)} "
            "networks, of ratios the standard error. A guided evaluation is one here, and two of F5-TTS's network."
        )
        if UNTOLD in table and len(rows := table.dropna(subset=[UNTOLD])):
            means = (f"{spread(1000 * row[UNTOLD], digits=1)} ({row['trained']:.0f} s)" for _, row in rows.iterrows())
            page.text(
                "Matcha-TTS, with plans that were searched without the temperature, and followed from noise times it: "
                f"{', '.join(means)}."
            )
        page.numbers(found, "rows")
    return page.write()
