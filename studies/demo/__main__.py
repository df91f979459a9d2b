"""``python -m studies.demo``: train, learn schedules, sample, and write a report that stands on its own."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import anisoflight

from . import digits, patches
from .checks import Checks
from .report import Report, layout
from .stages import Clock

if TYPE_CHECKING:
    from collections.abc import Sequence

SHORT = "digits and few; about four minutes on two cores (FULL=1 or --full: patches, too, in about 15)"
FULL = "digits and patches; about 15 minutes on two cores"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiments; 0, or 1 if something is broken, whatever the network reaches."""
    parser = argparse.ArgumentParser(prog="python -m studies.demo", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="seed of training and sampling (default 1)")
    parser.add_argument("--out", type=Path, default=Path("runs/demo"), help="folder of the report and the models")
    parser.add_argument("--full", action="store_true", help="all rows of digits, and anisotropic schedules on patches")
    args = parser.parse_args(argv)

    started = time.perf_counter()
    checks, clock, report = Checks(), Clock(), Report("anisoflight: few evaluations and learned schedules on real data")
    path = args.out / "report.html"
    args.out.mkdir(parents=True, exist_ok=True)
    with anisoflight.serve(data=args.out / "data") as client:
        info = client.info()
        print(f"server {info['version']} on {info['device']['name']}: {FULL if args.full else SHORT}", flush=True)
        table = digits.run(client, report, checks, clock, args.seed, path, full=args.full)
        if args.full:
            report.write(path)
            print(f"   digits: {path.resolve()}", flush=True)
            table = patches.run(client, report, checks, clock, args.seed)
        before = digits.redraw(client, args.seed)
    with clock.stage("the server again, on what it stored"), anisoflight.serve(data=args.out / "data") as client:
        differ = int(np.count_nonzero(digits.redraw(client, args.seed) != before))
    checks.at_most("digits: pixels of few that differ after a restart of the server", differ, 0, required=True)
    seconds = time.perf_counter() - started

    report.heading("Thresholds")
    report.text("These hold on every network. If one does not, something is broken, and the command fails.")
    report.checks([check for check in checks.items if check.required])
    report.text("These depend on the network, so on the seed. They are reported, met or not.")
    report.checks([check for check in checks.items if not check.required])
    report.heading("Time")
    report.table(clock.table(), "The stages, on this machine.")
    where = f"server {info['version']} on {info['device']['name']}, {platform.machine()}, {os.cpu_count()} cores"
    report.text(f"Seed {args.seed}; {where}; {seconds / 60:.1f} minutes in all.")
    report.summary(
        checks,
        "A schedule says how much noise an image has at each time of sampling. Here samplers for few evaluations and "
        "schedules are found for networks that are already trained, and compared with EDM's and with solvers for which "
        "nothing is learned, at the same number of evaluations.",
        "These are small images and one network of each kind: docs/results.md says what of it holds over networks.",
    )
    report.write(path)
    print(layout(table).to_string(index=False), *checks.items, sep="\n")
    print(f"{path.resolve()}  ({seconds / 60:.1f} min)")
    if checks.broken:
        print("broken:", *[check.claim for check in checks.broken], sep="\n  ", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
