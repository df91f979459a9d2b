"""Arrays of numpy and tensors of torch, handled by the same code."""

import contextlib
from typing import Any

import numpy as np

from ..errors import BadRequestError, bad_tensor

Array = np.ndarray[Any, Any]


def floating(values: Any) -> Any:
    """A tensor as it is, else an array of floats."""
    if hasattr(values, "new_tensor"):
        return values
    array = np.asarray(values)
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def working(values: Any) -> Any:
    """`floating` with at least single precision."""
    array = floating(values)
    if array.dtype.itemsize >= 4:
        return array
    return array.float() if hasattr(array, "new_tensor") else array.astype(np.float32)


def whole(labels: Any, name: str = "labels") -> list[int]:
    """Labels as a list of whole numbers, which floats may be; else BadRequestError."""
    values = np.asarray(getattr(labels, "tolist", lambda: labels)()).reshape(-1)
    if values.size and (values.dtype.kind not in "iuf" or (values % 1 != 0).any()):
        raise BadRequestError(f"{name} must be whole numbers, got {str(values.tolist())[:60]}")
    return values.astype(np.int64).tolist()


def cast(array: Any, other: Any) -> Any:
    """An array in the dtype of another, which must be of its kind: a tensor or an array."""
    if hasattr(array, "new_tensor") != hasattr(other, "new_tensor"):
        got, wanted = type(array).__name__, type(other).__name__
        raise bad_tensor(f"images must be a {wanted} as the noise is, got a {got}")
    return array.to(other.dtype) if hasattr(array, "new_tensor") else array.astype(other.dtype, copy=False)


def normal(images: Any, generator: Any) -> Any:
    """Unit normal noise like images."""
    if callable(generator):
        return generator(images)
    if generator is not None and hasattr(images, "new_tensor") != hasattr(generator, "initial_seed"):
        kind = "torch" if hasattr(images, "new_tensor") else "numpy"
        raise BadRequestError(f"generator must be one of {kind}, as the noise is, got {type(generator).__name__}")
    if hasattr(images, "new_tensor"):
        import torch  # pyright: ignore[reportMissingImports]

        at = {"device": images.device if generator is None else generator.device, "dtype": images.dtype}
        return torch.randn(images.shape, generator=generator, **at).to(images.device)
    return (generator or np.random.default_rng()).standard_normal(images.shape).astype(images.dtype)


def without_gradients(images: Any) -> contextlib.AbstractContextManager[Any]:
    if not hasattr(images, "new_tensor"):
        return contextlib.nullcontext()
    import torch  # pyright: ignore[reportMissingImports]

    return torch.no_grad()


def exactly(images: Any) -> contextlib.AbstractContextManager[Any]:
    """Without torch.autocast, which would shorten the numbers of matrix products."""
    if not hasattr(images, "new_tensor"):
        return contextlib.nullcontext()
    import torch  # pyright: ignore[reportMissingImports]

    kind = images.device.type
    return torch.autocast(kind, enabled=False) if torch.amp.is_autocast_available(kind) else contextlib.nullcontext()


def copied(array: Any) -> Any:
    """A copy of an array or a tensor."""
    return array.clone() if hasattr(array, "new_tensor") else array.copy()


def like(constant: Array, x: Any) -> Any:
    """A constant as an array of the kind and device of x and, unless it holds integers, of its dtype."""
    whole = constant.dtype.kind == "i"
    if not hasattr(x, "new_tensor"):
        return constant if whole else np.asarray(constant, x.dtype)
    import torch  # pyright: ignore[reportMissingImports]

    with torch.inference_mode(False):  # it is cached, and may be used with gradients
        return x.new_tensor(constant, dtype=torch.int64 if whole else x.dtype)


class Constants:
    """Arrays that are converted once for each kind, dtype and device of images."""

    def __init__(self, *arrays: Array) -> None:
        self._arrays = arrays
        self._cached: dict[Any, list[Any]] = {}

    def like(self, x: Any) -> list[Any]:
        key = x.dtype, getattr(x, "device", None)
        if key not in self._cached:
            self._cached[key] = [like(array, x) for array in self._arrays]
        return self._cached[key]
