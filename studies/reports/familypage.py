"""The page of the family report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from anisoflight.fid.table import half_range
from studies.demo import report

from . import search
from .workbench import FD, FD_TRAIN

if TYPE_CHECKING:
    from .page import Page

MEASURED = """\
`make report-families` writes this page; [README.md](README.md) reads it. There is one network for each data set. It was
trained on anisotropic noise (DCT, J = 2), receives the ratio of the two noise levels, and is frozen. Every family
learns its schedule on it from the isotropic geodesic, in 200 steps of 64, by `backprop`. c is 1 and T = 20² for digits;
c is 16 and T = 80² for patches. P_1 has 16 dimensions per channel, 4 on patches8."""
DEFINED = """\
Energy is E = T² · trajectory loss, on the same images, noise and times for all schedules. The gain over the learned
isotropic schedule is paired, ± one standard error. FD is the Fréchet distance to held-out images, of digits by the
hidden units of a small classifier, of patches by 40 principal components, with AB3 on grid `schedule`. All rows have
the same latents and labels. ± is half the range over seeds."""

NODES = """\
The exact bench, without a network: W2² × 10⁴ of a sampler to the normal law of the data, over its variance. The solver
has its own nodes, for each of the bands in the head of the column."""
SEARCHED = """\
The search, without a network. Schedules are learned on the exact score of a mixture, one normal law for each class, and
judged by the exact bench. The best settings, by the geometric mean of the quotients W2² isotropic / anisotropic of
schedules that were learned alike:"""


def pm(values: pd.Series) -> str:
    """Mean ± half the range over seeds."""
    return report.pm(values.tolist(), 3)


@dataclass(frozen=True)
class Measured:
    """All that was measured on one problem."""

    energies: pd.DataFrame
    distances: pd.DataFrame
    nodes: pd.DataFrame
    search: pd.DataFrame
    setting: search.Setting | None
    confirmed: pd.DataFrame


def energy_table(energies: pd.DataFrame) -> pd.DataFrame:
    """Energies and gains as the page prints them."""
    rows = [
        (row.schedule, f"{row.energy:.2f} ± {row.stderr:.2f}", f"{row.gain:+.2f} ± {row.gain_stderr:.2f} %")
        for row in energies.itertuples()
    ]
    return pd.DataFrame(rows, columns=pd.Index(["schedule", "E", "gain over isotropic"]))


def distance_table(distances: pd.DataFrame) -> pd.DataFrame:
    """FD by schedule and NFE, each followed by the difference to the isotropic schedule, paired by seed."""
    rows = []
    for name in distances["schedule"].unique():
        row = {"schedule": name}
        for nfe in sorted(distances["nfe"].unique()):
            here = distances[distances["nfe"] == nfe].pivot(index="seed", columns="schedule", values=FD)
            both = name in here and "isotropic" in here and name != "isotropic"
            row[f"FD, NFE {nfe}"] = pm(here[name]) if name in here else "–"
            row[f"less isotropic, NFE {nfe}"] = pm(here[name] - here["isotropic"]) if both else ""
        rows.append(row)
    return pd.DataFrame(rows)


def search_table(table: pd.DataFrame) -> pd.DataFrame:
    """The gains on the bench by setting, in order: geometric mean over solvers and NFE, and each."""
    rows: list[tuple[float, dict[str, str]]] = []
    for _, part in table.groupby(["basis", "T", "c", "kimg"], sort=False):
        first = part.iloc[0]
        row = {"basis": str(first["basis"])} | {key: f"{first[key]:g}" for key in ("T", "c", "kimg")}
        mean = float(np.exp(np.log(part["gain"]).mean()))
        row["W2² isotropic / anisotropic"] = f"{mean:.2f}"
        row |= {f"{cell.solver}, NFE {cell.nfe}": f"{cell.gain:.2f}" for cell in part.itertuples()}
        rows.append((mean, row))
    return pd.DataFrame([row for _, row in sorted(rows, key=lambda pair: -pair[0])[:8]])


def nodes_table(nodes: pd.DataFrame) -> pd.DataFrame:
    """W2² × 10⁴ of solver-aware nodes, a row per solver, NFE and T, a column per basis."""
    wide = nodes.pivot(index=["solver", "nfe", "T"], columns="basis", values="w2_squared")[nodes["basis"].unique()]
    wide = (1e4 * wide).map("{:.3g}".format).reset_index()
    return wide.assign(T=wide["T"].map("{:g}".format))


def confirmed_sentence(setting: search.Setting, table: pd.DataFrame) -> str:
    """What the network says of the setting that the bench chose."""
    words = []
    twin = f"twin of {setting.name}"
    for nfe in sorted(table["nfe"].unique()):
        wide = table[table["nfe"] == nfe].pivot(index="seed", columns="schedule", values=FD)
        difference = wide[setting.name] - wide[twin]
        away = abs(difference.mean()) > half_range(difference.tolist())
        verdict = ("lower" if difference.mean() < 0 else "higher") if away else "no different beyond the spread"
        words.append(
            f"NFE {nfe}: isotropic {pm(wide[twin])}, anisotropic {pm(wide[setting.name])}, difference "
            f"{pm(difference)}: {verdict}"
        )
    return (
        f"The bench chooses {setting.name}. With the network, FD of {table['samples'].iloc[0]} samples × "
        f"{table['seed'].nunique()} fresh seeds: {'; '.join(words)}."
    )


def figure(distances: pd.DataFrame) -> Figure:
    """FD to the training images against NFE, a line per family."""
    drawn = Figure(figsize=(6, 3.6))
    axes = drawn.add_subplot()
    nfes = sorted(distances["nfe"].unique())
    for name in distances["schedule"].unique():
        mean = distances[distances["schedule"] == name].groupby("nfe")[FD_TRAIN].mean()
        style = "o-" if name in ("EDM's grid", "isotropic", "isotropic per class") else "o--"
        axes.plot(mean.index, mean, style, ms=4, label=name)
    axes.set(xlabel="NFE", ylabel="FD to train", xscale="log", yscale="log", xticks=nfes)
    axes.set_xticklabels([str(nfe) for nfe in nfes])
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    return drawn


def write(page: Page, name: str, measured: Measured) -> None:
    """The section of a problem."""
    page.heading(name)
    if not any(len(table) for table in (measured.energies, measured.distances, measured.nodes, measured.search)):
        page.text("Not measured yet.")
    if len(measured.energies):
        page.table(energy_table(measured.energies))
        page.numbers(measured.energies, f"{name}-energies")
    if len(measured.distances):
        count, seeds = measured.distances["samples"].iloc[0], measured.distances["seed"].nunique()
        page.text(f"Fréchet distance, {count} samples × {seeds} seeds:")
        page.table(distance_table(measured.distances))
        page.numbers(measured.distances, f"{name}-distances")
        caption = f"FD to the training images of {name}; dashed families are anisotropic."
        page.figure(figure(measured.distances), name, caption)
    if len(measured.nodes):
        page.text(NODES)
        page.table(nodes_table(measured.nodes))
        page.numbers(measured.nodes, f"{name}-nodes")
    if len(measured.search):
        page.text(SEARCHED)
        page.table(search_table(measured.search))
        page.numbers(measured.search, f"{name}-search")
    if measured.setting is not None and len(measured.confirmed):
        page.text(confirmed_sentence(measured.setting, measured.confirmed))
        page.numbers(measured.confirmed, f"{name}-confirmed")
