"""The operations on schedules."""

import base64
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ..curve import read_csv, schedule_table
from ..errors import bad_tensor
from ..files import path_of
from ..plans.schedule import Schedule
from ..plans.storage import Vectors, read_with_basis, vectors_of
from ..wire.arrays import array_of, integers
from ..wire.calls import Connection
from ..wire.contract import FIELDS
from ..wire.listing import frame_of
from ..wire.tensors import table_of, tensor_column, to_numpy
from . import documented


class Schedules(Connection):
    """Schedules, and bases: the rows of P_1, uploaded or made from a data set."""

    def schedules(self) -> pd.DataFrame:
        """The schedules, including those of models. A notebook shows the main columns."""
        return frame_of(self.call("ListSchedules")["schedules"], "source", "T", "J", "basis", "per_class")

    def schedule(self, name: str) -> Schedule:
        """The schedule of that name; a model's name means its own schedule, "edm" the fixed one of EDM."""
        return Schedule(self, name)

    @documented(*(name for name in FIELDS if name.startswith("MakeSchedule")))
    def make_schedule(self, name: str, kind: str = "geodesic", *, progress: bool = True, **options: Any) -> Schedule:
        """Make and store a schedule. Unless progress is off, it prints one line on its worth, which `info["summary"]`
        holds. The fields of each kind are below; the kinds are:

        - "geodesic" (model, dataset): constant speed, ġ √F(g) constant, with the residual F measured in one pass over
          the data. nfe=9 chooses its end T for that many evaluations by Heun's method.
        - "start" (dataset): another schedule, by default edm, with the normal law of the data set, which sampling
          starts from. `Schedule.start` is that law. It serves no model with another normalization.
        - "edm", "log-linear" and "cosine": formulas.

        >>> client.make_schedule("steep", "log-linear", T=400, knots=16, replace=True)
        not judged: a formula knows no data
        Schedule('steep')
        """
        show = "schedule" if progress else None
        made = Schedule(self, name, self.call("MakeSchedule", show=show, name=name, kind=kind, **options))
        if progress:
            print(made.info["summary"])
        return made

    def put_schedule(
        self,
        name: str,
        table: Any,
        basis: str | None = None,
        k: int | None = None,
        replace: bool = False,
        *,
        cuts: Sequence[int] | None = None,
    ) -> Schedule:
        """Store a schedule: a DataFrame, Arrow table or dict with columns t, g and, if needed, label and subspace, or a
        file's path.

        Per label (−1, the default: all) and subspace (default 0, which is P_1) t increases from 0 and g > 0 increases;
        all paths end at the same T and g(T). basis is none, dct (with k, or cuts for nested bands), haar or the name of
        a stored one; "pca" and "pca_per_class" mean the one that a model was trained on.

        A .csv file holds such a table. A .json file is written by `Schedule.save`; the vectors in basis.safetensors
        next to it are stored first, under the name `basis` (default: the schedule's).

        >>> client.put_schedule("two-knots", {"t": [0, 400], "g": [1e-9, 400]}, replace=True)
        Schedule('two-knots')
        """
        if isinstance(table, str | PathLike):
            path = path_of(table, "schedule.json")
            if path.suffix == ".json":
                if k is not None or cuts is not None:
                    raise ValueError("a schedule file knows its k and cuts")
                return self._import_schedule(name, path, basis, replace)
            table = read_csv(path)
        command = {"op": "PutSchedule", "name": name, "basis": basis, "k": k, "cuts": cuts, "replace": replace}
        self.put(command, schedule_table(table))
        return self.schedule(name)

    def _import_schedule(self, name: str, path: Path, basis: str | None, replace: bool) -> Schedule:
        file, vectors, law = read_with_basis(path)
        if vectors is not None:
            basis = basis or name
            self.put_basis(basis, vectors, replace=replace)
        start = None if law is None else base64.b64encode(law.file).decode()
        self.call("ImportSchedule", name=name, file=file, basis=basis, start=start, replace=replace)
        return self.schedule(name)

    def delete_schedule(self, schedule: str) -> None:
        self.call("DeleteSchedule", schedule=schedule)

    # Bases

    def bases(self) -> pd.DataFrame:
        """The stored bases: name, height, width, k, per_class."""
        return frame_of(self.call("ListBases")["bases"])

    def put_basis(self, name: str, vectors: Any, labels: npt.ArrayLike | None = None, replace: bool = False) -> None:
        """Store a basis: the orthonormal rows [k, H, W] of P_1, or a dict of such arrays by label."""
        command = {"op": "PutBasis", "name": name, "replace": replace}
        self.put(command, basis_table(vectors, labels))

    def basis(self, name: str | None = None, *, schedule: str | None = None) -> Vectors:
        """The rows [k, H, W] of P_1 by label (−1: shared), of the stored basis of that name or of a schedule."""
        rows = self.table("Basis", {"basis": name, "schedule": schedule})
        return vectors_of(to_numpy(rows["label"]), to_numpy(rows["vector"]))

    @documented("MakeBasis")
    def make_basis(
        self, name: str, kind: str, dataset: str, k: int | None = None, *, progress: bool = True, **options: Any
    ) -> dict[str, Any]:
        """Make and store a basis: P_1 holds the leading principal components of a data set's images ("pca"), of each
        class ("pca_per_class"), or the means of blocks of pixels ("haar").

        For each set of components, the result's `spans` has the labels that share it, the number of images, and the
        share of their variance in P_1.

        >>> made = client.make_basis("blocks-pca", "pca", "blocks", k=8, replace=True)
        >>> made["k"], client.basis("blocks-pca")[-1].shape
        (8, (8, 8, 8))
        """
        show = "basis" if progress else None
        return self.call("MakeBasis", show=show, name=name, kind=kind, dataset=dataset, k=k, **options)

    def delete_basis(self, basis: str) -> None:
        self.call("DeleteBasis", basis=basis)


def basis_table(vectors: Any, labels: npt.ArrayLike | None) -> pa.Table:
    """The rows of PutBasis: [k, H, W] with a label per row (default −1, shared), or {label: [k, H, W]}."""
    if isinstance(vectors, Mapping):
        labels = [label for label, rows in vectors.items() for _ in range(len(rows))]
        vectors = [row for rows in vectors.values() for row in array_of(rows, "vectors", np.float64)]
    array = array_of(vectors, "vectors", np.float64)
    if array.ndim != 3:
        raise bad_tensor(f"vectors must have the shape [k, H, W], got {array.shape}")
    column = tensor_column(array, "HW")
    return table_of(
        {"label": pa.array(integers([-1] * len(array) if labels is None else labels, "labels")), "vector": column}
    )
