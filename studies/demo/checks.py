"""The demo's claims: each a number, a bound and a verdict.

A *required* claim holds on every network: it follows from theory or from the program. The others depend on the network
that was trained, and so on the seed. The demo reports all of them, and fails only if something is broken.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd


@dataclass(frozen=True)
class Check:
    """``value <= bound`` (or ``>=`` if at_least)."""

    claim: str
    value: float
    bound: float
    at_least: bool = False
    required: bool = False

    @property
    def met(self) -> bool:
        """Whether the claim holds; a NaN never does."""
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    @property
    def broken(self) -> bool:
        """Whether something is wrong: a required claim is not met, or what was measured is not a number."""
        return not np.isfinite(self.value) or (self.required and not self.met)

    @property
    def verdict(self) -> str:
        """met, not met on this network, or BROKEN."""
        if self.broken:
            return "BROKEN"
        return "met" if self.met else "not met on this network"

    def __str__(self) -> str:
        sign = "≥" if self.at_least else "≤"
        return f"{self.verdict}: {self.claim}: {self.value:.3g} {sign} {self.bound:g}"


@dataclass
class Checks:
    """The checks of a run, in the order made."""

    items: list[Check] = field(default_factory=list)

    def at_most(self, claim: str, value: float, bound: float, *, required: bool = False) -> None:
        """Claim that value <= bound; a required claim holds on every network."""
        self.items.append(Check(claim, float(value), bound, required=required))

    def at_least(self, claim: str, value: float, bound: float, *, required: bool = False) -> None:
        """Claim that value >= bound; a required claim holds on every network."""
        self.items.append(Check(claim, float(value), bound, at_least=True, required=required))

    @property
    def broken(self) -> list[Check]:
        """The checks that show that something is wrong."""
        return [c for c in self.items if c.broken]


def missing(table: pd.DataFrame, samplers: Sequence[str], nfes: Sequence[int], columns: Sequence[str]) -> int:
    """The number of entries that a measured table lacks.

    Each sampler has a row for each NFE, with finite numbers in all columns.
    """
    found = 0
    for sampler, nfe in product(samplers, nfes):
        row = table[(table["sampler"] == sampler) & (table["nfe"] == nfe)]
        found += sum(len(row) == 1 and bool(np.isfinite(row[column].iloc[0]).all()) for column in columns)
    return len(samplers) * len(nfes) * len(columns) - found
