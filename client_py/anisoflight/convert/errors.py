"""What the converter refuses, each with a stable code."""

from __future__ import annotations

from ..errors import BadRequestError


class ConvertError(BadRequestError):
    """A checkpoint that is not converted; nothing of it was executed or written."""


class UnsafePickleError(ConvertError):
    """UNSAFE_PICKLE: the pickle asks for something that no checkpoint needs; the message names it."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "UNSAFE_PICKLE")


class BadCheckpointError(ConvertError):
    """BAD_CHECKPOINT: the file is damaged, cut short, or not a checkpoint."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "BAD_CHECKPOINT")


class UnsupportedNetworkError(ConvertError):
    """UNSUPPORTED_NETWORK: a sound checkpoint of a network that this project does not have."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "UNSUPPORTED_NETWORK")


class BadModelError(ConvertError):
    """BAD_MODEL: the weights do not fit the configuration; the message names the tensor."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "BAD_MODEL")
