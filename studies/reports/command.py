"""The command of a report: its arguments, its server, and the page that it ends in."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import shlex
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
class Chosen:
    """What a report is to measure now; of the rest it has what is kept."""

    samplers: Sequence[str] | None = None
    """Parts of their names; None means all."""
    nfes: Sequence[int] | None = None
    seeds: Sequence[int] | None = None
    """Of networks."""

    @property
    def everything(self) -> bool:
        return self == Chosen()

    def sampler(self, name: str) -> bool:
        return self.samplers is None or any(part in name for part in self.samplers)

    def nfe(self, nfe: int) -> bool:
        return self.nfes is None or nfe in self.nfes

    def seed(self, seed: int) -> bool:
        return self.seeds is None or seed in self.seeds


@dataclass(frozen=True)
class Command:
    """What a report works with while its command runs."""

    client: anisoflight.Client
    cells: Cells
    page: Page
    problems: list[Problem]
    quick: bool
    """Whether this is a smoke test: tiny networks, few samples."""
    chosen: Chosen


@contextmanager
def command(
    name: str,
    title: str,
    description: str | None,
    arguments: Sequence[str] | None,
    problems: Sequence[str],
    *,
    choosing: bool = False,
) -> Iterator[Command]:
    """Parse the arguments (default: the process's own), serve the models, and write the page in the end.

    problems are those that the report can be on, all of them unless the arguments name some. choosing: whether parts of
    it can be measured alone, which `Command.chosen` tells.
    """
    parser = argparse.ArgumentParser(prog=f"python -m studies.reports.{name}", description=description)
    parser.add_argument("--out", type=Path, default=Path("runs/reports"), help="folder of models and measurements")
    parser.add_argument("--docs", type=Path, default=Path("studies/docs"), help="folder of the page")
    parser.add_argument("--problems", nargs="+", choices=problems, default=problems, help="data sets to report on")
    parser.add_argument("--kept", action="store_true", help="write what has been measured so far, measure nothing more")
    if choosing:
        parser.add_argument(
            "--samplers", nargs="+", metavar="PART", help="measure only samplers whose names contain one"
        )
        parser.add_argument("--nfe", nargs="+", type=int, help="measure only these numbers of evaluations")
        parser.add_argument("--seeds", nargs="+", type=int, help="measure only the networks of these seeds")
    parser.add_argument("--quick", action="store_true", help="a smoke test: tiny networks, few samples")
    args = parser.parse_args(arguments)
    chosen = Chosen(args.samplers, args.nfe, args.seeds) if choosing else Chosen()
    page = Page(args.docs, name, title)
    with anisoflight.serve(data=args.out / "data") as client:
        cells = Cells(args.out / "cells.jsonl", args.kept)
        yield Command(client, cells, page, [PROBLEMS[problem] for problem in args.problems], args.quick, chosen)
        page.heading("How this was made")
        page.text(_provenance(client, _typed(parser.prog, args, problems)))
    print(page.write())


def _typed(prog: str, args: argparse.Namespace, problems: Sequence[str]) -> str:
    """The command as it would be typed again; where files lie is left out, for it changes no number."""
    words = [prog]
    if list(args.problems) != list(problems):
        words += ["--problems", *args.problems]
    for flag in ("samplers", "nfe", "seeds"):
        values = getattr(args, flag, None)
        words += [f"--{flag}", *(shlex.quote(str(value)) for value in values)] if values else []
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
