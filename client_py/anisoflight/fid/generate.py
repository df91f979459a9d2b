"""PNG folders of samples, named as EDM's generate.py names them."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from ..images import png
from ..wire.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ..images import Pixels
    from .sources import ServerSamples


def png_path(folder: Path, seed: int, subdirs: bool) -> Path:
    """FOLDER/000042.png, or with subdirs FOLDER/000000/000042.png: a folder for every thousand seeds.

    >>> from pathlib import Path
    >>> png_path(Path("out"), 1234, True).as_posix()
    'out/001000/001234.png'
    """
    inside = folder / f"{seed - seed % 1000:06d}" if subdirs else folder
    return inside / f"{seed:06d}.png"


def generate(sources: Sequence[ServerSamples], folder: Path, subdirs: bool, chunk: int, progress: bool) -> int:
    """Write the samples of all sources; files that are there stay. Returns how many were written.

    A file is whole or not there.
    """
    total = sum(source.count for source in sources)
    written = 0
    with (
        Progress(total=total, desc="generate", unit="image", disable=not progress) as bar,
        ThreadPoolExecutor() as pool,
    ):
        for source in sources:
            for start in range(0, source.count, chunk):
                stop = min(start + chunk, source.count)
                paths = [png_path(folder, source.first + i, subdirs) for i in range(start, stop)]
                if all(path.exists() for path in paths):
                    bar.update(len(paths))
                    continue
                place = 0
                for images in source.read(start, stop):
                    some = paths[place : place + len(images)]
                    written += sum(pool.map(_write, some, images))
                    place += len(images)
                    bar.update(len(images))
    return written


def _write(path: Path, image: Pixels) -> bool:
    if path.exists():
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_bytes(png(image))
    part.replace(path)
    return True
