"""``python -m anisoflight.fleet``: recipes on a cluster of Ray, every distinct stage once."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ..program import ended, exit_with, path_of
from ..recipe.recipe import load
from ..recipe.stages import Place, stages_of
from .recipes import Cluster, do_all, graph

if TYPE_CHECKING:
    from collections.abc import Sequence

EXAMPLE = """example:
    python -m anisoflight.fleet configs/cifar10/*ct.yaml --data /shared/data --features inception-2015-12-05.pt

What is there is kept: the same command goes on after an interrupt or the loss of a node. docs/scale.md has the rest."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    style = argparse.RawDescriptionHelpFormatter
    root = argparse.ArgumentParser(
        prog="python -m anisoflight.fleet", description=__doc__, epilog=EXAMPLE, formatter_class=style
    )
    root.add_argument("recipes", metavar="FILE", nargs="+", help="recipes, as python -m anisoflight.recipe takes them")
    said = "data folder, by the same path on every node (default %(default)s)"
    root.add_argument("--data", metavar="DIR", type=path_of, default=path_of("data"), help=said)
    root.add_argument("--features", help="network of the distances; without one none are measured")
    root.add_argument("--trust", action="store_true", help="load a pickle, which executes code that it holds")
    said = "actors, each with a server, that the distances of one method are measured by (default %(default)s)"
    root.add_argument("--actors", metavar="N", type=int, default=1, help=said)
    said = "the cluster (default: what RAY_ADDRESS names, else one of this machine alone)"
    root.add_argument("--ray-address", metavar="URL", default="", help=said)
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    """Do the recipes: 0, 1 of a named error, 130 if interrupted."""
    args = parser().parse_args(arguments)

    def run() -> None:
        data = args.data.resolve()
        data.mkdir(parents=True, exist_ok=True)
        place = Place(data, args.features or "FEATURES", args.trust)
        steps = graph(stages_of(recipe, place) for recipe in load(args.recipes))
        do_all(steps, Cluster(data, Path.cwd(), args.actors, args.ray_address), bool(args.features))

    return ended(run, interrupted="interrupted; the same command goes on with what is left")


if __name__ == "__main__":
    exit_with(main)
