"""The two formats of torch.save, read as data.

Legacy, which torch.storage._load_from_bytes holds: pickles one after the other (a magic number, the protocol, facts
about the machine, the object, the keys of its storages), then for each storage its count, int64, and its elements.

Zip, since torch 1.6: NAME/data.pkl, the object, and NAME/data/KEY, the elements of each storage, not compressed.

In both, a storage is the persistent id ("storage", class, key, location, count).
"""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from .errors import BadCheckpointError, UnsafePickleError
from .unpickler import Budget, Named, Names, Unpickler
from .values import Storage

_MAGIC = 0x1950A86A20F9469CFC6C
LEGACY = b"\x80\x02\x8a\x0a" + _MAGIC.to_bytes(10, "little")  # how a legacy file begins
ZIP = b"PK\x03\x04"

# torch's classes of storages by element; the names are the ones that torch has kept in its files since version 0.
STORAGES = {
    "DoubleStorage": "<f8",
    "FloatStorage": "<f4",
    "HalfStorage": "<f2",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
    "ShortStorage": "<i2",
    "CharStorage": "<i1",
    "ByteStorage": "<u1",
    "BoolStorage": "<b1",
}


def _storage_of(pid: Any) -> tuple[str, Storage]:
    """Key and storage, still empty, of a persistent id."""
    match pid:
        case ("storage", Named(module="torch", name=kind), str(key), str(), int(size), *rest):
            if size >= 0 and kind in STORAGES and rest in ([], [None]):
                return key, Storage(np.dtype(STORAGES[kind]), size)
    raise BadCheckpointError("a persistent id is not that of a storage of torch")


def read_legacy(data: memoryview, names: Names, budget: Budget) -> Any:
    """The object of a torch file of the legacy format."""
    if data[: len(LEGACY)] != LEGACY:
        raise BadCheckpointError("what should be written by torch.save is not")
    storages: dict[str, Storage] = {}

    def persistent(pid: Any) -> Storage:
        key, storage = _storage_of(pid)
        return storages.setdefault(key, storage)

    end = 0
    parts = []
    for known in ({}, {}, {}, names, {}):
        unpickler = Unpickler(data, known, persistent if known else None, budget, end)
        parts.append(unpickler.load())
        end = unpickler.end
    _, protocol, facts, found, keys = parts
    if protocol != 1001 or not isinstance(facts, dict) or facts.get("little_endian") is not True:
        raise BadCheckpointError("a torch file is of another protocol, or of a big-endian machine")
    if not isinstance(keys, list) or len(keys) != len(storages) or not all(isinstance(key, str) for key in keys):
        raise BadCheckpointError("a torch file lists other storages than it uses")
    for key in keys:
        if key not in storages:
            raise BadCheckpointError("a torch file lists other storages than it uses")
        if len(data) < end + 8:
            raise BadCheckpointError("a torch file is cut short")
        (count,) = struct.unpack_from("<q", data, end)
        storage = storages[key]
        size = storage.size * storage.dtype.itemsize
        if count != storage.size or len(data) < end + 8 + size:
            raise BadCheckpointError(f"a torch file is cut short, or its storage of {storage.size:,} values is")
        storage.fill(data[end + 8 : end + 8 + size])
        end += 8 + size
    return found


def read_zip(path: Path, names: Names, budget: Budget) -> Any:
    """The object of a torch file of the zip format."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = {info.filename: info for info in archive.infolist()}
            budget.spend(len(entries))
            for info in entries.values():
                if info.compress_type or info.file_size != info.compress_size or info.flag_bits & 1:
                    raise UnsafePickleError("a zip has a compressed or encrypted entry, which torch never writes")
            roots = [name.removesuffix("data.pkl") for name in entries if name.endswith("/data.pkl")]
            if len(roots) != 1:
                raise BadCheckpointError("a zip is no torch file: it has no data.pkl, or several")
            if roots[0] + "byteorder" in entries and archive.read(roots[0] + "byteorder") != b"little":
                raise BadCheckpointError("a torch file is of a big-endian machine")
            storages: dict[str, Storage] = {}

            def persistent(pid: Any) -> Storage:
                key, storage = _storage_of(pid)
                name = f"{roots[0]}data/{key}"
                if name not in entries:
                    raise BadCheckpointError("a torch file lacks one of its storages")
                if key not in storages:
                    storage.fill(memoryview(archive.read(name)))
                    storages[key] = storage
                return storages[key]

            pickled = memoryview(archive.read(roots[0] + "data.pkl"))
            return Unpickler(pickled, names, persistent, budget).load()
    except (zipfile.BadZipFile, EOFError, NotImplementedError) as error:
        raise BadCheckpointError(f"a torch file is a damaged zip: {error}") from error
