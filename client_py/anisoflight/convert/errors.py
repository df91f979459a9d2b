"""The errors of the converter, each with a stable code."""

from ..errors import BadRequestError


class ConvertError(BadRequestError):
    """A checkpoint that cannot be converted; nothing of it was executed or written."""


class UnsafePickleError(ConvertError):
    """UNSAFE_PICKLE: the pickle names something that no checkpoint needs."""

    _default = "UNSAFE_PICKLE"


class BadCheckpointError(ConvertError):
    """BAD_CHECKPOINT: the file is damaged, cut short, or not a checkpoint."""

    _default = "BAD_CHECKPOINT"


class UnsupportedNetworkError(ConvertError):
    """UNSUPPORTED_NETWORK: a valid checkpoint of an unknown network."""

    _default = "UNSUPPORTED_NETWORK"


class BadModelError(ConvertError):
    """BAD_MODEL: the weights do not fit the configuration; the message names the tensor."""

    _default = "BAD_MODEL"
