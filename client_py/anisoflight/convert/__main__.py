"""``python -m anisoflight.convert SOURCE TARGET``: an EDM checkpoint as a model folder, without executing it."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from ..errors import AnisoflightError
from . import Conversion, convert

_LICENCE = (
    "EDM's published weights are licensed CC BY-NC-SA 4.0: not for commercial use, with attribution, and what is made\n"
    "of them under the same terms. The conversion changes nothing about that."
)
_EXAMPLE = """example:
  python -m anisoflight.convert edm-cifar10-32x32-cond-vp.pkl data/models/cifar10
  anisoflight sample --data data --model cifar10 --n 64 --steps 18 --out cifar10.png
"""


def main(arguments: list[str] | None = None) -> int:
    """Convert as the command line says; 0 where that succeeded, 1 where not, 2 on wrong usage."""
    parser = argparse.ArgumentParser(
        prog="python -m anisoflight.convert",
        description="Convert an EDM checkpoint to a model folder. Nothing in the checkpoint is executed.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("source", type=Path, help="pickle of EDM (.pkl), or file of torch.save (.pt)")
    parser.add_argument("target", type=Path, help="model folder to write, such as data/models/NAME")
    parser.add_argument("--key", help="which network of the checkpoint (default ema)")
    parser.add_argument("--config", type=Path, help="config.json of a checkpoint that is a bare state dict")
    parser.add_argument("--replace", action="store_true", help="replace the model folder that is there")
    parser.add_argument("--no-verify", action="store_true", help="do not compare the weights with the configuration")
    parser.add_argument("--binary", type=Path, help="anisoflight program that compares (default: as serve finds it)")
    args = parser.parse_args(arguments)
    try:
        made = convert(
            args.source,
            args.target,
            key=args.key,
            config=args.config,
            replace=args.replace,
            check=not args.no_verify,
            binary=args.binary,
        )
    except (AnisoflightError, OSError) as error:
        print(f"{parser.prog}: {args.source}: {error}", file=sys.stderr)
        return 1
    print(_report(made, args.source))
    return 0


def _report(made: Conversion, source: Path) -> str:
    values = "parameters" if made.verified else "values"
    compared = "names and shapes agree with" if made.verified else "not compared with"
    return "\n".join(
        [
            f"{made.target}: {made.summary}",
            f"  {made.parameters:,} {values} in {made.tensors} tensors, {compared} the configuration",
            f"  sha256 of {source.name}: {made.source_sha256}",
            f"  sha256 of model.safetensors: {made.weights_sha256}",
            _LICENCE,
            _next(made.target),
        ]
    )


def _next(target: Path) -> str:
    """The command to type next."""
    name = target.name
    if target.parent.name != "models" or not re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,63}", name):
        return "Next: move the folder to DATA/models/NAME, DATA the server's --data, NAME of a-z, 0-9, . _ and -"
    return f"Next: anisoflight sample --data {target.parent.parent} --model {name} --n 64 --steps 18 --out {name}.png"


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
