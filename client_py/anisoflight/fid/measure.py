"""Images to statistics: one pass over a source, kept on the disk at every checkpoint, so that it can go on later.

A pass consists of stretches. A stretch depends on the source, the features and its own bounds alone. Passes fold
stretches in order, so that their result does not depend on who has looked at which.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..moments import RunningMoments
from ..wire.progress import Progress
from .errors import FidError
from .reference import save_arrays

if TYPE_CHECKING:
    from pathlib import Path

    from ..images import Pixels
    from .features import Features
    from .sources import Source


@dataclass(frozen=True)
class Stretch:
    """The images start … start + n − 1 of a source, through features."""

    start: int
    features: np.ndarray[Any, Any]
    """[n, D] float64, or float32 where that holds them exactly, as a network's."""
    hashes: np.ndarray[Any, Any]
    """[n, 32] uint8: SHA-256 of each image's pixels."""
    shape: tuple[int, ...]
    """Of one image [H, W, C]."""
    evaluations: tuple[int, ...]
    """NFE that the server counted; none of images that are no samples."""
    seconds: float

    @property
    def stop(self) -> int:
        return self.start + len(self.features)

    def arrays(self) -> dict[str, Any]:
        """Everything, as arrays for a file."""
        return {
            "features": self.features,
            "hashes": self.hashes,
            "shape": np.array(self.shape, np.int64),
            "evaluations": np.array(self.evaluations, np.int64),
            "seconds": np.float64(self.seconds),
        }

    @classmethod
    def restored(cls, start: int, arrays: Mapping[str, Any]) -> Stretch:
        """What `arrays` gave."""
        shape = tuple(int(size) for size in arrays["shape"])
        evaluations = tuple(int(nfe) for nfe in arrays["evaluations"])
        return cls(start, arrays["features"], arrays["hashes"], shape, evaluations, float(arrays["seconds"]))


def bounds(first: int, count: int, length: int) -> list[tuple[int, int]]:
    """Stretches that are left of a source of which `first` images have been seen; they begin at multiples of length.

    >>> bounds(0, 5, 2), bounds(3, 5, 2)
    ([(0, 2), (2, 4), (4, 5)], [(3, 4), (4, 5)])
    """
    stops = [*range(first - first % length + length, count, length), count]
    return list(zip([first, *stops[:-1]], stops, strict=True)) if first < count else []


def look(
    source: Source, features: Features, start: int, stop: int, batch: int, tick: Callable[[int], object] | None = None
) -> Stretch:
    """Look at images start … stop − 1, `batch` at a time; `tick` hears how many are done."""
    began = time.perf_counter()
    found: list[np.ndarray[Any, Any]] = []
    hashes: list[bytes] = []
    shape: tuple[int, ...] = ()
    for images in rebatched(source.read(start, stop), batch):
        shape = shape or images.shape[1:]
        if images.shape[1:] != shape:
            raise FidError(f"images of {images.shape[1:]} among images of {shape}", "BAD_IMAGES")
        hashes += [hashlib.sha256(image.tobytes()).digest() for image in np.ascontiguousarray(images)]
        found.append(features(images))
        if tick is not None:
            tick(len(images))
    if len(hashes) != stop - start:
        raise FidError(f"{len(hashes)} images came where {stop - start} were asked for", "BAD_IMAGES")
    evaluations = tuple(sorted(getattr(source, "evaluations", ())))
    digests = np.frombuffer(b"".join(hashes), np.uint8).reshape(-1, 32)
    seconds = time.perf_counter() - began
    return Stretch(start, _narrow(np.concatenate(found)), digests, shape, evaluations, seconds)


def _narrow(features: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same numbers as float32 where none of them changes by that."""
    with np.errstate(over="ignore"):
        narrow = features.astype(np.float32)
    return narrow if np.array_equal(narrow, features) else features


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


Looks = Callable[[Sequence[tuple[int, int]], Callable[[int], object]], Iterator[Stretch]]
"""Who looks at the images: gives the stretches of those bounds in order, and tells the second how many are done."""


@dataclass
class Seen:
    """What is known of the images of a source so far."""

    running: RunningMoments
    shape: tuple[int, ...] = ()
    """Of one image [H, W, C]."""
    digest: bytes = bytes(32)
    """h_i = SHA-256(h_{i−1}, SHA-256(pixels of image i)), h_{−1} = 0: the same however the images are read."""
    seconds: float = 0.0
    evaluations: set[int] = field(default_factory=set)

    def fold(self, stretch: Stretch) -> None:
        """Take the next stretch."""
        if stretch.start != self.running.count:
            raise FidError(
                f"images from {stretch.start} came where those from {self.running.count} were next", "BAD_IMAGES"
            )
        self.shape = self.shape or stretch.shape
        if stretch.shape != self.shape:
            raise FidError(f"images of {stretch.shape} among images of {self.shape}", "BAD_IMAGES")
        self.running.update(stretch.features)
        for found in stretch.hashes:
            self.digest = hashlib.sha256(self.digest + found.tobytes()).digest()
        self.seconds += stretch.seconds
        self.evaluations |= set(stretch.evaluations)

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
    """How a pass goes; none of it but the batch and the stretch, to rounding, moves the result."""

    batch: int = 64
    """Images that the features are computed of at a time."""
    checkpoint: int = 2000
    """Images between two checkpoints, of a request to the server, and of a stretch."""
    progress: bool = True


class Pass:
    """One pass over a source. Its state lies in `folder` until `discard`."""

    def __init__(
        self,
        source: Source,
        features: Features,
        folder: Path,
        pace: Pace,
        keep_rows: bool,
        looks: Looks | None = None,
    ) -> None:
        self.source, self.features, self.pace = source, features, pace
        self._folder, self._keep_rows, self._looks = folder, keep_rows, looks or self._look
        self._state = state_file(folder)
        self.seen = Seen.load(self._state) if self._state.exists() else Seen(RunningMoments(features.dimension))
        if self.seen.running.count:
            Progress.write(f"going on from {self.seen.running.count} of {source.count} images")

    def run(self, title: str) -> Seen:
        """See all images that have not been seen. What is stopped before its checkpoint counts as never begun."""
        first, count = self.seen.running.count, self.source.count
        if not first:
            for rest in self._folder.glob("rows-*"):  # of a pass that another version began
                rest.unlink()
        bar = Progress(total=count, initial=first, desc=title, unit="image", disable=not self.pace.progress)
        with bar:
            for stretch in self._looks(bounds(first, count, self.pace.checkpoint), bar.update):
                self._keep(stretch)
        if self.seen.running.count != count:
            raise FidError(f"{self.seen.running.count} images came where {count} were asked for", "BAD_IMAGES")
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

    def _look(self, stretches: Sequence[tuple[int, int]], tick: Callable[[int], object]) -> Iterator[Stretch]:
        for start, stop in stretches:
            yield look(self.source, self.features, start, stop, self.pace.batch, tick)

    def _keep(self, stretch: Stretch) -> None:
        """Fold a stretch, and store that: from then on the disk decides what has been seen."""
        self.seen.fold(stretch)
        self._folder.mkdir(parents=True, exist_ok=True)
        if self._keep_rows:
            part = self._folder / f"rows-{stretch.start:012d}.part"
            with part.open("wb") as file:
                np.save(file, stretch.features.astype(np.float32))
            part.replace(part.with_suffix(".npy"))
        self.seen.save(self._state)


def state_file(folder: Path) -> Path:
    """Where the state of a pass is kept in its folder."""
    return folder / "seen.npz"


def remove_empty(folder: Path) -> None:
    """Remove a folder of states that nobody's state is in any more."""
    with contextlib.suppress(OSError):
        folder.rmdir()
