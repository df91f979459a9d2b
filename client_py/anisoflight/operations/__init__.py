"""The operations of the service, one class per subject; `anisoflight.Client` is all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from ..contract import FIELDS

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., object]")


def documented(*operations: str) -> Callable[[F], F]:
    """A decorator of a method that passes on fields of operations: its docstring ends with them."""

    def add(method: F) -> F:
        for operation in operations:
            method.__doc__ = f"{method.__doc__}\n        Fields of {operation}:\n{FIELDS[operation]}"
        return method

    return add
