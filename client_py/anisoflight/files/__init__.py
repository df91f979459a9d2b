"""Paths that users give, files that appear complete or not at all, locks, and temporary folders."""

import os
from pathlib import Path

from ..errors import BadRequestError


def path_of(path: str | os.PathLike[str], within: str = "") -> Path:
    """The path that a user gives; ~ at its beginning is a home folder. In a folder it is the file `within`."""
    try:
        found = Path(path).expanduser()
        return found / within if within and found.is_dir() else found
    except RuntimeError:
        raise BadRequestError(f"~ must be followed by / or the name of a user, got the path {str(path)!r}") from None
