"""Images that came from the server: samples and stored datasets."""

import html
import json
import os
import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Self, overload

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from . import images as pictures
from .errors import BadRequestError, warn
from .files.temporary import whole_file
from .wire.tensors import to_numpy

Array = np.ndarray[Any, Any]

_OF_FILES = ("agg", "cairo", "pdf", "pgf", "ps", "svg", "template")  # backends of matplotlib, which show nothing

Decoder = Callable[[Array], Any]
"""Values [N, H, W, C] in the data's own units to images: [N, h, w, 1 or 3], or without the last axis, of uint8 or
floats in [−1, 1]."""


class ImageTable(Sequence[Array]):
    """A sequence of images: rows of an Arrow table with one column of them and one of labels.

    An index gives an image, a slice the same kind of table without a copy. Whatever reads Arrow's PyCapsule interface
    takes it as a table (``pyarrow.table(x)``, ``polars.from_arrow(x)``), and numpy as an array.
    """

    _column: str

    def __init__(self, table: pa.Table, decode: Decoder | None = None) -> None:
        self.table = table
        self.decode = decode
        """Makes pictures of fields and latents: values [N, H, W, C] in their own units to images."""

    def __len__(self) -> int:
        return self.table.num_rows

    @overload
    def __getitem__(self, place: int) -> Array: ...
    @overload
    def __getitem__(self, place: slice) -> Self: ...
    def __getitem__(self, place: int | slice) -> Array | Self:
        if not isinstance(place, slice):
            return self.images[place]
        start, stop, step = place.indices(len(self))
        near = step == 1
        rows = self.table.slice(start, max(0, stop - start)) if near else self.table.take(np.arange(start, stop, step))
        return type(self)(rows, self.decode)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        return np.array(self.images, dtype, copy=copy)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        shape = "×".join(str(n) for n in self.images.shape)
        return f"{type(self).__name__}({shape} {self.images.dtype})"

    @property
    def column(self) -> pa.ChunkedArray:
        """The images as a column of Arrow's tensors."""
        return self.table[self._column]

    @cached_property
    def images(self) -> Array:
        """[N, H, W, C] or [N, C, H, W], as requested: a read-only view where one batch came, else one copy."""
        return to_numpy(self.column)

    @property
    def labels(self) -> Array:
        """[N] int32, −1 = none."""
        return to_numpy(self.table["label"])

    @property
    def metadata(self) -> dict[str, str]:
        """What the server says of this table: the resolved request, model version, weights hash."""
        return {key.decode(): value.decode() for key, value in (self.table.schema.metadata or {}).items()}

    @property
    def layout(self) -> str:
        """How the axes of an image lie: HWC or CHW."""
        return "".join(self.column.type.dim_names or "HWC")

    @property
    def normalization(self) -> dict[str, list[float]] | None:
        """`mean` and `scale` of each channel, of values in units of their own; None of images in [−1, 1]."""
        return json.loads(self.metadata.get("normalization", "null"))

    def to_pictures(self, column: pa.ChunkedArray | None = None) -> tuple[pictures.Pixels, str]:
        """All images as uint8 [N, h, w, 1 or 3], and a note of what they show; `column` is another column of such
        images.

        Plain images are as they are. Others go through `decode`; without it each channel is mapped from its least to
        its greatest value over all images, and channels that are not 1 or 3 stand side by side.
        """
        values = to_numpy(self.column if column is None else column)
        if self.layout == "CHW":
            values = np.moveaxis(values, 1, 3)
        if self.decode is not None:
            return _checked(np.asarray(self.decode(values)), len(values)), "decoded"
        if self.normalization is None:
            return pictures.to_uint8(values), ""
        return _mapped(values.astype(np.float64))

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
        return pictures.grid(self.to_pictures()[0], columns=columns, scale=scale)

    def to_pil(self) -> list[Any]:
        """One image of Pillow's each, of mode L or RGB, as `to_pictures` makes them."""
        from .data.pictures import image_of

        return [image_of(picture) for picture in self.to_pictures()[0]]

    def save(self, path: str | os.PathLike[str], columns: int | None = None, scale: int = 4) -> None:
        """Write a file of the kind that its extension says; one that is there is replaced when the new one is whole.

        .png is all images in one picture, with so many columns, enlarged by scale. .npy is the array; .npz the arrays
        images and labels (and of samples seeds); .parquet, .arrow and .feather are the table, which
        `Client.put_dataset` takes back.
        """
        kind = os.path.splitext(path)[1].lower()
        with whole_file(path) as file:
            if kind == ".png":
                file.write(pictures.png(self.grid(columns, scale)))
            elif kind == ".npy":
                np.save(file, self.images)
            elif kind == ".npz":
                seeds = {"seeds": to_numpy(self.table["seed"])} if "seed" in self.table.column_names else {}
                np.savez(file, allow_pickle=False, images=self.images, labels=self.labels, **seeds)
            elif kind == ".parquet":
                import pyarrow.parquet

                pyarrow.parquet.write_table(self.table, file)
            elif kind in (".arrow", ".feather"):
                with pa.ipc.new_file(file, self.table.schema) as table:
                    table.write_table(self.table)
            else:
                raise BadRequestError(
                    f"path must end in .png, .npy, .npz, .parquet, .arrow or .feather, got {os.fspath(path)!r}"
                )

    def show(self, columns: int | None = None) -> None:
        """Display the grid: in a notebook inline, elsewhere in matplotlib's window. It warns if there is no screen."""
        if "ipykernel" in sys.modules:
            from IPython.display import HTML, display  # pyright: ignore[reportMissingImports]

            display(HTML(self._html(len(self), columns)))
            return
        from matplotlib import pyplot

        if pyplot.get_backend().lower() in _OF_FILES:
            warn(['there is no screen to show pictures on; save("samples.png") writes them to a file'])
            return
        picture = self.grid(columns)
        pyplot.imshow(picture.squeeze(-1) if picture.shape[-1] == 1 else picture, cmap="gray")
        pyplot.axis("off")
        pyplot.show()

    @property
    def notes(self) -> list[str]:
        """What the server took in place of what was asked for, and what gives poor results, in sentences."""
        return json.loads(self.metadata.get("notes", "[]"))

    def _repr_html_(self) -> str:
        said = "".join(f"<p>{html.escape(line)}</p>" for line in [repr(self), *self._settings_used(), *self.notes])
        return said + self._html(64, None)

    def _settings_used(self) -> list[str]:
        """How the images were drawn, if they were."""
        request = json.loads(self.metadata.get("request", "{}"))
        if "solver" not in request:
            return []
        grid, schedule = (
            value if isinstance(value, str) else json.dumps(value) for value in (request["grid"], request["schedule"])
        )
        order = f" of order {request['order']}" if "order" in request else ""
        cost = f", {self.metadata['nfe']} evaluations" if "nfe" in self.metadata else ""
        return [f"solver {request['solver']}{order}{cost}, grid {grid}, schedule {schedule}"]

    def _html(self, most: int, columns: int | None) -> str:
        pixels, note = self[:most].to_pictures()
        return pictures.thumbnails(pixels, columns) + (f"<p>{html.escape(note)}</p>" if note else "")


def _mapped(values: Array) -> tuple[pictures.Pixels, str]:
    """Values in units of their own as pictures, and which values they show.

    >>> pixels, note = _mapped(np.array([[[[270.0]], [[290.0]]]]))
    >>> pixels.ravel().tolist(), note
    ([0, 255], 'black to white: 270 to 290')
    """
    channels = values.shape[3]
    if not values.size:
        return np.zeros((*values.shape[:3], 1), np.uint8), ""
    low, high = values.min((0, 1, 2)), values.max((0, 1, 2))
    pixels = np.rint((values - low) * (255 / np.where(high > low, high - low, 1))).astype(np.uint8)
    ranges = ", ".join(f"{a:.4g} to {b:.4g}" for a, b in zip(low, high, strict=True))
    if channels == 3:
        return pixels, f"red, green, blue: {ranges}"
    if channels == 1:
        return pixels, f"black to white: {ranges}"
    beside = np.concatenate(np.split(pixels, channels, axis=3), axis=2)
    return beside, f"{channels} channels side by side, black to white: {ranges}"


def _checked(decoded: Array, count: int) -> pictures.Pixels:
    """What a decoder gave, if it is images."""
    images = decoded[..., None] if decoded.ndim == 3 else decoded
    if images.ndim != 4 or len(images) != count or images.shape[3] not in (1, 3):
        raise BadRequestError(f"decode must return {count} images [N, h, w, 1 or 3], got the shape {images.shape}")
    if images.dtype != np.uint8 and images.dtype.kind != "f":
        raise BadRequestError(f"decode must return uint8 or floats in [−1, 1], got {images.dtype}")
    return pictures.to_uint8(images)


class Samples(ImageTable):
    """What `Client.sample` returns: one row per image, in the order asked for.

    >>> samples = client.sample("digits", n=4, steps=5, seed=1)
    >>> samples.images.shape, samples.seeds.tolist()
    ((4, 8, 8, 1), [1, 2, 3, 4])
    >>> samples[1:3], samples[0].shape, samples.to_pil()[0].size
    (Samples(2×8×8×1 uint8), (8, 8, 1), (8, 8))
    """

    _column = "sample"

    def __init__(self, table: pa.Table, decode: Decoder | None = None) -> None:
        final = pc.equal(table["step"], -1)
        only_final = pc.all(final, min_count=0).as_py()
        super().__init__(table if only_final else table.filter(final), decode)
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
