"""``anisoflight-table``: results laid out as the paper's table, methods × NFE, beside the published numbers."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..files.cells import rows_of
from .published import NFES, PUBLISHED, TITLES
from .section import METRICS, Cell, Line, Section
from .tabletext import FORMS


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
