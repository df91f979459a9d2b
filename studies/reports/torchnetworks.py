"""Networks in torch for studies.reports.diffusers: their structures, their training, and schedulers that say what they
predict. Nothing here knows of samplers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from diffusers import DDPMScheduler, FlowMatchEulerDiscreteScheduler, UNet2DModel
from torch.nn.functional import layer_norm, pixel_shuffle, pixel_unshuffle, scaled_dot_product_attention, silu

from studies.reports.diffuserspage import BATCH

if TYPE_CHECKING:
    from pathlib import Path

Tensor = torch.Tensor

CLASSES = 10
RATE, WARM, KEPT = 2e-3, 50, 100
"""The highest learning rate, steps until it, and steps between two states that are kept."""


class _Block(torch.nn.Module):
    """A transformer's block whose norms are moved, scaled and gated by the time."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.modulation = torch.nn.Linear(width, 6 * width)
        self.inputs, self.output = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.wide, self.narrow = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)
        torch.nn.init.zeros_(self.modulation.weight)
        torch.nn.init.zeros_(self.modulation.bias)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        move, scale, gate, move_wide, scale_wide, gate_wide = self.modulation(silu(time))[:, None].chunk(6, -1)
        count, tokens, width = x.shape
        held = self.inputs(layer_norm(x, [width]) * (1 + scale) + move)
        held = held.reshape(count, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        held = scaled_dot_product_attention(*held).transpose(1, 2).reshape(count, tokens, width)
        x = x + gate * self.output(held)
        held = self.wide(layer_norm(x, [width]) * (1 + scale_wide) + move_wide)
        return x + gate_wide * self.narrow(torch.nn.functional.gelu(held, approximate="tanh"))


class DiT(torch.nn.Module):
    """A diffusion transformer on patches of 2×2 of images [B, 3, 16, 16]; times are in [0, 1000]."""

    def __init__(self, width: int = 64, depth: int = 5, heads: int = 2) -> None:
        super().__init__()
        self.inputs, self.output = torch.nn.Linear(12, width), torch.nn.Linear(width, 12)
        self.places = torch.nn.Parameter(0.02 * torch.randn(64, width))
        self.time = torch.nn.Sequential(torch.nn.Linear(64, width), torch.nn.SiLU(), torch.nn.Linear(width, width))
        self.blocks = torch.nn.ModuleList(_Block(width, heads) for _ in range(depth))
        torch.nn.init.zeros_(self.output.weight)
        torch.nn.init.zeros_(self.output.bias)

    def forward(self, x: Tensor, timestep: Tensor) -> Tensor:
        waves = timestep[:, None] * torch.exp(-math.log(1e4) / 32 * torch.arange(32, device=x.device))
        time = self.time(torch.cat([waves.sin(), waves.cos()], 1))
        held = self.inputs(pixel_unshuffle(x, 2).flatten(2).transpose(1, 2)) + self.places
        for block in self.blocks:
            held = block(held, time)
        held = self.output(layer_norm(held, [held.shape[-1]]))
        return pixel_shuffle(held.transpose(1, 2).reshape(len(x), 12, 8, 8), 2)


def unet(**options: Any) -> UNet2DModel:
    """diffusers' UNet of two resolutions, 358 thousand parameters."""
    return UNet2DModel(
        sample_size=16,
        in_channels=3,
        out_channels=3,
        layers_per_block=1,
        block_out_channels=(24, 48),
        down_block_types=("DownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "UpBlock2D"),
        norm_num_groups=8,
        add_attention=False,
        **options,
    )


@dataclass(frozen=True)
class Kind:
    """A network: its structure, the scheduler that says what it predicts, and whether it has classes."""

    name: str
    made: Any
    scheduler: Any
    classes: bool = False

    def asked(self, network: torch.nn.Module, x: Tensor, time: Tensor, labels: Tensor | None) -> Tensor:
        """What the network returns."""
        found = network(x, time, labels) if self.classes else network(x, time)
        return found if isinstance(found, Tensor) else found.sample

    def example(self, images: Tensor, noise: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Noisy images, times, and what the network should return."""
        if isinstance(self.scheduler, FlowMatchEulerDiscreteScheduler):
            share = torch.sigmoid(1.2 * torch.randn(len(images), generator=generator)).reshape(-1, 1, 1, 1)
            return (1 - share) * images + share * noise, 1000 * share.flatten(), noise - images
        drawn = torch.rand(len(images), generator=generator)
        if self.scheduler.config.prediction_type == "epsilon":  # whose errors count most in x_0 at high noise levels
            drawn = drawn.sqrt()
        times = (len(self.scheduler) * drawn).long()
        noisy = self.scheduler.add_noise(images, noise, times)
        if self.scheduler.config.prediction_type == "epsilon":
            return noisy, times, noise
        return noisy, times, self.scheduler.get_velocity(images, noise, times)


KINDS = {
    kind.name: kind
    for kind in (
        Kind("UNet, ε", unet, DDPMScheduler()),
        Kind("DiT, flow", DiT, FlowMatchEulerDiscreteScheduler()),
        Kind(
            "conditional UNet, v",
            lambda: unet(num_class_embeds=CLASSES),
            DDPMScheduler(prediction_type="v_prediction"),
            classes=True,
        ),
    )
}


def trained(kind: Kind, file: Path, images: Tensor, labels: Tensor, steps: int, seed: int = 0) -> torch.nn.Module:
    """The moving average of a network's weights after some steps of Adam; training goes on from what `file` has.

    images [N, 3, 16, 16] in [−1, 1], half of them mirrored.
    """
    torch.manual_seed(seed)
    network = kind.made()
    average = torch.optim.swa_utils.AveragedModel(
        network, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(max(0.0, 1 - 20 / steps))
    )
    optimizer = torch.optim.Adam(network.parameters(), RATE)
    begun, losses = 0, []
    if file.exists():
        kept = torch.load(file, weights_only=True)
        network.load_state_dict(kept["network"])
        average.load_state_dict(kept["average"])
        optimizer.load_state_dict(kept["optimizer"])
        begun = kept["step"]
    for step in range(begun, steps):
        generator = torch.Generator().manual_seed(1_000_000 * seed + step)
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1, (step + 1) / WARM) * (0.505 + 0.495 * math.cos(math.pi * step / steps))
        chosen = torch.randint(len(images), (BATCH,), generator=generator)
        batch = images[chosen]
        batch[: BATCH // 2] = batch[: BATCH // 2].flip(-1)
        noisy, times, target = kind.example(batch, torch.randn(batch.shape, generator=generator), generator)
        with torch.autocast("cpu", torch.bfloat16):
            found = kind.asked(network, noisy, times, labels[chosen])
        loss = (found.float() - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        average.update_parameters(network)
        losses.append(loss.item())
        if (step + 1) % KEPT == 0 or step + 1 == steps:
            state = {"network": network.state_dict(), "average": average.state_dict(), "step": step + 1}
            file.parent.mkdir(parents=True, exist_ok=True)
            torch.save({**state, "optimizer": optimizer.state_dict()}, file.with_suffix(".part"))
            file.with_suffix(".part").replace(file)
            print(f"{kind.name}: step {step + 1} of {steps}, loss {sum(losses) / len(losses):.4f}", flush=True)
            losses = []
    return average.module.eval().requires_grad_(False)
