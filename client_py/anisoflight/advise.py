"""``python -m anisoflight.advise``: the recommendations of `Client.advise`. ``anisoflight advise`` runs it."""

import argparse
import json
from collections.abc import Sequence

from .errors import stderr
from .files.temporary import whole_file
from .program import add_folder, ended, exit_with, folder_server, numbers, path_of

ABOUT = """Recommend settings for a data set, each with its measurement: sigma_data, sigma_min, sigma_max, P_mean and
P_std of training; T, c and subspaces of schedules; and a sampler for each number of evaluations. They follow from the
data's Gaussian and, if a model is given, from its residual on the data. Commands that carry them out come last."""
EXAMPLE = "example: anisoflight advise cifar10 cifar10-dct --nfe 5,9 --picture advice.png"


def parser() -> argparse.ArgumentParser:
    """The command line."""
    root = argparse.ArgumentParser("anisoflight advise", description=ABOUT, epilog=EXAMPLE)
    root.add_argument("dataset", metavar="DATA", help="name of the data set")
    root.add_argument("model", metavar="MODEL", nargs="?", help="name of a model of such images")
    root.add_argument("--nfe", metavar="LIST", type=numbers, help="numbers of evaluations (default 3,5,9,18)")
    root.add_argument("--samples", metavar="N", type=int, help="images per noise level for a model (default 256)")
    root.add_argument("--seed", metavar="N", type=int, help="seed of these images and their noise (default 0)")
    root.add_argument("--picture", metavar="FILE", type=path_of, help="file for a figure, .png or .svg")
    root.add_argument("--json", action="store_true", help="print JSON")
    add_folder(root.add_argument_group("the server"))
    return root


def run(args: argparse.Namespace) -> None:
    """Measure, draw and print."""
    if args.picture is not None and args.picture.suffix not in (".png", ".svg"):
        raise ValueError(f"--picture must end in .png or .svg, got {args.picture}")
    with folder_server(args) as client:
        options = {name: getattr(args, name) for name in ("nfe", "samples", "seed")}
        advice = client.advise(args.dataset, args.model, progress=stderr.isatty(), **options)
    if args.picture is not None:
        with whole_file(args.picture) as file:
            advice.figure().savefig(file, format=args.picture.suffix[1:])
    print(json.dumps(advice, indent=2, ensure_ascii=False) if args.json else advice.text(shell=True))


def main(arguments: Sequence[str] | None = None) -> int:
    """Advise: 0, 1 of a named error, 2 of wrong usage, 130 if interrupted."""
    args = parser().parse_args(arguments)
    return ended(lambda: run(args))


if __name__ == "__main__":
    exit_with(main)
