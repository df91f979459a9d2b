"""Schedule files: the JSON that holds everything, with the vectors of a basis in safetensors beside it."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

BASIS_FILE = "basis.safetensors"
FORMULAS = ("none", "dct", "haar")  # bases without vectors: their names say it all
_PREFIX = "vectors."

Vectors = dict[int, "np.ndarray[Any, Any]"]
"""The rows [k, H, W] of P_1 by label, −1 for those that all labels share."""


def basis_bytes(vectors: Mapping[int, np.ndarray[Any, Any]]) -> bytes:
    """The safetensors file of a basis: float64 tensors `vectors.LABEL` of shape [k, H, W]."""
    head: dict[str, Any] = {}
    body = b""
    for label in sorted(vectors):
        data = np.ascontiguousarray(vectors[label], "<f8").tobytes()
        shape = list(np.shape(vectors[label]))
        head[f"{_PREFIX}{label}"] = {"dtype": "F64", "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the data begins aligned
    return struct.pack("<Q", len(text)) + text + body


def basis_of(data: bytes) -> Vectors:
    """What `basis_bytes` wrote.

    >>> basis_of(basis_bytes({-1: np.eye(4)[:2].reshape(2, 2, 2)}))[-1].shape
    (2, 2, 2)
    """
    size = struct.unpack_from("<Q", data)[0] if len(data) >= 8 else len(data)
    if 8 + size > len(data):
        raise ValueError("not a safetensors file: its head is cut off")
    vectors: Vectors = {}
    for name, tensor in json.loads(data[8 : 8 + size]).items():
        if name == "__metadata__":
            continue
        labels = name.removeprefix(_PREFIX)
        if labels == name or tensor["dtype"] != "F64" or len(tensor["shape"]) != 3:
            raise ValueError(f"not a basis: tensor {name!r} is not the F64 vectors [k, H, W] of a label")
        start, end = tensor["data_offsets"]
        rows = np.frombuffer(data[8 + size + start : 8 + size + end], "<f8").reshape(tensor["shape"])
        vectors |= {int(label): rows for label in labels.split(",")}  # several where a cluster shares them
    return vectors


def write_schedule(path: Path, file: Mapping[str, Any], vectors: Vectors | None) -> None:
    """Write a schedule file and, where it has any, the vectors of its basis beside it.

    A file there that holds another basis is a `FileExistsError`.
    """
    beside = path.with_name(BASIS_FILE)
    data = None if vectors is None else basis_bytes(vectors)
    if data is not None and beside.exists() and beside.read_bytes() != data:
        raise FileExistsError(f"{beside} holds another basis; write the schedule into a folder of its own")
    path.write_text(json.dumps(file, indent=2) + "\n", encoding="utf-8")
    if data is not None:
        beside.write_bytes(data)


def read_schedule(path: Path) -> tuple[dict[str, Any], Vectors | None]:
    """A schedule file, and the vectors beside it where its family's basis has any."""
    file = json.loads(path.read_text(encoding="utf-8"))
    beside = path.with_name(BASIS_FILE)
    named = isinstance(file, dict) and file.get("family", {}).get("basis", "none") not in FORMULAS
    return file, basis_of(beside.read_bytes()) if named and beside.exists() else None
