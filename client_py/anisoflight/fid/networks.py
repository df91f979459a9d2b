"""Networks in files, run by torch (TorchScript, and the pickle of EDM's Inception network) or by onnxruntime.

A JSON file next to it, FILE.json, declares its input. Every field has a default.

    {"name": "dinov2-vitl14", "size": [224, 224], "range": [0, 1],
     "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225], "layout": "NCHW"}

Without the file the input is uint8 NCHW with three channels, as for EDM's Inception network.
"""

import inspect
import json
import os
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL.Image import Resampling

from ..images import Pixels
from ..wire.pictures import image_of
from .errors import FidError, needs

Array = np.ndarray[Any, Any]
Network = tuple[Callable[[Array], Array], bool, list[Any]]
"""Its output for a batch; whether it takes return_features as NVIDIA's Inception files do; and the axes of its input,
where a non-number may have any length."""


@dataclass(frozen=True)
class Loading:
    """How a network's file is run."""

    device: str = "auto"
    """Of torch and onnxruntime: auto, cpu, cuda, cuda:1."""
    trust: bool = False
    """Whether a pickle, which executes code in it, may be loaded."""


@dataclass(frozen=True)
class Preparation:
    """From uint8 [n, H, W, C] to the network's input,

    x = (low + (high − low) pixel/255 − mean) / std.
    """

    name: str
    size: tuple[int, int] | None = None
    """[height, width] of a resize by Pillow, bicubic with antialiasing; default: none."""
    range: tuple[float, float] | None = None
    """[low, high] of float32 pixels; default: uint8."""
    mean: tuple[float, ...] = (0.0, 0.0, 0.0)
    std: tuple[float, ...] = (1.0, 1.0, 1.0)
    """By channel; for float32 pixels."""
    layout: str = "NCHW"
    """Or NHWC."""
    published: bool = False
    """Whether this is the Inception network of published FIDs."""

    def __call__(self, images: Pixels) -> Array:
        if self.size is not None:
            height, width = self.size
            resized = [np.asarray(image_of(image).resize((width, height), Resampling.BICUBIC)) for image in images]
            images = np.stack(resized).reshape(len(images), height, width, images.shape[3])
        if images.shape[3] == 1:
            images = np.repeat(images, 3, axis=3)
        prepared: Array = images
        if self.range is not None:
            low, high = self.range
            prepared = ((low + (high - low) * (images / 255) - self.mean) / self.std).astype(np.float32)
        return np.ascontiguousarray(prepared.transpose(0, 3, 1, 2) if self.layout == "NCHW" else prepared)


def declared(path: Path) -> Preparation:
    """The preparation in FILE.json, or the default."""
    file = path.with_name(path.name + ".json")
    if not file.exists():
        return Preparation(path.name)
    try:
        fields = json.loads(file.read_text(encoding="utf-8"))
        if fields.get("layout", "NCHW") not in ("NCHW", "NHWC"):
            raise ValueError(f"layout must be NCHW or NHWC, got {fields['layout']!r}")
        if "range" not in fields and ("mean" in fields or "std" in fields):
            raise ValueError("mean and std are of float32 pixels: declare their range, such as [0, 1]")
        prepared = Preparation(**{"name": path.name, **fields})
        prepared(np.zeros((1, 8, 8, 3), np.uint8))  # fails if its fields are not numbers
    except (ValueError, TypeError) as error:
        raise FidError(f"{file}: {error}", "BAD_FEATURES") from error
    return prepared


def load(path: Path, loading: Loading) -> Network:
    """The network of a .pt, .torchscript, .onnx or .pkl file; the last executes code, and needs trust."""
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
    schema = getattr(module.forward, "schema", None)  # of a script module, which has no signature
    parameters = [p.name for p in schema.arguments] if schema else inspect.signature(module.forward).parameters
    more = {"return_features": True} if "return_features" in parameters else {}

    def run(batch: Array) -> Array:
        try:
            with torch.inference_mode():
                return module(torch.from_numpy(batch).to(device), **more).cpu().numpy()
        except RuntimeError as error:
            raise _unfit(path, batch, str(error).splitlines()[-1]) from error

    return run, bool(more), []


def _unfit(path: Path, batch: Array, reason: str) -> FidError:
    sizes = "×".join(map(str, batch.shape))
    return FidError(f"{path.name} fails on {batch.dtype} of {sizes}: {reason}", "BAD_FEATURES")


def _unpickled(path: Path, trust: bool) -> Any:
    if not trust:
        message = f"{path} is a pickle: loading it executes code in it. Use --trust if you trust its source"
        raise FidError(message, "BAD_FEATURES")
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
        (given,) = session.get_inputs()
    except Exception as error:  # its classes are not public
        raise FidError(f"{path} is no ONNX network of images: {str(error).splitlines()[0]}", "BAD_FEATURES") from error

    def run(batch: Array) -> Array:
        try:
            return session.run(None, {given.name: batch})[0]
        except Exception as error:
            raise _unfit(path, batch, f"it takes {given.type} {given.shape}; {str(error).splitlines()[0]}") from error

    return run, False, list(given.shape)
