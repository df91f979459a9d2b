"""The names that a checkpoint may use, and what each stands for here.

This is the whole list. A name is matched with its module, to the letter; the arguments of each are matched too.
"""

from __future__ import annotations

from typing import Any

from .errors import BadCheckpointError, UnsafePickleError
from .torchfile import STORAGES, read_torch
from .unpickler import Budget, Maker, Named, Names, clip
from .values import Inert, Module, Scalars, Storage, Tensor

_DTYPES = ("float32", "float16", "float64", "int64", "uint8", "bool")


def _bad(name: str) -> BadCheckpointError:
    return BadCheckpointError(f"the pickle calls {name} with arguments that are not a checkpoint's")


def _persistent(budget: Budget, args: tuple[Any, ...]) -> Module:
    """An object of EDM's persistence layer; the source text that lies beside its state is not looked at."""
    match args:
        case ({"type": "class", "class_name": str(name), "state": dict(state)},):
            return Module(clip(name), state)
        case ({"type": "class", "class_name": str(name), "state": None},):
            return Module(clip(name))
    raise _bad("torch_utils.persistence._reconstruct_persistent_obj")


def _container(name: str) -> Maker:
    def make(budget: Budget, args: tuple[Any, ...]) -> Module:
        if args:
            raise _bad(name)
        return Module(name)

    return make


def _reconstructor(budget: Budget, args: tuple[Any, ...]) -> Any:
    """copyreg._reconstructor(cls, object, None), by which protocol 2 makes objects."""
    match args:
        case (Named() as cls, Named(name="object"), None):
            return cls()
    raise _bad("copyreg._reconstructor")


def _dict(budget: Budget, args: tuple[Any, ...]) -> dict[Any, Any]:
    match args:
        case ():
            return {}
        case (list(items),):
            budget.spend(len(items))
            found = {}
            for item in items:
                match item:
                    case (str() | int() as key, value) | [str() | int() as key, value]:
                        found[key] = value
                    case _:
                        raise _bad("a dict")
            return found
    raise _bad("a dict")


def _set(budget: Budget, args: tuple[Any, ...]) -> set[Any]:
    match args:
        case () | ([],):
            return set()
        case (list(items),) if all(isinstance(item, str | int | float) for item in items):
            budget.spend(len(items))
            return set(items)
    raise _bad("a set")


def _tensor(budget: Budget, args: tuple[Any, ...]) -> Tensor:
    match args:
        case (Storage() as storage, int(offset), tuple(shape), tuple(strides), *_):
            return Tensor(storage, offset, shape, strides).check()
    raise _bad("torch._utils._rebuild_tensor_v2")


def _parameter(budget: Budget, args: tuple[Any, ...]) -> Tensor:
    match args:
        case (Tensor() as tensor, *_):
            return tensor
    raise _bad("torch._utils._rebuild_parameter")


def _load_from_bytes(budget: Budget, args: tuple[Any, ...]) -> Any:
    match args:
        case (memoryview() | bytes() as data,):
            return read_torch(memoryview(data), IN_STORAGES, budget)
    raise _bad("torch.storage._load_from_bytes")


def _dtype(budget: Budget, args: tuple[Any, ...]) -> Scalars:
    match args:
        case (str(code), *_):
            return Scalars(clip(code))
    raise _bad("numpy.dtype")


def _scalar(budget: Budget, args: tuple[Any, ...]) -> int | float | bool:
    match args:
        case (Scalars() as kind, memoryview() | bytes() as data):
            return kind.value(memoryview(data))
    raise _bad("numpy's scalar")


def _encode(budget: Budget, args: tuple[Any, ...]) -> bytes:
    """_codecs.encode(text, "latin1"), by which protocol 2 writes bytes."""
    match args:
        case (str(text), "latin1"):
            budget.spend(len(text) // 256)
            try:
                return text.encode("latin1")
            except UnicodeEncodeError:
                pass
    raise _bad("_codecs.encode")


def _storage_class(name: str) -> Maker:
    def make(budget: Budget, args: tuple[Any, ...]) -> Any:
        raise UnsafePickleError(f"the pickle calls torch.{name}, which files only mention")

    return make


def _inert(name: str) -> Maker:
    return lambda budget, args: Inert(name)


# What the pickle inside torch.storage._load_from_bytes may name.
IN_STORAGES: Names = {("torch", name): _storage_class(name) for name in STORAGES}

IN_CHECKPOINTS: Names = {
    **IN_STORAGES,
    ("torch_utils.persistence", "_reconstruct_persistent_obj"): _persistent,
    ("torch.nn.modules.container", "ModuleDict"): _container("ModuleDict"),
    ("torch.nn.modules.container", "ModuleList"): _container("ModuleList"),
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch._utils", "_rebuild_parameter"): _parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): _parameter,
    ("torch.storage", "_load_from_bytes"): _load_from_bytes,
    ("numpy", "dtype"): _dtype,
    ("numpy.core.multiarray", "scalar"): _scalar,
    ("numpy._core.multiarray", "scalar"): _scalar,
    # Containers.
    ("collections", "OrderedDict"): _dict,
    ("dnnlib.util", "EasyDict"): _dict,
    ("__builtin__", "set"): _set,
    ("builtins", "set"): _set,
    ("copyreg", "_reconstructor"): _reconstructor,
    ("copy_reg", "_reconstructor"): _reconstructor,
    ("_codecs", "encode"): _encode,
    # Beside the network: read over.
    ("builtins", "object"): _inert("object"),
    ("__builtin__", "object"): _inert("object"),
    ("numpy", "ndarray"): _inert("numpy.ndarray"),
    ("numpy.core.multiarray", "_reconstruct"): _inert("numpy.ndarray"),
    ("numpy._core.multiarray", "_reconstruct"): _inert("numpy.ndarray"),
    ("torch", "device"): _inert("torch.device"),
    ("torch", "Size"): _inert("torch.Size"),
    **{("torch", name): _inert(f"torch.{name}") for name in _DTYPES},
}
