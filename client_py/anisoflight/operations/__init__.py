"""The operations of the service, one class per subject. `anisoflight.Client` combines them."""

from collections.abc import Callable
from typing import TypeVar

from ..wire.contract import FIELDS

F = TypeVar("F", bound="Callable[..., object]")


def documented(*operations: str) -> Callable[[F], F]:
    """A decorator for methods that pass on fields of operations: it adds the fields to the docstring."""

    def add(method: F) -> F:
        for operation in operations:
            method.__doc__ = f"{method.__doc__}\n        Fields of {operation}:\n{FIELDS[operation]}"
        return method

    return add
