"""Parts of images by subspace, and images in DCT frequencies, for numpy arrays and torch tensors alike."""

from .coordinates import Coordinates
from .projections import FORMULAS, Subspaces, dct_rows

__all__ = ["FORMULAS", "Coordinates", "Subspaces", "dct_rows"]
