"""Images of a file or folder in any format."""

import gzip
import os
from pathlib import Path, PurePosixPath

from ..errors import warn
from ..files import path_of
from ..images import shortlist
from . import arrays, cifar, folders, tables
from .source import DataError, Source, named

LABELS = ("auto", "listed", "folder", "none")
"""Sources of labels: the default of the format, a list in a file, the folder of an image, none. Tables and .npz
take the name of a column or array, too."""
_FORMATS = "folders and zips of PNG, JPEG, WebP or BMP, .npy, .npz, CIFAR-10's batches, Parquet, Arrow"


def open_source(
    path: str | os.PathLike[str], labels: str = "auto", layout: str | None = None, under: str | None = None
) -> Source:
    """The images at a path, whose format follows from its content. `layout` is that of an array, HWC or CHW; by default
    channels are last if the last size is at most 4. `under` is a folder in a folder or zip, such as "train": only its
    images are read.

    >>> np.savez(folder / "two.npz", images=np.zeros((2, 8, 8, 3), np.uint8), labels=[4, 7])
    >>> with open_source(folder / "two.npz") as source:
    ...     source.format, [(item.name, item.label, item.read().shape) for item in source.items()]
    ('.npz', [('images.npy row 0', 4, (8, 8, 3)), ('images.npy row 1', 7, (8, 8, 3))])
    """
    source = read_source(path, labels, layout, under)
    if source.ignored:
        warn([f"{source.path}: {shortlist(source.ignored)} are not read, and are not among its images"])
    return source


def read_source(path: str | os.PathLike[str], labels: str, layout: str | None, under: str | None) -> Source:
    """`open_source` without its warning of what is not read."""
    inside = PurePosixPath(under or "")
    if ".." in inside.parts or inside.is_absolute():
        raise ValueError(f"under must be a folder in {os.fspath(path)}, got {under!r}")
    source = _open(path_of(path), labels, layout, "/".join(inside.parts))
    refused = ""
    if layout is not None and source.format not in (".npy", ".npz"):
        refused = "layout is that of .npy and .npz"
    if labels == "folder" and source.format not in ("folder of images", "zip of images"):
        refused = "labels by folder are for images in folders and zips"
    if labels not in LABELS and not any(form in source.format for form in ("Parquet", "Arrow", ".npz")):
        refused = f"labels must be one of {', '.join(LABELS)}, or a column of a table or .npz, got {labels!r}"
    if refused:
        source.close()
        raise DataError(path, "", f"{refused}; this is a {source.format}")
    if labels == "none" and source.labelled:
        return source.without_labels()
    return source


def _open(path: Path, labels: str, layout: str | None, under: str) -> Source:
    if path.is_dir():
        if (path / under).is_dir():
            path, under = path / under, ""
        if not under and (source := arrays.stored(path)):
            return source
        if not under and (batches := sorted(file for file in path.glob("data_batch_*") if file.is_file())):
            return cifar.from_files(path, batches)
        return folders.folder(path, labels, under)
    if path.exists() and not path.is_file():
        raise DataError(path, "", "is no file or folder; images are not read from pipes, sockets or devices")
    with path.open("rb") as file:
        head = file.read(512)
    if under and head[:4] != b"PK\x03\x04":
        raise DataError(path, "", "has no folders; under is for folders and zips of images")
    if not head:
        raise DataError(path, "", "is empty")
    match head[:4]:
        case b"PK\x03\x04" | b"PK\x05\x06":
            return folders.archive(path, labels, layout, under)
        case b"\x93NUM":
            return arrays.npy(path, layout)
        case b"PAR1" | b"ARRO" | b"\xff\xff\xff\xff":
            return tables.table(path, labels)
    packed = head.startswith(b"\x1f\x8b")
    if packed:
        with named(path), gzip.open(path) as file:
            head = file.read(512)
    if head[:2] == b"\0\0" and head[2:4] in (b"\x08\x01", b"\x08\x03"):
        message = (
            "is in MNIST's idx format, which is not read: np.savez an .npz with the arrays images and labels of it"
        )
        raise DataError(path, "", message)
    if packed or head[257:262] == b"ustar":
        return cifar.from_tar(path)
    if head.startswith(b"\x80") or path.suffix == ".bin":
        return cifar.from_files(path.parent, [path])
    raise DataError(path, "", f"has no format that is read: {_FORMATS}")
