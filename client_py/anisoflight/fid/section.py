"""What a table of results holds: sections, lines and cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..compare.bench import half_range

METRICS = ("frechet", "precision", "recall", "density", "coverage")


@dataclass(frozen=True)
class Cell:
    """One method at one NFE."""

    values: tuple[float, ...]
    """One of each block of seeds; of published numbers the least of three runs alone."""
    count: int
    """Images of the smallest block."""
    notes: tuple[str, ...] = ()
    """Why it is not comparable with published FIDs."""

    @property
    def least(self) -> float:
        return min(self.values)

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @property
    def spread(self) -> float:
        """Half the range."""
        return half_range(self.values)


@dataclass
class Line:
    """One method."""

    method: str
    latex: str
    origin: str
    """measured or published."""
    cells: dict[int, Cell]


@dataclass
class Section:
    """One table: a benchmark, seen through one set of features, against one reference."""

    title: str
    benchmark: str
    metric: str
    """As it is printed: FID only of features that published ones are of."""
    columns: list[int]
    lines: list[Line]

    @property
    def notes(self) -> list[str]:
        """Every reason why a cell is not comparable, in order of appearance; marks are their places."""
        found = (note for line in self.lines for cell in line.cells.values() for note in cell.notes)
        return list(dict.fromkeys(found))

    @property
    def blocks(self) -> list[int]:
        """How many blocks of seeds the measured cells have."""
        measured = [line for line in self.lines if line.origin == "measured"]
        return sorted({len(cell.values) for line in measured for cell in line.cells.values()})

    @property
    def better(self) -> Callable[..., Any]:
        """min of distances, max of the others."""
        return max if self.metric in METRICS else min
