"""Diffusion models with learned anisotropic noise schedules, from Python.

A server (one Go program) holds models, schedules, data sets and training runs. This package reaches it over Arrow
Flight::

    import anisoflight

    with anisoflight.serve(data="data") as client:      # or anisoflight.connect("grpc://host:8815")
        client.put_dataset("digits", images, labels)
        run = client.create_run("first", stage="pretrain", dataset="digits", network=network, kimg=51.2)
        run.step(200)
        run.save("digits")
        client.sample("digits", n=16, steps=9)

Begin with `connect` or `serve`: both return a `Client`, whose methods are the operations.

The modules here and the packages convert, data, diffusers, fid, figures, recipe, torch and widgets are public. Inside,
`serving` starts and reaches a server, `operations` are the client's methods, `plans` are samplers and schedules as
numbers, `wire` is what is sent, and `files` what is written.
"""

from pathlib import Path as _Path

from .errors import (
    AccessError,
    AnisoflightError,
    AnisoflightWarning,
    BadRequestError,
    BusyError,
    CancelledError,
    DeadlineError,
    ForkedError,
    InternalError,
    NameTakenError,
    NotFiniteError,
    NotFoundError,
    RunNotRunnableError,
    ServerStartError,
    StorageError,
    TooLargeError,
    UnavailableError,
)
from .errors import gone as _gone
from .operations.training import Run
from .plans.plan import Plan
from .plans.schedule import Schedule
from .serving.client import Client, connect
from .serving.local import LocalClient, serve
from .wire.samples import Dataset, Samples

__all__ = [
    "AccessError", "AnisoflightError", "AnisoflightWarning", "BadRequestError", "BusyError", "CancelledError", "Client",
    "Dataset", "DeadlineError", "ForkedError", "InternalError", "LocalClient", "NameTakenError", "NotFiniteError",
    "NotFoundError", "Plan", "Run", "RunNotRunnableError", "Samples", "Schedule", "ServerStartError", "StorageError",
    "TooLargeError", "UnavailableError", "connect", "serve",
]  # fmt: skip

__version__ = _Path(__file__).with_name("VERSION").read_text(encoding="utf-8").strip()

__getattr__ = _gone("anisoflight", {
    "plot_comparison": "anisoflight-table prints what python -m anisoflight.fid calc has measured",
})  # fmt: skip
