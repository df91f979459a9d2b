"""Names and shapes, checked by the program that knows them: `anisoflight model check`."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from ..errors import ServerStartError
from ..serve import find_binary
from .errors import BadModelError

_SHOWN = 10


def verify(folder: Path, binary: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """What `anisoflight model check --json` says of a model folder that is sound; else a BadModelError."""
    try:
        program = find_binary(binary)
        done = subprocess.run(
            [program, "model", "check", "--json", os.fspath(folder)], capture_output=True, text=True, check=False
        )
    except (ServerStartError, OSError) as error:
        says = error.message if isinstance(error, ServerStartError) else str(error)
        raise ServerStartError(
            f"the weights cannot be compared with the configuration: {says}. With --no-verify they are not compared "
            "until a server loads the model",
            "SERVER_START",
        ) from error
    try:
        found = json.loads(done.stdout)
        faults = found["faults"]
    except (ValueError, KeyError, TypeError) as error:
        raise ServerStartError(
            f"{program} model check failed: {done.stderr.strip()[-2000:]}", "SERVER_START"
        ) from error
    if faults:
        lines = [": ".join(fault[part] for part in ("file", "tensor", "reason") if part in fault) for fault in faults]
        more = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
        raise BadModelError("\n  ".join(["the weights do not fit the configuration:", *lines[:_SHOWN], *more]))
    return found
