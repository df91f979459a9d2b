"""What `calc` prints of its rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compare.bench import half_range


def summary(rows: list[dict[str, Any]]) -> list[str]:
    """A line for each number of evaluations: over its blocks of seeds the mean, the least, and half the range."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(f"{row['method']}" + (f", NFE {row['nfe']}" if row["nfe"] else ""), []).append(row)
    lines = []
    for name, group in groups.items():
        kind = "FID" if group[0]["comparable"] else f"Fréchet distance on {group[0]['features']['name']}"
        parts = [f"{kind} {spread([row['frechet'] for row in group])}"]
        for metric in ("precision", "recall", "density", "coverage"):
            if metric in group[0]:
                parts.append(f"{metric} {np.mean([row[metric] for row in group]):.4f}")
        notes = dict.fromkeys(note for row in group for note in row["notes"])
        lines.append(f"{name}: {', '.join(parts)}" + "".join(f" ({note})" for note in notes))
    return lines


def spread(values: list[float]) -> str:
    """One value, or the least of several with their mean ± half their range.

    >>> spread([2.5]), spread([1.0, 2.0])
    ('2.500', '1.000 of 2 (1.500 ± 0.500)')
    """
    if len(values) == 1:
        return f"{values[0]:.3f}"
    return f"{min(values):.3f} of {len(values)} ({np.mean(values):.3f} ± {half_range(values):.3f})"
