"""Images in files: a folder, a zip as EDM's dataset tool writes it, or an npz; errors name the entry."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from ..images import MAX_PIXELS, Pixels
from .errors import FidError, needs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .sources import Source

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp")
ENTRIES = ("images", "samples", "arr_0")
"""Names under which an npz may hold its images, in order of preference."""
_BATCH = 256


def files_source(path: Path) -> Source:
    """The images at a path: a folder (with its subfolders), a .zip, or an .npz."""
    if path.is_dir():
        return Folder(path)
    if not path.exists():
        raise FidError(f"there is nothing at {path}; images are a folder, a .zip or an .npz", "BAD_IMAGES")
    with _named(path):
        if path.suffix == ".zip":
            return Zip(path)
        if path.suffix == ".npz":
            return Npz(path)
    raise FidError(f"{path} is no folder, .zip or .npz of images", "BAD_IMAGES")


@contextmanager
def _named(path: Path, entry: str = "") -> Iterator[None]:
    """Failures to read path, or an entry of it, as errors that name both."""
    try:
        yield
    # zipfile raises RuntimeError of an encrypted entry, its NotImplementedError of an unknown compression.
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, TypeError, RuntimeError, OSError) as error:
        if isinstance(error, FidError):
            raise
        where = f"{path}, entry {entry}" if entry else str(path)
        raise FidError(f"{where}: {error or 'it ends too early'}", "BAD_IMAGES") from error


def decoded(data: bytes) -> Pixels:
    """The pixels [H, W, 1 or 3] of an image file; ValueError where it has another form."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise needs("pillow", "reading image files") from None
    try:
        with Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "BMP", "WEBP")) as image:
            if image.width * image.height > MAX_PIXELS:
                raise ValueError(f"it claims {image.height}×{image.width} pixels; at most {MAX_PIXELS:,} are decoded")
            if image.mode == "P":
                image = image.convert("RGB")
            if image.mode not in ("L", "RGB"):
                raise ValueError(f"an image of mode {image.mode}; greyscale (L) and RGB are read")
            pixels = np.asarray(image)
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError) as error:
        raise ValueError(f"not a readable image ({error})") from error
    return pixels[:, :, None] if pixels.ndim == 2 else pixels


class _Encoded:
    """Image files under names, all of one shape."""

    path: Path
    names: list[str]

    @property
    def count(self) -> int:
        return len(self.names)

    def bytes_of(self, name: str) -> bytes:
        raise NotImplementedError

    def read(self, start: int, stop: int) -> Iterator[Pixels]:
        shape = self._decoded(self.names[0]).shape
        for first in range(start, stop, _BATCH):
            images = []
            for name in self.names[first : min(first + _BATCH, stop)]:
                images.append(self._decoded(name))
                if images[-1].shape != shape:
                    sizes = f"{_size(images[-1].shape)}, where {self.names[0]} is {_size(shape)}"
                    raise FidError(f"{self.path}, entry {name}: the image is {sizes}", "BAD_IMAGES")
            yield np.stack(images)

    def _decoded(self, name: str) -> Pixels:
        with _named(self.path, name):
            return decoded(self.bytes_of(name))

    def _images(self, names: Iterator[str]) -> list[str]:
        found = sorted(name for name in names if name.lower().endswith(SUFFIXES))
        if not found:
            raise FidError(f"{self.path} holds no images ({' '.join(SUFFIXES)})", "BAD_IMAGES")
        return found


class Folder(_Encoded):
    """Image files in a folder and its subfolders, in the order of their paths."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names = self._images(p.relative_to(path).as_posix() for p in path.rglob("*") if p.is_file())

    def bytes_of(self, name: str) -> bytes:
        return (self.path / name).read_bytes()

    def identity(self) -> dict[str, Any]:
        stats = [(self.path / name).stat() for name in (self.names[0], self.names[-1])]
        marks = [(stat.st_size, stat.st_mtime_ns) for stat in stats]
        return {"images": str(self.path.resolve()), "count": self.count, "ends": marks}

    def labels(self) -> None:
        return None


class Zip(_Encoded):
    """Image files in a zip; labels from its dataset.json, {"labels": [[name, class], …]}, where it has one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._zip = zipfile.ZipFile(path)
        self.names = self._images(iter(self._zip.namelist()))

    def bytes_of(self, name: str) -> bytes:
        return self._zip.read(name)

    def identity(self) -> dict[str, Any]:
        return _file_identity(self.path, self.count)

    def labels(self) -> np.ndarray[Any, Any] | None:
        if "dataset.json" not in self._zip.namelist():
            return None
        with _named(self.path, "dataset.json"):
            said = json.loads(self._zip.read("dataset.json"))
            if not isinstance(said, dict):
                raise ValueError('it is no object {"labels": …}')
            if not (pairs := said.get("labels")):
                return None
            by_name = dict(pairs)
            if missing := [name for name in self.names if name not in by_name]:
                raise ValueError(f"no label for {missing[0]}")
            return np.array([by_name[name] for name in self.names])


@dataclass
class Npz:
    """A uint8 array [N, H, W, C] in an npz, streamed from it: entry images, samples or arr_0; labels in `labels`."""

    path: Path

    def __post_init__(self) -> None:
        self._zip = zipfile.ZipFile(self.path)
        names = [name.removesuffix(".npy") for name in self._zip.namelist()]
        entry = next((name for name in ENTRIES if name in names), None)
        if entry is None:
            raise ValueError(f"holds {', '.join(names)}; images are looked for in {', '.join(ENTRIES)}")
        self._entry = f"{entry}.npy"
        with self._open() as (_, shape):
            self._shape = shape

    @property
    def count(self) -> int:
        return self._shape[0]

    def identity(self) -> dict[str, Any]:
        return _file_identity(self.path, self.count)

    def labels(self) -> np.ndarray[Any, Any] | None:
        with _named(self.path, "labels.npy"), np.load(self.path) as file:
            return file.get("labels")

    def read(self, start: int, stop: int) -> Iterator[Pixels]:
        size = int(np.prod(self._shape[1:]))
        with _named(self.path, self._entry), self._open() as (file, _):
            _skip(file, start * size)
            for first in range(start, stop, _BATCH):
                rows = min(_BATCH, stop - first)
                data = file.read(rows * size)
                if len(data) < rows * size:
                    raise EOFError(f"it ends within image {first + len(data) // size} of {self.count}")
                yield np.frombuffer(data, np.uint8).reshape(rows, *self._shape[1:])

    @contextmanager
    def _open(self) -> Iterator[tuple[IO[bytes], tuple[int, ...]]]:
        """The entry's bytes behind its header, and its shape."""
        with _named(self.path, self._entry), self._zip.open(self._entry) as file:
            version = np.lib.format.read_magic(file)
            header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, columns_first, dtype = header(file)
            if dtype != np.uint8 or len(shape) != 4 or shape[3] not in (1, 3) or columns_first:
                raise ValueError(f"holds {dtype} {shape}; images are uint8 [N, H, W, 1 or 3], row-major")
            yield file, shape


def _skip(file: IO[bytes], size: int) -> None:
    while size > 0:
        got = len(file.read(min(size, 1 << 24)))
        if not got:
            raise EOFError("it ends too early")
        size -= got


def _file_identity(path: Path, count: int) -> dict[str, Any]:
    stat = path.stat()
    return {"images": str(path.resolve()), "count": count, "bytes": stat.st_size, "changed": stat.st_mtime_ns}


def _size(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape))
