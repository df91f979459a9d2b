"""``anisoflight-table``: results as the paper's table, methods × NFE, with the published numbers."""

import argparse
import itertools
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..errors import say
from ..files import path_of
from .cells import rows_of

_LARGER = ("precision", "recall", "density", "coverage")  # is better
METRICS = ("frechet", *_LARGER, "ode_error")
SOURCE = "Published: Variational Trajectory Optimization of Anisotropic Diffusion Schedules, table 1; "
SOURCE += "the least of three runs of 50,000 samples."
MEASURED, PUBLISHED, REAL = "measured", "published", "real images"
FLOOR = "Real images: the distance of N random images of the reference to the half of it without them."
_MARKS = "abcdefghijklmnopqrstuvwxyz"


def half_range(values: Sequence[float]) -> float:
    """Half the range of a few repetitions: the spread printed after ±."""
    return (max(values) - min(values)) / 2


@dataclass(frozen=True)
class Cell:
    """One method at one NFE."""

    values: Sequence[float]
    """One per block of seeds; of published numbers the least of three runs."""
    count: int
    """Images of the smallest block."""
    notes: Sequence[str] = ()
    """Why it is not comparable with published FIDs."""
    source: str = ""
    """What was measured, except for its seeds."""

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @property
    def spread(self) -> float:
        return half_range(self.values)


@dataclass(frozen=True)
class Line:
    """One method."""

    method: str
    latex: str
    origin: str
    """measured, published, or real images."""
    cells: dict[int, Cell]
    """By NFE; column 0 for files and real images."""

    @property
    def measured(self) -> bool:
        return self.origin == MEASURED

    @property
    def suffix(self) -> str:
        return " (published)" if self.origin == PUBLISHED else ""


_PAPER = json.loads(Path(__file__).with_name("published.json").read_text(encoding="utf-8"))["benchmarks"]
"""Table 1 of "Variational Trajectory Optimization of Anisotropic Diffusion Schedules": FID by NFE of 50,000 samples,
the least of three runs; its rows EDM are the networks of Karras et al. (2022) as measured there.
"""
NFES: dict[str, list[int]] = {name: part["nfe"] for name, part in _PAPER.items()}
"""The NFE at which the paper measures each data set."""


def published(benchmark: str) -> list[Line]:
    """The paper's rows of a data set."""
    part = _PAPER.get(benchmark, {"rows": []})
    lines = []
    for row in part["rows"]:
        cells = {nfe: Cell([fid], 50_000) for nfe, fid in zip(part["nfe"], row["fid"], strict=True)}
        lines.append(Line(row["method"], row["latex"], PUBLISHED, cells))
    return lines


@dataclass(frozen=True)
class Section:
    """One table: a benchmark through one kind of features, against one reference."""

    title: str
    benchmark: str
    metric: str
    """As it is printed: FID only of features that published ones are of."""
    lines: list[Line]

    @property
    def columns(self) -> list[int]:
        return sorted({nfe for line in self.lines if line.origin != REAL for nfe in line.cells})

    @property
    def notes(self) -> list[str]:
        """Every reason why a cell is not comparable, in order of appearance; their positions are the marks."""
        found = (note for line in self.lines for cell in line.cells.values() for note in cell.notes)
        return list(dict.fromkeys(found))

    def value(self, cell: Cell) -> float:
        """The number that compares cells: the least distance, as in EDM and the paper; for other metrics the mean."""
        return cell.mean if self.metric in METRICS else min(cell.values)

    def head(self) -> list[str]:
        """The titles of the columns."""
        return ["method", *(f"nfe {nfe}" if nfe else "images" for nfe in self.columns), f"best {self.metric}"]

    def texts(self, bold: str, mark: str) -> list[list[str]]:
        """The cells of every line, and its best; in bold the best measured one of several in a column."""
        better = max if self.metric in _LARGER else min
        rows: list[list[Cell | None]] = [
            [*map(line.cells.get, self.columns), better(line.cells.values(), key=self.value)] for line in self.lines
        ]
        measured = [row for line, row in zip(self.lines, rows, strict=True) if line.measured]
        columns = [[self.value(cell) for cell in column if cell] for column in zip(*measured, strict=True)]

        def text(cell: Cell | None, rivals: Sequence[float]) -> str:
            if cell is None:
                return "–"
            written = _digits(self.value(cell))
            if len(cell.values) > 1:
                around = f"{_digits(cell.mean)} ± {_digits(cell.spread)}"
                written = around if self.metric in METRICS else f"{written} ({around})"
            if len(rivals) > 1 and self.value(cell) == better(rivals):
                written = bold.format(written)
            marks = ",".join(_MARKS[self.notes.index(note)] for note in cell.notes)
            return written + (mark.format(marks) if marks else "")

        return [
            [text(cell, rivals if line.measured else ()) for cell, rivals in itertools.zip_longest(row, columns)]
            for line, row in zip(self.lines, rows, strict=True)
        ]

    def captions(self, mark: str) -> list[str]:
        """The text below the table."""
        captions = []
        if any(len(cell.values) > 1 for line in self.lines for cell in line.cells.values()):
            least = "" if self.metric in METRICS else "the least, and "
            captions.append(f"{self.metric} of several blocks of seeds: {least}the mean ± half the range.")
        origins = {line.origin for line in self.lines}
        captions += [caption for origin, caption in ((PUBLISHED, SOURCE), (REAL, FLOOR)) if origin in origins]
        marked = [f"{mark.format(letter)} {note}." for letter, note in zip(_MARKS, self.notes, strict=False)]
        return ([" ".join(captions)] if captions else []) + marked


def sections(rows: Iterable[dict[str, Any]], metric: str = "frechet", paper: bool = False) -> list[Section]:
    """Rows of results as tables, in order of appearance.

    Rows with different features or references are in different tables. If the same images were measured twice, the last
    row counts.
    """
    groups: dict[tuple[str, str, str], dict[str, dict[str, Any]]] = {}
    for row in rows:
        if metric in row:
            key = (row["benchmark"], row["features"]["hash"], row["reference"]["hash"])
            images = json.dumps([row["source"], row["asked"]], sort_keys=True)
            groups.setdefault(key, {})[images] = row
    tables = []
    for (benchmark, _, reference), group in groups.items():
        features = next(iter(group.values()))["features"]
        title = f"{_title(benchmark)}: {features['name']}, reference {reference[:8]}"
        lines, name = _measured(group.values(), metric), metric
        if metric == "frechet":
            lines = [*(_with_published(lines, benchmark) if paper else lines), *_real(group.values())]
            name = "FID" if features["published"] else "Fréchet distance"
        tables.append(Section(title, benchmark, name, lines))
    return tables


def _measured(rows: Iterable[dict[str, Any]], metric: str) -> list[Line]:
    """Lines of rows: blocks of seeds share a cell; rows of one name and NFE that differ otherwise get lines of their
    own.
    """
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
        source = json.dumps({**group[0]["source"], "seeds": 0}, sort_keys=True)
        return Cell([row[metric] for row in group], min(row["count"] for row in group), notes, source)

    return [Line(name, "", MEASURED, {nfe: cell(group) for nfe, group in by.items()}) for name, by in found.items()]


def _real(rows: Iterable[dict[str, Any]]) -> list[Line]:
    """Distances of real images: for each number of images, the largest known number up to it."""
    known = {int(size): value for row in rows for size, value in row["reference"].get("floor", {}).items()}
    if not known:
        return []
    sizes = {max((size for size in known if size <= row["count"]), default=min(known)) for row in rows}
    return [Line(f"{REAL}, N = {size}", "", REAL, {0: Cell([known[size]], size)}) for size in sorted(sizes)]


def disagreements(sections: Sequence[Section]) -> list[str]:
    """A sentence for two methods whose order in two tables of the same samples differs by more than the spreads."""
    found = []
    for tables in itertools.combinations(sections, 2):
        first, second = (
            {(nfe, line.method): cell for line in t.lines if line.measured for nfe, cell in line.cells.items()}
            for t in tables
        )
        shared = [key for key, cell in first.items() if key in second and second[key].source == cell.source]
        for one, other in itertools.combinations(shared, 2):
            pairs = [(cells[one], cells[other]) for cells in (first, second)]
            differences = [a.mean - b.mean for a, b in pairs]
            spreads = [max(a.spread, b.spread) for a, b in pairs]
            if one[0] == other[0] and differences[0] * differences[1] < 0 and all(np.abs(differences) > spreads):
                single = any(len(cell.values) == 1 for pair in pairs for cell in pair)
                reason = "of one block of seeds, without a spread" if single else "by more than half the range of seeds"
                means = [f"{_digits(a.mean)} and {_digits(b.mean)}" for a, b in pairs]
                places = "; ".join(f"{mean} in {t.title}" for mean, t in zip(means, tables, strict=True))
                found.append(f"{one[1]} and {other[1]} change order at NFE {one[0]}, {reason}: {places}.")
    return found


def _with_published(lines: list[Line], benchmark: str) -> list[Line]:
    """Every published line below the measured one of its method; the others in the paper's order."""
    paired = []
    for row in published(benchmark):
        paired += [replace(line, latex=row.latex) for line in lines if line.method == row.method] + [row]
    return paired + [line for line in lines if line.method not in {other.method for other in paired}]


def markdown(sections: Sequence[Section]) -> str:
    """One table each, with footnotes; the least measured value of a column is bold."""
    parts = []
    for section in sections:
        rows = [section.head(), ["---"] * len(section.head())]
        for line, texts in zip(section.lines, section.texts("**{}**", "<sup>{}</sup>"), strict=True):
            rows.append([line.method + line.suffix, *texts])
        table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        parts.append("\n\n".join([f"### {section.title}", table, "  \n".join(section.captions("<sup>{}</sup>"))]))
    return "\n\n".join(part.rstrip() for part in [*parts, *disagreements(sections)]) + "\n"


def comma_separated(sections: Sequence[Section]) -> str:
    """A row for every cell, with all statistics."""
    rows = [
        {
            "benchmark": section.benchmark,
            "table": section.title,
            "method": line.method,
            "origin": line.origin,
            "metric": section.metric,
            "nfe": nfe or "",
            "blocks": 3 if line.origin == PUBLISHED else len(cell.values),
            "count": cell.count,
            "min": min(cell.values),
            "mean": cell.mean if line.measured else None,
            "spread": cell.spread if line.measured else None,
            "notes": "; ".join(cell.notes),
        }
        for section in sections
        for line in section.lines
        for nfe, cell in sorted(line.cells.items())
    ]
    return pd.DataFrame(rows).to_csv(index=False)


def latex(sections: Sequence[Section]) -> str:
    """One booktabs tabular, a block of rows for each section, as the paper's table is laid out."""
    widest = max((len(section.columns) for section in sections), default=0)
    lines = [rf"\begin{{tabular}}{{l|{'c' * widest}|c}}", r"\toprule"]
    for section in sections:
        rows = [section.head()]
        for line, texts in zip(section.lines, section.texts(r"\textbf{{{}}}", r"\textsuperscript{{{}}}"), strict=True):
            name = (line.latex or _escaped(line.method)) + line.suffix
            rows.append([name, *(text.replace("±", r"$\pm$") for text in texts)])
        pad = [""] * (widest - len(section.columns))
        head, *body = (" & ".join([*row[:-1], *pad, row[-1]]) + r" \\" for row in rows)
        title = rf"\multicolumn{{{widest + 2}}}{{c}}{{\textbf{{{_escaped(section.title)}}}}} \\"
        lines += [title, r"\midrule", head, r"\midrule", *body, r"\midrule"]
    captions = (note for section in sections for note in section.captions("{}:"))
    footnotes = dict.fromkeys([*captions, *disagreements(sections)])
    return "\n".join([*lines[:-1], r"\bottomrule", r"\end{tabular}", *(f"% {note}" for note in footnotes)]) + "\n"


FORMS: dict[str, Callable[[Sequence[Section]], str]] = {"markdown": markdown, "csv": comma_separated, "latex": latex}


def _title(benchmark: str) -> str:
    return _PAPER[benchmark]["title"] if benchmark in _PAPER else benchmark


def _digits(value: float) -> str:
    """Three decimals below ten, else two, as in the paper.

    >>> _digits(1.8034), _digits(35.524)
    ('1.803', '35.52')
    """
    return f"{value:.3f}" if value < 10 else f"{value:.2f}"


def _escaped(text: str) -> str:
    for character in "&%$#_{}":
        text = text.replace(character, "\\" + character)
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    """Print tables of result files; 0, or 1 if a file cannot be read."""
    parser = argparse.ArgumentParser(
        prog="anisoflight-table",
        description=__doc__,
        epilog="example:\n    anisoflight-table results.jsonl --published --form latex",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("results", nargs="*", metavar="RESULTS.jsonl", type=path_of, help="what calc wrote")
    about = "with the paper's numbers; without results its whole table"
    parser.add_argument("--published", action="store_true", help=about)
    parser.add_argument("--form", choices=FORMS, default="markdown", help="default markdown")
    parser.add_argument("--metric", choices=METRICS, default="frechet", help="default frechet, FID on its own features")
    args = parser.parse_args(arguments)
    if not args.results and not args.published:
        parser.error("name at least one file of results, or --published")
    try:
        rows = [row for path in args.results for row in rows_of(path)]
        found = sections(rows, args.metric, args.published)
        if not args.results:
            found = [Section(_title(name), name, "FID", published(name)) for name in NFES]
        print(FORMS[args.form](found), end="")
        for sentence in disagreements(found) if args.form == "csv" else ():
            say(sentence)
    except (OSError, ValueError, KeyError) as error:
        say(f"error: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
