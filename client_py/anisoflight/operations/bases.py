"""The operations on bases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..wire import uploads
from ..wire.calls import Calls, frame_of, given
from ..wire.tensors import to_numpy

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    import pandas as pd

    from ..files.schedules import Vectors


class Bases(Calls):
    """Bases: the rows of P_1, uploaded or made of a dataset."""

    def bases(self) -> pd.DataFrame:
        """The stored bases: name, height, width, k, per_class."""
        return frame_of(self.call("ListBases")["bases"])

    def put_basis(self, name: str, vectors: Any, labels: npt.ArrayLike | None = None, replace: bool = False) -> None:
        """Store a basis: the orthonormal rows [k, H, W] of P_1, or a dict of such arrays by label."""
        command = {"op": "PutBasis", "name": name, "replace": replace}
        uploads.send(self._connection, command, uploads.basis_table(vectors, labels))

    def basis(self, name: str | None = None, *, schedule: str | None = None) -> Vectors:
        """The rows [k, H, W] of P_1 by label (−1 where all labels share them), of the stored basis of that name or of
        the one that a schedule has.
        """
        rows = self.table("Basis", given(basis=name, schedule=schedule))
        labels, vectors = to_numpy(rows["label"]), to_numpy(rows["vector"])
        return {int(label): vectors[labels == label] for label in np.unique(labels)}

    def make_basis(
        self,
        name: str,
        kind: str,
        dataset: str,
        k: int | None = None,
        *,
        clusters: Sequence[Sequence[int]] | None = None,
        model: str | None = None,
        replace: bool = False,
        progress: bool = True,
    ) -> dict[str, Any]:
        """Make and store a basis: P_1 holds the k (default H·W/4) leading principal components of a dataset's images
        ("pca"), of each class's own ("pca_per_class"), or the means of blocks of pixels ("haar").

        clusters lists classes that share components. The answer's `spans` tell, for each set of components, the labels
        that share it, the number of images, and the share of their variance that lies in P_1.
        `model` sees the data in units of its own, and the basis is made of what it sees.

        >>> made = client.make_basis("blocks-pca", "pca", "blocks", k=8, replace=True)
        >>> made["k"], client.basis("blocks-pca")[-1].shape
        (8, (8, 8, 8))
        """
        request = given(name=name, kind=kind, dataset=dataset, k=k, clusters=clusters, model=model, replace=replace)
        return self.call("MakeBasis", show="basis" if progress else None, **request)

    def delete_basis(self, basis: str) -> None:
        self.call("DeleteBasis", basis=basis)
