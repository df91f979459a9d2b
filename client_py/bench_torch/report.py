"""Tables of the measurements."""

from __future__ import annotations

import csv
import io
import statistics
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .measure import Row


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """First quartile, median and third quartile."""
    if len(values) < 2:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def spread(values: Sequence[float]) -> str:
    low, middle, high = quartiles(values)
    return f"**{middle:.2f}** [{low:.2f}, {high:.2f}]"


def _mib(value: float | None) -> str:
    return "–" if value is None else f"{value / 2**20:.0f}"


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def table(rows: list[Row], peak: float) -> str:
    """A Markdown table; peak is the machine's rate of matrix products in GFLOP/s."""
    head = [
        *("program", "CPU time, torch / ours", "wall time, torch / ours", "ours, ms", "torch, ms", "torch's layout"),
        *("GFLOP/s, ours", "of peak", "compile, s: ours, torch", "peak memory, MiB: ours, torch", "difference"),
    ]
    lines = [_line(head), _line(["---"] * len(head))]
    for row in rows:
        rate = row.flops / 1e9 / row.median("ours", "wall")
        best = row.best("cpu")
        cells = [
            row.program,
            spread(row.ratios("cpu")),
            spread(row.ratios("wall")),
            f"{1e3 * row.median('ours', 'wall'):.1f}",
            f"{1e3 * row.median(best, 'wall'):.1f}",
            best,
            f"{rate:.0f}",
            f"{100 * rate / peak:.0f} %",
            f"{row.compiled['compile_seconds']:.1f}, {row.first[best]:.1f}",
            f"{_mib(row.peak.get('ours'))}, {_mib(row.peak.get('torch'))}",
            f"{row.difference:.0e}",
        ]
        lines.append(_line(cells))
    return "\n".join(lines)


def as_csv(networks: dict[str, list[Row]]) -> str:
    """One line per network, program, half and round, in seconds."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(["network", "program", "half", "round", "wall_seconds", "cpu_seconds"])
    for network, rows in networks.items():
        for row in rows:
            for half, times in row.times.items():
                for n, t in enumerate(times):
                    out.writerow([network, row.program, half, n, f"{t.wall:.6f}", f"{t.cpu:.6f}"])
    return text.getvalue()


_BEGIN, _END = "<!-- measured by make bench-torch -->", "<!-- end of what make bench-torch writes -->"


def insert(page: Path, text: str) -> None:
    """Replace what a page has between the two marks."""
    before, begin, rest = page.read_text().partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise ValueError(f"{page} has no lines {_BEGIN} and {_END}")
    page.write_text(f"{before}{_BEGIN}\n\n{text}\n\n{_END}{after}")
