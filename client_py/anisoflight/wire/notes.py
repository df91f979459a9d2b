"""What replies note, as warnings at the line of the user's program that asked."""

from __future__ import annotations

import json
import sys
import warnings
from typing import TYPE_CHECKING

from ..errors import AnisoflightWarning

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

_PACKAGE = __name__.split(".")[0]


def warn(notes: Iterable[str]) -> None:
    """Warn of each note; Python shows the same warning of the same line once."""
    level, frame = 1, sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == _PACKAGE:
        level, frame = level + 1, frame.f_back
    for note in notes:
        warnings.warn(note, AnisoflightWarning, stacklevel=level)


def warn_of(table: pa.Table) -> None:
    """Warn of what a table's metadata notes."""
    warn(json.loads((table.schema.metadata or {}).get(b"notes", b"[]")))
