"""What all figures have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from cycler import cycler
from matplotlib import pyplot
from matplotlib.colors import LinearSegmentedColormap

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette (2008), which readers with any colour vision can tell apart."""

_CLASSES = (*COLOURS, "#882255", "#999933", "#332288")  # and three of Tol's muted ones (2021), which go with them

REFERENCE = "#777777"
"""The colour of lines to compare with."""

DIVERGING = LinearSegmentedColormap.from_list("blue-orange", ["#003f69", "#0072B2", "#ffffff", "#D55E00", "#742f00"])
"""Signed patterns: blue below zero, white at zero, orange above."""

LINES = ("-", "--", ":", "-.")
"""Subspaces, in their order."""

STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.labelsize": 10,
    "axes.linewidth": 0.8,
    "axes.prop_cycle": cycler(color=COLOURS),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 11,
    "figure.dpi": 110,
    "figure.figsize": (6.0, 3.8),
    "figure.constrained_layout.use": True,
    "font.size": 10,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "lines.linewidth": 1.7,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
}
"""The style sheet, for `matplotlib.rc_context`."""


def shade(i: int, count: int) -> Any:
    """The colour of class i of count: up to ten of a palette, more of them along viridis."""
    return _CLASSES[i] if count <= len(_CLASSES) else mpl.colormaps["viridis"](0.94 * i / (count - 1))


def axes(ax: Axes | None = None, **labels: Any) -> Axes:
    """ax, or new axes in this package's style, with labels, scales and title as `Axes.set` takes them."""
    if ax is None:
        with mpl.rc_context(STYLE):
            _, ax = pyplot.subplots()
    ax.set(**labels)
    return ax


def legend(ax: Axes, beside: bool = False) -> None:
    """A legend where there is anything to tell apart; beside the axes if it is long or `beside`."""
    handles, names = ax.get_legend_handles_labels()
    place: dict[str, Any] = {}
    if beside or len(handles) > 5:
        place = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0}
    if handles:
        ax.legend(handles, names, frameon=False, fontsize=9, **place)
