"""``python -m studies.rival DATA``: Heun's method on EDM's levels, tuned and not, without network error.

The data set cifar10-16 of the folder DATA (studies.reports.real makes it) is replaced by its normal law. Along a DCT
coefficient of variance λ and mean m the flow is dx/dσ = σ (x − m)/(λ + σ²), so Heun's method multiplies x − m by a
number A, and the squared 2-Wasserstein distance to the law is exact:

    W2² = Σ (√λ − A σ_max)² + A² m²        over Σ λ

The rows are EDM's levels with several σ_max and ρ, and the geodesic, whose E|flow + ε|² is Σ λ/(λ + g). Writes
studies/docs/rival-gaussian.csv.
"""

from __future__ import annotations

import sys
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import anisoflight
from anisoflight.subspaces import dct_rows

Array = np.ndarray[Any, Any]

DOCS = Path(__file__).parent / "docs"
NFE = (9, 13, 17, 35)
SIGMA_MAX, RHO = (80, 40, 20, 10), (7, 5, 3, 2)


def ruled(levels: int, sigma_max: float, rho: float, sigma_min: float = 0.002) -> Array:
    """EDM's rule: levels evenly spaced in σ^{1/ρ}."""
    return np.linspace(sigma_max ** (1 / rho), sigma_min ** (1 / rho), levels) ** rho


def geodesic(steps: int, variances: Array, sigma_max: float, order: int = 2) -> Array:
    """Levels of equal length ∫ (g²F)^{1/(p+1)} d ln g, F = Σ λ/(λ+g) / (g (c + g)), c = Σ λ, to g = 1e-9; then 0."""
    log_g = np.linspace(np.log(1e-9), 2 * np.log(sigma_max), 20_001)
    g = np.exp(log_g)
    residual = np.array([(variances / (variances + at)).sum() for at in g])
    speed = (g * residual / (variances.sum() + g)) ** (1 / (order + 1))
    length = np.append(0, np.cumsum((speed[1:] + speed[:-1]) / 2 * np.diff(log_g)))
    return np.append(np.exp(np.interp(np.linspace(length[-1], 0, steps + 1), length, log_g) / 2)[:-1], 0)


def w2_squared(levels: Array, variances: Array, means: Array, *, midpoint: bool = False) -> float:
    """W2² over Σ λ of Heun's method on the levels σ_0 > … > σ_n, whose last step is Euler's: 2n − 1 evaluations.

    The second point is the end of the step, or its middle in the time of EDM's schedule, in which σ^{1/7} is linear.
    """
    factor = np.ones_like(variances)
    for here, there in pairwise(levels):
        second = ((here ** (1 / 7) + there ** (1 / 7)) / 2) ** 7 if midpoint else there
        slope = here / (variances + here**2)
        again = second / (variances + second**2) * (1 + (second - here) * slope)
        turned = slope + (again - slope) * (there - here) / (second - here) / 2
        factor = factor * (1 + (there - here) * (slope if there == levels[-1] else turned))
    spread = (np.sqrt(variances) - factor * levels[0]) ** 2
    return float((spread + (factor * means) ** 2).sum() / variances.sum())


def table(variances: Array, means: Array) -> pd.DataFrame:
    """Rows of schedule, nfe, w2_squared."""
    rows = []
    for nfe in NFE:
        steps = (nfe + 1) // 2
        sides = {}
        for s, r in product(SIGMA_MAX, RHO):
            sides[f"edm, σ_max {s}, ρ {r}"] = np.append(ruled(steps, s, r), 0)
            sides[f"polynomial, σ_max {s}, ρ {r}"] = ruled(steps + 1, s, r)
        sides |= {f"geodesic, σ_max {s}": geodesic(steps, variances, s) for s in SIGMA_MAX}
        rows += [(name, nfe, w2_squared(levels, variances, means)) for name, levels in sides.items()]
        for s in SIGMA_MAX:
            levels = np.append(ruled(steps, s, 7), 0)
            rows.append((f"edm, midpoint, σ_max {s}, ρ 7", nfe, w2_squared(levels, variances, means, midpoint=True)))
    return pd.DataFrame(rows, columns=pd.Index(["schedule", "nfe", "w2_squared"]))


def main() -> None:
    with anisoflight.serve(data=sys.argv[1]) as client:
        images = client.dataset("cifar10-16").images[::10] / 127.5 - 1
    rows = dct_rows(images.shape[1])
    frequencies = np.einsum("ui,nijc,vj->nuvc", rows, images, rows, optimize=True)
    found = table(frequencies.var(axis=0).ravel(), frequencies.mean(axis=0).ravel())
    found.to_csv(DOCS / "rival-gaussian.csv", index=False, float_format="%.4g", lineterminator="\n")
    print(found.pivot_table("w2_squared", "schedule", "nfe").sort_values(9).to_string())


if __name__ == "__main__":
    main()
