"""Plans: samplers as numbers, made by the server and stepped anywhere."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from functools import cached_property, reduce
from math import prod
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .errors import BadRequestError
from .files import path_of
from .files.schedules import read_start, read_with_basis, write_with_basis
from .subspaces import Coordinates, Subspaces

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from .files.schedules import Vectors
    from .start import Start

Array = np.ndarray[Any, Any]

_FORMAT = "anisoflight-plan"


@dataclass(frozen=True)
class Stage:
    """One evaluation of the network, and the combination that follows it."""

    t: Any
    """Schedule time of the evaluation; [B] for images of classes with different noise levels."""
    sigmas: Array
    """√g_j [J], the noise levels of the evaluation; [B, J] as t."""
    step: int
    """The step, from 0, that this stage ends; −1 for an inner stage."""
    alpha: list[float] = field(default_factory=list)
    """[J], or an entry for each coordinate. This and what follows is empty for images of several classes."""
    beta: list[list[float]] = field(default_factory=list)
    """As alpha, by the history, the newest first."""
    noise: list[float] = field(default_factory=list)
    """[J], standard deviations of the noise that is added before the evaluation; empty for none."""

    @property
    def sigma(self) -> Any:
        """The geometric mean of `sigmas`, a number or [B]."""
        mean = np.exp(np.log(self.sigmas).mean(-1))
        return mean if mean.ndim else float(mean)


def _entry(name: str, said: str) -> Any:
    """A property with an entry of the plan's file."""
    return property(lambda plan: plan.file.get(name), doc=said)


@dataclass(frozen=True, eq=False)
class Plan:
    """A sampler as numbers: x = Σ_j init_j P_j ξ, and then for every stage, E_0 being its evaluation (docs/wire.md)

        x ← Σ_j P_j (α_j x + Σ_i β_ji E_i)

    The P_j are those of the schedule's subspaces, or project on the `coordinates` of solver "local".

    file is the reply of ``PlanSampler``, vectors are the rows of the basis by label, where it is not one by formula.

    A plan of several classes (`labels`) has these numbers by class: `for_label` returns the plan of one, and a
    `Stepper` takes a label for each image.

    >>> plan = client.plan("edm", sigma_min=0.002, sigma_max=80, solver="euler", steps=2)
    >>> plan.solver, plan.nfe, plan.init, [stage.t for stage in plan.stages]
    ('euler', 2, [80.0], [6400.0, 3200.0])
    """

    file: Mapping[str, Any]
    vectors: Vectors | None = None
    law: Start | None = None
    """What sampling starts from: noise alone where it is None, else x = μ + (Σ + Σ_j init_j² P_j)^½ ξ."""

    def __post_init__(self) -> None:
        file = self.file if isinstance(self.file, dict) else {}
        found, wanted = (file.get("format"), file.get("version")), (_FORMAT, 2 if "classes" in file else 1)
        if found != wanted:
            raise BadRequestError(f"not a plan: format and version must be {wanted}, got {found}", "BAD_SCHEDULE")
        try:
            _check(file)
            asked = file.get("start", {}).get("hash")
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            said = f"{error} is missing" if isinstance(error, KeyError) else error
            raise BadRequestError(f"not a plan: {said}", "BAD_SCHEDULE") from error
        if asked != (None if self.law is None else self.law.hash):
            raise ValueError(f"the plan's start must be the file of hash {asked}, got {self.law}")

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """A plan that `save` wrote; no server is needed."""
        file, vectors = read_with_basis(path_of(path))
        started = isinstance(file, dict) and "start" in file
        return cls(file, vectors, read_start(path_of(path)) if started else None)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the plan as JSON, and beside it its basis to basis.safetensors and its start to start.safetensors."""
        write_with_basis(path_of(path), self.file, self.vectors, self.law)

    def __repr__(self) -> str:
        model = "" if self.model is None else f", model={self.model!r}"
        labels = f", labels={self.labels}" if self.labels else ""
        return f"Plan({self.schedule!r}{model}{labels}, solver={self.solver!r}, steps={self.steps}, nfe={self.nfe})"

    schedule = _entry("schedule", "The name of the schedule that the plan follows.")
    label = _entry("label", "The class that the plan is for; −1 for none, and for several.")
    solver = _entry("solver", "The name of the solver.")
    steps = _entry("steps", "Steps of the solver.")
    nfe = _entry("nfe", "Evaluations of the network.")
    predicts = _entry("predicts", 'What the solver combines: "flow", about −ε, or "denoised" images.')
    history = _entry("history", "How many evaluations have to be kept, the newest counted.")

    model = _entry("model", "The model whose noise levels the plan keeps to; None for a network outside, or any.")
    states = _entry("states", "Whether the history holds, behind each evaluation, the x that it was made at.")

    @property
    def labels(self) -> list[int]:
        """The classes of a plan of several; none for another."""
        return sorted(label for part in self.file.get("classes", []) for label in part["labels"])

    def for_label(self, label: int) -> Plan:
        """The plan of one class of several."""
        for part in self.file.get("classes", []):
            if label in part["labels"]:
                file = {**self.file, **part, "version": 1, "label": label}
                del file["classes"], file["labels"]
                return Plan(file, self.vectors, self.law)
        if not self.labels and (label == self.label or not self._differs):
            return self
        held = self.labels or self.label
        raise ValueError(f"label must be one of the plan, {held}, got {label}; make a plan of it, or of all labels")

    @property
    def _differs(self) -> bool:
        """Whether another class has another plan."""
        by_vectors = self.vectors is not None and -1 not in self.vectors
        by_law = self.law is not None and bool(self.law.labels)
        return self.file["family"]["per_class"] or by_vectors or by_law

    @property
    def _numbers(self) -> Mapping[str, Any]:
        """What differs by class."""
        if self.labels:
            raise ValueError(f"the plan has the classes {self.labels}: take one by for_label, or step with labels")
        return self.file

    @property
    def init(self) -> list[float]:
        """What unit noise is multiplied by at the start, in every subspace."""
        return _floats(self._numbers["init"])

    @property
    def count(self) -> int:
        """The number of subspaces, J."""
        return len(self.file.get("classes", [self.file])[0]["init"])

    @cached_property
    def stages(self) -> list[Stage]:
        """One stage for each evaluation, in order."""
        stages = []
        for part in self._numbers["stages"]:
            alpha, noise = _floats(part["alpha"]), _floats(part.get("noise", []))
            beta = [_floats(row) for row in part["beta"]]
            stages.append(Stage(float(part["t"]), np.sqrt(part["g"]), part["step"], alpha, beta, noise))
        return stages

    @cached_property
    def coordinates(self) -> Coordinates | None:
        """Those in which the stages combine, in place of the subspaces; None where they combine there."""
        found = self._numbers.get("coordinates")
        if found is None:
            return None
        height, width, channels = found["height"], found["width"], found["channels"]
        axes = np.reshape(found["axes"], (height, width, channels, channels)) if "axes" in found else None
        return Coordinates(height, width, channels, axes)

    @cached_property
    def subspaces(self) -> Subspaces:
        """The projectors P_j of the noise, those of the plan's class."""
        if self.vectors is None:
            return Subspaces(self.file["family"])
        _ = self._numbers
        rows = self.vectors.get(self.label, self.vectors.get(-1))
        if rows is None:
            raise ValueError(
                f"label must be one of {sorted(self.vectors)}, got {self.label}: the basis differs by class"
            )
        return Subspaces(self.file["family"], rows)


def _check(file: Mapping[str, Any]) -> None:
    """KeyError, TypeError or ValueError of a file that no server writes: one that was cut, changed or is impossible."""
    for name, least in {"label": -1, "steps": 1, "nfe": 1, "history": 1}.items():
        _whole(file[name], name, least)
    if file["predicts"] not in ("flow", "denoised") or not all(
        isinstance(file[n], str) for n in ("solver", "schedule")
    ):
        raise ValueError(f"predicts must be flow or denoised, solver and schedule names, got {file['predicts']!r}")
    basis, cuts = file["family"]["basis"], file["family"].get("cuts", [])
    if not isinstance(basis, str) or not isinstance(file["family"]["per_class"], bool):
        raise ValueError(f"family must name a basis and say per_class, got {file['family']}")
    if (cuts and _numbers(cuts, [len(cuts)], "cuts", 1).dtype.kind != "i") or np.any(np.diff(cuts) < 1):
        raise ValueError(f"cuts must be whole numbers that increase, got {cuts}")
    _whole(file["family"].get("k", 0), "k", 0)
    count = 1 if basis == "none" else len(cuts) + 1 if cuts else 2
    parts = file.get("classes", [file])
    classes = [_whole(label, "labels", -1) for part in file.get("classes", []) for label in part["labels"]]
    if len({*classes}) < len(classes) or not all(part["labels"] for part in file.get("classes", [])) or not parts:
        raise ValueError(f"labels must be classes, each once, got {classes}")
    for part in parts:
        where, size = part.get("coordinates"), count
        if where is not None:
            shape = [_whole(where[name], name, 1) for name in ("height", "width", "channels")]
            size = prod(shape)
            _numbers(where.get("axes", [0] * size * shape[2]), [size * shape[2]], "axes")
        if np.any(np.diff(_numbers(part["t"], [file["steps"] + 1], "t", 0)) >= 0):
            raise ValueError(f"t must decrease, got {part['t']}")
        _numbers(part["init"], [count], "init", _TINY)
        if len(part["stages"]) != file["nfe"]:
            raise ValueError(f"stages must be {file['nfe']}, got {len(part['stages'])}")
        for stage in part["stages"]:
            _numbers(stage["t"], [], "t", 0)
            _numbers(stage["g"], [count], "g", _TINY)
            _numbers(stage["alpha"], [size], "alpha")
            if len(stage["beta"]) != size or not all(0 < len(row) <= file["history"] for row in stage["beta"]):
                raise ValueError(f"beta must have {size} rows of 1 to {file['history']} numbers")
            _numbers(reduce(operator.iadd, stage["beta"], []), [sum(map(len, stage["beta"]))], "beta")
            _numbers(stage.get("noise", [0] * count), [count], "noise", 0)
        steps = [_whole(stage["step"], "step", -1) for stage in part["stages"]]
        if [step for step in steps if step >= 0] != [*range(file["steps"])] or steps[-1] < 0:
            raise ValueError(f"step must count the {file['steps']} steps, with −1 between them, got {steps}")


_TINY = np.finfo(np.float64).tiny


def _whole(value: Any, name: str, least: int) -> int:
    if type(value) is not int or value < least:
        raise ValueError(f"{name} must be a whole number from {least} on, got {value!r}")
    return value


def _numbers(values: Any, shape: list[int], name: str, least: float = -np.inf) -> Array:
    array = np.asarray(values)
    if (
        array.shape != (*shape,)
        or array.dtype.kind not in "if"
        or not np.isfinite(array).all()
        or (array < least).any()
    ):
        lowest = f", at least {least:g}" if least > -np.inf else ""
        raise ValueError(f"{name} must be {prod(shape)} finite numbers{lowest}, got {str(values)[:60]}")
    return array


def _floats(values: list[float]) -> list[float]:
    """Numbers of JSON, where 1.0 is written 1."""
    return [float(value) for value in values]
