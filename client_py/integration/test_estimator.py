"""A network that stays here: the same module on the server, and its own schedules through `schedule`."""

from typing import Any

import numpy as np
import pytest
import torch
from diffusers import DDPMScheduler, UNet2DModel
from network import digits

from anisoflight import Client
from anisoflight.offering import Question
from anisoflight.torch import Denoiser, estimator, schedule

TERMS = {
    "explicit": ["explicit"],
    "backprop": ["backprop"],
    "full": ["explicit", "implicit1", "implicit2", "implicit3"],
}
RANGE = {"sigma_min": 0.02, "sigma_max": 40.0}
IMAGES = digits()[:64]


@pytest.fixture(scope="module")
def served(client: Client, unet: UNet2DModel) -> str:
    client.put_network("served", unet, scheduler=DDPMScheduler(), replace=True, progress=False)
    client.put_dataset("few-digits", IMAGES, replace=True, progress=False)
    return "served"


def planes() -> torch.Tensor:
    return torch.from_numpy(IMAGES).permute(0, 3, 1, 2)


@pytest.mark.parametrize("mode", TERMS)
@pytest.mark.parametrize("family", [{"basis": "none"}, {"basis": "dct", "k": 16}], ids=["isotropic", "dct"])
def test_the_terms_are_those_of_the_device(
    client: Client, served: str, unet: UNet2DModel, mode: str, family: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A and B at equal images, noise, probes, times: XLA in float32, torch's autograd in float32."""
    client.make_schedule("net-start", "log-linear", T=1600, g0=0.0004, knots=8, replace=True)
    start = "net-start"
    if family["basis"] != "none":
        frame = client.schedule(start).evaluate(t=np.linspace(0, 1, 9) * 1600)
        table = {"t": [*frame["t"], *frame["t"]], "g": [*frame["g"], *frame["g"]], "subspace": [0] * 9 + [1] * 9}
        client.put_schedule("net-start-dct", table, replace=True, **family)
        start = "net-start-dct"
    asked: list[tuple[Question, Any]] = []
    original = estimator._Answers.__call__

    def noted(self: Any, event: Any, question: Question) -> Any:
        asked.append((question, original(self, event, question)))
        return asked[-1][1]

    monkeypatch.setattr(estimator._Answers, "__call__", noted)
    settings: dict[str, Any] = {"schedule": start, "family": family, "estimator": mode, "batch": 24, "kimg": 0.024}
    settings |= {"order": 1, "c": 1}
    denoiser = Denoiser(unet, DDPMScheduler())
    schedule(denoiser, client, "net-terms", planes(), microbatch=10, progress=False, replace=True, **settings, **RANGE)
    ((question, values),) = asked
    names = ["residual", *TERMS[mode]]
    ours = dict(zip(names, values.reshape(len(names), *question.g.shape), strict=True))
    shape = (8, 8, 1)
    theirs = client.schedule_gradient(
        start, served, IMAGES[question.image], question.noise(shape), question.t, probe=question.probe(shape), mode=mode
    )
    g, omega = question.g, question.omega
    weighed = omega * ours["residual"]
    a = -weighed * (1 / g + 1 / (1 + g)) + sum(ours[name] for name in TERMS[mode])
    scale = np.sqrt((theirs.A**2).mean()) + abs(theirs.A) + weighed / g
    assert (abs(a - theirs.A) / scale).max() < 1e-3
    np.testing.assert_allclose(2 * weighed / np.sqrt(omega * g * (1 + g)), theirs.B, rtol=1e-3)


def logs(client: Client, name: str) -> Any:
    return np.log(client.schedule(name).evaluate(t=np.linspace(0.02, 1, 50) * 1600)["g"].to_numpy())


def test_the_geodesic_is_that_of_the_device(client: Client, served: str, unet: UNet2DModel) -> None:
    settings: dict[str, Any] = {"T": 1600, "g0": 0.0004, "points": 12, "samples": 8, "seed": 4, "replace": True}
    device = client.make_schedule("net-device", model=served, dataset="few-digits", progress=False, **settings)
    denoiser = Denoiser(unet, DDPMScheduler())
    ours = schedule(denoiser, client, "net-remote", planes(), kind="geodesic", progress=False, **settings, **RANGE)
    np.testing.assert_allclose(logs(client, "net-remote"), logs(client, "net-device"), atol=1e-3)
    assert ours.info["energies"][0]["energy"] == pytest.approx(device.info["energies"][0]["energy"], rel=1e-3)


def test_what_is_learned_moves_as_on_the_device(client: Client, served: str, unet: UNet2DModel) -> None:
    """The same images and times, other noise: 16 steps end nearer each other than a third of how far they went."""
    fields = {"init": "log-linear", "T": 1600, "g0": 0.0004, "knots": 8, "batch": 256, "kimg": 4.096, "seed": 2}
    fields |= {"schedule_lr": 0.1}
    run = client.create_run(
        "net-run", "isotropic", "few-digits", model=served, train_network=False, replace=True, **fields
    )
    run.step(16, progress=False)
    run.save("net-run-model", replace=True)
    denoiser = Denoiser(unet, DDPMScheduler())
    schedule(denoiser, client, "net-learned", planes(), progress=False, replace=True, **fields, **RANGE)
    client.make_schedule("net-start", "log-linear", T=1600, g0=0.0004, knots=8, replace=True)
    start, theirs, mine = (logs(client, name) for name in ("net-start", "net-run-model", "net-learned"))
    assert abs(mine - theirs).mean() < 0.33 * abs(theirs - start).mean()

    plan = client.plan("net-learned", **RANGE, solver="unipc", steps=6)  # and is sampled along outside
    assert torch.isfinite(plan(denoiser, torch.randn(2, 1, 8, 8), progress=False)).all()


def test_a_function_of_ones_own(client: Client) -> None:
    """A denoiser with classes, whose images are made as they are asked for."""
    labels = np.repeat([1, 0], [7, 5])
    seen: set[int] = set()

    class Images:
        shape = (12, 2, 3, 4)

        def __getitem__(self, numbers: np.ndarray) -> torch.Tensor:
            seen.update(numbers.tolist())
            return torch.as_tensor(labels[numbers], dtype=torch.float32)[:, None, None, None].expand(-1, 2, 3, 4)

    def denoise(x: torch.Tensor, sigma: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        keep = 1 / (1 + sigma.square())[:, None, None, None]
        return keep * x + (1 - keep) * labels[:, None, None, None]

    fields: dict[str, Any] = {"batch": 16, "kimg": 0.048, "family": {"per_class": True, "basis": "none"}}
    made = schedule(denoise, client, "own", Images(), labels, progress=False, replace=True, **fields)
    assert seen == set(range(12))
    assert made.info["labels"] == [0, 1]
    assert [row["step"] for row in made.info["rows"]] == [1, 2, 3]
