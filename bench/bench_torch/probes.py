"""Two networks of diffusers, exported by `anisoflight.torch`: a UNet and a transformer, with random weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from pathlib import Path

    from anisoflight.torch import Exported

_UNET: dict[str, Any] = {
    "sample_size": 32,
    "in_channels": 3,
    "out_channels": 3,
    "layers_per_block": 2,
    "block_out_channels": (64, 128, 128),
    "down_block_types": ("DownBlock2D", "AttnDownBlock2D", "DownBlock2D"),
    "up_block_types": ("UpBlock2D", "AttnUpBlock2D", "UpBlock2D"),
    "attention_head_dim": 64,
}
_DIT: dict[str, Any] = {
    "sample_size": 32,
    "in_channels": 4,
    "out_channels": 4,
    "patch_size": 2,
    "num_layers": 4,
    "num_attention_heads": 4,
    "attention_head_dim": 64,
    "num_embeds_ada_norm": 10,
    "norm_num_groups": 1,
}
NAMES = ("diffusers-unet", "diffusers-dit")


class Imported(torch.nn.Module):
    """A module of diffusers as the server asks it, F(x, noise, label), always in evaluation mode."""

    sigma_data = 0.5

    def __init__(self, exported: Exported) -> None:
        super().__init__()
        self._ask = exported.wrapped
        self.module = exported.wrapped.module.eval()

    def train(self, mode: bool = True) -> Imported:
        """Neither network has dropout, and the transformer's of labels is not exported."""
        return super().train(False)

    def encoded(self, labels: Tensor) -> Tensor | None:
        return labels if self._ask.labels else None

    def trained(self) -> dict[str, Tensor]:
        return {name.removeprefix("module."): p for name, p in self.module.named_parameters()}

    def forward(self, x: Tensor, noise: Tensor, label: Tensor | None) -> Tensor:
        return self.module(x, noise) if label is None else self.module(x, noise, label)


def made(name: str) -> Exported:
    """The network of that name: the same weights every time, none of them zero."""
    from diffusers import DiTTransformer2DModel, UNet2DModel

    from anisoflight.torch import export

    torch.manual_seed(0)
    module = UNet2DModel(**_UNET) if name == "diffusers-unet" else DiTTransformer2DModel(**_DIT)
    with torch.no_grad():
        for p in module.parameters():
            p.add_(0.02 * torch.randn_like(p))
    return export(module)


def write(name: str, folder: Path) -> None:
    """Write its model folder."""
    made(name).save(folder)
