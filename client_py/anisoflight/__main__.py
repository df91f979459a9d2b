"""``python -m anisoflight …`` is the command ``anisoflight …``: the server's program, found as `serve` finds it."""

import os
import sys

from .errors import ServerStartError
from .serving.local import find_binary

if __name__ == "__main__":
    try:
        binary = find_binary()
    except ServerStartError as error:
        sys.exit(f"anisoflight: {error.message}")
    os.execv(binary, [binary, *sys.argv[1:]])
