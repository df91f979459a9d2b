"""A Markdown page with its figures and CSV files beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from matplotlib.figure import Figure


class Page:
    """Collects blocks in order and writes them to FOLDER/NAME.md; pictures and tables of numbers go beside it."""

    def __init__(self, folder: Path, name: str, title: str) -> None:
        self._folder, self._name = folder, name
        self._blocks = [f"# {title}"]
        folder.mkdir(parents=True, exist_ok=True)

    def heading(self, text: str) -> None:
        self._blocks.append(f"## {text}")

    def text(self, *paragraphs: str) -> None:
        self._blocks.extend(paragraphs)

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
