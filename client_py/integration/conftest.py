"""One server, and one network of diffusers, for all tests here."""

from collections.abc import Iterator

import pytest
import torch
from diffusers import UNet2DModel
from network import ddpm, digits, trained

import anisoflight

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
