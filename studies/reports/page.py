"""A Markdown page with its figures and CSV files next to it, and the numbers of its tables as text."""

from __future__ import annotations

import argparse
import json
import textwrap
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from anisoflight.fid.cells import rows_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure


ROOT = Path(__file__).parents[2]
DOCS = Path(__file__).parents[1] / "docs"


class Page:
    """Collects blocks in order and writes them to FOLDER/NAME.md; pictures and tables of numbers go next to it."""

    def __init__(self, folder: Path, name: str, title: str) -> None:
        self._folder, self._name = folder, name
        self._blocks = [f"# {title}"]
        folder.mkdir(parents=True, exist_ok=True)

    def heading(self, text: str) -> None:
        self._blocks.append(f"## {text}")

    def text(self, *paragraphs: str) -> None:
        """Paragraphs, in lines of at most 120 characters; an empty line parts them, too."""
        self._blocks.extend(_wrapped(part) for text in paragraphs for part in text.split("\n\n"))

    def items(self, items: list[str]) -> None:
        """A list with bullets."""
        self._blocks.append("\n".join(_wrapped(item, "- ", "  ") for item in items))

    def quote(self, text: str) -> None:
        self._blocks.append(_wrapped(text, "> ", "> "))

    def table(self, table: pd.DataFrame) -> None:
        """A table of strings, its index left out."""
        head = [str(column) for column in table.columns]
        rows = [head, ["---"] * len(head), *([str(cell) for cell in row] for row in table.to_numpy().tolist())]
        self._blocks.append("\n".join("| " + " | ".join(row) + " |" for row in rows))

    def figure(self, figure: Figure, name: str, caption: str) -> None:
        """A picture, NAME-name.png, with its caption as the text for those who do not see it."""
        file = f"{self._name}-{name}.png"
        figure.savefig(self._folder / file, dpi=90, bbox_inches="tight")
        self._blocks.append(f"![{caption}]({file})\n\n{caption}")

    def numbers(self, table: pd.DataFrame, name: str) -> None:
        """All numbers of a table as NAME-name.csv, and a line that says so."""
        file = f"{self._name}-{name}.csv"
        table.to_csv(self._folder / file, index=False, float_format="%.6g", lineterminator="\n")
        self._blocks.append(f"All {len(table)} rows: [{file}]({file}).")

    def write(self) -> Path:
        """Write the page; returns its path."""
        path = self._folder / f"{self._name}.md"
        path.write_text("\n\n".join(self._blocks) + "\n", encoding="utf-8")
        return path


def kept_rows(file: Path) -> pd.DataFrame:
    """The rows that a study keeps in a file, with the parts of their keys as columns; none if there is no file."""
    rows = rows_of(file) if file.exists() else []
    return pd.DataFrame([{**json.loads(row.pop("key")), **row} for row in rows])


def parser_of(study: str, doc: str | None, data: str = "") -> argparse.ArgumentParser:
    """The parser of a study's command, with what all of them take."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog=f"python -m studies.reports.{study}", description=doc, formatter_class=raw)
    folder = ROOT / "runs" / (data or study)
    parser.add_argument("--data", type=Path, default=folder, help="of the server and networks (default %(default)s)")
    parser.add_argument("--docs", type=Path, default=DOCS, help="folder of the page and of the rows")
    parser.add_argument("--page", action="store_true", help="write the page alone")
    return parser


def command(args: argparse.Namespace, run: Callable[[argparse.Namespace], None], write: Callable[[Path], Path]) -> int:
    """What a study's command does: `measured`, or with --page the page alone."""
    return measured(None if args.page else partial(run, args), partial(write, args.docs))


def measured(run: Callable[[], None] | None, write: Callable[[], Path]) -> int:
    """Run, unless it is None, then write the page and print its path: 0, or 130 if interrupted."""
    try:
        if run is not None:
            run()
    except KeyboardInterrupt:
        print("interrupted; the same command goes on with what is left")
        return 130
    print(write())
    return 0


def _wrapped(text: str, first: str = "", rest: str = "") -> str:
    lines = textwrap.TextWrapper(120, first, rest, break_long_words=False, break_on_hyphens=False)
    return lines.fill(text)


def with_bounds(table: pd.DataFrame, converged: str, real: str) -> pd.DataFrame:
    """The table with what no sampler of the network is expected to beat: rows of the converged network and of images.

    Every table of distances has both; where one was not measured its row says so.
    """
    for name, value in (("converged network", converged), ("real images", real)):
        row = [name, value or "not measured", *[""] * (len(table.columns) - 2)]
        table.loc[len(table)] = row
    return table


def spread(values: pd.Series, *, signed: bool = False, digits: int = 2) -> str:
    """Mean ± standard deviation over networks; of one network its value alone, of none nothing."""
    if values.empty:
        return ""
    mean = f"{values.mean():{'+' if signed else ''}.{digits}f}"
    return mean + (f" ± {values.std():.{digits}f}" if len(values) > 1 else "")


def difference(values: pd.Series) -> str:
    """Mean ± standard error, bold beyond two of them."""
    if len(values) < 2:
        return f"{values.mean():+.2f}"
    error = values.std() / np.sqrt(len(values))
    text = f"{values.mean():+.2f} ± {error:.2f}"
    return f"**{text}**" if abs(values.mean()) > 2 * error else text
