"""Measurements that are kept: a report that is run again measures only what it has not measured yet."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Row = dict[str, Any]


class Cells:
    """Rows of a JSON-lines file by their keys; a key says all that a row depends on.

    With `kept` nothing more is measured: a row that is not there stays empty.
    """

    def __init__(self, path: Path, kept: bool = False) -> None:
        self._path, self.kept = path, kept
        self._rows: dict[str, Row] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                self._rows[row.pop("key")] = row

    def measured(self, key: dict[str, Any], measure: Callable[[], Row]) -> Row:
        """The row of that key, from the file or measured now and added to it."""
        name = json.dumps(key, sort_keys=True)
        if name not in self._rows and self.kept:
            return {}
        if name not in self._rows:
            row = measure()
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"key": name, **row}) + "\n")
            self._rows[name] = row
        return self._rows[name]
