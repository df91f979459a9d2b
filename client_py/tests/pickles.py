"""Pickles written by hand: names that need not exist, torch's files without torch, EDM's networks."""

import io
import pickle
import struct
import zipfile
from dataclasses import dataclass
from typing import Any

import dill
import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Name:
    """A global: module and name."""

    module: str
    name: str


@dataclass(frozen=True)
class Call:
    """function(*args), and the state that is set on what it gives."""

    function: Any
    args: Any = ()
    state: Any = None


@dataclass(frozen=True)
class Persistent:
    """A persistent id."""

    pid: Any


@dataclass(frozen=True)
class Raw:
    """Instructions, as they stand."""

    code: bytes


# datasets imports dill, which puts its own functions into Python's pickler: as it was before, it writes what others do.
dill.extend(use_dill=False)
_Pickler: Any = pickle._Pickler


class _Writer(_Pickler):
    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        match obj:
            case Name() if self.proto >= 4:
                super().save(obj.module)
                super().save(obj.name)
                self.write(pickle.STACK_GLOBAL)
            case Name():
                self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
            case Call():
                self.save(obj.function)
                self.save(obj.args)
                self.write(pickle.REDUCE)
                if obj.state is not None:
                    self.save(obj.state)
                    self.write(pickle.BUILD)
            case Persistent():
                self.save(obj.pid)
                self.write(pickle.BINPERSID)
            case Raw():
                self.write(obj.code)
            case _:
                super().save(obj, save_persistent_id)


def dumps(value: Any, protocol: int = 4) -> bytes:
    """A pickle of value, in which the classes above stand for what they say."""
    file = io.BytesIO()
    _Writer(file, protocol).dump(value)
    return file.getvalue()


# torch's files.

MAGIC = 0x1950A86A20F9469CFC6C
_CLASSES = {"<f4": "FloatStorage", "<f2": "HalfStorage", "<f8": "DoubleStorage", "<i8": "LongStorage"}


def storage(data: Array, key: str) -> Persistent:
    """The persistent id of a storage that holds a flat array."""
    return Persistent(("storage", Name("torch", _CLASSES[data.dtype.str]), key, "cpu", data.size))


def legacy(found: Any, storages: dict[str, Array], facts: dict[str, Any] | None = None) -> bytes:
    """A torch file of the legacy format."""
    facts = {"protocol_version": 1001, "little_endian": True} if facts is None else facts
    parts = [dumps(part, 2) for part in (MAGIC, 1001, facts, found, list(storages))]
    parts += [struct.pack("<q", data.size) + data.tobytes() for data in storages.values()]
    return b"".join(parts)


def zipped(
    found: Any, storages: dict[str, Array], compression: int = zipfile.ZIP_STORED, root: str = "archive"
) -> bytes:
    """A torch file of the zip format."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        archive.writestr("archive/data.pkl", dumps(found, 2))
        archive.writestr("archive/byteorder", "little")
        for key, data in storages.items():
            archive.writestr(f"archive/data/{key}", data.tobytes())
    return file.getvalue()


LOAD = Name("torch.storage", "_load_from_bytes")
TENSOR = Name("torch._utils", "_rebuild_tensor_v2")
PARAMETER = Name("torch._utils", "_rebuild_parameter")
ORDERED = Name("collections", "OrderedDict")
PERSISTENT = Name("torch_utils.persistence", "_reconstruct_persistent_obj")


def loaded(data: Array) -> Call:
    """A storage as a tensor of a plain pickle holds it: bytes of a legacy file."""
    return Call(LOAD, (legacy(storage(data, "0"), {"0": data}),))


def tensor(values: Array, held: Any = None, offset: int = 0, strides: tuple[int, ...] | None = None) -> Call:
    """A tensor: of values, or a view with the shape of values of what is held."""
    if strides is None:
        strides = tuple(step // values.itemsize for step in np.zeros(values.shape, values.dtype).strides)
    held = loaded(np.ascontiguousarray(values).reshape(-1)) if held is None else held
    return Call(TENSOR, (held, offset, values.shape, strides, False, Call(ORDERED)))


# EDM's networks.


def persistent(class_name: str, **state: Any) -> Call:
    """An object as EDM's persistence layer writes it."""
    meta = {"type": "class", "version": 6, "module_src": "raise SystemExit('never run')", "class_name": class_name}
    return Call(PERSISTENT, ({**meta, "state": state},))


def module(
    tensors: dict[str, Any], class_name: str = "Module", children: dict[str, str] | None = None, **state: Any
) -> Call:
    """A tree of modules with these tensors, by dotted name; children gives the classes of some of its own modules."""
    own = {name: value for name, value in tensors.items() if "." not in name}
    below: dict[str, dict[str, Any]] = {}
    for name, value in tensors.items():
        if "." in name:
            head, rest = name.split(".", 1)
            below.setdefault(head, {})[rest] = value
    buffers = {name: own.pop(name) for name in ("resample_filter", "freqs") if name in own}
    return persistent(
        class_name,
        _parameters={name: Call(PARAMETER, (value, True, Call(ORDERED))) for name, value in own.items()},
        _buffers=buffers,
        _non_persistent_buffers_set=set(),
        _modules={name: module(rest, (children or {}).get(name, "Module")) for name, rest in below.items()},
        training=False,
        **state,
    )


def network(tensors: dict[str, Any], config: dict[str, Any], class_name: str = "EDMPrecond", **state: Any) -> Call:
    """An EDMPrecond made with these keyword arguments."""
    children = {"model": config.get("model_type", "DhariwalUNet")}
    return module(tensors, class_name, children, _init_args=(), _init_kwargs=config, **state)
