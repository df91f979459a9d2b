"""``python -m studies.reports.alone``: anisotropy alone, on plain networks; part of the fair comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import fair, fairpage
from .command import command

if TYPE_CHECKING:
    from collections.abc import Sequence

NAMES = {fairpage.BASELINE[1], fair.FEW, *(name for pair in fairpage.ALONE for name in pair)}
ARMS = tuple(arm for arm in fair.ARMS if arm.kind == fair.PLAIN and arm.name in NAMES)
MEASURED = """`make report-alone` writes this page; [README.md](README.md) says what it means. It is the part of
[the fair comparison](fair.md) that asks what a step of its own for every frequency gains where everything else is the
same: plain networks alone, trained by the same recipe with the same seeds, the same images, latents and distances. The
networks are trainings of this page's own. `fields16` are smooth fields with steep spectra that are not Gaussian
(`studies/demo/data.py`)."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write studies/docs/alone.md."""
    with command("alone", "Anisotropy alone", __doc__, arguments, list(fair.FULL_SIZE.counts), choosing=True) as run:
        size = fair.QUICK if run.quick else fair.FULL_SIZE
        run.page.text(MEASURED, fairpage.DEFINED)
        for problem in run.problems:
            measured = fair.measure(run.client, problem, run.cells, size, run.chosen, ARMS)
            fairpage.write_alone(run.page, problem.name, measured.rows)


if __name__ == "__main__":
    main()
