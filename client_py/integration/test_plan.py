"""Plans in torch: what numpy computes, where the noise is and in its dtype."""

from typing import Any

import numpy as np
import pytest
import torch

from anisoflight import AnisoflightError, Client, Plan


@pytest.fixture(scope="module")
def plans(client: Client) -> dict[str, Plan]:
    """From a law, in frequencies, in two subspaces from a law by class, and by classes with noise added."""
    quiet: dict[str, Any] = {"replace": True, "progress": False}
    client.make_mixture("mixed", "digits", covariance="dct", **quiet)
    client.make_schedule("law", "start", dataset="digits", sigma_max=5.0, **quiet)
    rows = [(j, t, g) for j in (0, 1) for t, g in ((0, 1e-6), (4, 0.3 + 2 * j), (9, 25 * (1 + j)))]
    table = dict(zip(("subspace", "t", "g"), zip(*rows, strict=True), strict=True))
    client.put_schedule("two", table, basis="dct", k=4, replace=True)
    client.make_schedule("two-law", "start", schedule="two", dataset="digits", **quiet)
    return {
        "law": client.plan("law", solver="ab", steps=4),
        "frequencies": client.few("mixed", nfe=4, solvers=["ipndm"], progress=False),
        "two": client.plan("two-law", solver="unipc", steps=4),
    }


def denoiser(x: Any, sigma: Any, **_: Any) -> Any:
    level = sigma if sigma.ndim == 1 else (sigma**2).mean(1) ** 0.5
    return x * 0.5 / (0.5 + level.reshape(-1, 1, 1, 1) ** 2)


@pytest.mark.parametrize("name", ["law", "frequencies", "two"])
def test_tensors_are_followed_as_arrays_are(plans: dict[str, Plan], name: str) -> None:
    plan, (noise, image) = plans[name], np.random.default_rng(0).standard_normal((2, 3, 1, 8, 8))
    exact, tensor = plan(denoiser, noise, progress=False), torch.from_numpy(noise)
    assert np.abs(plan(denoiser, tensor, progress=False).numpy() - exact).max() < 1e-12
    single = plan(denoiser, tensor.float(), progress=False)
    assert single.dtype == torch.float32
    assert np.abs(single.numpy() - exact).max() < 1e-4
    half = plan(denoiser, tensor.bfloat16(), progress=False)
    assert half.dtype == torch.bfloat16
    assert np.abs(half.float().numpy() - exact).max() < 0.1
    tail = plan.tail(2)
    got = tail(denoiser, tensor, torch.from_numpy(image), progress=False)
    assert np.abs(got.numpy() - tail(denoiser, noise, image, progress=False)).max() < 1e-12


@pytest.mark.parametrize("name", ["law", "frequencies", "two"])
def test_a_loop_has_gradients_to_its_noise(plans: dict[str, Plan], name: str) -> None:
    """Nothing leaves torch; what was kept from a pass in inference mode serves here, too."""
    plan, noise = plans[name], torch.randn(2, 1, 8, 8, dtype=torch.float64)
    with torch.inference_mode():
        plan(denoiser, noise, progress=False)

    def samples(noise: torch.Tensor) -> torch.Tensor:
        loop = plan.stages(noise)
        for _ in loop:
            loop.step(denoiser(loop.x, loop.sigma))
        return loop.x.square().sum()

    assert torch.autograd.gradcheck(samples, noise.requires_grad_(), fast_mode=True)
    assert not plan(denoiser, noise, progress=False).requires_grad


def test_noise_of_generators(client: Client) -> None:
    plan = client.plan("edm", sigma_min=0.01, sigma_max=160, grid={"sigma": [50, 8, 1, 0]}, solver="euler", S_churn=2)

    def once(seed: int) -> torch.Tensor:
        return plan(denoiser, noise, generator=torch.Generator().manual_seed(seed), progress=False)

    noise = torch.randn(2, 3, 4, 5, generator=torch.Generator().manual_seed(0))
    assert torch.equal(once(1), once(1))
    assert not torch.equal(once(1), once(2))


def test_noise_and_answers_are_of_one_kind(client: Client) -> None:
    plan = client.plan("edm", sigma_min=0.01, sigma_max=160, solver="euler", steps=2, S_churn=1)
    noise = torch.randn(2, 1, 4, 4)
    with pytest.raises(AnisoflightError, match="images must be a Tensor as the noise is, got a ndarray"):
        plan.stages(noise).step(np.zeros((2, 1, 4, 4)))
    with pytest.raises(AnisoflightError, match="generator must be one of torch, as the noise is, got Generator"):
        plan(denoiser, noise, generator=np.random.default_rng(0), progress=False)
    with pytest.raises(AnisoflightError, match="generator must be one of numpy, as the noise is, got Generator"):
        plan(denoiser, noise.numpy(), generator=torch.Generator(), progress=False)
