"""The page of studies.reports.guidance, from its rows: the aim, what came of it and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from studies.reports.page import Page, kept_rows

if TYPE_CHECKING:
    from pathlib import Path

NAME, ROWS = "guidance", "guidance-rows.jsonl"
NETWORKS, SCALES, NFE = (11, 12, 13), (3.0, 7.5), (3, 4, 5)
LEARNED, ONE = "few, learned guidance", "few, one guidance"
PLAIN, WITHIN = "plain solvers", "guidance in an interval"
METHODS = LEARNED, ONE, PLAIN, WITHIN
MEAN, GEOMETRIC = "mean", "geometric mean"


def rows(docs: Path) -> pd.DataFrame:
    """All rows: errors are in units of the converged samples' mean square."""
    found = kept_rows(docs / ROWS)
    if len(found):
        over = [np.array(one) / power for one, power in zip(found["squares"], found["power"], strict=True)]
        found[MEAN] = [float(one.mean()) for one in over]
        found[GEOMETRIC] = [float(np.exp(np.log(one).mean())) for one in over]
    return found


def logs(found: pd.DataFrame, rival: str, measure: str = MEAN) -> pd.DataFrame:
    """The logarithm of the error of learned guidance over a rival's: by network, of each scale and evaluations."""
    table = found.pivot_table(index="network", columns=["method", "scale", "nfe"], values=measure)
    return np.log(table[LEARNED] / table[rival])


def ratio(values: pd.Series) -> tuple[float, float]:
    """The ratio whose logarithm is the mean over networks, and its standard error."""
    return (mean := float(np.exp(values.mean()))), mean * float(values.std() / np.sqrt(len(values)))


def write(docs: Path) -> Path:
    """Write the page."""
    page, found = Page(docs, NAME, "Guidance of each evaluation"), rows(docs)
    page.text(
        "`few` without data, with a budget of 100,000 evaluations, on class-conditional networks of scikit-learn's "
        "8×8 digits: with `learn_guidance=True`, and with one guidance for all evaluations. Rivals, tuned on noise of "
        "their own: the best of 48 plain solvers (as on the page of foreign networks), and of its best three with "
        "guidance in one of 16 intervals of noise levels. Networks 1 to 3 were looked at while this was built, and "
        "network 10, at 3 evaluations, while the study was.",
        "The measure is the mean squared error to converged samples (48 steps of iPNDM-4, one guidance, 96 calls) of "
        "the same 256 noises, over these samples' mean square. The converged network has 0. The floor of real images "
        "was not measured: this is about a solver's error, not about pictures.",
    )
    page.heading("Aim")
    page.text(
        "By the mean over networks of the logarithms, learned guidance has at most .95 of the squared error of one "
        "guidance at scale 7.5, and at scale 3 at most 1.0 by one standard error (the ratio and its error make at most "
        "1.0), over 3, 4 and 5 evaluations; and at most .9 of both rivals at every scale and number of evaluations."
    )
    if len(found) < len(METHODS) * len(NETWORKS) * len(SCALES) * len(NFE):
        return page.write()
    page.heading("What came out")
    table = {rival: {one: logs(found, rival, one) for one in (MEAN, GEOMETRIC)} for rival in METHODS[1:]}
    over = {s: {one: ratio(table[ONE][one][s].mean(axis=1)) for one in (MEAN, GEOMETRIC)} for s in SCALES}
    worst = {rival: max(ratio(column)[0] for _, column in table[rival][MEAN].items()) for rival in (PLAIN, WITHIN)}
    lost, least = np.exp(table[ONE][MEAN].to_numpy().ravel()), min(map(min, found["guidance"].dropna()))
    parts = over[7.5][MEAN][0] <= 0.95, sum(over[3.0][MEAN]) <= 1, max(worst.values()) <= 0.9
    page.items([
        *(f"Scale {scale:g}: {_said(one[MEAN])} of the error of one guidance, by the geometric mean over samples "
          f"{_said(one[GEOMETRIC])}." for scale, one in over.items()),
        "Of the rivals' error at most " + ", ".join(f"{value:.2f} ({name})" for name, value in worst.items()) + ".",
        f"The parts of the aim, in its order: {', '.join('reached' if one else 'missed' for one in parts)}.",
    ])  # fmt: skip
    page.text(f"Learned guidance errs more than one in {sum(lost > 1)} of {len(lost)} cases, at most {lost.max():.2f} "
              f"times as much. It saves no call: its least factor is {least:.2f}. Guidance in an interval saves some "
              "at scale 7.5, and errs more at five evaluations than learned guidance does at three.")  # fmt: skip
    page.table(pd.DataFrame([
        {"scale": f"{scale:g}", "evaluations": nfe,
         **{f"over {name}": _said(ratio(table[name][MEAN][scale, nfe])) for name in METHODS[1:]},
         f"over {ONE}, {GEOMETRIC}": _said(ratio(table[ONE][GEOMETRIC][scale, nfe]))}
        for scale in SCALES for nfe in NFE
    ]))  # fmt: skip
    means = found.groupby(["scale", "nfe", "method"])[[MEAN, "calls"]].mean()
    page.table(pd.DataFrame([
        {"scale": f"{scale:g}", "evaluations": nfe,
         **{name: f"{means.loc[(scale, nfe, name), MEAN]:.4f} ({means.loc[(scale, nfe, name), 'calls']:.1f})"
            for name in METHODS}}
        for scale in SCALES for nfe in NFE
    ]))  # fmt: skip
    page.text("Above, over others, ± the standard error over three networks; below, mean errors (calls for a sample).")
    page.numbers(found.drop(columns="squares"), "rows")
    return page.write()


def _said(value: tuple[float, float]) -> str:
    return f"{value[0]:.2f} ± {value[1]:.2f}"
