"""The page of the solver report: tables, one figure per problem, and what they say in numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from anisoflight.compare.bench import half_range

from .workbench import FD, FD_TRAIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .page import Page

MEASURED = """`make report-solvers` writes this page; [README.md](README.md) says what it means. One network per data
set serves every row: EDM's SongUNet with 16 channels, trained for 1200 steps of 128 on anisotropic noise (DCT, J = 2)
and told the ratio of the two noise levels. A row is a solver on a grid of a schedule. The schedules: EDM's grid as a
path, up to T = 20² for digits and 80² for patches; the geodesic in one pass over the data; learned with the network
frozen, 200 steps of 64, isotropic and with two DCT bands; and the nodes that suit the solver on the data's own
Gaussian, `refined` those moved on to where the solver errs less on the network (64 latents)."""
DEFINED = """ODE error: 100 × the rms distance per pixel to the converged solution of the same path (60 steps of Heun's
method) from the same 256 latents. An anisotropic path is a map of its own: its errors and those of isotropic paths
cannot be compared. FD: Fréchet distance to held-out images, of digits on a small classifier's hidden units, of patches
on 40 principal components; “to train”: to the training images. All samplers draw the same latents and labels; paired
differences are taken seed by seed, and ± is half the range over the seeds."""

FEW_NFES = (5, 9)
HEUN, IPNDM = "Heun, edm, EDM", "iPNDM-4, polynomial, EDM"


def pm(values: Sequence[float] | pd.Series) -> str:
    """Mean ± half the range over seeds."""
    return f"{np.mean(values):.3f} ± {half_range(list(values)):.3f}"


def error_table(errors: pd.DataFrame, nfe: int) -> pd.DataFrame:
    """ODE errors at one NFE: a row per grid and schedule, a column per solver.

    Bold are the least of the isotropic and of the anisotropic paths.
    """
    part = errors[errors["nfe"] == nfe]
    wide = part.pivot(index=["schedule", "grid"], columns="solver", values="ode_error")[errors["solver"].unique()]
    order = part.drop_duplicates(["schedule", "grid"])[["schedule", "grid"]].itertuples(index=False, name=None)
    split = ["J = 2" in str(schedule) for schedule, _ in wide.index]
    least = {kind: np.nanmin(wide[np.array(split) == kind].to_numpy()) for kind in set(split)}
    rows = []
    for schedule, grid in order:
        cells = [_bold(value, least["J = 2" in schedule]) for value in wide.loc[(schedule, grid)]]
        rows.append([schedule, grid, *cells])
    return pd.DataFrame(rows, columns=pd.Index(["schedule", "grid", *wide.columns]))


def _bold(value: float, least: float) -> str:
    text = "–" if np.isnan(value) else f"{value:.3g}"
    return f"**{text}**" if value == least else text


def distance_table(distances: pd.DataFrame) -> pd.DataFrame:
    """Fréchet distances: a row per sampler, a column per NFE and reference; in order of the first column."""
    first = distances["nfe"].min()
    grouped = distances.groupby("sampler")
    mean = {str(name): part[part["nfe"] == first][FD].mean() for name, part in grouped}
    rows = []
    for name in sorted(mean, key=lambda name: mean[name]):
        part = grouped.get_group(name)
        row = {"sampler": name}
        for nfe in sorted(distances["nfe"].unique()):
            here = part[part["nfe"] == nfe]
            row |= {f"FD, NFE {nfe}": pm(here[FD]), f"to train, NFE {nfe}": pm(here[FD_TRAIN])}
        rows.append(row)
    return pd.DataFrame(rows)


def paired(distances: pd.DataFrame, nfe: int, ours: str, other: str) -> pd.Series:
    """FD of ours less FD of other, seed by seed: the same latents and labels in both."""
    part = distances[distances["nfe"] == nfe].drop_duplicates(["sampler", "seed"])
    wide = part.pivot(index="seed", columns="sampler", values=FD)
    return cast("pd.Series", wide[ours] - wide[other])


def best_sentence(distances: pd.DataFrame) -> str:
    """The sampler of least FD at each NFE, with its margins over EDM's Heun and over iPNDM-4."""
    sentences = []
    for nfe in sorted(distances["nfe"].unique()):
        part = distances[distances["nfe"] == nfe]
        mean = part.groupby("sampler")[FD].mean()
        name = str(mean.idxmin())
        margins = []
        for label, rival in (("EDM's Heun", HEUN), ("iPNDM-4", IPNDM)):
            if rival in mean:
                difference = pm(paired(distances, nfe, rival, name))
                margins.append(f"{label} {mean[rival] / mean.min():.2f} times that (paired difference {difference})")
        sentences.append(f"NFE {nfe}: **{name}**, FD {mean.min():.3f}; {', '.join(margins)}.")
    return "The least distance of those looked at. " + " ".join(sentences)


def goal_table(goal: pd.DataFrame) -> pd.DataFrame:
    """The contest: each role's FD, and the anisotropic nodes' difference to it, paired by seed."""
    rows = []
    for nfe in sorted(goal["nfe"].unique()):
        part = goal[goal["nfe"] == nfe]
        names = _roles(part)
        for role, name in names.items():
            here = part[part["role"] == role]
            both = role != "nodes" and "nodes" in names
            difference = pm(paired(goal, nfe, names["nodes"], name)) if both else ""
            rows.append((nfe, role, name, pm(here[FD]), pm(here[FD_TRAIN]), difference))
    columns = ["NFE", "role", "sampler", "FD", "FD to train", "nodes less this, paired"]
    return pd.DataFrame(rows, columns=pd.Index(columns))


def goal_sentence(goal: pd.DataFrame) -> str:
    """Whether the anisotropic nodes are below their rivals by more than the spread over seeds."""
    verdicts = []
    for nfe in sorted(goal["nfe"].unique()):
        names = _roles(goal[goal["nfe"] == nfe])
        words = []
        for role in [role for role in ("isotropic", "iPNDM-4") if role in names and "nodes" in names]:
            difference = paired(goal, nfe, names["nodes"], names[role])
            won = difference.mean() < -half_range(difference.tolist())
            words.append(f"{'below' if won else 'not below'} the {role} one")
        if words:
            verdicts.append(f"at NFE {nfe} the anisotropic nodes are {' and '.join(words)}")
    return "By more than the spread of the paired differences, " + "; ".join(verdicts) + "."


def _roles(part: pd.DataFrame) -> dict[str, str]:
    """The samplers of a contest at one NFE by their roles."""
    return {str(role): str(here["sampler"].iloc[0]) for role, here in part.groupby("role", sort=False)}


def figure(errors: pd.DataFrame, names: Sequence[tuple[str, str, str]]) -> Figure:
    """ODE error against NFE of some samplers, (solver, grid, schedule) each; dashed where J = 2."""
    drawn = Figure(figsize=(7, 4))
    axes = drawn.add_subplot()
    for solver, grid, schedule in names:
        part = errors[(errors["solver"] == solver) & (errors["grid"] == grid) & (errors["schedule"] == schedule)]
        style = "o--" if "J = 2" in schedule else "o-"
        axes.plot(part["nfe"], part["ode_error"], style, ms=4, label=f"{solver}, {grid}, {schedule}")
    axes.set(xlabel="NFE", ylabel="ODE error × 100", yscale="log", xticks=sorted(errors["nfe"].unique()))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    return drawn


def limit_sentence(limits: pd.DataFrame) -> str:
    """What is left where the solvers have all but converged."""
    parts = [f"{name} {pm(part[FD])}" for name, part in limits.groupby("sampler", sort=False)]
    return f"At NFE {limits['nfe'].iloc[0]}, where what remains is the network's own: {'; '.join(parts)}."


def write(
    page: Page,
    name: str,
    errors: pd.DataFrame,
    distances: pd.DataFrame,
    limits: pd.DataFrame,
    goal: pd.DataFrame,
) -> None:
    """A problem's section."""
    page.heading(name)
    if not any(len(table) for table in (errors, distances, goal)):
        page.text("Not measured yet.")
    for nfe in [nfe for nfe in FEW_NFES if nfe in set(errors["nfe"])]:
        page.text(f"ODE error × 100 at NFE {nfe} (bold: the least, of isotropic and of anisotropic paths):")
        page.table(error_table(errors, nfe))
    if len(errors):
        page.numbers(errors, f"{name}-errors")
        shown = [("Heun", "edm", "EDM"), ("iPNDM-4", "polynomial", "EDM"), ("2M", "polynomial", "EDM")]
        shown += [("AB3", "schedule", schedule) for schedule in ("learned", "learned J = 2")]
        shown += [("2M", "nodes", schedule) for schedule in ("Gaussian J = 1", "Gaussian J = 2")]
        caption = f"ODE error on {name}; dashed paths are anisotropic, maps of their own."
        page.figure(figure(errors, shown), name, caption)
    if len(distances):
        count, seeds = distances["samples"].iloc[0], distances["seed"].nunique()
        page.text(f"Fréchet distance, {count} samples × {seeds} seeds, mean ± half the range:")
        page.table(distance_table(distances))
        page.numbers(distances, f"{name}-distances")
        page.text(best_sentence(distances))
    if len(limits):
        page.text(limit_sentence(limits))
    if len(goal):
        count = goal["samples"].iloc[0]
        page.text(f"Those that did best at each NFE, {count} samples × {goal['seed'].nunique()} fresh seeds:")
        page.table(goal_table(goal))
        page.numbers(goal, f"{name}-contest")
        page.text(goal_sentence(goal))
