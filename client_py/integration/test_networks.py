"""Networks of torch on the server: the same numbers, and everything that the server does with its own works on them."""

import copy
import inspect
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from diffusers import (
    DDIMScheduler,
    DDPMScheduler,
    DPMSolverMultistepScheduler,
    EulerAncestralDiscreteScheduler,
    EulerDiscreteScheduler,
    TCDScheduler,
    UNet2DModel,
    UniPCMultistepScheduler,
)
from network_fixtures import networks
from safetensors.torch import load
from zoo import CONTEXT, ROWS, Context

from anisoflight import Client
from anisoflight.errors import AnisoflightError
from anisoflight.plans.parametrizations import edm
from anisoflight.torch import Denoiser, Exported, export, parametrization, service
from anisoflight.wire.tensors import to_numpy


class NumbersFirst(torch.nn.Module):
    """Numbers before tensors, as 1 − x, 1/x, 2^x and 31 − arange have them."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 1, 3, padding=1)

    def forward(self, x: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        t = noise[:, None, None, None]
        h = (1 - t.sigmoid()) * self.conv(x) + torch.add(1e-4, x) / torch.div(2, 1 + t**2)
        h = h + torch.mul(math.pi, x).sin() + 1.0 / (2 + x.square()) + 2 ** (-x.abs()) + torch.sub(2, x, alpha=3)
        zero = torch.arange(x.shape[0])[:, None, None, None] * 0  # of the batch, which no constant follows
        return h * ((31 - torch.arange(8)) / 31) + 2.0 * (1 - zero) - (x > 0) * 0.5


class Constants(torch.nn.Module):
    """What follows from no input: filters and tables that forward makes, of numbers and of a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("position", torch.randn(8, 8))
        self.gain = torch.nn.Parameter(torch.randn(8, 8))
        self.last = torch.nn.Conv2d(3, 1, 1)

    def forward(self, x: torch.Tensor, noise: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        rate = torch.exp(torch.linspace(0, -math.log(100), 4))
        angle = noise[:, None] * rate
        wave = torch.cat([angle.sin(), angle.cos()], -1)[:, None, None]
        h = x.repeat(1, 3, 1, 1) + torch.roll(self.position, (1, -2), (0, 1)) + torch.roll(x, 3, 3)
        kernel = torch.outer(x.new_tensor([1, 3, 3, 1]), torch.tensor([1.0, 3.0, 3.0, 1.0])) / 64
        fir, each = x.new_zeros(3, 3, 4, 4), torch.arange(3)
        fir[each, each] = kernel
        h = torch.nn.functional.conv2d(h, fir, stride=2, padding=1)
        h = torch.nn.functional.conv_transpose2d(h, 4 * fir, stride=2, padding=1)
        table = torch.zeros(64, 8)
        table[:, 0::2] = torch.sin(torch.arange(64)[:, None] * rate)
        table[:, 1::2] = torch.cos(torch.arange(64)[:, None] * rate)
        stripes = torch.nn.functional.one_hot(torch.arange(8) % 3, 3).T[:, :, None]
        h = h * wave + stripes + (table @ table.T).mean(0).view(8, 8) + torch.eye(8) @ self.gain
        h = h + torch.nn.functional.one_hot(label, 3).to(x)[:, :, None, None]
        h = h + torch.roll(self.gain, 1, 0) * (torch.arange(8).cumsum(0) / 28)
        return self.last(h + torch.zeros(1 << 12, 1 << 12)[0, 0])  # too large to be stored


@pytest.mark.parametrize(("kind", "how"), [(NumbersFirst, {}), (Constants, {"labels": 3})])
def test_idioms_of_a_forward_agree(client: Client, kind: type[torch.nn.Module], how: dict[str, Any]) -> None:
    torch.manual_seed(0)
    module = kind()
    client.put_network("idioms", module, size=8, channels=1, prediction="edm", replace=True, progress=False, **how)
    away(client, "idioms", module, 1e-5)


@torch.no_grad()
def away(client: Client, name: str, module: torch.nn.Module, allowed: float) -> None:
    """F of a network of images [8, 8, 1], with three classes where it takes them, is as near to torch's as allowed."""
    x = torch.randn(3, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    sigma = torch.tensor([0.3, 1.0, 4.0], dtype=torch.float64)
    labels = np.array([2, 0, 1], np.int32) if client.describe_model(name)["label_dim"] else None
    ask = edm("epsilon", 0.5)
    given = [x * ask.input_scale(sigma).float()[:, None, None, None], ask.time(sigma).float()]
    want = module(*given, *([] if labels is None else [torch.from_numpy(labels).long()])).permute(0, 2, 3, 1).numpy()
    got = np.asarray(client.denoise(name, x.permute(0, 2, 3, 1).numpy(), sigma.numpy(), labels, progress=False).raw)
    assert np.linalg.norm(got - want) <= allowed * np.linalg.norm(want)


def test_parameters_stay_trainable_and_random_numbers_are_refused(client: Client) -> None:
    """Only what no parameter enters is stored; a draw is no constant."""
    exported = export(Constants(), size=8, channels=1, labels=3)
    nodes = {node["target"]: node for node in exported.config["graph"]["nodes"] if node["op"] == "param"}
    trained = {name for name, node in nodes.items() if not node.get("frozen")}
    assert trained == {"gain", "last.weight", "last.bias"}
    assert max(value.numel() for value in exported.tensors.values()) <= 4096
    made = {name.partition(".")[0] for name in nodes.keys() - trained}
    assert made <= {"constant", "lifted_tensor_0", "lifted_tensor_1"}

    class Noisy(torch.nn.Module):
        def forward(self, x: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
            return x * noise[:, None, None, None] + torch.randn(8, 8)

    with pytest.raises(AnisoflightError, match=r"operations have no rule: randn"):
        client.put_network("noisy", Noisy(), size=8, channels=1, progress=False)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_short_type_is_served_in_float32(client: Client, dtype: torch.dtype) -> None:
    """The module keeps its type and values; the server has those of a copy."""
    module, how = networks()["plain"]
    module = module.to(dtype).train()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    with pytest.warns(UserWarning, match=r"Plain is in b?float16; a copy in float32 is served") as message:
        client.put_network("short", module, prediction="v", replace=True, progress=False, **how)
    assert len(message) == 1
    assert module.training
    for name, value in module.state_dict().items():
        assert value.dtype == dtype
        torch.testing.assert_close(value, before[name], rtol=0, atol=0)
    back = client.get_network("short", networks()["plain"][0])
    for name, value in back.state_dict().items():
        torch.testing.assert_close(value, before[name].float(), rtol=0, atol=0)
    client.delete_model("short")


@torch.no_grad()
def in_torch(unet: UNet2DModel, plan: Any, latents: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The samples of a plan, stepped by diffusers' loop."""
    scheduler = plan.scheduler(DDPMScheduler())
    scheduler.set_timesteps()
    x = torch.from_numpy(latents).permute(0, 3, 1, 2)
    for t in scheduler.timesteps:
        x = scheduler.step(unet(scheduler.scale_model_input(x, t), t).sample, t, x, return_dict=False)[0]
    return x.permute(0, 2, 3, 1).numpy()


def test_everything_works_on_an_exported_network(client: Client, unet: UNet2DModel) -> None:
    scheduler = DDPMScheduler()
    client.put_network("ddpm", unet, scheduler=scheduler, replace=True, progress=False)
    latents = np.random.default_rng(0).standard_normal((4, 8, 8, 1), np.float32)
    levels = [40, 15, 6, 2.5, 1, 0.4, 0.15, 0.05, 0.02, 0]
    asked: dict[str, Any] = {"schedule": {"edm": {"T": 40.0**2}}, "solver": "unipc", "grid": {"sigma": levels}}
    drawn = client.sample("ddpm", latents=latents, dtype="float32", progress=False, **asked)
    np.testing.assert_allclose(
        drawn.images, in_torch(unet, client.plan(**asked, model="ddpm"), latents), rtol=0, atol=2e-3
    )

    client.make_schedule(
        "ddpm-geodesic", "geodesic", model="ddpm", dataset="digits", points=6, samples=8, replace=True, progress=False
    )
    followed = client.sample("ddpm", n=2, nfe=6, schedule="ddpm-geodesic", progress=False)
    assert followed.images.shape == (2, 8, 8, 1)
    rows = client.evaluate_model("ddpm", "digits", points=3, samples=4, progress=False)
    assert (rows["loss"] > 0).all()

    fields = {"dataset": "digits", "model": "ddpm", "batch": 4, "kimg": 1.0}
    for mode in ("explicit", "backprop", "full"):
        run = client.create_run(f"net-{mode}", "isotropic", estimator=mode, **fields)
        assert np.isfinite(run.step(1, progress=False)["loss"]).all()

    run = client.create_run("net-tuned", "pretrain", **fields)
    run.step(2, progress=False)
    run.save("ddpm-tuned")
    tuned = client.get_network("ddpm-tuned", copy.deepcopy(unet))
    assert any(not torch.equal(a, b) for a, b in zip(tuned.parameters(), unet.parameters(), strict=True))
    same = client.get_network("ddpm", copy.deepcopy(unet))
    for a, b in zip(same.parameters(), unet.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)

    family = {"basis": "dct", "k": 16}
    run = client.create_run("net-ratios", "anisotropic", family=family, ratio_embedding=True, **fields)
    assert np.isfinite(run.step(1, progress=False)["loss"]).all()


class Mixed(torch.nn.Module):
    """Each axis has weights of its own, so that none can be taken for another."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(channels, channels, (3, 1), padding="same")
        self.gain = torch.nn.Parameter(torch.randn(width))

    def forward(self, x: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        return self.conv(x) * self.gain * (1 + 0.1 * noise[:, None, None, None])


@pytest.mark.parametrize(("channels", "height", "width"), [(5, 8, 8), (16, 8, 8), (16, 16, 16), (3, 8, 4)])
@torch.no_grad()
def test_any_number_of_channels(client: Client, channels: int, height: int, width: int) -> None:
    """put_network compares with torch itself; then both orders of the axes do."""
    module = Mixed(channels, width)
    client.put_network(
        "mixed", module, size=(height, width), channels=channels, prediction="edm", replace=True, progress=False
    )
    x = torch.randn(2, channels, height, width)
    want = Denoiser(module)(x, torch.full((2,), 0.5)).numpy()
    cube = channels == height == width
    first = client.denoise("mixed", x.numpy(), 0.5, layout="CHW" if cube else None, progress=False).denoised
    last = client.denoise("mixed", x.permute(0, 2, 3, 1).numpy(), 0.5, layout="HWC" if cube else None, progress=False)
    np.testing.assert_allclose(first, want, atol=1e-5)
    np.testing.assert_allclose(last.denoised, np.moveaxis(want, 1, 3), atol=1e-5)


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[None]:
    """A process group of one."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/group", rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


WRAPPERS: dict[str, Callable[[torch.nn.Module], torch.nn.Module]] = {
    "compile": torch.compile,
    "DataParallel": torch.nn.DataParallel,
    "DistributedDataParallel": torch.nn.parallel.DistributedDataParallel,
    "AveragedModel": torch.optim.swa_utils.AveragedModel,
    "two": lambda module: torch.nn.DataParallel(torch.compile(module)),
}


@pytest.mark.parametrize("name", WRAPPERS)
@pytest.mark.usefixtures("alone")
def test_the_network_inside_a_wrapper_is_taken(client: Client, unet: UNet2DModel, name: str) -> None:
    """By every function that takes a network; the wrapper's names are not those of the model."""
    wrap, how = WRAPPERS[name], {"size": 8, "channels": 2, "prediction": "edm", "replace": True, "progress": False}
    inner = Mixed(2, 8)
    plain = client.put_network("wrapped", inner, **how)
    assert client.put_network("wrapped", wrap(inner), **how)["hash"] == plain["hash"]
    empty = wrap(Mixed(2, 8))
    assert client.get_network("wrapped", empty) is empty
    for got, want in zip(empty.parameters(), inner.parameters(), strict=True):
        torch.testing.assert_close(got, want, rtol=0, atol=0)
    wrapped = wrap(copy.deepcopy(unet).requires_grad_(True))
    for take in (Denoiser, lambda network: client.put_network("unsaid", network, progress=False)):
        with pytest.raises(AnisoflightError, match="for a UNet2DModel of diffusers, got none; or give scheduler"):
            take(wrapped)
    assert export(wrapped).tensors.keys() == export(unet).tensors.keys()


@pytest.mark.parametrize(
    "kind",
    [
        DDIMScheduler,
        DPMSolverMultistepScheduler,
        EulerAncestralDiscreteScheduler,
        EulerDiscreteScheduler,
        TCDScheduler,
        UniPCMultistepScheduler,
    ],
)
@pytest.mark.parametrize("betas", ["linear", "scaled_linear"])
def test_betas_of_zero_terminal_snr_are_those_of_ddpm(kind: Any, betas: str) -> None:
    """Some hold ᾱ = 2^-24 in place of the last 0."""
    options = {"rescale_betas_zero_snr": True, "prediction_type": "v_prediction", "beta_schedule": betas}
    options |= {"beta_start": 0.0001, "beta_end": 0.02}
    made = parametrization(kind(**options))
    assert made == parametrization(DDPMScheduler(**options))
    assert made["alphas_cumprod"][-1] == 0 < made["alphas_cumprod"][-2]


def test_a_network_of_zero_terminal_snr_is_served(client: Client, unet: UNet2DModel) -> None:
    scheduler = EulerDiscreteScheduler(rescale_betas_zero_snr=True, prediction_type="v_prediction")
    assert client.put_network("snr", unet, scheduler=scheduler, progress=False)["parametrization"] == "v"
    client.delete_model("snr")


def test_what_differs_is_removed(client: Client) -> None:
    module, how = networks()["plain"]
    exported = export(module, parametrization=parametrization("edm"), **how)
    changed: dict[str, Any] = {name: value + 0.01 for name, value in exported.tensors.items()}
    with pytest.raises(AnisoflightError, match="away from torch, relative"):
        client.put_network("changed", Exported(exported.config, changed, exported.wrapped), progress=False)
    assert "changed" not in client.models().index


def test_a_network_of_diffusers_says_what_it_predicts(client: Client, unet: UNet2DModel) -> None:
    kinds = "edm, vp, ve, epsilon, v, sample, flow for a UNet2DModel of diffusers, got none; or give scheduler"
    exported = export(unet)
    for network in (unet, exported):
        with pytest.raises(AnisoflightError, match=kinds):
            client.put_network("unsaid", network, progress=False)
    with pytest.raises(AnisoflightError, match=kinds):
        Denoiser(unet)
    assert client.put_network("said", exported, prediction="flow", progress=False)["parametrization"] == "flow"
    client.delete_model("said")


class Lambda(torch.nn.Module):
    """A forward pass in one expression."""

    def __init__(self, compute: Callable[..., torch.Tensor], *parts: torch.nn.Module) -> None:
        super().__init__()
        self.compute, self.parts = compute, torch.nn.ModuleList(parts)

    def forward(self, x: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        return self.compute(x, noise)


class Small(torch.nn.Module):
    """Two convolutions, and a tensor that no forward pass uses."""

    def __init__(self, width: int = 4, more: bool = False) -> None:
        super().__init__()
        self.first, self.last = torch.nn.Conv2d(1, width, 3, padding=1), torch.nn.Conv2d(width, 1, 3, padding=1)
        self.more = torch.nn.Conv2d(width, width, 1) if more else None
        self.unused = torch.nn.Parameter(torch.full((3,), 7.0))
        self.register_buffer("counted", torch.tensor(5))

    def forward(self, x: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        y = torch.nn.functional.silu(self.first(x)) * (1 + noise[:, None, None, None])
        return self.last(y if self.more is None else y + self.more(y))


def test_weights_come_back_whole_or_not_at_all(client: Client) -> None:
    for more in (False, True):
        name, given = f"small-{more:d}", Small(more=more)
        client.put_network(name, given, size=8, channels=1, prediction="edm", progress=False)
        same, other = Small(more=more), Small(more=not more)
        client.get_network(name, same)
        for a, b in zip(same.parameters(), given.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=0)
        before = copy.deepcopy(other.state_dict())
        what = "of the model's 6 tensors are not in it" if more else "of its 8 tensors are not in the model"
        with pytest.raises(AnisoflightError, match=rf"2 {what}: more\.\w+, more\.\w+; nothing was replaced"):
            client.get_network(name, other)
        wide = Small(width=8, more=more)
        with pytest.raises(AnisoflightError, match="tensors have another shape"):
            client.get_network(name, wide)
        assert all(torch.equal(value, before[key]) for key, value in other.state_dict().items())
        client.delete_model(name)


class Counted(Context):
    """One with a batch norm, which counts batches."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm2d(2)

    def forward(self, x: torch.Tensor, noise: torch.Tensor, **rest: torch.Tensor) -> torch.Tensor:
        return super().forward(self.norm(x), noise, **rest)


def line_of(kind: type, place: int) -> int:
    return inspect.getsourcelines(kind)[1] + place


def test_tensors_that_no_forward_pass_uses_may_lack(client: Client) -> None:
    """Counts of batch norms, in networks of a volume and with conditions of several names."""
    for name, row in (("volume", networks()["volume"]), ("context", (Counted(), ROWS["context"].how))):
        module, how = row
        client.put_network(name, module, prediction="edm", progress=False, **how)
        same = copy.deepcopy(module)
        for one in same.parameters():
            torch.nn.init.zeros_(one)
        client.get_network(name, same)
        for a, b in zip(same.parameters(), module.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=0)
        client.delete_model(name)


def test_weights_are_held_once() -> None:
    """What is sent of a float32 tensor is its own memory, and of all of them a whole file."""
    module = Small()
    exported = export(module, size=8, channels=1)
    size, parts = exported.weights()
    parts = list(parts)
    assert size == sum(map(len, parts))
    held = {np.frombuffer(part, np.uint8).ctypes.data for part in parts}
    used = [one for name, one in module.named_parameters() if name != "unused"]
    assert {one.data_ptr() for one in used} == held - {np.frombuffer(parts[0], np.uint8).ctypes.data}
    for name, value in load(b"".join(parts)).items():
        torch.testing.assert_close(value, module.state_dict()[name], rtol=0, atol=0)
    sizes = [batch.num_rows for batch in service._batches(pa.schema([pa.field("bytes", service.ROW)]), parts)]
    assert sum(sizes) == -(-size // service.PART)


@pytest.mark.parametrize("sizes", [[0], [1], [service.BATCH], [5, service.BATCH - 5, 7], [3 * service.BATCH + 1, 2]])
def test_pieces_become_batches_of_bounded_size(sizes: list[int]) -> None:
    whole = np.random.default_rng(0).integers(0, 256, sum(sizes), np.uint8)
    pieces = [memoryview(part) for part in np.split(whole, np.cumsum(sizes)[:-1])]
    batches = list(service._batches(pa.schema([pa.field("bytes", service.ROW)]), pieces))
    assert all(batch.num_rows * service.PART <= service.BATCH for batch in batches)
    sent = [to_numpy(batch["bytes"]).reshape(-1) for batch in batches]
    np.testing.assert_array_equal(np.concatenate([whole[:0], *sent])[: len(whole)], whole)


class Scaled(torch.nn.Module):
    def forward(self, x: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        return x * noise[:, None, None, None]


def test_a_module_without_tensors(client: Client) -> None:
    client.put_network("bare", Scaled(), size=8, channels=1, prediction="edm", progress=False)
    client.delete_model("bare")


@pytest.mark.parametrize("size", [(6,), (2, 3, 4)])
def test_lines_and_volumes_are_images(client: Client, size: tuple[int, ...]) -> None:
    """[B, C, L] is an image of height one, [B, C, D, H, W] one of D·H rows; samples come back so."""
    kind = (torch.nn.Conv1d, None, torch.nn.Conv3d)[len(size) - 1]
    conv = kind(2, 2, (3, 2, 1)[-len(size) :], padding="same")
    module = Lambda(lambda x, time: conv(x) * time.reshape(-1, *[1] * (len(size) + 1)), conv)
    made = client.put_network("axes", module, size=size, channels=2, prediction="edm", replace=True, progress=False)
    rows = math.prod(size[:-1])
    x = torch.randn(3, 2, *size)
    asked = x.reshape(3, 2, rows, size[-1]).permute(0, 2, 3, 1).numpy()
    got = client.denoise("axes", asked, 0.5, layout="HWC", progress=False).raw
    ask = edm("epsilon", 0.5)
    with torch.no_grad():
        want = module(x * ask.input_scale(0.5), torch.full((3,), ask.time(0.5)))
    np.testing.assert_allclose(np.moveaxis(got, 3, 1).reshape(want.shape), want.numpy(), rtol=0, atol=1e-5)
    assert (made["img_resolution"], made.get("img_width", made["img_resolution"])) == (rows, size[-1])
    assert client.sample("axes", n=2, nfe=4, progress=False).images.shape == (2, rows, size[-1], 2)


def test_the_adapter_that_an_error_prints_is_accepted(client: Client) -> None:
    """Where forward needs more than it is given; its place is left open."""
    module = ROWS["context"].make()
    with pytest.raises(AnisoflightError, match="forward also takes context, dose") as refused:
        client.put_network("open", module, size=8, channels=2, progress=False)
    code = refused.value.message.partition("adapter:\n\n")[2]
    given = "context=CONTEXT[:1].expand(x.shape[0], -1, -1), dose=0.5 * torch.ones_like(noise_label)"
    names: dict[str, Any] = {"torch": torch, "CONTEXT": CONTEXT}
    exec(code.replace("context=…", given), names)
    client.put_network("open", names["Adapter"](module), size=8, channels=2, prediction="edm", progress=False)
    client.delete_model("open")
    with pytest.raises(AnisoflightError, match="unexpected keyword argument 'contxt'"):
        client.put_network("open", module, size=8, channels=2, conditions={"contxt": CONTEXT}, progress=False)
    wrong = {"context": CONTEXT, "dose": torch.ones(2)}
    with pytest.raises(AnisoflightError, match="a row for each of K labels"):
        client.put_network("open", module, size=8, channels=2, conditions=wrong, progress=False)
    with pytest.raises(AnisoflightError, match="labels must not be given with conditions"):
        client.put_network(
            "open", module, size=8, channels=2, labels=3, conditions={"context": CONTEXT}, progress=False
        )


def test_refusals(client: Client) -> None:
    class Fourier(torch.nn.Module):
        def forward(self, x: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
            return torch.fft.ifft2(torch.fft.fft2(x)).real * noise[:, None, None, None]

    with pytest.raises(AnisoflightError, match=r"operations have no rule: .*fft"):
        client.put_network("fourier", Fourier(), size=8, channels=1, progress=False)

    class Unlike(torch.nn.Module):
        def forward(self, x: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
            return x @ noise

    class Counting(torch.nn.Module):
        def forward(self, x: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
            return x * torch.ones(len(x), 1, 1, 1)

    class Looping(torch.nn.Module):
        def forward(self, x: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
            return torch.stack([one.sin() for one in x])

    class Ranking(torch.nn.Module):
        def forward(self, x: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
            return x * torch.topk(x.flatten(1), 3).values.mean(1)[:, None, None, None]

    for kind in (Fourier, Unlike, Counting, Looping, Ranking):
        line = line_of(kind, 2)
        with pytest.raises(AnisoflightError, match=rf"{re.escape(__file__)}, line {line}"):
            client.put_network("lines", kind(), size=8, channels=1, progress=False)
    module, how = networks()["sit"]
    exported = export(module, **how)
    exported.tensors.pop("patch.bias")
    with pytest.raises(AnisoflightError, match=r"patch\.bias.*is missing"):
        client.put_network("short", exported, progress=False)
