"""The paths of a schedule file, evaluated without a server."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Array = np.ndarray[Any, Any]

_RULE = np.polynomial.legendre.leggauss(16)


@dataclass(frozen=True)
class Path:
    """One g(t): ln g is linear between knots t [K], ln g [K]."""

    t: Array
    logg: Array

    def u(self, t: float) -> float:
        """The clock √g(t), the noise level σ."""
        return float(np.exp(0.5 * np.interp(t, self.t, self.logg)))

    def integral(self, f: Callable[[Array], Array], a: float, b: float) -> float:
        """∫ f dU from a to b, U = √g: exact to rounding for polynomials f.

        The integral is split at knots, and between them so that U changes by two e-folds at most.
        """
        lo, hi = min(a, b), max(a, b)
        ends = np.unique(np.concatenate([[lo, hi], self.t[(self.t > lo) & (self.t < hi)]]))
        total = 0.0
        for start, end in pairwise(ends):
            rate = (np.log(self.u(end)) - np.log(self.u(start))) / (end - start)
            panels = np.linspace(start, end, int(np.ceil(abs(rate * (end - start)) / 2)) + 2)
            for left, right in pairwise(panels):
                t = 0.5 * (left + right) + 0.5 * (right - left) * _RULE[0]
                u = self.u(start) * np.exp(rate * (t - start))
                total += 0.5 * (right - left) * float(np.sum(_RULE[1] * f(t) * rate * u))
        return total if b >= a else -total


def paths_of(file: Mapping[str, Any], label: int | None = None) -> list[Path]:
    """The J paths of a schedule file; a per-class schedule needs the label.

    Between the knots τ_i = iT/(K−1) of a schedule with parameters θ (docs/method.md)::

        ln g_i = ln g_0 + (ln T − ln g_0) Σ_{m<i} inc_m / Σ_m inc_m,    inc = softplus(θ) + 1e-8
    """
    labels = file.get("labels", [])
    if not file["family"].get("per_class", False):
        row = 0
    elif label in labels:
        row = labels.index(label)
    else:
        raise ValueError(f"this schedule differs by class: give one of the labels {labels}, not {label}")
    if "paths" in file:
        return [Path(np.asarray(path["t"]), np.log(path["g"])) for path in file["paths"][row]]
    found = []
    for theta in file["theta"][row]:
        increments = np.logaddexp(0, np.asarray(theta, np.float64)) + 1e-8
        share = np.concatenate([[0], np.cumsum(increments) / increments.sum()])
        low, high = np.log(file["g0"]), np.log(file["T"])
        found.append(Path(np.linspace(0, file["T"], len(share)), low + (high - low) * share))
    return found
