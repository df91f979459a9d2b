"""The safetensors format: a JSON head that says where each tensor lies, then their bytes."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

_NAMES = {"<f8": "F64", "<f4": "F32", "<f2": "F16", "<i8": "I64", "<i4": "I32", "|u1": "U8"}


def head(
    tensors: Iterable[tuple[str, np.dtype[Any], tuple[int, ...]]], metadata: Mapping[str, str] | None = None
) -> bytes:
    """What a file of tensors, by name, element type and shape, begins with; their bytes follow without gaps.

    >>> head([("w", np.dtype("<f4"), (2,))])[8:]
    b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}  '
    """
    entries: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    end = 0
    for name, dtype, shape in tensors:
        begin, end = end, end + int(np.prod(shape, dtype=object)) * dtype.itemsize
        entries[name] = {"dtype": _NAMES[dtype.str], "shape": list(shape), "data_offsets": [begin, end]}
    text = json.dumps(entries, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # the data begins aligned
    return struct.pack("<Q", len(text)) + text
