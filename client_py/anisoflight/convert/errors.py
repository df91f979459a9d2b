"""What the converter refuses, each with a stable code."""

from typing import ClassVar

from ..errors import BadRequestError


class ConvertError(BadRequestError):
    """A checkpoint that is not converted; nothing of it was executed or written."""

    fixed_code: ClassVar[str]

    def __init__(self, message: str) -> None:
        super().__init__(message, self.fixed_code)


class UnsafePickleError(ConvertError):
    """UNSAFE_PICKLE: the pickle asks for something that no checkpoint needs; the message names it."""

    fixed_code = "UNSAFE_PICKLE"


class BadCheckpointError(ConvertError):
    """BAD_CHECKPOINT: the file is damaged, cut short, or not a checkpoint."""

    fixed_code = "BAD_CHECKPOINT"


class UnsupportedNetworkError(ConvertError):
    """UNSUPPORTED_NETWORK: a sound checkpoint of a network that this project does not have."""

    fixed_code = "UNSUPPORTED_NETWORK"


class BadModelError(ConvertError):
    """BAD_MODEL: the weights do not fit the configuration; the message names the tensor."""

    fixed_code = "BAD_MODEL"
