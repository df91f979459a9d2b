"""Learned schedules in other programs' samplers draw what a plan of Heun's method draws from the same noise."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from anemoi.models.samplers.transport_samplers import EDMHeunSampler
from anemoi.models.transport.schedules import SIGMA_SCHEDULES, SamplingSchedule

from anisoflight.anemoi import CurveSchedule
from anisoflight.stepping import Stepper

if TYPE_CHECKING:
    from anisoflight import Client

STEPS = 6
NOISE = torch.randn(2, 3, 1, 10, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def denoised(x: torch.Tensor, sigma: torch.Tensor | float) -> torch.Tensor:
    """The posterior mean of data of the normal law N(0.2, 0.09)."""
    return (0.09 * x + 0.2 * sigma**2) / (0.09 + sigma**2)


@pytest.fixture(scope="module")
def file(client: Client, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A schedule made for the digits, as a table."""
    made = client.make_schedule("made", "gaussian", dataset="digits", solver="heun", nfe=11, progress=False)
    path = tmp_path_factory.mktemp("schedules") / "made.csv"
    made.to_csv(path)
    return path


@pytest.fixture(scope="module")
def expected(client: Client, file: Path) -> torch.Tensor:
    assert file.exists()
    stepper = Stepper(client.plan("made", solver="heun", second_point="endpoint", steps=STEPS))
    x = stepper.start(NOISE.reshape(2, 3, 10, 4))
    for stage in stepper.stages:
        x = stepper.step(denoised(x, stage.sigma), x)
    return x.reshape(NOISE.shape)


def close(got: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-4)  # the plan ends at the schedule's last σ, they at 0


def test_anemoi(file: Path, expected: torch.Tensor) -> None:
    SIGMA_SCHEDULES["anisoflight"] = CurveSchedule
    schedule = SIGMA_SCHEDULES["anisoflight"](num_steps=STEPS, path=file)
    assert isinstance(schedule, SamplingSchedule)
    sigmas = schedule.get_schedule()
    assert sigmas.shape == (STEPS + 1,)
    assert sigmas[-1] == 0

    def network(x: Any, y: dict[str, torch.Tensor], sigma: dict[str, torch.Tensor], *_: Any) -> dict[str, torch.Tensor]:
        return {"digits": denoised(y["digits"], sigma["digits"])}

    data = {"digits": torch.zeros_like(NOISE)}
    close(EDMHeunSampler().sample(data, {"digits": NOISE * sigmas[0]}, sigmas, network)["digits"], expected)
    with pytest.raises(ValueError, match="sigma_max must reach the schedule's 80, got 10: leave it out"):
        CurveSchedule(num_steps=STEPS, path=file, sigma_max=10)
