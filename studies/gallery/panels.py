"""Figures of the gallery that compare classes and subspaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot

from anisoflight.figures import (
    COLOURS,
    LINES,
    REFERENCE,
    STYLE,
    TIME,
    around_one,
    axes,
    class_name,
    draw_pattern,
    image_panels,
    legend,
    lines_of,
    rows_of,
    shade,
)
from anisoflight.subspaces import dct_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from anisoflight.figures import Curves

Array = np.ndarray[Any, Any]


def geometric_mean(
    schedules: Curves | Mapping[str, Curves], ax: Axes | None = None, names: Sequence[str] | None = None
) -> Axes:
    """The geometric mean of the subspaces, √(g_1 g_2) for two, and the log-linear path between the same ends."""
    ax = axes(ax, xlabel=TIME, yscale="log")
    lines = lines_of(schedules, names)
    for i, line in enumerate(lines):
        mean = np.exp(np.log(line.paths).mean(axis=0))
        name = "_" if line.name is None else line.name or "schedule"
        width = 1.7 + 2.4 * (1 - (i + 1) / len(lines))  # what lies under a later curve still shows
        ax.plot(line.t, mean, color=line.colour, lw=width, label=name)
    first = lines[0].paths
    ax.set_ylabel("$\\sqrt{g_1 g_2}$" if len(first) == 2 else "geometric mean  $(\\prod_j g_j)^{1/J}$")
    ends = np.exp(np.log(first[:, [0, -1]]).mean(axis=0))
    ax.plot([0, 1], ends, "--", color=REFERENCE, lw=1.1, label="log-linear", zorder=1)
    legend(ax)
    return ax


def class_ratios(
    schedule: Curves, ax: Axes | None = None, names: Sequence[str] | None = None, *, mean: bool = False
) -> Axes:
    """How the schedules of classes differ: g_{j,y}(t) over the geometric mean over the classes y, on a logarithmic axis
    with a line at 1; solid for P_1, dashed for P_2.

    With `mean`, the geometric mean of each class's subspaces instead, over that of all classes.
    """
    rows = rows_of(schedule)
    if rows[0][0] < 0:
        raise ValueError("this schedule is shared by all classes")
    subspaces = len(rows[0][1])
    root = "$\\sqrt{g_{1,y}\\, g_{2,y}}$" if subspaces == 2 else "$(\\prod_j g_{j,y})^{1/J}$"
    what = "$g_y$" if subspaces == 1 else root if mean else "$g_{j,y}$"
    ax = axes(ax, xlabel=TIME, ylabel=f"{what} over the classes' mean", yscale="log")
    logs = np.log([paths for _, paths, _ in rows])  # [class, subspace, time]
    if mean:
        logs = logs.mean(axis=1, keepdims=True)
    relative = np.exp(logs - logs.mean(axis=0))
    for n, ((label, _, t), paths) in enumerate(zip(rows, relative, strict=True)):
        for j, curve in enumerate(paths):
            text = class_name(label, names) if j == 0 else "_"
            ax.plot(t, curve, LINES[j % len(LINES)], color=shade(n, len(rows)), lw=1.3, label=text)
    around_one(ax)
    legend(ax, outside=True)
    return ax


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


def dct_functions(size: int = 16, count: int = 9) -> Figure:
    """The first `count` two-dimensional DCT functions Φ_{u,v} on size × size pixels, by frequency u² + v²."""
    rows = dct_rows(size)
    order = sorted(((u, v) for u in range(size) for v in range(size)), key=lambda f: (f[0] ** 2 + f[1] ** 2, f))[:count]
    figure, panels = image_panels(1, len(order))
    for ax, (u, v) in zip(panels[0], order, strict=True):
        draw_pattern(ax, np.outer(rows[u], rows[v]))
        ax.set_title(f"$\\Phi_{{{u},{v}}}$", fontsize=11)
    return figure


def subspace_distances(vectors: Mapping[int, npt.ArrayLike]) -> Array:
    """Distances of subspaces, in the order of their labels,

        d(Q_1, Q_2) = ‖Q_1 Q_1ᵀ − Q_2 Q_2ᵀ‖_F / √(2k),

    of orthonormal columns Q: 0 for equal subspaces, 1 for orthogonal ones. vectors are [k, H, W] by label.

    >>> axes = np.eye(4).reshape(4, 2, 2)
    >>> subspace_distances({0: axes[:2], 1: axes[:2][::-1], 2: axes[2:]}).round(6).tolist()
    [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0]]
    """
    rows = [np.asarray(vectors[label], np.float64) for label in sorted(vectors)]
    flat = [v.reshape(len(v), -1) for v in rows]
    k = len(flat[0])
    # ‖P − Q‖² = 2k − 2‖UVᵀ‖² of projectors of rank k
    square = [[max(0.0, 2 * k - 2 * float(((a @ b.T) ** 2).sum())) for b in flat] for a in flat]
    distances = np.sqrt(np.asarray(square) / (2 * k))
    np.fill_diagonal(distances, 0)
    return distances


def classical_mds(distances: npt.ArrayLike, dims: int = 2) -> tuple[Array, float]:
    """Points [n, dims] whose Euclidean distances are closest to `distances` [n, n] (Torgerson 1952), and the share of
    the squared distances that they show.

    They are the leading eigenvectors of −½ C D² C, C = I − 11ᵀ/n, times the roots of their eigenvalues.
    """
    d = np.asarray(distances, np.float64)
    centre = np.eye(len(d)) - 1 / len(d)
    values, directions = np.linalg.eigh(-0.5 * centre @ d**2 @ centre)
    lead = np.argsort(values)[::-1][:dims]
    positive = np.clip(values, 0, None)
    points = directions[:, lead] * np.sqrt(positive[lead])
    points *= np.sign(
        points[np.abs(points).argmax(axis=0), range(points.shape[1])]
    )  # of both signs, the same each time
    return points, float(positive[lead].sum() / max(positive.sum(), np.finfo(float).tiny))


def subspace_map(
    vectors: Mapping[int, npt.ArrayLike], ax: Axes | None = None, names: Sequence[str] | None = None
) -> Axes:
    """The subspaces of classes as points in the plane, as far apart as `classical_mds` can lay out their distances."""
    points, share = classical_mds(subspace_distances(vectors))
    ax = axes(ax, xlabel="first coordinate", ylabel="second coordinate", aspect="equal")
    ax.scatter(points[:, 0], points[:, 1], s=42, color=COLOURS[0], zorder=3)
    for label, point in zip(sorted(vectors), points, strict=True):
        ax.annotate(class_name(label, names), point, xytext=(6, 5), textcoords="offset points", fontsize=10)
    ax.margins(0.18)
    ax.set_title(f"two coordinates show {100 * share:.0f} % of the squared distances", fontsize=10)
    return ax
