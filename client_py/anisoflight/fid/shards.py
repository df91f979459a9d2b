"""Parts of a measurement, made apart and folded afterwards: Slurm arrays, indexed jobs, machines without a network.

The stretches of all rows are numbered through, row by row, and dealt out: shard i of n has those whose number is i
modulo n, so that every shard has its share of the rows with many evaluations. A shard is an npz with the features of
each stretch and a hash of each image. `merge` folds them in the order in which one run would have come upon them, so
that its rows are the same to the last bit.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..files.locks import exclusive
from ..wire.progress import Progress
from .errors import FidError
from .measure import Pace, Stretch, bounds, look
from .measurement import Job, Measurement, require_enough
from .reference import Reference, load_reference, save_arrays

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..images import Pixels
    from .features import Features

_FORMAT = 1
_SHARD = re.compile(r"(\d+)/(\d+)")


@dataclass(frozen=True)
class Share:
    """Shard index of count, the first of which is 0."""

    index: int
    count: int

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


def share_of(text: str) -> Share:
    """I/N as it is typed.

    >>> share_of("0/8")
    Share(index=0, count=8)
    """
    match = _SHARD.fullmatch(text)
    if match is None or not int(match[1]) < int(match[2]):
        raise FidError(
            f"--shard: {text!r} is no I/N with I = 0 … N−1, such as 0/8 for the first of eight", "BAD_REQUEST"
        )
    return Share(int(match[1]), int(match[2]))


@dataclass(frozen=True)
class Work:
    """All that is measured, in whatever shards."""

    jobs: Sequence[Job]
    reference: Reference
    features: Features
    metrics: tuple[str, ...]
    allow_fewer: bool
    pace: Pace

    def plan(self) -> dict[str, Any]:
        """What shards of one measurement agree on, as JSON."""
        known = ("name", "hash", "dimension", "published")
        return {
            "rows": [
                {
                    "source": job.source.identity(),
                    "count": job.source.count,
                    "method": job.method,
                    "benchmark": job.benchmark,
                    "asked": dict(job.asked),
                }
                for job in self.jobs
            ],
            "metrics": list(self.metrics),
            "features": {name: getattr(self.features, name) for name in known},
            "reference": self.reference.hash,
            "allow_fewer": self.allow_fewer,
            "stretch": self.pace.checkpoint,
            "batch": self.pace.batch,
        }


def units(plan: dict[str, Any]) -> list[tuple[int, int, int]]:
    """Every stretch of a plan: its row, and its bounds."""
    return [
        (row, start, stop)
        for row, known in enumerate(plan["rows"])
        for start, stop in bounds(0, known["count"], plan["stretch"])
    ]


def write_shard(work: Work, share: Share, out: Path, reference_file: Path) -> int:
    """Look at a shard's stretches and write its file; gives how many images it has.

    Every stretch that is done lies in `out`.state until the file is written, and is not done again.
    """
    require_enough(work.jobs, work.allow_fewer)
    plan = json.loads(json.dumps(work.plan()))
    mine = units(plan)[share.index :: share.count]
    images = sum(stop - start for _, start, stop in mine)
    name = hashlib.sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest()[:16]
    folder = out.with_name(out.name + ".state") / f"{name}-{share.index}-{share.count}"

    def waiting() -> None:
        Progress.write(f"another program makes the shard {out}; waiting for it")

    with exclusive(out.with_name(out.name + ".lock"), waiting):
        if out.exists():
            known = Shard.open(out)
            if (known.share, known.plan) != (share, plan):
                raise FidError(f"{out} is there and holds shard {known.share} of another measurement", "BAD_SHARD")
            return images
        bar = Progress(total=images, desc=f"shard {share}", unit="image", disable=not work.pace.progress)
        with bar:
            for row, start, stop in mine:
                part = _part(folder, row, start)
                if part.exists():
                    bar.update(stop - start)
                    continue
                source = work.jobs[row].source
                save_arrays(part, look(source, work.features, start, stop, work.pace.batch, bar.update).arrays())
        versions = dict(work.jobs[0].versions)
        said = {"format": _FORMAT, "index": share.index, "count": share.count, "plan": plan, "versions": versions}
        _assemble(out, {**said, "reference_file": str(reference_file)}, folder, mine)
        for row, start, _ in mine:
            _part(folder, row, start).unlink(missing_ok=True)
        if folder.exists():
            folder.rmdir()
            folder.parent.rmdir()
    return images


def _part(folder: Path, row: int, start: int) -> Path:
    return folder / f"{row}-{start}.npz"


def _assemble(out: Path, said: dict[str, Any], folder: Path, mine: Sequence[tuple[int, int, int]]) -> None:
    """One file of many; at any moment there is none or the whole one."""
    part = out.with_name(out.name + ".part")
    out.parent.mkdir(parents=True, exist_ok=True)
    with part.open("wb") as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
            archive.writestr("shard.json", json.dumps(said))
            for row, start, _ in mine:
                with np.load(_part(folder, row, start), allow_pickle=False) as arrays:
                    for name in arrays.files:
                        with archive.open(_entry(row, start, name), "w", force_zip64=True) as entry:
                            np.lib.format.write_array(entry, arrays[name], allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())
    part.replace(out)


def _entry(row: int, start: int, name: str) -> str:
    return f"{row}/{start}/{name}.npy"


@dataclass(frozen=True)
class Shard:
    """A shard's file."""

    path: Path
    share: Share
    plan: dict[str, Any]
    versions: dict[str, Any]
    reference_file: str

    @classmethod
    def open(cls, path: Path) -> Shard:
        """Read what a file says it is; anything but a whole shard of this format is a `FidError`."""
        try:
            with zipfile.ZipFile(path) as archive:
                said = json.loads(archive.read("shard.json"))
                if said["format"] != _FORMAT:
                    raise FidError(f"{path}: a shard of format {said['format']}, not {_FORMAT}", "BAD_SHARD")
                share = Share(int(said["index"]), int(said["count"]))
                held = set(archive.namelist())
                for row, start, _ in units(said["plan"])[share.index :: share.count]:
                    if _entry(row, start, "features") not in held:
                        raise FidError(f"{path}: row {row}, images from {start}, are missing", "BAD_SHARD")
                return cls(path, share, said["plan"], said["versions"], said["reference_file"])
        except FileNotFoundError:
            raise FidError(f"there is no shard {path}; fid calc … --shard I/N makes one", "BAD_SHARD") from None
        except (zipfile.BadZipFile, KeyError, ValueError, TypeError, EOFError, OSError) as error:
            if isinstance(error, FidError):
                raise
            raise FidError(f"{path}: not a whole shard ({error})", "BAD_SHARD") from error

    def stretch(self, row: int, start: int) -> Stretch:
        """One of its stretches."""
        names = ("features", "hashes", "shape", "evaluations", "seconds")
        try:
            with zipfile.ZipFile(self.path) as archive:
                arrays = {}
                for name in names:
                    with archive.open(_entry(row, start, name)) as entry:
                        arrays[name] = np.lib.format.read_array(entry, allow_pickle=False)
                        entry.read()  # to the end, where the sum is checked
            return Stretch.restored(start, arrays)
        except (zipfile.BadZipFile, KeyError, ValueError, EOFError, OSError) as error:
            raise FidError(f"{self.path}: row {row}, images from {start}: damaged ({error})", "BAD_SHARD") from error


def merge(paths: Sequence[Path], out: Path, reference_file: Path | None, progress: bool) -> list[dict[str, Any]]:
    """Fold the shards of one measurement, all of them, into rows. The reference is the file that they name, or this."""
    shards = fitting([Shard.open(path) for path in paths])
    plan = shards[0].plan
    path = reference_file or Path(shards[0].reference_file)
    reference = load_reference(path, rows=len(plan["metrics"]) > 1)
    if reference.hash != plan["reference"]:
        raise FidError(
            f"{path} is not the reference that the shards were made for; name that with --ref", "BAD_REFERENCE"
        )
    pace = Pace(plan["batch"], plan["stretch"], progress)
    features = _Recorded(**plan["features"])
    measurement = Measurement(
        out, reference, features, tuple(plan["metrics"]), allow_fewer=plan["allow_fewer"], pace=pace
    )
    versions = _versions(shards)
    owners = {(row, start): shards[i % len(shards)] for i, (row, start, _) in enumerate(units(plan))}
    return measurement.rows(
        [
            Job(Elsewhere(known), known["method"], known["benchmark"], known["asked"], versions, _reading(owners, row))
            for row, known in enumerate(plan["rows"])
        ]
    )


def fitting(shards: Sequence[Shard]) -> list[Shard]:
    """The shards in order, if they are all of one measurement and each of them is there once; else a `FidError`."""
    first = shards[0]
    found: dict[int, Shard] = {}
    for shard in shards:
        if difference := _difference(first.plan, shard.plan):
            raise FidError(f"{shard.path} is of another measurement than {first.path}: {difference}", "BAD_SHARD")
        if shard.share.count != first.share.count:
            raise FidError(
                f"{shard.path} is shard {shard.share} and {first.path} shard {first.share}: of two divisions",
                "BAD_SHARD",
            )
        if other := found.get(shard.share.index):
            raise FidError(f"shard {shard.share} is given twice: {other.path} and {shard.path}", "BAD_SHARD")
        found[shard.share.index] = shard
    count = first.share.count
    if missing := [f"{index}/{count}" for index in range(count) if index not in found]:
        named = ", ".join(missing[:8]) + (" …" if len(missing) > 8 else "")
        raise FidError(f"{len(missing)} of {count} shards missing: {named}", "BAD_SHARD")
    return [found[index] for index in range(count)]


def _difference(one: Any, other: Any, where: str = "") -> str:
    """The first place at which two plans differ, and how; empty where they do not."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return next((d for name in one if (d := _difference(one[name], other[name], f"{where}.{name}"))), "")
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return next(
            (d for i, pair in enumerate(zip(one, other, strict=True)) if (d := _difference(*pair, f"{where}[{i}]"))), ""
        )
    return "" if one == other else f"{where.removeprefix('.')} is {_short(other)}, not {_short(one)}"


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:59] + "…"


def _versions(shards: Sequence[Shard]) -> dict[str, Any]:
    """Of the servers that drew the images; a list where they differ."""
    found: dict[str, list[Any]] = {}
    for shard in shards:
        for name, value in shard.versions.items():
            if value not in found.setdefault(name, []):
                found[name].append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


def _reading(
    owners: dict[tuple[int, int], Shard], row: int
) -> Callable[[Sequence[tuple[int, int]], Callable[[int], object]], Iterator[Stretch]]:
    def read(stretches: Sequence[tuple[int, int]], tick: Callable[[int], object]) -> Iterator[Stretch]:
        for start, stop in stretches:
            yield owners[row, start].stretch(row, start)
            tick(stop - start)

    return read


@dataclass(frozen=True)
class _Recorded:
    """Features that others have computed."""

    name: str
    hash: str
    dimension: int
    published: bool

    def __call__(self, images: Pixels) -> Any:
        raise NotImplementedError

    def arrays(self) -> dict[str, Any]:
        return {}


@dataclass(frozen=True)
class Elsewhere:
    """Images that others have looked at."""

    known: dict[str, Any] = field(repr=False)

    @property
    def count(self) -> int:
        return self.known["count"]

    def identity(self) -> dict[str, Any]:
        return self.known["source"]

    def labels(self) -> None:
        return None

    def read(self, start: int, stop: int) -> Iterator[Pixels]:
        raise NotImplementedError
