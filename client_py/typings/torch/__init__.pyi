"""torch is not installed where types are checked; without this pyright would take anisoflight.torch for it."""

from typing import Any

def __getattr__(name: str) -> Any: ...
