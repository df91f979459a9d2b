"""Measurements that are kept, so that a second run measures only what is missing."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..files.locks import lock_file

Row = dict[str, Any]


class Cells:
    """Rows of a JSON-lines file by their keys; a key holds all that a row depends on.

    A row is on the disk before it is returned. Of programs that measure the same row at once, the first one's row is
    kept and returned to all. An incomplete last line is ignored; any other line that is no row is a ValueError that
    names it. With `kept` nothing is measured: a missing row is empty.
    """

    def __init__(self, path: Path, kept: bool = False) -> None:
        self._path, self.kept = path, kept
        self._rows: dict[str, Row] = {}
        self._read()

    def __contains__(self, key: dict[str, Any]) -> bool:
        return _name(key) in self._rows

    def measured(self, key: dict[str, Any], measure: Callable[[], Row]) -> Row:
        """The row of that key, from the file or measured now."""
        name = _name(key)
        if name not in self._rows and self.kept:
            return {}
        if name not in self._rows:
            self._read()  # another program may have measured it
        if name not in self._rows:
            self._append(name, measure())
        return self._rows[name]

    def _read(self) -> None:
        self._rows = {row.pop("key"): row for row in rows_of(self._path)} if self._path.exists() else {}

    def _append(self, name: str, row: Row) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            lock_file(file)
            self._read()
            if name in self._rows:
                return
            file.truncate(len(_complete(self._path)))
            file.write(json.dumps({"key": name, **row}).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
            self._rows[name] = row


def rows_of(path: Path) -> list[Row]:
    """The rows of such a file, each with its `key`, in order."""
    rows = []
    for number, line in enumerate(_complete(path).splitlines(), 1):
        try:
            row = json.loads(line)
            if not isinstance(row["key"], str):
                raise TypeError("its key is no string")
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path}, line {number}: not a row of measurements: {error!r}") from error
        rows.append(row)
    return rows


def _complete(path: Path) -> bytes:
    """The complete lines: a killed process may have left part of one."""
    data = path.read_bytes()
    return data[: data.rfind(b"\n") + 1]


def _name(key: dict[str, Any]) -> str:
    return json.dumps(key, sort_keys=True)
