"""Answers of networks: their precision, where they compute, whose tensors they are, and what conditions reach them."""

import threading
import time
from collections.abc import Callable
from typing import Any

import accelerate
import pytest
import torch
from diffusers import DDPMScheduler, UNet2DModel

from anisoflight import BadRequestError, Client
from anisoflight.torch import Denoiser

Tensor = torch.Tensor


def unet() -> UNet2DModel:
    torch.manual_seed(0)
    blocks = {"down_block_types": ("DownBlock2D",) * 2, "up_block_types": ("UpBlock2D",) * 2}
    sizes = {"sample_size": 8, "in_channels": 3, "out_channels": 3, "block_out_channels": (8, 16), "norm_num_groups": 4}
    return UNet2DModel(**sizes, **blocks).eval()


class Timed(torch.nn.Module):
    """A network that notes its times and the type of its input."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.layer = torch.nn.Linear(64, 64)
        self.seen: list[Any] = []

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        self.seen.append((t.dtype, float(t[0]), x.dtype))
        return x


@pytest.mark.parametrize("real", [torch.bfloat16, torch.float16])
def test_times_are_not_rounded_and_the_input_has_the_type_of_most_weights(real: torch.dtype) -> None:
    network = Timed().to(real)
    network.first.float()  # kept in float32
    Denoiser(network, DDPMScheduler())(torch.ones(1, 2, 4), 5.0)
    ((kind, found, of_input),) = network.seen
    assert (kind, of_input) == (torch.float32, real)
    assert found == pytest.approx(565.35, abs=0.05)
    network.layer.to(torch.float8_e4m3fn)  # weights that are only stored so
    Denoiser(network, DDPMScheduler())(torch.ones(1, 2, 4), 5.0)
    assert network.seen[-1][2] == torch.float32


@torch.no_grad()
def test_networks_that_are_offloaded_or_stored_in_float8() -> None:
    x = torch.randn(2, 3, 8, 8)
    want = Denoiser(unet(), DDPMScheduler())(x, 1.0)
    place = torch.device("cpu")
    grouped = unet()
    grouped.enable_group_offload(onload_device=place, offload_device=place, offload_type="leaf_level")
    for away in (accelerate.cpu_offload(unet(), place), accelerate.cpu_offload_with_hook(unet(), place)[0], grouped):
        denoise = Denoiser(away, DDPMScheduler())
        assert denoise.device == place
        torch.testing.assert_close(denoise(x, 1.0), want)
    stored = unet()
    stored.enable_layerwise_casting(torch.float8_e4m3fn, torch.float32)
    found = Denoiser(stored, DDPMScheduler())(x, 1.0)
    assert float((found - want).norm() / want.norm()) < 0.2


@torch.no_grad()
def test_autocast_is_for_the_network_alone(client: Client) -> None:
    plan = client.plan("edm", sigma_min=0.02, sigma_max=5, solver="dpmpp2m", nfe=4)
    seen: list[bool] = []

    def shrink(x: Tensor, sigma: Tensor) -> Tensor:
        seen.append(torch.is_autocast_enabled("cpu"))
        return x / (1 + sigma[:, None, None, None] ** 2)

    noise = torch.randn(2, 1, 8, 8)
    want = plan(shrink, noise, progress=False)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(plan(shrink, noise, progress=False), want)
    assert any(seen)


def shrunk(x: Tensor, sigma: Tensor) -> Tensor:
    wide = sigma.reshape(-1, *[1] * (x.ndim - 1))
    return 0.2 + (x - 0.2) / (1 + 4 * wide**2) + 0.1 * (x / (1 + wide)).sin()


def buffered(x: Tensor, sigma: Tensor, kept: dict[Any, Tensor] = {}) -> Tensor:  # noqa: B006
    """Each answer in one buffer."""
    return kept.setdefault(x.shape, torch.empty_like(x)).copy_(shrunk(x, sigma))


def spoiling(x: Tensor, sigma: Tensor) -> Tensor:
    """The answer in the memory of x, and noise levels overwritten."""
    found = shrunk(x, sigma)
    sigma.zero_()
    return x.copy_(found)


@pytest.mark.parametrize("network", [buffered, spoiling])
@pytest.mark.parametrize("shape", [(4, 1, 8, 8), (4, 2, 8), (4, 3)], ids=["images", "signals", "vectors"])
@pytest.mark.parametrize("solver", ["dpmpp2m", "unipc", "ipndm", "heun"])
@torch.no_grad()
def test_a_network_may_write_where_it_likes(
    client: Client, solver: str, shape: tuple[int, ...], network: Callable[..., Tensor]
) -> None:
    plan = client.plan("edm", sigma_min=0.02, sigma_max=5, solver=solver, steps=4)
    noise = torch.randn(shape)
    start = noise.clone()
    want = plan(shrunk, noise, progress=False)
    for denoiser in (network, Denoiser(network, "denoiser"), Denoiser(network, "denoiser", batch=3)):
        torch.testing.assert_close(plan(denoiser, noise, progress=False), want)
    loop = plan.stages(noise)
    for _ in loop:
        loop.step(network(loop.x, loop.sigma))
    torch.testing.assert_close(loop.x, want)
    assert torch.equal(noise, start)


def test_threads_share_a_network_with_dropout() -> None:
    class Dropping(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.drop = torch.nn.Dropout(0.9)

        def forward(self, x: Tensor, sigma: Tensor) -> Tensor:
            time.sleep(float(sigma[0]) / 100)
            return self.drop(x)

    network = Dropping().train()
    denoise, x, wrong = Denoiser(network, "denoiser"), torch.ones(1, 1, 64), []

    def ask(sigma: float) -> None:
        wrong.extend(not torch.equal(denoise(x, sigma), x) for _ in range(15))

    threads = [threading.Thread(target=ask, args=(0.1 + 0.3 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not any(wrong)
    assert network.training
    assert network.drop.training


def test_conditions_that_are_lists_flags_or_of_another_length() -> None:
    def network(z: Tensor, sigma: Tensor, parts: Any, drop: bool = False, name: str = "") -> Tensor:
        assert name == "a"
        fine, (coarse, *_) = parts
        size = fine.shape[1] + 10 * coarse.shape[1]
        return z * 0 + (100 if drop else 0) + size + fine.sum(1)[:, None, None]

    cond = {"parts": [torch.arange(6.0).reshape(3, 2), (torch.zeros(3, 1), torch.zeros(1, 4))], "name": "a"}
    x = torch.zeros(2, 1, 3)
    assert Denoiser(network, "denoiser", cond=cond)(x, 1.0, rows=[2, 0])[:, 0, 0].tolist() == [21.0, 13.0]
    empty = {"parts": [torch.zeros(1, 5), (torch.zeros(1, 1), torch.zeros(1, 4))], "drop": True}
    for batch in (None, 1):
        denoise = Denoiser(network, "denoiser", cond=cond, empty=empty, guidance=2.0, batch=batch)
        assert denoise(x, 1.0, rows=[2, 0])[:, 0, 0].tolist() == [2 * 21 - 115.0, 2 * 13 - 115.0]


def test_a_negative_condition_for_each_row() -> None:
    def labelled(z: Tensor, sigma: Tensor, label: Tensor) -> Tensor:
        return torch.zeros_like(z) + label[:, None, None]

    x = torch.zeros(2, 1, 2)
    for cond, want in (([1.0, 2.0, 3.0], [-24.0, -8.0]), ([1.0], [-28.0, -8.0])):
        denoise = Denoiser(labelled, "denoiser", cond=cond, empty=[10.0, 20.0, 30.0], guidance=2.0)
        assert denoise.rows == 3
        assert denoise(x, 1.0, rows=[2, 0])[:, 0, 0].tolist() == want
    denoise = Denoiser(labelled, "denoiser", empty=[10.0, 20.0], guidance=2.0)
    assert denoise(x, 1.0, label=torch.tensor([1.0, 2.0]))[:, 0, 0].tolist() == [-8.0, -16.0]
    with pytest.raises(BadRequestError, match=r"empty must be one row by keyword .*got 2 for 3"):
        Denoiser(labelled, "denoiser", cond=[1.0, 2.0, 3.0], empty=[1.0, 2.0], guidance=2.0)
    with pytest.raises(BadRequestError, match="conditions must be tensors with rows"):
        Denoiser(labelled, "denoiser", cond=["a prompt", "another"])


def test_a_vector_field_of_time_and_state() -> None:
    def field(t: Tensor, theta: Tensor) -> Tensor:
        assert t.ndim == 1
        return theta * (1 + t[:, None])

    x = torch.ones(3, 4)
    got = Denoiser(field, "flow")(x, 1.0)  # at s = 1/2: x/2 − (1/2) F(x/2)
    torch.testing.assert_close(got, torch.full((3, 4), 0.5 - 0.5 * 0.5 * 1.5))
