"""The node of ComfyUI, against its sampling interface as it is documented: comfy.samplers.KSAMPLER scales noise, calls
the sampler function with a model that returns denoised images, and takes what it returns. The engine itself is no
package that could be installed here.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

import anisoflight
from anisoflight import Plan
from anisoflight.comfyui import NODE_CLASS_MAPPINGS
from anisoflight.errors import BadRequestError

SPECTRUM = torch.linspace(0.05, 1, 64).reshape(1, 1, 8, 8)


def denoised(x: torch.Tensor, sigma: Any) -> torch.Tensor:
    """Of normal data; sigma as plans have it."""
    return x * SPECTRUM.to(x) / (SPECTRUM.to(x) + torch.as_tensor(sigma).to(x).reshape(-1, 1, 1, 1) ** 2)


class CONST:
    """Flow networks: x = (1 − s) x_0 + s ε."""


@pytest.fixture(autouse=True)
def comfy(monkeypatch: pytest.MonkeyPatch) -> None:
    class Sampler:
        def __init__(self, function: Any, extra_options: dict[str, Any]) -> None:
            self.function, self.options = function, extra_options

        def sample(
            self, sampling: Any, sigmas: torch.Tensor, noise: torch.Tensor, image: torch.Tensor, seen: list
        ) -> Any:
            first = float(sigmas[0])
            flow = isinstance(sampling, CONST)
            highest = math.isclose(first, sampling.sigma_max, rel_tol=1e-5) or first > sampling.sigma_max
            scale = first if flow or not highest else math.hypot(1, first)
            x = noise * scale + image * (1 - first if flow else 1)

            def model(x: torch.Tensor, sigma: torch.Tensor, seed: int, model_options: Any) -> torch.Tensor:
                assert sigma.shape == (len(x),)
                wide = sigma.reshape(-1, 1, 1, 1)
                return denoised(x / (1 - wide), sigma / (1 - sigma)) if flow else denoised(x, sigma)

            watch = {"callback": lambda state: seen.append(state["i"]), "disable": True}
            return self.function(model, x, sigmas, extra_args={"seed": 1, "model_options": {}}, **watch, **self.options)

    modules = {name: ModuleType(name) for name in ("comfy", "comfy.samplers", "comfy.model_sampling")}
    modules["comfy.samplers"].KSAMPLER = Sampler  # type: ignore[attr-defined]
    modules["comfy.model_sampling"].CONST = CONST  # type: ignore[attr-defined]
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    modules["comfy"].samplers, modules["comfy"].model_sampling = (  # type: ignore[attr-defined]
        modules["comfy.samplers"], modules["comfy.model_sampling"],
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plans")
    with anisoflight.serve(data=tmp_path_factory.mktemp("data")) as client:
        client.plan("edm", sigma_min=0.002, sigma_max=14.6, solver="dpmpp2m", nfe=5).save(folder / "14.json")
        client.plan("edm", sigma_min=0.002, sigma_max=80, solver="heun", nfe=5).save(folder / "80.json")
    return folder


def node(path: Path, highest: float, flow: bool) -> tuple[Any, torch.Tensor, Any]:
    sampling = CONST() if flow else SimpleNamespace()
    sampling.sigma_max = highest
    model = SimpleNamespace(get_model_object={"model_sampling": sampling}.__getitem__)
    sampler, sigmas = NODE_CLASS_MAPPINGS["AnisoflightPlan"]().load(model, str(path))
    return sampler, sigmas, sampling


@pytest.mark.parametrize("flow", [False, True])
@pytest.mark.parametrize(("name", "highest"), [("14", 14.6), ("14", 20.0), ("80", 80.0)])
def test_a_workflow_gives_the_samples_of_the_plan(folder: Path, name: str, highest: float, flow: bool) -> None:
    """Whether or not the plan begins at the model's highest level, from which ComfyUI scales noise otherwise."""
    plan, noise, seen = Plan.load(folder / f"{name}.json"), torch.randn(3, 1, 8, 8), []
    sampler, sigmas, sampling = node(folder / f"{name}.json", 1.0 if flow else highest, flow)
    found = sampler.sample(sampling, sigmas, noise, torch.zeros_like(noise), seen)
    expected = plan(denoised, noise, progress=False)
    assert len(sigmas) == plan.steps + 1
    assert sigmas[-1] == 0
    assert torch.allclose(found, expected, atol=2e-5), (found - expected).abs().max()
    assert sorted(set(seen)) == list(range(plan.steps))


@pytest.mark.parametrize("flow", [False, True])
def test_split_sigmas_are_the_tail_of_the_plan(folder: Path, flow: bool) -> None:
    """Image-to-image: SplitSigmas gives the last steps, and ComfyUI puts noise on the image."""
    plan, noise, image = Plan.load(folder / "14.json"), torch.randn(3, 1, 8, 8), torch.randn(3, 1, 8, 8)
    sampler, sigmas, sampling = node(folder / "14.json", 1.0 if flow else 14.6, flow)
    found = sampler.sample(sampling, sigmas[2:], noise, image, [])
    expected = plan.tail(2)(denoised, noise, image, progress=False)
    assert torch.allclose(found, expected, atol=2e-5), (found - expected).abs().max()
    with pytest.raises(BadRequestError, match="sigmas must be those of the plan, or its last ones"):
        sampler.sample(sampling, sigmas[:3], noise, image, [])
    with pytest.raises(BadRequestError, match="sigmas must be those of the plan"):
        sampler.sample(sampling, torch.linspace(0.9, 0, 6), noise, image, [])
