"""``python -m studies.reports.learned``: what learning a schedule gains on CIFAR-10 at 16×16, over three networks.

    make report-learned                                      # everything; a night on two cores
    python -m studies.reports.learned --networks 1 --nfe 9   # a part
    python -m studies.reports.learned --rows g DCT           # some rows
    python -m studies.reports.learned --page                 # the page alone, from the rows that are there

Everything is kept under --data, and each row in studies/docs/learned-rows.jsonl, so that a command that was stopped
goes on where it was: a run from its last stored step, a row from its last checkpoint.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import time
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anisoflight
from anisoflight.errors import AnisoflightError, NotFoundError, UnavailableError
from anisoflight.fid.__main__ import main as fid
from anisoflight.fid.cells import Cells
from anisoflight.recipe.recipe import load
from anisoflight.recipe.stages import Place
from anisoflight.recipe.twin import generate
from studies.reports import learnedpage as page
from studies.reports.learnedpage import FEATURES, GEODESIC, HEUN, IPNDM, LOSS, START, TUNED
from studies.reports.real import CONFIGS, DOCS, ROOT, convert, references

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from anisoflight import Client
    from anisoflight.recipe.recipe import Recipe

# Of all runs, the controls too: the defaults of a run from a model.
LR, EMA_HALFLIFE_KIMG = 1e-4, 5.12
BATCH, KIMG = 256, 102.4
BLOCKS = (300_000, 400_000)
"""First seeds of the blocks, of which each has a distance."""
COUNT = 2500
"""Samples of a block."""
TUNING_SEED, TUNING_COUNT = 200_000, 1000
NFE = (9, 13, 35, 17)
"""In the order in which they are measured."""
TWIN = {"batch": 4, "kimg": 0.008, "count": 6, "tuning_count": 4}

_LAST: dict[str, Any] = {"keep": "last"}
TRAINED: dict[str, tuple[str, dict[str, Any]]] = {
    "g": ("g", {"stage": "isotropic"}),
    LOSS: ("edm-loss", {"stage": "pretrain"}),
    "trajectory loss, path stays": ("trajectory-loss", {"stage": "isotropic", "train_schedule": False, **_LAST}),
    "DCT": ("dct", {"stage": "anisotropic", "family": {"basis": "dct"}}),
    "PCA": ("pca", {"stage": "anisotropic", "family": {"basis": "pca"}}),
    "{g_y}": ("g-per-class", {"stage": "isotropic", "family": {"per_class": True}}),
    "path alone": ("path", {"stage": "isotropic", "train_network": False, **_LAST}),
}
"""Rows that are trained: their names in those of runs, and their settings. The first is trained first."""
GEODESICS: dict[str, tuple[str, dict[str, float]]] = {
    GEODESIC: ("geodesic", {}),
    "geodesic, c → ∞": ("geodesic-c-1e9", {"c": 1e9}),
    "geodesic, T of 9": ("geodesic-sigma-20", {"T": 20.0**2}),
    "geodesic, T of 35": ("geodesic-sigma-40", {"T": 40.0**2}),
}
"""Rows that are made without training: their names in those of schedules, and their options."""
PATH_STAYS = (LOSS, "trajectory loss, path stays")
SAMPLERS: dict[str, dict[str, str]] = {
    HEUN: {"solver": "heun", "second-point": "endpoint"},
    IPNDM: {"solver": "ipndm", "grid": "polynomial", "schedule": "edm"},
}
LEVELS = [
    {"grid": json.dumps({grid: {"sigma_max": sigma, "rho": rho}}), **more}
    for (grid, more), sigma, rho in product(
        (("polynomial", {"option": "denoise_to_zero=true"}), ("edm", {})), (80, 40, 20, 10), (7, 5, 3)
    )
]
"""What Heun's method is tuned among: options of Sample."""


@dataclass(frozen=True)
class Row:
    """What is sampled: the network of a training, None the start's, with options of Sample."""

    name: str
    sampler: str
    trained: str | None = None
    schedule: str | None = None
    """One of GEODESICS, or edm; None is the model's own."""
    along: str = ""
    """What follows the name, of a second row of the same training."""
    options: dict[str, str] = field(default_factory=dict)

    @property
    def method(self) -> str:
        return self.name + self.along


def rows() -> Iterator[Row]:
    """All rows of a network and a number of evaluations, those that the aims are about first."""
    yield Row(GEODESIC, HEUN, schedule=GEODESIC)
    yield Row(START, IPNDM)
    for name in TRAINED:
        stays = name in PATH_STAYS
        yield Row(name, HEUN, name, GEODESIC if stays else None)
        if name == "path alone":  # has the start's network
            continue
        yield Row(name, IPNDM, name)
        if not stays:
            yield Row(name, HEUN, name, GEODESIC, page.ALONG_START)
    yield Row("midpoint", HEUN, schedule=GEODESIC, options={"second-point": "midpoint"})
    yield Row("uniform", HEUN, schedule="edm")
    yield Row("edm", HEUN, schedule="edm", options={"grid": "edm"})
    for name in GEODESICS:
        if name != GEODESIC:
            yield Row(name, HEUN, schedule=name)
    yield Row(TUNED, HEUN, schedule="edm")


NAMES = list(dict.fromkeys(row.name for row in rows()))


@dataclass(frozen=True)
class Study:
    """Where and how long rows are trained and measured, on one network."""

    client: Client
    recipe: Recipe
    """Of the network: its data set and its pre-training."""
    data: Path
    docs: Path
    batch: int
    kimg: float
    count: int
    tuning_count: int
    references: dict[str, Path] = field(default_factory=dict)
    """By the features."""

    @property
    def seed(self) -> int:
        return self.recipe.seed

    @property
    def server(self) -> list[str]:
        return ["--server", self.client.location]

    def name(self, of: str) -> str:
        """The name of a run and its model, or of a schedule."""
        return f"{self.recipe.name}-learned-{of}-s{self.seed}"


def measure(study: Study, row: Row, nfe: int) -> None:
    """Measure a row unless it is there, and what it needs before it."""
    model = _model(study, row.trained)
    options = {"solver": "heun", **SAMPLERS[row.sampler], **row.options}
    if row.schedule in GEODESICS:
        options["schedule"] = _schedule(study, row.schedule)
    elif row.schedule:
        options["schedule"] = row.schedule
    seeds = ",".join(f"{first}-{first + study.count - 1}" for first in BLOCKS)
    out = study.docs / page.ROWS
    if row.name == TUNED:
        for features, levels in _tuned(study, model, options, nfe).items():
            _calc(study, model, {**options, **levels}, nfe, seeds, row.method, out, [features])
    else:
        _calc(study, model, options, nfe, seeds, row.method, out, FEATURES)


def _calc(
    study: Study, model: str, options: dict[str, str], nfe: int, seeds: str, method: str, out: Path,
    features: Sequence[str],
) -> None:  # fmt: skip
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    words += ["--nfe", str(nfe), "--seeds", seeds, "--allow-fewer", "--quiet", "--method", method, "--out", str(out)]
    words += ["--benchmark", f"network {study.seed}", "--ref", *(str(study.references[name]) for name in features)]
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        status = fid(["calc", "--model", model, *words, *study.server])
    if status == 130:
        raise KeyboardInterrupt
    if status:
        raise RuntimeError(f"fid calc of {method} ended with {status}")


def _tuned(study: Study, model: str, options: dict[str, str], nfe: int) -> dict[str, dict[str, str]]:
    """By the features, the levels with the least distance on seeds that no row is measured on."""
    out = study.data / page.TUNING
    seeds = f"{TUNING_SEED}-{TUNING_SEED + study.tuning_count - 1}"
    for levels in LEVELS:
        _calc(study, model, {**options, **levels}, nfe, seeds, json.dumps(levels), out, FEATURES)
    found = page.read(out)
    found = found[(found.network == study.seed) & (found.nfe == nfe)].set_index("method")
    return {name: json.loads(str(found[found.features == name].frechet.idxmin())) for name in FEATURES}


def _model(study: Study, name: str | None) -> str:
    """The model of a row, trained unless it is there; None is the network that all start from."""
    recipe = study.recipe
    if name is None:
        _train(study.client, recipe.network_model, recipe.pretrain_settings)
        return recipe.network_model
    called, settings = TRAINED[name]
    common = {"dataset": recipe.name, "model": _model(study, None), "seed": study.seed, "batch": study.batch}
    common |= {"kimg": study.kimg, "lr": LR, "ema_halflife_kimg": EMA_HALFLIFE_KIMG}
    run = _train(study.client, study.name(called), {**common, **settings})
    if run:
        kept = {"network": study.seed, "row": name, **{k: run["config"].get(k) for k in ("kimg", "batch", "lr")}}
        kept |= {k: run.get(k) for k in ("outcome", "notes", "step_seconds")}
        key = {"run": study.name(called), "created": run["created"]}
        Cells(study.docs / page.OUTCOMES).measured(key, lambda: kept)
    return study.name(called)


def _train(client: Client, name: str, settings: dict[str, Any]) -> dict[str, Any] | None:
    """Train a run to its end and save its model, unless that is done; returns what the server says of the run.

    It is None of a model whose run was deleted. A run that is there with other settings is a ValueError.
    """
    saved = name in {found["name"] for found in client.call("ListModels")["models"]}
    try:
        run = client.run(name)
    except NotFoundError:
        if saved:
            return None
        run = client.create_run(name, **settings)
    config = run.info["config"]
    for key, value in settings.items():
        if not isinstance(value, dict) and config.get(key, False) != value:
            said = f"the run {name} that is there has {key} {config.get(key)}, not {value}"
            raise ValueError(f"{said}; delete it and its model, or choose another --data")
    if run.state in ("created", "paused"):
        _say(f"training {name} from step {run.info['step']}")
        run.start(settings["kimg"])
    if run.wait(progress=False).attrs.get("interrupted"):
        run.pause()
        raise KeyboardInterrupt
    if run.state != "done":
        raise RuntimeError(f"the run {name} is {run.state} {run.info.get('error', '')}")
    if not saved:
        run.save(name)  # which measures the last state
    return run.info


def _schedule(study: Study, name: str) -> str:
    """The geodesic of a row, made unless it is there; runs measure theirs with the same seed."""
    called, options = GEODESICS[name]
    stored = study.name(called)
    if stored not in study.client.schedules().index:
        common = {"model": study.recipe.network_model, "dataset": study.recipe.name, "seed": study.seed}
        study.client.make_schedule(stored, "geodesic", progress=False, **common, **options)
    return stored


def _say(text: str) -> None:
    print(time.strftime("%H:%M:%S"), text, flush=True)


def _found(study: Study, row: Row, nfe: int) -> str:
    """What was measured of a row, in a few words."""
    found = page.read(study.docs / page.ROWS)
    chosen = (found.network == study.seed) & (found.sampler == row.sampler) & (found.method == row.method)
    means = found[chosen & (found.nfe == nfe)].groupby("features").frechet.mean()
    return ", ".join(f"{features} {mean:.3g}" for features, mean in means.items())


def run(args: argparse.Namespace) -> int:
    """Measure what is asked for, network by network; returns the number of rows that failed."""
    sizes: dict[str, Any] = {"batch": BATCH, "kimg": args.kimg or KIMG, "count": COUNT, "tuning_count": TUNING_COUNT}
    if args.twin:
        sizes = TWIN | ({"kimg": args.kimg} if args.kimg else {})
    chosen = [row for row in rows() if row.name in args.rows]
    failed = 0
    args.data.mkdir(parents=True, exist_ok=True)
    recipes = [load([CONFIGS / "isotropic.yaml"], args.twin, seed)[0] for seed in args.networks]
    if args.twin:
        generate(recipes[0].dataset, Place(args.data).source(recipes[0]))
    convert(recipes[0], args.data, args.source)
    with anisoflight.serve(data=args.data) as client:
        for recipe in recipes:
            study = Study(client, recipe, args.data, args.docs, **sizes)
            made = references(study.server, study.data, recipe.name, study.count)
            study = replace(study, references=dict(zip(FEATURES, made, strict=True)))
            for nfe, row in product(args.nfe, chosen):
                title = f"network {study.seed}, NFE {nfe}, {row.sampler}, {row.method}"
                began = time.monotonic()
                try:
                    measure(study, row, nfe)
                except UnavailableError:  # the server is gone: what follows would fail as well
                    raise
                except (AnisoflightError, RuntimeError, ValueError) as error:
                    failed += 1
                    _say(f"{title}: FAILED: {error}")
                else:
                    _say(f"{title}: {_found(study, row, nfe)} ({time.monotonic() - began:.0f} s)")
            page.write(args.docs)
    return failed


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: 0, or 1 if a row failed, 130 if interrupted."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.reports.learned",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--source", type=Path, default=ROOT / "downloads" / "cifar10.zip",
                        help="CIFAR-10 with a folder for each class in train/ (default %(default)s)")  # fmt: skip
    parser.add_argument("--data", type=Path, default=ROOT / "runs" / "real", help="data folder (default %(default)s)")
    parser.add_argument("--networks", type=int, nargs="+", default=list(page.NETWORKS), help="default 1 2 3")
    parser.add_argument("--nfe", type=int, nargs="+", default=list(NFE), help="in this order (default 9 13 35 17)")
    parser.add_argument("--rows", nargs="+", default=NAMES, choices=NAMES, metavar="NAME",
                        help=f"of {'; '.join(NAMES)} (default all)")  # fmt: skip
    parser.add_argument("--kimg", type=float, help=f"thousands of images of a run (default {KIMG})")
    parser.add_argument("--page", action="store_true", help="write the page alone")
    parser.add_argument(
        "--docs", type=Path, default=DOCS, help="folder of the page and of the rows (default %(default)s)"
    )
    parser.add_argument("--twin", action="store_true", help=argparse.SUPPRESS)  # a smoke test: the recipe's twin
    args = parser.parse_args(arguments)
    failed = 0
    if not args.page:
        if not (args.twin or args.source.exists() or (args.data / "datasets" / "cifar10-16").exists()):
            parser.error(f"{args.source} is missing; give the images as --source")
        try:
            failed = run(args)
        except KeyboardInterrupt:
            _say("interrupted; the same command goes on with what is left")
            return 130
    print(page.write(args.docs))
    if failed:
        print(f"{failed} rows failed; the same command tries them again", file=sys.stderr)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
