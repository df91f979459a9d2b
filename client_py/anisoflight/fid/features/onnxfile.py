"""Networks that onnxruntime runs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import FidError, needs
from .preparation import declared
from .torchfile import feature_rows

if TYPE_CHECKING:
    from pathlib import Path

    from ...images import Pixels
    from ...moments import Matrix
    from . import Loading
    from .preparation import Preparation


@dataclass(frozen=True)
class OnnxFeatures:
    """The first output of an ONNX network with one input."""

    session: Any
    preparation: Preparation
    hash: str

    @property
    def name(self) -> str:
        return self.preparation.name

    @property
    def published(self) -> bool:
        return self.preparation.published

    @cached_property
    def dimension(self) -> int:
        """Found by a black image, of 64×64 pixels where the network does not fix the size."""
        axes = self.session.get_inputs()[0].shape
        sides = axes[2:] if self.preparation.layout == "NCHW" else axes[1:3]
        height, width = (side if isinstance(side, int) else 64 for side in sides)
        return self(np.zeros((1, height, width, 3), np.uint8)).shape[1]

    def arrays(self) -> dict[str, Any]:
        return {}

    def __call__(self, images: Pixels) -> Matrix:
        (given,) = self.session.get_inputs()
        batch = self.preparation(images)
        try:
            found = self.session.run(None, {given.name: batch})
        except Exception as error:  # its classes are not public
            sizes, wanted = "×".join(map(str, batch.shape)), "×".join(map(str, given.shape))
            said = f"{self.name} takes {given.type} {wanted} and was given {batch.dtype} {sizes}"
            raise FidError(f"{said}: {str(error).splitlines()[0]}", "BAD_FEATURES") from error
        return feature_rows(found[0], self.name)


def load_onnx(path: Path, digest: str, loading: Loading) -> OnnxFeatures:
    """Load an .onnx file."""
    try:
        import onnxruntime  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise needs("onnxruntime", f"running {path.name}") from None
    offered = onnxruntime.get_available_providers()
    cuda = "CUDAExecutionProvider"
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
    return OnnxFeatures(session, declared(path), digest)
