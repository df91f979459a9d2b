"""Schedules and plans as JSON files, with the vectors of a basis in safetensors next to them."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from ..errors import bad_schedule
from ..files.temporary import whole_file
from ..start import START_FILE, Start
from ..subspaces import FORMULAS, orthonormal

BASIS_FILE = "basis.safetensors"
_NAME = re.compile(r"vectors\.(-?[0-9]+(?:,-?[0-9]+)*)")

Vectors = dict[int, "np.ndarray[Any, Any]"]
"""The rows [k, H, W] of P_1 by label, −1 for shared ones."""


def basis_bytes(vectors: Mapping[int, np.ndarray[Any, Any]]) -> bytes:
    """The safetensors file of a basis: float64 tensors `vectors.LABEL` of shape [k, H, W]."""
    return save({f"vectors.{label}": np.ascontiguousarray(rows, "<f8") for label, rows in vectors.items()})


def basis_of(data: bytes) -> Vectors:
    """The basis of a file by `basis_bytes`.

    >>> basis_of(basis_bytes({-1: np.eye(4)[:2].reshape(2, 2, 2)}))[-1].shape
    (2, 2, 2)
    """
    try:
        tensors = load(data)
    except (SafetensorError, KeyError) as error:  # a key, of an element type that numpy lacks, such as bfloat16
        raise bad_schedule(f"not a basis: not a safetensors file of F64: {error}") from error
    vectors: Vectors = {}
    labels: list[int] = []
    sizes = {rows.shape for rows in tensors.values()}
    for name, rows in tensors.items():
        found = _NAME.fullmatch(name)
        fits = found and rows.dtype == np.float64 and rows.ndim == 3 and len(sizes) == 1
        if not found or not fits or not 0 < len(rows) < rows[0].size or not orthonormal(rows.reshape(len(rows), -1)):
            raise bad_schedule(
                f"not a basis: {name!r} must be the vectors of labels: F64 [k, H, W], orthonormal, fewer than pixels, "
                "and of one size with the others"
            )
        given = [int(label) for label in found[1].split(",")]  # several where a cluster shares them
        labels += given
        vectors |= dict.fromkeys(given, rows)
    if not labels or len(vectors) < len(labels) or min(labels) < (-1 if len(labels) == 1 else 0):
        raise bad_schedule(f"not a basis: labels must be −1 or classes, each once, got {labels}")
    return vectors


def vectors_of(labels: np.ndarray[Any, Any], vectors: np.ndarray[Any, Any]) -> Vectors:
    """The basis of the columns of a reply of the operation Basis."""
    return {int(label): vectors[labels == label] for label in np.unique(labels)}


def write_with_basis(
    path: Path,
    file: Mapping[str, Any],
    vectors: Vectors | None,
    start: Start | None = None,
) -> None:
    """Write a schedule file or a plan and, next to it, the vectors of its basis and its start, if there are any.

    If a file there holds another basis or start, it raises FileExistsError.
    """
    files = {BASIS_FILE: None if vectors is None else basis_bytes(vectors), START_FILE: start and start.file}
    others = {path.with_name(name): data for name, data in files.items() if data is not None}
    for other, data in others.items():
        if other.exists() and other.read_bytes() != data:
            raise FileExistsError(f"{other} holds another {other.stem}; write {path.name} into a folder of its own")
    for other, data in {**others, path: (json.dumps(file, indent=2) + "\n").encode()}.items():
        with whole_file(other) as out:
            out.write(data)


def read_with_basis(path: Path) -> tuple[dict[str, Any], Vectors | None, Start | None]:
    """A schedule file or a plan, the vectors of its family's basis, and its start, if there are any."""
    try:
        file = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise bad_schedule(f"{path} must be JSON, as save writes it, got something else: {error}") from None
    family = file.get("family") if isinstance(file, dict) else None
    named = isinstance(family, dict) and family.get("basis") not in (None, *FORMULAS)
    basis, start = (path.with_name(name) for name in (BASIS_FILE, START_FILE))
    vectors = basis_of(basis.read_bytes()) if named and basis.exists() else None
    return file, vectors, Start.load(start) if start.exists() else None
