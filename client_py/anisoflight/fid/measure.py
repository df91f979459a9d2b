"""Images to statistics: one pass over a source, kept on the disk at every checkpoint, so that it can go on later."""

from __future__ import annotations

import contextlib
import hashlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm.auto import tqdm

from ..moments import RunningMoments
from .errors import FidError
from .reference import save_arrays

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from ..images import Pixels
    from .features import Features
    from .sources import Source


@dataclass
class Seen:
    """What is known of the images of a source so far."""

    running: RunningMoments
    shape: tuple[int, ...] = ()
    """Of one image [H, W, C]."""
    digest: bytes = bytes(32)
    """h_i = SHA-256(h_{i−1}, pixels of image i), h_{−1} = 0: the same however the images are read."""
    seconds: float = 0.0
    evaluations: set[int] = field(default_factory=set)

    def save(self, path: Path) -> None:
        evaluations = np.array(sorted(self.evaluations))
        rest = {"digest": np.frombuffer(self.digest, np.uint8), "seconds": self.seconds, "shape": np.array(self.shape)}
        save_arrays(path, {**self.running.state(), **rest, "evaluations": evaluations})

    @classmethod
    def load(cls, path: Path) -> Seen:
        with np.load(path, allow_pickle=False) as file:
            running = RunningMoments.restored({name: file[name] for name in ("count", "mean", "scatter", "pending")})
            shape = tuple(int(size) for size in file["shape"])
            evaluations = {int(nfe) for nfe in file["evaluations"]}
            return cls(running, shape, file["digest"].tobytes(), float(file["seconds"]), evaluations)


@dataclass(frozen=True)
class Pace:
    """How a pass goes; none of it but the batch, to rounding, moves the result."""

    batch: int = 64
    """Images that the features are computed of at a time."""
    checkpoint: int = 2000
    """Images between two checkpoints, and of a request to the server."""
    progress: bool = True


class Pass:
    """One pass over a source. Its state lies in `folder` until `discard`."""

    def __init__(self, source: Source, features: Features, folder: Path, pace: Pace, keep_rows: bool) -> None:
        self.source, self.features, self.pace = source, features, pace
        self._folder, self._keep_rows = folder, keep_rows
        self._state = folder / "state.npz"
        self.seen = Seen.load(self._state) if self._state.exists() else Seen(RunningMoments(features.dimension))
        if self.seen.running.count:
            tqdm.write(f"going on from {self.seen.running.count} of {source.count} images")

    def run(self, title: str) -> Seen:
        """Look at all images that have not been seen."""
        source, pace = self.source, self.pace
        bar = tqdm(
            total=source.count, initial=self.seen.running.count, desc=title, unit="image", disable=not pace.progress
        )
        with bar:
            while (start := self.seen.running.count) < source.count:
                stop = min(start - start % pace.checkpoint + pace.checkpoint, source.count)
                self._advance(start, stop, bar)
        return self.seen

    def rows(self) -> np.ndarray[Any, Any]:
        """The features [N, D] as float32, of a pass that keeps them."""
        parts = sorted(self._folder.glob("rows-*.npy"))
        return np.concatenate([np.load(part) for part in parts])

    def discard(self) -> None:
        """Remove the state."""
        if self._folder.exists():
            for path in self._folder.iterdir():
                path.unlink()
            self._folder.rmdir()
            with contextlib.suppress(OSError):  # others' state may be there
                self._folder.parent.rmdir()

    def _advance(self, start: int, stop: int, bar: Any) -> None:
        """One stretch, and its checkpoint. What is stopped before that counts as never begun: the disk decides."""
        began, seen, rows = time.perf_counter(), self.seen, []
        for images in rebatched(self.source.read(start, stop), self.pace.batch):
            seen.shape = seen.shape or images.shape[1:]
            if images.shape[1:] != seen.shape:
                raise FidError(f"images of {images.shape[1:]} among images of {seen.shape}", "BAD_IMAGES")
            for image in np.ascontiguousarray(images):
                seen.digest = hashlib.sha256(seen.digest + image.tobytes()).digest()
            found = self.features(images)
            seen.running.update(found)
            if self._keep_rows:
                rows.append(found.astype(np.float32))
            bar.update(len(images))
        if seen.running.count != stop:
            raise FidError(
                f"{seen.running.count - start} images came where {stop - start} were asked for", "BAD_IMAGES"
            )
        seen.seconds += time.perf_counter() - began
        seen.evaluations |= getattr(self.source, "evaluations", set())
        self._folder.mkdir(parents=True, exist_ok=True)
        if rows:
            part = self._folder / f"rows-{start:012d}.part"
            with part.open("wb") as file:
                np.save(file, np.concatenate(rows))
            part.replace(part.with_suffix(".npy"))
        seen.save(self._state)


def rebatched(parts: Iterable[Pixels], size: int) -> Iterator[Pixels]:
    """The same images, `size` at a time; the last may be fewer.

    >>> [len(batch) for batch in rebatched([np.zeros((3, 2, 2, 1)), np.zeros((4, 2, 2, 1))], 2)]
    [2, 2, 2, 1]
    """
    held: list[Pixels] = []
    count = 0
    for part in parts:
        held.append(part)
        count += len(part)
        if count < size:
            continue
        joined = np.concatenate(held)
        whole = count - count % size
        yield from (joined[start : start + size] for start in range(0, whole, size))
        held, count = [joined[whole:]], count - whole
    if count:
        yield np.concatenate(held)
