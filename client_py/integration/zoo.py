"""Denoisers as people write them: one small module of each structure, with random weights.

What belongs to a package that is not installed here is rewritten with the package's structure. `ROWS` says why each
one is in the zoo, how it is sent, and of those that are refused what the error says.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import diffusers
import numpy as np
import torch
from torch import nn
from torch.nn import functional

Tensor = torch.Tensor
SINGLE = torch.float32  # in which EDM2 normalises; network_fixtures.py needs it in float64


@dataclass
class Row:
    """One module of the zoo."""

    why: str
    make: Callable[[], nn.Module]
    how: dict[str, Any] = field(default_factory=lambda: {"size": 8, "channels": 2})
    refused: str = ""


def spoil(module: nn.Module) -> nn.Module:
    """The module without zeros that hide what a rule does, and with statistics that are not those of white noise."""
    with torch.no_grad():
        for one in module.parameters():
            one.add_(0.05 * torch.randn_like(one))
        for name, one in module.named_buffers():
            if name.endswith(("running_mean", "running_var")):
                one.add_(torch.rand_like(one))
    return module


class Waves(nn.Module):
    """Sines and cosines of a time, and a layer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width, self.layer = width, nn.Linear(width, width)

    def forward(self, time: Tensor) -> Tensor:
        rate = torch.exp(-math.log(1000) * torch.arange(self.width // 2).to(time) / (self.width // 2))
        angle = time[:, None] * rate
        return functional.silu(self.layer(torch.cat([angle.sin(), angle.cos()], 1)))


class Timed(nn.Module):
    """A network of images alone, whose time scales its output: how a backbone of another task becomes a denoiser."""

    def __init__(self, network: nn.Module, channels: int = 2) -> None:
        super().__init__()
        self.network, self.time, self.gain = network, Waves(8), nn.Linear(8, channels)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        y = self.network(x)
        return y * (1 + self.gain(self.time(time)).reshape(*y.shape[:2], *[1] * (y.ndim - 2)))


class Lambda(nn.Module):
    """A forward pass in one expression of x and submodules."""

    def __init__(self, compute: Callable[..., Tensor], *modules: nn.Module) -> None:
        super().__init__()
        self.compute, self.parts = compute, nn.ModuleList(modules)

    def forward(self, x: Tensor) -> Tensor:
        return self.compute(x, *self.parts)


def timed(compute: Callable[..., Tensor], *modules: nn.Module, channels: int = 2) -> Callable[[], nn.Module]:
    return lambda: Timed(Lambda(compute, *modules), channels)


def normalize(x: Tensor, dim: list[int] | None = None, eps: float = 1e-4) -> Tensor:
    """EDM2: to a root mean square of one."""
    dim = list(range(1, x.ndim)) if dim is None else dim
    norm = torch.linalg.vector_norm(x, dim=dim, keepdim=True, dtype=SINGLE)
    norm = torch.add(eps, norm, alpha=np.sqrt(norm.numel() / x.numel()))
    return x / norm.to(x.dtype)


def resample(x: Tensor, mode: str) -> Tensor:
    """EDM2: halving and doubling by a filter, as convolutions in groups."""
    if mode == "keep":
        return x
    f = np.float32([1, 1])
    kernel = torch.from_numpy(np.outer(f, f) / f.sum() ** 2)[None, None].to(x)
    kernel = kernel.tile([x.shape[1], 1, 1, 1])
    if mode == "down":
        return functional.conv2d(x, kernel, groups=x.shape[1], stride=2, padding=0)
    return functional.conv_transpose2d(x, kernel * 4, groups=x.shape[1], stride=2, padding=0)


def mp_silu(x: Tensor) -> Tensor:
    return functional.silu(x) / 0.596


def mp_sum(a: Tensor, b: Tensor, t: float = 0.5) -> Tensor:
    return a.lerp(b, t) / np.sqrt((1 - t) ** 2 + t**2)


def mp_cat(a: Tensor, b: Tensor, t: float = 0.5) -> Tensor:
    na, nb = a.shape[1], b.shape[1]
    c = np.sqrt((na + nb) / ((1 - t) ** 2 + t**2))
    return torch.cat([c / np.sqrt(na) * (1 - t) * a, c / np.sqrt(nb) * t * b], dim=1)


class MPConv(nn.Module):
    """EDM2: a layer whose weights are normalised in every forward pass, and in training by force."""

    def __init__(self, inputs: int, outputs: int, *kernel: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs, *kernel))

    def forward(self, x: Tensor, gain: Any = 1) -> Tensor:
        w = self.weight.to(SINGLE)
        if self.training:
            with torch.no_grad():
                self.weight.copy_(normalize(w))
        w = (normalize(w) * (gain / np.sqrt(w[0].numel()))).to(x.dtype)
        if w.ndim == 2:
            return x @ w.t()
        return functional.conv2d(x, w, padding=(w.shape[-1] // 2,))


class MPFourier(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("freqs", 2 * np.pi * torch.randn(width))
        self.register_buffer("phases", 2 * np.pi * torch.rand(width))

    def forward(self, x: Tensor) -> Tensor:
        y = x.to(SINGLE).ger(self.freqs.to(SINGLE)) + self.phases.to(SINGLE)
        return (y.cos() * np.sqrt(2)).to(x.dtype)


class EDM2Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, emb: int, mode: str, up: bool, heads: int) -> None:
        super().__init__()
        self.mode, self.up, self.heads = mode, up, heads
        self.emb_gain = nn.Parameter(torch.full([], 0.3))
        self.conv_res0 = MPConv(inputs if up else outputs, outputs, 3, 3)
        self.emb_linear = MPConv(emb, outputs)
        self.conv_res1 = MPConv(outputs, outputs, 3, 3)
        self.conv_skip = MPConv(inputs, outputs, 1, 1) if inputs != outputs else None
        self.attn_qkv = MPConv(outputs, outputs * 3, 1, 1) if heads else None
        self.attn_proj = MPConv(outputs, outputs, 1, 1) if heads else None

    def forward(self, x: Tensor, emb: Tensor) -> Tensor:
        x = resample(x, self.mode)
        if not self.up:
            x = normalize(x if self.conv_skip is None else self.conv_skip(x), dim=[1])
        y = self.conv_res0(mp_silu(x))
        c = self.emb_linear(emb, gain=self.emb_gain) + 1
        y = self.conv_res1(mp_silu(y * c.unsqueeze(2).unsqueeze(3).to(y.dtype)))
        x = mp_sum(self.conv_skip(x) if self.up and self.conv_skip is not None else x, y, t=0.3)
        if self.attn_qkv is not None and self.attn_proj is not None:
            y = self.attn_qkv(x)
            y = y.reshape(y.shape[0], self.heads, -1, 3, y.shape[2] * y.shape[3])
            q, k, v = normalize(y, dim=[2]).unbind(3)
            w = torch.einsum("nhcq,nhck->nhqk", q, k / np.sqrt(q.shape[2])).softmax(dim=3)
            y = torch.einsum("nhqk,nhck->nhcq", w, v)
            x = mp_sum(x, self.attn_proj(y.reshape(*x.shape)), t=0.3)
        return x.clip_(-256, 256)


class EDM2(nn.Module):
    """The network of EDM2 with one block a level: magnitudes are preserved by construction."""

    def __init__(self, channels: int = 2, labels: int = 3, width: int = 8) -> None:
        super().__init__()
        self.out_gain = nn.Parameter(torch.full([], 0.7))
        self.emb_fourier = MPFourier(width)
        self.emb_noise, self.emb_label = MPConv(width, 16), MPConv(labels, 16)
        self.enc_in = MPConv(channels + 1, width, 3, 3)
        self.enc = nn.ModuleList(
            [EDM2Block(width, width, 16, "keep", False, 0), EDM2Block(width, 2 * width, 16, "down", False, 2)]
        )
        self.dec = nn.ModuleList(
            [
                EDM2Block(4 * width, 2 * width, 16, "keep", True, 2),
                EDM2Block(2 * width, 2 * width, 16, "up", True, 0),
                EDM2Block(3 * width, width, 16, "keep", True, 0),
            ]
        )
        self.dec_out = MPConv(2 * width, channels, 3, 3)

    def forward(self, x: Tensor, noise_labels: Tensor, class_labels: Tensor) -> Tensor:
        emb = self.emb_noise(self.emb_fourier(noise_labels))
        emb = mp_silu(mp_sum(emb, self.emb_label(class_labels * np.sqrt(class_labels.shape[1])), t=0.5))
        x = self.enc_in(torch.cat([x, torch.ones_like(x[:, :1])], dim=1))
        skips = [x]
        for block in self.enc:
            skips.append(x := block(x, emb))
        for block in self.dec:
            x = block(x if block.mode == "up" else mp_cat(x, skips.pop(), t=0.5), emb)
        return self.dec_out(mp_cat(x, skips.pop()), gain=self.out_gain)


class SongBlock(nn.Module):
    """EDM's block: resampling by filters in groups, adaptive scale and shift, attention by einsum."""

    def __init__(self, inputs: int, outputs: int, emb: int, mode: str = "keep", heads: int = 0) -> None:
        super().__init__()
        self.mode, self.heads = mode, heads
        self.norm0, self.norm1 = nn.GroupNorm(2, inputs), nn.GroupNorm(2, outputs)
        self.conv0, self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1), nn.Conv2d(outputs, outputs, 3, padding=1)
        self.affine, self.skip = nn.Linear(emb, 2 * outputs), nn.Conv2d(inputs, outputs, 1)
        self.qkv, self.proj = nn.Conv2d(outputs, 3 * outputs, 1), nn.Conv2d(outputs, outputs, 1)
        f = torch.tensor([1.0, 3.0, 3.0, 1.0])
        self.register_buffer("filter", f.ger(f).unsqueeze(0).unsqueeze(1) / f.sum().square())

    def filtered(self, x: Tensor) -> Tensor:
        taps = self.filter.tile([x.shape[1], 1, 1, 1])
        if self.mode == "down":
            return functional.conv2d(x, taps, groups=x.shape[1], stride=2, padding=1)
        if self.mode == "up":
            return functional.conv_transpose2d(x, taps.mul(4), groups=x.shape[1], stride=2, padding=1)
        return x

    def forward(self, x: Tensor, emb: Tensor) -> Tensor:
        y = self.conv0(self.filtered(functional.silu(self.norm0(x))))
        scale, shift = self.affine(emb).unsqueeze(2).unsqueeze(3).chunk(chunks=2, dim=1)
        y = self.conv1(functional.silu(torch.addcmul(shift, self.norm1(y), scale + 1)))
        x = y.add_(self.skip(self.filtered(x))) * np.sqrt(0.5)
        if self.heads:
            q, k, v = self.qkv(x).reshape(x.shape[0] * self.heads, -1, 3, x.shape[2] * x.shape[3]).unbind(2)
            w = torch.einsum("ncq,nck->nqk", q, k / np.sqrt(k.shape[1])).softmax(dim=2)
            x = self.proj(torch.einsum("nqk,nck->ncq", w, v).reshape(*x.shape)).add_(x) * np.sqrt(0.5)
        return x


class Song(nn.Module):
    """EDM's DDPM++ with labels, and what PhysicsNeMo adds: a grid of places beside the image."""

    def __init__(self, grid: bool = False) -> None:
        super().__init__()
        self.time, self.labels = Waves(8), nn.Linear(3, 8)
        self.place = nn.Parameter(torch.randn(2, 8, 8)) if grid else None
        self.first = nn.Conv2d(4 if grid else 2, 8, 3, padding=1)
        self.down, self.middle = SongBlock(8, 16, 8, "down"), SongBlock(16, 16, 8, heads=2)
        self.up, self.last = SongBlock(16, 8, 8, "up"), nn.Conv2d(16, 2, 3, padding=1)

    def forward(self, x: Tensor, noise: Tensor, label: Tensor) -> Tensor:
        emb = self.time(noise) + self.labels(label * np.sqrt(self.labels.in_features))
        if self.place is not None:
            x = torch.cat([x, self.place[None].expand(x.shape[0], -1, -1, -1)], dim=1)
        h = self.first(x)
        y = self.up(self.middle(self.down(h, emb), emb), emb)
        return self.last(torch.cat([h, y], 1))


class Around(nn.Module):
    """A U-Net in one, two or three axes with the parts that it is given: norms, pools, ways up, borders."""

    def __init__(
        self,
        axes: int = 2,
        norm: Callable[[int], nn.Module] = lambda c: nn.GroupNorm(2, c),
        down: Callable[[int], nn.Module] | None = None,
        up: Callable[[int], nn.Module] | None = None,
        channels: int = 2,
        activation: Callable[[], nn.Module] = nn.ReLU,
        **borders: Any,
    ) -> None:
        super().__init__()
        conv = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[axes - 1]
        back = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)[axes - 1]

        def block(inputs: int, outputs: int) -> nn.Module:
            return nn.Sequential(conv(inputs, outputs, 3, padding=1, **borders), norm(outputs), activation())

        self.time, self.shift = Waves(8), nn.Linear(8, 16)
        self.first, self.low, self.high = block(channels, 8), block(16, 16), block(16, 8)
        self.down = nn.Sequential(down(8), conv(8, 16, 1)) if down else conv(8, 16, 4, stride=2, padding=1)
        self.up = nn.Sequential(conv(16, 8, 1), up(8)) if up else back(16, 8, 4, stride=2, padding=1)
        self.last = conv(8, channels, 1)

    def forward(self, x: Tensor, noise: Tensor) -> Tensor:
        h = self.first(x)
        y = self.down(h)
        y = self.low(y + self.shift(self.time(noise)).reshape(*y.shape[:2], *[1] * (y.ndim - 2)))
        return self.last(self.high(torch.cat([h, self.up(y)], 1)))


class Diffuser1D(nn.Module):
    """A planner of trajectories: 1-D convolutions with Mish, FiLM of the time, and doubling by transposed ones."""

    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Sequential(Waves(8), nn.Linear(8, 16), nn.Mish(), nn.Linear(16, 16))
        self.first = nn.Sequential(nn.Conv1d(3, 8, 5, padding=2), nn.GroupNorm(4, 8), nn.Mish())
        self.down, self.up = nn.Conv1d(8, 8, 3, 2, 1), nn.ConvTranspose1d(8, 8, 4, 2, 1)
        self.last = nn.Conv1d(16, 3, 1)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        scale, shift = self.time(time)[..., None].chunk(2, 1)
        h = self.first(x) * (1 + scale) + shift
        return self.last(torch.cat((h, self.up(functional.mish(self.down(h)))), dim=1))


class WaveNet(nn.Module):
    """DiffWave: dilated 1-D convolutions with gates, residuals over √2, skips summed."""

    def __init__(self) -> None:
        super().__init__()
        self.time, self.first = Waves(8), nn.Conv1d(1, 8, 1)
        self.dilated = nn.ModuleList(nn.Conv1d(8, 16, 3, padding=2**i, dilation=2**i) for i in range(3))
        self.out, self.last = nn.ModuleList(nn.Conv1d(8, 16, 1) for _ in range(3)), nn.Conv1d(8, 1, 1)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        h, total, t = self.first(x).relu(), 0, self.time(time)[..., None]
        for conv, out in zip(self.dilated, self.out, strict=True):
            gate, value = conv(h + t).chunk(2, 1)
            residual, skip = out(gate.sigmoid() * value.tanh()).chunk(2, 1)
            h, total = (h + residual) / math.sqrt(2.0), total + skip
        return self.last(total / math.sqrt(3.0))


class LinearAttention(nn.Module):
    """lucidrains': softmaxes of queries and keys apart, tokens of memory, RMS norm over channels."""

    def __init__(self, width: int, heads: int = 2) -> None:
        super().__init__()
        self.heads, self.gain = heads, nn.Parameter(torch.ones(1, width, 1, 1))
        self.memory = nn.Parameter(torch.randn(2, heads, width, 4))
        self.qkv, self.out = nn.Conv2d(width, 3 * heads * width, 1, bias=False), nn.Conv2d(heads * width, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = functional.normalize(x, dim=1) * self.gain * x.shape[1] ** 0.5
        q, k, v = (p.flatten(2).unflatten(1, (self.heads, -1)) for p in self.qkv(y).chunk(3, dim=1))
        mk, mv = (m[None].expand(x.shape[0], -1, -1, -1) for m in self.memory)
        k, v = torch.cat((mk, k), dim=-1), torch.cat((mv, v), dim=-1)
        context = torch.einsum("bhdn,bhen->bhde", k.softmax(dim=-1), v)
        y = torch.einsum("bhde,bhdn->bhen", context, q.softmax(dim=-2) * x.shape[1] ** -0.5)
        return x + self.out(y.flatten(1, 2).unflatten(2, x.shape[2:]))


class Standardized(nn.Conv2d):
    """A convolution whose weights are standardised in every forward pass."""

    def forward(self, x: Tensor) -> Tensor:
        variance, mean = torch.var_mean(self.weight, dim=(1, 2, 3), keepdim=True, correction=0)
        return functional.conv2d(x, (self.weight - mean) * (variance + 1e-5).rsqrt(), self.bias, padding=1)


class Window(nn.Module):
    """Swin: attention in shifted windows, with a table of relative positions and a mask made by writing into slices."""

    def __init__(self, width: int = 8, side: int = 8, window: int = 4) -> None:
        super().__init__()
        self.window, self.first = window, nn.Conv2d(2, width, 1)
        self.qkv, self.norm, self.last = nn.Linear(width, 3 * width), nn.LayerNorm(width), nn.Conv2d(width, 2, 1)
        self.table = nn.Parameter(torch.randn((2 * window - 1) ** 2, 1))
        place = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(1)
        apart = (place[:, :, None] - place[:, None, :]).permute(1, 2, 0) + window - 1
        self.register_buffer("index", apart[..., 0] * (2 * window - 1) + apart[..., 1])
        part = torch.zeros(1, side, side, 1)
        for i, rows in enumerate((slice(0, -window), slice(-window, -2), slice(-2, None))):
            for j, columns in enumerate((slice(0, -window), slice(-window, -2), slice(-2, None))):
                part[:, rows, columns] = 3 * i + j
        part = self.cut(part).squeeze(-1)
        self.register_buffer("mask", (part[:, None] - part[:, :, None]).ne(0) * -100.0)

    def cut(self, x: Tensor) -> Tensor:
        w, (b, h, v, c) = self.window, x.shape
        return x.view(b, h // w, w, v // w, w, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, w * w, c)

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x).permute(0, 2, 3, 1)
        b, side, _, c = h.shape
        y = self.cut(torch.roll(self.norm(h), shifts=(-2, -2), dims=(1, 2)))
        q, k, v = self.qkv(y).chunk(3, -1)
        w = q @ k.transpose(-2, -1) / c**0.5 + self.table[self.index.view(-1)].view(1, *self.index.shape)
        w = (w.view(b, -1, *w.shape[1:]) + self.mask[None]).view(w.shape).softmax(-1)
        n = side // self.window
        y = (w @ v).view(b, n, n, self.window, self.window, c).permute(0, 1, 3, 2, 4, 5).reshape(b, side, side, c)
        return self.last((h + torch.roll(y, shifts=(2, 2), dims=(1, 2))).permute(0, 3, 1, 2))


class Tokens(nn.Module):
    """Layers on tokens [B, N, C] of patches: of a ViT, a mixer, PyTorch's encoder."""

    def __init__(self, layers: nn.Module, width: int = 16, places: bool = True) -> None:
        super().__init__()
        self.patch, self.layers = nn.Conv2d(2, width, 2, stride=2), layers
        self.place = nn.Parameter(torch.randn(1, 16, width)) if places else None
        self.time, self.last = Waves(width), nn.Linear(width, 8)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        h = self.patch(x).flatten(2).transpose(1, 2)
        h = h if self.place is None else h + self.place
        h = self.layers(torch.cat([self.time(time)[:, None], h], 1))[:, 1:]
        y = self.last(h).view(-1, 4, 4, 2, 2, 2).permute(0, 5, 1, 3, 2, 4)
        return y.reshape(x.shape)


class Rotary(nn.Module):
    """Attention with rotary places, of pairs of channels, keys and queries of unit length, written in place."""

    def __init__(self, width: int = 16, heads: int = 2) -> None:
        super().__init__()
        self.heads, self.norm = heads, nn.RMSNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.scale = nn.Parameter(torch.ones(2, 1, 1))
        self.gate, self.up, self.down = nn.Linear(width, 32), nn.Linear(width, 32), nn.Linear(32, width)

    def turned(self, x: Tensor) -> Tensor:
        n, c = x.shape[-2:]
        angle = torch.arange(n)[:, None] * 100.0 ** (-torch.arange(0, c, 2) / c)
        even, odd = x[..., 0::2], x[..., 1::2]
        out = torch.empty_like(x)
        out[..., 0::2] = even * angle.cos() - odd * angle.sin()
        out[..., 1::2] = even * angle.sin() + odd * angle.cos()
        return out

    def forward(self, h: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm(h)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        q, k = (self.turned(functional.normalize(y, dim=-1)) for y in (q, k))
        y = functional.scaled_dot_product_attention(q * self.scale.exp(), k, v, scale=1.0)
        h = h + self.out(y.transpose(1, 2).flatten(2))
        return h + self.down(functional.silu(self.gate(h)) * self.up(h))


class Mixer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.channels, self.norm = nn.Linear(17, 17), nn.Linear(16, 16), nn.LayerNorm(16)

    def forward(self, h: Tensor) -> Tensor:
        h = h + functional.gelu(self.tokens(self.norm(h).transpose(1, 2))).transpose(1, 2)
        return h + functional.gelu(self.channels(self.norm(h)))


class Response(nn.Module):
    """ConvNeXt V2: depthwise 7×7, channels last, and normalisation of the response of each channel."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.depth, self.norm = nn.Conv2d(width, width, 7, padding=3, groups=width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.gamma, self.beta = nn.Parameter(torch.rand(4 * width)), nn.Parameter(torch.rand(4 * width))

    def forward(self, x: Tensor) -> Tensor:
        h = functional.gelu(self.up(self.norm(self.depth(x).permute(0, 2, 3, 1))))
        g = torch.norm(h, p=2, dim=(1, 2), keepdim=True)
        h = h + self.gamma * (h * (g / (g.mean(dim=-1, keepdim=True) + 1e-6))) + self.beta
        return x + self.down(h).permute(0, 3, 1, 2)


class Squeeze(nn.Module):
    """MobileNet: batch norm, depthwise convolution, squeeze and excitation, hard activations."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, 16, 1, bias=False), nn.BatchNorm2d(16), nn.Hardswish(),
            nn.Conv2d(16, 16, 3, padding=1, groups=16, bias=False), nn.BatchNorm2d(16), nn.ReLU6(),
        )  # fmt: skip
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(16, 4, 1), nn.ReLU(), nn.Conv2d(4, 16, 1), nn.Hardsigmoid()
        )
        self.last = nn.Conv2d(16, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.body(x)
        return x + self.last(y * self.gate(y))


class Globe(nn.Module):
    """A weather model: circles of latitude close, the poles are repeated, fields of ±1 pixel are cut off again."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(5, 8, 3), nn.Conv2d(8, 5, 3)
        self.time, self.gain = Waves(8), nn.Linear(8, 8)

    def padded(self, x: Tensor) -> Tensor:
        x = functional.pad(x, (1, 1, 0, 0), mode="circular")
        return functional.pad(x, (0, 0, 1, 1), mode="replicate")

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        h = functional.gelu(self.first(self.padded(x)) + self.gain(self.time(time))[:, :, None, None])
        return self.last(self.padded(h))


class Written(nn.Module):
    """Copies into slices of a buffer: channels, every second pixel, a border of ones, sums in place."""

    def __init__(self) -> None:
        super().__init__()
        self.mix, self.gain = nn.Conv2d(3, 2, 3, padding=1), nn.Parameter(torch.rand(2))

    def forward(self, x: Tensor) -> Tensor:
        y = x.new_zeros(x.shape[0], 3, 10, 10)
        y[:, :2, 1:-1, 1:-1].copy_(x)
        y[:, 2] = 1
        y[:, 0, ::2, 1::3] += x[:, 1, :5, :3].mean((1, 2))[:, None, None]
        y[:, :2] *= self.gain[:, None, None]
        return self.mix(y)[:, :, 1:9, 1:-1]


class Context(nn.Module):
    """Your own network with a context by keyword: cross-attention, and numbers that all labels share."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last, self.time = nn.Conv2d(2, 8, 1), nn.Conv2d(8, 2, 1), Waves(8)
        self.cross = nn.MultiheadAttention(8, 2, kdim=5, vdim=5, batch_first=True)

    def forward(self, x: Tensor, noise: Tensor, *, context: Tensor, dose: Tensor) -> Tensor:
        h = self.first(x) + (self.time(noise) * dose[:, None])[:, :, None, None]
        tokens = h.flatten(2).transpose(1, 2)
        y, _ = self.cross(tokens, context, context, need_weights=False)
        return self.last(h + y.transpose(1, 2).view(h.shape))


def upsample(mode: str, **how: Any) -> Callable[[int], nn.Module]:
    return lambda _: nn.Upsample(scale_factor=2, mode=mode, **how)


def fourier(x: Tensor, layer: nn.Module) -> Tensor:
    return layer(torch.fft.irfft2(torch.fft.rfft2(x)[..., :5]))


def words(*more: str) -> dict[str, Tensor]:
    """Embeddings of three prompts for a model of diffusers, by name."""
    draw = torch.Generator().manual_seed(2)
    sizes = {"encoder_hidden_states": (3, 4, 6), "pooled_projections": (3, 5)}
    return {name: torch.randn(sizes[name], generator=draw) for name in ("encoder_hidden_states", *more)}


SMALL: dict[str, Any] = {
    "sample_size": 8,
    "in_channels": 4,
    "out_channels": 4,
    "layers_per_block": 1,
    "block_out_channels": (8, 16),
    "norm_num_groups": 4,
}
CROSS: dict[str, Any] = {
    "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"),
    "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D"),
    "cross_attention_dim": 6,
}
HEADS: dict[str, Any] = {"num_attention_heads": 2, "attention_head_dim": 8, "num_layers": 1}
FLUX: dict[str, Any] = {
    "in_channels": 16,
    "num_layers": 1,
    "num_single_layers": 1,
    "attention_head_dim": 16,
    "num_attention_heads": 2,
    "joint_attention_dim": 6,
    "axes_dims_rope": (4, 6, 6),
}
LINE: dict[str, Any] = {"size": (16,), "channels": 2}
VOLUME: dict[str, Any] = {"size": (4, 8, 8), "channels": 2}
XL_IDS = torch.tensor([[64.0, 64, 0, 0, 64, 64]])


POOLED = words("pooled_projections")["pooled_projections"]
PIXELS = {name: torch.full((1, 2), 64.0) for name in ("original_size", "target_size", "crop_coords")}
ONEHOT: dict[str, Any] = {"size": 8, "channels": 2, "labels": 3, "label": "onehot"}
CONTEXT = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(3))


def model(name: str, **config: Any) -> Callable[[], nn.Module]:
    return lambda: getattr(diffusers, name)(**config)


ROWS: dict[str, Row] = {
    # diffusers, given directly
    "UNet2DModel scale_shift": Row(
        "norms with scale and shift, resampling in residual blocks",
        model(
            "UNet2DModel", **SMALL, resnet_time_scale_shift="scale_shift", attention_head_dim=4,
            down_block_types=("ResnetDownsampleBlock2D", "AttnDownBlock2D"),
            up_block_types=("AttnUpBlock2D", "ResnetUpsampleBlock2D"),
        ),
        {},
    ),
    "SDXL": Row(
        "conditions within a dictionary, one of them the same for all prompts",
        model(
            "UNet2DConditionModel", **SMALL, **CROSS, attention_head_dim=(1, 2), transformer_layers_per_block=(1, 2),
            use_linear_projection=True, addition_embed_type="text_time", addition_time_embed_dim=4,
            projection_class_embeddings_input_dim=29,
        ),
        {"conditions": {**words(), "added_cond_kwargs": {"text_embeds": POOLED, "time_ids": XL_IDS}}},
    ),
    "PixArt": Row(
        "a mask of words, and learned variances that are cut off",
        model(
            "PixArtTransformer2DModel", **HEADS, in_channels=4, out_channels=8, cross_attention_dim=16,
            caption_channels=6, sample_size=8, patch_size=2, norm_num_groups=1,
        ),
        {"conditions": {**words(), "encoder_attention_mask": torch.tensor([[1.0, 1, 1, 0]])}},
    ),
    "Sana": Row(
        "linear attention with depthwise convolutions",
        model(
            "SanaTransformer2DModel", **HEADS, in_channels=4, out_channels=4, num_cross_attention_heads=2,
            cross_attention_head_dim=8, cross_attention_dim=16, caption_channels=6, sample_size=8, mlp_ratio=2.0,
        ),
        {"conditions": words()},
    ),
    "SD3": Row(
        "joint attention, and a pooled condition",
        model(
            "SD3Transformer2DModel", sample_size=8, patch_size=2, in_channels=4, num_layers=2, attention_head_dim=8,
            num_attention_heads=2, joint_attention_dim=6, caption_projection_dim=16, pooled_projection_dim=5,
            out_channels=4, pos_embed_max_size=8,
        ),
        {"conditions": words("pooled_projections")},
    ),
    "Flux": Row(
        "packed tokens with places, times in [0, 1], guidance as an input",
        model("FluxTransformer2DModel", **FLUX, pooled_projection_dim=5, guidance_embeds=True),
        {"size": 8, "conditions": {**words("pooled_projections"), "guidance": torch.tensor([1.0])}},
    ),
    "AuraFlow": Row(
        "registers before the words, places of a larger image",
        model(
            "AuraFlowTransformer2DModel", sample_size=8, patch_size=2, in_channels=4, num_mmdit_layers=1,
            num_single_dit_layers=1, attention_head_dim=8, num_attention_heads=2, joint_attention_dim=6,
            caption_projection_dim=16, out_channels=4, pos_embed_max_size=16,
        ),
        {"conditions": words()},
    ),
    "CogView3": Row(
        "sizes and crops as conditions of their own",
        model(
            "CogView3PlusTransformer2DModel", **HEADS, patch_size=2, in_channels=4, out_channels=4, text_embed_dim=6,
            time_embed_dim=16, condition_dim=4, pos_embed_max_size=8, sample_size=8,
        ),
        {"conditions": {**words(), **PIXELS}},
    ),
    "NCSN++": Row(
        "skips of their own, Fourier features of the logarithm of a label, which must be positive",
        model(
            "UNet2DModel", sample_size=8, in_channels=3, out_channels=3, layers_per_block=1,
            block_out_channels=(32, 32),
            down_block_types=("SkipDownBlock2D", "AttnSkipDownBlock2D"), norm_num_groups=None, attention_head_dim=4,
            up_block_types=("AttnSkipUpBlock2D", "SkipUpBlock2D"), time_embedding_type="fourier",
        ),
        {},
    ),
    "UNet1DModel": Row(
        "data of one axis",
        model(
            "UNet1DModel", sample_size=32, in_channels=2, out_channels=2, extra_in_channels=64,
            time_embedding_type="fourier", block_out_channels=(32, 32, 32), norm_num_groups=4,
            down_block_types=("DownBlock1DNoSkip", "DownBlock1D", "AttnDownBlock1D"),
            up_block_types=("AttnUpBlock1D", "UpBlock1D", "UpBlock1DNoSkip"),
        ),
        {"size": (32,)},
    ),
    "UNet3DConditionModel": Row(
        "a video: convolutions in time after those in space",
        model(
            "UNet3DConditionModel", sample_size=8, in_channels=2, out_channels=2, layers_per_block=1,
            block_out_channels=(8, 16), norm_num_groups=4, cross_attention_dim=6, attention_head_dim=4,
            down_block_types=("CrossAttnDownBlock3D", "DownBlock3D"),
            up_block_types=("UpBlock3D", "CrossAttnUpBlock3D"),
        ),
        {"size": (3, 8, 8), "conditions": words()},
    ),
    "Wan": Row(
        "a video in patches, rotary places of three axes",
        model(
            "WanTransformer3DModel", patch_size=(1, 2, 2), num_attention_heads=2, attention_head_dim=12, in_channels=2,
            out_channels=2, text_dim=6, freq_dim=8, ffn_dim=16, num_layers=1, rope_max_seq_len=16,
        ),
        {"size": (3, 8, 8), "conditions": words()},
    ),
    "Chroma": Row(
        "makes a list as long as the batch, which fixes it",
        model(
            "ChromaTransformer2DModel", **FLUX, approximator_num_channels=16, approximator_hidden_dim=16,
            approximator_layers=1,
        ),
        {"size": 8, "conditions": words()},
        "forward must work for any batch size",
    ),
    "LTXVideo": Row(
        "takes tokens in place of a video: an adapter packs them",
        model(
            "LTXVideoTransformer3DModel", **HEADS, in_channels=4, out_channels=4, cross_attention_dim=16,
            caption_channels=6,
        ),
        {"size": (2, 4, 4), "conditions": words()},
        "class Adapter.*timestep=noise_label, encoder_attention_mask=",
    ),
    # EDM, EDM2 and their relatives
    "EDM DDPM++": Row("filters [1, 3, 3, 1] in groups", Song, ONEHOT),
    "PhysicsNeMo SongUNet": Row("a grid of places beside the image", lambda: Song(True), ONEHOT),
    # U-Nets with the parts that people choose
    "U-Net batch norm": Row("running statistics, max pooling, bilinear", lambda: Around(
        norm=nn.BatchNorm2d, down=lambda _: nn.MaxPool2d(2), up=upsample("bilinear", align_corners=True))),
    "U-Net bilinear": Row("pixel centres between", lambda: Around(up=upsample("bilinear"))),
    "U-Net bicubic": Row("four pixels an axis", lambda: Around(up=upsample("bicubic"))),
    "U-Net circular": Row("azula's periodic=True", lambda: Around(padding_mode="circular")),
    "U-Net reflect": Row("as pix2pix has it", lambda: Around(norm=nn.InstanceNorm2d, padding_mode="reflect")),
    "U-Net replicate": Row("fields that do not vanish at the border", lambda: Around(padding_mode="replicate")),
    "U-Net mean pooling": Row("windows that overlap", lambda: Around(
        down=lambda _: nn.AvgPool2d(3, 2, 1, count_include_pad=False), up=upsample("nearest"))),
    "U-Net 1-D": Row("a signal", lambda: Around(1), LINE),
    "U-Net 1-D batch norm": Row("max pooling, linear interpolation, circular borders", lambda: Around(
        1, nn.BatchNorm1d, lambda _: nn.MaxPool1d(2), upsample("linear"), padding_mode="circular"), LINE),
    "U-Net 3-D": Row("MONAI's kind: a volume", lambda: Around(3), VOLUME),
    "U-Net 3-D mean pooling": Row("nearest on the way up", lambda: Around(
        3, down=lambda _: nn.AvgPool3d(2), up=upsample("nearest")), VOLUME),
    "U-Net grouped": Row("convolutions in groups that are no single channels", timed(
        lambda x, a, b, c: c(functional.silu(b(a(x)))), nn.Conv2d(2, 8, 3, padding=1),
        nn.ConvTranspose2d(8, 12, 3, padding=1, groups=4), nn.Conv2d(12, 2, 3, padding=1, groups=2))),
    "lucidrains' Unet": Row("linear attention, standardised weights", timed(
        lambda x, a, b, c: c(b(functional.silu(a(x)))), Standardized(2, 8, 3), LinearAttention(8), nn.Conv2d(8, 2, 1))),
    # one axis
    "Diffuser": Row("trajectories of a planner", Diffuser1D, {"size": (16,), "channels": 3}),
    "DiffWave": Row("audio", WaveNet, {"size": (32,), "channels": 1}),
    # transformers
    "ViT of torch": Row("PyTorch's own encoder", lambda: Tokens(
        nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True, norm_first=True), 1,
                              enable_nested_tensor=False))),
    "rotary": Row("k-diffusion's transformer: places turned in place", lambda: Tokens(Rotary(), places=False)),
    "mixer": Row("linear over tokens", lambda: Tokens(Mixer())),
    "Swin": Row("shifted windows", timed(lambda x, w: w(x), Window())),
    # backbones of other tasks
    "ConvNeXt V2": Row("7×7 depthwise", timed(
        lambda x, a, b, c: c(b(a(x))), nn.Conv2d(2, 8, 1), Response(), nn.Conv2d(8, 2, 1))),
    "MobileNet": Row("hard activations", timed(
        lambda x, a, b, c: c(b(a(x))), nn.Conv2d(2, 8, 1), Squeeze(), nn.Conv2d(8, 2, 1))),
    "pyramid pooling": Row("means of 1, 2, 3 and 6 blocks, brought back to size", timed(
        lambda x, a: a(torch.cat([x, *(functional.interpolate(functional.adaptive_avg_pool2d(x, n), x.shape[2:],
                       mode="bilinear") for n in (1, 2, 3, 6))], 1)), nn.Conv2d(10, 2, 1))),
    # fields
    "weather": Row("a globe", Globe, {"size": (8, 16), "channels": 5}),
    "slices": Row("copies in place", timed(lambda x, w: w(x), Written())),
    "borders of ones": Row("a constant that is not zero", timed(
        lambda x, a: a(functional.pad(x, (1, 1, 1, 1), value=1.0)), nn.Conv2d(2, 2, 3))),
    "context": Row("conditions of one's own by keyword", Context, {
        "size": 8, "channels": 2,
        "conditions": {"context": CONTEXT, "dose": torch.tensor([0.5])}}),
    # refused
    "FNO": Row("complex numbers", timed(fourier, nn.Conv2d(2, 2, 1)), refused="2 operations have no rule"),
    "noise in forward": Row("a draw is no function of the input", timed(
        lambda x, a: a(x + torch.rand_like(x)), nn.Conv2d(2, 2, 1)), refused="rand.*zoo.py, line"),
}  # fmt: skip
