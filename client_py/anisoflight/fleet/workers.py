"""What each actor of a fleet does: it owns a server, and looks at stretches of the samples that this draws."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import AnisoflightError, UnavailableError
from ..fid.errors import FidError
from ..fid.features import Loading, for_calc
from ..fid.measure import Stretch, look
from ..fid.sources import ServerSamples, server_versions
from ..files.temporary import TemporaryFolder
from ..serve import serve
from .folders import bring, publish

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..fid.reference import Reference
    from ..serve import LocalClient

STARTS = 3
"""Servers that one stretch may use up before its error is believed."""
_DATA = "data"
_SAMPLED = ("schedules", "bases")
"""Folders of a data folder, beside models, that samples depend on."""


@dataclass(frozen=True)
class Setup:
    """What a worker is made from; the folder and the features' file are the same path on every node."""

    data: Path
    models: tuple[str, ...]
    reference: Reference
    features: str | None
    loading: Loading


@dataclass(frozen=True)
class Sampled:
    """Samples of a model for the seeds first … first + count − 1."""

    model: str
    first: int
    count: int
    options: Mapping[str, Any] = field(default_factory=dict)
    label: int | None = None

    def source(self, client: LocalClient) -> ServerSamples:
        return ServerSamples(client, self.model, self.first, self.count, self.options, self.label)


class Worker:
    """A server on a folder of its own that has the models, and the features. Both come with the first use."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._features: Any = None
        self._client: LocalClient | None = None
        self._folder: TemporaryFolder | None = None

    def ready(self) -> bool:
        """Start what is not running."""
        if self._features is None:
            setup = self._setup
            self._features = for_calc(setup.features, setup.reference, setup.loading)
        if self._folder is None:
            self._folder = TemporaryFolder()
            (self._folder.path / _DATA).mkdir()
            _brought(self._setup.data, self._folder.path / _DATA, self._setup.models)
        if self._client is None:
            self._client = serve(data=self._folder.path / _DATA)
        return True

    def described(self, jobs: list[Sampled]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """What the jobs' images depend on, and the versions of the server."""
        client = self._serving()
        return [job.source(client).identity() for job in jobs], server_versions(client)

    def look(self, job: Sampled, identity: dict[str, Any], start: int, stop: int, batch: int) -> Stretch:
        """Look at a stretch. A server that has died meanwhile is replaced, and the stretch begun anew."""
        for left in reversed(range(STARTS)):
            try:
                source = job.source(self._serving())
                if (found := source.identity()) != identity:
                    raise FidError(f"this worker would sample {found}, not {identity}", "BAD_IMAGES")
                return look(source, self._features, start, stop, batch)
            except AnisoflightError as error:
                if not self._gone(error) or not left:
                    raise
                self._end_server()
        raise AssertionError("unreachable")

    def processes(self) -> tuple[int, int]:
        """The ids of this process and of its server."""
        return os.getpid(), self._serving().server.process.pid

    def _serving(self) -> LocalClient:
        self.ready()
        assert self._client is not None
        return self._client

    def _gone(self, error: AnisoflightError) -> bool:
        return (
            isinstance(error, UnavailableError)
            or self._client is None
            or self._client.server.process.poll() is not None
        )

    def _end_server(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None


def _brought(source: Path, to: Path, models: tuple[str, ...]) -> None:
    """Give a folder the models, and all schedules and bases, of a data folder."""
    for name in models:
        if not (source / "models" / name).is_dir():
            raise FidError(f"there is no model {name!r} in {source}", "BAD_REQUEST")
        publish(source / "models" / name, to / "models" / name, to)
    bring(source, to, _SAMPLED)
