"""``python -m anisoflight.compare``: `Client.compare` as a table or as JSON. ``anisoflight compare`` runs it."""

import argparse
import json
from collections.abc import Sequence
from itertools import product
from typing import Any

import pandas as pd

from ..errors import stderr
from ..files.temporary import whole_file
from ..program import add_folder, ended, exit_with, folder_server, numbers, path_of, positive, value_of, words

ABOUT = """Compare samples with every solver on every grid of every schedule at every number of evaluations, from the
same latents, and print a row for each:

  ODE ERROR  100 x the rms distance per pixel to the converged solution of the same path (60 steps of Heun's method on
             EDM's grid) from the same latents. Schedules with several subspaces have other paths: compare their Fréchet
             distances instead.
  FRECHET    with --dataset: the Fréchet distance of the samples to its images, on the leading principal components of
             their pixels; mean and half the range over the seeds. Every row draws the same latents.

A solver is NAME or NAME:FIELD=VALUE:..., with the fields of the request Sample. If a
solver cannot run, such as with too few evaluations, its row says why.
"""
EXAMPLES = """examples:
  anisoflight compare --model digits --solvers heun:second_point=endpoint,ipndm,ab --nfe 5,9 --grids schedule,edm
  anisoflight compare --model digits --solvers ab:order=2 --nfe 5 --schedules own,fast --dataset digits --out table.csv
"""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    raw = argparse.RawDescriptionHelpFormatter
    root = argparse.ArgumentParser("anisoflight compare", description=ABOUT, epilog=EXAMPLES, formatter_class=raw)
    root.add_argument("--model", required=True, help="name of the model")
    root.add_argument("--solvers", type=words, default="heun,ab,ipndm,dpmpp2m", help="list (default %(default)s)")
    root.add_argument("--nfe", type=numbers, default="5,9", help="list of evaluations (default %(default)s)")
    root.add_argument("--grids", type=words, default="schedule", help="list of grids and of tables of noise levels")
    about = "list of names, edm, or own for the model's own (default %(default)s)"
    root.add_argument("--schedules", type=words, default="own", help=about)
    root.add_argument("--dataset", metavar="NAME", help="data set of the Fréchet distance (default: none is measured)")
    for name, default, what in (
        ("probes", 256, "latents of the ODE error"),
        ("components", 40, "principal components of the Fréchet distance"),
        ("samples", 2000, "images per seed of the Fréchet distance"),
        ("seeds", 3, "repetitions of the Fréchet distance"),
    ):
        root.add_argument(f"--{name}", metavar="N", type=positive, default=default, help=f"{what} (default {default})")
    guidance = root.add_argument_group("guidance, as in Sample")
    guidance.add_argument("--guidance", metavar="S", type=float)
    guidance.add_argument("--guidance-interval", metavar="JSON", type=json.loads, help="such as [0.2,3]")
    guidance.add_argument("--guide", metavar="MODEL")
    root.add_argument("--out", metavar="FILE", type=path_of, help="file for the table as CSV")
    root.add_argument("--json", action="store_true", help="print JSON")
    add_folder(root.add_argument_group("the server"))
    return root


def solver_of(word: str) -> dict[str, Any]:
    """The fields of Sample for NAME:FIELD=VALUE:…; a value that is valid JSON, such as a number, is parsed."""
    name, *parts = word.split(":")
    pairs = [part.split("=", 1) for part in parts]
    if not all(len(pair) == 2 and pair[0] for pair in pairs):
        raise ValueError(f"--solvers must be NAME:FIELD=VALUE:… such as ab:order=2, got {word!r}")
    return {"solver": name, **{field: value_of(value) for field, value in pairs}}


def measure(args: argparse.Namespace) -> pd.DataFrame:
    """The comparison, with schedules, grids and solvers named as on the command line."""
    same = ("model", "nfe", "probes", "samples", "seeds", "guidance", "guidance_interval", "guide")
    options: dict[str, Any] = {name: getattr(args, name) for name in same}
    options |= {"reference": args.dataset, "features": args.components, "progress": stderr.isatty()}
    options["solvers"] = [solver_of(word) for word in args.solvers]
    options["grids"] = [{"table": word} if word.startswith("ays-") else word for word in args.grids]
    options["schedules"] = [None if word == "own" else word for word in args.schedules]
    with folder_server(args) as client:
        frame = client.compare(**options)
    cells = product(args.schedules, args.grids, args.solvers, args.nfe)
    frame["schedule"], frame["grid"], frame["solver"], _ = zip(*cells, strict=True)
    return frame


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows for programs; None for what was not measured."""
    return frame.astype(object).where(frame.notna(), None).to_dict(orient="records")


def table(frame: pd.DataFrame) -> str:
    """The rows for people."""
    rows = [["SCHEDULE", "GRID", "SOLVER", "NFE", "ODE ERROR", "FRECHET", "S/1000"]]
    for row in records(frame):
        cells = [row["schedule"], row["grid"], row["solver"]]
        if row["code"]:
            rows.append([*cells, str(row["nfe"]), "-", "-", f"-  {row['message']}"])
            continue
        frechet = "-" if row["frechet"] is None else f"{row['frechet']:.4g} ± {row['frechet_spread']:.2g}"
        rows.append([*cells, str(row["evaluations"]), f"{row['ode_error']:.4g}", frechet, f"{row['seconds']:.3g}"])
    widths = [max(len(row[i]) for row in rows) + 2 for i in range(len(rows[0]) - 1)]
    return "\n".join("".join(map(str.ljust, row, [*widths, 0])) for row in rows)


def run(args: argparse.Namespace) -> None:
    """Compare, then print the table or write it to a file."""
    if args.out is not None and not args.out.absolute().parent.is_dir():
        raise ValueError(f"{args.out} cannot be written: there is no folder {args.out.parent}")
    frame = measure(args)
    if args.out is not None:
        with whole_file(args.out) as file:
            frame.to_csv(file, index=False)
    print(json.dumps(records(frame), indent=2, ensure_ascii=False) if args.json else table(frame))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; the exit status."""
    args = parser().parse_args(arguments)
    return ended(lambda: run(args))


if __name__ == "__main__":
    exit_with(main)
