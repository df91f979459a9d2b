"""``python -m anisoflight.generate``: samples as PNG files, in the spelling of EDM's generate.py.

    python -m anisoflight.generate --network cifar10 --outdir out --seeds 0-63 --steps 18 --subdirs --batch 64

Seeds, file names and options are EDM's; the network is a model of the server. A seed's image is the server's own: EDM
draws other noise for it. Files that are there stay, so that the same command goes on where it was interrupted.
"""

from __future__ import annotations

import argparse
import os
import re
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import BadRequestError
from .fid.sources import ServerSamples
from .images import png
from .program import add_server, connected, ended, exit_with
from .wire.calls import DEFAULT_LOCATION
from .wire.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .images import Pixels

_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


def seeds_of(text: str) -> list[tuple[int, int]]:
    """EDM's lists of seeds, as runs (first, last) in order.

    >>> seeds_of("1,2,5-10")
    [(1, 2), (5, 10)]
    """
    seeds: set[int] = set()
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise argparse.ArgumentTypeError(f"seeds must be numbers and ranges such as 1,2,5-10, got {part!r}")
        seeds.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    runs: list[tuple[int, int]] = []
    for seed in sorted(seeds):
        if runs and runs[-1][1] == seed - 1:
            runs[-1] = (runs[-1][0], seed)
        else:
            runs.append((seed, seed))
    return runs


def options_of(args: argparse.Namespace) -> dict[str, Any]:
    """Sample's options for EDM's: its levels, and its Heun with the end point, unless a schedule is given."""
    options: dict[str, Any] = {"steps": args.steps, "solver": args.solver}
    if args.solver == "heun":
        options["second_point"] = "endpoint"
    given = {name: getattr(args, name) for name in ("sigma_min", "sigma_max", "rho") if getattr(args, name) is not None}
    if args.schedule is None:
        options["grid"] = {"edm": given}
    else:
        if given:
            raise BadRequestError(
                f"--{next(iter(given))} must be left out with --schedule, which has its own noise levels", "BAD_REQUEST"
            )
        options["schedule"] = args.schedule
    churn = {name: getattr(args, name) for name in ("S_churn", "S_min", "S_max", "S_noise")}
    return options | {name: value for name, value in churn.items() if value is not None}


def png_path(folder: Path, seed: int, subdirs: bool) -> Path:
    """FOLDER/000042.png, or with subdirs FOLDER/000000/000042.png: a folder for every thousand seeds.

    >>> from pathlib import Path
    >>> png_path(Path("out"), 1234, True).as_posix()
    'out/001000/001234.png'
    """
    inside = folder / f"{seed - seed % 1000:06d}" if subdirs else folder
    return inside / f"{seed:06d}.png"


def generate(sources: Sequence[ServerSamples], folder: Path, subdirs: bool, chunk: int) -> int:
    """Write the samples of all sources; files that are there stay. Returns how many were written.

    A file is whole or not there.
    """
    total = sum(source.count for source in sources)
    written = 0
    with Progress(total=total, desc="generate", unit="image") as bar, ThreadPoolExecutor() as pool:
        for source in sources:
            for start in range(0, source.count, chunk):
                stop = min(start + chunk, source.count)
                paths = [png_path(folder, source.first + i, subdirs) for i in range(start, stop)]
                if all(path.exists() for path in paths):
                    bar.update(len(paths))
                    continue
                places = iter(paths)
                for images in source.read(start, stop):
                    written += sum(pool.map(_write, islice(places, len(images)), images))
                    bar.update(len(images))
    return written


def _write(path: Path, image: Pixels) -> bool:
    if path.exists():
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_bytes(png(image))
    part.replace(path)
    return True


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog="python -m anisoflight.generate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--network", metavar="MODEL", required=True, help="a model of the server")
    made.add_argument("--outdir", metavar="DIR", type=Path, required=True, help="where to save the images")
    made.add_argument("--seeds", metavar="LIST", type=seeds_of, default="0-63", help="1,2,5-10 (default %(default)s)")
    made.add_argument("--subdirs", action="store_true", help="a folder for every 1000 seeds")
    made.add_argument("--class", metavar="N", dest="class_idx", type=int, help="class of all images (default: drawn)")
    made.add_argument("--batch", metavar="N", type=int, default=64, help="images a request (default %(default)s)")
    made.add_argument("--steps", metavar="N", type=int, default=18, help="sampling steps (default %(default)s)")
    for name, said in (("sigma_min", "lowest noise level"), ("sigma_max", "highest noise level"), ("rho", "exponent")):
        made.add_argument(f"--{name}", metavar="X", type=float, help=f"{said} of EDM's grid")
    for name in ("S_churn", "S_min", "S_max", "S_noise"):
        made.add_argument(f"--{name}", metavar="X", type=float, help="stochasticity, as EDM's")
    made.add_argument("--solver", default="heun", help="heun, euler, or another of the server's (default %(default)s)")
    made.add_argument("--schedule", metavar="NAME", help="a learned schedule, instead of EDM's grid")
    add_server(made.add_argument_group("server"), DEFAULT_LOCATION, "location (default %(default)s)")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command: 0, 1 of a named error, 130 if interrupted."""
    args = parser().parse_args(arguments)

    def run() -> None:
        options = options_of(args)
        with connected(args) as client:
            runs = [
                ServerSamples(client, args.network, first, last - first + 1, options, args.class_idx)
                for first, last in args.seeds
            ]
            written = generate(runs, args.outdir, args.subdirs, args.batch)
        print(f"{args.outdir}: {written} images written, {sum(run.count for run in runs) - written} were there")

    return ended(run, interrupted="interrupted; the same command writes what is missing")


if __name__ == "__main__":
    exit_with(main)
