"""The page of studies.reports.weather, from its rows: curves, aims, verdicts, a table and a figure."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from anisoflight.figures import COLOURS
from studies.reports.page import Page, kept_rows, spread

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

NAME, ROWS = "weather", "weather-rows.jsonl"
HIGHEST, LOWEST, TRANSITION = 100.0, 0.02, 10.0
"""Anemoi's noise levels, and where its piecewise curve turns."""
NETWORKS = range(1, 4)
"""Seeds; the study was tried on network 0."""
NFE = 5, 9, 17
HEUN, DPM = "heun", "dpmpp_2m"
KARRAS, PIECEWISE, GEODESIC, FEW, BOUNDS = "Karras", "piecewise", "geodesic", "few", "bounds"
TUNED = f"{KARRAS} tuned", f"{PIECEWISE} tuned", f"{GEODESIC} tuned"
CURVES = KARRAS, PIECEWISE, GEODESIC, *TUNED
METHODS = (*(f"{name}, {sampler}" for name, sampler in product(CURVES, (HEUN, DPM))), FEW)
AIMS = (
    (f"{GEODESIC}, {HEUN}", (f"{KARRAS}, {HEUN}", f"{PIECEWISE}, {HEUN}"), "the better of anemoi's curves as given"),
    (f"{TUNED[2]}, {HEUN}", (f"{TUNED[1]}, {HEUN}",), f"{TUNED[1]}, {HEUN}"),
    (FEW, METHODS[:-1], "the best of all others"),
)
"""What is compared with the best of which others, and their name."""
MEMBERS, CONVERGED = 8, 128
"""Forecasts of each state, and steps of converged samples."""


def karras(steps: int, highest: float, lowest: float, rho: float = 7.0) -> list[float]:
    """Noise levels, even in σ^(1/ρ)."""
    return (np.linspace(highest ** (1 / rho), lowest ** (1 / rho), steps) ** rho).tolist()


def piecewise(steps: int, high: int | None = None, *, highest: float = HIGHEST, turn: float = TRANSITION,
              rho: float = 7.0) -> list[float]:  # fmt: skip
    """Anemoi's curve in two pieces: `high` steps, by default half of them, down to `turn` by equal factors, the others
    from there by Karras's rule.

    >>> [round(level, 2) for level in piecewise(5)]
    [100.0, 46.42, 21.54, 10.0, 0.02]
    """
    high = steps - steps // 2 if high is None else high
    return [*np.geomspace(highest, turn, high + 1).tolist(), *karras(steps - high, turn, LOWEST, rho)[1:]]


def given(name: str, steps: int) -> list[float]:
    """The curve as anemoi has it."""
    return karras(steps, HIGHEST, LOWEST) if name == KARRAS else piecewise(steps)


def grid(name: str, steps: int) -> Iterator[tuple[str, list[float]]]:
    """The curves that tuning tries."""
    if name == TUNED[0]:
        for highest, rho in product((HIGHEST, 40.0, 20.0, 10.0, 5.0), (3.0, 5.0, 7.0, 10.0)):
            yield f"σ_max {highest:g}, ρ {rho:g}", karras(steps, highest, LOWEST, rho)
        return
    parts = sorted({max(1, round(part * steps)) for part in (0.2, 0.35, 0.5, 0.7)} - {steps})
    for highest, turn, high, rho in product((HIGHEST, 40.0, 20.0, 10.0), (10.0, 5.0, 2.0, 1.0), parts, (3.0, 7.0)):
        if turn < highest:
            told = f"σ_max {highest:g}, turn {turn:g}, {high} of {steps} steps above it, ρ {rho:g}"
            yield told, piecewise(steps, high, highest=highest, turn=turn, rho=rho)


def rows(docs: Path) -> pd.DataFrame:
    return kept_rows(docs / ROWS)


def mean(found: pd.DataFrame, method: str, nfe: int, column: str = "error") -> pd.Series:
    here = found[(found["method"] == method) & (found["nfe"] == nfe)]
    return here.set_index("network")[column]


def ratio(found: pd.DataFrame, one: str, other: str, nfe: int) -> tuple[float, float]:
    """The mean over networks of ln of one's error over the other's, and its standard error."""
    logs = np.log(mean(found, one, nfe) / mean(found, other, nfe)).dropna()
    return float(logs.mean()), float(logs.std() / np.sqrt(len(logs))) if len(logs) > 1 else 0.0


def best(found: pd.DataFrame, methods: Sequence[str], nfe: int) -> str:
    """The method with the least error, a geometric mean over networks."""
    return min(methods, key=lambda name: float(np.log(mean(found, name, nfe)).mean()))


def verdicts(found: pd.DataFrame) -> list[str]:
    """What came out of each aim, of the numbers of evaluations that have all rows."""
    whole = [nfe for nfe in NFE if all(len(mean(found, method, nfe)) for method in METHODS)]
    said = []
    for number, (one, others, _) in enumerate(AIMS, 1):
        parts, held = [], 0
        for nfe in whole:
            other = best(found, others, nfe)
            value, error = ratio(found, one, other, nfe)
            held += value <= error
            named = f", {other}" if len(others) > 1 else ""
            parts.append(f"{np.exp(value):.2f} (±{100 * error:.0f} %{named}) at {nfe}")
        word = "held" if held == len(NFE) else "failed"
        said.append(f"Aim {number} {word}, at {held} of {len(NFE)}: {' ; '.join(parts)}".replace(" ;", ";") + ".")
    return said


def against(found: pd.DataFrame) -> str:
    """What the geodesic is by the other solver, which is no aim."""
    said = []
    for one, other in ((GEODESIC, KARRAS), (TUNED[2], TUNED[1])):
        ratios = [f"{np.exp(ratio(found, f'{one}, {DPM}', f'{other}, {DPM}', nfe)[0]):.2f}" for nfe in NFE]
        said.append(f"{one} against {other} {', '.join(ratios)}")
    return f"No aim: by DPM-Solver++(2M) {' and '.join(said)}, so there anemoi's curves are better where above 1."


def edges(found: pd.DataFrame) -> str:
    """How many of the tuned curves of anemoi's by the better solver might be better still."""
    tuned = found[found["method"].isin([f"{name}, {DPM}" for name in TUNED[:2]])]
    count = int(tuned["choice"].str.contains("ρ 10|turn 1,").sum())
    return (f"By DPM-Solver++(2M), {count} of {len(tuned)} tuned curves of anemoi's lie at an edge of what was tried "
            "(ρ 10, or a turn at σ = 1): wider grids might gain more.")  # fmt: skip


def figure(found: pd.DataFrame) -> Figure:
    """On the left levels against steps, of one network; on the right errors against evaluations."""
    drawn = Figure(figsize=(10, 3.8), layout="constrained")
    left, right = drawn.subplots(1, 2)
    colours = dict(zip((KARRAS, PIECEWISE, GEODESIC, FEW, TUNED[1], TUNED[2]), COLOURS, strict=False))
    one = found[(found["network"] == found["network"].min()) & (found["nfe"] == max(NFE))].set_index("method")
    for method in METHODS:
        name, _, sampler = method.partition(", ")
        if name not in colours:
            continue
        options: dict[str, Any] = {"color": colours[name], "label": method, "markersize": 3}
        if sampler == HEUN:
            left.plot(one["levels"].get(method, []), "o-", **options)
        values = [float(np.exp(np.log(mean(found, method, nfe)).mean())) for nfe in NFE]
        right.plot(NFE, values, "o--" if sampler == DPM else "o-", **options)
    left.set(yscale="log", xlabel="step", ylabel="noise level σ", title=f"Heun's method, {max(NFE)} evaluations")
    right.set(xscale="log", yscale="log", xlabel="evaluations", ylabel="error to converged samples")
    right.set_xticks(NFE, [str(nfe) for nfe in NFE])
    right.minorticks_off()
    right.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    return drawn


def write(docs: Path) -> Path:
    """Write the page."""
    page, found = Page(docs, NAME, "Anemoi's curves of noise levels"), rows(docs)
    page.text(
        "Anemoi, the framework for forecasts by ECMWF and others, samples by Heun's method or DPM-Solver++(2M) along a "
        "curve of noise levels that its users choose. Its default is Karras's (σ from 100 to 0.02, ρ 7). A second one, "
        "[piecewise](https://github.com/ecmwf/anemoi-core/issues/1318), is "
        "[proposed](https://github.com/ecmwf/anemoi-core/pull/1239) for fewer steps at high noise: half of the steps, "
        "or as many as one says, go by equal factors down to σ = 10, the others by Karras's rule. Here is the geodesic "
        "beside both, and `few`.",
        "The data are made, not weather: two periodic fields of 16×16, a height of steep spectrum and a log-normal "
        "moisture, which a random wind moves and new fields refresh. Networks of convolutions (40,000 parameters) "
        "predict the next state given one, after a minute of training with the objective and the distribution of noise "
        "of anemoi-models 0.19; its own samplers draw. The study was tried on a network of its own.",
        "The error is the root mean square difference to converged samples from the same noise (Heun's method, "
        f"{CONVERGED} steps); data have deviation one. CRPS, the fair one, is of {MEMBERS} members against the true "
        "next state. The geodesic is the server's, of the network and 1,024 pairs, without an option; `few` without "
        "data gets the range of noise levels. A tuned curve has the least error on states of its own, for each "
        "sampler and number of evaluations: of 20 choices of σ_max and ρ, of up to 96 of σ_max, the level where the "
        "curve turns, the steps above it and ρ, or of the geodesic's 8 of σ_max and order.",
    )
    page.heading("Aims")
    page.text("Each is for 5, 9 and 17 evaluations: the mean over networks of the logarithm of the ratio of errors is "
              "at most one standard error.")  # fmt: skip
    page.items([f"Aim {number}: {one}, against {against}." for number, (one, _, against) in enumerate(AIMS, 1)])
    if len(found):
        page.heading("What came out")
        page.items([*verdicts(found), against(found)])
        page.figure(figure(found), "curves", "Left: noise levels at each step, of one network. Right: errors, "
                    "geometric means over networks; dashed by DPM-Solver++(2M).")  # fmt: skip
        columns = {"error": "error", "CRPS": "crps"}
        table = pd.DataFrame([
            {"curve and sampler": method, **{f"{word} at {nfe}": spread(mean(found, method, nfe, column), digits=3)
                                             for word, column in columns.items() for nfe in NFE}}
            for method in METHODS
        ])  # fmt: skip
        bounds = found[found["method"] == BOUNDS]
        simulators = pd.Series([value for values in bounds["simulator"] for value in values])
        for name, values in (("converged network", bounds["crps"]), ("simulator", simulators)):
            table.loc[len(table)] = [name, *[""] * len(NFE), spread(values, digits=3), *[""] * (len(NFE) - 1)]
        page.table(table)
        page.text(
            f"± is the standard deviation over {len(bounds)} networks; of the simulator over 20 ensembles for each of "
            "their states. Brackets above have the standard error. By Heun's method n steps take 2n − 1 evaluations.",
            edges(found),
        )
        page.numbers(found.drop(columns=["levels", "simulator"]), "rows")
    return page.write()
