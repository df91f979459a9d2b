"""What 0.1 had, and what to type now."""

from collections.abc import Callable, Mapping
from typing import Any

from .errors import BadRequestError


def gone(owner: str, instead: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module, or of a class without self, that says what replaces a name."""

    def attribute(name: str) -> Any:
        if name in instead:
            raise BadRequestError(f"{owner}.{name} is gone since 0.1: {instead[name]}")
        raise AttributeError(f"{owner} has no attribute {name!r}")

    return attribute
