"""The client: every operation of the service as a method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .compare import comparison
from .html import table, titled
from .operations.datasets import Datasets
from .operations.measurements import Measurements
from .operations.models import Models
from .operations.sampling import Sampling
from .operations.schedules import Schedules
from .operations.training import Training
from .wire.calls import DEFAULT_LOCATION
from .wire.retry import RETRY

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    import pandas as pd

    from .compare.comparison import Choice
    from .compare.metrics import Features

_LISTED = 8  # names of a kind that a notebook shows


def connect(
    location: str = DEFAULT_LOCATION,
    token: str | None = None,
    tls_root_certs: bytes | None = None,
    timeout: float | None = None,
    cert_chain: bytes | None = None,
    private_key: bytes | None = None,
    retry: float = RETRY,
) -> Client:
    """A client of the server at location: ``grpc://HOST:PORT``, ``grpc+tls://HOST:PORT`` or ``grpc+unix:///PATH``.

    token is needed where the server has tokens configured, tls_root_certs (PEM) where its certificate is not
    publicly known, cert_chain with its private_key (PEM) where it asks for certificates of clients. timeout is what a
    call may take, in seconds; without one, as long as it takes. The connection opens with the first call.

    A call that changes nothing is made again for up to `retry` seconds where the server cannot be reached or is
    shutting down, as long as nothing of its answer has come; 0 never does.
    """
    return Client(location, token, tls_root_certs, timeout, cert_chain, private_key, retry)


class Client(Models, Sampling, Schedules, Datasets, Training, Measurements):
    """A server's operations. Use it as a context manager, or close it.

    Calls block until their answer is complete, show a progress bar when they take longer than half a second, and an
    interrupt (Ctrl-C) ends them here and on the server. Errors are `AnisoflightError`s.

    >>> client.models().index.tolist()
    ['digits']
    """

    def _repr_html_(self) -> str:
        """What the server is and holds, for notebooks."""
        info = self.info()
        facts = {"version": info["version"], "device": info["device"]["name"]}
        held = {
            "models": self.models(),
            "datasets": self.datasets(),
            "schedules": self.schedules(),
            "bases": self.bases(),
            "runs": self.runs(),
        }
        names = {kind: _some(frame.index.tolist()) for kind, frame in held.items()}
        return titled(self, table({**facts, **names}))

    def info(self) -> dict[str, Any]:
        """Version, device, load and memory of the server."""
        return self.call("ServerInfo")

    def operations(self) -> dict[str, str]:
        """Every action of the server with a sentence on what it does."""
        return self._connection.operations()

    def compare(
        self,
        model: str,
        *,
        solvers: Sequence[Choice],
        nfe: Sequence[int],
        schedules: Sequence[Choice | None] = (None,),
        grids: Sequence[Choice] = ("schedule",),
        seeds: int | Sequence[int] = 3,
        samples: int = 2000,
        probes: int = 256,
        reference: str | npt.ArrayLike | None = None,
        features: Features | int = 40,
        guidance: float | None = None,
        guidance_interval: tuple[float, float] | None = None,
        guide: str | None = None,
        progress: bool = True,
    ) -> pd.DataFrame:
        """Measure every solver on every grid of every schedule (None: the model's own) at every number of evaluations.

        One row each: schedule, grid, solver, nfe (asked for), evaluations (counted), and

        - ode_error: 100 × the rms distance per pixel of `probes` samples to the converged solution of the same path
          from the same latents (60 steps of Heun's method on EDM's grid). Paths of other schedules are other maps: an
          isotropic and an anisotropic row cannot be compared by it, their Fréchet distances can.
        - frechet, frechet_min, frechet_max, frechet_spread (half the range): the Fréchet distance of `samples` images
          to the reference, the name of a data set or images in [−1, 1], over `seeds`; every row draws the same
          latents. features is a function images [N, H, W, C] → [N, D], or how many leading principal components of
          the reference's pixels are looked at. NaN without a reference.
        - seconds per 1000 samples; code and message of what a solver cannot do, such as too few evaluations, with NaN
          elsewhere.

        With `guidance`, as in `sample`, every row and the converged solution are guided: nfe counts the sampler's
        evaluations, `evaluations` those of both networks.

        Solvers, grids and schedules are names, or mappings as Sample takes them. `anisoflight.plot_comparison` draws
        the table.

        >>> table = client.compare("digits", solvers=["ab", {"solver": "heun", "second_point": "endpoint"}], nfe=[3, 5],
        ...                        probes=8, progress=False)
        >>> table["solver"].tolist(), table["evaluations"].tolist()
        (['ab', 'ab', 'heun endpoint', 'heun endpoint'], [3, 5, 3, 5])
        """
        return comparison.compare(
            self,
            model,
            solvers=solvers,
            nfe=nfe,
            schedules=schedules,
            grids=grids,
            seeds=seeds,
            samples=samples,
            probes=probes,
            reference=reference,
            features=features,
            guidance=guidance,
            guidance_interval=guidance_interval,
            guide=guide,
            progress=progress,
        )


def _some(names: list[str]) -> str:
    """The first names of a list, and how many more there are."""
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more} more" if more > 0 else "") or "none"
