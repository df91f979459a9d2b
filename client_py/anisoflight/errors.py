"""The server's errors as Python exceptions.

Every failure of the service carries a stable code in brackets, ``[MODEL_NOT_FOUND] no model named "x". hint``.
Arrow Flight turns several gRPC codes into one Python class and drops their details, so the bracketed code is what
decides here. Each class below is also the builtin that Python users expect::

    try:
        client.sample("no-such-model", n=4)
    except KeyError as error:          # an anisoflight.NotFoundError
        print(error.code)              # MODEL_NOT_FOUND
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.flight as fl

_CLASSES: dict[str, type[AnisoflightError]] = {}


class AnisoflightError(Exception):
    """Base class: ``code`` is stable, ``message`` is the sentence (and hint) for people."""

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
    """What a server or this package takes in place of what was asked for, and what gives poor results."""


_MISSING = tuple(f"{kind}_NOT_FOUND" for kind in ("MODEL", "SCHEDULE", "BASIS", "DATASET", "RUN", "OP", "PATH"))


class NotFoundError(AnisoflightError, KeyError, codes=(*_MISSING, "UNIMPLEMENTED")):
    """No model, schedule, basis, dataset, run or operation of that name."""


class BadRequestError(AnisoflightError, ValueError, codes=("BAD_REQUEST", "BAD_TENSOR", "BAD_SCHEDULE", "BAD_MODEL")):
    """The request, a tensor, a schedule or a model folder is not acceptable."""


class TooLargeError(BadRequestError, codes=("TOO_LARGE",)):
    """The reply would exceed the server's bound on output bytes."""


class NameTakenError(AnisoflightError, ValueError, codes=("NAME_TAKEN",)):
    """The name is in use; pass ``replace=True`` where that is meant."""


class RunNotRunnableError(AnisoflightError, RuntimeError, codes=("RUN_NOT_RUNNABLE",)):
    """The run is busy in the background, done or cancelled."""


class BusyError(AnisoflightError, RuntimeError, codes=("BUSY",)):
    """The server has as much work as it admits; try again later."""


class StorageError(AnisoflightError, OSError, codes=("STORAGE",)):
    """The server's disk is full, or fails; the message says what is kept."""


class UnavailableError(AnisoflightError, ConnectionError, codes=("UNAVAILABLE", "DRAINING")):
    """The server cannot be reached, or is shutting down."""


class AccessError(AnisoflightError, PermissionError, codes=("NO_TOKEN", "SCOPE")):
    """The token is missing, unknown, or does not cover the operation."""


class DeadlineError(AnisoflightError, TimeoutError, codes=("DEADLINE_EXCEEDED",)):
    """The call took longer than the timeout it was given."""


class CancelledError(AnisoflightError, codes=("CANCELLED",)):
    """The call was cancelled."""


class DamagedError(AnisoflightError, OSError, codes=("DAMAGED",)):
    """A file on the server's disk is not what was written; the message names it."""


class InternalError(AnisoflightError, RuntimeError, codes=("INTERNAL",)):
    """A defect of the server; the message holds the request id to look for in its log."""


class ForkedError(AnisoflightError, RuntimeError, codes=("FORKED",)):
    """This process was forked from one with a client, whose connections end there."""


class ServerStartError(AnisoflightError, RuntimeError, codes=("SERVER_START",)):
    """``serve`` could not start a server; the message ends with the server's own log."""


# Failures without a bracketed code: the connection's own, told apart by the class that pyarrow raises.
_UNCODED: tuple[tuple[type[BaseException], str], ...] = (
    (fl.FlightTimedOutError, "DEADLINE_EXCEEDED"),
    (fl.FlightCancelledError, "CANCELLED"),
    (pa.ArrowCancelled, "CANCELLED"),
    (fl.FlightUnavailableError, "UNAVAILABLE"),
    (fl.FlightUnauthenticatedError, "NO_TOKEN"),
    (fl.FlightUnauthorizedError, "SCOPE"),
)

_CODED = re.compile(r"\[([A-Z][A-Z_]+)\] (.*)", re.DOTALL)
_REFUSED = re.compile(r"(?:ipv[46]:)?(\S+): Failed to connect to remote host: ([\w ]+)")
# What the C++ client appends to the server's own sentence.
_TAIL = re.compile(r"\.? (?:gRPC client debug context|Client context|Detail): .*", re.DOTALL)


def from_arrow(error: BaseException) -> AnisoflightError:
    """The exception for a failure reported by pyarrow, by its bracketed code where it has one."""
    text = str(error.args[0]) if error.args else str(error)  # str() of a KeyError is a repr
    match = _CODED.search(text)
    if match and match[1] in _CLASSES:
        return _CLASSES[match[1]](_TAIL.sub("", match[2]).strip(), match[1])
    if isinstance(error, fl.FlightUnavailableError) and (refused := _REFUSED.search(text)):
        return UnavailableError(
            f"no server answers at {refused[1]} ({refused[2].lower()}); start one with anisoflight serve, "
            f"or give connect another location{_proxy_hint()}"
        )
    if "message larger than max" in text or "decompression larger than max" in text:  # gRPC's own words
        return TooLargeError("a message is larger than the server takes; send smaller batches")
    if text == "FlightClient is closed":
        return UnavailableError("this client is closed; connect once more")
    for kind, code in _UNCODED:
        if isinstance(error, kind):
            hint = _proxy_hint() if code == "UNAVAILABLE" else ""
            return _CLASSES[code](_TAIL.sub("", text).strip() + hint, code)
    return InternalError(text)


def _proxy_hint() -> str:
    """What to try where gRPC goes through a proxy to servers on other machines; empty where it does not."""
    name = next((name for name in ("grpc_proxy", "https_proxy", "http_proxy") if os.environ.get(name)), None)
    return f"; {name} is set: if the proxy does not lead to the server, name its host in no_proxy" if name else ""


def warn(notes: Iterable[str]) -> None:
    """Warn of each note at the line of the user's program that asked; Python shows one of the same line once."""
    level, frame = 1, sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == __package__:
        level, frame = level + 1, frame.f_back
    for note in notes:
        warnings.warn(note, AnisoflightWarning, stacklevel=level)
