"""The stages of a recipe, as commands that a user can type, from the data set to the table."""

import json
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..files import path_of
from .recipe import PER_CLASS, Recipe

MEASURES = ("reference", "fid", "table")
"""Kinds of stages that measure samples; the others (data, network, basis, train) make the model."""
_FOLDERS = {"data": "datasets", "network": "models", "basis": "bases", "train": "models"}
_FIRST = ("stage", "dataset", "model", "network", "family", "batch", "kimg")
_COMPARABLE = 50_000  # samples, below which a distance cannot be compared with published ones


@dataclass(frozen=True)
class Place:
    """Where stages read and write."""

    data: Path
    features: str = "FEATURES"  # network of the distances, as anisoflight.fid takes it
    trust: bool = False  # it is a pickle that may be executed
    server: str = "grpc://127.0.0.1:8815"  # that answers for the data folder

    def source(self, recipe: Recipe) -> Path:
        """The file or folder to convert."""
        if not recipe.dataset.generate:
            return path_of(recipe.dataset.source)
        return self.data / "sources" / (recipe.name + (".zip" if recipe.dataset.generate == "edm-zip" else ""))


@dataclass(frozen=True)
class Stage:
    """One command. Running it again changes nothing."""

    kind: str
    makes: str  # the name of the data set, basis, or model and run; a file; or the method that is measured
    words: tuple[str, ...]
    request: dict[str, Any] = field(default_factory=dict)  # of a run, or a basis: what the command asks of the server
    source: tuple[str, str] = ("", "")  # the user's file that must be there, and where to get it

    @property
    def command(self) -> str:
        return shlex.join(self.words)

    @property
    def trains(self) -> bool:
        return "stage" in self.request

    def path(self, data: Path) -> Path:
        """Its result: an entry of the data folder, or a file."""
        if self.kind not in _FOLDERS:
            return Path(self.makes)
        return data / _FOLDERS[self.kind] / (self.makes + (".basis" if self.kind == "basis" else ""))


def stages_of(recipe: Recipe, place: Place) -> list[Stage]:
    """All stages in order; those of earlier recipes come first."""
    stages = [_data(recipe, place), _network(recipe, place)]
    for step in recipe.lineage:
        if step.basis.kind:
            stages.append(_basis(step, place))
        stages.append(_run("train", step.model, step.settings, place))
    picture = str(place.data / "figures" / f"{recipe.model}.png")
    words = ("python", "-m", "anisoflight.figures", recipe.model, "--out", picture, "--server", place.server)
    stages.append(Stage("figures", picture, words))
    return [*stages, *_measures(recipe, place)]


def _data(r: Recipe, place: Place) -> Stage:
    d = r.dataset
    words = ["python", "-m", "anisoflight.data", "convert", str(place.source(r)), "--data", str(place.data)]
    words += ["--name", r.name, "--resolution", str(d.resolution)]
    words += ["--transform", d.transform] if d.transform else []
    words += ["--labels", d.labels] if d.labels else []
    words += ["--under", d.under] if d.under else []
    return Stage("data", r.name, tuple(words), source=(d.source, d.from_))


def _network(r: Recipe, place: Place) -> Stage:
    if not r.network.checkpoint:
        return _run("network", r.network_model, r.pretrain_settings, place)
    source, name = r.network.checkpoint, r.network_model
    words = ("python", "-m", "anisoflight.convert", source, str(place.data / "models" / name))
    return Stage("network", name, words, source=(source, r.network.from_))


def _basis(r: Recipe, place: Place) -> Stage:
    request: dict[str, Any] = {"kind": r.basis.kind, "dataset": r.name}
    if r.basis.k:
        request["k"] = r.basis.k
    if r.basis.kind == PER_CLASS and r.basis.cluster_size > 1:
        labels, size = list(range(r.dataset.classes)), r.basis.cluster_size
        request["clusters"] = [labels[i : i + size] for i in range(0, len(labels), size)]
    words = ["anisoflight", "basis", "make", "--data", str(place.data), "--name", r.basis_name, *_flags(request)]
    return Stage("basis", r.basis_name, tuple(words), request)


def _run(kind: str, name: str, settings: dict[str, Any], place: Place) -> Stage:
    first = {name: i for i, name in enumerate(_FIRST)}
    ordered = dict(sorted(settings.items(), key=lambda item: (first.get(item[0], len(first)), item[0])))
    words = ["anisoflight", "train", "--data", str(place.data), "--name", name, *_flags(ordered)]
    return Stage(kind, name, tuple(words), ordered)


def most_ratio(settings: dict[str, Any], T: float, knots: int = 32) -> tuple[float, float]:
    """The sum of the published rates, and the largest g₁/g₂ from EDM's levels if Adam moves each θ by that sum."""
    steps = round(1000 * settings["kimg"] / settings["batch"])
    progress = np.arange(steps) / steps  # before each step, as a part of the run
    ramp = np.minimum((progress + 1 / steps) * settings["kimg"] / 10_000, 1) * 0.5 ** np.floor(8 * progress - 4).clip(0)
    reach = float(settings["schedule_lr"] * ramp.sum())
    sigma = np.linspace(0.002 ** (1 / 7), T ** (1 / 14), knots) ** 7
    rises = np.diff(np.log(np.append(1e-9, sigma[1:] ** 2)))
    theta = np.log(np.expm1(rises))
    raised, lowered = (np.logaddexp(0, theta + shift) for shift in (reach, -reach))
    # ln g(τ_k) is largest where all rises before τ_k are larger and all after it smaller
    larger, smaller = (
        a.cumsum() / (a.cumsum() + b[::-1].cumsum()[::-1] - b) for a, b in ((raised, lowered), (lowered, raised))
    )
    return reach, float(np.exp(rises.sum() * (larger - smaller).max()))


def _flags(request: dict[str, Any]) -> list[str]:
    """Fields of a request as command-line options."""
    words: list[str] = []
    for name, value in request.items():
        flag = f"--{name.replace('_', '-')}"
        text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
        words += [f"{flag}={text}"] if isinstance(value, bool) else [flag, text]
    return words


def _measures(r: Recipe, place: Place) -> list[Stage]:
    """The distances of the original network and of the method.

    A single-step solver ends at σ = 0 as EDM's does (grid edm). Multistep solvers end at σ_min (grid polynomial),
    because an evaluation there, for a step to 0, would be one of few.
    """
    reference, results = str(place.data / "fid" / f"{r.name}.npz"), str(place.data / "fid" / f"{r.name}.jsonl")

    def fid(command: str, *more: str) -> tuple[str, ...]:
        common = ["--server", place.server, "--features", place.features, *more]
        return ("python", "-m", "anisoflight.fid", command, *common, *(["--trust"] if place.trust else []))

    network = r.network.name.replace("edm", "EDM", 1)
    rows: list[tuple[str, ...]] = []
    for solver in r.fid.baselines:
        grid = "edm" if solver in ("heun", "euler") else "polynomial"
        rows.append((r.network_model, network + ("" if solver == "heun" else f" {solver}"), solver, "--grid", grid))
    if "uniform" in r.fid.variants:
        rows.append((r.network_model, f"{network}, uniform in t", "heun", "--schedule", "edm", "--grid", "schedule"))
    rows.append((r.model, r.method, r.fid.solver))
    edm = (r.model, f"{r.method}, EDM's grid", "heun", "--grid", "edm")
    if "edm" in r.fid.variants:
        rows.append(edm)
    if "midpoint" in r.fid.variants:
        rows.append((r.model, f"{edm[1]}, midpoint", *edm[2:], "--second-point", "midpoint"))
    stages = [Stage("reference", reference, fid("ref", "--dataset", r.name, "--out", reference))]
    for model, method, solver, *more in rows:
        words = ["--model", model, "--solver", solver, *more, "--nfe", ",".join(map(str, r.fid.nfe))]
        words += ["--seeds", ",".join(r.fid.seeds), "--ref", reference, "--benchmark", r.name, "--method", method]
        words += ["--out", results]
        if r.fid.second_point and solver == "heun" and "--second-point" not in more:
            words += ["--second-point", r.fid.second_point]
        if min(r.fid.counts) < _COMPARABLE:
            words += ["--allow-fewer"]
        stages.append(Stage("fid", method, fid("calc", *words)))
    return [*stages, Stage("table", "", ("python", "-m", "anisoflight.fid.table", results))]
