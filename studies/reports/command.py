"""The command of a report: its arguments, its server, and the page that it ends in."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import anisoflight
from anisoflight.files.cells import Cells

from .networks import PROBLEMS, Problem
from .page import Page

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(frozen=True)
class Command:
    """What a report works with while its command runs."""

    client: anisoflight.Client
    cells: Cells
    page: Page
    problems: list[Problem]
    quick: bool
    """Whether this is a smoke test: tiny networks, few samples."""


@contextmanager
def command(
    name: str,
    title: str,
    description: str | None,
    arguments: Sequence[str] | None,
    problems: Sequence[str],
) -> Iterator[Command]:
    """Parse the arguments (default: the process's own), serve the models, and write the page in the end.

    problems are those that the report can be on, all of them unless the arguments name some.
    """
    parser = argparse.ArgumentParser(prog=f"python -m studies.reports.{name}", description=description)
    parser.add_argument("--out", type=Path, default=Path("runs/reports"), help="folder of models and measurements")
    parser.add_argument("--docs", type=Path, default=Path("studies/docs"), help="folder of the page")
    parser.add_argument("--problems", nargs="+", choices=problems, default=problems, help="data sets to report on")
    parser.add_argument("--kept", action="store_true", help="write what has been measured so far, measure nothing more")
    parser.add_argument("--quick", action="store_true", help="a smoke test: tiny networks, few samples")
    args = parser.parse_args(arguments)
    page = Page(args.docs, name, title)
    with anisoflight.serve(data=args.out / "data") as client:
        cells = Cells(args.out / "cells.jsonl", args.kept)
        yield Command(client, cells, page, [PROBLEMS[problem] for problem in args.problems], args.quick)
        page.heading("How this was made")
        page.text(_provenance(client, _typed(parser.prog, args, problems)))
    print(page.write())


def _typed(prog: str, args: argparse.Namespace, problems: Sequence[str]) -> str:
    """The command as it would be typed again; where files lie is left out, for it changes no number."""
    words = [prog]
    if list(args.problems) != list(problems):
        words += ["--problems", *args.problems]
    return " ".join(words + [f"--{flag}" for flag in ("kept", "quick") if getattr(args, flag)])


def _provenance(client: anisoflight.Client, typed: str) -> str:
    """The command, the versions and the machine, in a sentence."""
    info = client.info()
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("numpy", "scikit-learn", "pyarrow"))
    return (
        f"`{typed}`, written with server {info['version']} on {info['device']['name']}, {platform.machine()}, "
        f"{os.cpu_count()} cores; Python {platform.python_version()}, {versions}. Networks and schedules have seed 1 "
        "where the CSV files name none; so do those of the samples."
    )
