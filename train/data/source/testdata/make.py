"""Writes what the tests of package source read: files as Pillow, NumPy, pyarrow and pickle write them, and pixels.npz,
what Pillow decodes. Needs numpy, pillow and pyarrow."""

import io
import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import PIL.Image
import pyarrow as pa
import pyarrow.parquet as pq

here = Path(__file__).parent


def picture(height: int, width: int, seed: int = 0) -> np.ndarray:
    """Smooth colours with edges, as photographs have them."""
    y, x = np.mgrid[:height, :width] / height
    waves = [np.sin(2 * np.pi * (x * (c + 1) + y * (2 - c) + seed / 7)) for c in range(3)]
    return np.uint8(np.clip(128 + 90 * np.stack(waves, -1) + 30 * ((x + y) > 0.9)[..., None], 0, 255))


def encode(image: np.ndarray, kind: str, **options: object) -> bytes:
    out = io.BytesIO()
    PIL.Image.fromarray(image).save(out, kind, **options)
    return out.getvalue()


pixels = {}
colour = picture(24, 20)
alpha = np.dstack([colour, np.full((24, 20), 77, np.uint8)])
forms = {
    "colour.png": encode(colour, "png"),
    "alpha.png": encode(alpha, "png"),
    "grey.png": encode(colour[..., 0], "png"),
    "lossless.webp": encode(colour, "webp", lossless=True),
    "full.jpg": encode(colour, "jpeg", quality=90, subsampling=0),
    "halved.jpg": encode(colour, "jpeg", quality=90, subsampling=2),
    "grey.jpg": encode(colour[..., 0], "jpeg", quality=90),
}
palette = io.BytesIO()
PIL.Image.fromarray(colour).quantize(16).save(palette, "png")
forms["palette.png"] = palette.getvalue()
with zipfile.ZipFile(here / "forms.zip", "w", zipfile.ZIP_DEFLATED) as z:
    for name, content in forms.items():
        z.writestr(name, content)
        image = PIL.Image.open(io.BytesIO(content))
        pixels[name] = np.asarray(image if image.mode == "L" else image.convert("RGB"))
np.savez_compressed(here / "pixels.npz", **pixels)

small = np.stack([picture(4, 5, seed) for seed in range(3)])
labels = np.array([2, 0, 1])
np.savez_compressed(here / "named.npz", images=small, labels=labels)
np.savez(here / "positional.npz", np.moveaxis(small, 3, 1).copy(), labels)
with zipfile.ZipFile(here / "edm.zip", "w", zipfile.ZIP_STORED) as z:
    names = [f"00000/img{i:08d}.png" for i in range(3)]
    for name, image in zip(names, small, strict=True):
        z.writestr(name, encode(image, "png", compress_level=0))
    z.writestr("dataset.json", json.dumps({"labels": [[n, int(k)] for n, k in zip(names, labels, strict=True)]}))

table = pa.table({"image": pa.FixedShapeTensorArray.from_numpy_ndarray(small), "label": pa.array(labels)})
pq.write_table(table, here / "tensors.parquet", compression="zstd")
with pa.ipc.new_file(here / "tensors.arrow", table.schema) as file:
    file.write_table(table, max_chunksize=2)
with pa.ipc.new_stream(here / "tensors.arrows", table.schema) as stream:
    stream.write_table(table)
encoded = pa.array([{"bytes": encode(image, "png"), "path": None} for image in small])
pq.write_table(pa.table({"img": encoded, "label": pa.array(labels)}), here / "encoded.parquet")

batch = {
    b"data": np.tile(np.arange(2, dtype=np.uint8)[:, None], (1, 3072)),
    b"labels": [6, 9],
    b"filenames": [b"a", b"b"],
}
for protocol in (2, 4):
    with open(here / f"batch-protocol{protocol}", "wb") as f:
        pickle.dump(batch, f, protocol=protocol)
