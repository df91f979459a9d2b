"""Parts of a measurement, computed apart and merged: Slurm arrays, indexed jobs, machines without a network.

The stretches of all rows are numbered row by row, and shard i of n has those with number i modulo n, so that every
shard has its share of the rows with many evaluations. A shard is an npz with the features of each stretch and a hash of
each image. `merge` folds them in the order of a single run, so that its rows are equal to the last bit.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..files.temporary import whole_file
from ..wire.progress import Progress
from .errors import FidError
from .features import Features
from .reference import load_reference, save_arrays
from .rows import Job, Measurement, needs_rows, state_of
from .stretches import Bounds, Look, Pace, Stretch, bounds, stretch_file

_FORMAT = 1
_SHARD = re.compile(r"(\d+)/(\d+)")


def share_of(text: str) -> tuple[int, int]:
    """Shard I of N, counted from 0, written I/N.

    >>> share_of("0/8")
    (0, 8)
    """
    match = _SHARD.fullmatch(text)
    if match is None or not int(match[1]) < int(match[2]):
        message = f"--shard: {text!r} is no I/N with I = 0 … N−1, such as 0/8 for the first of eight"
        raise FidError(message, "BAD_REQUEST")
    return int(match[1]), int(match[2])


@dataclass(frozen=True)
class Shard:
    """The description in a shard's file."""

    index: int
    count: int
    plan: dict[str, Any]
    """What all shards of a measurement share."""
    versions: dict[str, Any]
    """Of the server that drew the images."""
    reference_file: str
    format: int = _FORMAT

    @property
    def units(self) -> list[tuple[int, Bounds]]:
        """Its stretches, each with the number of its row."""
        return units_of(self.plan)[self.index :: self.count]

    @classmethod
    def load(cls, path: Path) -> Shard:
        """Read a file; FidError unless it is a complete shard of this format."""
        with _whole(path), np.load(path, allow_pickle=False) as file:
            shard = cls(**json.loads(file["shard.json"]))
            if shard.format != _FORMAT:
                raise ValueError(f"its format is not {_FORMAT}")
            for row, (start, _) in shard.units:
                if f"{row}/{start}/features" not in file:
                    raise ValueError(f"row {row}, images from {start}, are missing")
            return shard


@contextmanager
def _whole(path: Path) -> Iterator[None]:
    """Failures to read a shard as a FidError."""
    try:
        yield
    except FileNotFoundError:
        raise FidError(f"there is no shard {path}; fid calc … --shard I/N makes one", "BAD_SHARD") from None
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, EOFError, OSError) as error:
        raise FidError(f"{path}: not a whole shard ({error})", "BAD_SHARD") from error


def units_of(plan: dict[str, Any]) -> list[tuple[int, Bounds]]:
    """All stretches of a plan, each with the number of its row."""
    rows = enumerate(plan["rows"])
    return [(row, stretch) for row, known in rows for stretch in bounds(known["count"], plan["stretch"])]


def write_shard(measurement: Measurement, jobs: Sequence[Job], share: tuple[int, int], reference_file: Path) -> int:
    """Compute a shard's stretches and write its file, measurement.out; returns its number of images.

    Finished stretches are stored next to it until the file is written, and are not computed again.
    """
    measurement.require_enough(jobs)
    out, pace = measurement.out, measurement.pace
    names = ("source", "count", "method", "benchmark", "asked")
    plan = {
        "rows": [{name: getattr(job, name) for name in names} for job in jobs],
        "metrics": measurement.metrics,
        "features": measurement.features.facts,
        "reference": measurement.reference.hash,
        "allow_fewer": measurement.allow_fewer,
        "stretch": pace.checkpoint,
        "batch": pace.batch,
    }
    plan = json.loads(json.dumps(plan))  # as a file has it
    shard = Shard(*share, plan, dict(jobs[0].versions), str(reference_file))
    images = sum(stop - start for _, (start, stop) in shard.units)
    with state_of(out, {"plan": plan, "share": share}, f"another program makes the shard {out}; waiting") as folder:
        if out.exists():
            existing = Shard.load(out)
            if (existing.index, existing.count, existing.plan) != (*share, plan):
                message = f"{out} is there and holds shard {existing.index}/{existing.count} of another measurement"
                raise FidError(message, "BAD_SHARD")
            return images
        title = f"shard {shard.index}/{shard.count}"
        with Progress(total=images, desc=title, unit="image", disable=not pace.progress) as bar:
            for row, stretch in shard.units:
                file = stretch_file(folder / str(row), stretch)
                if file.exists():
                    bar.update(stretch[1] - stretch[0])
                else:
                    save_arrays(file, vars(jobs[row].look(stretch, bar.update)))
        with whole_file(out) as file, zipfile.ZipFile(file, "w") as archive:
            archive.writestr("shard.json", json.dumps(vars(shard)))
            for row, stretch in shard.units:
                with zipfile.ZipFile(stretch_file(folder / str(row), stretch)) as arrays:
                    for name in arrays.namelist():
                        archive.writestr(f"{row}/{stretch[0]}/{name}", arrays.read(name))
    return images


def merge(paths: Sequence[Path], out: Path, reference_file: Path | None, progress: bool) -> list[dict[str, Any]]:
    """The rows of the shards of one measurement. The reference is the given file or the one that the shards name."""
    files = _complete([(path, Shard.load(path)) for path in paths])
    first = next(iter(files.values()))
    plan, path = first.plan, reference_file or Path(first.reference_file)
    reference = load_reference(path, rows=needs_rows(plan["metrics"]))
    if reference.hash != plan["reference"]:
        message = f"{path} is not the reference that the shards were made for; name that with --ref"
        raise FidError(message, "BAD_REFERENCE")
    features = Features(**plan["features"], function=lambda _: np.zeros(0))  # the shards have what it would give
    pace = Pace(plan["batch"], plan["stretch"], progress)
    measurement = Measurement(out, reference, features, tuple(plan["metrics"]), plan["allow_fewer"], pace)
    owners = {unit: path for path, shard in files.items() for unit in shard.units}

    def look_of(row: int) -> Look:
        def look(stretch: Bounds, _: Callable[[int], object]) -> Stretch:
            with _whole(owners[row, stretch]):
                return Stretch.load(owners[row, stretch], f"{row}/{stretch[0]}/")

        return look

    versions: dict[str, Any] = {}
    for name in first.versions:  # a list if they differ
        values = list(dict.fromkeys(shard.versions[name] for shard in files.values()))
        versions[name] = values[0] if len(values) == 1 else values
    rows = enumerate(plan["rows"])
    return measurement.rows([Job(**known, look=look_of(row), versions=versions) for row, known in rows])


def _complete(files: list[tuple[Path, Shard]]) -> dict[Path, Shard]:
    """The shards by their files, if each of one measurement is there once; else a FidError."""
    one, first = files[0]
    found: dict[int, Path] = {}
    for path, shard in files:
        if other := [name for name in first.plan if shard.plan.get(name) != first.plan[name]]:
            raise FidError(f"{path} is of another measurement than {one}, with other {', '.join(other)}", "BAD_SHARD")
        if shard.count != first.count:
            message = f"is one of {shard.count} shards, and {one} one of {first.count}"
            raise FidError(f"{path} {message}", "BAD_SHARD")
        if other := found.get(shard.index):
            raise FidError(f"shard {shard.index}/{shard.count} is given twice: {other} and {path}", "BAD_SHARD")
        found[shard.index] = path
    if missing := [f"{index}/{first.count}" for index in range(first.count) if index not in found]:
        named = ", ".join(missing[:8]) + (" …" if len(missing) > 8 else "")
        raise FidError(f"{len(missing)} of {first.count} shards missing: {named}", "BAD_SHARD")
    return dict(files)
