"""Steps of solvers as weights on what the network said: float64 arithmetic for one subspace, each on its own clock.

A step from node i to i + 1 is x ← α x + Σ_m β_m E_{i−m}, E the flow or the denoised image at the last nodes. The clock
of a subspace is U = √g; all is as in docs/method.md, section 7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .paths import Path

Array = np.ndarray[Any, Any]


def euler(path: Path, t: Sequence[float], i: int) -> tuple[float, list[float]]:
    """x − ΔU flow."""
    return 1.0, [path.u(t[i]) - path.u(t[i + 1])]


def adams_bashforth(path: Path, t: Sequence[float], i: int, order: int = 3) -> tuple[float, list[float]]:
    """The flow continued by its polynomial in t through the last nodes: β_m = −∫ ℓ_m(t) dU(t) over the step."""
    nodes = np.array([t[i - m] for m in range(min(order, i + 1))])

    def lagrange(m: int) -> Any:
        others = np.delete(nodes, m)
        scale = np.prod(nodes[m] - others)
        return lambda s: np.prod(np.subtract.outer(s, others), axis=-1) / scale

    return 1.0, [-path.integral(lagrange(m), t[i], t[i + 1]) for m in range(len(nodes))]


def dpmpp_2m(path: Path, t: Sequence[float], i: int) -> tuple[float, list[float]]:
    """DPM-Solver++(2M) (Lu et al. 2022) on the denoised images, λ = −ln U; first order at the first and last step."""
    u, following = path.u(t[i]), path.u(t[i + 1])
    h = np.log(u / following)
    weight = -np.expm1(-h)
    if i == 0 or i == len(t) - 2:
        return following / u, [weight]
    half = weight * h / (2 * np.log(path.u(t[i - 1]) / u))
    return following / u, [weight + half, -half]
