"""A self-contained HTML page: text, tables and pictures, nothing loaded from anywhere."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from anisoflight.compare.bench import half_range

from .checks import Check, Checks

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
.met { color: #19692c; } .unmet { color: #7a5200; } .broken { color: #b00020; font-weight: 600; }
td:first-child { white-space: normal; min-width: 9rem; } td > span { white-space: normal; }
.scroll { overflow-x: auto; }
dt { font-weight: 600; } dd { margin: 0 0 .5rem 1.2rem; max-width: 50rem; }
@media (max-width: 40rem) { /* a telephone: wide pictures and tables are moved sideways */
  body { margin: 1rem auto; padding: 0 .8rem; } h1 { font-size: 1.35rem; }
  .scroll img { max-width: none; width: 36rem; }
  th, td { padding: .25rem .35rem; } td:first-child { min-width: 7rem; }
}
"""

_TERMS = {
    "NFE": "evaluations of the network for one image, counted by the server",
    "σ, g": "the standard deviation and the variance of the noise; a schedule is a path g(t) from 0 to T",
    "FD, edge FD": "Fréchet distances between samples and data, on features of a classifier (digits) or 40 principal "
    "components (patches), and on random convolutions, which see edges; smaller is better, comparable within a table",
    "ODE error": "root mean square distance of the images to the exact end of the network's own trajectories",
    "energy": "what schedules are learned by: the path energy of the trajectory loss, lower for shorter paths",
    "few": "what the server finds for a number of evaluations on a model: a start, noise levels and a solver",
    "geodesic": "the schedule of constant speed, from one pass over the data; nothing is trained for it",
    "isotropic, anisotropic": "one path for the whole image; one for each subspace, such as low and high frequencies",
    "±": "half the range over blocks of samples from one network: noise of sampling, not of training",
}


class Report:
    """Collects blocks in order and writes them as one page."""

    def __init__(self, title: str) -> None:
        self.title = title
        self._blocks: list[str] = []
        self._summary = ""

    def summary(self, checks: Checks, *paragraphs: str) -> None:
        """What stands on top: how many claims hold, which do not, and the terms."""
        unmet = "".join(
            f'<li class="{_class(check)}">{html.escape(str(check))}</li>'
            for check in checks.items
            if check.broken or not check.met
        )
        met = sum(check.met and not check.broken for check in checks.items)
        terms = "".join(f"<dt>{html.escape(term)}</dt><dd>{html.escape(said)}</dd>" for term, said in _TERMS.items())
        verdict = f"{met} of {len(checks.items)} thresholds met, {len(checks.broken)} broken."
        self._summary = (
            f'<p class="{"broken" if checks.broken else "met"}">{verdict}</p><ul>{unmet}</ul>'
            + "".join(f"<p>{html.escape(text)}</p>" for text in paragraphs)
            + f"<details><summary>Terms</summary><dl>{terms}</dl></details>"
        )

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

    def checks(self, checks: Sequence[Check]) -> None:
        """The list of claims with their verdicts."""
        rows = "".join(_check_row(c) for c in checks)
        head = "<thead><tr><th>claim</th><th>measured</th><th>threshold</th><th></th></tr></thead>"
        self._blocks.append(f'<div class="scroll"><table>{head}<tbody>{rows}</tbody></table></div>')

    def write(self, path: Path) -> None:
        """Write the page; it appears whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        page = (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(self.title)}</title>'
            f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>'
            f"<body><h1>{html.escape(self.title)}</h1>{self._summary}{''.join(self._blocks)}</body></html>"
        )
        partial = path.with_suffix(".part")
        partial.write_text(page, encoding="utf-8")
        partial.replace(path)


def _check_row(check: Check) -> str:
    bound = f"{'≥' if check.at_least else '≤'} {check.bound:g}"
    verdict = f'<span class="{_class(check)}">{check.verdict}</span>'
    cells = [html.escape(check.claim), f"{check.value:.3g}", bound, verdict]
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _class(check: Check) -> str:
    if check.broken:
        return "broken"
    return "met" if check.met else "unmet"


def pm(values: Sequence[float], digits: int = 2) -> str:
    """Mean ± half the range of a few repetitions, or the value alone if there is one."""
    mean = sum(values) / len(values)
    if len(values) < 2:
        return f"{mean:.{digits}f}"
    return f"{mean:.{digits}f} ± {half_range(values):.{digits}f}"


def layout(table: pd.DataFrame) -> pd.DataFrame:
    """A table of `measuring.measure` as the report prints it: distances as mean ± half the range over seeds."""
    columns = {"sampler": table["sampler"], "NFE": table["nfe"]}
    for name in table.columns.difference(["sampler", "nfe", "ode_error", "seconds"], sort=False):
        columns[str(name)] = table[name].map(pm)
    columns["ODE error × 100"] = table["ode_error"].map(lambda e: f"{e:.2f}", na_action="ignore")
    columns["s / 1000 samples"] = table["seconds"].map(lambda s: f"{s:.2f}")
    return pd.DataFrame(columns)
