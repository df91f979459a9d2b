"""A small unconditional UNet2DModel of diffusers, trained on scikit-learn's digits for about a minute."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from diffusers import DDPMScheduler, UNet2DModel
from sklearn.datasets import load_digits

Tensor = torch.Tensor
Batch = Callable[[Tensor, Tensor, torch.Generator], tuple[Tensor, Tensor, Tensor]]
"""Images and noise to what the network takes: noisy images and times, and what it should return."""


def digits() -> np.ndarray[Any, Any]:
    """[1797, 8, 8, 1] float32 in [−1, 1]."""
    return (load_digits().images[..., None] / 8 - 1).astype(np.float32)


def ddpm(config: dict[str, Any] | None = None) -> Batch:
    """The training of a DDPM: ε, or v, at times drawn uniformly."""
    noises = DDPMScheduler(**config or {})

    def batch(images: Tensor, noise: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        times = torch.randint(len(noises), (len(images),), generator=generator)
        noisy = noises.add_noise(images, noise, times)
        target = noise if noises.config.prediction_type == "epsilon" else noises.get_velocity(images, noise, times)
        return noisy, times, target

    return batch


def flow(images: Tensor, noise: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """The training of a rectified flow: ε − x_0 at shares of noise whose logits are normal."""
    share = torch.sigmoid(1.5 * torch.randn(len(images), generator=generator)).reshape(-1, 1, 1, 1)
    return (1 - share) * images + share * noise, 1000 * share.flatten(), noise - images


def trained(batch: Batch, steps: int, seed: int = 0, size: int = 64) -> UNet2DModel:
    """The moving average of a network's weights after so many steps of Adam."""
    torch.manual_seed(seed)
    network = UNet2DModel(
        sample_size=8,
        in_channels=1,
        out_channels=1,
        layers_per_block=1,
        block_out_channels=(24, 48),
        down_block_types=("DownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "UpBlock2D"),
        norm_num_groups=8,
        add_attention=False,
    )
    average = torch.optim.swa_utils.AveragedModel(
        network, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(max(0.0, 1 - 20 / steps))
    )
    images = torch.from_numpy(digits()).permute(0, 3, 1, 2)
    optimizer = torch.optim.Adam(network.parameters(), 1e-3)
    generator = torch.Generator().manual_seed(seed)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = 1e-3 * min(1, (step + 1) / 100) * (0.55 + 0.45 * math.cos(math.pi * step / steps))
        chosen = images[torch.randint(len(images), (size,), generator=generator)]
        noise = torch.randn(chosen.shape, generator=generator)
        noisy, times, target = batch(chosen, noise, generator)
        loss = torch.nn.functional.mse_loss(network(noisy, times).sample, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update_parameters(network)
    return average.module.eval().requires_grad_(False)
