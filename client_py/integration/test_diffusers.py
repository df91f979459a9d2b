"""The scheduler in diffusers: its pipelines, its files, and the same samples as the schedulers that it agrees with."""

from __future__ import annotations

import copy
import importlib
import json
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from diffusers import (
    DDIMPipeline,
    DDIMScheduler,
    DDPMPipeline,
    DDPMScheduler,
    DiffusionPipeline,
    DPMSolverMultistepScheduler,
    FlowMatchEulerDiscreteScheduler,
    FluxPipeline,
    FluxTransformer2DModel,
    UNet2DModel,
)
from diffusers.schedulers.scheduling_utils import SchedulerMixin

from anisoflight.diffusers import Scheduler
from anisoflight.errors import AnisoflightError
from anisoflight.networks import ddpm
from anisoflight.stepping import Stepper

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from anisoflight import Client

    Network = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

OUTSIDE = {"sigma_min": 0.01, "sigma_max": 160.0}  # the noise levels of DDPM's betas
LEVELS = ddpm(DDPMScheduler().alphas_cumprod.double().numpy())


def noise(count: int = 4) -> torch.Tensor:
    return torch.randn(count, 1, 8, 8, generator=torch.Generator().manual_seed(3))


@torch.no_grad()
def drawn(scheduler: Any, network: Network, steps: int | None = None, start: float | None = None, **given: Any) -> Any:
    """The loop that every pipeline of diffusers has."""
    scheduler.set_timesteps(steps, **given)
    x = noise() * (scheduler.init_noise_sigma if start is None else start)
    scaled = getattr(scheduler, "scale_model_input", lambda x, _: x)  # which FlowMatch has not
    for t in scheduler.timesteps:
        x = scheduler.step(network(scaled(x, t), t), t, x, return_dict=False)[0]
    return x


def levels_of(scheduler: Any, steps: int) -> list[float]:
    """The noise levels that a DDPM scheduler of diffusers steps through."""
    scheduler.set_timesteps(steps)
    return [LEVELS.sigma(float(t)) for t in scheduler.timesteps] + [0.0]


def eps_of(unet: UNet2DModel) -> Network:
    return lambda x, t: unet(x, t).sample


def test_ddim_is_euler(client: Client, unet: UNet2DModel) -> None:
    theirs = DDIMScheduler(clip_sample=False)
    plan = client.plan("edm", **OUTSIDE, solver="euler", grid={"sigma": levels_of(theirs, 7)})
    ours = Scheduler(plan)
    torch.testing.assert_close(
        drawn(ours, eps_of(unet), 7), drawn(theirs, eps_of(unet), 7, ours.init_noise_sigma), rtol=0, atol=2e-4
    )
    assert ours.timesteps.tolist() == pytest.approx(theirs.timesteps.tolist(), abs=1e-3)


def test_dpm_solver_is_dpmpp2m(client: Client, unet: UNet2DModel) -> None:
    theirs = DPMSolverMultistepScheduler(final_sigmas_type="zero", lower_order_final=True)
    levels = {"schedule": {"edm": {"T": 160.0**2}}, "grid": {"sigma": levels_of(theirs, 6)}}
    plan = client.plan(**levels, **OUTSIDE, solver="dpmpp2m", lower_order_final=True)
    ours = Scheduler(plan)
    x = drawn(theirs, eps_of(unet), 6, ours.init_noise_sigma)
    torch.testing.assert_close(drawn(ours, eps_of(unet)), x, rtol=0, atol=1e-3)


def test_clipping_is_ddims(client: Client, unet: UNet2DModel) -> None:
    theirs = DDIMScheduler(clip_sample=True)
    plan = client.plan("edm", **OUTSIDE, solver="euler", grid={"sigma": levels_of(theirs, 5)})
    ours = Scheduler.from_config(theirs.config, plans=plan)
    assert ours.config.clip_sample
    assert drawn(ours, eps_of(unet)).abs().max() <= 1.001  # but for the noise of the schedule's last level


def as_kind(unet: UNet2DModel, kind: str) -> Network:
    """The trained ε network in the clothes of another kind."""

    def network(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        time = float(t)
        sigma = {
            "v": LEVELS.sigma(time),
            "x0": LEVELS.sigma(time),
            "flow": time / (1000 - time) if kind == "flow" else 0,
            "edm": np.exp(4 * time) if kind == "edm" else 0,
            "denoiser": time,
        }[kind]
        norm = np.hypot(1, sigma)
        scale = {"v": norm, "x0": norm, "flow": 1 + sigma, "edm": np.hypot(sigma, 0.5), "denoiser": 1}[kind]
        clean = x * scale  # x_0 + σε
        eps = unet(clean / norm, torch.tensor(LEVELS.time(sigma))).sample
        x0 = clean - sigma * eps
        if kind == "v":
            return (eps - sigma * x0) / norm
        if kind == "flow":
            return eps - x0
        if kind == "edm":
            return (x0 - 0.25 / scale**2 * clean) / (sigma * 0.5 / scale)
        return x0

    return network


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("v", {"prediction_type": "v_prediction"}),
        ("x0", {"prediction_type": "sample"}),
        ("flow", {"prediction_type": "flow_prediction"}),
        ("edm", {"network": "edm"}),
        ("denoiser", {"network": "denoiser", "prediction_type": "sample"}),
    ],
)
@pytest.mark.parametrize("solver", ["unipc", "heun"])
def test_kinds_of_networks_draw_the_same(
    client: Client, unet: UNet2DModel, kind: str, config: dict[str, Any], solver: str
) -> None:
    """One network, told and asked in five ways, from the same noise."""
    plan = client.plan({"edm": {"T": 40.0**2}}, **OUTSIDE, solver=solver, steps=6, grid={"edm": {"sigma_min": 0.02}})
    expected = drawn(Scheduler(plan), eps_of(unet))
    torch.testing.assert_close(drawn(Scheduler(plan, **config), as_kind(unet, kind)), expected, rtol=0, atol=2e-3)


def test_flow_is_the_flow_match_scheduler(client: Client, unet: UNet2DModel) -> None:
    """Its first level is all noise; ours are those of its grid that have one."""
    theirs = FlowMatchEulerDiscreteScheduler()
    shares = np.linspace(0.98, 0.1, 8)
    plan = client.plan("edm", **OUTSIDE, solver="euler", grid={"sigma": [*(shares / (1 - shares)).tolist(), 0.0]})
    ours = Scheduler.from_config(theirs.config, plans=[plan.file], network="flow")
    network = as_kind(unet, "flow")
    x = drawn(theirs, network, start=ours.init_noise_sigma, sigmas=shares.tolist())
    assert ours.timesteps.tolist() == pytest.approx(theirs.timesteps.tolist(), rel=1e-6)
    torch.testing.assert_close(drawn(ours, network), x, rtol=0, atol=1e-3)


def test_pipelines(client: Client, unet: UNet2DModel, tmp_path: Path) -> None:
    """DDPM's and DDIM's, saved and loaded, and from the hub's layout of a folder per part."""
    plans = [client.plan({"edm": {"T": 80.0**2}}, **OUTSIDE, solver="unipc", nfe=nfe, grid="logsnr") for nfe in (5, 9)]
    pipe = DDPMPipeline(unet, Scheduler.from_config(DDPMScheduler().config, plans=plans))
    pipe.set_progress_bar_config(disable=True)

    def images(pipe: Any, **options: Any) -> np.ndarray:
        generator = torch.Generator().manual_seed(5)
        return pipe(batch_size=3, num_inference_steps=9, generator=generator, output_type="np", **options).images

    expected = images(pipe)
    assert expected.shape == (3, 8, 8, 1)
    assert 0 <= expected.min() < 0.1 < 0.9 < expected.max() <= 1
    pipe.save_pretrained(tmp_path)
    assert json.loads((tmp_path / "scheduler" / "scheduler_config.json").read_text())["_class_name"] == "Scheduler"
    loaded = DDPMPipeline.from_pretrained(tmp_path)
    loaded.set_progress_bar_config(disable=True)
    assert type(loaded.scheduler) is Scheduler
    np.testing.assert_array_equal(images(loaded), expected)
    with pytest.raises(ValueError, match=r"num_inference_steps must be one of 5, 9, .*, got 50"):
        loaded(num_inference_steps=50)

    ddim = DDIMPipeline(unet, loaded.scheduler)  # it takes the config for a scheduler of its own
    assert type(ddim.scheduler) is DDIMScheduler
    assert torch.equal(ddim.scheduler.alphas_cumprod, loaded.scheduler.alphas_cumprod)
    ddim.scheduler = loaded.scheduler
    ddim.set_progress_bar_config(disable=True)
    np.testing.assert_array_equal(images(ddim), expected)
    with pytest.raises(ValueError, match=r"eta must be 0, got 0\.5"):
        images(ddim, eta=0.5)
    assert type(DiffusionPipeline.from_pretrained(tmp_path).scheduler) is Scheduler


def test_a_loop_that_begins_elsewhere_is_refused(client: Client, unet: UNet2DModel) -> None:
    """DDPMPipeline begins with white noise, which is not where these plans begin."""
    options: dict[str, Any] = {"solver": "euler", "steps": 3, **OUTSIDE}
    client.make_schedule("law", "start", dataset="digits", sigma_max=5.0, replace=True, progress=False)
    law = client.plan("law", solver="euler", steps=3)
    for scheduler, said in (
        (Scheduler(law), r"the plan starts from the law of a dataset, .* begin with start\(noise\)"),
        (Scheduler(client.plan({"edm": {"T": 100}}, **options), network="flow"), "starts at 0.909091 times unit noise"),
        (Scheduler(client.plan("edm", **options), network="denoiser", prediction_type="sample"), "starts at 80 times"),
    ):
        pipe = DDPMPipeline(unet, scheduler)
        pipe.set_progress_bar_config(disable=True)
        with pytest.raises(ValueError, match=said):
            pipe(batch_size=2, num_inference_steps=3)
    standard = DDPMPipeline(unet, Scheduler(client.plan("edm", **options)))
    standard.set_progress_bar_config(disable=True)
    assert len(standard(batch_size=2, num_inference_steps=3).images) == 2

    scheduler, stepper = Scheduler(law), Stepper(law, "epsilon")
    x = scheduler.start(noise())
    y = stepper.start(noise())
    scheduler.set_timesteps(3)  # as a pipeline does that is given these latents
    with torch.no_grad():
        for t, stage in zip(scheduler.timesteps, stepper.stages, strict=True):
            x = scheduler.step(unet(scheduler.scale_model_input(x, t), t).sample, t, x).prev_sample
            y = stepper.step(unet(y / np.hypot(1, stage.sigma), t).sample, y)
    torch.testing.assert_close(x, y, rtol=0, atol=1e-4)
    scheduler.set_timesteps(3)
    with pytest.raises(ValueError, match="begin with start"):  # a start serves one pass
        scheduler.scale_model_input(x, scheduler.timesteps[0])


@pytest.mark.parametrize("name", ["flux.pipeline_flux", "qwenimage.pipeline_qwenimage", "chroma.pipeline_chroma"])
def test_pipelines_of_flow_networks_pass_sigmas_and_a_shift(client: Client, name: str) -> None:
    """As Flux's, Qwen-Image's and Chroma's do: their number chooses the plan, whose times are taken."""
    pytest.importorskip("transformers")
    pipeline = importlib.import_module(f"diffusers.pipelines.{name}")
    plans = [client.plan("edm", sigma_min=0.02, sigma_max=80, solver=solver, steps=5) for solver in ("ab", "heun")]
    for plan in plans:
        ours = Scheduler.from_config(FlowMatchEulerDiscreteScheduler(shift=3.0).config, plans=plan, network="flow")
        times, count = pipeline.retrieve_timesteps(ours, None, "cpu", sigmas=np.linspace(1, 1 / 5, 5), mu=0.5)
        assert count == plan.nfe
        assert times.tolist() == pytest.approx([1000 * s.sigma / (1 + s.sigma) for s in plan.stages])


def test_flux_asks_its_network_at_the_plans_times(client: Client) -> None:
    pytest.importorskip("transformers")
    sizes = {"attention_head_dim": 16, "num_attention_heads": 2, "axes_dims_rope": [4, 4, 8], "in_channels": 4}
    text = {"joint_attention_dim": 8, "pooled_projection_dim": 8}
    transformer = FluxTransformer2DModel(1, num_layers=1, num_single_layers=1, **sizes, **text)
    plan = client.plan("edm", sigma_min=0.02, sigma_max=80, solver="unipc", nfe=5)
    ours = Scheduler.from_config(FlowMatchEulerDiscreteScheduler().config, plans=plan, network="flow")
    pipe = FluxPipeline(ours, None, None, None, None, None, transformer)
    pipe.set_progress_bar_config(disable=True)
    asked: list[float] = []
    transformer.register_forward_pre_hook(
        lambda _, args, given: asked.append(float(given["timestep"])), with_kwargs=True
    )
    prompt = {"prompt_embeds": torch.randn(1, 4, 8), "pooled_prompt_embeds": torch.randn(1, 8)}
    images = pipe(**prompt, height=32, width=32, num_inference_steps=5, output_type="latent").images
    assert images.isfinite().all()
    assert asked == pytest.approx([stage.sigma / (1 + stage.sigma) for stage in plan.stages])


def test_sigmas_of_ones_own_are_refused(client: Client) -> None:
    """A plan of them, made as the error says, is taken."""
    shares = [0.98, 0.7, 0.3, 0.1]
    options: dict[str, Any] = {**OUTSIDE, "solver": "euler"}
    ours = Scheduler(client.plan("edm", **options, steps=4), network="flow")
    ours.set_timesteps(sigmas=np.linspace(1, 0, 5)[:-1], mu=1.15)
    assert len(ours.timesteps) == 4
    even = [1, 0.75, 0.5, 0.25]
    for given in ({"sigmas": shares}, {"sigmas": np.subtract(even, 0.1)}, {"sigmas": even, "num_inference_steps": 5}):
        with pytest.raises(AnisoflightError, match=r"make the plan with grid=.*s/\(1 - s\), …, 0"):
            ours.set_timesteps(**given)
    plan = client.plan("edm", **options, grid={"sigma": [*(s / (1 - s) for s in shares), 0]})
    assert Scheduler(plan, network="flow").timesteps.tolist() == pytest.approx([1000 * s for s in shares])


KINDS: list[dict[str, Any]] = [{}, {"network": "flow"}, {"network": "denoiser", "prediction_type": "sample"}]


@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_does_not_begin_in_the_middle(client: Client, kind: dict[str, Any]) -> None:
    """The refusal names that, and its advice, a strength of 1, begins with noise on the image."""
    ours = Scheduler(client.plan("edm", **OUTSIDE, solver="ab", steps=4), **kind)
    ours.set_timesteps(4)
    images, middle = noise() / 2, ours.timesteps[2]
    for begin in (
        lambda x: ours.scale_model_input(x, middle),
        lambda x: ours.step(x, middle, x),
        lambda _: ours.set_begin_index(2),
    ):
        with pytest.raises(AnisoflightError, match="a strength below 1 are not supported; give strength=1"):
            begin(ours.add_noise(images, noise(), middle[None]))
    ours.set_begin_index(0)
    x = ours.scale_noise(images, ours.timesteps[:1], noise())
    for t in ours.timesteps:
        x = ours.step(0 * x, t, ours.scale_model_input(x, t)).prev_sample
    assert x.isfinite().all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_goes_on_where_the_scheduler_is(client: Client, kind: dict[str, Any], copied: Any) -> None:
    rows = [(label, t, g) for label in (0, 1) for t, g in ((0, 1e-6), (4, 0.3 + 3 * label), (9, 2500))]
    label, t, g = zip(*rows, strict=True)
    client.put_schedule("by-class", {"label": label, "t": t, "g": g}, replace=True)
    plans = [client.plan("edm", **OUTSIDE, solver="unipc", steps=4), client.plan("by-class", labels=[0, 1], steps=3)]
    for steps, one in ((4, Scheduler(plans, **kind)), (3, Scheduler(plans, **kind))):
        one.set_labels([1, 0, 1, 1])
        one.set_timesteps(steps)
        x = one.start(noise())
        for t in one.timesteps[:2]:
            x = one.step(0.3 * x, t, x).prev_sample
        other, y = copied(one), x
        assert other.config == one.config
        for t in one.timesteps[2:]:
            x, y = (each.step(0.3 * at, t, at).prev_sample for each, at in ((one, x), (other, y)))
        torch.testing.assert_close(y, x, rtol=0, atol=0)
        other.set_timesteps(steps)
        torch.testing.assert_close(other.timesteps, one.timesteps, rtol=0, atol=0)


def test_labels_of_a_batch(client: Client, unet: UNet2DModel, tmp_path: Path) -> None:
    """One plan of several classes draws for each image what the plan of its class draws."""
    rows = [(label, t, g) for label in (0, 1) for t, g in ((0, 1e-6), (4, 0.3 + 3 * label), (9, 2500))]
    label, t, g = zip(*rows, strict=True)
    client.put_schedule("by-class", {"label": label, "t": t, "g": g}, replace=True)
    options: dict[str, Any] = {"solver": "unipc", "steps": 4}
    Scheduler(client.plan("by-class", labels=[0, 1], **options)).save_pretrained(tmp_path)
    mixed, labels = Scheduler.from_pretrained(tmp_path), [1, 0, 0, 1]
    with pytest.raises(ValueError, match="labels must be given, one for each image"):
        mixed.set_timesteps(4)
    mixed.set_labels(labels)
    got = drawn(mixed, eps_of(unet), 4)
    assert mixed.timesteps.shape == (4, 4)
    alone = [drawn(Scheduler(client.plan("by-class", label=label, **options)), eps_of(unet)) for label in (0, 1)]
    assert (alone[0] - alone[1]).abs().max() > 1e-2
    expected = torch.stack([alone[label][i] for i, label in enumerate(labels)])
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-4)

    pipe = DDPMPipeline(unet, mixed)
    pipe.set_progress_bar_config(disable=True)
    images = pipe(batch_size=4, num_inference_steps=4, output_type="np").images
    assert images.shape == (4, 8, 8, 1)
    mixed.set_timesteps(4)
    with pytest.raises(ValueError, match="labels must be as many as the 2 images, got 4"):
        mixed.scale_model_input(noise(2), mixed.timesteps[0])


def test_config_alone_holds_everything(client: Client, tmp_path: Path) -> None:
    """A plan on a basis with vectors, through scheduler_config.json, steps as the plan does."""
    rows = np.linalg.qr(np.random.default_rng(0).standard_normal((64, 5)))[0].T.reshape(5, 8, 8)
    client.put_basis("rows", rows, replace=True)
    table = {"subspace": [0, 0, 1, 1], "t": [0, 9, 0, 9], "g": [1e-6, 9, 1e-6, 9]}
    table["t"], table["g"] = [0, 4, 9, 0, 4, 9], [1e-6, 3, 9, 1e-6, 0.5, 9]
    client.put_schedule("rows", {**table, "subspace": [0, 0, 0, 1, 1, 1]}, basis="rows", replace=True)
    plan = client.plan("rows", solver="dpmpp3m", steps=5)
    scheduler = Scheduler(plan, network="denoiser", prediction_type="epsilon")
    scheduler.save_pretrained(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scheduler_config.json"]
    loaded = Scheduler.from_pretrained(tmp_path)
    stepper = Stepper(plan, "epsilon")
    x = stepper.start(noise())
    for _ in stepper.stages:
        x = stepper.step(0.3 * x, x)
    for one in (scheduler, loaded):
        torch.testing.assert_close(drawn(one, lambda x, _: 0.3 * x), x, rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="of kind ddpm is told one noise level at a time, this plan has 2"):
        Scheduler(plan)
    with pytest.raises(ValueError, match="know their own levels only"):
        loaded.add_noise(noise(), noise(), [1.0])


def test_training_noise_is_that_of_the_network(client: Client) -> None:
    plan = client.plan("edm", **OUTSIDE, solver="ab", steps=3)
    theirs = DDPMScheduler(beta_schedule="squaredcos_cap_v2")
    ours = Scheduler.from_config(theirs.config, plans=plan)
    assert isinstance(ours, SchedulerMixin)
    assert len(ours) == len(theirs) == 1000
    images, eps, times = noise(), noise() * 0.5, torch.tensor([0, 10, 500, 999])
    torch.testing.assert_close(ours.add_noise(images, eps, times), theirs.add_noise(images, eps, times))
    flow = Scheduler(plan, network="flow").add_noise(images[:3], eps[:3], torch.tensor([0.0, 500.0, 1000.0]))
    torch.testing.assert_close(flow, torch.stack([images[0], (images[1] + eps[1]) / 2, eps[2]]))


def test_churn_takes_generators(client: Client) -> None:
    scheduler = Scheduler(client.plan({"edm": {"T": 100}}, **OUTSIDE, solver="euler", steps=4, S_churn=2))

    def once(generator: Any) -> torch.Tensor:
        scheduler.set_timesteps()
        x = noise(2)
        for t in scheduler.timesteps:
            x = scheduler.step(0.1 * x, t, x, generator=generator).prev_sample
        return x

    def seeded(seed: int) -> torch.Generator:
        return torch.Generator().manual_seed(seed)

    assert torch.equal(once(seeded(1)), once(seeded(1)))
    assert not torch.equal(once(seeded(1)), once(seeded(2)))
    one, two = once([seeded(1), seeded(2)]), once([seeded(1), seeded(3)])
    assert torch.equal(one[0], two[0])
    assert not torch.equal(one[1], two[1])


def test_half_precision_stays(client: Client) -> None:
    scheduler = Scheduler(client.plan("edm", **OUTSIDE, solver="dpmpp2m", steps=4))
    scheduler.set_timesteps(device="cpu")
    x = noise().half()
    for t in scheduler.timesteps:
        out = scheduler.step(0.2 * x, t, x)
        x = out.prev_sample
        assert x.dtype == out.pred_original_sample.dtype == torch.float16
        assert x.isfinite().all()


def test_misuse_is_told(client: Client) -> None:
    plan = client.plan("edm", **OUTSIDE, solver="euler", steps=3)
    scheduler = Scheduler(plan)
    x = noise()
    with pytest.raises(ValueError, match="call set_timesteps to begin again"):
        scheduler.step(x, 1, x)
    scheduler.set_timesteps(3)
    with pytest.raises(ValueError, match=r"timestep must be the next, .*, got 2;"):
        scheduler.step(x, 2, x)
    for given, said in (
        ({"prediction_type": "x"}, "epsilon or sample or v_prediction for a network of kind ddpm, got 'x'"),
        ({"network": "gan"}, "network must be ddpm, flow, edm or denoiser, got 'gan'"),
        ({"plans": []}, "plans must hold one plan or more"),
    ):
        with pytest.raises(ValueError, match=said):
            Scheduler(**{"plans": plan, **given})
