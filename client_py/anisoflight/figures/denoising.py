"""How much of an image is left along a schedule: what the network sees, and what it makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot

from anisoflight.images import to_uint8
from anisoflight.subspaces import Subspaces

from .style import STYLE

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt
    from matplotlib.figure import Figure

    from anisoflight.wire.exchanges import Denoised

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Reconstruction:
    """An image along a schedule: noisy and denoised [n, H, W, C] at the times t [n], with g [n, J]."""

    t: Array
    g: Array
    noisy: Array
    denoised: Array


class Source(Protocol):
    """What is asked of a client: its schedules and evaluations of its models."""

    @property
    def schedule(self) -> Callable[[str], Any]: ...

    @property
    def denoise(self) -> Callable[..., Denoised]: ...


def reconstruct(
    client: Source,
    model: str,
    schedule: str,
    image: npt.ArrayLike,
    noise: npt.ArrayLike,
    t: npt.ArrayLike,
    label: int = -1,
) -> Reconstruction:
    """The noisy image x_t = x_0 + Σ_j √g_j(t) P_j ε at the times t, and the network's estimate D(x_t) of x_0.

    image x_0 and noise ε are [H, W, C]; the projectors P_j are those of the schedule's basis.
    """
    x0, epsilon = np.asarray(image, np.float64), np.asarray(noise, np.float64)
    times = np.sort(np.asarray(t, np.float64).ravel())[::-1]
    path = client.schedule(schedule)
    frame = path.evaluate(t=times, labels=None if label < 0 else [label])
    g = frame["g"].to_numpy().reshape(-1, len(times))[:, ::-1].T  # [time, subspace], from the largest down
    family = path.file["family"]
    vectors = path.vectors()
    split = Subspaces(family, None if vectors is None else vectors[label if label in vectors else -1])
    channels_first = np.moveaxis(epsilon, 2, 0)
    noises = np.sqrt(g).T[:, :, None, None, None] * channels_first  # [subspace, time, C, H, W]
    noisy = (x0 + np.moveaxis(split.combine(noises), 1, 3)).astype(np.float32)
    basis = {key: value for key, value in family.items() if key != "per_class" and family["basis"] != "none"}
    denoised = client.denoise(model, noisy, g=g, labels=label, progress=False, **basis).denoised
    return Reconstruction(times, g, noisy, denoised)


def reconstructions(along: Mapping[str, Reconstruction]) -> Figure:
    """Reconstructions of one image from one noise, two rows for each schedule: x_t, and below it D(x_t), as t falls.

    Rows of schedules with more than one subspace tell √g_1 | √g_2 above their columns, others σ.
    """
    first = next(iter(along.values()))
    rows, columns = 2 * len(along), len(first.t)
    with mpl.rc_context({**STYLE, "axes.grid": False}):
        figure, panels = pyplot.subplots(
            rows, columns, figsize=(1.05 * columns + 1.3, 1.18 * rows + 0.3), squeeze=False
        )
    for i, (name, path) in enumerate(along.items()):
        for k in range(columns):
            for ax, image in ((panels[2 * i, k], path.noisy[k]), (panels[2 * i + 1, k], path.denoised[k])):
                pixels = to_uint8(image)
                ax.imshow(pixels[..., 0] if pixels.shape[-1] == 1 else pixels, cmap="gray", vmin=0, vmax=255)
                ax.set(xticks=[], yticks=[])
                for spine in ax.spines.values():
                    spine.set_visible(False)
            levels = " | ".join(_level(v) for v in np.sqrt(path.g[k]))
            panels[2 * i, k].set_title(("σ = " if k == 0 and path.g.shape[1] == 1 else "") + levels, fontsize=8, pad=3)
        panels[2 * i, 0].set_ylabel(f"{name}\n$x_t$", rotation=0, ha="right", va="center", labelpad=8, fontsize=9)
        panels[2 * i + 1, 0].set_ylabel("$D(x_t)$", rotation=0, ha="right", va="center", labelpad=8, fontsize=9)
    return figure


def _level(sigma: float) -> str:
    return f"{sigma:.2g}" if sigma < 99.5 else f"{sigma:.0f}"
