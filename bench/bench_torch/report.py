"""Tables of the measurements."""

from __future__ import annotations

import csv
import io
import statistics
from typing import TYPE_CHECKING

from .measure import INDUCTOR, OURS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from .measure import Row
    from .session import Session


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """First quartile, median and third quartile."""
    if len(values) < 2:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def spread(values: Sequence[float]) -> str:
    """The median, and the quartiles in brackets."""
    low, middle, high = quartiles(values)
    return f"**{middle:.2f}** [{low:.2f}, {high:.2f}]"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _lines(head: Sequence[str], rows: list[list[str]]) -> str:
    return "\n".join(map(_line, [head, ["---"] * len(head), *rows]))


def _times(row: Row, half: str) -> str:
    return f"{1e3 * row.median(half, 'wall'):.1f}, {1e3 * row.median(half, 'cpu'):.0f}" if half in row.times else "–"


def _threads(session: Session) -> str:
    return f"{session.threads} thread{'s' * (session.threads > 1)}"


def summary(sessions: list[Session]) -> str:
    """The ratios of wall time alone, one column for each network and number of threads."""
    rows = {r.program: [r.program] for r in sessions[0].rows}
    for session in sessions:
        for row in session.rows:
            low, middle, high = quartiles(row.ratios("wall"))
            rows[row.program].append(f"**{middle:.2f}** [{low:.2f}, {high:.2f}]")
    head = ["wall time, the better of eager and Inductor / ours"]
    return _lines([*head, *(f"{s.network}, {_threads(s)}" for s in sessions)], list(rows.values()))


def section(session: Session) -> str:
    """One network on one number of threads."""
    top = max(session.matmul.values())
    size = f"{session.parameters / 1e6:.2f} M parameters, batch {session.batch}, {session.rounds} rounds"
    ours, torch = (f"{session.matmul[half]:.0f}" for half in (OURS, "torch"))
    rates = f"matrix products at {top:.0f} GFLOP/s (ours {ours}, torch {torch})"
    load = "load average {:.1f} before and {:.1f} after".format(*session.load)
    title = f"### {session.network}, {_threads(session)}"
    return f"{title}\n\n{size}; {rates};\n{load}.\n\n{table(session.rows, top)}"


def table(rows: list[Row], peak: float) -> str:
    """A Markdown table; peak is the machine's rate of matrix products in GFLOP/s."""
    head = [
        *("program", "wall time, torch / ours", "CPU time, torch / ours", "torch's best", "ours, ms: wall, CPU"),
        *("eager", "Inductor", "GFLOP/s, ours", "of peak", "compile, s: ours, Inductor"),
        *("peak memory, MiB: ours, eager", "difference"),
    ]
    cells = []
    for row in rows:
        rate = row.flops / 1e9 / row.median(OURS, "wall")
        best, eager = row.best("wall"), row.best("wall", lambda half: half != INDUCTOR)
        first = f"{row.first[INDUCTOR]:.1f}" if INDUCTOR in row.first else "–"
        memory = ", ".join(f"{row.peak[half] / 2**20:.0f}" for half in (OURS, "torch") if half in row.peak)
        cells.append(
            [
                row.program,
                spread(row.ratios("wall")),
                spread(row.ratios("cpu")),
                best,
                _times(row, OURS),
                f"{_times(row, eager)}",
                _times(row, INDUCTOR),
                f"{rate:.0f}",
                f"{100 * rate / peak:.0f} %",
                f"{row.compiled['compile_seconds']:.1f}, {first}",
                memory or "–",
                f"{row.difference:.0e}",
            ]
        )
    return _lines(head, cells)


def as_csv(sessions: list[Session]) -> str:
    """One line per network, number of threads, program, half and round, in seconds."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(["network", "threads", "program", "half", "round", "wall_seconds", "cpu_seconds"])
    for session in sessions:
        for row in session.rows:
            for half, times in row.times.items():
                for n, t in enumerate(times):
                    place = [session.network, session.threads, row.program, half, n]
                    out.writerow([*place, f"{t.wall:.6f}", f"{t.cpu:.6f}"])
    return text.getvalue()


_BEGIN, _END = "<!-- measured by make bench-torch -->", "<!-- end of what make bench-torch writes -->"


def insert(page: Path, text: str) -> None:
    """Replace what a page has between the two marks."""
    before, begin, rest = page.read_text().partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise ValueError(f"{page} has no lines {_BEGIN} and {_END}")
    page.write_text(f"{before}{_BEGIN}\n\n{text}\n\n{_END}{after}")
