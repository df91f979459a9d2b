"""Pictures without an image library."""

import base64
import io
import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from anisoflight import AnisoflightWarning, images
from anisoflight.wire.samples import Samples
from anisoflight.wire.tensors import table_of, tensor_column

ROOT = Path(__file__).parents[2]
pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_png_holds_the_pixels(channels: int) -> None:
    picture = np.random.default_rng(0).integers(0, 256, (5, 7, channels), np.uint8)
    read = np.rint(pyplot.imread(io.BytesIO(images.png(picture)), format="png") * 255).astype(np.uint8)
    np.testing.assert_array_equal(read.reshape(picture.shape), picture)


def test_grid_places_images_in_reading_order() -> None:
    numbers = np.arange(5, dtype=np.uint8)[:, None, None, None] * np.ones((1, 2, 2, 1), np.uint8)
    picture = images.grid(numbers, columns=3, gap=1)
    assert picture.shape == (5, 8, 1)
    assert [picture[0, 0, 0], picture[0, 3, 0], picture[0, 6, 0], picture[3, 0, 0]] == [0, 1, 2, 3]
    assert picture[2, 0, 0] == 255
    assert picture[3, 6, 0] == 255  # an empty place


def test_grid_takes_channels_first() -> None:
    chw = np.random.default_rng(1).integers(0, 256, (4, 3, 8, 8), np.uint8)
    np.testing.assert_array_equal(images.grid(chw), images.grid(np.moveaxis(chw, 1, 3)))


def test_bytes_and_floats_are_the_servers() -> None:
    """The server's own tests read the same file."""
    golden = json.loads((ROOT / "train/data/testdata/pixels.json").read_text())
    floats = images.to_float(np.arange(256, dtype=np.uint8))
    assert floats.dtype == np.float32
    np.testing.assert_array_equal(floats, np.array(golden["floats"], np.float32))
    assert images.to_uint8(floats).tolist() == list(range(256))
    given, pixels = np.array(golden["bytes"], np.float32).T
    np.testing.assert_array_equal(images.to_uint8(given), pixels)
    assert images.to_uint8(np.array([np.nan, np.inf, -np.inf], np.float32)).tolist() == [0, 255, 0]


def _samples(rows: int, previews: int = 0) -> Samples:
    total = rows + previews
    return Samples(
        table_of(
            {
                "index": pa.array(range(total), pa.int64()),
                "seed": pa.array(range(total), pa.uint64()),
                "label": pa.array([-1] * total, pa.int32()),
                "step": pa.array([2] * previews + [-1] * rows, pa.int32()),
                "nfe": pa.array([9] * total, pa.int32()),
                "sample": tensor_column(np.zeros((total, 8, 8, 1), np.uint8), "HWC"),
            }
        )
    )


def test_samples_show_themselves_in_a_notebook() -> None:
    html = _samples(6)._repr_html_()
    data = html.split("data:image/png;base64,")[1].split('"')[0]
    assert base64.b64decode(data).startswith(b"\x89PNG")
    assert "6×8×8×1 uint8" in html
    assert "no images" in _samples(0)._repr_html_()


def test_samples_keep_previews_apart() -> None:
    samples = _samples(rows=3, previews=2)
    assert samples.images.shape == (3, 8, 8, 1)
    assert samples.seeds.tolist() == [2, 3, 4]
    assert samples.previews["step"].to_pylist() == [2, 2]


def test_samples_that_cannot_be_shown_say_so(tmp_path, monkeypatch) -> None:
    pyplot.switch_backend("agg")
    pyplot.close("all")  # of other tests
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    monkeypatch.chdir(tmp_path)
    samples = _samples(2)
    with pytest.warns(AnisoflightWarning, match=r'no screen to show images on; save\("samples.png"\) writes them'):
        samples.show()
    assert not pyplot.get_fignums()
    samples.save("samples.png")
    assert (tmp_path / "samples.png").read_bytes().startswith(b"\x89PNG")
