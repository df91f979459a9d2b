"""The two formats of torch.save, read as data.

Legacy, which torch.storage._load_from_bytes holds: pickles one after the other (a magic number, the protocol, facts
about the machine, the object, the keys of its storages), then for each storage its count, int64, and its elements.

Zip, since torch 1.6: NAME/data.pkl, the object, and NAME/data/KEY, the elements of each storage, not compressed.

In both, a storage is the persistent id ("storage", class, key, location, count).
"""

from __future__ import annotations

import io
import struct
import zipfile
from typing import Any

import numpy as np

from .errors import BadCheckpointError, UnsafePickleError
from .unpickler import Budget, Named, Names, Unpickler
from .values import Storage

_MAGIC = 0x1950A86A20F9469CFC6C
LEGACY = b"\x80\x02\x8a\x0a" + _MAGIC.to_bytes(10, "little")  # how a legacy file begins
ZIP = b"PK\x03\x04"
_LOCAL = struct.Struct("<4s22xHH")  # signature, lengths of name and extra field of a zip entry's own header

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


def read_torch(data: memoryview, names: Names, budget: Budget) -> Any:
    """The object of a torch file, of either format."""
    if data[:4] == ZIP:
        return _read_zip(data, names, budget)
    if data[: len(LEGACY)] == LEGACY:
        return _read_legacy(data, names, budget)
    raise BadCheckpointError("what should be written by torch.save is not")


def _storage_of(pid: Any) -> tuple[str, Storage]:
    """Key and storage, still empty, of a persistent id."""
    match pid:
        case ("storage", Named(module="torch", name=kind), str(key), str(), int(size), *rest):
            if size >= 0 and kind in STORAGES and rest in ([], [None]):
                return key, Storage(np.dtype(STORAGES[kind]), size)
    raise BadCheckpointError("a persistent id is not that of a storage of torch")


def _read_legacy(data: memoryview, names: Names, budget: Budget) -> Any:
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


def _read_zip(data: memoryview, names: Names, budget: Budget) -> Any:
    try:
        with zipfile.ZipFile(_View(data)) as archive:
            entries = {info.filename: info for info in archive.infolist()}
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise BadCheckpointError(f"a torch file is a damaged zip: {error}") from error
    budget.spend(len(entries))
    roots = [name.removesuffix("data.pkl") for name in entries if name.endswith("/data.pkl")]
    if len(roots) != 1:
        raise BadCheckpointError("a zip is no torch file: it has no data.pkl, or several")
    order = entries.get(roots[0] + "byteorder")
    if order is not None and _entry(data, order) != b"little":
        raise BadCheckpointError("a torch file is of a big-endian machine")
    storages: dict[str, Storage] = {}

    def persistent(pid: Any) -> Storage:
        key, storage = _storage_of(pid)
        if key not in storages:
            info = entries.get(f"{roots[0]}data/{key}")
            if info is None:
                raise BadCheckpointError("a torch file lacks one of its storages")
            storage.fill(_entry(data, info))
            storages[key] = storage
        return storages[key]

    return Unpickler(_entry(data, entries[roots[0] + "data.pkl"]), names, persistent, budget).load()


def _entry(data: memoryview, info: zipfile.ZipInfo) -> memoryview:
    """The bytes of a zip's entry, in place."""
    if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size or info.flag_bits & 1:
        raise UnsafePickleError("a zip has a compressed or encrypted entry, which torch never writes")
    at = info.header_offset
    if at < 0 or at + _LOCAL.size > len(data):
        raise BadCheckpointError("a zip's entry is cut short")
    signature, name, extra = _LOCAL.unpack_from(data, at)
    begin = at + _LOCAL.size + name + extra
    written = info.orig_filename.encode("utf-8" if info.flag_bits & 0x800 else "cp437")
    if signature != ZIP or data[at + _LOCAL.size : begin - extra] != written or begin + info.file_size > len(data):
        raise BadCheckpointError("a zip's entry is not where its directory says, or cut short")
    return data[begin : begin + info.file_size]


class _View:
    """A memoryview as the file that zipfile wants."""

    def __init__(self, data: memoryview) -> None:
        self._data, self._at = data, 0

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: len(self._data)}[whence]
        if base + offset < 0:
            raise ValueError("a place before the beginning")
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        end = len(self._data) if size < 0 else self._at + size
        found = bytes(self._data[self._at : end])
        self._at += len(found)
        return found
