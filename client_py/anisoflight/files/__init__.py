"""Files: schedules and plans that are kept, measurements under locks, and folders that go again."""

import os
from pathlib import Path

from ..errors import BadRequestError


def path_of(path: str | os.PathLike[str]) -> Path:
    """A path as a user gives it: ~ at its beginning is a home folder, as in a shell."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise BadRequestError(f"~ must be followed by / or the name of a user, got the path {str(path)!r}") from None
