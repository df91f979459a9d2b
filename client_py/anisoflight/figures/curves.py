"""Schedules as curves over time: variances, their ratios, and how classes differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

import numpy as np
import pandas as pd

from .style import COLOURS, LINES, REFERENCE, axes, legend, shade

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TIME = "time  t / T"
POINTS = 513
_COARSE = (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20)
_FINE = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.25, 1.5, 2, 3)
_TIGHT = 1.02  # a ratio's axis shows at least this much either side of 1


class Curve(Protocol):
    """A schedule, as far as it is drawn."""

    def evaluate(self, points: int = ...) -> pd.DataFrame:
        """The columns t, g and, where needed, label and subspace."""
        ...


Curves: TypeAlias = Curve | pd.DataFrame


def variances(
    schedules: Curves | Mapping[str, Curves], ax: Axes | None = None, names: Sequence[str] | None = None
) -> Axes:
    """Noise variances g_j(t) of one schedule or of several by name, on a logarithmic axis.

    A colour per schedule, and a line style per subspace: solid for P_1, dashed for P_2. Of a per-class schedule alone,
    a colour per class, called by its number or by `names`.
    """
    ax = axes(ax, xlabel=TIME, ylabel="noise variance  g(t)", yscale="log")
    for line in _lines(schedules, names):
        for j, g in enumerate(line.paths):
            subspace = f"$g_{j + 1}$" if len(line.paths) > 1 and not line.of_class else ""
            name = ", ".join(part for part in (line.name, subspace) if part) or "$g$"
            hidden = line.name is None or (line.of_class and j > 0)
            ax.plot(line.t, g, LINES[j % len(LINES)], color=line.colour, label="_" if hidden else name)
    ax.set_ylim(bottom=max(ax.get_ylim()[0], 1e-6))  # the decades that matter: EDM's smallest variance is 4e-6
    legend(ax)
    return ax


def ratio(
    schedules: Curves | Mapping[str, Curves],
    ax: Axes | None = None,
    names: Sequence[str] | None = None,
    *,
    over: str = "t",
) -> Axes:
    """The anisotropy g_1(t) / g_2(t), or g_{1,y} / g_{2,y} per class, on a logarithmic axis with a line at 1.

    Above it the noise is larger in P_1, the low frequencies or leading components. `over` is "t", or "sigma" for the
    geometric mean noise level (g_1 g_2)^{1/4} on a logarithmic axis.
    """
    if over not in ("t", "sigma"):
        raise ValueError(f"over must be 't' or 'sigma', got {over!r}")
    ax = axes(ax, xlabel=TIME, ylabel="anisotropy  $g_1 / g_2$", yscale="log")
    if over == "sigma":
        ax.set(xlabel="noise level  $(g_1 g_2)^{1/4}$", xscale="log")
    for line in _lines(schedules, names):
        if len(line.paths) < 2:
            raise ValueError("a ratio needs a schedule of two subspaces")
        x = line.t if over == "t" else np.exp(np.log(line.paths).mean(axis=0) / 2)
        ax.plot(x, line.paths[0] / line.paths[1], color=line.colour, label=line.name or "_")
    if over == "sigma":
        ax.set_xlim(left=2e-3)  # EDM's smallest level; below it a schedule only leads to its end
    _around_one(ax)
    legend(ax)
    return ax


def geometric_mean(
    schedules: Curves | Mapping[str, Curves], ax: Axes | None = None, names: Sequence[str] | None = None
) -> Axes:
    """The geometric mean of the subspaces, √(g_1 g_2) for two, beside the log-linear path between the same ends."""
    ax = axes(ax, xlabel=TIME, yscale="log")
    lines = _lines(schedules, names)
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
    rows = _rows(schedule)
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
            text = _class(label, names) if j == 0 else "_"
            ax.plot(t, curve, LINES[j % len(LINES)], color=shade(n, len(rows)), lw=1.3, label=text)
    _around_one(ax)
    legend(ax, beside=True)
    return ax


@dataclass(frozen=True)
class _Line:
    """A row of a schedule: g [subspace, time] over t/T; without a name where another line already tells of it."""

    name: str | None
    of_class: bool  # in colours by class
    colour: Any
    paths: np.ndarray[Any, Any]
    t: np.ndarray[Any, Any]


def _lines(schedules: Curves | Mapping[str, Curves], names: Sequence[str] | None) -> list[_Line]:
    """The rows of all schedules: a colour per schedule, or per class of a schedule that is alone."""
    many = schedules if isinstance(schedules, Mapping) else {"": schedules}
    lines = []
    for i, (name, schedule) in enumerate(many.items()):
        rows = _rows(schedule)
        for n, (label, paths, t) in enumerate(rows):
            if len(many) == 1 and label >= 0:
                lines.append(_Line(_class(label, names), True, shade(n, len(rows)), paths, t))
            else:
                lines.append(_Line(name if n == 0 else None, False, COLOURS[i % len(COLOURS)], paths, t))
    return lines


def _rows(schedule: Curves) -> list[tuple[int, np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """(label, g [subspace, time], t/T) of every row of a schedule."""
    frame: pd.DataFrame = schedule if isinstance(schedule, pd.DataFrame) else schedule.evaluate(POINTS)
    frame = frame.assign(**{c: v for c, v in (("label", -1), ("subspace", 0)) if c not in frame})
    rows = []
    for label, part in frame.groupby("label"):
        curves = [curve for _, curve in part.groupby("subspace")]
        t = curves[0]["t"].to_numpy(np.float64)
        g = np.stack([curve["g"].to_numpy(np.float64) for curve in curves])
        rows.append((int(cast("int", label)), g, t / t.max()))
    return rows


def _class(label: int, names: Sequence[str] | None) -> str:
    return names[label] if names is not None and label < len(names) else f"class {label}"


def _around_one(ax: Axes) -> None:
    """A reference line at 1, and room on either side of it, with plain numbers."""
    ax.axhline(1, ls="--", color=REFERENCE, lw=1.1, zorder=1)
    low, high = ax.get_ylim()
    ax.set_ylim(min(low, 1 / _TIGHT), max(high, _TIGHT))
    low, high = ax.get_ylim()
    if high / low < 30:
        inside = [v for v in (_FINE if high / low < 3 else _COARSE) if low <= v <= high]
        ax.set_yticks(inside, [f"{v:g}" for v in inside])
        ax.minorticks_off()
