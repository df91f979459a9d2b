"""The operations on datasets."""

from typing import Any

import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ..errors import BadRequestError
from ..listing import frame_of
from ..samples import Dataset, ImageTable
from ..wire.calls import Connection
from ..wire.intake import PixelRange, dataset_batches, dataset_table, pieces_of
from ..wire.tensors import batches_of


class Datasets(Connection):
    """Datasets: uploaded, or drawn from a mixture."""

    def datasets(self) -> pd.DataFrame:
        """The stored datasets. The column `integrity` is "ok", as far as the files have been read, or "damaged", with
        the file and the fault in the column `damage`. A damaged dataset can be deleted or replaced.

        >>> client.put_dataset("whole", np.zeros((2, 8, 8, 1), np.uint8), replace=True)
        >>> client.datasets().loc["whole", "integrity"]
        'ok'
        """
        return frame_of(self.call("ListDatasets")["datasets"])

    def put_dataset(
        self,
        name: str,
        images: Any,
        labels: npt.ArrayLike | None = None,
        *,
        mean: npt.ArrayLike | str | None = None,
        scale: npt.ArrayLike | str | None = None,
        layout: str | None = None,
        replace: bool = False,
        check_range: bool = True,
        progress: bool = True,
    ) -> None:
        """Store images [n, H, W, C] or [n, C, H, W], uint8 or floats in [−1, 1], with integer labels [n] if there are
        classes.

        Images are an array, a torch tensor, a list of arrays or of Pillow's images; a column of Arrow tensors; an Arrow
        table, a frame of pandas or `datasets.Dataset` with a column of images (image, images, img, sample or
        pixel_values) and perhaps one of labels (label, labels); or a `Dataset` or `Samples` of this package. Contiguous
        arrays of uint8 or float32, and columns of such tensors, are sent from the memory that they lie in.

        A data set or loader of torch, also with rows that are dicts, and a frame of polars are taken, too. Axes with
        names, as xarray's, are moved: (time, variable, lat, lon) is [n, C, H, W]; unknown names are refused.
        So are values that are missing (masked, null, None or NaN), in labels too.

        Larger than memory they may be an array mapped from a file (``np.load(path, mmap_mode="r")``), or an iterator of
        pieces, each images or a pair (images, labels), which are sent as they come. There is a warning where all values
        lie in [0, 1], which is another scale, unless check_range is False.

        Fields and latents, floats in units of their own with any number of channels, come with `mean` and `scale`: one
        number, a list with one for each channel, or "measured". A network sees (x − mean)/scale; a measured scale is
        twice the channel's standard deviation, so that what it sees has the deviation ½ that EDM's defaults are made
        for, and a measured scale alone is about the measured mean. A `Dataset` or `Samples` of the server, or an Arrow
        table that was read from it, brings its own. `layout` ("HWC" or "CHW") says how the axes of an array of many
        channels lie; by default the channels are last where the last size is at most 4.

        >>> client.put_dataset("noise", np.zeros((4, 8, 8, 1), np.uint8), labels=[0, 1, 0, 1], replace=True)
        >>> winds = np.random.default_rng(0).normal([3, 288], [5, 20], (9, 4, 8, 2)).astype(np.float32)
        >>> client.put_dataset("winds", winds, scale="measured", replace=True)
        >>> np.round(client.dataset("winds").normalization["scale"]).tolist()
        [10.0, 40.0]
        >>> client.put_dataset("pieces", (np.full((2, 8, 8, 1), k, np.uint8) for k in range(3)), replace=True)
        >>> client.dataset("pieces").images[:, 0, 0, 0].tolist()
        [0, 0, 1, 1, 2, 2]
        >>> client.put_dataset("drawn", client.sample("digits", n=3, steps=2), replace=True)
        """
        units: dict[str, Any] = {"mean": mean, "scale": scale}
        if isinstance(images, pa.Table | ImageTable) and mean is None and scale is None:
            units = (images if isinstance(images, ImageTable) else Dataset(images)).normalization or units
        pieces = pieces_of(images)
        if pieces is None:
            table = dataset_table(images, labels, layout)
            schema, batches, rows = table.schema, batches_of(table), table.num_rows
        elif labels is None:
            (schema, batches), rows = dataset_batches(pieces, layout), None
        else:
            raise BadRequestError(
                "labels must come with the pieces; yield pairs (images, labels), or name a column label"
            )
        pixels = PixelRange()
        if check_range and units["mean"] is None and units["scale"] is None:
            batches = map(pixels.note, batches)
        command = {"op": "PutDataset", "name": name, "replace": replace, **units}
        self.put_batches(command, schema, batches, rows, "upload" if progress else None)
        pixels.warn()

    def draw_dataset(
        self, name: str, model: str, n: int, *, seed: int = 0, replace: bool = False, progress: bool = True
    ) -> dict[str, Any]:
        """Store n images drawn from a mixture: a dataset whose law is known. They may leave [−1, 1]."""
        show = "draw" if progress else None
        return self.call("MakeDataset", show=show, name=name, model=model, n=n, seed=seed, replace=replace)

    def dataset(self, name: str, offset: int = 0, limit: int | None = None, progress: bool = True) -> Dataset:
        """Read a dataset, or `limit` images of it from `offset` on, as it was uploaded."""
        request = {"dataset": name, "offset": offset, "limit": limit}
        return Dataset(self.table("Dataset", request, "read", "image", progress=progress))

    def delete_dataset(self, dataset: str) -> None:
        self.call("DeleteDataset", dataset=dataset)
