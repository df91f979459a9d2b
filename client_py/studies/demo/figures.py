"""The report's pictures, each returned as a ``data:image/png;base64`` URI."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from anisoflight import figures
from anisoflight.images import grid

from .data import Images

_COLOURS = ("#777777", *figures.COLOURS[:5])  # the first is what the others are compared with


def _uri(figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110, bbox_inches="tight")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def _axes(**labels: str) -> Axes:
    with mpl.rc_context(figures.STYLE):
        return figures.axes(Figure(figsize=(6.4, 4)).add_subplot(), **labels)


def _drawn(axes: Axes) -> str:
    figure = axes.get_figure()
    assert isinstance(figure, Figure)
    return _uri(figure)


def picture_grid(panels: Mapping[str, Images], columns: int = 10, across: int = 2) -> str:
    """One mosaic per panel, ``across`` side by side; the same place in each panel is the same latent and label."""
    rows = -(-len(panels) // across)
    figure = Figure(figsize=(5.2 * across, 2.75 * rows))
    for i, (title, images) in enumerate(panels.items()):
        axes = figure.add_subplot(rows, across, i + 1)
        sheet = grid(images, columns)
        axes.imshow(
            sheet[..., 0] if sheet.shape[2] == 1 else sheet, cmap="gray", vmin=0, vmax=255, interpolation="nearest"
        )
        axes.set_title(title, fontsize=10)
        axes.axis("off")
    figure.tight_layout()
    return _uri(figure)


def schedule_curves(curves: Mapping[str, pd.DataFrame], title: str) -> str:
    """g(t) of one or several schedules: solid for the first subspace, dashed for others."""
    return _drawn(figures.variances(curves, _axes(title=title)))


def ratio_curve(table: pd.DataFrame) -> str:
    """g_1 / g_2 against the geometric-mean sigma, of a schedule of two subspaces."""
    return _drawn(figures.ratio(table, _axes(title="how far the two subspaces part"), over="sigma"))


def energy_curves(runs: Mapping[str, Sequence[float]], levels: Mapping[str, float]) -> str:
    """Energy of every training step (thin), its running mean over 20 steps (thick), and levels as lines."""
    axes = _axes(title="energy while the schedule is learned", xlabel="step", ylabel="E = T² · loss")
    for colour, (name, values) in zip(_COLOURS[1:], runs.items(), strict=False):
        series = pd.Series(np.asarray(values, float))
        axes.plot(series, color=colour, alpha=0.2, lw=0.8)
        axes.plot(series.rolling(20, min_periods=5).mean(), color=colour, lw=1.8, label=name)
    for style, (name, level) in zip(["-", "--", ":", "-."], levels.items(), strict=False):
        axes.axhline(level, color="black", ls=style, lw=0.9, label=f"{name} {level:.1f}")
    everything = np.concatenate([np.asarray(v, float) for v in runs.values()])
    axes.set_ylim(0.8 * min(levels.values()), np.nanpercentile(everything, 98))
    axes.legend(frameon=False, fontsize=9)
    return _drawn(axes)


def error_curves(table: pd.DataFrame) -> str:
    """ODE error against NFE, one line per sampler: columns sampler, nfe, ode_error."""
    axes = _axes(title="distance to the converged sample", xlabel="NFE", ylabel="ODE error × 100", yscale="log")
    samplers = list(table.groupby("sampler", sort=False))
    colours = _COLOURS if len(samplers) <= len(_COLOURS) else mpl.colormaps["turbo"](np.linspace(0, 1, len(samplers)))
    for colour, (name, part) in zip(colours, samplers, strict=False):
        axes.plot(part["nfe"], part["ode_error"], "o-", color=colour, label=str(name))
    axes.set_xticks(sorted(table["nfe"].unique()))
    axes.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1, 1))
    return _drawn(axes)
