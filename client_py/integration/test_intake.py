"""Data sets from objects of torch, xarray and polars."""

from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
import xarray as xr
from torch.utils.data import DataLoader, IterableDataset, Subset, TensorDataset

from anisoflight import AnisoflightError, Client

X = np.random.default_rng(0).integers(0, 256, (10, 3, 8, 8), dtype=np.uint8)
LABELS = [0, 1, 2, 0, 1, 2, 0, 1, 2, 0]
PAIRS = TensorDataset(torch.from_numpy(X), torch.tensor(LABELS))


class Streamed(IterableDataset):  # pyright: ignore[reportMissingTypeArgument]
    def __iter__(self) -> Any:
        return iter(PAIRS)


def dicts(rows: list[Any]) -> dict[str, Any]:
    return {"pixel_values": torch.stack([x for x, _ in rows]), "labels": [int(label) for _, label in rows]}


FORMS: dict[str, Any] = {
    "loader of tuples": lambda: DataLoader(PAIRS, batch_size=4),
    "its iterator": lambda: iter(DataLoader(PAIRS, batch_size=4)),
    "loader of lists": lambda: DataLoader(PAIRS, batch_size=4, collate_fn=lambda rows: [*zip(*rows, strict=True)]),
    "loader of dicts": lambda: DataLoader(PAIRS, batch_size=4, collate_fn=dicts),
    "loader without batches": lambda: DataLoader(PAIRS, batch_size=None),
    "tensors": lambda: PAIRS,
    "subset": lambda: Subset(PAIRS, range(10)),
    "stream": Streamed,
    "polars": lambda: pl.DataFrame({"image": pl.Series(X), "label": LABELS}),
}


@pytest.mark.parametrize("form", FORMS)
def test_images_and_labels_are_stored(client: Client, form: str) -> None:
    client.put_dataset("intake", FORMS[form](), replace=True, progress=False)
    stored = client.dataset("intake")
    np.testing.assert_array_equal(stored.images, X)
    assert stored.labels.tolist() == LABELS
    client.delete_dataset("intake")


def test_fields_of_xarray(client: Client) -> None:
    field = xr.DataArray(np.random.default_rng(0).normal(0, 1, (6, 3, 8, 4)), dims=("time", "variable", "lat", "lon"))
    for given in (
        field,
        field.transpose("lat", "time", "variable", "lon"),
        field.to_dataset("variable").to_dataarray(),
    ):
        moved = given if given.dims[0] != "variable" else given.transpose("time", "variable", "lat", "lon")
        for form in (given, moved):
            client.put_dataset("fields", form, scale="measured", replace=True, progress=False)
            stored = client.dataset("fields")
            assert stored.layout == "CHW"
            np.testing.assert_array_equal(stored.images, field.values.astype(np.float32))
    variables = xr.Dataset({name: field[:, k] for k, name in enumerate("uvw")})
    with pytest.raises(AnisoflightError, match=r"got the variables u, v, w; put one of them, or to_dataarray"):
        client.put_dataset("fields", variables)
    client.delete_dataset("fields")


def test_what_is_missing_in_polars(client: Client) -> None:
    with pytest.raises(AnisoflightError, match="labels must have all values, got 1 missing"):
        client.put_dataset("intake", pl.DataFrame({"image": pl.Series(X), "label": [None, *LABELS[1:]]}))
    with pytest.raises(AnisoflightError, match="images must be a table that Arrow takes"):
        client.put_dataset("intake", pl.DataFrame({"image": pl.Series(X)}).lazy())
