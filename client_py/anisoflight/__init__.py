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

from importlib import import_module as _import
from pathlib import Path as _Path
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

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
from .plans.plan import Plan

if _TYPE_CHECKING:
    from .operations.training import Run
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

_LATER = {
    "Client": "serving.client", "connect": "serving.client", "LocalClient": "serving.local", "serve": "serving.local",
    "Run": "operations.training", "Schedule": "plans.schedule", "Dataset": "wire.samples", "Samples": "wire.samples",
}  # fmt: skip
"""What needs pyarrow and pandas, which are loaded when it is first asked for, and the modules that have it."""

_absent = _gone("anisoflight", {
    "plot_comparison": "anisoflight-table prints what python -m anisoflight.fid calc has measured",
})  # fmt: skip


def __getattr__(name: str) -> _Any:
    if name not in _LATER:
        return _absent(name)
    found = globals()[name] = getattr(_import(f".{_LATER[name]}", __name__), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
