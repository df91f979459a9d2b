"""Small exported networks with what torch computes of them, for the Go tests of kernels/graphnet.

    python integration/network_fixtures.py ../kernels/graphnet/testdata

Each folder holds config.json and model.safetensors as `export` writes them, and io.safetensors: inputs x, noise, label,
u and z, and with f = ⟨u, F(x, noise, label)⟩ in float64

    F, grad_x = ∂f/∂x, double = ∂⟨grad_x, z⟩/∂x, grad_noise = ∂f/∂noise, and grad/NAME = ∂f/∂NAME in float32.

Diffusers computes the waves of a time embedding in float32 whatever the module's type, and EDM2 its norms; here they
are in float64.
"""

import math
import shutil
import sys
from pathlib import Path
from typing import Any

import diffusers.models.embeddings as embeddings
import torch
import zoo
from diffusers import DiTTransformer2DModel, UNet2DConditionModel, UNet2DModel
from safetensors.torch import save_file
from torch.nn.attention import SDPBackend, sdpa_kernel

from anisoflight.torch import export
from anisoflight.torch.program import PREFIX
from anisoflight.torch.wrapping import Wrapped

COUNT = 3


class SiT(torch.nn.Module):
    """A transformer on patches as SiT has it: sines of a time in [0, 1], adaptive norms, a table of classes with one
    row more for none."""

    def __init__(self, size: int = 8, channels: int = 2, width: int = 16, depth: int = 2, classes: int = 4) -> None:
        super().__init__()
        self.side, self.channels, self.heads, self.width = size // 2, channels, 2, width
        self.patch = torch.nn.Conv2d(channels, width, 2, stride=2)
        self.register_buffer("position", 0.3 * torch.randn(1, self.side**2, width))
        self.register_buffer("waves", torch.exp(-math.log(10000) * torch.arange(8) / 8), persistent=False)
        self.time = torch.nn.Sequential(torch.nn.Linear(16, width), torch.nn.SiLU(), torch.nn.Linear(width, width))
        self.classes = torch.nn.Embedding(classes + 1, width)
        self.blocks = torch.nn.ModuleList(
            torch.nn.ModuleDict(
                {
                    "norm1": torch.nn.LayerNorm(width, elementwise_affine=False, eps=1e-6),
                    "norm2": torch.nn.RMSNorm(width, eps=1e-6),
                    "qkv": torch.nn.Linear(width, 3 * width),
                    "out": torch.nn.Linear(width, width),
                    "up": torch.nn.Linear(width, 4 * width),
                    "down": torch.nn.Linear(4 * width, width),
                    "modulation": torch.nn.Linear(width, 4 * width),
                }
            )
            for _ in range(depth)
        )
        self.last = torch.nn.Linear(width, 4 * channels)

    def forward(self, x: torch.Tensor, noise: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        angle = 1000 * noise[:, None] * self.waves
        c = torch.nn.functional.silu(self.time(torch.cat([angle.cos(), angle.sin()], -1)) + self.classes(label))
        h = self.patch(x).flatten(2).transpose(1, 2) + self.position
        for block in self.blocks:
            shift, scale, gate, final = block["modulation"](c)[:, None].chunk(4, -1)
            q, k, v = block["qkv"](block["norm1"](h) * (1 + scale) + shift).chunk(3, -1)
            q, k, v = (y.unflatten(-1, (self.heads, -1)).transpose(1, 2) for y in (q, k, v))
            y = torch.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
            h = h + gate * block["out"](y)
            y = torch.nn.functional.gelu(block["up"](block["norm2"](h)), approximate="tanh")
            h = h + final * block["down"](y)
        y = self.last(h).unflatten(1, (self.side, self.side)).unflatten(-1, (2, 2, self.channels))
        return torch.einsum("bhwpqc->bchpwq", y).reshape(x.shape)


class Plain(torch.nn.Module):
    """What a person writes in an afternoon: convolutions of several kinds on images that are not square, and classes as
    a vector."""

    def __init__(self, channels: int = 2, width: int = 8, classes: int = 3) -> None:
        super().__init__()
        self.embed = torch.nn.Sequential(torch.nn.Linear(1, width), torch.nn.Mish(), torch.nn.Linear(width, width))
        self.classes = torch.nn.Linear(classes, width, bias=False)
        self.first = torch.nn.Conv2d(channels, width, 3, padding="same")
        self.depth = torch.nn.Conv2d(width, width, 3, padding=2, dilation=2, groups=width)
        self.group = torch.nn.Conv2d(width, width, 1, groups=2)
        self.norm = torch.nn.InstanceNorm2d(width, affine=True)
        self.down = torch.nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.up = torch.nn.ConvTranspose2d(2 * width, width, 4, stride=2, padding=1)
        self.skip = torch.nn.Parameter(torch.tensor(0.7))
        self.bias = torch.nn.Parameter(0.1 * torch.randn(1, width, 4, 6))
        self.last = torch.nn.Conv2d(width, channels * 4, 1)
        self.shuffle = torch.nn.PixelShuffle(2)
        self.drop = torch.nn.Dropout(0.1)

    def forward(self, x: torch.Tensor, noise_label: torch.Tensor, class_labels: torch.Tensor) -> torch.Tensor:
        emb = self.embed(noise_label[:, None]) + self.classes(class_labels)
        h = self.first(torch.nn.functional.pad(x, (1, 1, 0, 0))[..., 1:-1])
        h = self.drop(torch.nn.functional.softplus(self.norm(self.depth(h) + self.group(h)))) * (
            1 + emb[:, :, None, None]
        )
        y = self.up(torch.nn.functional.elu(self.down(h)))
        y = torch.where(y > 0.1, y.tanh(), 0.1 * y) + self.skip * h
        y = torch.nn.functional.avg_pool2d(y, 2) + self.bias.clamp(-1, 1)
        y = y / (y.pow(2).mean((1, 2, 3), keepdim=True) + 0.1).sqrt() + y.flip(3).var(1, keepdim=True)
        return self.shuffle(self.last(y)) + x.sigmoid().reciprocal() * emb.norm(dim=1)[:, None, None, None] / 9


def networks() -> dict[str, tuple[torch.nn.Module, dict[str, Any]]]:
    """Modules with random weights by name, with how to export them."""
    torch.manual_seed(0)
    levels: dict[str, Any] = {
        "block_out_channels": (8, 16),
        "layers_per_block": 1,
        "norm_num_groups": 4,
        "sample_size": 8,
    }
    down, up = ("DownBlock2D", "AttnDownBlock2D"), ("AttnUpBlock2D", "UpBlock2D")
    blocks: dict[str, Any] = {"down_block_types": down, "up_block_types": up, "attention_head_dim": 4, **levels}
    cross: dict[str, Any] = {
        "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
        "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"),
        "cross_attention_dim": 6,
        "attention_head_dim": 2,
        **levels,
    }
    old: dict[str, Any] = {"downsample_padding": 0, "flip_sin_to_cos": False, "freq_shift": 1}  # as google/ddpm-* have
    return {
        "unet": (UNet2DModel(in_channels=1, out_channels=1, num_class_embeds=5, **old, **blocks), {}),
        "unet-condition": (
            UNet2DConditionModel(in_channels=2, out_channels=2, **cross),
            {"conditions": torch.randn(3, 4, 6)},
        ),
        "dit": (
            DiTTransformer2DModel(
                num_attention_heads=2,
                attention_head_dim=8,
                in_channels=2,
                out_channels=4,
                num_layers=2,
                sample_size=8,
                patch_size=2,
                num_embeds_ada_norm=3,
                norm_num_groups=1,
            ),
            {},
        ),
        "sit": (SiT(), {"size": 8, "channels": 2, "labels": 4, "ratios_at": "time"}),
        "plain": (Plain(), {"size": (8, 12), "channels": 2, "labels": 3, "label": "onehot", "ratios_at": "embed"}),
        "edm2": (zoo.EDM2(), zoo.ONEHOT),
        "volume": (
            zoo.Around(
                3,
                torch.nn.BatchNorm3d,
                lambda _: torch.nn.MaxPool3d(2),
                zoo.upsample("trilinear"),
                activation=torch.nn.SiLU,
                padding_mode="circular",
            ),
            {"size": (2, 4, 6), "channels": 2},
        ),
    }


def waves(
    timesteps: torch.Tensor,
    embedding_dim: int,
    flip_sin_to_cos: bool = False,
    downscale_freq_shift: float = 1,
    scale: float = 1,
    max_period: int = 10000,
) -> torch.Tensor:
    """Diffusers' embedding of a time, in float64."""
    half = embedding_dim // 2
    rate = torch.exp(-math.log(max_period) * torch.arange(half, dtype=torch.float64) / (half - downscale_freq_shift))
    angle = scale * timesteps.double()[:, None] * rate
    parts = [angle.cos(), angle.sin()] if flip_sin_to_cos else [angle.sin(), angle.cos()]
    return torch.cat(parts, -1)


def computed(ask: Wrapped) -> dict[str, torch.Tensor]:
    """What io.safetensors holds; the module is left in float64."""
    module = ask.module.double().eval()
    draw = torch.Generator().manual_seed(1)

    def normal() -> torch.Tensor:
        return torch.randn(COUNT, ask.channels, ask.height, ask.width, dtype=torch.float64, generator=draw)

    x, u, z = normal().requires_grad_(), normal(), normal()
    noise = torch.tensor(
        [0.3, 0.9, 0.05] if ask.labels == 4 else [0.4, 11.5, 37.25], dtype=torch.float64, requires_grad=True
    )
    of_none = any("none" in args for _, args, _ in ask.examples)
    label = torch.tensor([1, -1 if of_none else 0, 2])
    out = ask.call(x, noise, label if ask.labels else None)
    named = {name.removeprefix(PREFIX): value for name, value in module.named_parameters()}
    grads = torch.autograd.grad((u * out).sum(), [x, noise, *named.values()], create_graph=True, allow_unused=True)
    double = torch.autograd.grad((grads[0] * z).sum(), x)[0]
    held = {"x": x, "noise": noise, "label": label, "u": u, "z": z, "F": out, "grad_x": grads[0], "double": double}
    held["grad_noise"] = grads[1]
    held.update({f"grad/{n}": g.float() for n, g in zip(named, grads[2:], strict=True) if g is not None})
    return {name: value.detach().contiguous() for name, value in held.items()}


def main() -> None:
    target = Path(sys.argv[1])
    for name, (module, how) in networks().items():
        zoo.spoil(module)
        exported = export(module, **how)
        shutil.rmtree(target / name, ignore_errors=True)
        exported.save(target / name)
        given = embeddings.get_timestep_embedding
        embeddings.get_timestep_embedding, zoo.SINGLE = waves, torch.float64
        with sdpa_kernel(SDPBackend.MATH):  # the one that torch can differentiate twice
            save_file(computed(exported.wrapped), target / name / "io.safetensors")
        embeddings.get_timestep_embedding, zoo.SINGLE = given, torch.float32
        parameters = sum(one.numel() for one in module.parameters())
        print(f"{name}: {parameters} parameters, {len(exported.config['graph']['nodes'])} nodes")


if __name__ == "__main__":
    main()
