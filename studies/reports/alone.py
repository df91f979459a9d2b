"""``python -m studies.reports.alone``: anisotropy alone, on plain networks; part of the fair comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import fair, fairpage
from .command import command

if TYPE_CHECKING:
    from collections.abc import Sequence

NAMES = {fairpage.BASELINE[1], fair.FEW, *(name for pair in fairpage.ALONE for name in pair)}
ARMS = tuple(arm for arm in fair.ARMS if arm.kind == fair.PLAIN and arm.name in NAMES)
MEASURED = """\
`make report-alone` writes this page; [README.md](README.md) reads it. It asks what a step for every frequency gains
when everything else is the same. All networks are plain and trained for this page, by the recipe and with the seeds of
[the fair comparison](fair.md), which has the same images, latents and distances and defines rows and entries.
`fields16` are smooth fields with steep spectra that are not normal (`studies/demo/data.py`)."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write studies/docs/alone.md."""
    with command("alone", "Anisotropy alone", __doc__, arguments, list(fair.FULL_SIZE.counts)) as run:
        size = fair.QUICK if run.quick else fair.FULL_SIZE
        run.page.text(MEASURED)
        for problem in run.problems:
            measured = fair.measure(run.client, problem, run.cells, size, ARMS)
            fairpage.write_alone(run.page, problem.name, measured.rows)


if __name__ == "__main__":
    main()
