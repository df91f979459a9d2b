"""The subspaces themselves: basis functions as images, and how far those of classes are apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot

from anisoflight.subspaces import dct_rows

from .style import COLOURS, DIVERGING, STYLE, axes

if TYPE_CHECKING:
    import numpy.typing as npt
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = np.ndarray[Any, Any]


def dct_functions(size: int = 16, count: int = 9) -> Figure:
    """The first `count` two-dimensional DCT functions Φ_{u,v} on size × size pixels, by frequency u² + v²."""
    rows = dct_rows(size)
    order = sorted(((u, v) for u in range(size) for v in range(size)), key=lambda f: (f[0] ** 2 + f[1] ** 2, f))[:count]
    figure, panels = _panels(1, len(order), 1.05)
    for ax, (u, v) in zip(panels[0], order, strict=True):
        _pattern(ax, np.outer(rows[u], rows[v]))
        ax.set_title(f"$\\Phi_{{{u},{v}}}$", fontsize=11)
    return figure


def components(
    vectors: npt.ArrayLike | Mapping[int, npt.ArrayLike], count: int = 6, names: Sequence[str] | None = None
) -> Figure:
    """The leading `count` components as images, a row per class: blue below zero, orange above.

    vectors are rows [k, H, W], or a mapping of them by label as `Client.basis` returns; −1 is called "all". Each
    component has a scale of its own, and of its two signs the one that makes its largest value positive.
    """
    rows = vectors if isinstance(vectors, Mapping) else {-1: vectors}
    arrays = {label: np.asarray(rows[label]) for label in sorted(rows)}
    count = min(count, *(len(array) for array in arrays.values()))
    figure, panels = _panels(len(arrays), count, 1.05)
    for line, (label, array) in zip(panels, arrays.items(), strict=True):
        for i, ax in enumerate(line):
            _pattern(ax, array[i] * np.sign(array[i].flat[np.abs(array[i]).argmax()]))
        line[0].set_ylabel(_named(label, names), rotation=0, ha="right", va="center", labelpad=8)
    for i, ax in enumerate(panels[0]):
        ax.set_title(f"{i + 1}", fontsize=10)
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
        ax.annotate(_named(label, names), point, xytext=(6, 5), textcoords="offset points", fontsize=10)
    ax.margins(0.18)
    ax.set_title(f"two coordinates show {100 * share:.0f} % of the squared distances", fontsize=10)
    return ax


def _panels(rows: int, columns: int, size: float) -> tuple[Figure, Any]:
    with mpl.rc_context({**STYLE, "axes.grid": False}):
        return pyplot.subplots(rows, columns, figsize=(size * columns + 0.6, size * rows + 0.35), squeeze=False)


def _pattern(ax: Axes, pattern: Array) -> None:
    most = float(np.abs(pattern).max()) or 1.0
    ax.imshow(pattern, cmap=DIVERGING, vmin=-most, vmax=most, interpolation="nearest")
    ax.set(xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set(visible=True, color="#bbbbbb")


def _named(label: int, names: Sequence[str] | None) -> str:
    if label < 0:
        return "all"
    return names[label] if names is not None and label < len(names) else f"class {label}"
