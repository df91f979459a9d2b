"""Rows of results: images measured against a reference, with all that they depend on."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import operator
import platform
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..files.locks import exclusive
from ..moments import frechet_distance
from ..wire.progress import Progress
from .cells import Cells
from .errors import FidError
from .features import Features
from .neighbours import Neighbours
from .reference import Reference
from .stretches import Bounds, Look, Pace, Seen, Stretch, bounds, see, stretch_file

FULL = 50_000
"""Number of samples of a published FID."""
NEIGHBOURS = ("precision-recall", "density-coverage")
"""Metrics that compare features of images with those of the reference, one by one."""
METRICS = ("fid", *NEIGHBOURS, "ode-error")


@dataclass(frozen=True)
class Job:
    """One row: images, and the name of the row."""

    source: Mapping[str, Any]
    """Everything that the images depend on, as JSON: equal sources have equal images."""
    count: int
    look: Look = field(repr=False)
    method: str
    benchmark: str
    asked: Mapping[str, Any] = field(default_factory=dict)
    """{"nfe": …} or {"steps": …} of samples; empty for other images."""
    versions: Mapping[str, Any] = field(default_factory=dict)
    """Of the server."""
    cost: Callable[[int, int], int | None] = field(default=lambda *_: 0, repr=False)
    """Evaluations of the network for images start … stop−1, at most; None if unknown."""

    @property
    def title(self) -> str:
        asked = "".join(f", {name} {value}" for name, value in self.asked.items())
        seeds = self.source.get("seeds")
        return f"{self.method}{asked}" + (f", seeds {seeds}" if seeds else "")


@dataclass(frozen=True)
class Measurement:
    """Rows against one reference, in a JSON-lines file; rows that exist are not measured again.

    Of programs that measure the same row into the same file at once, one measures it and the others wait.
    """

    out: Path
    reference: Reference
    features: Features
    metrics: tuple[str, ...] = ("fid",)
    allow_fewer: bool = False
    pace: Pace = field(default_factory=Pace)

    def __post_init__(self) -> None:
        if needs_rows(self.metrics) and self.reference.rows is None:
            message = f"{self.metrics[1]} needs the features of the reference: make it with ref --rows"
            raise FidError(message, "BAD_REFERENCE")

    def rows(self, jobs: Sequence[Job]) -> list[dict[str, Any]]:
        """The rows of jobs. Raises FidError before any work if a job has fewer than 50,000 images."""
        self.require_enough(jobs)
        return measured([[(self, job)] for job in jobs])

    def has(self, job: Job) -> bool:
        """Whether a job's row exists."""
        return self._key(job) in self._cells

    def missing(self, job: Job) -> list[Bounds]:
        """The stretches of a job that are still to compute."""
        if self.has(job):
            return []
        folder, stretches = self.folder(job), bounds(job.count, self.pace.checkpoint)
        return [stretch for stretch in stretches if not stretch_file(folder, stretch).exists()]

    def require_enough(self, jobs: Sequence[Job]) -> None:
        """FidError if a job has fewer than 50,000 images, unless that is allowed."""
        for job in jobs:
            if job.count < FULL and not self.allow_fewer:
                raise FidError(
                    f"{job.title}: FID needs {FULL} images, got {job.count}; with fewer it is biased upwards. "
                    "--allow-fewer measures them and marks the row",
                    "TOO_FEW",
                )

    @cached_property
    def _cells(self) -> Cells:
        return Cells(self.out)

    @cached_property
    def _neighbours(self) -> Neighbours:
        assert self.reference.rows is not None
        return Neighbours(self.reference.rows, self.pace.progress)

    def _key(self, job: Job) -> dict[str, Any]:
        hashes = {"features": self.features.hash, "reference": self.reference.hash}
        return {"source": job.source, "asked": dict(job.asked), "metrics": self.metrics, **hashes}

    def folder(self, job: Job) -> Path:
        """The folder of the stretches of a job."""
        return state_folder(self.out, self._key(job))

    def alone(self, job: Job) -> contextlib.AbstractContextManager[Path]:
        """The folder of a job, locked for this program."""
        return state_of(self.out, self._key(job), f"{job.title}: another program measures this row; waiting for it")

    def row(self, job: Job, later: Sequence[Pair], note: Callable[[int], str]) -> dict[str, Any]:
        """The row of a job, whose folder this program has locked. Stretches are stored for `later` pairs, too."""
        return self._cells.measured(self._key(job), lambda: self._measured(job, later, note))

    def _measured(self, job: Job, later: Sequence[Pair], note: Callable[[int], str]) -> dict[str, Any]:
        def look(stretch: Bounds, tick: Callable[[int], object]) -> Stretch:
            wanting = [(other, same) for other, same in later if stretch in other.missing(same)]
            others = {stretch_file(other.folder(same), stretch): other.features for other, same in wanting}
            return job.look(stretch, tick, *([others] if others else []))

        began = time.perf_counter()
        rows, title = needs_rows(self.metrics), f"{job.title}, {self.features.name}"
        seen = see(look, job.count, self.features.dimension, self.folder(job), self.pace, title, rows, note)
        found = {"frechet": frechet_distance(seen.running.moments(), self.reference.moments)}
        if "precision-recall" in self.metrics:
            found |= self._neighbours.precision_recall(seen.rows())
        if "density-coverage" in self.metrics:
            found |= self._neighbours.density_coverage(seen.rows())
        if "ode-error" in self.metrics:
            found["ode_error"] = seen.ode_error()
        notes = []
        if job.count < FULL:
            notes.append(f"{job.count} images, fewer than {FULL}")
        if not self.features.published:
            notes.append(f"features {self.features.name}, not the Inception network of FID")
        return {
            "benchmark": job.benchmark,
            "method": job.method,
            "nfe": _evaluations(job, seen),
            "asked": dict(job.asked),
            "seeds": job.source.get("seeds"),
            "count": job.count,
            **found,
            "comparable": not notes,
            "notes": notes,
            "features": self.features.facts,
            "reference": {"hash": self.reference.hash, **self.reference.provenance},
            "source": job.source,
            "images": seen.digest.hex(),
            "seconds": {"images": seen.seconds, "last_run": time.perf_counter() - began},
            "versions": {**versions(), **job.versions},
            "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        }


Pair = tuple[Measurement, Job]


def measured(images: Sequence[Sequence[Pair]]) -> list[dict[str, Any]]:
    """Rows in one file against several references. The pairs of an entry have the same images, which are read once."""
    jobs = [pairs[0][1] for pairs in images]
    costs = [max((job.cost(0, job.count) or 0) / job.count, *job.asked.values(), 1) for job in jobs]  # of an image
    counts = [sum(stop - start for start, stop in remaining(pairs)) for pairs in images]
    total, done, began = sum(map(operator.mul, costs, counts)), 0.0, time.monotonic()

    def note(cost: float, count: int) -> str:
        nonlocal done
        done += cost * count
        rest = (time.monotonic() - began) * (total - done) / max(done, 1.0)
        return f"all rows {Progress.format_interval(max(rest, 0))}" if len(images) > 1 else ""

    rows = []
    for cost, pairs in zip(costs, images, strict=True):
        with contextlib.ExitStack() as locks:  # in one order, which excludes deadlocks
            for _, (measurement, job) in sorted({pair[0].folder(pair[1]): pair for pair in pairs}.items()):
                locks.enter_context(measurement.alone(job))
            for place, (measurement, job) in enumerate(pairs, 1):
                rows.append(measurement.row(job, pairs[place:], partial(note, cost)))
    return rows


def needs_rows(metrics: Sequence[str]) -> bool:
    """Whether metrics need the features of the reference's images."""
    return any(name in metrics for name in NEIGHBOURS)


def remaining(pairs: Sequence[Pair]) -> set[Bounds]:
    """The stretches still to read."""
    return {stretch for measurement, job in pairs for stretch in measurement.missing(job)}


def remaining_work(images: Sequence[Sequence[Pair]]) -> list[str]:
    """The remaining work: a line for each entry of `measured`, then one for all."""

    def line(title: str, parts: Sequence[Sequence[Pair]]) -> str:
        rows = sum(not measurement.has(job) for pairs in parts for measurement, job in pairs)
        stretches = [(*stretch, pairs[0][1]) for pairs in parts for stretch in remaining(pairs)]
        images = sum(stop - start for start, stop, _ in stretches)
        costs = [job.cost(start, stop) for start, stop, job in stretches]
        total = "unknown" if None in costs else f"at most {sum(cost or 0 for cost in costs)}"
        return f"{title}: rows {rows}, images {images}, evaluations of the network {total}"

    return [*(line(pairs[0][1].title, [pairs]) for pairs in images), line("to measure", images)]


def _evaluations(job: Job, seen: Seen) -> int | list[int] | None:
    """The NFE that the server counted; a list if images differ."""
    counted = sorted(seen.evaluations)
    nfe = counted[0] if len(counted) == 1 else counted or None
    if nfe != job.asked.get("nfe", nfe):
        message = f"the solver took {nfe} evaluations, the most that fit {job.asked['nfe']}"
        Progress.write(f"{job.title}: {message}")
    return nfe


def state_folder(out: Path, key: dict[str, Any]) -> Path:
    """The folder of the stretches for that key, next to the results."""
    name = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]
    return out.with_name(out.name + ".state") / name


@contextlib.contextmanager
def state_of(out: Path, key: dict[str, Any], waiting: str) -> Iterator[Path]:
    """The folder, locked for this program; it is removed after its result has been written."""
    folder = state_folder(out, key)
    try:
        with exclusive(folder.with_suffix(".lock"), lambda: Progress.write(waiting)):
            yield folder
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        with contextlib.suppress(OSError):  # it is not empty
            folder.parent.rmdir()


def versions() -> dict[str, str]:
    """The versions of the programs that computed the numbers."""
    return {"anisoflight": __version__, "numpy": np.__version__, "python": platform.python_version()}
