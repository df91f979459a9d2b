"""Images that came from the server: samples and stored datasets."""

from __future__ import annotations

import html
import sys
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from . import images as pictures
from .tensors import to_numpy

if TYPE_CHECKING:
    import os

    import pandas as pd

Array = np.ndarray[Any, Any]


class ImageTable:
    """Rows of an Arrow table with one column of images and one of labels."""

    _column: str

    def __init__(self, table: pa.Table, names: list[str] | None = None) -> None:
        self.table = table
        self.names = names or []

    def __len__(self) -> int:
        return self.table.num_rows

    def __repr__(self) -> str:
        shape = "×".join(str(n) for n in self.images.shape)
        return f"{type(self).__name__}({shape} {self.images.dtype})"

    @cached_property
    def images(self) -> Array:
        """[N, H, W, C] or [N, C, H, W], as requested: a read-only view where one batch came, else one copy."""
        return to_numpy(self.table[self._column])

    @property
    def labels(self) -> Array:
        """[N] int32, −1 = none."""
        return to_numpy(self.table["label"])

    @property
    def metadata(self) -> dict[str, str]:
        """What the server says of this table: the resolved request, model version, weights hash."""
        return {key.decode(): value.decode() for key, value in (self.table.schema.metadata or {}).items()}

    def to_pandas(self) -> pd.DataFrame:
        """One row per image; the image column holds one array each."""
        frame = self.table.drop_columns([self._column]).to_pandas()
        frame[self._column] = list(self.images)
        return frame

    def to_torch(self) -> Any:
        """A torch tensor of its own memory (torch would write through the read-only view)."""
        import torch  # pyright: ignore[reportMissingImports]

        return torch.from_numpy(self.images.copy())

    def grid(self, columns: int | None = None, scale: int = 1) -> pictures.Pixels:
        """All images as one picture [h, w, C]."""
        return pictures.grid(self.images, columns=columns, scale=scale)

    def save(self, path: str | os.PathLike[str], columns: int | None = None, scale: int = 4) -> None:
        """Write the grid as a PNG file."""
        with open(path, "wb") as file:
            file.write(pictures.png(self.grid(columns, scale)))

    def show(self, columns: int | None = None) -> None:
        """Display the grid: in a notebook inline, elsewhere with matplotlib."""
        if "ipykernel" in sys.modules:
            from IPython.display import HTML, display  # pyright: ignore[reportMissingImports]

            display(HTML(pictures.thumbnails(self.images, most=len(self), columns=columns)))
            return
        from matplotlib import pyplot

        picture = self.grid(columns)
        pyplot.imshow(picture.squeeze(-1) if picture.shape[-1] == 1 else picture, cmap="gray")
        pyplot.axis("off")
        pyplot.show()

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p>" + pictures.thumbnails(self.images)


class Samples(ImageTable):
    """What `Client.sample` returns: one row per image, in the order asked for.

    >>> samples = client.sample("digits", n=4, steps=5, seed=1)
    >>> samples.images.shape, samples.seeds.tolist()
    ((4, 8, 8, 1), [1, 2, 3, 4])
    """

    _column = "sample"

    def __init__(self, table: pa.Table) -> None:
        final = pc.equal(table["step"], -1)
        only_final = pc.all(final, min_count=0).as_py()
        super().__init__(table if only_final else table.filter(final))
        self.previews = table.slice(0, 0) if only_final else table.filter(pc.invert(final))
        """With `every`: the denoised estimates on the way, their `step` ≥ 0."""

    @property
    def seeds(self) -> Array:
        """[N] uint64: sample i again, alone, is ``client.sample(model, n=1, seed=seeds[i])``."""
        return to_numpy(self.table["seed"])

    @property
    def nfe(self) -> Array:
        """[N] int32: evaluations of the network spent on each sample."""
        return to_numpy(self.table["nfe"])


class Dataset(ImageTable):
    """What `Client.dataset` returns: stored images in the dtype and layout in which they were uploaded."""

    _column = "image"
