"""What every feature extractor is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ...images import Pixels
    from ...moments import Matrix


class Features(Protocol):
    """Images to features, with a name and a hash to tell what was measured."""

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    @property
    def hash(self) -> str:
        """SHA-256 of all that its features depend on beside the image."""
        ...

    @property
    def dimension(self) -> int:
        """Features per image."""
        ...

    @property
    def published(self) -> bool:
        """Whether a Fréchet distance on them is an FID, comparable with published ones."""
        ...

    def __call__(self, images: Pixels) -> Matrix:
        """Features [n, dimension], float64, of uint8 images [n, H, W, C]."""
        ...

    def arrays(self) -> dict[str, Any]:
        """What a reference file keeps so that the features can be made again from it; nothing, of a network's file."""
        ...


@dataclass(frozen=True)
class Loading:
    """How a network's file is run."""

    device: str = "auto"
    """Of torch and onnxruntime: auto, cpu, cuda, cuda:1."""
    trust: bool = False
    """Whether a pickle, which executes code of its own, may be loaded."""
