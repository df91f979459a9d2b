"""Plans: samplers as numbers, made by the server and stepped anywhere."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .errors import BadRequestError
from .files import path_of
from .files.schedules import read_with_basis, write_with_basis
from .offering import subspaces_of
from .subspaces import Coordinates, Subspaces, radial_bands

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from .files.schedules import Vectors
    from .start import Start

Array = np.ndarray[Any, Any]

_FORMAT = "anisoflight-plan"
_LARGEST = 1 << 12  # pixels of a side, as in the server
_TINY = np.finfo(np.float64).tiny


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
        try:
            _check(self.file)
            asked, given = self.file.get("start", {}).get("hash"), self.law and self.law.hash
            if asked != given:
                raise ValueError(f"its start must be the file of hash {asked}, got {self.law}")
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            said = f"{error} is missing" if isinstance(error, KeyError) else error
            raise BadRequestError(f"not a plan: {said}", "BAD_SCHEDULE") from error

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """A plan that `save` wrote; no server is needed."""
        file, vectors, law = read_with_basis(path_of(path))
        return cls(file, vectors, law if isinstance(file, dict) and "start" in file else None)

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
        size = found["height"], found["width"], found["channels"]
        return Coordinates(*size, axes=found.get("axes"), bands=found.get("bands", 0))

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


def _check(file: Any) -> None:
    """KeyError, TypeError or ValueError of a file that no server writes: one that was cut, changed or is impossible."""
    file = file if isinstance(file, dict) else {}
    found, wanted = (file.get("format"), file.get("version")), (_FORMAT, 2 if "classes" in file else 1)
    if found != wanted:
        raise ValueError(f"format and version must be {wanted}, got {found}")
    family, parts = file["family"], file.get("classes", [file])
    names = [file["schedule"], file["solver"], family["basis"]]
    if not all(isinstance(name, str) for name in names) or not isinstance(family["per_class"], bool):
        raise ValueError(f"schedule, solver and basis must be names, per_class true or false, got {names}")
    if file["predicts"] not in ("flow", "denoised"):
        raise ValueError(f"predicts must be flow or denoised, got {file['predicts']!r}")
    _numbers(file, {"label": (0, -1), "steps": (0, 1), "nfe": (0, 1), "history": (0, 1)}, "i")
    _numbers(family, {"cuts?": (len(family.get("cuts", [])), 1), "k?": (0, 0)}, "i")
    if np.any(np.diff(family.get("cuts", [])) < 1):
        raise ValueError(f"cuts must increase, got {family['cuts']}")
    for part in file.get("classes", []):
        _numbers(part, {"labels": (len(part["labels"]), -1)}, "i")
    labels = [label for part in file.get("classes", []) for label in part["labels"]]
    if not parts or len({*labels}) < len(labels):
        raise ValueError(f"labels must be classes, each once, got {labels}")
    steps, count = file["steps"], subspaces_of(file)
    for part in parts:
        size, where = count, part.get("coordinates")
        if where is not None:
            _numbers(where, dict.fromkeys(("height", "width", "channels", "bands?"), (0, 1)), "i")
            if max(where["height"], where["width"]) > _LARGEST:
                raise ValueError(f"height and width must be at most {_LARGEST}, got {where}")
            bands = radial_bands(where["height"], where["width"], where.get("bands", 0))
            size = (int(bands.max()) + 1) * where["channels"]
            _numbers(where, {"axes?": (size * where["channels"], -np.inf)})
        _numbers(part, {"t": (steps + 1, 0), "init": (count, _TINY)})
        ends = [stage["step"] for stage in part["stages"]]
        _numbers({"step": ends}, {"step": (file["nfe"], -1)}, "i")
        if np.max(np.diff(part["t"])) >= 0 or [n for n in ends if n >= 0] != [*range(steps)] or ends[-1] < 0:
            raise ValueError(f"t must decrease in {steps} steps, with −1 between them, got {part['t']} and {ends}")
        for stage in part["stages"]:
            _numbers(stage, {"t": (0, 0), "g": (count, _TINY), "alpha": (size, -np.inf), "noise?": (count, 0)})
            beta = [*itertools.chain(*stage["beta"])]
            _numbers({"beta": beta}, {"beta": (len(beta), -np.inf)})
            if len(stage["beta"]) != size or not all(0 < len(row) <= file["history"] for row in stage["beta"]):
                raise ValueError(f"beta must have {size} rows of 1 to {file['history']} numbers")


def _numbers(holder: Mapping[str, Any], wanted: Mapping[str, tuple[int, float]], kinds: str = "if") -> None:
    """Check entries of a holder: each is so many finite numbers, 0 for one that is no list, none below the least.

    A name with ? may be left out; kinds "i" are whole numbers.
    """
    for entry, (count, least) in wanted.items():
        name = entry.removesuffix("?")
        if name == entry or name in holder:
            array = np.asarray(holder[name])
            fits = array.shape == ((count,) if count else ()) and array.dtype.kind in kinds
            if not fits or not np.isfinite(array).all() or (array < least).any():
                what = "whole numbers" if kinds == "i" else "finite numbers"
                raise ValueError(f"{name} must be {count or 1} {what} from {least:g} on, got {str(holder[name])[:60]}")


def _floats(values: list[float]) -> list[float]:
    """Numbers of JSON, where 1.0 is written 1."""
    return [float(value) for value in values]
