"""The server's errors as Python exceptions.

Every error has a stable code in brackets, ``[MODEL_NOT_FOUND] no model named "x". hint``. Arrow Flight maps several
gRPC codes to one Python class and drops details, so the code in brackets decides the class. Each class is also the
builtin that Python users expect::

    try:
        client.sample("no-such-model", n=4)
    except KeyError as error:          # an anisoflight.NotFoundError
        print(error.code)              # MODEL_NOT_FOUND
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

_CLASSES: dict[str, type[AnisoflightError]] = {}


class AnisoflightError(Exception):
    """Base class: ``code`` is stable, ``message`` is for people."""

    _default = "INTERNAL"

    def __init_subclass__(cls, codes: tuple[str, ...] = ()) -> None:
        """The codes that mean this class; the first is its default."""
        _CLASSES.update(dict.fromkeys(codes, cls))
        cls._default = next(iter(codes), cls._default)

    def __init__(self, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self._default

    def __str__(self) -> str:  # KeyError would print the repr
        return f"[{self.code}] {self.message}"

    def __reduce__(self) -> tuple[type[AnisoflightError], tuple[str, str]]:
        return type(self), (self.message, self.code)


class AnisoflightWarning(UserWarning):
    """A setting that the server or this package has replaced, or one that gives poor results."""


_MISSING = tuple(f"{kind}_NOT_FOUND" for kind in ("MODEL", "SCHEDULE", "PLAN", "BASIS", "DATASET", "RUN", "OP", "PATH"))


class NotFoundError(AnisoflightError, KeyError, codes=(*_MISSING, "UNIMPLEMENTED")):
    """No model, schedule, plan, basis, dataset, run or operation of that name."""


class BadRequestError(AnisoflightError, ValueError, codes=("BAD_REQUEST", "BAD_TENSOR", "BAD_SCHEDULE", "BAD_MODEL")):
    """The request, a tensor, a schedule or a model folder is not acceptable."""


def bad_tensor(message: str) -> BadRequestError:
    return BadRequestError(message, "BAD_TENSOR")


def bad_schedule(message: str) -> BadRequestError:
    return BadRequestError(message, "BAD_SCHEDULE")


def bad_model(message: str) -> BadRequestError:
    return BadRequestError(message, "BAD_MODEL")


class NotFiniteError(BadRequestError, codes=("NOT_FINITE",)):
    """A network's answers, or the loss of the run to be saved, are NaN or infinite."""


class TooLargeError(BadRequestError, codes=("TOO_LARGE",)):
    """The reply would exceed the server's bound on output bytes."""


class NameTakenError(AnisoflightError, ValueError, codes=("NAME_TAKEN",)):
    """The name is in use; ``replace=True`` replaces it."""


class RunNotRunnableError(AnisoflightError, RuntimeError, codes=("RUN_NOT_RUNNABLE",)):
    """The run is training in the background, done or cancelled."""


class BusyError(AnisoflightError, RuntimeError, codes=("BUSY",)):
    """The server is at its limit of work; try again later."""


class StorageError(AnisoflightError, OSError, codes=("STORAGE",)):
    """The server's disk is full or fails; the message says what is kept."""


class UnavailableError(AnisoflightError, ConnectionError, codes=("UNAVAILABLE", "DRAINING")):
    """The server cannot be reached, or is shutting down."""


class AccessError(AnisoflightError, PermissionError, codes=("NO_TOKEN", "SCOPE")):
    """The token is missing, unknown, or does not cover the operation."""


class DeadlineError(AnisoflightError, TimeoutError, codes=("DEADLINE_EXCEEDED",)):
    """The call took longer than its timeout."""


class CancelledError(AnisoflightError, codes=("CANCELLED",)):
    """The call was cancelled."""


class DamagedError(AnisoflightError, OSError, codes=("DAMAGED",)):
    """A file on the server's disk has changed since it was written; the message names it."""


class InternalError(AnisoflightError, RuntimeError, codes=("INTERNAL",)):
    """A defect of the server; look for the request id of the message in its log."""


class ForkedError(AnisoflightError, RuntimeError, codes=("FORKED",)):
    """This process is a fork of one with a client, and has none of its connections."""


class ServerStartError(AnisoflightError, RuntimeError, codes=("SERVER_START",)):
    """``serve`` could not start a server; the message ends with the server's own log."""


_CODED = re.compile(r"\[([A-Z][A-Z_]+)\] (.*)", re.DOTALL)
_REFUSED = re.compile(r"(?:ipv[46]:)?(\S+): Failed to connect to remote host: ([\w ]+)")
# What the C++ client appends to the server's own sentence.
_TAIL = re.compile(r"\.? (?:gRPC client debug context|Client context|Detail): .*", re.DOTALL)


def from_arrow(error: BaseException) -> AnisoflightError:
    """The exception for a failure that pyarrow reports, by its code in brackets if it has one."""
    import pyarrow as pa  # loaded already, as the error is one of its own
    import pyarrow.flight as fl

    text = str(error.args[0]) if error.args else str(error)  # str() of a KeyError is a repr
    match = _CODED.search(text)
    if match and match[1] in _CLASSES:
        return _CLASSES[match[1]](_TAIL.sub("", match[2]).strip(), match[1])
    if isinstance(error, fl.FlightUnavailableError) and (refused := _REFUSED.search(text)):
        return UnavailableError(
            f"no server answers at {refused[1]} ({refused[2].lower()}); start one with anisoflight serve, "
            f"or connect to another location{_proxy_hint()}"
        )
    if "message larger than max" in text or "decompression larger than max" in text:  # gRPC's own words
        return TooLargeError("a message exceeds the limit of the server; send smaller batches")
    if text == "FlightClient is closed":
        return UnavailableError("this client is closed; connect again")
    kinds: dict[type[BaseException], str] = {
        fl.FlightTimedOutError: "DEADLINE_EXCEEDED", fl.FlightCancelledError: "CANCELLED",
        pa.ArrowCancelled: "CANCELLED", fl.FlightUnavailableError: "UNAVAILABLE",
        fl.FlightUnauthenticatedError: "NO_TOKEN", fl.FlightUnauthorizedError: "SCOPE",
    }  # fmt: skip
    for kind, code in kinds.items():  # failures of the connection have no code: pyarrow's class decides
        if isinstance(error, kind):
            hint = _proxy_hint() if code == "UNAVAILABLE" else ""
            return _CLASSES[code](_TAIL.sub("", text).strip() + hint, code)
    return InternalError(text)


def _proxy_hint() -> str:
    """A hint if gRPC reaches other machines through a proxy; else empty."""
    name = next((name for name in ("grpc_proxy", "https_proxy", "http_proxy") if os.environ.get(name)), None)
    return f"; {name} is set: if the proxy does not lead to the server, name its host in no_proxy" if name else ""


def warn(notes: Iterable[str]) -> None:
    """Warn of each note at the line of the user's program that called; Python shows one of the same line once."""
    level, frame = 1, sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == __package__:
        level, frame = level + 1, frame.f_back
    for note in notes:
        with contextlib.suppress(ValueError):  # stderr is closed
            warnings.warn(note, AnisoflightWarning, stacklevel=level)


class _StandardError:
    """sys.stderr, which may be missing, closed, full or a pipe that nobody reads: then nothing is written."""

    def write(self, text: str) -> None:
        self._try("write", text)

    def flush(self) -> None:
        self._try("flush")

    def isatty(self) -> bool:
        return bool(self._try("isatty"))

    def _try(self, method: str, *args: Any) -> Any:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            return getattr(sys.stderr, method)(*args)

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr, name)


stderr: Any = _StandardError()


def say(text: object) -> None:
    """Write a line to stderr."""
    stderr.write(f"{text}\n")
    stderr.flush()


def gone(owner: str, instead: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module, or of a class without self, that says what replaces a name."""

    def attribute(name: str) -> Any:
        if name in instead:
            raise BadRequestError(f"{owner}.{name} is gone since 0.1: {instead[name]}")
        raise AttributeError(f"{owner} has no attribute {name!r}")

    return attribute
