"""``python -m studies.gallery``: train small models, learn schedules, and draw every figure on one page."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import matplotlib as mpl

import anisoflight


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m studies.gallery", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/figures"), help="folder of the page and its pictures")
    parser.add_argument("--seed", type=int, default=1, help="seed of training and noise (default 1)")
    parser.add_argument("--scale", type=float, default=1.0, help="stretches the training (default 1)")
    args = parser.parse_args()
    if args.scale <= 0:
        parser.error("--scale must be positive")
    mpl.use("agg")
    from .page import draw

    started = time.perf_counter()
    with anisoflight.serve(data=args.out / "data") as client:
        path = draw(client, args.out, args.seed, args.scale)
    print(f"{path.resolve()}  ({(time.perf_counter() - started) / 60:.1f} min)")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
