"""The classes of a checkpoint's objects: records without behaviour of the classes that they replace."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from .errors import BadCheckpointError

Array = np.ndarray[Any, Any]


class Buildable:
    """An object whose state the pickle sets after making it."""

    __slots__ = ()

    def build(self, state: Any) -> None:
        raise NotImplementedError


@dataclass(eq=False, slots=True)
class Module(Buildable):
    """An object of EDM's persistence layer, or a container of modules: the name of its class, and its attributes as
    keys.
    """

    kind: str
    state: dict[str, Any] = field(default_factory=dict)

    def build(self, state: Any) -> None:
        if not isinstance(state, dict):
            raise BadCheckpointError(f"the state of a {self.kind} is no dict")
        self.state = state

    def part(self, name: str) -> dict[str, Any]:
        """One of the dicts that torch keeps in a module: _parameters, _buffers, _modules."""
        found = self.state.get(name, {})
        if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
            raise BadCheckpointError(f"{name} of a {self.kind} is no dict of names")
        return found


@dataclass(eq=False, slots=True)
class Scalars(Buildable):
    """A numpy.dtype of numbers."""

    code: str
    order: str = "<"

    def build(self, state: Any) -> None:
        match state:
            case (int(), "<" | "|" | ">" as order, *_):
                self.order = order
            case _:
                raise BadCheckpointError("the state of a numpy.dtype is not what numpy writes")

    def value(self, data: bytes) -> int | float | bool:
        """The one number in data, as Python's."""
        if self.code not in ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "b1"):
            raise BadCheckpointError("a numpy.dtype is not one of a number")
        kind = np.dtype(self.order.replace("|", "<") + self.code)
        if len(data) != kind.itemsize:
            raise BadCheckpointError(f"{len(data)} bytes stand for a number of {kind.itemsize}")
        return np.frombuffer(data, kind)[0].item()


@dataclass(eq=False, slots=True)
class Inert(Buildable):
    """An object that the conversion ignores."""

    name: str

    def build(self, state: Any) -> None:
        pass


@dataclass(eq=False, slots=True)
class Storage:
    """A torch storage: `size` little-endian elements. In a legacy file their bytes follow later."""

    dtype: np.dtype[Any]
    size: int
    data: bytes | None = None

    def fill(self, data: bytes) -> None:
        if len(data) != self.size * self.dtype.itemsize:
            raise BadCheckpointError(f"a storage of {self.size:,} {self.dtype.name} has {len(data):,} bytes")
        self.data = data


@dataclass(eq=False, slots=True)
class Tensor:
    """A strided view of a storage; offset and strides count elements."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def check(self) -> Tensor:
        """The tensor, if it lies within its storage and is not larger."""
        numbers = (self.offset, *self.shape, *self.strides)
        if not all(type(n) is int and 0 <= n < 2**48 for n in numbers) or len(self.shape) != len(self.strides):
            raise BadCheckpointError("a tensor's shape, strides and offset are not those of a tensor")
        if len(self.shape) > 8:
            raise BadCheckpointError(f"a tensor has {len(self.shape)} axes")
        count = prod(self.shape)
        reach = self.offset + sum((n - 1) * step for n, step in zip(self.shape, self.strides, strict=True))
        if count and (reach >= self.storage.size or count > self.storage.size):
            raise BadCheckpointError(f"a tensor of shape {list(self.shape)} exceeds its {self.storage.size:,} values")
        return self

    @property
    def size(self) -> int:
        return prod(self.shape)

    def array(self) -> Array:
        """Its values, a read-only view of the storage."""
        if self.storage.data is None:
            raise BadCheckpointError("a tensor's storage is missing from the file")
        if self.size == 0:
            return np.zeros(self.shape, self.storage.dtype)
        dtype = self.storage.dtype
        flat = np.frombuffer(self.storage.data, dtype)[self.offset :]
        strides = [step * dtype.itemsize for step in self.strides]
        return np.lib.stride_tricks.as_strided(flat, self.shape, strides, writeable=False)
