"""Targets of conversions: EDM's zips, a server's data sets, folders as a server stores them."""

import io
import json
import tempfile
import zipfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ..files.temporary import whole_file
from ..serving.client import Client
from ..serving.local import serve
from ..wire.pictures import Picture, image_of
from .conversion import Conversion
from .folders import FILE
from .source import DataError

UPLOADS = ("--device", "go", "--max-upload-bytes", str(1 << 50))
"""Arguments of a server for uploads of any size, which need no device."""
_PIECE = 2 << 20  # bytes of images that are sent at a time


def write_zip(path: Path, images: Conversion) -> None:
    """Write the zip of EDM's and StyleGAN's tools; it appears complete or not at all.

    It has uncompressed PNGs 00000/img00000000.png, … and dataset.json: {"labels": [[name, label], …]}, null without
    labels.
    """
    labels = []
    with whole_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as out:
        for i, (picture, label) in enumerate(images):
            name = f"{i // 1000:05d}/img{i:08d}.png"
            out.writestr(name, _png(images.source.path, name, picture))
            labels.append([name, label])
        if images.source.labelled and (bare := next((name for name, label in labels if label < 0), None)):
            raise DataError(path, bare, "has no label, others have; --labels none drops all")
        out.writestr(FILE, json.dumps({"labels": labels if images.source.labelled else None}))


def _png(path: Path, name: str, picture: Picture) -> bytes:
    if picture.dtype != np.uint8 or picture.shape[2] not in (1, 3):
        form = f"{picture.dtype} in {picture.shape[2]} channels"
        raise DataError(path, name, f"cannot be a PNG of {form}: bytes in 1 or 3 channels are written")
    file = io.BytesIO()
    image_of(picture).save(file, "PNG", compress_level=0)
    return file.getvalue()


def upload(client: Client, name: str, images: Conversion, replace: bool = False) -> None:
    """Store images as a data set of a server, in pieces."""
    form: dict[str, Any] = {"mean": images.mean, "scale": images.scale, "layout": "HWC", "replace": replace}
    client.put_dataset(name, _pieces(images), progress=False, **form)


def _pieces(images: Conversion) -> Iterator[object]:
    pairs = iter(images)
    for first in pairs:
        piece = [first, *islice(pairs, _PIECE // first[0].nbytes)]
        pictures = np.stack([picture for picture, _ in piece])
        yield (pictures, np.array([label for _, label in piece], np.int32)) if images.source.labelled else pictures


def write_folder(path: Path, images: Conversion) -> None:
    """Write a data set as a server stores it, in place of an existing one; it appears complete or not at all."""
    with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as scratch:
        with serve(data=scratch, arguments=UPLOADS) as client:
            upload(client, "images", images)
        if path.exists():
            path.rename(Path(scratch, "before"))
        Path(scratch, "datasets", "images").rename(path)
