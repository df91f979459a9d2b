"""Rows of results: images measured against a reference, each with all that it depends on, and each only once."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import platform
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import __version__
from ..files.cells import Cells
from ..files.locks import exclusive
from ..moments import frechet_distance
from ..wire.progress import Progress
from .errors import FidError
from .measure import Bounds, Look, Pace, Seen, bounds, see, stretch_file
from .neighbours import Neighbours

if TYPE_CHECKING:
    from .features import Features
    from .reference import Reference

FULL = 50_000
"""Samples of a published FID."""
METRICS = ("fid", "precision-recall", "density-coverage")


@dataclass(frozen=True)
class Job:
    """One row: images, and what the row is called."""

    source: Mapping[str, Any]
    """All that the images depend on, as JSON: two sources of the same identity hold the same images."""
    count: int
    look: Look = field(repr=False)
    method: str
    benchmark: str
    asked: Mapping[str, Any] = field(default_factory=dict)
    """{"nfe": …} or {"steps": …} of samples; nothing of other images."""
    versions: Mapping[str, Any] = field(default_factory=dict)
    """Of the server."""

    @property
    def title(self) -> str:
        asked = "".join(f", {name} {value}" for name, value in self.asked.items())
        seeds = self.source.get("seeds")
        return f"{self.method}{asked}" + (f", seeds {seeds}" if seeds else "")


@dataclass(frozen=True)
class Measurement:
    """Rows against one reference, kept in a JSON-lines file: what is there is not measured again.

    Programs that measure the same row into the same file at once wait for each other: one measures it.
    """

    out: Path
    reference: Reference
    features: Features
    metrics: tuple[str, ...] = ("fid",)
    allow_fewer: bool = False
    pace: Pace = field(default_factory=Pace)

    def __post_init__(self) -> None:
        if len(self.metrics) > 1 and self.reference.rows is None:
            said = "needs the reference's features themselves: make it with ref --rows"
            raise FidError(f"{self.metrics[1]} {said}", "BAD_REFERENCE")

    def rows(self, jobs: Sequence[Job]) -> list[dict[str, Any]]:
        """The rows of jobs, each measured unless it has been; FidError of fewer than 50,000 images comes first."""
        self.require_enough(jobs)
        return [self._row(job) for job in jobs]

    def missing(self, job: Job) -> list[Bounds]:
        """The stretches of a job that nobody has looked at."""
        if self._key(job) in self._cells:
            return []
        folder = state_folder(self.out, self._key(job))
        stretches = bounds(job.count, self.pace.checkpoint)
        return [stretch for stretch in stretches if not stretch_file(folder, stretch).exists()]

    def require_enough(self, jobs: Sequence[Job]) -> None:
        """FidError of the first job that has fewer than 50,000 images, unless that is allowed."""
        for job in jobs:
            if job.count < FULL and not self.allow_fewer:
                raise FidError(
                    f"{job.title}: {job.count} images; FID is of {FULL}, and of fewer it is larger. "
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
        return {
            "source": job.source,
            "asked": dict(job.asked),
            "metrics": self.metrics,
            "features": self.features.hash,
            "reference": self.reference.hash,
        }

    def _row(self, job: Job) -> dict[str, Any]:
        key = self._key(job)
        with state_of(self.out, key, f"{job.title}: another program measures this row; waiting for it") as folder:
            return self._cells.measured(key, lambda: self._measured(job, folder))

    def _measured(self, job: Job, folder: Path) -> dict[str, Any]:
        began = time.perf_counter()
        more = len(self.metrics) > 1
        seen = see(job.look, job.count, self.features.dimension, folder, self.pace, job.title, more)
        found = {"frechet": frechet_distance(seen.running.moments(), self.reference.moments)}
        if "precision-recall" in self.metrics:
            found |= self._neighbours.precision_recall(seen.rows())
        if "density-coverage" in self.metrics:
            found |= self._neighbours.density_coverage(seen.rows())
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


def _evaluations(job: Job, seen: Seen) -> int | list[int] | None:
    """NFE is what the server counted; a list if images differ in it."""
    counted = sorted(seen.evaluations)
    nfe = counted[0] if len(counted) == 1 else counted or None
    if nfe != job.asked.get("nfe", nfe):
        said = f"the solver took {nfe} evaluations; its steps come no nearer to {job.asked['nfe']}"
        Progress.write(f"{job.title}: {said}")
    return nfe


def state_folder(out: Path, key: dict[str, Any]) -> Path:
    """Where the stretches of what that key says are kept while it is measured, beside its results."""
    name = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]
    return out.with_name(out.name + ".state") / name


@contextlib.contextmanager
def state_of(out: Path, key: dict[str, Any], waiting: str) -> Iterator[Path]:
    """The folder for this program alone; it is removed when what it is for has been written."""
    folder = state_folder(out, key)
    try:
        with exclusive(folder.with_suffix(".lock"), lambda: Progress.write(waiting)):
            yield folder
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        with contextlib.suppress(OSError):  # there are others in it
            folder.parent.rmdir()


def versions() -> dict[str, str]:
    """Of what the numbers were computed with."""
    return {"anisoflight": __version__, "numpy": np.__version__, "python": platform.python_version()}
