"""``anisoflight-table``: results laid out as the paper's table, methods × NFE, beside the published numbers."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..compare.bench import half_range
from ..files.cells import rows_of
from .published import NFES, PUBLISHED, TITLES

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


def sections(rows: Iterable[dict[str, Any]], metric: str = "frechet", published: bool = False) -> list[Section]:
    """Rows of results as tables, in order of appearance; rows without NFE, of files, stand in column 0.

    Rows that were seen through different features, or compared to different references, stand in different tables. Of
    rows of the same images the last counts.
    """
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in {_images(row): row for row in rows}.values():
        if metric in row:
            which = (row["benchmark"], row["features"]["hash"], row["reference"]["hash"])
            groups.setdefault(which, []).append(row)
    return [_section(group, metric, published) for group in groups.values()]


def _images(row: dict[str, Any]) -> str:
    """What tells images that were looked at in a certain way from all others."""
    parts = [row["source"], row["asked"], row["features"]["hash"], row["reference"]["hash"]]
    return json.dumps(parts, sort_keys=True)


def _section(rows: list[dict[str, Any]], metric: str, published: bool) -> Section:
    benchmark = rows[0]["benchmark"]
    features, reference = rows[0]["features"]["name"], rows[0]["reference"]["hash"]
    lines = _measured(rows, metric)
    if published and metric == "frechet":
        lines = _beside(lines, benchmark)
    columns = sorted({nfe for line in lines for nfe in line.cells})
    title = f"{TITLES.get(benchmark, benchmark)}: {features}, reference {reference[:8]}"
    if metric == "frechet":
        metric = "FID" if rows[0]["features"]["published"] else "Fréchet distance"
    return Section(title, benchmark, metric, columns, lines)


def _measured(rows: list[dict[str, Any]], metric: str) -> list[Line]:
    """Blocks of seeds join in a cell; rows of one name and NFE that differ in more get lines of their own."""
    found: dict[str, dict[int, list[dict[str, Any]]]] = {}
    for row in rows:
        nfe = row["nfe"] or 0
        nfe = max(nfe) if isinstance(nfe, list) else nfe
        for number in itertools.count(1):
            name = row["method"] if number == 1 else f"{row['method']} ({number})"
            cell = found.setdefault(name, {}).setdefault(nfe, [])
            if not cell or _settings(cell[0]) == _settings(row):
                cell.append(row)
                break
    lines = []
    for method, by_nfe in found.items():
        cells = {}
        for nfe, group in by_nfe.items():
            notes = tuple(dict.fromkeys(note for row in group for note in row["notes"]))
            cells[nfe] = Cell(tuple(row[metric] for row in group), min(row["count"] for row in group), notes)
        lines.append(Line(method, "", "measured", cells))
    return lines


def _settings(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row["source"].items() if name != "seeds"}


def _beside(lines: list[Line], benchmark: str) -> list[Line]:
    """Every published line directly below the measured one of its method; the others in the paper's order."""
    theirs = [
        Line(row.method, row.latex, "published", {nfe: Cell((fid,), 50_000) for nfe, fid in row.fid.items()})
        for row in PUBLISHED
        if row.benchmark == benchmark
    ]
    order = [line.method for line in theirs]
    ours = [line for line in lines if line.method not in order]
    paired = []
    for line in theirs:
        paired += [Line(own.method, line.latex, own.origin, own.cells) for own in lines if own.method == line.method]
        paired.append(line)
    return paired + ours


SOURCE = "Published: Variational Trajectory Optimization of Anisotropic Diffusion Schedules, table 1; "
SOURCE += "the least of three runs of 50,000 samples."
_MARKS = "abcdefghijklmnopqrstuvwxyz"


def markdown(sections: Sequence[Section], statistic: str) -> str:
    """One table each, the least measured value of a column in bold, and footnotes."""
    parts = []
    for section in sections:
        head = ["method", *(_column(nfe) for nfe in section.columns), f"best {section.metric}"]
        rows = [head, ["---"] * len(head)]
        rows += [[_name(line), *_cells(section, line, statistic, "**{}**", "<sup>{}</sup>")] for line in section.lines]
        table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        notes = [f"<sup>{_MARKS[i]}</sup> {note}." for i, note in enumerate(section.notes)]
        below = "  \n".join([_caption(section, statistic), *notes])
        parts.append(f"### {section.title}\n\n{table}\n\n{below}")
    return "\n\n".join(parts) + "\n"


def comma_separated(sections: Sequence[Section], _statistic: str) -> str:
    """A row for every cell, with all statistics."""
    rows = [
        {
            "benchmark": section.benchmark,
            "table": section.title,
            "method": line.method,
            "origin": line.origin,
            "metric": section.metric,
            "nfe": nfe or "",
            "blocks": len(cell.values) if line.origin == "measured" else 3,
            "count": cell.count,
            "min": cell.least,
            "mean": cell.mean if line.origin == "measured" else None,
            "spread": cell.spread if line.origin == "measured" else None,
            "notes": "; ".join(cell.notes),
        }
        for section in sections
        for line in section.lines
        for nfe, cell in sorted(line.cells.items())
    ]
    return pd.DataFrame(rows).to_csv(index=False)


def latex(sections: Sequence[Section], statistic: str) -> str:
    """One booktabs tabular, a block of rows for each section, as the paper's table is laid out."""
    widest = max((len(section.columns) for section in sections), default=0)
    lines = [rf"\begin{{tabular}}{{l|{'c' * widest}|c}}", r"\toprule"]
    footnotes = []
    for section in sections:
        pad = [""] * (widest - len(section.columns))
        lines.append(rf"\multicolumn{{{widest + 2}}}{{c}}{{\textbf{{{_escaped(section.title)}}}}} \\")
        heads = [_column(nfe) for nfe in section.columns]
        lines += [r"\midrule", _row(["Method", *heads, *pad, f"Best {section.metric}"]), r"\midrule"]
        for line in section.lines:
            texts = _cells(section, line, statistic, r"\textbf{{{}}}", r"\textsuperscript{{{}}}")
            *cells, best = (text.replace("±", r"$\pm$") for text in texts)
            name = (line.latex or _escaped(line.method)) + ("" if line.origin == "measured" else " (published)")
            lines.append(_row([name, *cells, *pad, best]))
        lines.append(r"\midrule")
        footnotes.append(_caption(section, statistic))
        footnotes += [f"{_MARKS[i]}: {note}." for i, note in enumerate(section.notes)]
    lines[-1:] = [r"\bottomrule", r"\end{tabular}"]
    return "\n".join(lines + [f"% {note}" for note in dict.fromkeys(footnotes)]) + "\n"


FORMS: dict[str, Callable[[Sequence[Section], str], str]] = {
    "markdown": markdown,
    "csv": comma_separated,
    "latex": latex,
}


def _cells(section: Section, line: Line, statistic: str, bold: str, mark: str) -> list[str]:
    """The texts of a line: a cell for every column, and its best."""
    measured = [other for other in section.lines if other.origin == "measured"]

    def text(cell: Cell, rivals: Sequence[Cell]) -> str:
        first = section.better(_value(rival, statistic) for rival in [cell, *rivals])
        chosen = line.origin == "measured" and len(rivals) > 1 and _value(cell, statistic) == first
        shown = bold.format(_number(cell, statistic)) if chosen else _number(cell, statistic)
        marks = ",".join(_MARKS[section.notes.index(note)] for note in cell.notes)
        return shown + mark.format(marks) if marks else shown

    def best(of: Line) -> Cell:
        return section.better(of.cells.values(), key=lambda cell: _value(cell, statistic))

    texts = []
    for nfe in section.columns:
        rivals = [other.cells[nfe] for other in measured if nfe in other.cells]
        texts.append(text(line.cells[nfe], rivals) if nfe in line.cells else "–")
    return [*texts, text(best(line), [best(other) for other in measured])]


def _value(cell: Cell, statistic: str) -> float:
    return cell.mean if statistic == "mean" else cell.least


def _number(cell: Cell, statistic: str) -> str:
    around = f"{_digits(cell.mean)} ± {_digits(cell.spread)}" if len(cell.values) > 1 else _digits(cell.mean)
    if statistic == "mean":
        return around
    if statistic == "both" and len(cell.values) > 1:
        return f"{_digits(cell.least)} ({around})"
    return _digits(cell.least)


def _digits(value: float) -> str:
    """As the paper prints them: three decimals below ten, two above.

    >>> _digits(1.8034), _digits(35.524)
    ('1.803', '35.52')
    """
    return f"{value:.3f}" if value < 10 else f"{value:.2f}"


def _column(nfe: int) -> str:
    return f"nfe {nfe}" if nfe else "images"


def _name(line: Line) -> str:
    return line.method if line.origin == "measured" else f"{line.method} (published)"


def _caption(section: Section, statistic: str) -> str:
    told = []
    if section.blocks:
        number = "–".join(str(count) for count in dict.fromkeys((section.blocks[0], section.blocks[-1])))
        how = {"min": "the least", "mean": "mean ± half the range", "both": "the least (mean ± half the range)"}
        told.append(f"{section.metric}: {how[statistic]} of {number} block{'s' * (number != '1')} of seeds.")
    if any(line.origin == "published" for line in section.lines):
        told.append(SOURCE)
    return " ".join(told)


def _row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _escaped(text: str) -> str:
    for character in "&%$#_{}":
        text = text.replace(character, "\\" + character)
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    """Print tables of result files; 0, or 1 of a file that cannot be read."""
    parser = argparse.ArgumentParser(
        prog="anisoflight-table",
        description=__doc__,
        epilog="example:\n    anisoflight-table results.jsonl --published --form latex",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("results", nargs="*", metavar="RESULTS.jsonl", type=Path, help="what calc wrote; several join")
    said = "beside the paper's numbers; without results its whole table"
    parser.add_argument("--published", action="store_true", help=said)
    parser.add_argument("--form", choices=FORMS, default="markdown", help="default markdown")
    parser.add_argument("--metric", choices=METRICS, default="frechet", help="default frechet, FID on its own features")
    said = "of several blocks of seeds: min (as EDM and the paper report FID), mean (± half the range), or both "
    said += "(default min of distances, mean of the others)"
    parser.add_argument("--statistic", choices=("min", "mean", "both"), help=said)
    parser.add_argument("--out", metavar="FILE", type=Path, help="write there (default: print)")
    args = parser.parse_args(arguments)
    if not args.results and not args.published:
        parser.error("name at least one file of results, or --published")
    try:
        rows = [row for path in args.results for row in rows_of(path)]
        found = sections(rows, args.metric, args.published) if args.results else whole()
        text = FORMS[args.form](found, args.statistic or ("min" if args.metric == "frechet" else "mean"))
        if args.out is None:
            print(text, end="")
        else:
            args.out.write_text(text, encoding="utf-8")
    except (OSError, ValueError, KeyError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def whole() -> list[Section]:
    """The published table."""
    return [Section(TITLES[name], name, "FID", list(NFES[name]), _beside([], name)) for name in TITLES]


if __name__ == "__main__":
    sys.exit(main())
