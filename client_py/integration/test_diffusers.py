"""The scheduler in diffusers: its pipelines, its files, and the same samples as the schedulers that it agrees with."""

import contextlib
import copy
import importlib
import itertools
import json
import pickle
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from diffusers import (
    AutoencoderKL,
    DDIMPipeline,
    DDIMScheduler,
    DDPMPipeline,
    DDPMScheduler,
    DiffusionPipeline,
    DPMSolverMultistepScheduler,
    EDMEulerScheduler,
    EulerDiscreteScheduler,
    FlowMatchEulerDiscreteScheduler,
    FluxControlNetPipeline,
    FluxImg2ImgPipeline,
    FluxInpaintPipeline,
    FluxPipeline,
    FluxTransformer2DModel,
    ScoreSdeVeScheduler,
    StableDiffusion3InpaintPipeline,
    StableDiffusionImg2ImgPipeline,
    StableDiffusionInpaintPipeline,
    StableDiffusionPipeline,
    UNet2DConditionModel,
    UNet2DModel,
)
from diffusers.schedulers.scheduling_utils import SchedulerMixin
from network import flow as flow_batch
from network import trained

from anisoflight import AnisoflightWarning, Client, Plan
from anisoflight.diffusers import Scheduler
from anisoflight.errors import AnisoflightError
from anisoflight.plans.parametrizations import Network, ddpm, flow

Ask = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

OUTSIDE = {"sigma_min": 0.01, "sigma_max": 160.0}  # the noise levels of DDPM's betas
LEVELS = ddpm(DDPMScheduler().alphas_cumprod.double().numpy())
FLOW, EDM = FlowMatchEulerDiscreteScheduler(), EDMEulerScheduler()


def noise(count: int = 4) -> torch.Tensor:
    return torch.randn(count, 1, 8, 8, generator=torch.Generator().manual_seed(3))


@torch.no_grad()
def drawn(scheduler: Any, network: Ask, steps: int | None = None, start: float | None = None, **given: Any) -> Any:
    """The loop that every pipeline of diffusers has."""
    scheduler.set_timesteps(steps, **given)
    x = noise() * (1 if start is None else start)
    scaled = getattr(scheduler, "scale_model_input", lambda x, _: x)  # which FlowMatch has not
    for t in scheduler.timesteps:
        x = scheduler.step(network(scaled(x, t), t), t, x, return_dict=False)[0]
    return x


def levels_of(scheduler: Any, steps: int) -> list[float]:
    """The noise levels that a DDPM scheduler of diffusers steps through."""
    scheduler.set_timesteps(steps)
    return [LEVELS.sigma(float(t)) for t in scheduler.timesteps] + [0.0]


def eps_of(unet: UNet2DModel) -> Ask:
    return lambda x, t: unet(x, t).sample


def denoiser_of(kind: Network, ask: Ask) -> Callable[..., torch.Tensor]:
    """x_0 of x_0 + σε, from a network of a kind."""

    def denoiser(x: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
        wide = sigma.reshape(-1, *[1] * (x.ndim - 1))
        held = kind.scale(wide) * x
        return kind.denoised(ask(kind.input_scale(wide) * held, kind.time(sigma)), held, wide)

    return denoiser


def first(plan: Plan) -> float:
    """What a pipeline of a DDPM holds at the start, over unit noise."""
    return plan.init[0] * LEVELS.scale(plan.init[0])


def test_ddim_is_euler(client: Client, unet: UNet2DModel) -> None:
    theirs = DDIMScheduler(clip_sample=False)
    plan = client.plan("edm", **OUTSIDE, solver="euler", grid={"sigma": levels_of(theirs, 7)})
    ours = plan.scheduler(theirs)
    x = drawn(theirs, eps_of(unet), 7, first(plan))
    torch.testing.assert_close(drawn(ours, eps_of(unet), 7), x, rtol=0, atol=2e-4)
    assert ours.timesteps.tolist() == pytest.approx(theirs.timesteps.tolist(), abs=1e-3)


def test_dpm_solver_is_dpmpp2m(client: Client, unet: UNet2DModel) -> None:
    theirs = DPMSolverMultistepScheduler(final_sigmas_type="zero", lower_order_final=True)
    levels = {"schedule": {"edm": {"T": 160.0**2}}, "grid": {"sigma": levels_of(theirs, 6)}}
    plan = client.plan(**levels, **OUTSIDE, solver="dpmpp2m", lower_order_final=True)
    x = drawn(theirs, eps_of(unet), 6, first(plan))
    torch.testing.assert_close(drawn(plan.scheduler(theirs), eps_of(unet)), x, rtol=0, atol=1e-3)


def as_kind(unet: UNet2DModel, kind: str) -> Ask:
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
    ("kind", "theirs"),
    [
        ("v", DDPMScheduler(prediction_type="v_prediction")),
        ("x0", DDIMScheduler(prediction_type="sample").config),
        ("flow", FlowMatchEulerDiscreteScheduler(shift=3.0)),
        ("flow", DPMSolverMultistepScheduler(prediction_type="flow_prediction", use_flow_sigmas=True)),
        ("edm", EDMEulerScheduler(sigma_data=0.5)),
    ],
)
@pytest.mark.parametrize("solver", ["unipc", "heun"])
def test_kinds_of_networks_draw_the_same(
    client: Client, unet: UNet2DModel, kind: str, theirs: Any, solver: str
) -> None:
    """One network, told and asked in four ways, from the same noise; a scheduler of ours says its kind, too."""
    plan = client.plan({"edm": {"T": 40.0**2}}, **OUTSIDE, solver=solver, steps=6, grid={"edm": {"sigma_min": 0.02}})
    expected = plan(denoiser_of(LEVELS, eps_of(unet)), noise())
    torch.testing.assert_close(drawn(plan.scheduler(DDPMScheduler()), eps_of(unet)), expected, rtol=0, atol=1e-4)
    ours = plan.scheduler(plan.scheduler(theirs))
    torch.testing.assert_close(drawn(ours, as_kind(unet, kind)), expected, rtol=0, atol=2e-3)


def test_what_a_scheduler_says_of_its_network(client: Client) -> None:
    plan = client.plan("edm", **OUTSIDE, solver="euler", steps=3)
    video = EulerDiscreteScheduler(timestep_type="continuous", prediction_type="v_prediction")  # of Stable Video
    config = plan.scheduler(video).config
    expected = {"kind": "edm", "sigma_data": 1.0, "prediction": "v_prediction"}
    assert {key: config.network[key] for key in expected} == expected
    assert config.timestep_type == "continuous"
    with pytest.raises(AnisoflightError, match=r"must have betas, or be .*, got ScoreSdeVeScheduler for epsilon"):
        plan.scheduler(ScoreSdeVeScheduler())
    with pytest.raises(
        AnisoflightError, match="pipe must be a pipeline, a scheduler of diffusers or its config, got str"
    ):
        plan.scheduler("pipe")


def test_flow_is_the_flow_match_scheduler(client: Client, unet: UNet2DModel) -> None:
    """Its first level is all noise; ours are those of its grid that have one."""
    theirs = FlowMatchEulerDiscreteScheduler()
    shares = np.linspace(0.98, 0.1, 8)
    plan = client.plan("edm", **OUTSIDE, solver="euler", grid={"sigma": [*(shares / (1 - shares)).tolist(), 0.0]})
    ours = plan.scheduler(theirs)
    network = as_kind(unet, "flow")
    x = drawn(theirs, network, start=shares[0], sigmas=shares.tolist())
    torch.testing.assert_close(drawn(ours, network), x, rtol=0, atol=1e-3)
    assert ours.timesteps.tolist() == pytest.approx(theirs.timesteps.tolist(), rel=1e-6)


def test_pipelines(client: Client, unet: UNet2DModel, tmp_path: Path) -> None:
    """DDPM's and DDIM's, saved and loaded, and from the hub's layout of a folder per part."""
    plans = [client.plan({"edm": {"T": 80.0**2}}, **OUTSIDE, solver="unipc", nfe=nfe, grid="logsnr") for nfe in (5, 9)]
    pipe = DDPMPipeline(unet, DDPMScheduler())
    pipe.scheduler = plans[0].scheduler(pipe, plans[1])
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
    with pytest.raises(ValueError, match=r"num_inference_steps must be one of 5, 9, got 50"):
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


def test_ddpm_pipeline_draws_the_plans_samples(client: Client, unet: UNet2DModel) -> None:
    """Its network sees unit noise first, which is no start of these plans: that evaluation is spent."""
    client.make_schedule("law", "start", dataset="digits", sigma_max=5.0, replace=True, progress=False)
    far = client.plan({"edm": {"T": 25}}, **OUTSIDE, solver="unipc", steps=4)
    pipe = DDPMPipeline(unet, DDPMScheduler())
    pipe.set_progress_bar_config(disable=True)
    for plan in (client.plan("law", solver="euler", steps=3), far):
        told = f"DDPMPipeline will evaluate its network {plan.nfe + 1} times with num_inference_steps={plan.steps}, "
        with pytest.warns(AnisoflightWarning, match=f"{told}{plan.nfe} of them"):
            pipe.scheduler = plan.scheduler(pipe)
        asked: list[float] = []
        hook = unet.register_forward_pre_hook(lambda _, args, asked=asked: asked.append(float(args[1])))
        generator = torch.Generator().manual_seed(3)
        images = pipe(batch_size=4, num_inference_steps=plan.steps, generator=generator, output_type="np").images
        hook.remove()
        assert asked == pytest.approx([LEVELS.time(s.sigma) for s in (plan.evaluations[0], *plan.evaluations)])
        expected = plan(denoiser_of(LEVELS, eps_of(unet)), noise())
        expected = (expected / 2 + 0.5).clamp(0, 1).permute(0, 2, 3, 1).numpy()
        np.testing.assert_allclose(images, expected, rtol=0, atol=1e-5)

        pipe.scheduler = plan.scheduler(DDPMScheduler())  # which is not told of the pipeline
        generator = torch.Generator().manual_seed(3)
        again = pipe(batch_size=4, num_inference_steps=plan.steps, generator=generator, output_type="np").images
        np.testing.assert_array_equal(again, images)


@contextlib.contextmanager
def counted(network: torch.nn.Module) -> Iterator[list[float]]:
    """The times of the network's calls."""
    times: list[float] = []

    def note(_: Any, args: Any, kwargs: Any) -> None:
        time = kwargs["timestep"] if "timestep" in kwargs else args[1]
        times.append(float(torch.as_tensor(time).flatten()[0]))

    hook = network.register_forward_pre_hook(note, with_kwargs=True)
    yield times
    hook.remove()


@pytest.mark.parametrize("kind", [DDPMPipeline, DDIMPipeline])
def test_the_number_of_evaluations_is_told(client: Client, unet: UNet2DModel, kind: Any) -> None:
    """What the scheduler says before is what the network sees: those of the plan from σ = 80 on, one more below."""
    client.make_schedule("law", "start", dataset="digits", sigma_max=5.0, replace=True, progress=False)
    high = {"sigma_min": 0.02, "sigma_max": 80}
    plans = {
        3: client.plan("edm", **high, solver="ipndm", steps=3),
        4: client.plan("edm", **high, solver="heun", nfe=4),
        5: client.plan("law", solver="ipndm", steps=4),
    }
    for number, plan in plans.items():
        pipe = kind(unet, DDPMScheduler())
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            pipe.scheduler = plan.scheduler(pipe)
        assert len([one for one in caught if "will evaluate" in str(one.message)]) == number - plan.nfe
        pipe.set_progress_bar_config(disable=True)
        with counted(unet) as times:
            pipe(num_inference_steps=plan.steps)
        assert len(times) == pipe.scheduler.nfe == number


def test_unit_noise_for_a_flow_is_seen_by_no_eye(client: Client) -> None:
    """Its first state at σ = 80 is .988 times unit noise: what a trained network then draws differs by less than half a
    level of 8 bits."""
    network = trained(flow_batch, 400)
    plan = client.plan("edm", sigma_min=0.02, sigma_max=80, solver="ipndm", steps=3)
    scheduler = plan.scheduler(FLOW)

    def ask(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        return network(x, t).sample

    x = noise(64)
    scheduler.set_timesteps(3)
    assert len(scheduler.timesteps) == scheduler.nfe == 3
    with torch.no_grad():
        for t in scheduler.timesteps:
            x = scheduler.step(ask(x, t), t, x).prev_sample
    exact = plan(denoiser_of(flow(1000), ask), noise(64), progress=False)
    assert (x - exact).square().mean().sqrt() < 1 / 255


def test_an_evaluation_that_is_spent_is_one_of_the_loop(client: Client) -> None:
    """Loops ask for the time and the level of an evaluation by its index, and of the next one."""
    plan = client.plan({"edm": {"T": 400}}, **OUTSIDE, solver="unipc", steps=4)
    ours = plan.scheduler(FLOW)
    denoiser = denoiser_of(ours.network, lambda x, _: 0.3 * x)
    plain = [1000 * stage.sigma / (1 + stage.sigma) for stage in plan.evaluations]
    for copied in (lambda times: times, copy.deepcopy, lambda times: times.to("cpu")):
        ours.set_timesteps(4)
        times, levels, following, x = copied(ours.timesteps), [], [], noise()
        for i, t in enumerate(times):
            assert float(times[i]) == float(t)
            x = ours.step(0.3 * x, t, x).prev_sample
            levels.append(float(ours.sigmas[i]))
            following.append(float(times[i + 1]) if i + 1 < len(times) else 0.0)
        assert following == pytest.approx([*plain, 0])  # where inpainting blends
        assert levels == pytest.approx([time / 1000 for time in [plain[0], *plain]])
        assert len(times) == ours.nfe == 5
        torch.testing.assert_close(x, plan(denoiser, noise()), rtol=1e-5, atol=1e-5)
    ours.set_timesteps(4)
    pairs, x = [], noise()
    for t, after in zip(ours.timesteps[:-1], ours.timesteps[1:], strict=True):
        x = ours.step(0.3 * x, t, x).prev_sample
        pairs.append((round(float(t), 2), round(float(after), 2)))
    once = [round(time, 2) for time in plain]
    assert pairs == [(once[0], once[1]), *itertools.pairwise(once)]


def test_what_was_told_of_a_pipeline_stays(client: Client, tmp_path: Path) -> None:
    """In a config, in a file, and for a pipeline that calls its parent's loop."""
    plan = client.plan({"edm": {"T": 400}}, **OUTSIDE, solver="euler", steps=3)

    class Mine(FluxPipeline):
        def __call__(self, *args: Any, **given: Any) -> Any:
            return super().__call__(*args, **given)

    parts = [None] * 6
    ours = plan.scheduler(Mine(FLOW, *parts))
    assert ours.nfe == 4
    ours.save_pretrained(tmp_path)
    for other in (Scheduler.from_config(ours.config), Scheduler.from_pretrained(tmp_path), copy.deepcopy(ours)):
        assert other.nfe == 4
    assert plan.scheduler(FluxInpaintPipeline(FLOW, *parts)).nfe == 3
    assert plan.scheduler(StableDiffusion3InpaintPipeline(None, FLOW, *[None] * 7)).nfe == 4
    with pytest.raises(AnisoflightError, match=r"σ of 70 or more for FluxControlNetPipeline, .* got \[Plan\('edm'"):
        plan.scheduler(FluxControlNetPipeline(FLOW, *parts, None))
    assert plan.scheduler({"kind": "flow"}).config.num_train_timesteps == 1000


@pytest.fixture(scope="module")
def laws(client: Client) -> list[Plan]:
    """Of latents of 4 channels: from noise, from a law, and of a solver with two evaluations a step."""
    rng = np.random.default_rng(0)
    drawn = np.clip(0.3 + rng.standard_normal((32, 8, 8, 4)) * np.array([0.5, 0.3, 0.1, 0.4]), -1, 1).astype(np.float32)
    client.put_dataset("latents", drawn, replace=True, progress=False)
    client.make_schedule("latent-law", "start", dataset="latents", sigma_max=14.0, replace=True, progress=False)
    levels = {"sigma_min": 0.02, "sigma_max": 40.0}
    return [
        client.plan({"edm": {"T": 200}}, **levels, solver="unipc", steps=5),
        client.plan("latent-law", solver="ab", order=2, steps=5),
        client.plan({"edm": {"T": 200}}, **levels, solver="heun", steps=5),
    ]


def autoencoder() -> AutoencoderKL:
    """Of images of twice the size of latents; what is measured here are latents."""
    blocks: Any = {"down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2}
    return AutoencoderKL(latent_channels=4, block_out_channels=(4, 8), norm_num_groups=4, shift_factor=0.0, **blocks)


def latents(seed: int) -> torch.Tensor:
    return torch.randn(2, 4, 8, 8, generator=torch.Generator().manual_seed(seed))


def close(got: Any, expected: Any) -> None:
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-5 * max(1.0, float(expected.abs().max())))


def blended(plan: Plan, denoiser: Any, noise: Any, image: Any, mask: Any) -> Any:
    """Inpainting, as diffusers does it: what is kept is put back after each step, with noise of the next level."""
    loop = plan.stages(noise, image if "begin" in plan.file else None)
    with torch.no_grad():
        for _ in loop:
            loop.step(denoiser(loop.x, loop.sigma))
            sigma = loop.stage.sigma if loop.taken < len(loop) else 0
            loop.x = (1 - mask) * (image + sigma * noise) + mask * loop.x
    return loop.x


@pytest.mark.parametrize("which", [0, 1, 2])
def test_stable_diffusion(client: Client, laws: list[Plan], which: int) -> None:
    """Text to image, image to image and inpainting draw what the plan and its tail draw, with guidance."""
    pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes: dict[str, Any] = {"layers_per_block": 1, "block_out_channels": (8, 16), "norm_num_groups": 4}
    unet = UNet2DConditionModel(
        sample_size=8,
        cross_attention_dim=8,
        attention_head_dim=4,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        **sizes,
    ).requires_grad_(False)
    vae = autoencoder()
    betas = DDPMScheduler(beta_schedule="scaled_linear", beta_start=0.00085, beta_end=0.012)
    prompts, empty = torch.randn(2, 2, 4, 8)
    plan, guidance = laws[which], 3.0

    def ask(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        without, given = (unet(x, t, encoder_hidden_states=cond).sample for cond in (empty, prompts))
        return without + guidance * (given - without)

    denoiser = denoiser_of(ddpm(betas.alphas_cumprod.double().numpy()), ask)

    def run(pipeline: Any, **given: Any) -> torch.Tensor:
        pipe = pipeline(vae, None, None, unet, betas, None, None, requires_safety_checker=False)
        pipe.scheduler = plan.scheduler(pipe)
        pipe.set_progress_bar_config(disable=True)
        given |= {"prompt_embeds": prompts, "negative_prompt_embeds": empty, "guidance_scale": guidance}
        generator = torch.Generator().manual_seed(3)
        with counted(unet) as times:
            images = pipe(num_inference_steps=5, generator=generator, output_type="latent", **given).images
        assert given.get("strength", 1) < 1 or len(times) == pipe.scheduler.nfe == plan.nfe
        return images

    noise, image = latents(3), latents(4)
    close(run(StableDiffusionPipeline, height=16, width=16), plan(denoiser, noise))
    close(run(StableDiffusionPipeline, height=16, width=16, latents=image), plan(denoiser, image))
    mask = (torch.arange(8) < 4).float().expand(2, 1, 8, 8)
    large = mask.repeat_interleave(2, 2).repeat_interleave(2, 3)
    inpaint: dict[str, Any] = {"mask_image": large, "masked_image_latents": image, "height": 16, "width": 16}
    for strength in (0.6, 0.2, 1.0):
        tail = plan.tail(strength=strength)
        assert tail.steps == round(5 * strength)
        close(run(StableDiffusionImg2ImgPipeline, image=image, strength=strength), tail(denoiser, noise, image))
        begun = plan if strength == 1 else tail
        got = run(StableDiffusionInpaintPipeline, image=image, strength=strength, **inpaint)
        close(got, blended(begun, denoiser, noise, image, mask))


def test_a_plan_that_sets_guidance_is_refused(client: Client) -> None:
    plan = client.plan("edm", sigma_min=0.02, sigma_max=80, solver="ipndm", nfe=4)
    stages = [{**stage, "guidance": 0.5} for stage in plan.file["stages"]]
    with pytest.raises(AnisoflightError, match="learn_guidance=False"):
        Plan({**plan.file, "stages": stages}).scheduler(DDPMScheduler())


@pytest.mark.parametrize("which", [0, 1, 2])
def test_flux(client: Client, laws: list[Plan], which: int) -> None:
    """Sequences of patches, and noise that its network sees first; the start is made of images."""
    pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = {"attention_head_dim": 16, "num_attention_heads": 2, "axes_dims_rope": [4, 4, 8], "in_channels": 16}
    text = {"joint_attention_dim": 8, "pooled_projection_dim": 8}
    transformer = FluxTransformer2DModel(1, num_layers=1, num_single_layers=1, **sizes, **text).requires_grad_(False)
    prompts, empty = ({"prompt_embeds": torch.randn(2, 4, 8), "pooled_prompt_embeds": torch.randn(2, 8)} for _ in "ab")
    plan, guidance = laws[which], 2.0
    ids = FluxPipeline._prepare_latent_image_ids(2, 4, 4, "cpu", torch.float32)

    def unpacked(x: torch.Tensor) -> torch.Tensor:
        return FluxPipeline._unpack_latents(x, 16, 16, 2)

    def ask(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        x = FluxPipeline._pack_latents(x, 2, 4, 8, 8)
        given, without = (
            transformer(x, *cond.values(), timestep=t / 1000, img_ids=ids, txt_ids=torch.zeros(4, 3)).sample
            for cond in (prompts, empty)
        )
        return unpacked(without + guidance * (given - without))

    denoiser = denoiser_of(flow(1000), ask)

    def run(pipeline: Any, **given: Any) -> torch.Tensor:
        pipe = pipeline(FlowMatchEulerDiscreteScheduler(shift=3.0), autoencoder(), None, None, None, None, transformer)
        pipe.scheduler = plan.scheduler(pipe)
        pipe.set_progress_bar_config(disable=True)
        given |= {**prompts, **{f"negative_{name}": value for name, value in empty.items()}, "true_cfg_scale": guidance}
        size = {"height": 16, "width": 16, "output_type": "latent", "generator": torch.Generator().manual_seed(3)}
        with counted(transformer) as times:
            images = pipe(num_inference_steps=5, **size, **given).images
        assert given.get("strength", 1) < 1 or len(times) == 2 * pipe.scheduler.nfe  # guidance asks twice
        assert pipe.scheduler.nfe == plan.nfe + (pipeline is FluxPipeline)
        return unpacked(images)

    noise, image = latents(3), latents(4)
    close(run(FluxPipeline), plan(denoiser, noise))
    mask = (torch.arange(8) < 4).float().expand(2, 1, 8, 8)
    large = mask.repeat_interleave(2, 2).repeat_interleave(2, 3)
    inpaint: dict[str, Any] = {"image": image, "mask_image": large, "masked_image_latents": torch.zeros(2, 3, 16, 16)}
    for strength in (0.6, 1.0):
        tail = plan.tail(strength=strength)
        close(run(FluxImg2ImgPipeline, image=image, strength=strength), tail(denoiser, noise, image))
        got = run(FluxInpaintPipeline, strength=strength, **inpaint)
        close(got, blended(tail, denoiser, noise, image, mask))


@pytest.mark.parametrize("name", ["flux.pipeline_flux", "qwenimage.pipeline_qwenimage", "chroma.pipeline_chroma"])
def test_pipelines_of_flow_networks_pass_sigmas_and_a_shift(client: Client, name: str) -> None:
    """As Flux's, Qwen-Image's and Chroma's do: their number chooses the plan, whose times are taken."""
    pytest.importorskip("transformers")
    pipeline = importlib.import_module(f"diffusers.pipelines.{name}")
    for solver in ("ab", "heun"):
        plan = client.plan("edm", sigma_min=0.02, sigma_max=80, solver=solver, steps=5)
        ours = plan.scheduler(FlowMatchEulerDiscreteScheduler(shift=3.0))
        times, count = pipeline.retrieve_timesteps(ours, None, "cpu", sigmas=np.linspace(1, 1 / 5, 5), mu=0.5)
        assert count == plan.nfe
        assert times.tolist() == pytest.approx([1000 * s.sigma / (1 + s.sigma) for s in plan.evaluations])


def test_sigmas_of_ones_own_are_refused(client: Client) -> None:
    """A plan of them, made as the error says, is taken."""
    shares = [0.98, 0.7, 0.3, 0.1]
    options: dict[str, Any] = {**OUTSIDE, "solver": "euler"}
    ours = client.plan("edm", **options, steps=4).scheduler(FLOW)
    ours.set_timesteps(sigmas=np.linspace(1, 0, 5)[:-1], mu=1.15)
    assert len(ours.timesteps) == 4
    even = [1, 0.75, 0.5, 0.25]
    for given in ({"sigmas": shares}, {"sigmas": np.subtract(even, 0.1)}, {"sigmas": even, "num_inference_steps": 5}):
        with pytest.raises(AnisoflightError, match=r"make it with grid=.*s/\(1 - s\), …, 0"):
            ours.set_timesteps(**given)
    plan = client.plan("edm", **options, grid={"sigma": [*(s / (1 - s) for s in shares), 0]})
    ours = plan.scheduler(FLOW)
    ours.set_timesteps()
    assert ours.timesteps.tolist() == pytest.approx([1000 * s for s in shares])


KINDS = [DDPMScheduler(), FLOW, EDM]


@pytest.mark.parametrize("kind", KINDS)
def test_a_loop_begins_where_it_likes(client: Client, kind: Any) -> None:
    """At any step: by set_begin_index, or by its time; from an image with noise, or noise alone at the first."""
    plan = client.plan("edm", **OUTSIDE, solver="heun", second_point="endpoint", steps=4)
    ours, image = plan.scheduler(kind), noise() / 2
    denoiser = denoiser_of(ours.network, lambda x, _: 0.3 * x)
    for step, named in ((0, False), (2, False), (2, True), (3, True)):
        ours.set_timesteps(4)
        times = ours.timesteps[step * ours.order :]
        if named:
            ours.set_begin_index(step * ours.order)
        x = ours.scale_noise(image, times[:1], noise())
        for t in times:
            x = ours.step(0.3 * ours.scale_model_input(x, t), t, x).prev_sample
        torch.testing.assert_close(x, plan.tail(step)(denoiser, noise(), image), rtol=1e-5, atol=1e-5)
    ours.set_timesteps(4)
    ours.set_begin_index(3)
    with pytest.raises(AnisoflightError, match="a loop must begin with a step, got its second evaluation"):
        ours.scale_model_input(image, ours.timesteps[3])


@pytest.mark.parametrize("kind", KINDS)
def test_noise_on_an_image_has_the_temperature(client: Client, kind: Any) -> None:
    plan = client.plan("edm", **OUTSIDE, solver="unipc", steps=4)
    cold = Plan({**plan.file, "provenance": {"temperature": 0.5}})
    ours, image = cold.scheduler(kind), noise() / 2
    ours.set_timesteps(4)
    x = ours.scale_noise(image, ours.timesteps[2:3], noise())
    begun = cold.tail(2).begin(noise(), image)
    torch.testing.assert_close(x, begun * ours.network.scale(plan.evaluations[2].sigma), rtol=1e-5, atol=1e-5)


def test_a_plan_above_the_table_of_the_network_is_refused(client: Client) -> None:
    """Beyond it all noise levels have one time."""
    low = DDPMScheduler(beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear")  # up to σ = 14.6
    plan = client.plan("edm", **OUTSIDE, solver="unipc", steps=4)
    with pytest.raises(AnisoflightError, match=r"within the noise levels of the .*, up to 14\.6., got one from 80: "):
        plan.scheduler(low)
    within = client.plan("edm", sigma_min=0.03, sigma_max=14.6, solver="unipc", steps=4).scheduler(low)
    within.set_timesteps(4)
    assert len(np.unique(within.timesteps)) == 4


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_goes_on_where_the_scheduler_is(client: Client, kind: Any, copied: Any) -> None:
    rows = [(label, t, g) for label in (0, 1) for t, g in ((0, 1e-6), (4, 0.3 + 3 * label), (9, 2500))]
    label, t, g = zip(*rows, strict=True)
    client.put_schedule("by-class", {"label": label, "t": t, "g": g}, replace=True)
    plans = [client.plan("edm", **OUTSIDE, solver="unipc", steps=4), client.plan("by-class", labels=[0, 1], steps=3)]
    for steps in (4, 3):
        one = plans[0].scheduler(kind, plans[1])
        one.set_labels([1, 0, 1, 1])
        one.set_timesteps(steps)
        x = noise()
        for t in one.timesteps[:2]:
            x = one.step(0.3 * one.scale_model_input(x, t), t, x).prev_sample
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
    several = client.plan("by-class", labels=[0, 1], **options)
    several.scheduler(DDPMScheduler()).save_pretrained(tmp_path)
    mixed, labels = Scheduler.from_pretrained(tmp_path), [1, 0, 0, 1]
    with pytest.raises(
        ValueError, match=r"labels must be given first, by set_labels: the plan has the classes \[0, 1\]"
    ):
        mixed.set_timesteps(4)
    mixed.set_labels(labels)
    got = drawn(mixed, eps_of(unet), 4)
    assert mixed.timesteps.shape == (4, 4)
    plans = [client.plan("by-class", label=label, **options) for label in (0, 1)]
    alone = [drawn(plan.scheduler(DDPMScheduler()), eps_of(unet)) for plan in plans]
    assert (alone[0] - alone[1]).abs().max() > 1e-2
    expected = torch.stack([alone[label][i] for i, label in enumerate(labels)])
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-4)

    pipe = DDPMPipeline(unet, mixed)
    pipe.scheduler = several.scheduler(pipe)
    pipe.scheduler.set_labels(labels)
    pipe.set_progress_bar_config(disable=True)
    images = pipe(batch_size=4, num_inference_steps=4, output_type="np").images
    assert images.shape == (4, 8, 8, 1)
    mixed.set_labels([0, 0, 0, 0])
    mixed.set_timesteps(4)
    mixed.set_labels(torch.tensor(labels))  # which begins again
    torch.testing.assert_close(drawn(mixed, eps_of(unet)), expected, rtol=0, atol=1e-4)
    for wrong in ([0.5, 1, 0, 0], ["a", "b", "c", "d"]):
        with pytest.raises(AnisoflightError, match="labels must be whole numbers"):
            mixed.set_labels(wrong)
    with pytest.raises(AnisoflightError, match=r"label must be one of the plan, \[0, 1\], got 7"):
        mixed.set_labels([0, 7, 0, 1])
    mixed.set_labels(labels)
    mixed.set_timesteps(4)
    assert len(mixed.scale_model_input(torch.cat([noise(), noise()]), mixed.timesteps[0])) == 8  # with guidance
    with pytest.raises(ValueError, match="labels must be as many as the 2 images, got 4"):
        mixed.scale_model_input(noise(2), mixed.timesteps[0])


def test_config_alone_holds_everything(client: Client, tmp_path: Path) -> None:
    """A plan with a start, through scheduler_config.json, draws what the plan does."""
    client.make_schedule("law", "start", dataset="digits", sigma_max=5.0, replace=True, progress=False)
    plan = client.plan("law", solver="dpmpp3m", order=3, steps=5)
    plan.scheduler(EDM).save_pretrained(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scheduler_config.json"]
    loaded = Scheduler.from_pretrained(tmp_path)
    expected = plan(denoiser_of(loaded.network, lambda x, _: 0.3 * x), noise())
    torch.testing.assert_close(drawn(loaded, lambda x, _: 0.3 * x), expected, rtol=1e-5, atol=1e-5)
    table = {"subspace": [0, 0, 1, 1], "t": [0, 9, 0, 9], "g": [1e-6, 9, 1e-6, 9]}
    client.put_schedule("two", table, basis="dct", k=4, replace=True)
    two = client.plan("two", solver="euler", steps=3)
    with pytest.raises(AnisoflightError, match="plans must have different numbers of steps"):
        plan.scheduler(EDM, client.plan("law", solver="euler", steps=5))
    for other, message in ((two, "got one of 2 subspaces"), (plan.tail(2), "got a tail")):
        with pytest.raises(ValueError, match=rf"plans must be whole, .* {message}: call it, plan\(denoiser, noise\)"):
            other.scheduler(EDM)


def test_training_noise_is_that_of_the_network(client: Client) -> None:
    plan = client.plan("edm", **OUTSIDE, solver="ab", steps=3)
    theirs = DDPMScheduler(beta_schedule="squaredcos_cap_v2")
    ours = plan.scheduler(theirs)
    assert isinstance(ours, SchedulerMixin)
    assert len(ours) == len(theirs) == 1000
    images, eps, times = noise(), noise() * 0.5, torch.tensor([0, 10, 500, 999])
    torch.testing.assert_close(ours.add_noise(images, eps, times), theirs.add_noise(images, eps, times))
    noisy = plan.scheduler(FLOW).add_noise(images[:3], eps[:3], torch.tensor([0.0, 500.0, 1000.0]))
    torch.testing.assert_close(noisy, torch.stack([images[0], (images[1] + eps[1]) / 2, eps[2]]))


def test_churn_takes_generators(client: Client) -> None:
    scheduler = client.plan({"edm": {"T": 100}}, **OUTSIDE, solver="euler", steps=4, S_churn=2).scheduler(EDM)

    def once(generator: Any) -> torch.Tensor:
        scheduler.set_timesteps()
        x = noise(2)
        for t in scheduler.timesteps:
            x = scheduler.step(0.1 * scheduler.scale_model_input(x, t), t, x, generator=generator).prev_sample
        return x

    def seeded(seed: int) -> torch.Generator:
        return torch.Generator().manual_seed(seed)

    assert torch.equal(once(seeded(1)), once(seeded(1)))
    assert not torch.equal(once(seeded(1)), once(seeded(2)))
    one, two = once([seeded(1), seeded(2)]), once([seeded(1), seeded(3)])
    assert torch.equal(one[0], two[0])
    assert not torch.equal(one[1], two[1])


def test_half_precision_stays(client: Client) -> None:
    scheduler = client.plan("edm", **OUTSIDE, solver="dpmpp2m", steps=4).scheduler(DDPMScheduler())
    scheduler.set_timesteps(device="cpu")
    x = noise().half()
    for t in scheduler.timesteps:
        out = scheduler.step(0.2 * scheduler.scale_model_input(x, t), t, x)
        x = out.prev_sample
        assert x.dtype == out.pred_original_sample.dtype == torch.float16
        assert x.isfinite().all()
    assert torch.equal(out.pred_original_sample, x)  # which LCM's pipeline returns


def test_misuse_is_told(client: Client) -> None:
    plan = client.plan("edm", **OUTSIDE, solver="euler", steps=3)
    scheduler = plan.scheduler(DDPMScheduler())
    x = noise()
    with pytest.raises(ValueError, match="call set_timesteps to begin again"):
        scheduler.step(x, 1, x)
    scheduler.set_timesteps(3)
    with pytest.raises(ValueError, match=r"timestep must be the next, .*, got 2"):
        scheduler.step(x, 2, x)
    t = scheduler.timesteps[0]
    for given in ("prev_timestep", "per_token_timesteps", "variance_noise"):
        with pytest.raises(ValueError, match=f"{given} must be left out"):
            scheduler.step(x, t, x, **{given: t})
    with pytest.raises(ValueError, match=r"must be images \[B, C, …\], got the shape \[\]"):
        scheduler.scale_model_input(torch.tensor(1.0), t)
    with pytest.raises(ValueError, match=r"begin with unit noise, got noise with a deviation of 8\d"):
        scheduler.scale_model_input(80 * x, t)
    scheduler.scale_model_input(torch.cat([x, x], 1), t)  # with the condition of super-resolution
    with pytest.raises(ValueError, match=r"without a condition, got images of \[2, 8, 8\] where .* \[1, 8, 8\]"):
        scheduler.step(x, t, x)
    scheduler.set_timesteps(3)
    with pytest.raises(ValueError, match=r"kind must be one of edm, .*, got 'gan'"):
        Scheduler([plan], {"kind": "gan"})
    with pytest.raises(ValueError, match=r"prediction must be one of .*, got 'x'"):
        plan.scheduler(DDPMScheduler(prediction_type="x"))
    with pytest.raises(ValueError, match=r"prediction must be epsilon or v_prediction for EDMEulerScheduler, got 'sam"):
        plan.scheduler(EDMEulerScheduler(prediction_type="sample"))
    with pytest.raises(ValueError, match=r"prediction must be one of .*, got 'flow_prediction'"):
        plan.scheduler(DPMSolverMultistepScheduler(prediction_type="flow_prediction"))
    with pytest.raises(ValueError, match="shift must be left out: a plan sets its noise levels itself"):
        scheduler.set_timesteps(3, shift=3.0)
    with pytest.raises(ValueError, match="config must be that of a scheduler of plans"):
        Scheduler.from_config(DDPMScheduler().config)
