"""``python -m anisoflight.fid``: reference statistics, and FID of samples."""

import argparse
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

from ..plans.plan import Plan
from ..serving.commands import add_server, connected, ended, exit_with, path_of, positive, value_of
from ..wire.calls import DEFAULT_LOCATION
from ..wire.progress import Progress
from .errors import FidError
from .features import for_each, for_reference
from .networks import Loading
from .reference import Reference, floor_of, floor_sizes, load_reference
from .rows import METRICS, NEIGHBOURS, Job, Measurement, measured, needs_rows, remaining_work, state_of, versions
from .shards import merge, share_of, write_shard
from .sources import PROBES, Files, ServerDataset, ServerSamples, Source, server_versions
from .stretches import Pace, Stretch, bounds, look, see, stretch_file
from .table import METRICS as COLUMNS
from .table import NFES, markdown, sections

Samples = list[tuple[partial[ServerSamples], dict[str, int]]]
"""What is sampled once there is a server, each with {"nfe": …} or {"steps": …}."""


EXAMPLES = {
    "ref": "python -m anisoflight.fid ref --dataset cifar10 --features inception.pkl --trust --out cifar10.npz",
    "calc": "python -m anisoflight.fid calc --model cifar10 --schedule pca --second-point endpoint --nfe cifar10\n"
    "    --seeds 0-49999,50000-99999,100000-149999 --ref cifar10.npz --features inception.pkl --trust\n"
    "    --benchmark cifar10 --method pca --out results.jsonl",
    "merge": "python -m anisoflight.fid merge shard-*.npz --out results.jsonl",
}
EPILOG = "features: a network's file (.pkl of EDM with --trust, .pt, .torchscript, .onnx), or for small images, and\n"
EPILOG += "not FID: pixels, pca-N. docs/fid.md explains every number."
_BLOCK = re.compile(r"(\d+)-(\d+)")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    root = argparse.ArgumentParser(prog="python -m anisoflight.fid", description=__doc__)
    commands = root.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, about: str, run: Callable[[argparse.Namespace], None]) -> argparse.ArgumentParser:
        text = f"example:\n    {EXAMPLES[name]}\n\n{EPILOG}"
        style = argparse.RawDescriptionHelpFormatter
        made = commands.add_parser(name, help=about, description=about, epilog=text, formatter_class=style)
        made.set_defaults(run=run)
        made.add_argument("--quiet", action="store_true", help="no progress bars")
        return made

    ref_command = command("ref", "reference statistics of real images, as EDM's npz {mu, sigma}", ref)
    _images(ref_command.add_mutually_exclusive_group(required=True))
    ref_command.add_argument("--rows", action="store_true", help="keep the features too, for other metrics")
    about = "distances of real images to each other to keep, for these N, or none (default: 1000,2000,5000 … and half)"
    ref_command.add_argument("--floor", metavar="LIST", help=about)
    ref_command.add_argument("--out", metavar="NPZ", type=path_of, required=True, help="the reference")
    calc_command = command("calc", "distances of samples, or of images in files, to a reference", calc)
    _calc(calc_command)
    for made in (ref_command, calc_command):
        seen = made.add_argument_group("features")
        about, how = "a network's file, or pixels, pca-N", dict[str, Any](required=True)
        if made is calc_command:
            about += "; several if there are several references (default: the reference's built-in)"
            how = {"nargs": "+", "action": "extend", "default": []}
        seen.add_argument("--features", help=about, **how)
        seen.add_argument("--trust", action="store_true", help="load a pickle, which executes code in it")
        seen.add_argument(
            "--device", default="auto", help="device of the network: auto, cpu, cuda, cuda:1 (default auto)"
        )
        about = "images at a time (default %(default)s)"
        seen.add_argument("--batch", type=positive, metavar="N", default=Pace.batch, help=about)
        add_server(made.add_argument_group("server"), DEFAULT_LOCATION, "location (default %(default)s)")
        about = "images between two checkpoints, of a request to the server, and of a stretch (default %(default)s)"
        made.add_argument("--checkpoint", type=positive, metavar="N", default=Pace.checkpoint, help=about)

    made = command("merge", "rows of results from the shards of calc --shard", merge_shards)
    made.add_argument("shards", metavar="SHARD", nargs="+", type=path_of, help="files of calc --shard, all of them")
    about = "the reference (default: the file that the shards name)"
    made.add_argument("--ref", metavar="NPZ", type=path_of, help=about)
    made.add_argument("--out", metavar="JSONL", type=path_of, required=True, help="rows of results")
    return root


def _images(group: argparse._MutuallyExclusiveGroup) -> None:
    group.add_argument("--dataset", help="images of this data set of the server")
    group.add_argument("--images", metavar="PATH", type=path_of, help="images of a folder, a .zip or an .npz")


def _calc(command: argparse.ArgumentParser) -> None:
    source = command.add_mutually_exclusive_group(required=True)
    source.add_argument("--model", help="samples of this model")
    _images(source)
    drawn = command.add_argument_group("sampling (defaults are the server's)")
    drawn.add_argument("--seeds", metavar="A-B[,C-D…]", default="0-49999", help="blocks of seeds (default %(default)s)")
    drawn.add_argument(
        "--nfe", metavar="LIST", help="evaluations such as 9,35, or the paper's list for a data set: cifar10 …"
    )
    drawn.add_argument("--steps", metavar="LIST", help="solver steps such as 5,18, in place of --nfe")
    drawn.add_argument("--schedule", type=value_of, help='a name, or JSON such as {"edm": {"T": 400}}')
    drawn.add_argument(
        "--plan", type=_plan_of, help="a stored plan or its file (.json), in place of a solver and --nfe"
    )
    drawn.add_argument("--solver")
    drawn.add_argument("--order", type=positive)
    drawn.add_argument("--second-point", choices=("midpoint", "endpoint"), help="of heun; published FIDs: endpoint")
    drawn.add_argument("--grid", type=value_of, help="a name, or JSON")
    option: dict[str, Any] = {"metavar": "NAME=VALUE", "type": option_of, "action": "append", "default": []}
    drawn.add_argument("--option", **option, help="any other option of Sample, its value JSON or a name: S_churn=40")
    about = "class of all samples, −1 for none (default: drawn by the server)"
    drawn.add_argument("--class", metavar="N", dest="class_label", type=int, help=about)
    measured = command.add_argument_group("what is measured")
    about = "the reference; several are measured in one pass, with a row each"
    measured.add_argument("--ref", metavar="NPZ", type=path_of, nargs="+", action="extend", required=True, help=about)
    about = f"comma-separated, of {', '.join(METRICS)} (default fid); {' and '.join(NEIGHBOURS)} need ref --rows"
    measured.add_argument("--metrics", type=_metrics, default=("fid",), help=about)
    measured.add_argument(
        "--allow-fewer", action="store_true", help="measure fewer than 50,000 images; rows have a note"
    )
    measured.add_argument("--benchmark", help="the table's data set: cifar10, afhqv2, ffhq, imagenet64, or any name")
    measured.add_argument("--method", help="the table's row (default: from schedule and solver)")
    measured.add_argument("--dry-run", action="store_true", help="print what would be measured, and draw nothing")
    measured.add_argument("--out", metavar="FILE", type=path_of, required=True, help="rows of results (JSONL)")
    shared = command.add_argument_group("distribution (docs/scale.md)")
    about = "compute only shard I of N, I = 0 … N−1; --out is the shard's file (npz), for merge"
    shared.add_argument("--shard", metavar="I/N", help=about)
    about = "N actors of Ray, each with its own server on --data, share the work (anisoflight[fleet])"
    shared.add_argument("--ray", metavar="N", type=positive, default=0, help=about)
    shared.add_argument("--ray-address", metavar="URL", help="the cluster (default: $RAY_ADDRESS, else this machine)")
    shared.add_argument("--ray-cpus", metavar="X", type=float, default=1, help="CPUs of an actor (default 1)")
    about = "GPUs of an actor (default: 1 if the cluster has any, else 0)"
    shared.add_argument("--ray-gpus", metavar="X", type=float, help=about)
    about = "data folder of the models, with the same path on every node (default %(default)s)"
    shared.add_argument("--data", metavar="DIR", type=path_of, default=path_of("data"), help=about)


def _metrics(text: str) -> tuple[str, ...]:
    asked = text.split(",")
    if unknown := [name for name in asked if name not in METRICS]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is not one of {', '.join(METRICS)}")
    return tuple(name for name in METRICS if name in asked or name == "fid")


def ref(args: argparse.Namespace) -> None:
    """Make a reference from a server's data set, or from images in files."""
    ((source, _),), _ = _opened(args, [])
    pace, identity = Pace(args.batch, args.checkpoint, not args.quiet), source.identity()
    features = for_reference(args.features, source, Loading(args.device, args.trust))
    asked = [] if args.floor == "none" else args.floor and numbers_of(args.floor, "--floor")
    sizes = floor_sizes(asked, source.count)
    key = {"source": identity, "features": features.hash, "rows": args.rows}
    with state_of(args.out, key, "another program makes this reference; waiting for it") as folder:
        looked = partial(look, source, features, pace.batch)
        seen = see(looked, source.count, features.dimension, folder, pace, "reference", args.rows)
        kept = (stretch_file(folder, stretch) for stretch in bounds(source.count, pace.checkpoint))
        parts = (Stretch.load(file).features for file in kept)
        floor = floor_of(parts, features.dimension, source.count, sizes, seen.digest, pace.progress)
        provenance = {
            "source": identity,
            "count": source.count,
            "shape": seen.shape,
            "images": seen.digest.hex(),
            "features": {name: value for name, value in features.facts.items() if name != "dimension"},
            "versions": versions(),
            "floor": floor,
        }
        rows = seen.rows() if args.rows else None
        Reference(seen.running.moments(), provenance, features.parameters, rows).save(args.out)
    print(f"{args.out}: {features.dimension} features ({features.name}) of {source.count} images")
    for size, distance in floor.items():
        print(f"real images, N = {size}: {distance:.4g}")


def calc(args: argparse.Namespace) -> None:
    """Measure every number of evaluations on every block of seeds, or the images of a file or a data set."""
    references = [load_reference(path, rows=needs_rows(args.metrics)) for path in args.ref]
    loading, pace = Loading(args.device, args.trust), Pace(args.batch, args.checkpoint, not args.quiet)
    features = for_each(args.features, references, loading)
    if "ode-error" in args.metrics and not args.model:
        raise FidError("ode-error needs --model: it compares samples with exact solutions", "BAD_REQUEST")
    samples, name = _samples(args) if args.model else ([], args.dataset or args.images.name)
    if (args.ray or args.shard is not None) and (args.dry_run or len(args.ref) > 1 or len(args.features) > 1):
        raise FidError("--ray and --shard take one --ref and one of --features, and no --dry-run", "BAD_REQUEST")
    measurements, jobs = [], []
    for path, reference, seen in zip(args.ref, references, features, strict=True):
        measurements.append(Measurement(args.out, reference, seen, args.metrics, args.allow_fewer, pace))
        benchmark = args.benchmark or reference.provenance.get("source", {}).get("dataset") or path.stem
        jobs.append(partial(Job, method=args.method or name, benchmark=benchmark))
    if args.ray:
        from .fleet import Fleet, Setup

        if not samples or args.shard is not None:
            raise FidError("--ray needs --model, and excludes --shard", "BAD_REQUEST")
        known = replace(references[0], rows=None)  # actors need none
        setup = Setup(args.data.resolve(), args.model, known, next(iter(args.features), None), loading, pace.batch)
        with Fleet(setup, args.ray, args.ray_address, args.ray_cpus, args.ray_gpus) as fleet:
            _show(fleet.rows(measurements[0], jobs[0], samples))
        return
    sources, server = _opened(args, samples)
    images = []
    for source, asked in sources:
        known = {"source": source.identity(), "count": source.count, "asked": asked}
        if isinstance(source, ServerSamples):
            known["cost"] = source.cost
        looks = [partial(look, source, seen, pace.batch) for seen in features]
        made = [job(**known, look=looked, versions=server) for job, looked in zip(jobs, looks, strict=True)]
        images.append(list(zip(measurements, made, strict=True)))
    first = [pairs[0][1] for pairs in images]
    if args.shard is not None:
        count = write_shard(measurements[0], first, share_of(args.shard), args.ref[0].resolve())
        print(f"{args.out}: shard {args.shard}, {count} images")
        return
    measurements[0].require_enough(first)
    plan = remaining_work(images)
    if args.dry_run:
        print("\n".join(plan))
        return
    if pace.progress:
        Progress.write(plan[-1])
    _show(measured(images))


def merge_shards(args: argparse.Namespace) -> None:
    """Merge the shards of a measurement into its rows."""
    _show(merge(args.shards, args.out, args.ref, not args.quiet))


def _show(rows: list[dict[str, Any]]) -> None:
    """Print rows as tables, one for each metric."""
    for metric in COLUMNS:
        if metric in rows[0]:
            print(markdown(sections(rows, metric)))


def _samples(args: argparse.Namespace) -> tuple[Samples, str]:
    """The samples to measure, and the name of their rows."""
    named = {name: getattr(args, name) for name in ("schedule", "solver", "order", "second_point", "grid")}
    options = {**{name: value for name, value in named.items() if value is not None}, **dict(args.option)}
    if [args.nfe, args.steps, args.plan].count(None) != 2:
        raise FidError("give one of --nfe, --steps and --plan", "BAD_REQUEST")
    unit = next(name for name in ("nfe", "steps", "plan") if getattr(args, name) is not None)
    if unit == "plan" and "ode-error" in args.metrics:
        raise FidError("ode-error needs a schedule, whose path is solved exactly; a plan has none", "BAD_REQUEST")
    asked = (
        [{"plan": args.plan}]
        if unit == "plan"
        else [{unit: number} for number in numbers_of(getattr(args, unit), f"--{unit}")]
    )
    sources = []
    for one in asked:
        for first, last in blocks_of(args.seeds):
            drawn = {"first": first, "count": last - first + 1, "options": {**options, **one}}
            drawn |= {"label": args.class_label, "probes": PROBES if "ode-error" in args.metrics else 0}
            sources.append((partial(ServerSamples, model=args.model, **drawn), {} if unit == "plan" else one))
    if unit == "plan":
        name = args.plan if isinstance(args.plan, str) else args.plan["solver"]
        return sources, f"{args.model}, plan {name}"
    solver = {name: value for name, value in options.items() if name != "schedule"}
    name = label(args.schedule or args.model)
    return sources, name + (f", {label({'solver': 'heun', **solver})}" if solver else "")


def _opened(args: argparse.Namespace, samples: Samples) -> tuple[list[tuple[Source, dict[str, int]]], dict[str, str]]:
    """What is measured, and the versions of the server."""
    if args.images is not None:
        return [(Files(args.images), {})], {}
    client = connected(args)
    sources: list[tuple[Source, dict[str, int]]] = [(source(client), asked) for source, asked in samples]
    return sources or [(ServerDataset(client, args.dataset), {})], server_versions(client)


def _plan_of(text: str) -> str | dict[str, Any]:
    """The name of a stored plan, or the plan of a file, whose name ends in .json."""
    return Plan.load(text).wire if text.endswith(".json") else text


def label(choice: str | Mapping[str, Any]) -> str:
    """The name of a schedule or a solver in a table: a name, or fields of Sample.

    >>> label("ab"), label({"solver": "heun", "second_point": "endpoint"}), label({"edm": {"T": 400}})
    ('ab', 'heun endpoint', 'edm T=400')
    """
    if isinstance(choice, str):
        return choice
    words = []
    for key, value in choice.items():
        if isinstance(value, Mapping):
            words += [key, *(f"{name}={number}" for name, number in value.items())]
        elif isinstance(value, str):
            words.append(value)
        elif isinstance(value, bool):
            words += [key] if value else [f"no {key}"]
        else:
            words.append(f"{key}={json.dumps(value)}")
    return " ".join(words)


def option_of(text: str) -> tuple[str, Any]:
    """NAME=VALUE as an option of Sample.

    >>> option_of("S_churn=40")
    ('S_churn', 40)
    """
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ValueError(f"{text!r} is no NAME=VALUE")
    return name, value_of(value)


def blocks_of(text: str) -> list[tuple[int, int]]:
    """Blocks of seeds, first and last.

    >>> blocks_of("0-49999,50000-99999")
    [(0, 49999), (50000, 99999)]
    """
    blocks = []
    for part in text.split(","):
        match = _BLOCK.fullmatch(part.strip())
        if match is None or int(match[1]) >= int(match[2]):
            raise FidError(f"--seeds: {part!r} is no block of seeds such as 0-49999", "BAD_REQUEST")
        blocks.append((int(match[1]), int(match[2])))
    for one, other in pairwise(sorted(blocks)):
        if other[0] <= one[1]:
            message = f"blocks {one[0]}-{one[1]} and {other[0]}-{other[1]} share seeds"
            raise FidError(f"--seeds: {message}", "BAD_REQUEST")
    return blocks


def numbers_of(text: str, flag: str) -> list[int]:
    """Positive integers, or the paper's list for one of its data sets.

    >>> numbers_of("9,35", "--nfe"), numbers_of("cifar10", "--nfe")
    ([9, 35], [9, 11, 13, 15, 17, 35, 59, 79])
    """
    if text in NFES:
        return NFES[text]
    parts = text.split(",")
    if not all(part.strip().isdigit() and int(part) for part in parts):
        raise FidError(f"{flag}: {text!r} is no list of positive numbers such as 9,35", "BAD_REQUEST")
    return list(dict.fromkeys(map(int, parts)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command: 0, 1 of a named error, 130 if interrupted."""
    args = parser().parse_args(arguments)
    return ended(lambda: args.run(args), interrupted="interrupted; the same command continues from the last checkpoint")


if __name__ == "__main__":
    exit_with(main)
