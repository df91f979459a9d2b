"""The operations of the service, one class per subject; `anisoflight.Client` is all of them."""

from collections.abc import Callable
from typing import TypeVar

from ..contract import FIELDS

F = TypeVar("F", bound="Callable[..., object]")


def documented(*operations: str) -> Callable[[F], F]:
    """A decorator of a method that passes on fields of operations: its docstring ends with them."""

    def add(method: F) -> F:
        for operation in operations:
            method.__doc__ = f"{method.__doc__}\n        Fields of {operation}:\n{FIELDS[operation]}"
        return method

    return add
