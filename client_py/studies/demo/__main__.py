"""``python -m studies.demo``: train, learn schedules, sample, and write a report that stands on its own."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from pathlib import Path

import anisoflight

from . import digits, patches
from .checks import Checks
from .report import Report, layout


def main() -> int:
    """Run both experiments; 0 if every threshold was met, 1 if not, 130 if interrupted."""
    parser = argparse.ArgumentParser(prog="python -m studies.demo", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="seed of training and sampling (default 1)")
    parser.add_argument("--out", type=Path, default=Path("runs/demo"), help="folder of the report and the models")
    args = parser.parse_args()

    started = time.perf_counter()
    checks, report = Checks(), Report("anisoflight: learned noise schedules on real data")
    path = args.out / "report.html"
    args.out.mkdir(parents=True, exist_ok=True)
    with anisoflight.serve(data=args.out / "data") as client:
        info = client.info()
        print(f"server {info['version']} on {info['device']['name']}", flush=True)
        table = patches.run(client, report, checks, args.seed, path)
        digits.run(client, report, checks, args.seed)
    seconds = time.perf_counter() - started

    report.heading("Thresholds")
    report.text(
        "What a correct implementation must reach on these two experiments. A missed threshold makes the command fail."
    )
    report.checks(checks)
    where = f"server {info['version']} on {info['device']['name']}, {platform.machine()}, {os.cpu_count()} cores"
    report.text(f"Seed {args.seed}; {where}; {seconds / 60:.1f} minutes in all.")
    report.summary(
        checks,
        "A schedule says how much noise an image has at each time of sampling. Here one is computed or learned for a "
        "network that is already trained, on digits and on patches of photographs, and compared with EDM's and with "
        "solvers for which nothing is learned, at the same number of evaluations.",
        "These are small images and one network of each kind: docs/results.md says what of it holds over networks.",
    )
    report.write(path)
    print(layout(table).to_string(index=False), *checks.items, sep="\n")
    print(f"{path.resolve()}  ({seconds / 60:.1f} min)")
    if checks.missed:
        print(
            f"{len(checks.missed)} threshold(s) missed:", *[c.claim for c in checks.missed], sep="\n  ", file=sys.stderr
        )
        return 1
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
