"""EDM's SongUNet in the form DDPM++, in PyTorch, with the parameter names of EDM's state dicts.

Written from Song et al. (arXiv 2011.13456) and Karras et al. (arXiv 2206.00364): as in kernels/unet, which says what
is computed. Up- and downsampling by [1, 1] is repetition and the mean of 2×2 pixels, for which PyTorch has faster
operations than the grouped convolutions that EDM uses.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

Config = dict[str, Any]

# EDM's defaults for the arguments that a config.json may leave out, and the only values that are built of the others.
_DEFAULTS: Config = {
    "channel_mult_emb": 4,
    "dropout": 0.10,
    "label_dim": 0,
    "augment_dim": 0,
    "sigma_data": 0.5,
    "label_dropout": 0,
}
_ONLY: Config = {
    "model_type": "SongUNet",
    "embedding_type": "positional",
    "channel_mult_noise": 1,
    "encoder_type": "standard",
    "decoder_type": "standard",
    "resample_filter": [1, 1],
    "ratio_embedding": 0,
}


def _norm(channels: int) -> nn.GroupNorm:
    return nn.GroupNorm(min(32, channels // 4), channels, eps=1e-6)


class Attention(nn.Module):
    """Self-attention of pixels with one head, the residual sum left to the block."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm2 = _norm(channels)
        self.qkv = nn.Conv2d(channels, 3 * channels, 1)
        self.proj = nn.Conv2d(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        batch, channels, height, width = x.shape
        q, k, v = self.qkv(self.norm2(x)).reshape(batch, channels, 3, height * width).unbind(2)  # [B, C, pixels]
        weights = torch.softmax(q.transpose(1, 2) @ k / math.sqrt(channels), dim=2)
        return self.proj((v @ weights.transpose(1, 2)).reshape(x.shape))


class Block(nn.Module):
    """The residual block; `resample` is "down", "up" or nothing."""

    def __init__(self, inputs: int, outputs: int, width: int, dropout: float, resample: str = "", attend: bool = False):
        super().__init__()
        self.resample, self.dropout = resample, dropout
        self.norm0 = _norm(inputs)
        self.conv0 = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.affine = nn.Linear(width, outputs)
        self.norm1 = _norm(outputs)
        self.conv1 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.skip = nn.Conv2d(inputs, outputs, 1) if resample or inputs != outputs else None
        self.attention = Attention(outputs) if attend else None

    def _resampled(self, x: Tensor) -> Tensor:
        if self.resample == "down":
            return functional.avg_pool2d(x, 2)
        if self.resample == "up":
            return functional.interpolate(x, scale_factor=2.0, mode="nearest")
        return x

    def forward(self, x: Tensor, embedding: Tensor) -> Tensor:
        y = self.conv0(self._resampled(functional.silu(self.norm0(x))))
        y = functional.silu(self.norm1(y + self.affine(embedding)[:, :, None, None]))
        y = self.conv1(functional.dropout(y, self.dropout, self.training))
        short = self.skip(self._resampled(x)) if self.skip is not None else x
        y = (y + short) * math.sqrt(0.5)
        return (self.attention(y) + y) * math.sqrt(0.5) if self.attention is not None else y


class SongUNet(nn.Module):
    """F(x, noise, label): the raw network, x [B, C, H, W] of unit variance, noise [B], label one-hot [B, L]."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        for name, only in _ONLY.items():
            if config.get(name, only) != only:
                raise ValueError(f"{name} is {config[name]!r}; only {only!r} is built in PyTorch")
        config = {**_DEFAULTS, **config}
        if config["label_dropout"]:
            raise ValueError("label_dropout is not built in PyTorch")
        base, side, dropout = config["model_channels"], config["img_resolution"], config["dropout"]
        width, colours = base * config["channel_mult_emb"], config["img_channels"]
        multiples, blocks, attended = config["channel_mult"], config["num_blocks"], config["attn_resolutions"]
        self.sigma_data = float(config["sigma_data"])
        self.labels = int(config["label_dim"])
        self.colours, self.side = colours, side

        exponents = torch.arange(base // 2, dtype=torch.float64) / (base // 2 - 1)
        self.register_buffer("frequencies", (10000**-exponents).float(), persistent=False)
        self.map_label = nn.Linear(self.labels, base) if self.labels else None
        self.map_augment = nn.Linear(config["augment_dim"], base, bias=False) if config["augment_dim"] else None
        self.map_layer0 = nn.Linear(base, width)
        self.map_layer1 = nn.Linear(width, width)

        def name(level: int, module: str) -> str:
            return f"{side >> level}x{side >> level}_{module}"

        self.enc, self.dec = nn.ModuleDict(), nn.ModuleDict()
        channels, skips = base, [base]
        for level, multiple in enumerate(multiples):
            if level == 0:
                self.enc[name(0, "conv")] = nn.Conv2d(colours, base, 3, padding=1)
            else:
                self.enc[name(level, "down")] = Block(channels, channels, width, dropout, "down")
                skips.append(channels)
            for i in range(blocks):
                attend = side >> level in attended
                self.enc[name(level, f"block{i}")] = Block(channels, base * multiple, width, dropout, attend=attend)
                channels = base * multiple
                skips.append(channels)
        for level, multiple in reversed(list(enumerate(multiples))):
            if level == len(multiples) - 1:
                self.dec[name(level, "in0")] = Block(channels, channels, width, dropout, attend=True)
                self.dec[name(level, "in1")] = Block(channels, channels, width, dropout)
            else:
                self.dec[name(level, "up")] = Block(channels, channels, width, dropout, "up")
            for i in range(blocks + 1):
                attend = side >> level in attended and i == blocks
                inputs, channels = channels + skips.pop(), base * multiple
                self.dec[name(level, f"block{i}")] = Block(inputs, channels, width, dropout, attend=attend)
        self.dec[name(0, "aux_norm")] = _norm(channels)
        self.dec[name(0, "aux_conv")] = nn.Conv2d(channels, colours, 3, padding=1)

    def _embedding(self, noise: Tensor, label: Tensor | None) -> Tensor:
        angle = noise[:, None] * self.frequencies
        e = torch.cat([angle.sin(), angle.cos()], 1)
        if self.map_label is not None and label is not None:
            e = e + self.map_label(label * math.sqrt(self.labels))
        return functional.silu(self.map_layer1(functional.silu(self.map_layer0(e))))

    def encoded(self, labels: Tensor) -> Tensor | None:
        """Labels [B] as [B, L], one-hot."""
        return functional.one_hot(labels, self.labels).float() if self.labels else None

    def trained(self) -> dict[str, Tensor]:
        """The parameters but those of augmentation, by their names in the state dict."""
        return {_state_name(n): p for n, p in self.named_parameters() if not n.startswith("map_augment")}

    def forward(self, x: Tensor, noise: Tensor, label: Tensor | None) -> Tensor:
        e = self._embedding(noise, label)
        skips = []
        for module in self.enc.values():
            x = module(x, e) if isinstance(module, Block) else module(x)
            skips.append(x)
        for module in self.dec.values():
            if isinstance(module, nn.GroupNorm):
                x = functional.silu(module(x))
            elif isinstance(module, nn.Conv2d):
                x = module(x)
            elif module.norm0.num_channels == x.shape[1]:
                x = module(x, e)
            else:
                x = module(torch.cat([x, skips.pop()], 1), e)
        return x


def _state_name(name: str) -> str:
    """The name in the state dict, if a block's attention has no name."""
    return "model." + name.replace(".attention.", ".")


def load(folder: Path) -> SongUNet:
    """The network of a model folder, for evaluation."""
    net = SongUNet(json.loads((folder / "config.json").read_text()))
    state = load_file(folder / "model.safetensors")
    constants = {name for name in state if name.endswith(".resample_filter")}
    own = {_state_name(name): name for name in net.state_dict()}
    net.load_state_dict({own[name]: value for name, value in state.items() if name not in constants})
    return net.eval()
