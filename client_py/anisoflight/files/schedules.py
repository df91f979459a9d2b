"""Schedules and plans as files: JSON that holds everything, with the vectors of a basis in safetensors beside it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from ..errors import BadRequestError
from ..start import START_FILE, Start
from ..subspaces import FORMULAS, orthonormal
from .temporary import whole_file

if TYPE_CHECKING:
    from collections.abc import Mapping

BASIS_FILE = "basis.safetensors"
_NAME = re.compile(r"vectors\.(-?[0-9]+(?:,-?[0-9]+)*)")

Vectors = dict[int, "np.ndarray[Any, Any]"]
"""The rows [k, H, W] of P_1 by label, −1 for those that all labels share."""


def basis_bytes(vectors: Mapping[int, np.ndarray[Any, Any]]) -> bytes:
    """The safetensors file of a basis: float64 tensors `vectors.LABEL` of shape [k, H, W]."""
    return save({f"vectors.{label}": np.ascontiguousarray(rows, "<f8") for label, rows in vectors.items()})


def basis_of(data: bytes) -> Vectors:
    """What `basis_bytes` wrote.

    >>> basis_of(basis_bytes({-1: np.eye(4)[:2].reshape(2, 2, 2)}))[-1].shape
    (2, 2, 2)
    """
    try:
        tensors = load(data)
    except (SafetensorError, KeyError) as error:  # a key, of an element type that numpy lacks, such as bfloat16
        raise BadRequestError(f"not a basis: not a safetensors file of F64: {error}", "BAD_SCHEDULE") from error
    vectors: Vectors = {}
    sizes = {rows.shape for rows in tensors.values()}
    for name, rows in tensors.items():
        labels = _NAME.fullmatch(name)
        if labels is None or rows.dtype != np.float64 or rows.ndim != 3:
            raise BadRequestError(f"not a basis: {name!r} must be the F64 vectors [k, H, W] of a label", "BAD_SCHEDULE")
        given = [int(label) for label in labels[1].split(",")]  # several where a cluster shares them
        if len({*given, *vectors}) < len(given) + len(vectors) or min(given) < -1:
            raise BadRequestError(f"not a basis: labels must be −1 or classes, each once, got {name!r}", "BAD_SCHEDULE")
        if len(sizes) > 1 or not 0 < len(rows) < rows[0].size or not orthonormal(rows.reshape(len(rows), -1)):
            raise BadRequestError(
                f"not a basis: {name!r} must be orthonormal, fewer than pixels, as many of one size as the others",
                "BAD_SCHEDULE",
            )
        vectors |= dict.fromkeys(given, rows)
    if not vectors or (len(vectors) > 1 and -1 in vectors):
        raise BadRequestError("not a basis: it must have vectors for all (−1) or for each class", "BAD_SCHEDULE")
    return vectors


def write_with_basis(
    path: Path,
    file: Mapping[str, Any],
    vectors: Vectors | None,
    start: Start | None = None,
    parts: Mapping[str, bytes] | None = None,
) -> None:
    """Write a schedule file or a plan and, where there are any, the vectors of its basis, its start and `parts` beside
    it.

    A file there that holds another basis, start or part is a `FileExistsError`.
    """
    files = {BASIS_FILE: None if vectors is None else basis_bytes(vectors), START_FILE: start and start.file}
    files |= {f"{name}.safetensors": data for name, data in (parts or {}).items()}
    beside = {path.with_name(name): data for name, data in files.items() if data is not None}
    for other, data in beside.items():
        if other.exists() and other.read_bytes() != data:
            raise FileExistsError(f"{other} holds another {other.stem}; write {path.name} into a folder of its own")
    for other, data in {**beside, path: (json.dumps(file, indent=2) + "\n").encode()}.items():
        with whole_file(other) as out:
            out.write(data)


def read_with_basis(path: Path) -> tuple[dict[str, Any], Vectors | None]:
    """A schedule file or a plan, and the vectors beside it where its family's basis has any."""
    try:
        file = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise BadRequestError(
            f"{path} must be JSON, as save writes it, got something else: {error}", "BAD_SCHEDULE"
        ) from None
    beside, family = path.with_name(BASIS_FILE), file.get("family") if isinstance(file, dict) else None
    named = isinstance(family, dict) and isinstance(family.get("basis"), str) and family["basis"] not in FORMULAS
    return file, basis_of(beside.read_bytes()) if named and beside.exists() else None


def parts_of(file: Any) -> tuple[str, ...]:
    """What a schedule carries for the solver that it was made for, by its file."""
    sampler = file.get("sampler") if isinstance(file, dict) else None
    solver = sampler.get("solver") if isinstance(sampler, dict) else None
    return {"local": ("statistics",), "fitted": ("statistics", "fitted")}.get(str(solver), ())


def read_parts(path: Path, file: Any) -> dict[str, bytes]:
    """The files of `parts_of` beside a schedule file, by name."""
    beside = {name: path.with_name(f"{name}.safetensors") for name in parts_of(file)}
    return {name: part.read_bytes() for name, part in beside.items() if part.exists()}


def read_start(path: Path) -> Start | None:
    """The start beside a schedule file or a plan, None where there is none."""
    beside = path.with_name(START_FILE)
    return Start.load(beside) if beside.exists() else None
