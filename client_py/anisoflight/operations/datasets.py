"""The operations on data sets."""

from typing import Any

import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ..errors import BadRequestError
from ..wire.calls import Connection
from ..wire.intake import PixelRange, dataset_batches, dataset_table, pieces_of
from ..wire.listing import frame_of
from ..wire.samples import Dataset, ImageTable
from ..wire.tensors import batches_of


class Datasets(Connection):
    """Data sets: uploaded, or drawn from a mixture."""

    def datasets(self) -> pd.DataFrame:
        """The stored data sets. The column `integrity` is "ok" if the files that were read are intact, or "damaged",
        with the file and the fault in the column `damage`. A damaged data set can be deleted or replaced.

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

        images may be

        - an array, a torch tensor, a list of arrays or of Pillow's images, or a column of Arrow tensors;
        - an Arrow table, a frame of pandas or polars, or a `datasets.Dataset`, with a column of images (image, images,
          img, sample or pixel_values) and perhaps one of labels (label, labels);
        - a `Dataset` or `Samples` of this package, or a data set or loader of torch, whose rows may be dicts;
        - an array mapped from a file (``np.load(path, mmap_mode="r")``), or an iterator of pieces, each images or a
          pair (images, labels), sent as they come.

        Contiguous arrays of uint8 or float32, and columns of such tensors, are sent without a copy. Axes with names, as
        xarray's, are reordered: (time, variable, lat, lon) is [n, C, H, W]. Unknown names and missing values (masked,
        null, None or NaN, also in labels) are errors. If all values lie in [0, 1], which is another scale, it warns
        unless check_range is False.

        Fields and latents, floats in other units with any number of channels, need `mean` and `scale`: a number, a list
        by channel, or "measured". A network sees (x − mean)/scale. A measured scale is twice the channel's standard
        deviation, so that the network sees the deviation ½ of EDM's defaults; a measured scale alone implies the
        measured mean. Images of the server bring their own. `layout` ("HWC" or "CHW") is the order of the axes of an
        array; by default channels are last if the last size is at most 4.

        >>> client.put_dataset("noise", np.zeros((4, 8, 8, 1), np.uint8), labels=[0, 1, 0, 1], replace=True)
        >>> winds = np.random.default_rng(0).normal([3, 288], [5, 20], (9, 4, 8, 2)).astype(np.float32)
        >>> client.put_dataset("winds", winds, scale="measured", replace=True)
        >>> np.round(client.dataset("winds").normalization["scale"]).tolist()
        [10.0, 40.0]
        >>> client.put_dataset("pieces", (np.full((2, 8, 8, 1), k, np.uint8) for k in range(3)), replace=True)
        >>> client.dataset("pieces").images[:, 0, 0, 0].tolist()
        [0, 0, 1, 1, 2, 2]
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
            raise BadRequestError("labels must come with the pieces; yield pairs (images, labels), or a column label")
        pixels = PixelRange()
        if check_range and units["mean"] is None and units["scale"] is None:
            batches = map(pixels.note, batches)
        command = {"op": "PutDataset", "name": name, "replace": replace, **units}
        self.put_batches(command, schema, batches, rows, "upload" if progress else None)
        pixels.warn()

    def draw_dataset(
        self, name: str, model: str, n: int, *, seed: int = 0, replace: bool = False, progress: bool = True
    ) -> dict[str, Any]:
        """Store n images drawn from a mixture: a data set of known law. Values may leave [−1, 1]."""
        show = "draw" if progress else None
        return self.call("MakeDataset", show=show, name=name, model=model, n=n, seed=seed, replace=replace)

    def dataset(self, name: str, offset: int = 0, limit: int | None = None, progress: bool = True) -> Dataset:
        """Read a data set, or `limit` images from `offset` on, as it was uploaded."""
        request = {"dataset": name, "offset": offset, "limit": limit}
        return Dataset(self.table("Dataset", request, "read", "image", progress=progress))

    def delete_dataset(self, dataset: str) -> None:
        self.call("DeleteDataset", dataset=dataset)
