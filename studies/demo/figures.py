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
from anisoflight.images import grid, png

from .data import Images

_COLOURS = ("#777777", *figures.COLOURS[:5])  # the first is what the others are compared with

_SIZE = (4.6, 3.2)
"""In inches: a plot as wide as a telephone can still be read."""


def _uri(figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=160, bbox_inches="tight")
    return _encoded(buffer.getvalue())


def _encoded(file: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(file).decode()


def _axes(**labels: str) -> Axes:
    with mpl.rc_context(figures.STYLE):
        return figures.axes(Figure(figsize=_SIZE).add_subplot(), **labels)


def _drawn(axes: Axes) -> str:
    figure = axes.get_figure()
    assert isinstance(figure, Figure)
    return _uri(figure)


def mosaics(panels: Mapping[str, Images], columns: int = 10) -> dict[str, str]:
    """One mosaic per panel; the same place in each panel is the same latent and label."""
    return {title: _encoded(png(grid(images, columns))) for title, images in panels.items()}


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
    figure = axes.get_figure()
    assert isinstance(figure, Figure)
    figure.set_size_inches(_SIZE[0], _SIZE[1] + 0.1 * len(samplers))
    figure.legend(frameon=False, fontsize=8, loc="outside lower center", ncols=2, handlelength=1.5, columnspacing=1)
    return _drawn(axes)
