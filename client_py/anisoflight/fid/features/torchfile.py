"""Networks that torch runs: TorchScript files, and the pickle of EDM's Inception network."""

from __future__ import annotations

import inspect
import os
import pickle
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import FidError, needs
from .preparation import declared

if TYPE_CHECKING:
    from pathlib import Path

    from ...images import Pixels
    from ...moments import Matrix
    from . import Loading
    from .preparation import Preparation

INCEPTION_DIMENSION = 2048


@dataclass(frozen=True)
class TorchFeatures:
    """A torch module's output as features.

    A module that takes ``return_features``, as NVIDIA's Inception files of 2015-12-05 do, is asked for them.
    """

    module: Any
    preparation: Preparation
    hash: str
    device: Any
    library: Any
    arguments: dict[str, Any]

    @property
    def name(self) -> str:
        return self.preparation.name

    @cached_property
    def dimension(self) -> int:
        """Found by a black image of 64×64 pixels."""
        return self(np.zeros((1, 64, 64, 3), np.uint8)).shape[1]

    @property
    def published(self) -> bool:
        inception = bool(self.arguments) and self.dimension == INCEPTION_DIMENSION
        return inception or self.preparation.published

    def arrays(self) -> dict[str, Any]:
        return {}

    def __call__(self, images: Pixels) -> Matrix:
        batch = self.library.from_numpy(self.preparation(images)).to(self.device)
        try:
            with self.library.inference_mode():
                found = self.module(batch, **self.arguments)
        except RuntimeError as error:
            sizes = "×".join(map(str, batch.shape))
            said = f"{self.name} fails on {batch.dtype} of {sizes}"
            raise FidError(f"{said}: {str(error).splitlines()[-1]}", "BAD_FEATURES") from error
        return feature_rows(found.cpu().numpy(), self.name)


def feature_rows(found: np.ndarray[Any, Any], name: str) -> Matrix:
    """A network's output [n, d] (or [n, d, 1, 1]) as float64 rows."""
    rows = np.asarray(found, np.float64)
    if rows.ndim > 2 and rows[0].size == rows.shape[1]:
        rows = rows.reshape(len(rows), -1)
    if rows.ndim != 2:
        raise FidError(f"{name} gives {rows.shape}; features are one row per image, [n, d]", "BAD_FEATURES")
    return rows


def load_torch(path: Path, digest: str, loading: Loading) -> TorchFeatures:
    """Load a TorchScript file (.pt, .torchscript), or a pickle (.pkl), which executes code and so has to be trusted."""
    try:
        import torch  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise needs("torch", f"running {path.name}") from None
    pickled = path.suffix == ".pkl"
    if pickled and not loading.trust:
        raise FidError(
            f"{path} is a pickle: loading it executes code that it holds. Say --trust if you know where it is from",
            "BAD_FEATURES",
        )
    name = ("cuda" if torch.cuda.is_available() else "cpu") if loading.device == "auto" else loading.device
    device = torch.device(name)
    module = (_unpickled(path) if pickled else _scripted(path, torch)).to(device).eval()
    arguments = {"return_features": True} if "return_features" in _parameters(module) else {}
    return TorchFeatures(module, declared(path), digest, device, torch, arguments)


def _scripted(path: Path, torch: Any) -> Any:
    try:
        return torch.jit.load(os.fspath(path), map_location="cpu")
    except (RuntimeError, ValueError) as error:
        raise FidError(f"{path} is no TorchScript file: {str(error).splitlines()[0]}", "BAD_FEATURES") from error


def _unpickled(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            return pickle.load(file)
    except ModuleNotFoundError as error:
        raise FidError(
            f"{path} needs the Python module {error.name}. Pickles of NVIDIA's need torch_utils and dnnlib of the "
            "repository that they come with: put a checkout of it on PYTHONPATH",
            "NEEDS_PACKAGE",
        ) from error
    except (pickle.UnpicklingError, EOFError) as error:
        raise FidError(f"{path} is no whole pickle: {error}", "BAD_FEATURES") from error


def _parameters(module: Any) -> list[str]:
    """Names of forward's parameters; a script module's stand in its schema."""
    schema = getattr(module.forward, "schema", None)
    if schema is not None:
        return [argument.name for argument in schema.arguments]
    return list(inspect.signature(module.forward).parameters)
