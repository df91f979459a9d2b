"""What a scheduler of diffusers says of its network: one reader for `Denoiser` and for `plan.scheduler`."""

import copy
from pathlib import Path
from typing import Any

import diffusers
import numpy as np
import pytest
import torch
from diffusers import (
    AuraFlowTransformer2DModel,
    AutoPipelineForImage2Image,
    CogVideoXDDIMScheduler,
    DDIMScheduler,
    DDPMPipeline,
    DDPMScheduler,
    EulerDiscreteScheduler,
    FlowMatchEulerDiscreteScheduler,
    FluxImg2ImgPipeline,
    LCMScheduler,
    SchedulerMixin,
    UNet2DModel,
)
from pipelines import aura_flow, cogview4, flux, lumina2, stable_diffusion_3, z_image

from anisoflight import Client, Plan
from anisoflight.errors import AnisoflightError
from anisoflight.torch import Denoiser, parametrization

ALL = sorted(
    name
    for name in dir(diffusers)
    if name.endswith("Scheduler") and issubclass(getattr(diffusers, name), SchedulerMixin)
)


@pytest.fixture(scope="module")
def plan(client: Client) -> Plan:
    return client.plan("edm", sigma_min=0.02, sigma_max=5, solver="dpmpp2m", nfe=5)


@pytest.mark.parametrize("name", ALL)
def test_a_scheduler_has_its_own_table_or_is_refused(name: str, plan: Plan) -> None:
    """Both readers are one: the section of a scheduler, of its config, and of a plan's scheduler made from it."""
    try:
        theirs: Any = getattr(diffusers, name)()
    except TypeError:  # it needs arguments
        pytest.skip("of no diffusion of images")
    table = getattr(theirs, "alphas_cumprod", None)
    if table is None and "FlowMatch" not in name and not name.startswith(("EDM", "Helios", "LTX")):
        with pytest.raises(AnisoflightError, match=f"got {name} for"):
            parametrization(theirs)
        return
    section = parametrization(theirs)
    assert plan.scheduler(theirs).config.network == section
    if table is not None:
        np.testing.assert_array_equal(section["alphas_cumprod"], table.double())
        assert plan.scheduler(theirs).alphas_cumprod.tolist() == pytest.approx(table.tolist())
    if "beta_start" in theirs.config:
        assert parametrization({**theirs.config, "_class_name": name}) == section


def test_times_are_those_of_the_table(plan: Plan) -> None:
    """Of a table that is shifted, or was put in by hand."""
    shifted = CogVideoXDDIMScheduler(snr_shift_scale=3.0, rescale_betas_zero_snr=True, prediction_type="v_prediction")
    other = DDPMScheduler()
    other.alphas_cumprod = other.alphas_cumprod**1.5
    for theirs in (shifted, other):
        ours = plan.scheduler(theirs)
        ours.set_timesteps(5)
        alphas = np.asarray(theirs.alphas_cumprod, np.float64)
        logs = 0.5 * np.log((1 - alphas[alphas > 1e-9]) / alphas[alphas > 1e-9])
        levels = np.log([stage.sigma for stage in plan.evaluations])
        assert ours.timesteps.tolist() == pytest.approx(np.interp(levels, logs, np.arange(len(logs))), abs=0.5)


def test_inverted_and_continuous_times(plan: Plan) -> None:
    """Mochi's sigmas run from noise at 0 to data at 1; Stable Video's times are ¼ ln σ."""
    sigmas = np.array([stage.sigma for stage in plan.evaluations])
    inverted = plan.scheduler(FlowMatchEulerDiscreteScheduler(invert_sigmas=True))
    inverted.set_timesteps(5)
    assert inverted.timesteps.tolist() == pytest.approx(1000 / (1 + sigmas), rel=1e-6)
    assert inverted.sigmas.tolist() == pytest.approx([*(1 / (1 + sigmas)), 1], rel=1e-6)
    video = plan.scheduler(EulerDiscreteScheduler(timestep_type="continuous", prediction_type="v_prediction"))
    video.set_timesteps(5)
    assert video.timesteps.tolist() == pytest.approx(0.25 * np.log(sigmas), rel=1e-6)


def described(folder: Path) -> tuple[Any, dict[str, Any]]:
    return flux(folder), {"prompt": "a", "max_sequence_length": 4}


@pytest.mark.parametrize("made", [described, aura_flow, cogview4, lumina2, stable_diffusion_3, z_image])
def test_the_times_of_a_network_are_those_that_its_pipeline_gives_it(plan: Plan, made: Any, tmp_path: Path) -> None:
    pipe, inputs = made(tmp_path) if made is described else made()
    D = Denoiser(pipe.transformer, pipe.scheduler)
    pipe.scheduler = plan.scheduler(pipe)
    pipe.set_progress_bar_config(disable=True)
    times: list[float] = []

    def note(_: Any, given: Any, named: dict[str, Any]) -> None:
        times.append(float((named["timestep"] if "timestep" in named else given[1])[0]))

    pipe.transformer.register_forward_pre_hook(note, with_kwargs=True)
    size = {"height": 16, "width": 16, "output_type": "latent"}
    pipe(num_inference_steps=5, **{**size, **inputs})
    levels = [stage.sigma for stage in plan.evaluations]
    expected = [D.network.time(sigma) for sigma in (levels[0], *levels)]
    assert np.unique(times) == pytest.approx(np.unique(expected), rel=1e-5)  # guidance asks twice


def test_a_section_replaces_a_scheduler() -> None:
    """As errors advise. AuraFlow divides times by itself."""
    heads = {"attention_head_dim": 8, "num_attention_heads": 4, "caption_projection_dim": 32, "joint_attention_dim": 32}
    sizes: dict[str, Any] = {"sample_size": 8, "patch_size": 2, "in_channels": 4, "out_channels": 4, **heads}
    network = AuraFlowTransformer2DModel(
        num_mmdit_layers=1, num_single_dit_layers=1, pos_embed_max_size=64, **sizes
    ).eval()
    cond = {"encoder_hidden_states": torch.randn(1, 5, 32)}
    x, theirs = torch.randn(1, 4, 8, 8), FlowMatchEulerDiscreteScheduler()
    with torch.no_grad():
        flow = network(x / 2, timestep=torch.tensor([0.5]), **cond).sample
    for how in ((theirs,), ({"kind": "flow", "steps": 1},), (theirs, {"kind": "flow", "steps": 1}), (None, "flow")):
        torch.testing.assert_close(Denoiser(network, *how, cond=cond)(x, 1.0), x / 2 - 0.5 * flow)
    again = parametrization(DDPMScheduler(), {"kind": "flow", "steps": 1})
    assert again == {"kind": "flow", "steps": 1}


def test_the_loop_decides_whether_an_evaluation_is_spent(plan: Plan) -> None:
    """A loop that scales its input spends none, one that does not spends one; whatever the scheduler was made for."""
    network, theirs = torch.nn.Conv2d(1, 1, 3, padding=1).requires_grad_(False), DDPMScheduler()
    noise = torch.randn(2, 1, 8, 8)
    expected = plan(Denoiser(lambda z, t: network(z), theirs), noise, progress=False)
    for scales in (True, False, "kept"):
        ours, x, calls = plan.scheduler(theirs), noise, 0
        ours.set_timesteps(5)
        for t in ours.timesteps:
            z = ours.scale_model_input(x, t) if scales else x
            x, calls = ours.step(network(z), t, z if scales == "kept" else x).prev_sample, calls + 1
        assert calls == (5 if scales else 6)
        torch.testing.assert_close(x, expected, rtol=0, atol=1e-4)


def test_a_pipeline_of_text_becomes_one_of_images(plan: Plan, tmp_path: Path) -> None:
    pipe = flux(tmp_path)
    for module in (pipe.text_encoder, pipe.text_encoder_2):
        module.eval()
    own = FluxImg2ImgPipeline(**pipe.components)
    own.scheduler = plan.scheduler(own)
    pipe.scheduler = plan.scheduler(pipe)
    inputs: dict[str, Any] = {"image": torch.randn(1, 4, 8, 8), "strength": 0.6, "height": 16, "width": 16}
    drawn = []
    for one in (own, AutoPipelineForImage2Image.from_pipe(pipe)):
        one.set_progress_bar_config(disable=True)
        how = {"generator": torch.Generator().manual_seed(3), "output_type": "latent", "max_sequence_length": 4}
        drawn.append(one("a", num_inference_steps=5, **inputs, **how).images)
    torch.testing.assert_close(*drawn)


def test_what_pipelines_ask_of_a_scheduler(plan: Plan, tmp_path: Path) -> None:
    ours = plan.scheduler(DDIMScheduler(steps_offset=1, clip_sample=False))
    assert (ours.config.steps_offset, ours.config.clip_sample, len(ours)) == (1, False, 1000)
    assert plan.scheduler(DDPMScheduler(variance_type="learned_range")).config.variance_type == "learned_range"
    again = type(ours).from_config(ours.config)
    for one in (again, copy.deepcopy(ours), plan.scheduler(LCMScheduler())):
        one.set_timesteps(5, original_inference_steps=50)
    assert torch.equal(again.timesteps, plan_times(ours))
    assert again.config == ours.config
    with pytest.raises(AnisoflightError, match="strength must be 1"):
        ours.set_timesteps(5, strength=0.5)
    ours.save_pretrained(tmp_path)
    assert type(ours).from_pretrained(tmp_path).config.network == ours.config.network


def plan_times(scheduler: Any) -> torch.Tensor:
    scheduler.set_timesteps(5)
    return scheduler.timesteps


def test_times_of_ones_own(plan: Plan) -> None:
    """A pipeline may hand on evenly spaced timesteps with sigmas, and a user the plan's own; others are refused."""
    ours = plan.scheduler(FlowMatchEulerDiscreteScheduler())
    own = plan_times(ours).clone()
    even = np.linspace(1000, 1, 5)
    ours.set_timesteps(sigmas=even / 1000, timesteps=even, mu=1.0)
    assert ours.order == 1
    assert torch.equal(ours.timesteps, own)
    ours.set_timesteps(timesteps=own.tolist())
    assert torch.equal(ours.timesteps, own)
    with pytest.raises(AnisoflightError, match="timesteps must be left out"):
        ours.set_timesteps(timesteps=[900, 700, 500, 300, 100])


def test_a_config_of_an_earlier_release(plan: Plan, unet: UNet2DModel, tmp_path: Path) -> None:
    """0.1 kept the betas, and whether the pipeline spends an evaluation."""
    pipe = DDPMPipeline(unet, DDPMScheduler())
    ours = plan.scheduler(pipe)
    earlier = {key: value for key, value in ours.config.items() if key != "network"}
    read = type(ours).from_config({**earlier, "network": "ddpm", "spends": True, "sigma_data": 0.5})
    assert read.config.network == ours.config.network
    assert torch.equal(plan_times(read), plan_times(ours))
