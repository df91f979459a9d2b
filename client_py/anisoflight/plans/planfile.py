"""Checks of the file of a plan, and its tail from a step on."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..subspaces import radial_bands, subspaces_of

_FORMAT = "anisoflight-plan"
_LARGEST = 1 << 12  # pixels of a side, as in the server
_TINY = np.finfo(np.float64).tiny


def check(file: Any) -> None:
    """KeyError, TypeError or ValueError if no server wrote the file: it was cut, changed or is impossible."""
    file = file if isinstance(file, dict) else {}
    version, expected = (file.get("format"), file.get("version")), (_FORMAT, 1)
    if version != expected:
        raise ValueError(f"format and version must be {expected}, got {version}")
    family, parts = file["family"], file.get("classes", [file])
    names = [file["schedule"], file["solver"], family["basis"]]
    if not all(isinstance(name, str) for name in names) or not isinstance(family["per_class"], bool):
        raise ValueError(f"schedule, solver and basis must be names, per_class true or false, got {names}")
    if file["predicts"] not in ("flow", "denoised"):
        raise ValueError(f"predicts must be flow or denoised, got {file['predicts']!r}")
    _numbers(file, {"label": (0, -1), "steps": (0, 1), "nfe": (0, 1), "history": (0, 1)}, "i")
    _numbers(file, {"begin?": (0, 0)}, "i")
    for name in ("provenance", "info"):
        if not isinstance(file.get(name, {}), dict):
            raise ValueError(f"{name} must be an object, got {str(file[name])[:60]}")
    for name in ("clip", "temperature"):  # loops obey them
        _numbers(file.get("provenance", {}), {f"{name}?": (0, _TINY)})
    if not isinstance(file.get("states", False), bool):
        raise ValueError(f"states must be true or false, got {file['states']!r}")
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
        size, coordinates = count, part.get("coordinates")
        if coordinates is not None:
            _numbers(coordinates, dict.fromkeys(("height", "width", "channels", "bands?"), (0, 1)), "i")
            if max(coordinates["height"], coordinates["width"]) > _LARGEST:
                raise ValueError(f"height and width must be at most {_LARGEST}, got {coordinates}")
            bands = radial_bands(coordinates["height"], coordinates["width"], coordinates.get("bands", 0))
            size = (int(bands.max()) + 1) * coordinates["channels"]
            _numbers(coordinates, {"axes?": (size * coordinates["channels"], -np.inf)})
        _numbers(part, {"t": (steps + 1, 0), "init": (count, _TINY)})
        ends = [stage["step"] for stage in part["stages"]]
        _numbers({"step": ends}, {"step": (file["nfe"], -1)}, "i")
        if np.max(np.diff(part["t"])) >= 0 or [n for n in ends if n >= 0] != [*range(steps)] or ends[-1] < 0:
            raise ValueError(f"t must decrease in {steps} steps, with −1 between them, got {part['t']} and {ends}")
        for stage in part["stages"]:
            _numbers(stage, {"t": (0, 0), "g": (count, _TINY), "noise?": (count, 0), "guidance?": (0, -np.inf)})
        guidance, first = ([stage.get("guidance") for stage in one["stages"]] for one in (part, parts[0]))
        if guidance != first:
            raise ValueError("guidance must be the same for all classes")
        tails = part.get("tails", [])
        listed = all(isinstance(each, list) for each in (tails, *tails))
        if not listed or len(tails) not in (0, steps - 1) or any(len(t) >= steps - k for k, t in enumerate(tails)):
            raise ValueError(f"tails must be lists of what begins at each of the steps 1 to {steps - 1}")
        for stages in (part["stages"], *tails):
            _check_weights(stages, size, file["history"], 2 if file.get("states") else 1)


def _check_weights(stages: Sequence[Any], size: int, history: int, entries: int) -> None:
    """Check alpha and beta of stages that begin without a history, which grows by `entries` entries per stage."""
    for number, stage in enumerate(stages):
        _numbers(stage, {"alpha": (size, -np.inf)})
        beta = [*itertools.chain(*stage["beta"])]
        _numbers({"beta": beta}, {"beta": (len(beta), -np.inf)})
        if len(stage["beta"]) != size or not all(0 < len(row) <= history for row in stage["beta"]):
            raise ValueError(f"beta must have {size} rows of 1 to {history} numbers")
        if any(any(row[entries * (number + 1) :]) for row in stage["beta"]):
            raise ValueError(f"beta must be of evaluations made before, got others in stage {number}")


def _numbers(holder: Mapping[str, Any], wanted: Mapping[str, tuple[int, float]], kinds: str = "if") -> None:
    """Check entries of a holder: each is that number of finite numbers, 0 for a scalar, and none is below the least.

    A name with ? may be missing; kinds "i" are integers.
    """
    for entry, (count, least) in wanted.items():
        name = entry.removesuffix("?")
        if name == entry or name in holder:
            array = np.asarray(holder[name])
            fits = array.shape == ((count,) if count else ()) and array.dtype.kind in kinds
            if not fits or not np.isfinite(array).all() or (array < least).any():
                what = "whole numbers" if kinds == "i" else "finite numbers"
                raise ValueError(f"{name} must be {count or 1} {what} from {least:g} on, got {str(holder[name])[:60]}")


def left(part: Mapping[str, Any], step: int) -> dict[str, Any]:
    """The numbers of a plan of one class from a step on."""
    stages, tails = part["stages"], part.get("tails", [])
    first = 1 + next((i for i, stage in enumerate(stages) if stage["step"] == step - 1), -1) if step else 0
    rest = [{**stage, "step": max(-1, stage["step"] - step)} for stage in stages[first:]]
    for stage, own in zip(rest, tails[step - 1] if step and tails else [], strict=False):
        stage |= own
    rest[0].pop("noise", None)
    init = np.sqrt(rest[0]["g"]).tolist()
    return {**part, "t": part["t"][step:], "init": init, "stages": rest, "tails": tails[step:]}
