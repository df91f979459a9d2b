"""The names that a checkpoint may use, and what replaces each.

The list is complete. A name is matched with its module exactly, and its arguments are matched, too; other arguments
give None, which ends the reading.
"""

import io
from collections.abc import Callable
from typing import Any

from .errors import UnsafePickleError
from .torchfile import LEGACY, STORAGES, read_legacy
from .unpickler import Budget, Maker, Named, Names, clip
from .values import Inert, Module, Scalars, Storage, Tensor

_DTYPES = ("float32", "float16", "float64", "int64", "uint8", "bool")


def _taking(function: Callable[..., Any], *kinds: type) -> Maker:
    """A function of arguments of these types; further arguments are ignored."""

    def make(_: Budget, args: tuple[Any, ...]) -> Any:
        fits = len(args) >= len(kinds) and all(map(isinstance, args, kinds))
        return function(*args[: len(kinds)]) if fits else None

    return make


def _persistent(meta: dict[Any, Any]) -> Module | None:
    """An object of EDM's persistence layer; the source text in it is ignored."""
    match meta:
        case {"type": "class", "class_name": str(name), "state": dict() | None as state}:
            return Module(clip(name), state or {})
    return None


def _container(name: str) -> Maker:
    return lambda _, args: None if args else Module(name)


def _reconstructor(_: Budget, args: tuple[Any, ...]) -> Any:
    """copyreg._reconstructor(cls, object, None), by which protocol 2 makes objects."""
    match args:
        case (Named() as cls, Named(name="object"), None):
            return cls()
    return None


def _dict(budget: Budget, args: tuple[Any, ...]) -> dict[Any, Any] | None:
    match args:
        case ():
            return {}
        case (list(items),):
            budget.spend(len(items))
            if all(type(item) in (tuple, list) and len(item) == 2 and type(item[0]) in (str, int) for item in items):
                return dict(items)
    return None


def _set(budget: Budget, args: tuple[Any, ...]) -> set[Any] | None:
    match args:
        case ():
            return set()
        case (list(items),) if all(isinstance(item, str | int | float) for item in items):
            budget.spend(len(items))
            return set(items)
    return None


def _load_from_bytes(budget: Budget, args: tuple[Any, ...]) -> Any:
    match args:
        case (bytes(data),) if data.startswith(LEGACY):
            return read_legacy(io.BytesIO(data), IN_STORAGES, budget)
    return None


def _encode(budget: Budget, args: tuple[Any, ...]) -> bytes | None:
    """_codecs.encode(text, "latin1"), by which protocol 2 writes bytes."""
    match args:
        case (str(text), "latin1"):
            budget.spend(len(text) // 256)
            return text.encode("latin1")
    return None


def _storage_class(name: str) -> Maker:
    def make(budget: Budget, args: tuple[Any, ...]) -> Any:
        raise UnsafePickleError(f"the pickle calls torch.{name}, which files only mention")

    return make


def _inert(name: str) -> Maker:
    return lambda _, args: Inert(name)


def _tensor(storage: Storage, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Tensor:
    return Tensor(storage, offset, shape, strides).check()


# What the pickle inside torch.storage._load_from_bytes may name.
IN_STORAGES: Names = {("torch", name): _storage_class(name) for name in STORAGES}

IN_CHECKPOINTS: Names = {
    **IN_STORAGES,
    ("torch_utils.persistence", "_reconstruct_persistent_obj"): _taking(_persistent, dict),
    ("torch.nn.modules.container", "ModuleDict"): _container("ModuleDict"),
    ("torch.nn.modules.container", "ModuleList"): _container("ModuleList"),
    ("torch._utils", "_rebuild_tensor_v2"): _taking(_tensor, Storage, int, tuple, tuple),
    ("torch._utils", "_rebuild_parameter"): _taking(lambda tensor: tensor, Tensor),
    ("torch._utils", "_rebuild_parameter_with_state"): _taking(lambda tensor: tensor, Tensor),
    ("torch.storage", "_load_from_bytes"): _load_from_bytes,
    ("numpy", "dtype"): _taking(lambda code: Scalars(clip(code)), str),
    ("numpy.core.multiarray", "scalar"): _taking(Scalars.value, Scalars, bytes),
    ("numpy._core.multiarray", "scalar"): _taking(Scalars.value, Scalars, bytes),
    # Containers.
    ("collections", "OrderedDict"): _dict,
    ("dnnlib.util", "EasyDict"): _dict,
    ("__builtin__", "set"): _set,
    ("builtins", "set"): _set,
    ("copyreg", "_reconstructor"): _reconstructor,
    ("copy_reg", "_reconstructor"): _reconstructor,
    ("_codecs", "encode"): _encode,
    # Ignored.
    ("builtins", "object"): _inert("object"),
    ("__builtin__", "object"): _inert("object"),
    ("numpy", "ndarray"): _inert("numpy.ndarray"),
    ("numpy.core.multiarray", "_reconstruct"): _inert("numpy.ndarray"),
    ("numpy._core.multiarray", "_reconstruct"): _inert("numpy.ndarray"),
    ("torch", "device"): _inert("torch.device"),
    ("torch", "Size"): _inert("torch.Size"),
    **{("torch", name): _inert(f"torch.{name}") for name in _DTYPES},
}
