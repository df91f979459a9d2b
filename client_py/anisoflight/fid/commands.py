"""What the sub-commands do."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ..compare.bench import half_range
from ..compare.comparison import label
from ..program import connected
from .errors import FidError
from .features import Loading, for_calc, for_reference
from .measure import Pace, Pass, remove_empty
from .measurement import Job, Measurement, state_folder, versions
from .published import NFES
from .reference import Reference, load_reference
from .shards import Work, merge, share_of, write_shard
from .sources import Files, ServerDataset, ServerSamples, server_versions

if TYPE_CHECKING:
    from argparse import Namespace

    from .features import Features
    from .sources import Source


def calc(args: Namespace) -> None:
    """Measure every number of evaluations on every block of seeds, or the images of a file or a data set once."""
    reference = load_reference(args.ref, rows=len(args.metrics) > 1)
    features = for_calc(args.features, reference, Loading(args.device, args.trust))
    images = reference.provenance.get("source", {})
    benchmark = args.benchmark or images.get("dataset") or args.ref.stem
    if args.ray:
        _calc_with_ray(args, reference, features, benchmark)
        return
    jobs = _jobs(args, benchmark)
    if args.shard is not None:
        share = share_of(args.shard)
        work = Work(jobs, reference, features, args.metrics, args.allow_fewer, _pace(args))
        count = write_shard(work, share, args.out, args.ref.resolve())
        print(f"{args.out}: shard {share}, {count} images")
        return
    measurement = Measurement(
        args.out, reference, features, args.metrics, allow_fewer=args.allow_fewer, pace=_pace(args)
    )
    for line in summary(measurement.rows(jobs)):
        print(line)


def _calc_with_ray(args: Namespace, reference: Reference, features: Features, benchmark: str) -> None:
    from ..fleet.calc import measured
    from ..fleet.workers import Sampled, Setup

    if args.model is None or args.shard is not None:
        raise FidError("--ray is for samples, of --model, and goes without --shard", "BAD_REQUEST")
    options, blocks = _options(args), blocks_of(args.seeds)
    wanted = [
        (Sampled(args.model, block.first, block.count, {**options, **asked}, args.class_label), asked)
        for asked in _evaluations(args)
        for block in blocks
    ]
    known = Reference(reference.moments, reference.provenance, reference.parameters)  # actors need no rows
    loading = Loading(args.device, args.trust)
    setup = Setup(args.data.resolve(), (args.model,), known, args.features, loading)
    out = Measurement(args.out, reference, features, args.metrics, allow_fewer=args.allow_fewer, pace=_pace(args))
    named = (args.method or _method(args, options), benchmark)
    resources = {"size": args.ray, "address": args.ray_address, "cpus": args.ray_cpus, "gpus": args.ray_gpus}
    for line in summary(measured(out, wanted, named, setup, _pace(args), args.allow_fewer, **resources)):
        print(line)


def merge_shards(args: Namespace) -> None:
    """Fold the shards of a measurement into its rows."""
    for line in summary(merge(args.shards, args.out, args.ref, not args.quiet)):
        print(line)


def ref(args: Namespace) -> None:
    """Make a reference of a server's data set, or of images in files."""
    if args.images is not None:
        source: Source = Files(args.images)
    else:
        source = ServerDataset(connected(args), args.dataset)
    features = for_reference(args.features, source, Loading(args.device, args.trust), not args.quiet)
    key = {"source": source.identity(), "features": features.hash, "rows": args.rows}
    going = Pass(source, features, state_folder(args.out, key), _pace(args), args.rows)
    seen = going.run("reference")
    provenance = {
        "source": source.identity(),
        "count": source.count,
        "shape": list(seen.shape),
        "images": seen.digest.hex(),
        "features": {"name": features.name, "hash": features.hash, "published": features.published},
        "versions": versions(),
    }
    rows = going.rows() if args.rows else None
    Reference(seen.running.moments(), provenance, features.arrays(), rows).save(args.out)
    going.discard()
    remove_empty(state_folder(args.out, key).parent)
    print(f"{args.out}: {features.dimension} features ({features.name}) of {source.count} images")


def _jobs(args: Namespace, benchmark: str) -> list[Job]:
    if args.images is not None:
        return [Job(Files(args.images), args.method or args.images.name, benchmark)]
    client = connected(args)
    server = server_versions(client)
    if args.dataset is not None:
        return [Job(ServerDataset(client, args.dataset), args.method or args.dataset, benchmark, versions=server)]
    options = _options(args)
    named = _method(args, options)
    jobs = []
    for asked in _evaluations(args):
        for block in blocks_of(args.seeds):
            source = ServerSamples(client, args.model, block.first, block.count, {**options, **asked}, args.class_label)
            jobs.append(Job(source, args.method or named, benchmark, asked, server))
    return jobs


def _method(args: Namespace, options: dict[str, Any]) -> str:
    """What a row is called where nothing was said."""
    said = {name: value for name, value in options.items() if name != "schedule"}
    return label(args.schedule or args.model) + (f", {_solver(said)}" if said else "")


def _evaluations(args: Namespace) -> list[dict[str, int]]:
    if (args.nfe is None) == (args.steps is None):
        raise FidError("say --nfe or --steps, one of them", "BAD_REQUEST")
    name = "nfe" if args.nfe is not None else "steps"
    return [{name: number} for number in numbers_of(getattr(args, name), f"--{name}")]


def _options(args: Namespace) -> dict[str, Any]:
    """Sample's own options that were given."""
    named = {name: getattr(args, name) for name in ("schedule", "solver", "order", "second_point", "grid")}
    return {**{name: value for name, value in named.items() if value is not None}, **dict(args.option)}


def _solver(options: dict[str, Any]) -> str:
    """A name for options of which `solver` may be absent, as a row is called."""
    return label({"solver": "heun", **options})


def _pace(args: Namespace) -> Pace:
    return Pace(args.batch, args.checkpoint, not args.quiet)


def value_of(text: str) -> Any:
    """JSON where it is that, else the text: a name.

    >>> value_of('{"edm": {"T": 400}}'), value_of("edm")
    ({'edm': {'T': 400}}, 'edm')
    """
    try:
        return json.loads(text)
    except ValueError:
        return text


def option_of(text: str) -> tuple[str, Any]:
    """NAME=VALUE of Sample's options.

    >>> option_of("S_churn=40")
    ('S_churn', 40)
    """
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ValueError(f"{text!r} is no NAME=VALUE")
    return name, value_of(value)


_BLOCK = re.compile(r"(\d+)-(\d+)")


@dataclass(frozen=True, order=True)
class Block:
    """Seeds first … last."""

    first: int
    last: int

    @property
    def count(self) -> int:
        return self.last - self.first + 1

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"


def blocks_of(text: str) -> list[Block]:
    """Blocks of seeds: each is measured by itself.

    >>> [block.count for block in blocks_of("0-49999,50000-99999")]
    [50000, 50000]
    """
    blocks = []
    for part in text.split(","):
        match = _BLOCK.fullmatch(part.strip())
        if match is None or int(match[1]) >= int(match[2]):
            raise FidError(f"--seeds: {part!r} is no block of seeds such as 0-49999", "BAD_REQUEST")
        blocks.append(Block(int(match[1]), int(match[2])))
    for one, other in pairwise(sorted(blocks)):
        if other.first <= one.last:
            raise FidError(f"--seeds: blocks {one} and {other} share seeds", "BAD_REQUEST")
    return blocks


def numbers_of(text: str, flag: str) -> list[int]:
    """Positive whole numbers, or the name of one of the paper's data sets for its list.

    >>> numbers_of("9,35", "--nfe"), numbers_of("cifar10", "--nfe")
    ([9, 35], [9, 11, 13, 15, 17, 35, 59, 79])
    """
    if text in NFES:
        return list(NFES[text])
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        found = [0]
    if min(found) < 1:
        named = f", or one of {', '.join(NFES)}" if flag == "--nfe" else ""
        raise FidError(f"{flag}: {text!r} is no list of positive numbers such as 9,35{named}", "BAD_REQUEST")
    return list(dict.fromkeys(found))


def summary(rows: list[dict[str, Any]]) -> list[str]:
    """A line for each number of evaluations: over its blocks of seeds the mean, the least, and half the range."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(f"{row['method']}" + (f", NFE {row['nfe']}" if row["nfe"] else ""), []).append(row)
    lines = []
    for name, group in groups.items():
        kind = "FID" if group[0]["comparable"] else f"Fréchet distance on {group[0]['features']['name']}"
        parts = [f"{kind} {spread([row['frechet'] for row in group])}"]
        for metric in ("precision", "recall", "density", "coverage"):
            if metric in group[0]:
                parts.append(f"{metric} {np.mean([row[metric] for row in group]):.4f}")
        notes = dict.fromkeys(note for row in group for note in row["notes"])
        lines.append(f"{name}: {', '.join(parts)}" + "".join(f" ({note})" for note in notes))
    return lines


def spread(values: list[float]) -> str:
    """One value, or the least of several with their mean ± half their range.

    >>> spread([2.5]), spread([1.0, 2.0])
    ('2.500', '1.000 of 2 (1.500 ± 0.500)')
    """
    if len(values) == 1:
        return f"{values[0]:.3f}"
    return f"{min(values):.3f} of {len(values)} ({np.mean(values):.3f} ± {half_range(values):.3f})"
