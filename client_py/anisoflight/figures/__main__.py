"""``python -m anisoflight.figures MODEL --out FILE``: draw `paper` of a model's schedule, or `reverse`."""

import argparse
from collections.abc import Sequence

from matplotlib import pyplot

from ..serving.commands import add_server, connected, ended, exit_with, path_of
from . import paper, reverse


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw: 0, 1 of a named error, 2 of wrong usage, 130 if interrupted."""
    parser = argparse.ArgumentParser(prog="python -m anisoflight.figures", description=paper.__doc__)
    parser.add_argument("schedule", help="name of a schedule, or of a model that has one")
    parser.add_argument("--reverse", action="store_true", help="draw a model's reverse process instead")
    parser.add_argument("--label", type=int, metavar="Y", help="its class")
    parser.add_argument("--out", type=path_of, required=True, metavar="FILE", help="the picture")
    add_server(parser.add_argument_group("where"), "grpc://127.0.0.1:8815", "location of the server")
    args = parser.parse_args(arguments)

    def draw() -> None:
        with connected(args) as client:
            name, label = args.schedule, args.label
            figure = reverse(client, name, label=label) if args.reverse else paper(client.schedule(name))
        args.out.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(args.out)
        pyplot.close(figure)

    return ended(draw)


if __name__ == "__main__":
    exit_with(main)
