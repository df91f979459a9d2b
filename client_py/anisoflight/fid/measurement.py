"""Rows of results: images measured against a reference, each with all that it depends on, and each only once."""

from __future__ import annotations

import datetime
import hashlib
import json
import platform
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import __version__
from ..files.cells import Cells
from ..files.locks import exclusive
from ..moments import frechet_distance
from ..wire.progress import Progress
from .errors import FidError
from .measure import Looks, Pace, Pass, Seen, remove_empty, state_file
from .neighbours import Neighbours

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .features import Features
    from .reference import Reference
    from .sources import Source

FULL = 50_000
"""Samples of a published FID."""
METRICS = ("fid", "precision-recall", "density-coverage")


@dataclass(frozen=True)
class Job:
    """One row: a source, and what the row is called."""

    source: Source
    method: str
    benchmark: str
    asked: Mapping[str, Any] = field(default_factory=dict)
    """{"nfe": …} or {"steps": …} of samples; nothing of other images."""
    versions: Mapping[str, Any] = field(default_factory=dict)
    """Of the server."""
    looks: Looks | None = None
    """Who looks at the images; None: this process."""

    @property
    def title(self) -> str:
        asked = "".join(f", {name} {value}" for name, value in self.asked.items())
        seeds = self.source.identity().get("seeds")
        return f"{self.method}{asked}" + (f", seeds {seeds}" if seeds else "")


class Measurement:
    """Rows against one reference, kept in a JSON-lines file: what is there is not measured again.

    Programs that measure the same row into the same file at once wait for each other: one measures it.
    """

    def __init__(
        self,
        out: Path,
        reference: Reference,
        features: Features,
        metrics: tuple[str, ...] = ("fid",),
        *,
        allow_fewer: bool = False,
        pace: Pace | None = None,
    ) -> None:
        self._out, self._cells = out, Cells(out)
        self._reference, self._features, self._metrics = reference, features, metrics
        self._allow_fewer, self._pace = allow_fewer, pace or Pace()
        self._neighbours: Neighbours | None = None
        if len(metrics) > 1 and reference.rows is None:
            raise FidError(
                f"{metrics[1]} needs the reference's features themselves: make it with ref --rows", "BAD_REFERENCE"
            )

    def rows(self, jobs: Sequence[Job]) -> list[dict[str, Any]]:
        """The rows of jobs, each measured unless it has been; FidError of fewer than 50,000 images comes first."""
        require_enough(jobs, self._allow_fewer)
        return [self._row(job) for job in jobs]

    def left(self, job: Job) -> int | None:
        """How many images of a job have been seen; None where its row is there."""
        key = self._key(job)
        if key in self._cells:
            return None
        state = state_file(state_folder(self._out, key))
        return Seen.load(state).running.count if state.exists() else 0

    def _key(self, job: Job) -> dict[str, Any]:
        return {
            "source": job.source.identity(),
            "asked": dict(job.asked),
            "metrics": self._metrics,
            "features": self._features.hash,
            "reference": self._reference.hash,
        }

    def _row(self, job: Job) -> dict[str, Any]:
        key = self._key(job)
        folder = state_folder(self._out, key)

        def waiting() -> None:
            Progress.write(f"{job.title}: another program measures this row; waiting for it")

        with exclusive(folder.with_suffix(".lock"), waiting):
            going = Pass(job.source, self._features, folder, self._pace, len(self._metrics) > 1, job.looks)
            row = self._cells.measured(key, lambda: self._measured(job, going))
            going.discard()  # only now that the row is on the disk
        remove_empty(folder.parent)
        return row

    def _measured(self, job: Job, going: Pass) -> dict[str, Any]:
        began = time.perf_counter()
        seen = going.run(job.title)
        found = {"frechet": frechet_distance(seen.running.moments(), self._reference.moments)}
        found |= self._looked_around(going)
        seconds = {"images": seen.seconds, "last_run": time.perf_counter() - began}
        return {
            **self._named(job, sorted(seen.evaluations)),
            **found,
            **self._judged(job),
            "features": {name: getattr(self._features, name) for name in ("name", "hash", "dimension", "published")},
            "reference": {"hash": self._reference.hash, **self._reference.provenance},
            "source": job.source.identity(),
            "images": seen.digest.hex(),
            "seconds": seconds,
            "versions": {**versions(), **job.versions},
            "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        }

    def _named(self, job: Job, evaluations: list[int]) -> dict[str, Any]:
        """NFE is what the server counted; a list where images differ in it."""
        nfe = evaluations[0] if len(evaluations) == 1 else evaluations or None
        asked = dict(job.asked)
        if "nfe" in asked and nfe != asked["nfe"]:
            Progress.write(
                f"{job.title}: the solver took {nfe} evaluations; its steps come no nearer to {asked['nfe']}"
            )
        row = {"benchmark": job.benchmark, "method": job.method, "nfe": nfe, "asked": asked}
        return {**row, "seeds": job.source.identity().get("seeds"), "count": job.source.count}

    def _judged(self, job: Job) -> dict[str, Any]:
        """Whether the row may stand beside published FIDs, and why not."""
        notes = []
        if job.source.count < FULL:
            notes.append(f"{job.source.count} images, fewer than {FULL}")
        if not self._features.published:
            notes.append(f"features {self._features.name}, not the Inception network of FID")
        return {"comparable": not notes, "notes": notes}

    def _looked_around(self, going: Pass) -> dict[str, float]:
        found: dict[str, float] = {}
        if len(self._metrics) == 1:
            return found
        if self._neighbours is None:
            assert self._reference.rows is not None
            self._neighbours = Neighbours(self._reference.rows, self._pace.progress)
        rows = going.rows()
        if "precision-recall" in self._metrics:
            found |= self._neighbours.precision_recall(rows)
        if "density-coverage" in self._metrics:
            found |= self._neighbours.density_coverage(rows)
        return found


def require_enough(jobs: Sequence[Job], allow_fewer: bool) -> None:
    """FidError of the first job that has fewer than 50,000 images, unless that is allowed."""
    for job in jobs:
        if job.source.count < FULL and not allow_fewer:
            raise FidError(
                f"{job.title}: {job.source.count} images; FID is of {FULL}, and of fewer it is larger. "
                "--allow-fewer measures them and marks the row",
                "TOO_FEW",
            )


def state_folder(out: Path, key: dict[str, Any]) -> Path:
    """Where the state of what that key says lies while it is measured, beside its results."""
    name = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]
    return out.with_name(out.name + ".state") / name


def versions() -> dict[str, str]:
    """Of what the numbers were computed with."""
    return {"anisoflight": __version__, "numpy": np.__version__, "python": platform.python_version()}
