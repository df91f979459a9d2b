"""The blocks of docs/ecosystem.md, in their order, with the packages that they import."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from diffusers import DDPMPipeline

if TYPE_CHECKING:
    from diffusers import UNet2DModel

    from anisoflight import Client

DOCUMENT = Path(__file__).parents[2] / "docs" / "ecosystem.md"


def test_blocks_of_the_document(
    client: Client, unet: UNet2DModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del unet
    monkeypatch.chdir(tmp_path)
    Path("out").mkdir()
    client.make_mixture("digits", "digits", covariance="dct", progress=False)
    names: dict[str, Any] = {"client": client}
    found = re.findall(r"^```python\n(.*?)^```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    for code in found:
        exec(compile(code, DOCUMENT.name, "exec"), names)
    assert sorted(path.name for path in Path("out").iterdir()) == [
        *("all.arrow", "all.npy", "all.npz", "all.parquet", "grid.png", "pipeline", "unipc-9.json", "weather.csv"),
    ]
    assert set(client.datasets().index) >= {"arrow", "pandas", "pillow", "huggingface", "drawn"}
    assert sorted(DDPMPipeline.from_pretrained("out/pipeline").scheduler.plans) == [5, 9]
    # The network of its loop is that of data of the normal law N(0, 1): what comes out is what went in, but for the
    # error of nine steps, which is one factor.
    np.testing.assert_array_equal(names["loop"].x, names["images"])
    grown = names["images"] / np.random.default_rng(0).standard_normal((4, 1, 8, 8))
    assert np.ptp(grown) < 1e-6
    assert 0.7 < grown.mean() < 1.5
