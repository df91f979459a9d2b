"""Parts of a measurement, made apart and folded afterwards: Slurm arrays, indexed jobs, machines without a network.

The stretches of all rows are numbered through, row by row, and dealt out: shard i of n has those whose number is i
modulo n, so that every shard has its share of the rows with many evaluations. A shard is an npz with the features of
each stretch and a hash of each image. `merge` folds them in the order of one run, so that its rows are the same to the
last bit.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..files.locks import exclusive
from ..wire.progress import Progress
from .errors import FidError
from .features import Features
from .measure import Bounds, Looks, Pace, Stretch, bounds, stretch_file
from .measurement import Job, Measurement, remove_empty, state_folder
from .reference import load_reference, save_arrays

_FORMAT = 1
_SHARD = re.compile(r"(\d+)/(\d+)")

Unit = tuple[int, int, int]
"""Row, and the bounds of a stretch of its images."""


def share_of(text: str) -> tuple[int, int]:
    """I/N as it is typed: shard I of N, the first of which is 0.

    >>> share_of("0/8")
    (0, 8)
    """
    match = _SHARD.fullmatch(text)
    if match is None or not int(match[1]) < int(match[2]):
        said = f"--shard: {text!r} is no I/N with I = 0 … N−1, such as 0/8 for the first of eight"
        raise FidError(said, "BAD_REQUEST")
    return int(match[1]), int(match[2])


def _plan(measurement: Measurement, jobs: Sequence[Job]) -> dict[str, Any]:
    """What shards of one measurement agree on, as JSON has it."""
    names = ("source", "count", "method", "benchmark", "asked")
    plan = {
        "rows": [{name: getattr(job, name) for name in names} for job in jobs],
        "metrics": measurement.metrics,
        "features": measurement.features.facts,
        "reference": measurement.reference.hash,
        "allow_fewer": measurement.allow_fewer,
        "stretch": measurement.pace.checkpoint,
        "batch": measurement.pace.batch,
    }
    return json.loads(json.dumps(plan))


def _units(plan: dict[str, Any]) -> list[Unit]:
    rows = enumerate(plan["rows"])
    return [(row, start, stop) for row, known in rows for start, stop in bounds(known["count"], plan["stretch"])]


def write_shard(measurement: Measurement, jobs: Sequence[Job], share: tuple[int, int], reference_file: Path) -> int:
    """Look at a shard's stretches and write its file, measurement.out; returns how many images it has.

    Every stretch that is done is kept beside it until the file is written, and is not done again.
    """
    measurement.require_enough(jobs)
    (index, count), out = share, measurement.out
    plan = _plan(measurement, jobs)
    mine = _units(plan)[index::count]
    images = sum(stop - start for _, start, stop in mine)
    folder = state_folder(out, {"plan": plan, "share": share})

    def file_of(unit: Unit) -> Path:
        return stretch_file(folder / str(unit[0]), unit[1:])

    def waiting() -> None:
        Progress.write(f"another program makes the shard {out}; waiting for it")

    with exclusive(out.with_name(out.name + ".lock"), waiting):
        if out.exists():
            known = Shard.open(out)
            if (known.index, known.count, known.plan) != (index, count, plan):
                said = f"{out} is there and holds shard {known.index}/{known.count} of another measurement"
                raise FidError(said, "BAD_SHARD")
            return images
        title = f"shard {index}/{count}"
        with Progress(total=images, desc=title, unit="image", disable=not measurement.pace.progress) as bar:
            for unit in mine:
                if file_of(unit).exists():
                    bar.update(unit[2] - unit[1])
                else:
                    save_arrays(file_of(unit), vars(next(jobs[unit[0]].looks([unit[1:]], bar.update))))
        said = {"format": _FORMAT, "index": index, "count": count, "plan": plan, "versions": jobs[0].versions}
        _assemble(out, {**said, "reference_file": str(reference_file)}, {unit: file_of(unit) for unit in mine})
        shutil.rmtree(folder, ignore_errors=True)
        remove_empty(folder.parent)
    return images


def _assemble(out: Path, said: dict[str, Any], files: dict[Unit, Path]) -> None:
    """One file of many; at any moment there is none or the whole one."""
    part = out.with_name(out.name + ".part")
    out.parent.mkdir(parents=True, exist_ok=True)
    with part.open("wb") as file:
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("shard.json", json.dumps(said))
            for (row, start, _), path in files.items():
                with zipfile.ZipFile(path) as stretch:
                    for name in stretch.namelist():
                        archive.writestr(f"{row}/{start}/{name}", stretch.read(name))
        file.flush()
        os.fsync(file.fileno())
    part.replace(out)


@dataclass(frozen=True)
class Shard:
    """A shard's file."""

    path: Path
    index: int
    count: int
    plan: dict[str, Any]
    versions: dict[str, Any]
    reference_file: str

    @classmethod
    def open(cls, path: Path) -> Shard:
        """Read what a file says it is; anything but a whole shard of this format is a `FidError`."""
        try:
            with np.load(path, allow_pickle=False) as file:
                said = json.loads(file["shard.json"])
                if said.pop("format") != _FORMAT:
                    raise ValueError(f"its format is not {_FORMAT}")
                shard = cls(path, **said)
                for row, start, _ in _units(shard.plan)[shard.index :: shard.count]:
                    if f"{row}/{start}/features" not in file:
                        raise ValueError(f"row {row}, images from {start}, are missing")
        except FileNotFoundError:
            raise FidError(f"there is no shard {path}; fid calc … --shard I/N makes one", "BAD_SHARD") from None
        except (zipfile.BadZipFile, KeyError, ValueError, TypeError, EOFError, OSError) as error:
            raise FidError(f"{path}: not a whole shard ({error})", "BAD_SHARD") from error
        return shard

    def stretch(self, row: int, start: int) -> Stretch:
        """One of its stretches."""
        try:
            with np.load(self.path, allow_pickle=False) as file:
                return Stretch.of(file, f"{row}/{start}/")
        except (zipfile.BadZipFile, KeyError, ValueError, EOFError, OSError) as error:
            raise FidError(f"{self.path}: row {row}, images from {start}: damaged ({error})", "BAD_SHARD") from error


def merge(paths: Sequence[Path], out: Path, reference_file: Path | None, progress: bool) -> list[dict[str, Any]]:
    """Fold the shards of one measurement, all of them, into rows. The reference is the file that they name, or this."""
    shards = _fitting([Shard.open(path) for path in paths])
    plan = shards[0].plan
    path = reference_file or Path(shards[0].reference_file)
    reference = load_reference(path, rows=len(plan["metrics"]) > 1)
    if reference.hash != plan["reference"]:
        said = f"{path} is not the reference that the shards were made for; name that with --ref"
        raise FidError(said, "BAD_REFERENCE")

    def never(images: object) -> Any:
        raise AssertionError("the shards have the features")

    features = Features(**plan["features"], function=never)
    pace = Pace(plan["batch"], plan["stretch"], progress)
    measurement = Measurement(out, reference, features, tuple(plan["metrics"]), plan["allow_fewer"], pace)
    owners = {unit[:2]: shards[i % len(shards)] for i, unit in enumerate(_units(plan))}
    versions = _versions(shards)
    rows = enumerate(plan["rows"])
    return measurement.rows([Job(**known, looks=_reads(owners, row), versions=versions) for row, known in rows])


def _fitting(shards: Sequence[Shard]) -> list[Shard]:
    """The shards in order, if they are all of one measurement and each of them is there once; else a `FidError`."""
    first, found = shards[0], dict[int, Shard]()
    for shard in shards:
        if other := [name for name in first.plan if shard.plan.get(name) != first.plan[name]]:
            said = f"is of another measurement than {first.path}, with other {', '.join(other)}"
            raise FidError(f"{shard.path} {said}", "BAD_SHARD")
        if shard.count != first.count:
            said = f"is one of {shard.count} shards, and {first.path} one of {first.count}"
            raise FidError(f"{shard.path} {said}", "BAD_SHARD")
        if other := found.get(shard.index):
            said = f"shard {shard.index}/{shard.count} is given twice: {other.path} and {shard.path}"
            raise FidError(said, "BAD_SHARD")
        found[shard.index] = shard
    if missing := [f"{index}/{first.count}" for index in range(first.count) if index not in found]:
        named = ", ".join(missing[:8]) + (" …" if len(missing) > 8 else "")
        raise FidError(f"{len(missing)} of {first.count} shards missing: {named}", "BAD_SHARD")
    return [found[index] for index in range(first.count)]


def _versions(shards: Sequence[Shard]) -> dict[str, Any]:
    """Of the servers that drew the images; a list if they differ."""
    found = {name: list(dict.fromkeys(shard.versions[name] for shard in shards)) for name in shards[0].versions}
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


def _reads(owners: dict[tuple[int, int], Shard], row: int) -> Looks:
    def read(stretches: Sequence[Bounds], tick: Callable[[int], object]) -> Iterator[Stretch]:
        for start, stop in stretches:
            yield owners[row, start].stretch(row, start)
            tick(stop - start)

    return read
