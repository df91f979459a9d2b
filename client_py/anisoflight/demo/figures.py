"""The report's pictures, each returned as a ``data:image/png;base64`` URI."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .data import Images

_COLOURS = ["#888888", "#1f5fbf", "#d1495b", "#2e8b57", "#e0a030", "#7b4fa3"]


def _uri(figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110, bbox_inches="tight")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def _axes(title: str, xlabel: str, ylabel: str, **scales: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(6.4, 4))
    axes = figure.add_subplot()
    axes.set(title=title, xlabel=xlabel, ylabel=ylabel, **scales)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    return figure, axes


def mosaic(images: Images, columns: int) -> np.ndarray:
    """Images [N, H, W, C] in [-1, 1] as one picture with a white pixel between them; C is 1 or 3."""
    n, h, w, c = images.shape
    rows = -(-n // columns)
    sheet = np.ones((rows * (h + 1) + 1, columns * (w + 1) + 1, c))
    for i, image in enumerate(np.clip((images + 1) / 2, 0, 1)):
        y, x = divmod(i, columns)
        sheet[1 + y * (h + 1) : 1 + y * (h + 1) + h, 1 + x * (w + 1) : 1 + x * (w + 1) + w] = image
    return sheet


def picture_grid(panels: Mapping[str, Images], columns: int = 10, across: int = 2) -> str:
    """One mosaic per panel, ``across`` side by side; the same place in each panel is the same latent and label."""
    rows = -(-len(panels) // across)
    figure = Figure(figsize=(5.2 * across, 2.75 * rows))
    for i, (title, images) in enumerate(panels.items()):
        axes = figure.add_subplot(rows, across, i + 1)
        sheet = mosaic(images, columns)
        if sheet.shape[2] == 1:
            axes.imshow(sheet[..., 0], cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        else:
            axes.imshow(sheet, interpolation="nearest")
        axes.set_title(title, fontsize=10)
        axes.axis("off")
    figure.tight_layout()
    return _uri(figure)


def schedule_curves(curves: Mapping[str, pd.DataFrame], title: str) -> str:
    """g(t) of one or several schedules: columns t, g, subspace; solid for the first subspace, dashed for others."""
    figure, axes = _axes(title, "t / T", "g(t)  (variance)", yscale="log")
    for colour, (name, table) in zip(_COLOURS, curves.items(), strict=False):
        subspaces = sorted(table["subspace"].unique())
        for j in subspaces:
            part = table[table["subspace"] == j]
            label = name if len(subspaces) == 1 else f"{name}, g_{j + 1}"
            axes.plot(part["t"] / part["t"].max(), part["g"], color=colour, ls="-" if j == 0 else "--", label=label)
    axes.set_ylim(1e-6, None)
    axes.legend(frameon=False, fontsize=9)
    return _uri(figure)


def ratio_curve(table: pd.DataFrame) -> str:
    """g_1 / g_2 against the geometric-mean sigma: columns t, g, subspace of a schedule of two subspaces."""
    g1 = table[table["subspace"] == 0]["g"].to_numpy()
    g2 = table[table["subspace"] == 1]["g"].to_numpy()
    figure, axes = _axes("how far the two subspaces part", "σ = (g₁g₂)^¼", "g₁ / g₂", xscale="log")
    sigma = (g1 * g2) ** 0.25
    keep = sigma > 1e-3
    axes.plot(sigma[keep], (g1 / g2)[keep], color=_COLOURS[1])
    axes.axhline(1, color="#888888", lw=0.8)
    return _uri(figure)


def energy_curves(runs: Mapping[str, Sequence[float]], levels: Mapping[str, float]) -> str:
    """Energy of every training step (thin), its running mean over 20 steps (thick), and levels as lines."""
    figure, axes = _axes("energy while the schedule is learned", "step", "E = T² · loss")
    for colour, (name, values) in zip(_COLOURS[1:], runs.items(), strict=False):
        series = pd.Series(np.asarray(values, float))
        axes.plot(series, color=colour, alpha=0.2, lw=0.8)
        axes.plot(series.rolling(20, min_periods=5).mean(), color=colour, lw=1.8, label=name)
    for style, (name, level) in zip(["-", "--", ":", "-."], levels.items(), strict=False):
        axes.axhline(level, color="black", ls=style, lw=0.9, label=f"{name} {level:.1f}")
    everything = np.concatenate([np.asarray(v, float) for v in runs.values()])
    axes.set_ylim(0.8 * min(levels.values()), np.nanpercentile(everything, 98))
    axes.legend(frameon=False, fontsize=9)
    return _uri(figure)


def error_curves(table: pd.DataFrame) -> str:
    """ODE error against NFE, one line per sampler: columns sampler, nfe, ode_error."""
    figure, axes = _axes("distance to the converged sample", "NFE", "ODE error × 100", yscale="log")
    for i, (name, part) in enumerate(table.groupby("sampler", sort=False)):
        axes.plot(part["nfe"], part["ode_error"], "o-", color=_COLOURS[i % len(_COLOURS)], label=str(name))
    axes.set_xticks(sorted(table["nfe"].unique()))
    axes.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1, 1))
    return _uri(figure)
