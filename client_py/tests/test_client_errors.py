"""Codes, builtin classes and messages of the package's errors."""

import pickle

import pyarrow as pa
import pyarrow.flight as fl
import pytest

from anisoflight import errors

TAIL = ". gRPC client debug context: UNKNOWN:Error received from peer. Client context: OK"


@pytest.mark.parametrize(
    ("code", "builtin"),
    [
        ("MODEL_NOT_FOUND", KeyError),
        ("OP_NOT_FOUND", KeyError),
        ("BAD_REQUEST", ValueError),
        ("TOO_LARGE", ValueError),
        ("NAME_TAKEN", ValueError),
        ("RUN_NOT_RUNNABLE", RuntimeError),
        ("BUSY", RuntimeError),
        ("INTERNAL", RuntimeError),
        ("DAMAGED", OSError),
        ("DRAINING", ConnectionError),
        ("NO_TOKEN", PermissionError),
        ("SCOPE", PermissionError),
        ("CANCELLED", errors.AnisoflightError),
        ("DEADLINE_EXCEEDED", TimeoutError),
    ],
)
def test_code_decides_the_class(code: str, builtin: type[Exception]) -> None:
    error = errors.from_arrow(pa.ArrowInvalid(f"Flight returned an error, with message: [{code}] What. Do this{TAIL}"))
    assert isinstance(error, errors.AnisoflightError)
    assert isinstance(error, builtin)
    assert (error.code, error.message) == (code, "What. Do this")
    assert str(error) == f"[{code}] What. Do this"


@pytest.mark.parametrize(
    ("raised", "builtin", "code"),
    [
        (fl.FlightTimedOutError("deadline"), TimeoutError, "DEADLINE_EXCEEDED"),
        (fl.FlightUnavailableError("refused"), ConnectionError, "UNAVAILABLE"),
        (fl.FlightUnauthenticatedError("who"), PermissionError, "NO_TOKEN"),
        (fl.FlightUnauthorizedError("no"), PermissionError, "SCOPE"),
        (fl.FlightCancelledError("gone"), errors.CancelledError, "CANCELLED"),
        (fl.FlightInternalError("broken"), RuntimeError, "INTERNAL"),
    ],
)
def test_failures_without_a_code(raised: Exception, builtin: type[Exception], code: str) -> None:
    error = errors.from_arrow(raised)
    assert isinstance(error, builtin)
    assert error.code == code


def test_a_keyerror_is_read_without_its_quotes() -> None:
    error = errors.from_arrow(pa.ArrowKeyError("[RUN_NOT_FOUND] There is no run named it's"))
    assert error.message == "There is no run named it's"


def test_brackets_in_a_sentence_are_not_codes() -> None:
    error = errors.from_arrow(pa.ArrowInvalid("[NEW_CODE] something later servers say"))
    assert error.code == "INTERNAL"
    assert "later servers" in str(error)


def test_errors_survive_pickling() -> None:
    error = pickle.loads(pickle.dumps(errors.NotFoundError("no", "MODEL_NOT_FOUND")))
    assert (type(error), error.code, error.message) == (errors.NotFoundError, "MODEL_NOT_FOUND", "no")
