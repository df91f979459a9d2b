"""The client: every operation of the service as a method."""

from __future__ import annotations

from typing import Any

from ..errors import gone
from ..operations.datasets import Datasets
from ..operations.measurements import Measurements
from ..operations.models import Models
from ..operations.plans import Plans
from ..operations.sampling import Sampling
from ..operations.training import Training

_GONE = gone(
    "Client",
    {
        "bench_schedule": "make_schedule prints what a schedule is worth on the data's Gaussian; "
        "python -m anisoflight.fid calc measures samplers on a model; docs/schedules.md",
        "compare": "measure samplers with python -m anisoflight.fid calc --metrics ode-error; docs/fid.md",
        "advise": "anisoflight data inspect prints T and c of the data, which schedules take by default; "
        "predict compares subspaces, few searches a sampler",
    },
)


class Client(Models, Datasets, Plans, Training, Sampling, Measurements):
    """A server's operations at location: HOST:PORT, unix:PATH, ``grpc+tls://HOST:PORT`` or another of Arrow Flight's.

    token is needed where the server has tokens configured, tls_root_certs where its certificate is not publicly known,
    cert_chain with its private_key where it asks for certificates of clients: each is PEM, or the path of its file.
    timeout is what a call may take, in seconds; without one, as long as it takes. The connection opens with the first
    call. A call that changes nothing is made again for up to `retry` seconds where the server cannot be reached or is
    shutting down, as long as nothing of its answer has come; 0 never does.

    A client can be pickled, with its token, and connects again in a spawned process. In a fork of its process its calls
    raise `ForkedError`.

    Use it as a context manager, or close it. Calls block until their answer is complete, show a progress bar when they
    take longer than half a second, and an interrupt (Ctrl-C) ends them here and on the server. Errors are
    `AnisoflightError`s.

    >>> "digits" in client.models().index
    True
    """

    def __reduce__(self) -> tuple[type[Client], tuple[Any, ...]]:
        """A copy, in another process as well, is another client of the server, which it does not end."""
        return Client, self._arguments

    def __getattr__(self, name: str) -> Any:
        return _GONE(name)

    def info(self) -> dict[str, Any]:
        """Version, device, load and memory of the server."""
        return self.call("ServerInfo")


connect = Client
"""Connect to a server; `Client` has the arguments."""
