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

import re

import pyarrow as pa
import pyarrow.flight as fl


class AnisoflightError(Exception):
    """Base class: ``code`` is stable, ``message`` is the sentence (and hint) for people."""

    code: str
    message: str

    def __init__(self, message: str, code: str = "INTERNAL") -> None:
        super().__init__(message)
        self.message = message
        self.code = code

    def __str__(self) -> str:  # KeyError would print the repr
        return f"[{self.code}] {self.message}"

    def __reduce__(self) -> tuple[type[AnisoflightError], tuple[str, str]]:
        return type(self), (self.message, self.code)


class AnisoflightWarning(UserWarning):
    """What a server or this package takes in place of what was asked for, and what gives poor results."""


class NotFoundError(AnisoflightError, KeyError):
    """No model, schedule, basis, dataset, run or operation of that name."""


class BadRequestError(AnisoflightError, ValueError):
    """The request, a tensor, a schedule or a model folder is not acceptable."""


class TooLargeError(BadRequestError):
    """The reply would exceed the server's bound on output bytes."""


class NameTakenError(AnisoflightError, ValueError):
    """The name is in use; pass ``replace=True`` where that is meant."""


class RunNotRunnableError(AnisoflightError, RuntimeError):
    """The run is busy in the background, done or cancelled."""


class BusyError(AnisoflightError, RuntimeError):
    """The server has as much work as it admits; try again later."""


class StorageError(AnisoflightError, OSError):
    """The server's disk is full, or fails; the message says what is kept."""


class UnavailableError(AnisoflightError, ConnectionError):
    """The server cannot be reached, or is shutting down."""


class AccessError(AnisoflightError, PermissionError):
    """The token is missing, unknown, or does not cover the operation."""


class DeadlineError(AnisoflightError, TimeoutError):
    """The call took longer than the timeout it was given."""


class CancelledError(AnisoflightError):
    """The call was cancelled."""


class DamagedError(AnisoflightError, OSError):
    """A file on the server's disk is not what was written; the message names it."""


class InternalError(AnisoflightError, RuntimeError):
    """A defect of the server; the message holds the request id to look for in its log."""


class ServerStartError(AnisoflightError, RuntimeError):
    """``serve`` could not start a server; the message ends with the server's own log."""


_CLASSES: dict[str, type[AnisoflightError]] = {
    "MODEL_NOT_FOUND": NotFoundError,
    "SCHEDULE_NOT_FOUND": NotFoundError,
    "BASIS_NOT_FOUND": NotFoundError,
    "DATASET_NOT_FOUND": NotFoundError,
    "RUN_NOT_FOUND": NotFoundError,
    "OP_NOT_FOUND": NotFoundError,
    "PATH_NOT_FOUND": NotFoundError,
    "UNIMPLEMENTED": NotFoundError,
    "BAD_REQUEST": BadRequestError,
    "BAD_TENSOR": BadRequestError,
    "BAD_SCHEDULE": BadRequestError,
    "BAD_MODEL": BadRequestError,
    "NAME_TAKEN": NameTakenError,
    "RUN_NOT_RUNNABLE": RunNotRunnableError,
    "TOO_LARGE": TooLargeError,
    "BUSY": BusyError,
    "STORAGE": StorageError,
    "DRAINING": UnavailableError,
    "NO_TOKEN": AccessError,
    "SCOPE": AccessError,
    "CANCELLED": CancelledError,
    "DEADLINE_EXCEEDED": DeadlineError,
    "DAMAGED": DamagedError,
    "INTERNAL": InternalError,
}

# Failures without a bracketed code: the connection's own, told apart by the class that pyarrow raises.
_UNCODED: tuple[tuple[type[BaseException], type[AnisoflightError], str], ...] = (
    (fl.FlightTimedOutError, DeadlineError, "DEADLINE_EXCEEDED"),
    (fl.FlightCancelledError, CancelledError, "CANCELLED"),
    (pa.ArrowCancelled, CancelledError, "CANCELLED"),
    (fl.FlightUnavailableError, UnavailableError, "UNAVAILABLE"),
    (fl.FlightUnauthenticatedError, AccessError, "NO_TOKEN"),
    (fl.FlightUnauthorizedError, AccessError, "SCOPE"),
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
            "or give connect another location",
            "UNAVAILABLE",
        )
    if "message larger than max" in text or "decompression larger than max" in text:  # gRPC's own words
        return TooLargeError("a message is larger than the server takes; send smaller batches", "TOO_LARGE")
    if text == "FlightClient is closed":
        return UnavailableError("this client is closed; connect once more", "UNAVAILABLE")
    for kind, target, code in _UNCODED:
        if isinstance(error, kind):
            return target(_TAIL.sub("", text).strip(), code)
    return InternalError(text, "INTERNAL")
