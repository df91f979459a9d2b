"""Networks in files, run by torch (TorchScript, and the pickle of EDM's Inception network) or by onnxruntime."""

from __future__ import annotations

import inspect
import os
import pickle
from typing import TYPE_CHECKING, Any

from .errors import FidError, needs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import numpy as np

    from .features import Loading

    Array = np.ndarray[Any, Any]
    Network = tuple[Callable[[Array], Array], bool, list[Any]]
    """Its output for a batch, whether it takes return_features as NVIDIA's Inception files do, and the axes of its
    input, of which those that are no numbers may have any length."""


def load(path: Path, loading: Loading) -> Network:
    """The network of a file: .pt, .torchscript, .onnx, or .pkl, which executes code and so has to be trusted."""
    return _onnx(path, loading) if path.suffix == ".onnx" else _torch(path, loading)


def _torch(path: Path, loading: Loading) -> Network:
    try:
        import torch  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise needs("torch", f"running {path.name}") from None
    if path.suffix == ".pkl":
        module = _unpickled(path, loading.trust)
    else:
        try:
            module = torch.jit.load(os.fspath(path), map_location="cpu")
        except (RuntimeError, ValueError) as error:
            raise FidError(f"{path} is no TorchScript file: {str(error).splitlines()[0]}", "BAD_FEATURES") from error
    name = ("cuda" if torch.cuda.is_available() else "cpu") if loading.device == "auto" else loading.device
    device = torch.device(name)
    module = module.to(device).eval()
    inception = "return_features" in _parameters(module)

    def run(batch: Array) -> Array:
        try:
            with torch.inference_mode():
                found = module(torch.from_numpy(batch).to(device), **({"return_features": True} if inception else {}))
        except RuntimeError as error:
            said = f"{path.name} fails on {batch.dtype} of {'×'.join(map(str, batch.shape))}"
            raise FidError(f"{said}: {str(error).splitlines()[-1]}", "BAD_FEATURES") from error
        return found.cpu().numpy()

    return run, inception, []


def _unpickled(path: Path, trust: bool) -> Any:
    if not trust:
        raise FidError(
            f"{path} is a pickle: loading it executes code that it holds. Say --trust if you know where it is from",
            "BAD_FEATURES",
        )
    try:
        return pickle.loads(path.read_bytes())
    except ModuleNotFoundError as error:
        raise FidError(
            f"{path} needs the Python module {error.name}. Pickles of NVIDIA's need torch_utils and dnnlib of the "
            "repository that they come with: put a checkout of it on PYTHONPATH",
            "NEEDS_PACKAGE",
        ) from error
    except (pickle.UnpicklingError, EOFError) as error:
        raise FidError(f"{path} is no whole pickle: {error}", "BAD_FEATURES") from error


def _parameters(module: Any) -> list[str]:
    """Names of forward's parameters; a script module's are in its schema."""
    schema = getattr(module.forward, "schema", None)
    if schema is not None:
        return [argument.name for argument in schema.arguments]
    return list(inspect.signature(module.forward).parameters)


def _onnx(path: Path, loading: Loading) -> Network:
    try:
        import onnxruntime  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise needs("onnxruntime", f"running {path.name}") from None
    offered, cuda = onnxruntime.get_available_providers(), "CUDAExecutionProvider"
    if loading.device.startswith("cuda") and cuda not in offered:
        raise FidError(f"onnxruntime offers no CUDA here, only {', '.join(offered)}", "BAD_FEATURES")
    wanted = [cuda] if loading.device != "cpu" and cuda in offered else []
    try:
        session = onnxruntime.InferenceSession(os.fspath(path), providers=[*wanted, "CPUExecutionProvider"])
    except Exception as error:  # its classes are not public
        raise FidError(f"{path} is no ONNX network: {str(error).splitlines()[0]}", "BAD_FEATURES") from error
    if len(session.get_inputs()) != 1:
        names = ", ".join(given.name for given in session.get_inputs())
        raise FidError(f"{path} has the inputs {names}; one that takes images is wanted", "BAD_FEATURES")
    (given,) = session.get_inputs()

    def run(batch: Array) -> Array:
        try:
            return session.run(None, {given.name: batch})[0]
        except Exception as error:
            sizes, wanted = "×".join(map(str, batch.shape)), "×".join(map(str, given.shape))
            said = f"{path.name} takes {given.type} {wanted} and was given {batch.dtype} {sizes}"
            raise FidError(f"{said}: {str(error).splitlines()[0]}", "BAD_FEATURES") from error

    return run, False, list(given.shape)
