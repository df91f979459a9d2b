"""Latents of an autoencoder, networks that see them, and pictures of their samples."""

from typing import Any

import numpy as np
import pytest
import torch
from diffusers import AutoencoderKL, DDPMScheduler, UNet2DModel
from network_fixtures import networks

from anisoflight import Client
from anisoflight.errors import AnisoflightError
from anisoflight.torch import Exported, Latents, export, parametrization

LEVELS: dict[str, Any] = {"layers_per_block": 1, "norm_num_groups": 4, "block_out_channels": (8, 16)}


@pytest.fixture(scope="module")
def vae() -> AutoencoderKL:
    """An autoencoder with random weights: 16×24 pixels to 8×12 latents of four channels."""
    torch.manual_seed(0)
    blocks: dict[str, Any] = {
        "down_block_types": ("DownEncoderBlock2D",) * 2,
        "up_block_types": ("UpDecoderBlock2D",) * 2,
    }
    return AutoencoderKL(latent_channels=4, scaling_factor=0.5, shift_factor=0.25, **blocks, **LEVELS)


def test_latents_train_and_come_back_as_images(client: Client, vae: AutoencoderKL) -> None:
    images = np.random.default_rng(0).integers(0, 256, (12, 16, 24, 3), np.uint8)
    latents = Latents(vae, batch=5)
    assert (latents.mean, latents.scale) == (0.25, 2.0)
    encoded = latents.encode(images)
    assert encoded.shape == (12, 8, 12, 4)
    with torch.no_grad():
        x = torch.from_numpy(images[:2].astype(np.float32) / 127.5 - 1).permute(0, 3, 1, 2)
        theirs = vae.encode(x).latent_dist.mean
        np.testing.assert_allclose(encoded[:2], theirs.permute(0, 2, 3, 1).numpy(), atol=1e-5)
        shown = vae.decode(theirs).sample.permute(0, 2, 3, 1).numpy()
    np.testing.assert_allclose(latents.decode(encoded[:2]), np.clip(np.rint(127.5 * shown + 127.5), 0, 255), atol=1)

    units: dict[str, Any] = {"mean": latents.mean, "scale": latents.scale}
    client.put_dataset("latents", encoded, layout="HWC", replace=True, progress=False, **units)
    unet = UNet2DModel(
        sample_size=(8, 12),
        in_channels=4,
        out_channels=4,
        add_attention=False,
        down_block_types=("DownBlock2D",) * 2,
        up_block_types=("UpBlock2D",) * 2,
        **LEVELS,
    )
    made = client.put_network(
        "latent-unet", unet, size=(8, 12), scheduler=DDPMScheduler(), replace=True, progress=False, **units
    )
    assert made["normalization"] == {"mean": [0.25] * 4, "scale": [2.0] * 4}
    run = client.create_run("latent-tuned", "pretrain", dataset="latents", model="latent-unet", batch=4, kimg=1.0)
    assert np.isfinite(run.step(2, progress=False)["loss"]).all()
    run.save("latent-tuned")
    drawn = client.sample("latent-tuned", n=2, nfe=3, solver="euler", decode=latents.decode, progress=False)
    assert drawn.images.shape == (2, 8, 12, 4)
    assert drawn.images.dtype == np.float32
    assert [image.size for image in drawn.to_pil()] == [(24, 16)] * 2
    np.testing.assert_array_equal(drawn.to_pictures()[0], latents.decode(drawn.images))


def test_images_are_taken_by_the_channels_of_the_autoencoder(vae: AutoencoderKL) -> None:
    images = np.random.default_rng(0).integers(0, 256, (2, 8, 4, 3), np.uint8)
    latents = Latents(torch.nn.DataParallel(vae))
    np.testing.assert_array_equal(latents.encode(np.moveaxis(images, 3, 1)), latents.encode(images))
    with pytest.raises(AnisoflightError, match=r"shape \[n, H, W, 3\] or \[n, 3, H, W\], got \(2, 8, 4, 2\)"):
        latents.encode(images[..., :2])


@pytest.fixture(scope="module")
def dit() -> Exported:
    module, how = networks()["dit"]
    return export(module, **how)


@pytest.mark.parametrize(
    "section",
    [
        {"kind": "vp"},
        {"kind": "vp", "beta_d": 10.0, "beta_min": 0.5, "steps": 500},
        {"kind": "ve"},
        {"kind": "edm", "sigma_data": 1.0},
        {"kind": "x0", "alphas_cumprod": [0.99, 0.9, 0.5, 0.1]},
        {"kind": "flow", "to_data": True},
        {"kind": "flow", "to_data": True, "steps": 1000},
        {"kind": "epsilon", "alphas_cumprod": [0.99, 0.9, 0.5, 0.1], "timesteps": [0, 10, 20, 40]},
        {"kind": "v", "alphas_cumprod": [0.99, 0.9, 0.5, 0.1, 0.0], "timesteps": [1, 2, 4, 8, 16]},
    ],
)
def test_every_parametrisation_is_compared_with_torch(client: Client, dit: Exported, section: dict[str, Any]) -> None:
    """put_network evaluates F and D itself, at the labels and with the numbers of the section."""
    exported = Exported({**dit.config, "parametrization": section}, dit.tensors, dit.wrapped)
    made = client.put_network("compared", exported, replace=True, progress=False)
    assert made["parametrization"] == section["kind"]


def test_an_older_model_stays_until_the_new_one_is_compared(client: Client) -> None:
    module, how = networks()["plain"]
    exported = export(module, parametrization=parametrization("edm"), **how)
    before = client.put_network("older", exported, replace=True, progress=False)
    changed: dict[str, Any] = {name: value + 0.01 for name, value in exported.tensors.items()}
    with pytest.raises(AnisoflightError, match=r"F of 'older' .* away from torch, relative"):
        client.put_network("older", Exported(exported.config, changed, exported.wrapped), replace=True, progress=False)
    assert client.describe_model("older")["hash"] == before["hash"]
    assert [name for name in client.models().index if name.startswith("older")] == ["older"]
    with torch.no_grad():
        for value in module.parameters():
            value.mul_(1.5)
    after = client.put_network("older", module, prediction="edm", replace=True, progress=False, **how)
    assert after["hash"] != before["hash"]
    assert [name for name in client.models().index if name.startswith("older")] == ["older"]
