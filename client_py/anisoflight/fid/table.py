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
SOURCE = "Published: Variational Trajectory Optimization of Anisotropic Diffusion Schedules, table 1; "
SOURCE += "the least of three runs of 50,000 samples."
_HOW = {"min": "the least", "mean": "mean ± half the range", "both": "the least (mean ± half the range)"}
_MARKS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Cell:
    """One method at one NFE."""

    values: Sequence[float]
    """One of each block of seeds; of published numbers the least of three runs alone."""
    count: int
    """Images of the smallest block."""
    notes: Sequence[str] = ()
    """Why it is not comparable with published FIDs."""

    def value(self, statistic: str) -> float:
        return float(np.mean(self.values)) if statistic == "mean" else min(self.values)

    def text(self, statistic: str) -> str:
        if len(self.values) == 1:
            return _digits(self.values[0])
        around = f"{_digits(self.value('mean'))} ± {_digits(half_range(self.values))}"
        return {"min": _digits(min(self.values)), "mean": around, "both": f"{_digits(min(self.values))} ({around})"}[
            statistic
        ]


@dataclass(frozen=True)
class Line:
    """One method."""

    method: str
    latex: str
    measured: bool
    cells: dict[int, Cell]
    """By NFE; of files, which have none, in column 0."""


@dataclass(frozen=True)
class Section:
    """One table: a benchmark, seen through one set of features, against one reference."""

    title: str
    benchmark: str
    metric: str
    """As it is printed: FID only of features that published ones are of."""
    lines: list[Line]

    @property
    def columns(self) -> list[int]:
        return sorted({nfe for line in self.lines for nfe in line.cells})

    def texts(self, statistic: str, bold: str, mark: str) -> list[list[str]]:
        """The cells of every line, and its best; in bold the best measured one of a column that has several."""
        better = max if self.metric in METRICS else min
        notes = self.notes()
        rows: list[list[Cell | None]] = [
            [
                *(line.cells.get(nfe) for nfe in self.columns),
                better(line.cells.values(), key=lambda cell: cell.value(statistic)),
            ]
            for line in self.lines
        ]
        measured = [row for line, row in zip(self.lines, rows, strict=True) if line.measured]
        rivals = [[cell.value(statistic) for cell in column if cell] for column in zip(*measured, strict=True)]

        def text(cell: Cell | None, rivals: list[float]) -> str:
            if cell is None:
                return "–"
            first = len(rivals) > 1 and cell.value(statistic) == better(rivals)
            marks = ",".join(_MARKS[notes.index(note)] for note in cell.notes)
            return (bold if first else "{}").format(cell.text(statistic)) + (mark.format(marks) if marks else "")

        none: list[list[float]] = [[]] * (len(self.columns) + 1)
        return [
            [text(cell, others) for cell, others in zip(row, rivals if line.measured else none, strict=True)]
            for line, row in zip(self.lines, rows, strict=True)
        ]

    def notes(self) -> list[str]:
        """Every reason why a cell is not comparable, in order of appearance; marks are their places."""
        found = (note for line in self.lines for cell in line.cells.values() for note in cell.notes)
        return list(dict.fromkeys(found))

    def captions(self, statistic: str, mark: str) -> list[str]:
        """What stands below the table."""
        told = []
        blocks = sorted(len(cell.values) for line in self.lines if line.measured for cell in line.cells.values())
        if blocks:
            number = "–".join(map(str, dict.fromkeys((blocks[0], blocks[-1]))))
            told.append(f"{self.metric}: {_HOW[statistic]} of {number} block{'s' * (number != '1')} of seeds.")
        if not all(line.measured for line in self.lines):
            told.append(SOURCE)
        marked = (f"{mark.format(letter)} {note}." for letter, note in zip(_MARKS, self.notes(), strict=False))
        return [" ".join(told), *marked]


def sections(rows: Iterable[dict[str, Any]], metric: str = "frechet", published: bool = False) -> list[Section]:
    """Rows of results as tables, in order of appearance.

    Rows that were seen through different features, or compared to different references, are in different tables. If
    the same images were measured twice, the last row counts.
    """
    groups: dict[tuple[str, str, str], dict[str, dict[str, Any]]] = {}
    for row in rows:
        if metric in row:
            which = (row["benchmark"], row["features"]["hash"], row["reference"]["hash"])
            images = json.dumps([row["source"], row["asked"]], sort_keys=True)
            groups.setdefault(which, {})[images] = row
    return [_section(list(group.values()), metric, published) for group in groups.values()]


def _section(rows: list[dict[str, Any]], metric: str, published: bool) -> Section:
    benchmark, features = rows[0]["benchmark"], rows[0]["features"]
    title = f"{TITLES.get(benchmark, benchmark)}: {features['name']}, reference {rows[0]['reference']['hash'][:8]}"
    lines = _measured(rows, metric)
    if metric == "frechet":
        lines = _beside(lines, benchmark) if published else lines
        metric = "FID" if features["published"] else "Fréchet distance"
    return Section(title, benchmark, metric, lines)


def _measured(rows: list[dict[str, Any]], metric: str) -> list[Line]:
    """Blocks of seeds join in a cell; rows of one name and NFE that differ in more get lines of their own."""
    found: dict[str, dict[int, list[dict[str, Any]]]] = {}
    for row in rows:
        nfe = max(row["nfe"]) if isinstance(row["nfe"], list) else row["nfe"] or 0
        for number in itertools.count(1):
            name = row["method"] if number == 1 else f"{row['method']} ({number})"
            group = found.setdefault(name, {}).setdefault(nfe, [])
            if not group or {**group[0]["source"], "seeds": 0} == {**row["source"], "seeds": 0}:
                group.append(row)
                break

    def cell(group: list[dict[str, Any]]) -> Cell:
        notes = list(dict.fromkeys(note for row in group for note in row["notes"]))
        return Cell([row[metric] for row in group], min(row["count"] for row in group), notes)

    return [Line(name, "", True, {nfe: cell(group) for nfe, group in by.items()}) for name, by in found.items()]


def _beside(lines: list[Line], benchmark: str) -> list[Line]:
    """Every published line directly below the measured one of its method; the others in the paper's order."""
    paired = []
    for row in PUBLISHED:
        if row.benchmark == benchmark:
            paired += [Line(own.method, row.latex, True, own.cells) for own in lines if own.method == row.method]
            paired.append(Line(row.method, row.latex, False, {nfe: Cell([x], 50_000) for nfe, x in row.fid.items()}))
    return paired + [line for line in lines if line.method not in {other.method for other in paired}]


def markdown(sections: Sequence[Section], statistic: str) -> str:
    """One table each, the least measured value of a column in bold, and footnotes."""
    parts = []
    for section in sections:
        head = ["method", *map(_column, section.columns), f"best {section.metric}"]
        names = [line.method + ("" if line.measured else " (published)") for line in section.lines]
        texts = section.texts(statistic, "**{}**", "<sup>{}</sup>")
        rows = [head, ["---"] * len(head), *([name, *cells] for name, cells in zip(names, texts, strict=True))]
        table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        parts.append(f"### {section.title}\n\n{table}\n\n" + "  \n".join(section.captions(statistic, "<sup>{}</sup>")))
    return "\n\n".join(parts) + "\n"


def comma_separated(sections: Sequence[Section], _statistic: str) -> str:
    """A row for every cell, with all statistics."""
    rows = [
        {
            "benchmark": section.benchmark,
            "table": section.title,
            "method": line.method,
            "origin": "measured" if line.measured else "published",
            "metric": section.metric,
            "nfe": nfe or "",
            "blocks": len(cell.values) if line.measured else 3,
            "count": cell.count,
            "min": cell.value("min"),
            "mean": cell.value("mean") if line.measured else None,
            "spread": half_range(cell.values) if line.measured else None,
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

        def row(name: str, cells: Sequence[str], pad: list[str] = pad) -> str:
            return " & ".join([name, *cells[:-1], *pad, cells[-1]]) + r" \\"

        lines.append(rf"\multicolumn{{{widest + 2}}}{{c}}{{\textbf{{{_escaped(section.title)}}}}} \\")
        head = row("Method", [*map(_column, section.columns), f"Best {section.metric}"])
        lines += [r"\midrule", head, r"\midrule"]
        texts = section.texts(statistic, r"\textbf{{{}}}", r"\textsuperscript{{{}}}")
        for line, cells in zip(section.lines, texts, strict=True):
            name = (line.latex or _escaped(line.method)) + ("" if line.measured else " (published)")
            lines.append(row(name, [text.replace("±", r"$\pm$") for text in cells]))
        lines.append(r"\midrule")
        footnotes += section.captions(statistic, "{}:")
    lines[-1:] = [r"\bottomrule", r"\end{tabular}"]
    return "\n".join(lines + [f"% {note}" for note in dict.fromkeys(footnotes)]) + "\n"


FORMS: dict[str, Callable[[Sequence[Section], str], str]] = {
    "markdown": markdown,
    "csv": comma_separated,
    "latex": latex,
}


def _digits(value: float) -> str:
    """As the paper prints them: three decimals below ten, two above.

    >>> _digits(1.8034), _digits(35.524)
    ('1.803', '35.52')
    """
    return f"{value:.3f}" if value < 10 else f"{value:.2f}"


def _column(nfe: int) -> str:
    return f"nfe {nfe}" if nfe else "images"


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
    parser.add_argument("--statistic", choices=_HOW, help=said)
    parser.add_argument("--out", metavar="FILE", type=Path, help="write there (default: print)")
    args = parser.parse_args(arguments)
    if not args.results and not args.published:
        parser.error("name at least one file of results, or --published")
    try:
        rows = [row for path in args.results for row in rows_of(path)]
        found = sections(rows, args.metric, args.published)
        if not args.results:
            found = [Section(TITLES[name], name, "FID", _beside([], name)) for name in NFES]
        text = FORMS[args.form](found, args.statistic or ("min" if args.metric == "frechet" else "mean"))
        if args.out is None:
            print(text, end="")
        else:
            args.out.write_text(text, encoding="utf-8")
    except (OSError, ValueError, KeyError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
