"""Actors of Ray that compute stretches in parallel, for ``python -m anisoflight.fid calc --ray``.

Each actor has its own server and the features. Ray starts the actors, replaces one whose process or node is lost, and
repeats its calls. An actor whose server has ended ends itself, and is replaced, too.
"""

import os
import shutil
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any, Self

from ..errors import AnisoflightError, UnavailableError
from ..files.temporary import TemporaryFolder
from ..serving.local import serve
from .errors import FidError, needs
from .features import for_calc
from .networks import Loading
from .reference import Reference
from .rows import Job, Measurement
from .sources import ServerSamples, server_versions
from .stretches import Bounds, Look, Stretch, look

Samples = partial[ServerSamples]
"""Samples of a model, once there is a server."""
Unit = tuple[int, Bounds]
"""Row, and a stretch of its images."""


_RETRIES = 4  # of a call whose actor was lost
_AHEAD = 4  # stretches per actor that are computed or wait to be folded


@dataclass(frozen=True)
class Setup:
    """An actor's settings; the folder and the features' file have the same path on every node."""

    data: Path
    model: str
    reference: Reference
    features: str | None
    loading: Loading
    batch: int


class Worker:
    """An actor's work, which does not import Ray: it has the features, and a server with the model."""

    def __init__(self, setup: Setup) -> None:
        self._features, self._batch = for_calc(setup.features, setup.reference, setup.loading), setup.batch
        self._folder = TemporaryFolder()
        data = self._folder.path / "data"
        unfinished = shutil.ignore_patterns(".*")
        for kind in (f"models/{setup.model}", "schedules", "bases"):
            if (setup.data / kind).exists():
                shutil.copytree(setup.data / kind, data / kind, ignore=unfinished, copy_function=_link)
        self._client = serve(data=data)

    def described(self, samples: list[Samples]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """What the images depend on, and the versions of the server."""
        return [source(self._client).identity() for source in samples], server_versions(self._client)

    def look(self, samples: Samples, identity: dict[str, Any], stretch: Bounds) -> Stretch:
        """Compute a stretch."""
        try:
            source = samples(self._client)
            if (found := source.identity()) != identity:
                raise FidError(f"this actor would sample {found}, not {identity}", "BAD_IMAGES")
            return look(source, self._features, self._batch, stretch)
        except AnisoflightError as error:
            if isinstance(error, UnavailableError) or self._client.server.process.poll() is not None:
                os._exit(1)  # Ray starts another, and gives it this call
            raise

    def processes(self) -> tuple[int, int]:
        """The ids of this process and of its server."""
        return os.getpid(), self._client.server.process.pid


def _link(source: str, to: str) -> None:
    """A link in place of a copy, because stored files never change."""
    try:
        os.link(source, to)
    except OSError:  # on another file system
        shutil.copy2(source, to)


class Fleet:
    """`size` actors that compute stretches. Leaving the context ends them and their servers."""

    def __init__(
        self, setup: Setup, size: int, address: str | None, cpus: float = 1, gpus: float | None = None
    ) -> None:
        if not (setup.data / "models" / setup.model).is_dir():
            raise FidError(f"there is no model {setup.model!r} in {setup.data}", "BAD_REQUEST")
        try:
            import ray  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise needs("ray", "--ray") from None
        if not ray.is_initialized():  # by default at RAY_ADDRESS, else on this machine
            ray.init(address=address, include_dashboard=False, log_to_driver=False, logging_level="warning")
        self._ray = ray
        if gpus is None:
            gpus = 1 if ray.cluster_resources().get("GPU") else 0
        actor = ray.remote(num_cpus=cpus, num_gpus=gpus, max_restarts=-1, max_task_retries=_RETRIES)(Worker)
        self._setup = ray.put(setup)  # kept for actors that are replaced
        self.workers = [actor.remote(self._setup) for _ in range(size)]
        self._found: Iterator[tuple[Unit, Stretch]] = iter(())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            self._ray.kill(worker)

    def rows(
        self, measurement: Measurement, job: Callable[..., Job], samples: Sequence[tuple[Samples, dict[str, Any]]]
    ) -> list[dict[str, Any]]:
        """The rows of samples, each with {"nfe": …} or {"steps": …}, equal to those of a single run."""
        counts = [source.keywords["count"] for source, _ in samples]
        measurement.require_enough([job({}, count, self._look(0)) for count in counts])
        described = self.workers[0].described.remote([source for source, _ in samples])
        identities, versions = self._get(described)
        jobs = [
            job(identity, counts[row], self._look(row), asked=samples[row][1], versions=versions)
            for row, identity in enumerate(identities)
        ]
        units = [(row, stretch) for row, job in enumerate(jobs) for stretch in measurement.missing(job)]
        self.expect([source for source, _ in samples], identities, units)
        return measurement.rows(jobs)

    def expect(self, samples: Sequence[Samples], identities: Sequence[dict[str, Any]], units: Sequence[Unit]) -> None:
        """Start units, in the order in which they will be needed, on the actors in turn."""
        sent: deque[tuple[Unit, Any]] = deque()

        def found() -> Iterator[tuple[Unit, Stretch]]:
            for (row, stretch), worker in zip(units, cycle(self.workers), strict=False):
                sent.append(((row, stretch), worker.look.remote(samples[row], identities[row], stretch)))
                if len(sent) == _AHEAD * len(self.workers):
                    unit, promise = sent.popleft()
                    yield unit, self._get(promise)
            for unit, promise in sent:
                yield unit, self._get(promise)

        self._found = found()

    def _look(self, row: int) -> Look:
        # Not always the next one, if another program has computed a part of the row meanwhile.
        return lambda stretch, _: next(found for unit, found in self._found if unit == (row, stretch))

    def _get(self, promise: Any) -> Any:
        try:
            return self._ray.get(promise)
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, AnisoflightError):
                raise error.cause from None
            raise
        except self._ray.exceptions.RayError as error:
            raise FidError(f"an actor was lost too often, or cannot start: {error}", "FLEET") from error
