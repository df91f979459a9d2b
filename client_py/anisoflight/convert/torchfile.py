"""The two formats of torch.save, read as data.

Legacy, also in torch.storage._load_from_bytes: consecutive pickles (a magic number, the protocol, facts about the
machine, the object, the keys of its storages), then for each storage its count, int64, and its elements.

Zip, since torch 1.6: NAME/data.pkl, the object, and NAME/data/KEY, the elements of each storage, uncompressed.

In both, a storage is the persistent id ("storage", class, key, location, count).
"""

import io
import zipfile
from typing import Any

import numpy as np

from .errors import BadCheckpointError, UnsafePickleError
from .unpickler import Budget, Named, Names, Unpickler
from .values import Storage

_MAGIC = 0x1950A86A20F9469CFC6C
LEGACY = b"\x80\x02\x8a\x0a" + _MAGIC.to_bytes(10, "little")  # the first bytes of a legacy file
ZIP = b"PK\x03\x04"

# torch's classes of storages, and the types of their elements.
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
    """Key and empty storage of a persistent id."""
    match pid:
        case ("storage", Named(module="torch", name=kind), str(key), str(), int(size), *rest):
            if 0 <= size < 1 << 48 and kind in STORAGES and rest in ([], [None]):
                return key, Storage(np.dtype(STORAGES[kind]), size)
    raise BadCheckpointError("a persistent id is not that of a storage of torch")


def read_legacy(file: Any, names: Names, budget: Budget) -> Any:
    """The object of a torch file of the legacy format."""
    storages: dict[str, Storage] = {}

    def persistent(pid: Any) -> Storage:
        key, storage = _storage_of(pid)
        return storages.setdefault(key, storage)

    magic, protocol, facts, found, keys = (
        Unpickler(file, known, persistent if known else None, budget).load() for known in ({}, {}, {}, names, {})
    )
    if magic != _MAGIC or protocol != 1001 or not isinstance(facts, dict) or facts.get("little_endian") is not True:
        raise BadCheckpointError("a torch file is of another protocol, or of a big-endian machine")
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys) or sorted(keys) != sorted(storages):
        raise BadCheckpointError("a torch file lists other storages than it uses")
    for key in keys:
        storage = storages[key]
        if int.from_bytes(file.read(8), "little", signed=True) != storage.size:
            raise BadCheckpointError("a torch file is cut short, or one of its storages has another size")
        storage.fill(file.read(storage.size * storage.dtype.itemsize))
    return found


def read_zip(file: Any, names: Names, budget: Budget) -> Any:
    """The object of a torch file of the zip format."""
    try:
        with zipfile.ZipFile(file) as archive:
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
                if key not in storages:
                    storage.fill(archive.read(f"{roots[0]}data/{key}"))
                    storages[key] = storage
                return storages[key]

            return Unpickler(io.BytesIO(archive.read(roots[0] + "data.pkl")), names, persistent, budget).load()
    except (zipfile.BadZipFile, EOFError, NotImplementedError, KeyError) as error:
        raise BadCheckpointError(f"a torch file is a damaged zip: {error}") from error
