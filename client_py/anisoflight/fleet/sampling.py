"""Actors of Ray that look at stretches side by side; what comes back is put in order again.

Ray starts the actors, replaces one whose process or node is lost, and gives it its calls again; an actor replaces its
own server (`workers`). Here are only the order, and how much is under way.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from ..errors import AnisoflightError
from ..fid.errors import FidError, needs
from .workers import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Self

    from ..fid.measure import Stretch
    from .workers import Sampled, Setup

Unit = tuple[int, int, int]
"""Row, and the bounds of a stretch of its images."""

_RETRIES = 4  # of a call whose actor was lost, by Ray
_LOST = 3  # of a stretch that Ray gives up
_AHEAD = 4  # stretches under way or not yet folded, for each actor


def ray_module() -> Any:
    """Ray, or the error that says how to get it."""
    try:
        import ray  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise needs("ray", "--ray") from None
    return ray


def joined(address: str | None) -> Any:
    """Ray, connected to the cluster at that address, or that of RAY_ADDRESS, else to one of this machine alone."""
    ray = ray_module()
    if not ray.is_initialized():
        ray.init(address=address, include_dashboard=False, log_to_driver=False, logging_level="warning")
    return ray


class Fleet:
    """`size` actors that look at stretches. Leaving the context ends them and their servers."""

    def __init__(
        self, size: int, setup: Setup, *, address: str | None = None, cpus: float = 1, gpus: float | None = None
    ) -> None:
        self._ray = ray = joined(address)
        if gpus is None:
            gpus = 1 if ray.cluster_resources().get("GPU") else 0
        actor = ray.remote(num_cpus=cpus, num_gpus=gpus, max_restarts=-1, max_task_retries=_RETRIES)(Worker)
        self._setup = ray.put(setup)  # kept: an actor that is replaced is made from it again
        self.workers = [actor.remote(self._setup) for _ in range(size)]
        self._starting = {worker.ready.remote(): worker for worker in self.workers}
        self._load: dict[Any, int] = {}  # calls under way of each actor that is up
        self._todo: deque[Unit] = deque()
        self._sent: dict[Unit, tuple[Any, Any]] = {}  # the promise of a stretch, and its actor
        self._running: dict[Any, Any] = {}  # promises that have not come, and their actors
        self._lost: dict[Unit, int] = {}
        self._jobs: list[tuple[Sampled, dict[str, Any]]] = []
        self._batch = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            self._ray.kill(worker)

    def described(self, jobs: list[Sampled]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """What the jobs' images depend on, and the versions of the server, of the first actor that is up."""
        while not self._load:
            self._wait()
        return self._get(next(iter(self._load)).described.remote(jobs))

    def expect(
        self, jobs: Sequence[Sampled], identities: Sequence[dict[str, Any]], units: Iterable[Unit], batch: int
    ) -> None:
        """Begin with units of the jobs, in the order in which they will be asked for."""
        self._jobs, self._batch = list(zip(jobs, identities, strict=True)), batch
        self._todo = deque(units)

    def looks(self, row: int) -> Callable[[Sequence[tuple[int, int]], Callable[[int], object]], Iterator[Stretch]]:
        """The stretches of a row, as a `Pass` takes them."""

        def give(stretches: Sequence[tuple[int, int]], tick: Callable[[int], object]) -> Iterator[Stretch]:
            for start, stop in stretches:
                stretch = self._take((row, start, stop))
                tick(stop - start)
                yield stretch

        return give

    def _take(self, unit: Unit) -> Stretch:
        errors = self._ray.exceptions
        while True:
            while unit not in self._sent or self._sent[unit][0] in self._running:
                if unit not in self._sent and self._load:  # not the next: another program has done a part of the row
                    if unit in self._todo:
                        self._todo.remove(unit)
                    self._send(unit)
                self._fill()
                self._wait()
            self._fill()
            promise, _ = self._sent.pop(unit)
            try:
                return self._get(promise)
            except (errors.RayActorError, errors.ObjectLostError) as error:
                self._lost[unit] = self._lost.get(unit, 0) + 1
                if self._lost[unit] >= _LOST:
                    raise FidError(
                        f"images {unit[1]} to {unit[2] - 1} were lost too often: {error}", "FLEET"
                    ) from error

    def _fill(self) -> None:
        while self._todo and self._load and len(self._sent) < _AHEAD * len(self._load):
            self._send(self._todo.popleft())

    def _send(self, unit: Unit) -> None:
        row, start, stop = unit
        worker = min(self._load, key=self._load.__getitem__)
        promise = worker.look.remote(*self._jobs[row], start, stop, self._batch)
        self._load[worker] += 1
        self._sent[unit], self._running[promise] = (promise, worker), worker

    def _wait(self) -> None:
        """Wait a moment for anything to come, or for an actor to be up."""
        came, _ = self._ray.wait([*self._running, *self._starting], num_returns=1, timeout=1)
        for promise in came:
            if promise in self._starting:
                worker = self._starting.pop(promise)
                try:
                    self._get(promise)
                except self._ray.exceptions.RayError as error:
                    raise FidError(f"an actor could not start: {error}", "FLEET") from error
                self._load[worker] = 0
            else:
                self._load[self._running.pop(promise)] -= 1

    def _get(self, promise: Any) -> Any:
        try:
            return self._ray.get(promise)
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, AnisoflightError):
                raise error.cause from None
            raise
