"""Denoisers of networks in torch: every kind of network, conditions, guidance, and what is refused."""

import functools
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from accelerate import cpu_offload
from diffusers import (
    DDPMScheduler,
    FlowMatchEulerDiscreteScheduler,
    FluxTransformer2DModel,
    LatteTransformer3DModel,
    SD3Transformer2DModel,
    UNet1DModel,
    UNet2DConditionModel,
    UNet2DModel,
    UNet3DConditionModel,
)
from network import digits

from anisoflight import AnisoflightWarning, BadRequestError
from anisoflight.torch import Denoiser, few
from anisoflight.torch.meaning import network_of, parametrization

Tensor = torch.Tensor
SPREAD = 0.2
TABLE = parametrization("epsilon")["alphas_cumprod"]
SECTIONS: dict[str, dict[str, Any]] = {
    "epsilon": {"kind": "epsilon", "alphas_cumprod": TABLE},
    "v_prediction": {"kind": "v", "alphas_cumprod": TABLE},
    "sample": {"kind": "x0", "alphas_cumprod": TABLE},
    "edm": {"kind": "edm"},
    "{'kind': 'flow', 'steps': 1}": {"kind": "flow", "steps": 1},
    "{'kind': 'flow', 'steps': 1000}": {"kind": "flow", "steps": 1000},
    "denoiser": {"kind": "denoiser"},
}


def points(*shape: int, count: int = 16) -> Tensor:
    """The centres of a mixture of normal laws with the standard deviation SPREAD."""
    return 0.8 * torch.randn(count, *shape, generator=torch.Generator().manual_seed(7), dtype=torch.float64)


def exact(centres: Tensor, x: Tensor, sigma: Tensor) -> Tensor:
    """E[x_0 | x] of the mixture; sigma [B]."""
    flat, means, square = x.double().flatten(1), centres.flatten(1), sigma.double().square()[:, None]
    variance = SPREAD**2 + square
    distances = (flat[:, None] - means).square().sum(2)
    mean = torch.softmax(-distances / (2 * variance), 1) @ means
    return ((mean * square + flat * SPREAD**2) / variance).reshape(x.shape)


def network(section: dict[str, Any], centres: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    """The network of a kind whose denoiser is exact, by inverting what the kind says of D; the highest σ is 1000."""
    kind = network_of(section)[0]

    def level(time: float) -> float:
        ends = kind.time(1e-3), kind.time(1e3)
        return kind.sigma(min(max(time, min(ends)), max(ends)))

    def ask(z: Tensor, time: Tensor) -> Tensor:
        sigma = torch.tensor([level(float(t)) for t in time], dtype=torch.float64)
        wide = sigma.reshape(-1, *[1] * (z.ndim - 1))
        held = z.double() / kind.input_scale(wide)
        clean = exact(centres, held / kind.scale(wide), sigma)
        zero = kind.denoised(torch.zeros_like(held), held, wide)
        slope = kind.denoised(torch.ones_like(held), held, wide) - zero
        return ((clean - zero) / slope).to(z)

    return ask


@pytest.mark.parametrize("name", SECTIONS)
@pytest.mark.parametrize("shape", [(2, 7), (2, 4, 5), (1, 3, 4, 2)])
def test_every_kind_gives_x0(name: str, shape: tuple[int, ...]) -> None:
    centres, section = points(*shape), SECTIONS[name]
    denoise = Denoiser(network(section, centres), section)
    sigma = torch.tensor([0.05, 0.4, 3.0])
    x = centres[:3].float() + sigma.reshape(3, *[1] * len(shape)) * torch.randn(3, *shape)
    want = exact(centres, x, sigma).float()
    torch.testing.assert_close(denoise(x, sigma), want, atol=2e-3, rtol=0)
    torch.testing.assert_close(denoise(x, 0.4), exact(centres, x, torch.full((3,), 0.4)).float(), atol=2e-3, rtol=0)
    assert denoise(x.double(), sigma).dtype == torch.float64
    assert denoise(x[:0], 0.4).shape == (0, *shape)


def test_gradients_flow_to_x_and_sigma_when_they_are_asked_for() -> None:
    weight = torch.nn.Conv1d(1, 1, 1)
    denoise = Denoiser(lambda z, time: weight(z) * time[:, None, None], "flow", batch=2)
    x, sigma = torch.randn(3, 1, 5, dtype=torch.float64), torch.rand(3, dtype=torch.float64) + 0.5
    weight.double()
    assert torch.autograd.gradcheck(denoise, (x.requires_grad_(), sigma.requires_grad_()))
    assert not denoise(x.detach(), sigma.detach()).requires_grad
    with torch.no_grad():
        assert not denoise(x, sigma).requires_grad


UNET: dict[str, Any] = {
    "sample_size": 8,
    "block_out_channels": (8, 16),
    "layers_per_block": 1,
    "norm_num_groups": 4,
    "in_channels": 1,
}
BLOCKS = {"down_block_types": ("DownBlock2D", "DownBlock2D"), "up_block_types": ("UpBlock2D", "UpBlock2D")}


@pytest.mark.parametrize("prediction", ["epsilon", "v_prediction", "sample"])
@pytest.mark.parametrize("out_channels", [1, 2], ids=["mean", "learned variance"])
@torch.no_grad()
def test_a_unet_agrees_with_its_scheduler(prediction: str, out_channels: int) -> None:
    torch.manual_seed(0)
    unet = UNet2DModel(out_channels=out_channels, **UNET, **BLOCKS)  # in training mode, which is left as it is
    scheduler = DDPMScheduler(prediction_type=prediction, clip_sample=False)
    denoise = Denoiser(unet, scheduler)
    alpha = scheduler.alphas_cumprod[400]
    z = torch.randn(3, 1, 8, 8)
    unet.eval()
    want = scheduler.step(unet(z, 400).sample[:, :1], 400, z).pred_original_sample
    unet.train()
    got = denoise(z / alpha.sqrt(), float(((1 - alpha) / alpha).sqrt()))
    torch.testing.assert_close(got, want, atol=1e-4, rtol=1e-4)
    assert unet.training
    assert denoise.counts == 3
    assert denoise.sigma_max == pytest.approx(157.4, rel=1e-3)


@torch.no_grad()
def test_x0_is_clipped_as_by_a_scheduler_with_clip_sample() -> None:
    torch.manual_seed(0)
    unet = UNet2DModel(out_channels=1, **UNET, **BLOCKS).eval()
    scheduler = DDPMScheduler(clip_sample_range=0.7)
    alpha, z = scheduler.alphas_cumprod[400], torch.randn(3, 1, 8, 8)
    want = scheduler.step(unet(z, 400).sample, 400, z).pred_original_sample
    got = Denoiser(unet, scheduler, clip=0.7)(z / alpha.sqrt(), float(((1 - alpha) / alpha).sqrt()))
    torch.testing.assert_close(got, want, atol=1e-4, rtol=1e-4)
    assert got.abs().max() == pytest.approx(0.7)
    with pytest.raises(BadRequestError, match="clip must be above 0, got 0"):
        Denoiser(unet, scheduler, clip=0)


@torch.no_grad()
def test_a_flow_transformer_with_guidance() -> None:
    torch.manual_seed(0)
    how = {"num_layers": 1, "num_attention_heads": 2, "attention_head_dim": 8, "caption_projection_dim": 16}
    how |= {"sample_size": 8, "in_channels": 2, "out_channels": 2, "joint_attention_dim": 6, "pooled_projection_dim": 4}
    sd3 = SD3Transformer2DModel(**how).eval()
    prompts = {"encoder_hidden_states": torch.randn(5, 3, 6), "pooled_projections": torch.randn(5, 4)}
    empty = {name: torch.zeros_like(value[:1]) for name, value in prompts.items()}
    scheduler = FlowMatchEulerDiscreteScheduler(shift=3.0)
    x, rows, share = torch.randn(4, 2, 8, 8), torch.tensor([4, 0, 0, 2]), 0.6

    def velocity(cond: dict[str, Tensor]) -> Tensor:
        return sd3((1 - share) * x, timestep=torch.full((4,), 1000 * share), **cond).sample

    none = velocity({name: value.expand(4, *value.shape[1:]) for name, value in empty.items()})
    guided = none + 3.5 * (velocity({name: value[rows] for name, value in prompts.items()}) - none)
    want = (1 - share) * x - share * guided
    for batch in (None, 1, 3, 8):
        denoise = Denoiser(sd3, scheduler, cond=prompts, empty=empty, guidance=3.5, batch=batch)
        got = denoise(x, share / (1 - share), rows=rows)
        torch.testing.assert_close(got, want, atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(denoise.at(rows)(x, torch.full((4,), share / (1 - share))), got)
        assert (denoise.counts, denoise.evaluations_per_call, denoise.rows) == (16, 2, 5)


@torch.no_grad()
def test_a_transformer_of_tokens_with_guidance_of_its_own() -> None:
    torch.manual_seed(0)
    how = {"num_layers": 1, "num_single_layers": 1, "attention_head_dim": 8, "num_attention_heads": 2}
    how |= {"in_channels": 4, "joint_attention_dim": 6, "pooled_projection_dim": 5, "axes_dims_rope": (2, 2, 4)}
    flux = FluxTransformer2DModel(guidance_embeds=True, **how).eval()
    places = {"img_ids": torch.rand(9, 3), "txt_ids": torch.zeros(3, 3)}
    prompts = {"encoder_hidden_states": torch.randn(2, 3, 6), "pooled_projections": torch.randn(2, 5)}
    denoise = Denoiser(functools.partial(flux, **places), "flow", cond={**prompts, "guidance": 3.5})
    x = torch.randn(2, 9, 4)
    velocity = flux(0.25 * x, timestep=torch.full((2,), 0.75), guidance=torch.full((2,), 3.5), **prompts, **places)
    torch.testing.assert_close(denoise(x, 3.0, rows=[0, 1]), 0.25 * x - 0.75 * velocity.sample, atol=1e-5, rtol=1e-5)


class EDMPrecond(torch.nn.Module):
    """D as EDM's and k-diffusion's modules are called."""

    def __init__(self) -> None:
        super().__init__()
        self.model = torch.nn.Conv2d(1, 1, 3, padding=1)

    def forward(self, x: Tensor, sigma: Tensor, class_labels: Tensor | None = None, force_fp32: bool = False) -> Tensor:
        s = sigma.reshape(-1, 1, 1, 1)
        given = 0.0 if class_labels is None else class_labels.sum(1).reshape(-1, 1, 1, 1)
        return x / (1 + s**2) + s / (1 + s**2).sqrt() * (self.model(x / (1 + s**2).sqrt()) + given)


class Posterior(torch.nn.Module):
    """A denoiser as azula has it: of α_t x, at a time t of its schedule."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor(0.5))

    def schedule(self, t: Tensor) -> tuple[Tensor, Tensor]:
        return (1 - t).clamp(min=1e-3), t.clamp(min=1e-3)

    def forward(self, x_t: Tensor, t: Tensor) -> Any:
        alpha, sigma = (value.reshape(-1, 1, 1) for value in self.schedule(t))
        return SimpleNamespace(mean=self.scale * alpha * x_t / (alpha**2 + sigma**2))


@torch.no_grad()
def test_denoisers_of_other_packages() -> None:
    edm, azula = EDMPrecond(), Posterior()
    x, sigma = torch.randn(3, 1, 8, 8), torch.tensor([0.1, 1.0, 7.0])
    hot = torch.eye(4)
    denoise = Denoiser(edm, "denoiser", cond=hot, sigma_min=0.01, sigma_max=50.0)
    torch.testing.assert_close(denoise(x, sigma, rows=[3, 1, 1]), edm(x, sigma, hot[[3, 1, 1]]))
    torch.testing.assert_close(denoise(x, sigma, hot[:3]), edm(x, sigma, hot[:3]))
    assert (denoise.sigma_min, denoise.sigma_max) == (0.01, 50.0)

    denoise, x = Denoiser(azula, azula.schedule), torch.randn(3, 1, 8)
    want = 0.5 * x / (1 + sigma.reshape(-1, 1, 1) ** 2)
    torch.testing.assert_close(denoise(x, sigma), want, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(denoise(x, 7.0)[2], want[2], atol=1e-4, rtol=1e-4)
    assert (denoise.sigma_min, denoise.sigma_max) == (pytest.approx(1e-3, rel=1e-2), pytest.approx(1e3, rel=1e-2))


def test_a_function_of_numpy() -> None:
    def shrink(x: Any, sigma: Any, scale: Any) -> Any:
        assert isinstance(x, np.ndarray)
        assert x.dtype == np.float64
        return x * scale[:, None, None] / (1 + sigma[:, None, None] ** 2)

    denoise = Denoiser(shrink, "denoiser", dtype=np.float64, cond=[1.0, 2.0])
    got = denoise(torch.ones(2, 1, 3), 1.0, rows=[1, 0])
    assert (got.dtype, got[:, 0, 0].tolist()) == (torch.float32, [1.0, 0.5])


def test_a_function_of_numpy_may_return_what_converts_to_an_array(recwarn: pytest.WarningsRecorder) -> None:
    class Fixed:
        """Like an array of JAX: no subclass of numpy's, and read-only."""

        def __init__(self, values: np.ndarray) -> None:
            self._values = values
            self._values.flags.writeable = False

        def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
            return self._values.copy() if copy else self._values

    denoise = Denoiser(lambda x, sigma: Fixed(x / 2), "denoiser", dtype=np.float32)
    assert denoise(torch.ones(2, 1, 3), 1.0).tolist() == [[[0.5] * 3]] * 2
    assert not [one for one in recwarn if "not writable" in str(one.message)]


@torch.no_grad()
def test_a_network_in_bfloat16() -> None:
    module = torch.nn.Conv1d(2, 2, 1).bfloat16()
    denoise = Denoiser(lambda z, time: module(z), "epsilon", dtype=torch.bfloat16)
    x = torch.randn(4, 2, 6)
    held = (x / 2**0.5).bfloat16()
    torch.testing.assert_close(denoise(x, 1.0), x - module(held).float(), atol=1e-5, rtol=1e-5)
    assert denoise(x.bfloat16(), 1.0).dtype == torch.float32
    assert Denoiser(module.forward, "epsilon").device == torch.device("cpu")


@torch.no_grad()
def test_conditions_of_every_shape() -> None:
    torch.manual_seed(0)
    cross = {"down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"), "cross_attention_dim": 6}
    cross |= {"up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"), "attention_head_dim": 2}
    unet = UNet2DConditionModel(out_channels=1, **UNET, **cross).eval()
    prompts, x = torch.randn(3, 4, 6), torch.randn(2, 1, 8, 8)
    denoise = Denoiser(unet, prediction="flow", cond=prompts)
    want = 0.5 * x - 0.5 * unet(0.5 * x, 0.5, prompts[[2, 0]]).sample
    torch.testing.assert_close(denoise(x, 1.0, rows=[2, 0]), want, atol=1e-5, rtol=1e-5)
    own = denoise(x, 1.0, encoder_hidden_states=prompts[[2, 0]])
    torch.testing.assert_close(own, want, atol=1e-5, rtol=1e-5)

    def fields(z: Tensor, sigma: Tensor, parts: dict[str, Any], flag: bool) -> Tensor:
        assert flag
        return z + parts["field"] + parts["number"][:, None, None, None]

    cond = {"parts": {"field": torch.arange(3.0).reshape(3, 1, 1, 1).expand(3, 1, 8, 8), "number": 10}, "flag": True}
    got = Denoiser(fields, "denoiser", cond=cond, batch=1)(torch.zeros(2, 1, 8, 8), 1.0, rows=torch.tensor([2, 1]))
    assert got[:, 0, 0, 0].tolist() == [12.0, 11.0]


def test_guidance_in_an_interval_of_noise() -> None:
    def labelled(z: Tensor, sigma: Tensor, label: Tensor) -> Tensor:
        return torch.zeros_like(z) + label[:, None, None]

    denoise = Denoiser(labelled, "denoiser", cond=[1.0], empty=0.0, guidance=3.0, interval=(0.5, 2.0))
    sigma = torch.tensor([0.5, 0.6, 2.0, 2.1])
    assert denoise(torch.zeros(4, 1, 2), sigma)[:, 0, 0].tolist() == [1.0, 3.0, 3.0, 1.0]
    assert denoise.counts == 6
    assert denoise(torch.zeros(4, 1, 2), 0.6)[:, 0, 0].tolist() == [3.0] * 4
    assert denoise.counts == 14
    assert denoise(torch.zeros(4, 1, 2), 2.1)[:, 0, 0].tolist() == [1.0] * 4
    assert denoise.counts == 18


def test_a_batch_is_as_large_as_it_may_be() -> None:
    seen: list[int] = []

    def scarce(z: Tensor, sigma: Tensor) -> Tensor:
        if len(z) > 5:
            raise torch.OutOfMemoryError
        seen.append(len(z))
        return z * sigma[:, None, None]

    x, sigma = torch.randn(13, 1, 2), torch.rand(13) + 0.1
    denoise = Denoiser(scarce, "denoiser")
    torch.testing.assert_close(denoise(x, sigma), x * sigma[:, None, None])
    assert seen == [3, 3, 3, 3, 1]
    seen.clear()
    Denoiser(scarce, "denoiser", batch=4)(x, sigma)
    assert seen == [4, 4, 4, 1]


REFUSED: dict[str, tuple[str, str, Callable[[], Any]]] = {
    "no tensor": ("BAD_TENSOR", "x must be floats", lambda: Denoiser(abs, "denoiser")([1.0], 1.0)),
    "integers": ("BAD_TENSOR", "int64", lambda: Denoiser(abs, "denoiser")(torch.ones(1, 1, 2, dtype=torch.int64), 1.0)),
    "few axes": ("BAD_TENSOR", r"got torch.float32 \[2\]", lambda: Denoiser(abs, "denoiser")(torch.ones(2), 1.0)),
    "sigma": ("BAD_TENSOR", r"\[2\], got \[3\]", lambda: Denoiser(abs)(torch.ones(2, 1, 2), torch.ones(3))),
    "no noise": ("BAD_TENSOR", "above 0, got 0", lambda: Denoiser(abs)(torch.ones(2, 1, 2), 0)),
    "no rows": ("BAD_REQUEST", "1 numbers from 0 to 2", lambda: conditional()(torch.ones(1, 1, 2), 1.0)),
    "far rows": ("BAD_REQUEST", r"got \[3\]", lambda: conditional()(torch.ones(1, 1, 2), 1.0, rows=[3])),
    "rows of a call": ("BAD_TENSOR", "2 rows", lambda: conditional()(torch.ones(2, 1, 2), 1.0, label=torch.ones(3))),
    "uneven": ("BAD_TENSOR", r"\[2, 3\]", lambda: Denoiser(abs, cond={"a": [1, 2], "b": [1, 2, 3]})),
    "no name": ("BAD_REQUEST", "keyword", lambda: Denoiser(lambda x, sigma: x, cond=[1.0])),
    "no empty": ("BAD_REQUEST", "empty must be one row", lambda: conditional(guidance=2.0)),
    "two empty": ("BAD_REQUEST", "empty must be one row", lambda: conditional(guidance=2.0, empty=[1, 2])),
    "batch": ("BAD_REQUEST", "batch must be 1", lambda: conditional(batch=0)),
    "kind": ("BAD_MODEL", "prediction must be one of", lambda: Denoiser(abs, "noise")),
    "text": ("BAD_MODEL", "a str", lambda: Denoiser(lambda x, sigma: "x", "denoiser")(torch.ones(1, 1, 2), 1.0)),
    "shape": (
        "BAD_MODEL",
        r"return \[4, 200, 1\], got \[4, 200, 2\]",
        lambda: Denoiser(lambda x, sigma: x.repeat(1, 1, 2), "denoiser").check((200, 1)),
    ),
    "raises": (
        "BAD_MODEL",
        "ZeroDivisionError: integer division",
        lambda: Denoiser(lambda x, sigma: x / (1 // 0), "denoiser").check((1, 300)),
    ),
    "infinite": (
        "BAD_MODEL",
        "finite values, got others at σ = 80",
        lambda: Denoiser(lambda x, sigma: x.exp(), "denoiser").check((1, 300)),
    ),
    "data": ("BAD_TENSOR", r"by shape, got \[3, 2, 4\]", lambda: Denoiser(abs).check((2, 3), torch.ones(3, 2, 4))),
    "no shape": (
        "BAD_TENSOR",
        r"shape must be given, .*\(C, H, W\).*shape=\(3, 32, 32\): a function has no config",
        lambda: few(Denoiser(abs), 3),
    ),
    "no config": (
        "BAD_TENSOR",
        "shape must be given.*config of Identity does not say it",
        lambda: few(Denoiser(torch.nn.Identity()), 3),
    ),
    "size": ("BAD_TENSOR", r"shape must be .* got 8; .* says \(1, 8, 8\)", lambda: few(untrained(), 3, 8)),
    "channels": (
        "BAD_TENSOR",
        r"shape must have 1 channels and 2 axes, got \(3, 8, 8\); the config of UNet2DModel says \(1, 8, 8\)",
        lambda: few(untrained(), 3, (3, 8, 8)),
    ),
    "axes": ("BAD_TENSOR", r"2 axes, got \(1, 8\)", lambda: few(untrained(), 3, (1, 8))),
    "channels of data": (
        "BAD_TENSOR",
        r"shape must have .* got \(3, 8, 8\)",
        lambda: few(untrained(), 3, data=torch.zeros(9, 3, 8, 8)),
    ),
    "data of another shape": (
        "BAD_TENSOR",
        r"data must be \[N, 1, 8, 8\] by shape, got \[9, 1, 4, 4\]",
        lambda: few(untrained(), 3, (1, 8, 8), torch.zeros(9, 1, 4, 4)),
    ),
    "odd": (
        "BAD_MODEL",
        r"network must .*shape is \(1, 7, 7\), the config of UNet2DModel says \(1, 8, 8\)",
        lambda: few(untrained(), 3, (1, 7, 7)),
    ),
}


def untrained() -> Denoiser:
    return Denoiser(UNet2DModel(out_channels=1, **UNET, **BLOCKS), DDPMScheduler())


class Precond(torch.nn.Module):
    """As EDM's, with attributes in place of a config."""

    img_channels, img_resolution = 3, 16


class Own(UNet2DModel):
    pass


VIDEO: dict[str, Any] = {
    "patch_size": 2,
    "num_attention_heads": 2,
    "attention_head_dim": 8,
    "num_layers": 1,
    "caption_channels": 6,
}
FLUX: dict[str, Any] = {"attention_head_dim": 16, "num_attention_heads": 2, "axes_dims_rope": [4, 4, 8]}
IMAGES: dict[str, Any] = {**UNET, **BLOCKS, "out_channels": 1}
SHAPES: dict[str, tuple[Callable[[], Any], tuple[int, ...] | None]] = {
    "a UNet": (lambda: UNet2DModel(**IMAGES), (1, 8, 8)),
    "not square": (lambda: UNet2DModel(**{**IMAGES, "sample_size": (8, 16)}), (1, 8, 16)),
    "of one's own class": (lambda: Own(**IMAGES), (1, 8, 8)),
    "learned variances": (lambda: UNet2DModel(**{**IMAGES, "out_channels": 2}), (1, 8, 8)),
    "compiled": (lambda: torch.compile(UNet2DModel(**IMAGES)), (1, 8, 8)),
    "parallel": (lambda: torch.nn.DataParallel(UNet2DModel(**IMAGES)), (1, 8, 8)),
    "offloaded": (lambda: cpu_offload(UNet2DModel(**IMAGES), torch.device("cpu")), (1, 8, 8)),
    "bound": (lambda: functools.partial(UNet2DModel(**IMAGES), class_labels=None), (1, 8, 8)),
    "no size": (lambda: UNet2DModel(**{**IMAGES, "sample_size": None}), None),
    "an image beside the sample": (lambda: UNet2DModel(**{**IMAGES, "in_channels": 3}), None),
    "a signal": (lambda: UNet1DModel(sample_size=64, in_channels=2, out_channels=2, extra_in_channels=16), (2, 64)),
    "a transformer": (lambda: SD3Transformer2DModel(8, in_channels=4, out_channels=4, num_layers=1), (4, 8, 8)),
    "a video": (lambda: LatteTransformer3DModel(in_channels=4, sample_size=8, video_length=6, **VIDEO), (4, 6, 8, 8)),
    "frames unknown": (lambda: UNet3DConditionModel(sample_size=8, block_out_channels=(32,) * 4), None),
    "packed": (lambda: FluxTransformer2DModel(1, in_channels=16, num_layers=1, num_single_layers=1, **FLUX), None),
    "EDM": (Precond, (3, 16, 16)),
    "a function": (lambda: lambda x, sigma: x, None),
}


@pytest.mark.parametrize("name", SHAPES)
def test_the_networks_config_says_the_shape(name: str) -> None:
    make, shape = SHAPES[name]
    assert Denoiser(make(), prediction="epsilon").shape == shape


def conditional(**how: Any) -> Denoiser:
    return Denoiser(lambda x, sigma, label: x + label[:, None, None], "denoiser", cond=[1.0, 2.0, 3.0], **how)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    code, message, ask = REFUSED[name]
    with pytest.raises(BadRequestError, match=message) as caught:
        ask()
    assert caught.value.code == code


@pytest.mark.parametrize("with_data", [True, False], ids=["data", "own samples"])
@pytest.mark.parametrize("name", SECTIONS)
def test_a_network_is_known_by_its_answers(name: str, with_data: bool) -> None:
    """It passes as what it is, with the error at the least σ, and is refused as anything else."""
    centres = points(1, 6, 6)
    noise = torch.randn(16, 1, 6, 6, generator=torch.Generator().manual_seed(1))
    data = centres.float() + SPREAD * noise if with_data else None
    ask = network(SECTIONS[name], centres)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        denoise = Denoiser(ask, SECTIONS[name])
        trial = denoise.check((1, 6, 6), data)
    extra = 6 if denoise.whole_times else 3  # repeated answers, and times between whole ones
    assert denoise.counts == 15 * ((8 if with_data else 20) + extra)  # no other kind was tried
    assert trial.seconds_per_evaluation > 0
    assert trial.errors[0] < 1.2
    assert min(trial.errors) < 0.3
    for given, section in SECTIONS.items():
        if given != name:
            with pytest.raises(BadRequestError) as caught:
                Denoiser(ask, section).check((1, 6, 6), data)
            assert caught.value.message.startswith(f"prediction must be {name}, by the network's answers, got {given}:")


def test_the_trial_of_conditions_and_guidance() -> None:
    """Guided samples are none of the mixture's, and conditions have samples of their own."""
    centres = points(1, 6, 6, count=4)
    ask = network(SECTIONS["epsilon"], torch.zeros(1, 1, 6, 6).double())  # around 0: ε̂ shifts with the centre

    def labelled(z: Tensor, time: Tensor, label: Tensor) -> Tensor:
        kind = network_of(SECTIONS["epsilon"])[0]
        sigma = torch.tensor([kind.sigma(float(t)) for t in time]).reshape(-1, 1, 1, 1)
        shift = torch.cat([centres, torch.zeros(1, 1, 6, 6)])[label].to(z)
        return ask(z - shift / (1 + sigma**2).sqrt(), time)

    how: dict[str, Any] = {"cond": torch.arange(4), "empty": 4, "guidance": 4.0}
    trial = Denoiser(labelled, SECTIONS["epsilon"], **how).check((1, 6, 6))
    assert trial.errors[0] < 1.2
    rows = torch.arange(4).repeat(8)
    trial = Denoiser(labelled, SECTIONS["epsilon"], **how).check((1, 6, 6), centres[rows].float(), rows)
    assert max(trial.errors) < 1.3
    with pytest.raises(BadRequestError, match="must be epsilon, by the network's answers, got v_prediction"):
        Denoiser(labelled, SECTIONS["v_prediction"], **how).check((1, 6, 6), centres[rows].float(), rows)


def test_an_untrained_network_gets_a_warning() -> None:
    torch.manual_seed(0)
    unet = UNet2DModel(out_channels=1, **UNET, **BLOCKS)
    with pytest.warns(AnisoflightWarning, match="fits no other kind: check that it is trained"):
        Denoiser(unet, prediction="epsilon").check((1, 8, 8))


@pytest.mark.parametrize("prediction", ["sample", "v_prediction"])
def test_a_trained_network_given_as_another_kind(unet: UNet2DModel, prediction: str) -> None:
    data = torch.from_numpy(digits()).permute(0, 3, 1, 2)
    assert Denoiser(unet, DDPMScheduler()).check((1, 8, 8), data).passes()
    with pytest.raises(BadRequestError, match=f"must be epsilon, by the network's answers, got {prediction}"):
        Denoiser(unet, DDPMScheduler(), prediction).check((1, 8, 8), data)


def test_a_network_may_refuse_fractional_times_by_any_error() -> None:
    def takes_integers(error: type[Exception]) -> Any:
        def network(x: Any, t: Any) -> Any:
            if t.is_floating_point():
                raise error("times must be integers")
            return x

        return network

    for error in (ValueError, AssertionError, KeyError):
        D = Denoiser(takes_integers(error), prediction="epsilon")
        D(torch.zeros(2, 1, 4), D.network.sigma(300))
        assert len(D.levels or ()) == 1000


def test_a_network_may_write_into_its_time_and_take_it_by_keyword_alone() -> None:
    def network(x: Any, *, sigma: Any) -> Any:
        out = x / (1 + sigma[:, None, None] ** 2)
        sigma.zero_()
        return out

    x, sigma = torch.ones(2, 1, 3), torch.tensor([1.0, 3.0])
    out = Denoiser(network, "denoiser")(x, sigma)
    assert out[:, 0, 0].tolist() == pytest.approx([0.5, 0.1])
    assert sigma.tolist() == [1.0, 3.0]
