"""The errors of the converter, each with a stable code."""

from typing import ClassVar

from ..errors import BadRequestError


class ConvertError(BadRequestError):
    """A checkpoint that cannot be converted; nothing of it was executed or written."""

    fixed_code: ClassVar[str]

    def __init__(self, message: str) -> None:
        super().__init__(message, self.fixed_code)


class UnsafePickleError(ConvertError):
    """UNSAFE_PICKLE: the pickle names something that no checkpoint needs."""

    fixed_code = "UNSAFE_PICKLE"


class BadCheckpointError(ConvertError):
    """BAD_CHECKPOINT: the file is damaged, cut short, or not a checkpoint."""

    fixed_code = "BAD_CHECKPOINT"


class UnsupportedNetworkError(ConvertError):
    """UNSUPPORTED_NETWORK: a valid checkpoint of an unknown network."""

    fixed_code = "UNSUPPORTED_NETWORK"


class BadModelError(ConvertError):
    """BAD_MODEL: the weights do not fit the configuration; the message names the tensor."""

    fixed_code = "BAD_MODEL"
