"""Images to statistics: one pass over a source, kept on the disk at every checkpoint, so that it can go on later."""

from __future__ import annotations

import contextlib
import hashlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..moments import RunningMoments
from ..wire.progress import Progress
from .errors import FidError
from .reference import save_arrays
from .stretch import Stretch, bounds, look

if TYPE_CHECKING:
    from pathlib import Path

    from .features import Features
    from .sources import Source

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


class Expected:
    """How long a pass over images takes, once some of them have been timed.

    >>> clock = iter([0.0, 1.5, 4.0])
    >>> expected = Expected(50_000, lambda: next(clock))
    >>> [expected.after(64, {9}) for _ in range(4)]
    [None, None, '50,000 images, 9 evaluations each, about 26 minutes', None]
    """

    _TIMED = 2.0  # seconds; the first batch is not among them: it waits for programs to be compiled

    def __init__(self, count: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._count, self._clock = count, clock
        self._done, self._from = 0, (0, 0.0)
        self._said = False

    def after(self, images: int, evaluations: Iterable[int] = ()) -> str | None:
        """What to say when `images` more have been seen: how much there is to do, once, else None."""
        if self._said:
            return None
        self._done += images
        now = self._clock()
        if self._done == images:
            self._from = images, now
        first, began = self._from
        if now - began < self._TIMED:
            return None
        self._said = True
        left = (now - began) / (self._done - first) * (self._count - self._done)
        each = "".join(f", {nfe} evaluations each" for nfe in sorted(evaluations)[-1:])
        return f"{self._count:,} images{each}, about {_duration(left)}"


def _duration(seconds: float) -> str:
    """Seconds as people say them.

    >>> _duration(48), _duration(1580), _duration(9000)
    ('48 seconds', '26 minutes', '2.5 hours')
    """
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 90 * 60 else f"{seconds / 3600:.1f} hours"


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
        expected = Expected(count - first)

        def tick(done: int) -> None:
            bar.update(done)
            line = expected.after(done, getattr(self.source, "evaluations", ()))
            if line and self.pace.progress:
                bar.write(f"{title}: {line}", file=sys.stderr)

        with bar:
            for stretch in self._looks(bounds(first, count, self.pace.checkpoint), tick):
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
