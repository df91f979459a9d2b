"""``python -m anisoflight.fid``: reference statistics, and FID of samples."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ..program import add_server, ended, exit_with, path_of
from ..wire.calls import DEFAULT_LOCATION
from . import commands
from .measure import Pace
from .measurement import METRICS

if TYPE_CHECKING:
    from collections.abc import Sequence

EXAMPLES = {
    "ref": "python -m anisoflight.fid ref --dataset cifar10 --features inception.pkl --trust --out cifar10.npz",
    "calc": "python -m anisoflight.fid calc --model cifar10 --schedule pca --second-point endpoint --nfe cifar10\n"
    "    --seeds 0-49999,50000-99999,100000-149999 --ref cifar10.npz --features inception.pkl --trust\n"
    "    --benchmark cifar10 --method pca --out results.jsonl",
    "merge": "python -m anisoflight.fid merge shard-*.npz --out results.jsonl",
}
EPILOG = "features: a network's file (.pkl of EDM with --trust, .pt, .torchscript, .onnx), or for small images, and\n"
EPILOG += "not FID: pixels, pca-N, classifier. docs/fid.md explains every number."


def parser() -> argparse.ArgumentParser:
    """The command line."""
    root = argparse.ArgumentParser(prog="python -m anisoflight.fid", description=__doc__)
    commands_of = root.add_subparsers(metavar="COMMAND", required=True)
    _ref(_command(commands_of, "ref", "reference statistics of real images, as EDM's npz {mu, sigma}", commands.ref))
    _calc(_command(commands_of, "calc", "distances of samples, or of images in files, to a reference", commands.calc))
    _merge(_command(commands_of, "merge", "rows of results from the shards of calc --shard", commands.merge_shards))
    return root


def _command(group: argparse._SubParsersAction, name: str, about: str, run: object) -> argparse.ArgumentParser:
    text = f"example:\n    {EXAMPLES[name]}" + (f"\n\n{EPILOG}" if name in ("ref", "calc") else "")
    style = argparse.RawDescriptionHelpFormatter
    command = group.add_parser(name, help=about, description=about, epilog=text, formatter_class=style)
    command.set_defaults(run=run)
    if name == "merge":
        command.add_argument("--quiet", action="store_true", help="no progress bars")
        return command
    server = command.add_argument_group("server")
    add_server(server, DEFAULT_LOCATION, "location (default %(default)s)")
    pace = command.add_argument_group("pace")
    count = {"type": _positive, "metavar": "N"}
    said = "images between two checkpoints, of a request to the server, and of a stretch (default %(default)s)"
    pace.add_argument("--checkpoint", **count, default=Pace.checkpoint, help=said)
    pace.add_argument("--quiet", action="store_true", help="no progress bars")
    return command


def _ref(command: argparse.ArgumentParser) -> None:
    source = command.add_mutually_exclusive_group(required=True)
    _images(source)
    _features(command, required=True)
    command.add_argument("--rows", action="store_true", help="keep the features too, for other metrics")
    command.add_argument("--out", metavar="NPZ", type=path_of, required=True, help="the reference")


def _calc(command: argparse.ArgumentParser) -> None:
    source = command.add_mutually_exclusive_group(required=True)
    source.add_argument("--model", help="samples of this model")
    _images(source)
    _sampling(command)
    _features(command, required=False)
    measured = command.add_argument_group("what is measured")
    measured.add_argument("--ref", metavar="NPZ", type=path_of, required=True, help="the reference")
    said = f"comma-separated, of {', '.join(METRICS)} (default fid; the others need a reference with --rows)"
    measured.add_argument("--metrics", type=_metrics, default=("fid",), help=said)
    measured.add_argument("--allow-fewer", action="store_true", help="measure fewer than 50,000 images; rows say so")
    measured.add_argument("--benchmark", help="the table's data set: cifar10, afhqv2, ffhq, imagenet64, or any name")
    measured.add_argument("--method", help="the table's row (default: from schedule and solver)")
    measured.add_argument("--out", metavar="FILE", type=path_of, required=True, help="rows of results (JSONL)")
    shared = command.add_argument_group("with others (docs/scale.md)")
    said = "look at the stretches of shard I of N, I = 0 … N−1, alone; --out is the shard's file (npz), for merge"
    shared.add_argument("--shard", metavar="I/N", help=said)
    said = "N actors of Ray, each with a server of its own on --data, look at the stretches (anisoflight[fleet])"
    shared.add_argument("--ray", metavar="N", type=_positive, default=0, help=said)
    said = "the cluster (default: what RAY_ADDRESS names, else one of this machine alone)"
    shared.add_argument("--ray-address", metavar="URL", help=said)
    shared.add_argument("--ray-cpus", metavar="X", type=float, default=1, help="CPUs of an actor (default 1)")
    said = "GPUs of an actor (default: 1 where the cluster has any, else 0)"
    shared.add_argument("--ray-gpus", metavar="X", type=float, help=said)
    said = "data folder of the models, by the same path on every node (default %(default)s)"
    shared.add_argument("--data", metavar="DIR", type=path_of, default=path_of("data"), help=said)


def _merge(command: argparse.ArgumentParser) -> None:
    command.add_argument("shards", metavar="SHARD", nargs="+", type=path_of, help="files of calc --shard, all of them")
    said = "the reference (default: the file that the shards name)"
    command.add_argument("--ref", metavar="NPZ", type=path_of, help=said)
    command.add_argument("--out", metavar="JSONL", type=path_of, required=True, help="rows of results")


def _images(group: argparse._MutuallyExclusiveGroup) -> None:
    group.add_argument("--dataset", help="images of this data set of the server")
    group.add_argument("--images", metavar="PATH", type=path_of, help="images of a folder, a .zip or an .npz")


def _sampling(command: argparse.ArgumentParser) -> None:
    drawn = command.add_argument_group("sampling (what is left out takes the server's default)")
    drawn.add_argument("--seeds", metavar="A-B[,C-D…]", default="0-49999", help="blocks of seeds (default %(default)s)")
    drawn.add_argument("--nfe", metavar="LIST", help="evaluations, 9,35, or the paper's list for a data set: cifar10 …")
    drawn.add_argument("--steps", metavar="LIST", help="solver steps, 5,18, instead")
    drawn.add_argument("--schedule", type=commands.value_of, help='a name, or JSON such as {"edm": {"T": 400}}')
    drawn.add_argument("--solver")
    drawn.add_argument("--order", type=_positive)
    drawn.add_argument("--second-point", choices=("midpoint", "endpoint"), help="of heun; published FIDs: endpoint")
    drawn.add_argument("--grid", type=commands.value_of, help="a name, or JSON")
    said = "any other option of Sample, its value JSON or a name: S_churn=40"
    drawn.add_argument(
        "--option", metavar="NAME=VALUE", type=commands.option_of, action="append", default=[], help=said
    )
    said = "the class of all samples, −1 none (default: drawn by the server)"
    drawn.add_argument("--class", metavar="N", dest="class_label", type=int, help=said)


def _features(command: argparse.ArgumentParser, required: bool) -> None:
    seen = command.add_argument_group("features")
    said = "a network's file, or pixels, pca-N, classifier" + (
        "" if required else " (default: the reference's built-in)"
    )
    seen.add_argument("--features", required=required, help=said)
    seen.add_argument("--trust", action="store_true", help="load a pickle, which executes code that it holds")
    seen.add_argument("--device", default="auto", help="of the network: auto, cpu, cuda, cuda:1 (default auto)")
    seen.add_argument("--batch", type=_positive, metavar="N", default=Pace.batch, help="images at a time (%(default)s)")


def _positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise ValueError
    return number


def _metrics(text: str) -> tuple[str, ...]:
    asked = text.split(",")
    if unknown := [name for name in asked if name not in METRICS]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is not one of {', '.join(METRICS)}")
    return tuple(name for name in METRICS if name in asked or name == "fid")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command: 0, 1 of a named error, 130 if interrupted."""
    args = parser().parse_args(arguments)
    return ended(lambda: args.run(args), interrupted="interrupted; the same command goes on from the last checkpoint")


if __name__ == "__main__":
    exit_with(main)
