"""``python -m anisoflight.convert SOURCE TARGET``: an EDM checkpoint as a model folder, without executing it."""

import argparse

from ..serving.commands import ended, exit_with, path_of
from . import convert

_LICENCE = (
    "EDM's published weights are licensed CC BY-NC-SA 4.0: not for commercial use, with attribution, derived works\n"
    "under the same terms. The conversion does not change that."
)
_EXAMPLE = """example:
  python -m anisoflight.convert edm-cifar10-32x32-cond-vp.pkl data/models/cifar10
  anisoflight sample --data data --model cifar10 --n 64 --steps 18 --out cifar10.png
"""


def main(arguments: list[str] | None = None) -> int:
    """Convert: 0, 1 of a named error, 2 of wrong usage, 130 if interrupted."""
    parser = argparse.ArgumentParser(
        prog="python -m anisoflight.convert",
        description="Convert an EDM checkpoint to a model folder. Nothing in the checkpoint is executed.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("source", type=path_of, help="pickle of EDM (.pkl), or file of torch.save (.pt)")
    parser.add_argument("target", type=path_of, help="model folder to write, such as data/models/NAME")
    parser.add_argument("--key", help="network of the checkpoint (default ema, else state_dict)")
    parser.add_argument("--config", type=path_of, help="config.json of a checkpoint that is a bare state dict")
    parser.add_argument("--replace", action="store_true", help="replace an existing model folder")
    parser.add_argument("--no-verify", action="store_true", help="do not compare the weights with the configuration")
    parser.add_argument(
        "--binary", type=path_of, help="anisoflight program for the comparison (default: that of serve)"
    )
    args = parser.parse_args(arguments)

    def run() -> None:
        named = {"key": args.key, "config": args.config, "replace": args.replace}
        made = convert(args.source, args.target, **named, check=not args.no_verify, binary=args.binary)
        config, target = made.config, made.target
        values = "parameters" if made.verified else "values"
        compared = "names and shapes agree with" if made.verified else "not compared with"
        classes = f"{config['label_dim']} classes" if config["label_dim"] else "unconditional"
        size = "×".join(str(config[name]) for name in ("img_resolution", "img_resolution", "img_channels"))
        print(f"{target}: {config['model_type']}, images {size}, {classes}")
        print(f"  {made.parameters:,} {values} in {made.tensors} tensors, {compared} the configuration")
        print(f"  sha256 of {args.source.name}: {made.source_sha256}")
        print(f"  sha256 of model.safetensors: {made.weights_sha256}")
        print(_LICENCE)
        print("Next, for a folder DATA/models/NAME: anisoflight sample --data DATA --model NAME --out NAME.png")

    return ended(run)


if __name__ == "__main__":
    exit_with(main)
