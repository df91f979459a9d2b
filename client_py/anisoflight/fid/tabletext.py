"""Tables as Markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .section import Cell, Line, Section

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
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ["benchmark", "table", "method", "origin", "metric", "nfe", "blocks", "count", "min", "mean", "spread", "notes"]
    )
    for section in sections:
        for line in section.lines:
            for nfe, cell in sorted(line.cells.items()):
                where = [section.benchmark, section.title, line.method, line.origin, section.metric, nfe or ""]
                blocks = len(cell.values) if line.origin == "measured" else 3
                known = [cell.mean, cell.spread] if line.origin == "measured" else ["", ""]
                writer.writerow([*where, blocks, cell.count, cell.least, *known, "; ".join(cell.notes)])
    return text.getvalue()


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
