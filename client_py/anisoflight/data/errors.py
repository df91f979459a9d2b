"""What this package refuses."""

from __future__ import annotations

import os

from ..errors import BadRequestError


class DataError(BadRequestError):
    """BAD_DATA: images that cannot be read or converted. The message names the file, the entry, and what is wrong."""

    def __init__(self, path: str | os.PathLike[str], entry: str, reason: object) -> None:
        self.path, self.entry, self.reason = os.fspath(path), entry, str(reason) or "ends too early"
        place = f"{self.path}: {entry}" if entry else self.path
        super().__init__(f"{place}: {self.reason}", "BAD_DATA")

    def __reduce__(self) -> tuple[type[DataError], tuple[str, str, str]]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return DataError, (self.path, self.entry, self.reason)
