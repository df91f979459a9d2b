"""The operations on datasets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .. import uploads
from ..calls import Calls, frame_of, given
from ..samples import Dataset

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd


class Datasets(Calls):
    """Datasets: uploaded, or drawn from a mixture."""

    def datasets(self) -> pd.DataFrame:
        """The stored datasets."""
        return frame_of(self.call("ListDatasets")["datasets"])

    def put_dataset(
        self,
        name: str,
        images: npt.ArrayLike | Iterator[Any],
        labels: npt.ArrayLike | None = None,
        *,
        replace: bool = False,
        check_range: bool = True,
        progress: bool = True,
    ) -> None:
        """Store images [n, H, W, C] or [n, C, H, W], uint8 or float32 in [−1, 1], with integer labels [n] if there
        are classes. Larger than memory they may be an array mapped from a file (``np.load(path, mmap_mode="r")``), or
        an iterator of pieces, each images or a pair (images, labels), which are sent as they come. There is a warning
        where all values lie in [0, 1], which is another scale, unless check_range is False.

        >>> client.put_dataset("noise", np.zeros((4, 8, 8, 1), np.uint8), labels=[0, 1, 0, 1], replace=True)
        >>> client.dataset("noise").labels.tolist()
        [0, 1, 0, 1]
        >>> client.put_dataset("pieces", (np.full((2, 8, 8, 1), k, np.uint8) for k in range(3)), replace=True)
        >>> client.dataset("pieces").images[:, 0, 0, 0].tolist()
        [0, 0, 1, 1, 2, 2]
        """
        command = {"op": "PutDataset", "name": name, "replace": replace}
        title = "upload" if progress else None
        pixels = uploads.PixelRange()
        if isinstance(images, Iterator):
            if labels is not None:
                raise ValueError("labels go with the pieces: give pairs (images, labels)")
            pieces = uploads.dataset_batches(map(pixels.note, images) if check_range else images)
            uploads.send_batches(self._connection, command, *pieces, None, title)
            pixels.warn()
        else:
            table = uploads.dataset_table(images, labels)
            if check_range:
                pixels.note(images)
            pixels.warn()
            uploads.send(self._connection, command, table, title)

    def draw_dataset(
        self, name: str, model: str, n: int, *, seed: int = 0, replace: bool = False, progress: bool = True
    ) -> dict[str, Any]:
        """Store n images drawn from a mixture: a dataset whose law is known. They may leave [−1, 1]."""
        show = "draw" if progress else None
        return self.call("MakeDataset", show=show, name=name, model=model, n=n, seed=seed, replace=replace)

    def dataset(self, name: str, offset: int = 0, limit: int | None = None, progress: bool = True) -> Dataset:
        """Read a dataset, or `limit` images of it from `offset` on, as it was uploaded."""
        request = given(dataset=name, offset=offset, limit=limit)
        return Dataset(self.table("Dataset", request, "read", "image", progress=progress))

    def delete_dataset(self, dataset: str) -> None:
        self.call("DeleteDataset", dataset=dataset)
