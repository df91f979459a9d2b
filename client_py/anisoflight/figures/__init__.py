"""Figures of schedules and bases, one function each. Needs matplotlib (the extra `plot`).

    from anisoflight import figures

    figures.variances({"EDM": client.schedule("edm"), "learned": client.schedule("digits")})
    figures.ratio(client.schedule("patches"))

The functions take `Schedule`s or the DataFrames of `Schedule.evaluate`. Functions of one panel draw on the axes `ax`,
or on new ones, and return them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, cast

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
import pandas as pd
from cycler import cycler
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from ..errors import gone
from ..subspaces import Subspaces

__all__ = ["COLOURS", "POINTS", "STYLE", "axes", "components", "paper", "ratio", "reverse", "variances"]

__getattr__ = gone("figures", {"advice": "anisoflight data inspect prints T and c"})

Array = np.ndarray[Any, Any]
Names = Sequence[str] | None
"""Names of the classes; a class without a name is called by its number."""

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette (2008), distinguishable with any colour vision."""
_CLASSES = (*COLOURS, "#882255", "#999933", "#332288")  # three of Tol's muted colours (2021)
REFERENCE = "#777777"
"""Colour of reference lines."""
_DIVERGING = LinearSegmentedColormap.from_list("blue-orange", ["#003f69", "#0072B2", "#ffffff", "#D55E00", "#742f00"])
LINES = ("-", "--", ":", "-.")
"""Line styles of the subspaces, in their order."""
TIME = "time  t / T"
POINTS = 513
"""Number of times at which a schedule is drawn."""

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


class Evaluated(Protocol):
    """A `Schedule`, as far as it is drawn."""

    def evaluate(self, points: int, /) -> pd.DataFrame: ...


Curves: TypeAlias = Evaluated | pd.DataFrame
"""A schedule, or its columns t, g and, if needed, label and subspace."""


def variances(schedules: Curves | Mapping[str, Curves], ax: Axes | None = None, names: Names = None) -> Axes:
    """Noise variances g_j(t) of one schedule or of several by name, on a logarithmic axis.

    Line styles tell the subspaces apart: P_1 solid, P_2 dashed. Colours tell schedules apart; for a single schedule,
    subspaces or classes, which are called by their numbers or by `names`.
    """
    alone = not isinstance(schedules, Mapping) or len(schedules) == 1
    ax = axes(ax, xlabel=TIME, ylabel="noise variance  g(t)", yscale="log")
    for line in lines_of(schedules, names):
        for j, g in enumerate(line.paths):
            subspace = f"$g_{j + 1}$" if len(line.paths) > 1 and not line.of_class else ""
            name = ", ".join(part for part in (line.name, subspace) if part) or "$g$"
            hidden = line.name is None or (line.of_class and j > 0)
            colour = COLOURS[j % len(COLOURS)] if alone and not line.of_class else line.colour
            ax.plot(line.t, g, LINES[j % len(LINES)], color=colour, label="_" if hidden else name)
    ax.set_ylim(bottom=max(ax.get_ylim()[0], 1e-6))  # the decades that matter: EDM's smallest variance is 4e-6
    legend(ax)
    return ax


def ratio(
    schedules: Curves | Mapping[str, Curves], ax: Axes | None = None, names: Names = None, *, over: str = "t"
) -> Axes:
    """The anisotropy g_1(t) / g_2(t), of every class, on a logarithmic axis with a line at 1.

    Above 1 the noise is larger in P_1, the low frequencies or leading components. `over` is "t", or "sigma" for the
    geometric mean noise level (g_1 g_2)^{1/4} on a logarithmic axis.
    """
    if over not in ("t", "sigma"):
        raise ValueError(f"over must be 't' or 'sigma', got {over!r}")
    ax = axes(ax, xlabel=TIME, ylabel="anisotropy  $g_1 / g_2$", yscale="log")
    if over == "sigma":
        ax.set(xlabel="noise level  $(g_1 g_2)^{1/4}$", xscale="log")
    for line in lines_of(schedules, names):
        if len(line.paths) < 2:
            raise ValueError("a ratio needs a schedule of two subspaces")
        x = line.t if over == "t" else np.exp(np.log(line.paths).mean(axis=0) / 2)
        ax.plot(x, line.paths[0] / line.paths[1], color=line.colour, label=line.name or "_")
    if over == "sigma":
        ax.set_xlim(left=2e-3)  # EDM's smallest level; below it a schedule only leads to its end
    around_one(ax)
    legend(ax)
    return ax


def paper(schedule: Curves, names: Names = None) -> Figure:
    """The paper's Figures 2 to 5 of a learned schedule, as far as it has several subspaces and classes.

    One panel each: √(g_1 g_2) next to a log-linear path; g_1 / g_2; and relative to the geometric mean of the classes,
    g_{j,y} and √(g_{1,y} g_{2,y}). A single path is drawn as g.
    """
    rows = rows_of(schedule)
    logs, t = np.log([g for _, g, _ in rows]), rows[0][2]  # [class, subspace, time]
    means, own = logs.mean(1, keepdims=True), logs - logs.mean(0)
    two, classes = logs.shape[1] == 2, len(rows) > 1
    root, over = "$\\sqrt{g_1 g_2}$" if two else "$g$", "over the classes' mean"
    drawn = [(root, means)] + [("$g_1 / g_2$", -np.diff(logs, axis=1))] * two + [(f"$g_y$ {over}", own)] * classes
    drawn += [(f"{root} {over}", own.mean(1, keepdims=True))] * (two and classes)
    with mpl.rc_context({**STYLE, "figure.figsize": (4.6 * len(drawn), 3.6)}):
        figure, panels = pyplot.subplots(1, len(drawn), squeeze=False)
    for ax, (label, curves) in zip(panels[0], drawn, strict=True):
        axes(ax, xlabel=TIME, ylabel=label, yscale="log")
        for n, of_class in enumerate(curves):
            for j, curve in enumerate(of_class):
                named = ax is panels[0][-1] and 1 < len(rows) <= len(_CLASSES) and j == 0
                name = class_name(rows[n][0], names) if named else "_"
                ax.plot(t, np.exp(curve), LINES[j], color=shade(n, len(rows)), lw=1.3, label=name)
        if ax is panels[0][0]:
            ends = np.exp(curves.mean(axis=(0, 1)))[[0, -1]]
            ax.plot([0, 1], ends, "--", color=REFERENCE, lw=1.1, label="log-linear")
        else:
            around_one(ax)
        legend(ax)
    return figure


def reverse(
    client: Any,
    model: str,
    schedule: str | None = None,
    *,
    label: int | None = None,
    family: Mapping[str, Any] | None = None,
    steps: int = 7,
    seed: int = 0,
) -> Figure:
    """The reverse process in each subspace (the paper's Figure 1): images x_t from noise to a sample, their parts P_j
    x_t below, and the paths g_j on the right.

    Heun's method takes `steps` steps uniform in t along the model's own schedule or another; the noise levels √g_j are
    above each state. A schedule of one path is split into the subspaces of `family`, default {"basis": "dct"}. Zero is
    grey and the largest value of a picture is black or white, but an image within ±1 keeps its contrast. Of images with
    other than 1 or 3 channels the first is shown.
    """
    name, at, labels = schedule or model, client.describe_model(model), None if label is None else [label]
    plan, path = client.plan(name, model=model, label=label, steps=steps), client.schedule(name)
    ((_, g, _),) = rows_of(path.evaluate(t=plan.file["t"], labels=labels))  # from t = 0 up
    basis = {key: value for key, value in plan.file["family"].items() if key in ("basis", "k", "cuts")}
    shape = (1, at["img_channels"], at["img_resolution"], at.get("img_width", at["img_resolution"]))
    loop = plan.stages(np.random.default_rng(seed).standard_normal(shape))
    states = [loop.x]
    for stage in loop:
        noise: dict[str, Any] = {"g": stage.sigmas**2, **basis} if plan.count > 1 else {"sigma": stage.sigma}
        x = loop.x.astype(np.float32)
        loop.step(client.denoise(model, x, labels=label, layout="CHW", progress=False, **noise).denoised)
        states += [loop.x] if stage.step >= 0 else []
    images = np.concatenate(states)
    parts = (plan.subspaces if plan.count > 1 else Subspaces(family or {"basis": "dct"})).split(images)
    figure, panels = image_panels(1 + len(parts), len(states) + 4)
    for j, (line, part) in enumerate(zip(panels, [images, *parts], strict=True)):
        colour = COLOURS[(j - 1) % len(COLOURS)] if j and plan.count > 1 else "black"
        line[0].set_ylabel(f"$P_{j}x_t$" if j else "$x_t$", rotation=0, ha="right", va="center", color=colour)
        for ax, image in zip(line, np.moveaxis(part, 1, 3), strict=False):
            shown = image / max(np.abs(image).max(), 1e-9 if j else 1)
            ax.imshow(shown / 2 + 0.5 if shown.shape[2] == 3 else shown[..., 0], cmap="gray", vmin=-1, vmax=1)
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
    for ax, levels in zip(panels[0], np.sqrt(g.T[::-1]).round(3), strict=False):
        name = "√g = " if ax is panels[0, 0] else ""
        ax.set_title("\n".join(f"{name}{level:.3g}" for level in levels), fontsize=8)
    for ax in panels[:, len(states) :].flat:
        ax.remove()
    with mpl.rc_context(STYLE):
        ax = figure.add_subplot(panels[0, 0].get_gridspec()[:, len(states) :])
    variances(path.evaluate(POINTS, labels=labels), ax)
    return figure


def components(vectors: npt.ArrayLike | Mapping[int, npt.ArrayLike], count: int = 6, names: Names = None) -> Figure:
    """The leading `count` components as images, a row per class: blue below zero, orange above.

    vectors are rows [k, H, W], or such rows by label as `Client.basis` returns; label −1 is called "all". Each
    component has its own scale and the sign that makes its largest value positive.
    """
    rows = vectors if isinstance(vectors, Mapping) else {-1: vectors}
    arrays = {label: np.asarray(rows[label]) for label in sorted(rows)}
    count = min(count, *(len(array) for array in arrays.values()))
    figure, panels = image_panels(len(arrays), count)
    for line, (label, array) in zip(panels, arrays.items(), strict=True):
        for i, ax in enumerate(line):
            draw_pattern(ax, array[i] * np.sign(array[i].flat[np.abs(array[i]).argmax()]))
        line[0].set_ylabel(class_name(label, names), rotation=0, ha="right", va="center", labelpad=8)
    for i, ax in enumerate(panels[0]):
        ax.set_title(f"{i + 1}", fontsize=10)
    return figure


# Parts of figures


@dataclass(frozen=True)
class Line:
    """One row of a schedule: g [subspace, time] over t/T; name is None if another line has the label."""

    name: str | None
    of_class: bool  # in colours by class
    colour: Any
    paths: Array
    t: Array


def lines_of(schedules: Curves | Mapping[str, Curves], names: Names) -> list[Line]:
    """The rows of all schedules: one colour per schedule, or per class of a single schedule."""
    many = schedules if isinstance(schedules, Mapping) else {"": schedules}
    lines = []
    for i, (name, schedule) in enumerate(many.items()):
        rows = rows_of(schedule)
        for n, (label, paths, t) in enumerate(rows):
            if len(many) == 1 and label >= 0:
                lines.append(Line(class_name(label, names), True, shade(n, len(rows)), paths, t))
            else:
                lines.append(Line(name if n == 0 else None, False, COLOURS[i % len(COLOURS)], paths, t))
    return lines


def rows_of(schedule: Curves) -> list[tuple[int, Array, Array]]:
    """(label, g [subspace, time], t/T) of every row of a schedule."""
    frame: pd.DataFrame = schedule if isinstance(schedule, pd.DataFrame) else schedule.evaluate(POINTS)
    frame = frame.assign(**{c: v for c, v in (("label", -1), ("subspace", 0)) if c not in frame})
    rows = []
    for label, part in frame.groupby("label"):
        g = part.pivot(index="t", columns="subspace", values="g")
        rows.append((int(cast("int", label)), g.to_numpy(np.float64).T, g.index.to_numpy() / g.index.max()))
    return rows


def class_name(label: int, names: Names) -> str:
    if label < 0:
        return "all"
    return names[label] if names is not None and label < len(names) else f"class {label}"


def shade(i: int, count: int) -> Any:
    """The colour of class i: from a palette for up to ten classes, else along viridis."""
    return _CLASSES[i] if count <= len(_CLASSES) else mpl.colormaps["viridis"](0.94 * i / (count - 1))


def axes(ax: Axes | None = None, **labels: Any) -> Axes:
    """ax, or new axes in this package's style; labels, scales and title as in `Axes.set`."""
    if ax is None:
        with mpl.rc_context(STYLE):
            _, ax = pyplot.subplots()
    ax.set(**labels)
    return ax


def legend(ax: Axes, outside: bool = False) -> None:
    """A legend if any line has a label, next to the axes if it is long."""
    handles, names = ax.get_legend_handles_labels()
    place: dict[str, Any] = {}
    if outside or len(handles) > 5:
        place = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0}
    if handles:
        ax.legend(handles, names, frameon=False, fontsize=9, **place)


def around_one(ax: Axes) -> None:
    """A reference line at 1, with space on both sides and plain numbers."""
    ax.axhline(1, ls="--", color=REFERENCE, lw=1.1, zorder=1)
    low, high = ax.get_ylim()
    ax.set_ylim(min(low, 1 / 1.02), max(high, 1.02))
    low, high = ax.get_ylim()
    if high / low < 30:
        coarse = (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20)
        fine = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.25, 1.5, 2, 3)
        inside = [v for v in (fine if high / low < 3 else coarse) if low <= v <= high]
        ax.set_yticks(inside, [f"{v:g}" for v in inside])
        ax.minorticks_off()


def image_panels(rows: int, columns: int) -> tuple[Figure, Any]:
    """A figure of small images, and their axes [rows, columns]."""
    with mpl.rc_context({**STYLE, "axes.grid": False}):
        return pyplot.subplots(rows, columns, figsize=(1.05 * columns + 0.6, 1.05 * rows + 0.35), squeeze=False)


def draw_pattern(ax: Axes, pattern: Array) -> None:
    """Signed values as an image: blue below zero, white at zero, orange above."""
    most = float(np.abs(pattern).max()) or 1.0
    ax.imshow(pattern, cmap=_DIVERGING, vmin=-most, vmax=most, interpolation="nearest")
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set(visible=True, color="#bbbbbb")
