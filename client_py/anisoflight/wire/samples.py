"""Images from the server: samples and stored data sets."""

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

from ..errors import BadRequestError, warn
from ..files.temporary import whole_file
from ..images import Pixels, grid, png, thumbnails, to_uint8
from .tensors import to_numpy

Array = np.ndarray[Any, Any]

_WITHOUT_SCREEN = ("agg", "cairo", "pdf", "pgf", "ps", "svg", "template")  # backends of matplotlib

Decoder = Callable[[Array], Any]
"""Values [N, H, W, C] in the data's units to images [N, h, w, 1 or 3] or [N, h, w], uint8 or floats in [−1, 1]."""


class ImageTable(Sequence[Array]):
    """A sequence of images: an Arrow table with a column of images and one of labels.

    An index returns an image; a slice returns a table of the same kind without a copy. It converts to a table through
    Arrow's PyCapsule interface (``pyarrow.table(x)``, ``polars.from_arrow(x)``), and to a numpy array.
    """

    _column: str

    def __init__(self, table: pa.Table, decode: Decoder | None = None) -> None:
        self.table = table
        self.decode = decode
        """Converts fields and latents to pictures."""

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
        chosen = np.arange(start, stop, step)
        rows = self.table.slice(start, len(chosen)) if step == 1 else self.table.take(chosen)
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
        """The images as a column of Arrow tensors."""
        return self.table[self._column]

    @cached_property
    def images(self) -> Array:
        """[N, H, W, C] or [N, C, H, W], as requested: a read-only view of a single batch, else a copy."""
        return to_numpy(self.column)

    @property
    def labels(self) -> Array:
        """[N] int32, −1 for none."""
        return to_numpy(self.table["label"])

    @property
    def metadata(self) -> dict[str, str]:
        """The server's facts on this table: the resolved request, model version, weights hash."""
        return {key.decode(): value.decode() for key, value in (self.table.schema.metadata or {}).items()}

    @property
    def layout(self) -> str:
        """The order of the axes of an image: HWC or CHW."""
        return "".join(self.column.type.dim_names or "HWC")

    @property
    def normalization(self) -> dict[str, list[float]] | None:
        """`mean` and `scale` by channel for values in other units; None for images in [−1, 1]."""
        return json.loads(self.metadata.get("normalization", "null"))

    def to_pictures(self, column: pa.ChunkedArray | None = None) -> tuple[Pixels, str]:
        """All images as uint8 [N, h, w, 1 or 3], and a note of what they show; `column` is another column of such
        images.

        Images in [−1, 1] are converted as they are. Other values go through `decode`. Without it each channel is mapped
        from its least to its greatest value, and channels that are not 1 or 3 are placed side by side.
        """
        values = to_numpy(self.column if column is None else column)
        if self.layout == "CHW":
            values = np.moveaxis(values, 1, 3)
        if self.decode is not None:
            return _checked(np.asarray(self.decode(values)), len(values)), "decoded"
        if self.normalization is None:
            return to_uint8(values), ""
        return _mapped(values.astype(np.float64))

    def to_pandas(self) -> pd.DataFrame:
        """One row per image; the image column holds one array each."""
        frame = self.table.drop_columns([self._column]).to_pandas()
        frame[self._column] = list(self.images)
        return frame

    def to_torch(self) -> Any:
        """A torch tensor with its own memory, because the images are read-only."""
        import torch  # pyright: ignore[reportMissingImports]

        return torch.from_numpy(self.images.copy())

    def grid(self, columns: int | None = None, scale: int = 1) -> Pixels:
        """All images as one picture [h, w, C]."""
        return grid(self.to_pictures()[0], columns=columns, scale=scale)

    def to_pil(self) -> list[Any]:
        """Images of Pillow, of mode L or RGB, made from `to_pictures`."""
        from .pictures import image_of

        return [image_of(picture) for picture in self.to_pictures()[0]]

    def save(self, path: str | os.PathLike[str], columns: int | None = None, scale: int = 4) -> None:
        """Write a file whose extension selects the format. An existing file is replaced when the new one is complete.

        .png holds all images as one picture of `columns` columns, enlarged by scale. .npy holds the array, .npz the
        arrays images and labels, and seeds of samples. .parquet, .arrow and .feather hold the table, which
        `Client.put_dataset` accepts.
        """
        kind = os.path.splitext(path)[1].lower()
        with whole_file(path) as file:
            if kind == ".png":
                file.write(png(self.grid(columns, scale)))
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
                formats = ".png, .npy, .npz, .parquet, .arrow or .feather"
                raise BadRequestError(f"path must end in {formats}, got {os.fspath(path)!r}")

    def show(self, columns: int | None = None) -> None:
        """Display the grid: in a notebook inline, else in matplotlib's window. It warns if there is no screen."""
        if "ipykernel" in sys.modules:
            from IPython.display import HTML, display  # pyright: ignore[reportMissingImports]

            display(HTML(self._html(len(self), columns)))
            return
        from matplotlib import pyplot

        if pyplot.get_backend().lower() in _WITHOUT_SCREEN:
            warn(['there is no screen to show images on; save("samples.png") writes them to a file'])
            return
        picture = self.grid(columns)
        pyplot.imshow(picture.squeeze(-1) if picture.shape[-1] == 1 else picture, cmap="gray")
        pyplot.axis("off")
        pyplot.show()

    @property
    def notes(self) -> list[str]:
        """Settings that the server has replaced, or that give poor results, in sentences."""
        return json.loads(self.metadata.get("notes", "[]"))

    def _repr_html_(self) -> str:
        lines = "".join(f"<p>{html.escape(line)}</p>" for line in [repr(self), *self._settings_used(), *self.notes])
        return lines + self._html(64, None)

    def _settings_used(self) -> list[str]:
        """The settings that the images were drawn with, if they are samples."""
        request = json.loads(self.metadata.get("request", "{}"))
        if "solver" not in request:
            return []
        chosen = (request["grid"], request["schedule"])
        grid, schedule = (value if isinstance(value, str) else json.dumps(value) for value in chosen)
        order = f" of order {request['order']}" if "order" in request else ""
        cost = f", {self.metadata['nfe']} evaluations" if "nfe" in self.metadata else ""
        return [f"solver {request['solver']}{order}{cost}, grid {grid}, schedule {schedule}"]

    def _html(self, most: int, columns: int | None) -> str:
        pixels, note = self[:most].to_pictures()
        return thumbnails(pixels, columns) + (f"<p>{html.escape(note)}</p>" if note else "")


def _mapped(values: Array) -> tuple[Pixels, str]:
    """Values in other units as pictures, and their ranges. What is not finite is black.

    >>> pixels, note = _mapped(np.array([[[[270.0]], [[290.0]]]]))
    >>> pixels.ravel().tolist(), note
    ([0, 255], 'black to white: 270 to 290')
    """
    channels = values.shape[3]
    if not values.size:
        return np.zeros((*values.shape[:3], 1), np.uint8), ""
    finite = np.isfinite(values)
    axes = (0, 1, 2)
    low, high = values.min(axes, initial=np.inf, where=finite), values.max(axes, initial=-np.inf, where=finite)
    low, high = np.where(finite.any(axes), [low, high], 0)
    shown = np.where(finite, values, low)
    pixels = np.rint((shown - low) * (255 / np.where(high > low, high - low, 1))).astype(np.uint8)
    ranges = ", ".join(f"{a:.4g} to {b:.4g}" for a, b in zip(low, high, strict=True))
    if channels == 3:
        return pixels, f"red, green, blue: {ranges}"
    if channels == 1:
        return pixels, f"black to white: {ranges}"
    row = np.concatenate(np.split(pixels, channels, axis=3), axis=2)
    return row, f"{channels} channels side by side, black to white: {ranges}"


def _checked(decoded: Array, count: int) -> Pixels:
    """The result of a decoder, if it is `count` images."""
    images = decoded[..., None] if decoded.ndim == 3 else decoded
    if images.ndim != 4 or len(images) != count or images.shape[3] not in (1, 3):
        raise BadRequestError(f"decode must return {count} images [N, h, w, 1 or 3], got the shape {images.shape}")
    if images.dtype != np.uint8 and images.dtype.kind != "f":
        raise BadRequestError(f"decode must return uint8 or floats in [−1, 1], got {images.dtype}")
    return to_uint8(images)


class Samples(ImageTable):
    """The result of `Client.sample`: one row per image, in the requested order.

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
        """With `every`: the denoised estimates of earlier steps, with `step` ≥ 0."""

    @property
    def seeds(self) -> Array:
        """[N] uint64: ``client.sample(model, n=1, seed=seeds[i])`` draws sample i again."""
        return to_numpy(self.table["seed"])

    @property
    def nfe(self) -> Array:
        """[N] int32: evaluations of the network for each sample."""
        return to_numpy(self.table["nfe"])


class Dataset(ImageTable):
    """The result of `Client.dataset`: stored images in the dtype and layout of their upload."""

    _column = "image"
