"""docs/speech-and-robots.md on the packages' classes at a tiny size: what its blocks make, and what the packages do."""

import itertools
import re
from pathlib import Path
from typing import Any

import packages
import pytest
import torch
from diffusers import DDIMScheduler

from anisoflight import Client

PAGE = Path(__file__).parents[2] / "docs" / "speech-and-robots.md"
NFE = 4
Tensor = torch.Tensor


def section(title: str, client: Client, names: dict[str, Any]) -> dict[str, Any]:
    """The names that a section's blocks make of these, with the tests' server."""
    torch.set_num_threads(1)
    names["client"] = client
    text = next(part for part in PAGE.read_text(encoding="utf-8").split("\n## ") if part.startswith(title))
    for code in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        exec(
            compile(code.replace("few(D, ", "few(D, client=client, budget=8000, progress=False, "), PAGE.name, "exec"),
            names,
        )
    return names


def converged(client: Client, names: dict[str, Any], noise: Tensor, **given: Any) -> Tensor:
    """Samples of many evaluations of the section's denoiser, from a level at which noise hides all else."""
    plan = client.plan("edm", sigma_min=0.002, sigma_max=80, solver="ipndm", nfe=64)
    return plan(names["D"], noise, progress=False, **given)


def error(samples: Tensor, expected: Tensor) -> float:
    return float((samples - expected).square().mean())


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("place")
@torch.no_grad()
def test_lerobots_policy(client: Client) -> None:
    """Its loop follows the plan at whole times and with clipped x_0, and is nearer to DDIM's end than DDIM is."""
    with torch.enable_grad():
        made = packages.policy(200)
    made.save_pretrained("your-policy")
    torch.manual_seed(1)
    observations = packages.reaches(64)
    names = section("lerobot", client, {"observations": observations})
    model, plan, noise = names["model"], names["plan"], torch.randn(64, 16, 2)
    assert plan.nfe == NFE
    assert names["actions"].shape == (64, 8, 2)
    times: list[list[float]] = []
    model.unet.register_forward_hook(lambda _, inputs, __: times.append(inputs[1].unique().tolist()))
    actions = model.generate_actions(observations, noise=noise)  # by the function of the page
    assert times == [[round(names["D"].network.time(stage.sigma))] for stage in plan.evaluations]
    times.clear()
    conditions, scheduler = names["conditions"], model.noise_scheduler
    drawn = type(model).conditional_sample(model, 64, conditions, noise=noise)  # by the package's loop
    torch.testing.assert_close(drawn[:, 1:9], actions, atol=2e-4, rtol=0)
    assert len(times) == plan.nfe + (not plan.takes_unit_noise(scheduler.network))
    scheduler.set_timesteps(plan.steps)
    scheduler.set_begin_index(1)
    wild = scheduler.step(torch.full((1, 16, 2), 9.0), scheduler.timesteps[1], torch.zeros(1, 16, 2))
    assert wild.pred_original_sample.abs().max() == plan.clip == 1

    own, ends = made.diffusion, names["D"].levels[0] * noise
    own.noise_scheduler = DDIMScheduler.from_config(own.noise_scheduler.config, timestep_spacing="trailing")
    own.num_inference_steps = NFE
    for level, after in itertools.pairwise([*names["D"].levels, 0.0]):  # Euler's method at all times
        ends = torch.lerp(names["D"](ends, level, global_cond=conditions), ends, after / level)
    assert error(drawn, ends) < 0.7 * error(own.conditional_sample(64, conditions, noise=noise), ends)


def test_f5(client: Client) -> None:
    """Its guidance is the page's; frames of the prompt are the prompt's; the plan is nearer to its end than it is."""
    cfm, prompt = packages.f5(100), 8
    torch.manual_seed(1)
    text, _, mel = packages.speech(32)
    names = section("F5", client, {"cfm": cfm, "mel": mel, "text": text, "prompt": prompt})
    given = mel[:, :prompt]
    torch.manual_seed(2)
    noise = torch.stack([torch.randn(mel.shape[1:]) for _ in mel])

    def own(steps: int, duration: Any = packages.FRAMES, **options: Any) -> Tensor:
        torch.manual_seed(2)
        return cfm.sample(given, text, duration, steps=steps, cfg_strength=2.0, **options)[0]

    ends = own(100, use_epss=False)
    conditions = {"cond": names["padded"](given, mel.shape[1]), "text": text}
    assert error(converged(client, names, noise, **conditions)[:, prompt:], ends[:, prompt:]) < 3e-3 * ends.var()
    before = names["D"].counts
    spoken = names["sample"](given, text, noise)
    assert names["D"].counts - before == 2 * NFE * len(mel)  # guided
    assert (spoken[:, :prompt] == given).all()
    assert error(spoken, ends) < 0.7 * error(own(NFE, sway_sampling_coef=-1.0), ends)
    lengths = torch.where(torch.arange(len(mel)) % 2 == 0, 24, 16)  # padded, with a mask
    mask = torch.arange(24) < lengths[:, None]
    torch.manual_seed(2)
    noise = torch.nn.utils.rnn.pad_sequence([torch.randn(int(n), 8) for n in lengths], batch_first=True)
    masked = converged(client, names, noise, mask=mask, **conditions)
    mask[:, :prompt] = False
    ends = own(100, lengths, use_epss=False)
    assert error(masked[mask], ends[mask]) < 3e-3 * ends.var()


def test_matcha(client: Client) -> None:
    """Its own call follows the plan, whose noise has the temperature, and is nearer to its end than Euler's method."""
    cfm = packages.matcha(100)
    torch.manual_seed(1)
    mu, mask = packages.speech(32)[1].mT, torch.ones(32, 1, packages.FRAMES)
    mask[::2, :, 16:] = 0  # shorter ones
    solve = cfm.solve_euler
    names = section("Matcha", client, {"cfm": cfm, "mu": mu, "mask": mask})
    plan = names["plan"]
    torch.manual_seed(2)
    drawn = cfm(mu, mask, plan.steps)
    torch.manual_seed(2)
    noise = torch.randn_like(mu)

    def own(steps: int) -> Tensor:
        with torch.no_grad():
            return solve(0.667 * noise, torch.linspace(0, 1, steps + 1), mu, mask, None, None)

    ends = own(200) * mask
    assert error(mask * converged(client, names, 0.667 * noise, mu=mu, mask=mask), ends) < 3e-3 * ends.var()
    assert error(mask * drawn, ends) < 0.7 * error(mask * own(NFE), ends)
    assert plan.init[0] < 0.9 * plan.evaluations[0].sigma
