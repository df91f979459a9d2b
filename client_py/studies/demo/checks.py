"""The demo's claims: each a number, a bound and a verdict. A missed one fails the command and is named."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Check:
    """``value <= bound`` (or ``>=`` where at_least)."""

    claim: str
    value: float
    bound: float
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Whether the claim holds; a NaN never does."""
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    def __str__(self) -> str:
        sign = "≥" if self.at_least else "≤"
        return f"{'met   ' if self.met else 'MISSED'}  {self.claim}: {self.value:.3g} {sign} {self.bound:g}"


@dataclass
class Checks:
    """The checks of a run, in the order made."""

    items: list[Check] = field(default_factory=list)

    def at_most(self, claim: str, value: float, bound: float) -> None:
        """Claim that value <= bound."""
        self.items.append(Check(claim, float(value), bound))

    def at_least(self, claim: str, value: float, bound: float) -> None:
        """Claim that value >= bound."""
        self.items.append(Check(claim, float(value), bound, at_least=True))

    @property
    def missed(self) -> list[Check]:
        """The checks that failed."""
        return [c for c in self.items if not c.met]
