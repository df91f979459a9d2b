"""The published numbers: FID by NFE of 50,000 samples, the least of three runs.

From table 1 (FID against NFE across data sets) of "Variational Trajectory Optimization of Anisotropic Diffusion
Schedules"; its rows EDM are the networks of Karras et al. (2022) as measured there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Published:
    """One row of the paper's table."""

    benchmark: str
    method: str
    latex: str
    fid: dict[int, float]
    """By NFE."""


_DATA = json.loads(Path(__file__).with_name("published.json").read_text(encoding="utf-8"))

TITLES: dict[str, str] = {name: part["title"] for name, part in _DATA["benchmarks"].items()}
"""The data sets' names as they are printed."""
NFES: dict[str, tuple[int, ...]] = {name: tuple(part["nfe"]) for name, part in _DATA["benchmarks"].items()}
"""The NFE at which the paper measures each data set."""
PUBLISHED: tuple[Published, ...] = tuple(
    Published(name, row["method"], row["latex"], dict(zip(part["nfe"], row["fid"], strict=True)))
    for name, part in _DATA["benchmarks"].items()
    for row in part["rows"]
)
