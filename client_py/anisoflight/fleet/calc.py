"""``fid calc --ray``: rows whose stretches a fleet looks at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..fid.measure import bounds
from ..fid.measurement import Job, require_enough
from ..fid.shards import Elsewhere
from .sampling import Fleet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..fid.measure import Pace
    from ..fid.measurement import Measurement
    from .workers import Sampled, Setup


def measured(
    measurement: Measurement,
    wanted: Sequence[tuple[Sampled, dict[str, Any]]],
    named: tuple[str, str],
    setup: Setup,
    pace: Pace,
    allow_fewer: bool,
    **resources: Any,
) -> list[dict[str, Any]]:
    """The rows of samples, each with its {"nfe": …} or {"steps": …}, as one run has them."""
    method, benchmark = named
    sampled = [one for one, _ in wanted]
    counted = [Job(Elsewhere({"source": {}, "count": one.count}), method, benchmark) for one in sampled]
    require_enough(counted, allow_fewer)
    with Fleet(setup=setup, **resources) as fleet:
        identities, versions = fleet.described(sampled)
        jobs = [
            Job(
                Elsewhere({"source": identity, "count": one.count}),
                method,
                benchmark,
                asked,
                versions,
                fleet.looks(row),
            )
            for row, ((one, asked), identity) in enumerate(zip(wanted, identities, strict=True))
        ]
        left = [(row, measurement.left(job)) for row, job in enumerate(jobs)]
        units = [
            (row, start, stop)
            for row, first in left
            if first is not None
            for start, stop in bounds(first, sampled[row].count, pace.checkpoint)
        ]
        fleet.expect(sampled, identities, units, pace.batch)
        return measurement.rows(jobs)
