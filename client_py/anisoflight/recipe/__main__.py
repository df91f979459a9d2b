"""``python -m anisoflight.recipe``: everything from a data set to a table, as recipes say."""

import argparse
import contextlib
import importlib
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import AnisoflightError, NotFoundError, say
from ..files.locks import exclusive
from ..operations.training import Run
from ..serving.client import Client
from ..serving.commands import add_folder, ended, exit_with, folder_server, path_of
from .recipe import Recipe, load, network_report
from .stages import MEASURES, Place, Stage, most_ratio, stages_of
from .twin import generate

EXAMPLES = """examples:
    python -m anisoflight.recipe configs/cifar10/dct.yaml --dry-run
    python -m anisoflight.recipe configs/cifar10/dct.yaml --data data --features inception.pt
    python -m anisoflight.recipe configs/*/*ct.yaml --twin --data runs/twins

Results are kept: after an interrupt the same command continues. See docs/recipes.md."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    style = argparse.RawDescriptionHelpFormatter
    prog = "python -m anisoflight.recipe"
    root = argparse.ArgumentParser(prog=prog, description=__doc__, epilog=EXAMPLES, formatter_class=style)
    root.add_argument("recipes", metavar="FILE", nargs="+", type=path_of, help="such as configs/cifar10/dct.yaml")
    root.add_argument("--dry-run", action="store_true", help="print the stages and their commands, and do nothing")
    root.add_argument("--twin", action="store_true", help="the scaled-down twins: generated images, small networks")
    root.add_argument(
        "--seed", type=int, metavar="N", help="seed of all runs in place of the recipes'; models end in -sN"
    )
    about = "network of the distances, as python -m anisoflight.fid takes it, or none (default: none; of a twin pixels)"
    root.add_argument("--features", metavar="NETWORK", help=about)
    root.add_argument("--trust", action="store_true", help="load a pickle of features, which executes code in it")
    place = root.add_argument_group("where")
    add_folder(place)
    for name, about in (("device", "backend of that server: cpu, cuda, go"), ("devices", "which devices it uses")):
        place.add_argument(f"--{name}", metavar=name.upper(), help=f"{about}, as in anisoflight serve")
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the recipes: 0, 1 of a named error, 2 of wrong usage, 130 if interrupted."""
    args = parser().parse_args(arguments)
    return ended(lambda: _run(args), interrupted="interrupted; the same command continues")


def _run(args: argparse.Namespace) -> None:
    recipes = load(args.recipes, args.twin, args.seed)
    features = args.features or ("pixels" if args.twin else "none")
    place = Place(args.data, "FEATURES" if features == "none" else features, args.trust)
    if args.dry_run:
        print("\n\n".join("\n".join(_lines(recipe, place)) for recipe in recipes))
        return
    if args.data == Path("data"):
        args.data.mkdir(exist_ok=True)
    elif not args.data.is_dir():
        raise FileNotFoundError(f"the data folder {args.data} does not exist; choose another --data, or make it")
    lock = exclusive(args.data / "recipe.lock", lambda: say("another recipe uses the folder; waiting for it"))
    with lock, _server(args) as client:
        _do_all(client, recipes, replace(place, server=client.location), features != "none")
    if features == "none":
        commands = [s.command for r in recipes for s in stages_of(r, place) if s.kind in MEASURES]
        print("The models are made. To measure them, serve the folder, and name a network of features:")
        print("\n".join(f"  {line}" for line in dict.fromkeys([f"anisoflight serve --data {place.data}", *commands])))


def _lines(recipe: Recipe, place: Place) -> Iterator[str]:
    """The stages of a recipe, with their commands."""
    d, report = recipe.dataset, network_report(recipe)
    classes = f"in {d.classes} classes" if d.classes else "without classes"
    yield f"recipe {recipe.file}"
    yield f"data set {recipe.name}: {d.images} images of {d.resolution}×{d.resolution}×{d.channels}, {classes}"
    yield f"network {recipe.network_model}: {report['model_type']}, {report['parameters']} parameters"
    for number, stage in enumerate(stages_of(recipe, place), 1):
        if stage.kind == "figures":
            yield f"\n# for the rest, a server of the folder\nanisoflight serve --data {place.data} &"
        yield f"\n# {number} {stage.kind}\n{stage.command}"
        request = stage.request
        if request.get("stage") == "anisotropic" and request.get("schedule_lr_ramp") == "published":
            reach, ratio = most_ratio(request, recipe.lineage[0].train.get("T", 6400))
            yield f"# the rates of the schedule add up to {reach:.4f}: g₁/g₂ can reach about {ratio:.3f}"


def _server(args: argparse.Namespace) -> AbstractContextManager[Client]:
    """The named server, else that of the data folder, else a new one."""
    if token := args.token_file:
        os.environ["ANISOFLIGHT_TOKEN"] = token.read_text(encoding="utf-8").strip()
    for name in ("tls_ca", "client_cert", "client_key"):  # the stages find them there
        if file := getattr(args, name):
            os.environ[f"ANISOFLIGHT_{name.upper()}"] = str(file)
    options = {"--device": args.device, "--devices": args.devices, "--max-upload-bytes": str(1 << 40)}
    return folder_server(args, *(word for flag, value in options.items() if value for word in (flag, value)))


def _do_all(client: Client, recipes: list[Recipe], place: Place, measures: bool) -> None:
    """Run the stages that are left, each distinct command once, and the tables last."""
    done: set[str] = set()
    for tables in (False, True):
        for recipe in recipes:
            stages = stages_of(recipe, place)
            for number, stage in enumerate(stages, 1):
                if (stage.kind == "table") != tables or stage.command in done:
                    continue
                if stage.kind in MEASURES and not measures:
                    continue
                _do(client, recipe, stage, place, f"{recipe.file}, stage {number} of {len(stages)}, {stage.kind}")
                done.add(stage.command)


def _do(client: Client, recipe: Recipe, stage: Stage, place: Place, heading: str) -> None:
    """Run a stage unless its result exists, and compare the result with the recipe."""
    if stage.trains:
        _train(client, stage, place, heading)
    elif stage.kind not in ("figures", "fid", "table") and stage.path(place.data).exists():
        say(f"{heading}: {stage.makes} exists")
    else:
        say(f"{heading}: {stage.command}")
        if stage.kind == "data" and recipe.dataset.generate:
            generate(recipe.dataset, place.source(recipe))
        elif stage.source[0] and not path_of(stage.source[0]).exists():
            file, origin = stage.source
            raise recipe.error("", f"the source {file} is missing; get it from {origin}")
        if stage.kind == "basis":
            client.make_basis(stage.makes, **stage.request)
        else:
            _python(stage, heading, ["--server", place.server] if stage.kind == "data" else [])
    if stage.kind == "data":
        _check_data(client, recipe)
    elif stage.kind == "network":
        have = client.call("DescribeModel", model=stage.makes)["config"]
        _compare(recipe, "network.config.", recipe.network.config, have, f"model {stage.makes}")


def _python(stage: Stage, heading: str, extra: list[str]) -> None:
    """Run a program of this package, which prints its errors."""
    module, *arguments = stage.words[2:]
    program = importlib.import_module(module if module.endswith("table") else f"{module}.__main__")
    status = program.main([*arguments, *extra])
    if status == 130:
        raise KeyboardInterrupt
    if status:
        raise AnisoflightError(f"{heading}: {module} failed")


def _train(client: Client, stage: Stage, place: Place, heading: str) -> None:
    """Train a run to its end and save its model; an existing run is continued."""
    saved = stage.path(place.data).exists
    try:
        run = client.run(stage.makes)
    except NotFoundError:
        if saved():  # the run was deleted
            say(f"{heading}: {stage.makes} exists")
            return
        say(f"{heading}: {stage.command}")
        run = client.create_run(stage.makes, **stage.request)
    else:
        have = run.info["config"]
        for name, value in stage.request.items():
            if not _within(value, have.get(name)):
                message = f"the existing run {run.name} has {name} {have.get(name)}, the recipe {value}; "
                raise AnisoflightError(message + "delete the run and its model to start again", "BAD_RECIPE")
        if run.state == "running":
            say(f"the run {run.name} is training on the server; waiting for it")
            _follow(run)
        if run.state == "done" and saved():
            say(f"{heading}: {stage.makes} exists")
            return
        say(f"{heading}: the run {run.name} continues after step {run.info['step']}")
    if run.state in ("created", "paused"):
        _follow(run, start=True)
    if (info := run.info)["state"] != "done":
        message = f"the run {run.name} is {info['state']} {info.get('error', '')}; to start again delete the folder "
        raise AnisoflightError(f"{message}{place.data / 'runs' / run.name}")
    run.save(run.name, replace=True)


def _follow(run: Run, start: bool = False) -> None:
    """Wait for a run; an interrupt pauses it."""
    try:
        if start:
            run.start(run.info["config"]["kimg"])
        if run.wait().attrs.get("interrupted"):
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        with contextlib.suppress(AnisoflightError):  # it has ended meanwhile
            run.pause()
        raise


def _check_data(client: Client, recipe: Recipe) -> None:
    """Compare the stored data set with the recipe."""
    stored = {found["name"]: found for found in client.call("ListDatasets")["datasets"]}
    if recipe.name not in stored:
        raise AnisoflightError(f"the data set {recipe.name} cannot be read")
    found, d = stored[recipe.name], recipe.dataset
    height, width, channels = found["shape"] if found["layout"] == "HWC" else [*found["shape"][1:], found["shape"][0]]
    size = height if height == width else [height, width]
    have = {"images": found["rows"], "resolution": size, "channels": channels, "classes": found["classes"]}
    want = {name: getattr(d, name) for name in have}
    _compare(recipe, "dataset.", want, have, f"data set {recipe.name}")


def _compare(recipe: Recipe, prefix: str, want: dict[str, Any], have: dict[str, Any], subject: str) -> None:
    for name, value in want.items():
        if not _within(value, have.get(name)):
            message = f"{value}, but the existing {subject} has {have.get(name)}; correct the entry, or replace it"
            raise recipe.error(prefix + name, message)


def _within(want: Any, have: Any) -> bool:
    """Whether a setting is as wanted; a mapping may have further entries, which are defaults."""
    if isinstance(want, dict) and isinstance(have, dict):
        return all(_within(value, have.get(name)) for name, value in want.items())
    return want == have


if __name__ == "__main__":
    exit_with(main)
