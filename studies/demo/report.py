"""A self-contained HTML page: text, tables and pictures, nothing loaded from anywhere."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from anisoflight.fid.table import half_range
from anisoflight.images import data_uri, grid

from .data import Images

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1c1c1c; background: #fff; }
body { max-width: 68rem; margin: 2rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.7rem; } h2 { margin-top: 2.6rem; border-bottom: 1px solid #ccc; } h3 { margin-top: 1.8rem; }
p { max-width: 52rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .88rem; margin: .8rem 0; }
th, td { padding: .25rem .8rem; text-align: right; border-bottom: 1px solid #e4e4e4; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
thead th { border-bottom: 2px solid #999; }
figure { margin: 1.2rem 0; } figcaption { font-size: .88rem; color: #444; max-width: 52rem; }
img { max-width: 100%; }
.plot { width: 38rem; }
.mosaics { display: grid; grid-template-columns: repeat(auto-fill, minmax(14rem, 1fr)); gap: .8rem 1.2rem; }
.mosaics { font-size: .88rem; align-items: end; } .mosaics img { width: 100%; image-rendering: pixelated; }
td:first-child { white-space: normal; min-width: 9rem; }
.scroll { overflow-x: auto; }
@media (max-width: 40rem) { /* a telephone: wide pictures and tables are moved sideways */
  body { margin: 1rem auto; padding: 0 .8rem; } h1 { font-size: 1.35rem; }
  .scroll img { max-width: none; width: 36rem; }
  th, td { padding: .25rem .35rem; } td:first-child { min-width: 7rem; }
}
"""


class Report:
    """Collects blocks in order and writes them as one page."""

    def __init__(self, title: str) -> None:
        self.title = title
        self._blocks: list[str] = []

    def heading(self, text: str, level: int = 2) -> None:
        """A section's heading."""
        self._blocks.append(f"<h{level}>{html.escape(text)}</h{level}>")

    def text(self, *paragraphs: str) -> None:
        """Plain paragraphs; the text is escaped."""
        self._blocks.extend(f"<p>{html.escape(p)}</p>" for p in paragraphs)

    def figure(self, uri: str, caption: str, *, wide: bool = False) -> None:
        """A picture, given as a data URI, and what it shows; a wide one keeps its size on a telephone."""
        text = html.escape(caption)
        image = f'<img class="plot" src="{uri}" alt="{text}">'
        if wide:
            image = f'<div class="scroll"><img src="{uri}" alt="{text}"></div>'
        self._blocks.append(f"<figure>{image}<figcaption>{text}</figcaption></figure>")

    def mosaics(self, uris: Mapping[str, str], caption: str) -> None:
        """Pictures under their titles, as many side by side as there is room for, and what they show."""
        panels = "".join(
            f'<div>{html.escape(title)}<br><img src="{uri}" alt="{html.escape(title)}"></div>'
            for title, uri in uris.items()
        )
        self._blocks.append(
            f'<figure><div class="mosaics">{panels}</div><figcaption>{html.escape(caption)}</figcaption></figure>'
        )

    def table(self, table: pd.DataFrame, caption: str = "") -> None:
        """A table with its index left out; floats as given by their own formatting."""
        body = table.to_html(index=False, border=0, na_rep="–", escape=True)
        self._blocks.append(
            f'<figure><div class="scroll">{body}</div><figcaption>{html.escape(caption)}</figcaption></figure>'
        )

    def write(self, path: Path) -> None:
        """Write the page; it appears whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        page = (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(self.title)}</title>'
            f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>'
            f"<body><h1>{html.escape(self.title)}</h1>{''.join(self._blocks)}</body></html>"
        )
        partial = path.with_suffix(".part")
        partial.write_text(page, encoding="utf-8")
        partial.replace(path)


def pm(values: Sequence[float], digits: int = 2) -> str:
    """Mean ± half the range of a few repetitions, or the value alone if there is one."""
    mean = sum(values) / len(values)
    if len(values) < 2:
        return f"{mean:.{digits}f}"
    return f"{mean:.{digits}f} ± {half_range(values):.{digits}f}"


def mosaics(panels: Mapping[str, Images], columns: int) -> dict[str, str]:
    """A picture of each panel's images [N, H, W, C]; the same place in each is the same image."""
    return {title: data_uri(grid(images, columns)) for title, images in panels.items()}
