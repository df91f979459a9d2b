"""What a network's loss is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot

from .style import COLOURS, LINES, STYLE, axes, legend

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    import pandas as pd
    from matplotlib.figure import Figure


def loss_by_level(frame: pd.DataFrame, names: Sequence[str] | None = None, dims: npt.ArrayLike | None = None) -> Figure:
    """Where the trajectory loss is made: from `Client.evaluate_model`, by noise level, a colour per subspace.

    Left, the residual E|P_j(flow + ε)|² over σ_j with its standard error as a band: 1 per dimension for a network that
    knows nothing, given the dimensions `dims` of each subspace, all channels together; without them, the sum. Right,
    T² times the loss ω_j E|P_j(flow + ε)|² over time: its mean is the energy that a schedule makes small.
    """
    with mpl.rc_context({**STYLE, "figure.figsize": (9.4, 3.7)}):
        figure, (left, right) = pyplot.subplots(1, 2)
    axes(left, xlabel="noise level  $σ_j$", ylabel="residual" + ("" if dims is None else " per dimension"))
    left.set(xscale="log", yscale="log")
    axes(right, xlabel="time  t / T", ylabel="energy density  $T^2$ · loss(t)", yscale="log")
    end = float(frame["t"].max() + frame["t"].min())  # rows are the middles of equal parts of [0, T]
    for key, part in frame.groupby(["label", "subspace"]):
        label, j = cast("tuple[int, int]", key)
        scale = 1.0 if dims is None else 1.0 / np.asarray(dims)[j]
        style: dict[str, Any] = {"color": COLOURS[j % len(COLOURS)], "ls": LINES[max(label, 0) % len(LINES)]}
        text = (
            f"$P_{j + 1}$" if label < 0 else f"$P_{j + 1}$, {names[label] if names is not None else f'class {label}'}"
        )
        residual, stderr = scale * part["residual"], scale * part["stderr"]
        left.plot(part["sigma"], residual, label=text, **style)
        left.fill_between(
            part["sigma"],
            (residual - stderr).clip(lower=1e-3 * residual),
            residual + stderr,
            alpha=0.2,
            color=style["color"],
            lw=0,
        )
        right.plot(part["t"] / end, part["loss"] * end**2, label=text, **style)
    legend(left)
    return figure
