"""One server, and one network of diffusers, for all tests here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from network import ddpm, digits, trained

import anisoflight

if TYPE_CHECKING:
    from collections.abc import Iterator

    from diffusers import UNet2DModel

STEPS = 400  # of training: half a minute of one core


@pytest.fixture(scope="session")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[anisoflight.Client]:
    with anisoflight.serve(data=tmp_path_factory.mktemp("data")) as client:
        client.put_dataset("digits", digits(), progress=False)
        yield client


@pytest.fixture(scope="session")
def unet() -> UNet2DModel:
    """An ε network of DDPM."""
    torch.set_num_threads(1)
    return trained(ddpm(), STEPS)
