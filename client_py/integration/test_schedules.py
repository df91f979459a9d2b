"""Learned schedules in other programs' samplers draw what a plan of Heun's method draws from the same noise."""

import importlib
import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from anemoi.models.samplers.transport_samplers import EDMHeunSampler
from anemoi.models.transport.objectives import EDMDiffusionModelObjective
from anemoi.models.transport.schedules import SamplingSchedule
from azula.denoise import SimpleDenoiser
from azula.noise import VPSchedule
from azula.sample import DDIMSampler
from physicsnemo.diffusion.noise_schedulers import EDMNoiseScheduler
from physicsnemo.diffusion.samplers import Solver, sample

from anisoflight import Client

STEPS = 6
NOISE = torch.randn(2, 3, 1, 10, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def denoised(x: torch.Tensor, sigma: torch.Tensor | float) -> torch.Tensor:
    """The posterior mean of data of the normal law N(0.2, 0.09)."""
    return (0.09 * x + 0.2 * sigma**2) / (0.09 + sigma**2)


@pytest.fixture(scope="module")
def documented(client: Client, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The names of the block of docs/networks.md that has a schedule for anemoi."""
    text = (Path(__file__).parents[2] / "docs" / "networks.md").read_text(encoding="utf-8")
    (code,) = (
        code
        for code in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        if "SIGMA_SCHEDULES" in code
    )
    made = client.make_schedule("made", "log-linear", progress=False)
    folder = tmp_path_factory.mktemp("schedules")
    names: dict[str, Any] = {"schedule": made}
    exec(code.replace("out/", f"{folder}/"), names)
    return names


@pytest.fixture(scope="module")
def samplers() -> dict[str, Any]:
    """The definitions of the block of docs/networks.md that follows plans in other packages."""
    text = (Path(__file__).parents[2] / "docs" / "networks.md").read_text(encoding="utf-8")
    (code,) = (code for code in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE) if "azula" in code)
    names: dict[str, Any] = {"np": np, "torch": torch}
    for part in re.findall(r"^(?:from \S+ import|def|class) .*\n(?:(?:    .*)?\n)*", code, re.MULTILINE):
        exec(part, names)
    return names


@pytest.fixture(scope="module")
def expected(client: Client, documented: dict[str, Any]) -> torch.Tensor:
    assert documented
    plan = client.plan("made", solver="heun", second_point="endpoint", steps=STEPS)
    return plan(lambda x, sigma: denoised(x, sigma[0]), NOISE, progress=False)


def close(got: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-4)  # the plan ends at the schedule's last σ, they at 0


def test_anemoi(documented: dict[str, Any], expected: torch.Tensor) -> None:
    schedule = documented["SIGMA_SCHEDULES"]["learned"](sigma_max=80, sigma_min=0.002, num_steps=STEPS)
    assert isinstance(schedule, SamplingSchedule)
    sigmas = schedule.get_schedule()
    assert sigmas.shape == (STEPS + 1,)
    assert sigmas[-1] == 0

    def network(x: Any, y: dict[str, torch.Tensor], sigma: dict[str, torch.Tensor], *_: Any) -> dict[str, torch.Tensor]:
        return {"digits": denoised(y["digits"], sigma["digits"])}

    data = {"digits": torch.zeros_like(NOISE)}
    close(EDMHeunSampler().sample(data, {"digits": NOISE * sigmas[0]}, sigmas, network)["digits"], expected)


def test_a_plan_is_a_sampler_of_anemoi(client: Client, tmp_path: Path) -> None:
    """By its name in the settings of inference, with the package's own objective and preconditioning, and two fields of
    other sizes; the network of each is EDM's of a linear layer.
    """
    text = (Path(__file__).parents[2] / "docs" / "networks.md").read_text(encoding="utf-8")
    (code,) = (code for code in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
               if "DIFFUSION_SAMPLERS" in code)  # fmt: skip
    exec(code, {"torch": torch})
    plan = client.plan("edm", sigma_min=0.02, sigma_max=80, solver="unipc", order=2, nfe=5)
    plan.save(tmp_path / "plan.json")
    noise = {"surface": NOISE.float(), "levels": NOISE.float()[..., :2]}
    layers = {name: torch.nn.Linear(field.shape[-1], field.shape[-1]) for name, field in noise.items()}

    class Forecast(SimpleNamespace):
        def build_sampling_source(self, x: Any, **_: Any) -> dict[str, torch.Tensor]:
            return {name: noise[name] for name in x}

        def _assert_condition_shapes(self, condition: dict[str, torch.Tensor]) -> tuple[int, int]:
            assert all(level.shape == (2, 1, 1, 1, 1) for level in condition.values())
            return 2, 1

        def _forward_transport_network(self, x: Any, y: Any, c_noise: Any, **_: Any) -> dict[str, torch.Tensor]:
            return {name: layers[name](field) + 0.1 * c_noise[name] for name, field in y.items()}

    settings = {"sampling_schedule": {"schedule_type": "karras", "sigma_max": 80.0, "sigma_min": 0.02, "num_steps": 5},
                "sampler": {"sampler": "plan", "path": str(tmp_path / "plan.json")}}  # fmt: skip
    objective = EDMDiffusionModelObjective()
    model = Forecast(edm=SimpleNamespace(sigma_data=0.5), inference_defaults=settings)
    given = {name: torch.zeros_like(field) for name, field in noise.items()}
    with torch.no_grad():
        found = objective.sample(model, given)
        for name, field in noise.items():

            def network(x: torch.Tensor, sigma: torch.Tensor, name: str = name) -> torch.Tensor:
                level = {name: sigma.reshape(-1, 1, 1, 1, 1).to(x)}
                return objective.forward(model, given, {name: x}, level)[name]

            torch.testing.assert_close(found[name], plan(network, field, progress=False), rtol=1e-4, atol=1e-4)


@pytest.fixture(scope="module")
def sampling() -> ModuleType:
    """k_diffusion.sampling as it is; the package's own __init__ would bring all that its training needs."""
    found = importlib.util.find_spec("k_diffusion")
    assert found is not None
    package = ModuleType("k_diffusion")
    package.__path__ = list(found.submodule_search_locations or [])
    sys.modules["k_diffusion"] = package
    return importlib.import_module("k_diffusion.sampling")


def test_k_diffusion(client: Client, sampling: ModuleType, expected: torch.Tensor) -> None:
    sigmas = torch.tensor(json.loads(client.schedule("made").sigma_text(STEPS)), dtype=torch.float64)

    def network(x: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
        return denoised(x, sigma.reshape(-1, *[1] * (x.ndim - 1)))

    close(sampling.sample_heun(network, NOISE * sigmas[0], sigmas, disable=True), expected)


def test_a_plan_has_k_diffusions_signature(client: Client, samplers: dict[str, Any], sampling: ModuleType) -> None:
    """Called as its samplers are, and with Euler's method on the same levels the same."""
    sigmas = sampling.get_sigmas_karras(6, 0.02, 40.0)[:-1]
    plan = client.plan("edm", sigma_min=0.02, sigma_max=40, solver="euler", grid={"sigma": sigmas.tolist()})
    seen: list[list[dict[str, Any]]] = [[], []]

    def network(x: torch.Tensor, sigma: torch.Tensor, scale: float) -> torch.Tensor:
        return scale * denoised(x, sigma.reshape(-1, *[1] * (x.ndim - 1)))

    x, given = NOISE * plan.init[0], {"extra_args": {"scale": 0.9}}
    theirs = sampling.sample_euler(network, x, sigmas.double(), **given, callback=seen[0].append, disable=True)
    ours = samplers["sample_plan"](network, x, plan, **given, callback=seen[1].append)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)
    for one, other in zip(*seen, strict=True):
        assert one.keys() == other.keys()
        torch.testing.assert_close(one["denoised"], other["denoised"], rtol=0, atol=1e-5)


@pytest.mark.parametrize("solver", ["unipc", "heun"])
def test_a_plan_is_a_solver_of_physicsnemo(client: Client, samplers: dict[str, Any], solver: str) -> None:
    plan = client.plan("edm", sigma_min=0.02, sigma_max=40, solver=solver, steps=6)

    def network(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        return denoised(x, t.reshape(-1, *[1] * (x.ndim - 1)))

    made, levels = samplers["PlanSolver"](network, plan), torch.linspace(1, 0, plan.steps + 1)
    assert isinstance(made, Solver)
    for _ in range(2):  # it begins again
        got = sample(network, NOISE * plan.init[0], EDMNoiseScheduler(), 6, solver=made, time_steps=levels)
        torch.testing.assert_close(got, plan(network, NOISE, progress=False), rtol=0, atol=1e-12)


def test_a_plan_is_a_sampler_of_azula(client: Client, samplers: dict[str, Any]) -> None:
    """With Euler's method on the levels of its DDIM the same, whatever noise the network was trained with."""

    class Backbone(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.tensor(0.3, dtype=torch.float64))

        def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
            return torch.tanh(x + self.weight * t.mean())

    denoiser = SimpleDenoiser(Backbone(), VPSchedule(alpha_min=0.02, sigma_min=0.01))
    theirs = DDIMSampler(denoiser, start=0.9, steps=6, silent=True, dtype=torch.float64)
    alpha, sigma = denoiser.schedule(theirs.timesteps)
    levels = (sigma / alpha).tolist()
    plan = client.plan("edm", sigma_min=0.009, sigma_max=60, solver="euler", grid={"sigma": levels})
    ours = samplers["PlanSampler"](denoiser, plan)
    assert ours.start == pytest.approx(0.9, abs=1e-6)
    x = NOISE * sigma[0]
    torch.testing.assert_close(ours(x) * alpha[-1], theirs(x), rtol=0, atol=1e-5)
