"""Damage on the disk under a running server: named, listed, and nothing else is touched."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import anisoflight
from anisoflight.errors import DamagedError


def test_damage_under_a_live_server(tmp_path: Path) -> None:
    """Images are cut short while the server has them open, and weights change between two loads."""
    pixels = np.random.default_rng(0).integers(0, 256, (512, 16, 16, 3), np.uint8)
    with anisoflight.serve(data=tmp_path, listen="127.0.0.1:0") as client:
        client.put_dataset("whole", pixels[:8])
        client.put_dataset("images", pixels)
        assert len(client.dataset("images").images) == 512  # it lies open now
        images = tmp_path / "datasets" / "images" / "images.npy"
        os.truncate(images, 8192)
        with pytest.raises(DamagedError, match=r"images\.npy"):
            client.dataset("images")
        assert client.datasets().loc["images", "integrity"] == "damaged"
        assert "images.npy" in client.datasets().loc["images", "damage"]
        assert len(client.dataset("whole").images) == 8  # the server lives

        client.put_dataset("dots", np.eye(8, dtype=np.uint8).reshape(2, 2, 4, 4) * 200 + 20, labels=[0, 1])
        client.call("MakeModel", name="law", dataset="dots", floor=0.01)
        weights = tmp_path / "models" / "law" / "model.safetensors"
        whole = bytearray(weights.read_bytes())
        whole[-1] ^= 1
        client.call("UnloadModel", model="law")
        weights.write_bytes(whole)
        with pytest.raises(DamagedError, match=r"model\.safetensors"):
            client.load_model("law")
        client.delete_dataset("images")
        assert not images.parent.exists()
