"""A learned schedule in NVIDIA's PhysicsNeMo: `CurveNoiseScheduler`, a noise scheduler of its diffusion samplers.

    client.schedule("weather").to_csv("weather.csv")

    from physicsnemo.diffusion.samplers import sample
    from anisoflight.physicsnemo import CurveNoiseScheduler

    scheduler = CurveNoiseScheduler("weather.csv")
    sample(scheduler.get_denoiser(x0_predictor=network), latents, scheduler, num_steps=9)

It needs the package nvidia-physicsnemo.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch  # pyright: ignore[reportMissingImports]
from physicsnemo.diffusion.noise_schedulers import EDMNoiseScheduler  # pyright: ignore[reportMissingImports]

from .curve import Curve

if TYPE_CHECKING:
    from os import PathLike


class CurveNoiseScheduler(EDMNoiseScheduler):  # pyright: ignore[reportGeneralTypeIssues]
    """EDM's scheduler, x = x_0 + σε with t = σ, but for its time-steps: the noise levels of a schedule that
    `Schedule.to_csv` wrote to path, and the 0 after them.

    settings are EDMNoiseScheduler's that training goes by: sigma_data, P_mean, P_std. The schedule decides sigma_max.
    """

    def __init__(self, path: str | PathLike[str], label: int | None = None, **settings: Any) -> None:
        if named := sorted({"sigma_min", "sigma_max", "rho"} & settings.keys()):
            raise ValueError(f"{named[0]} is the schedule's to say: leave it out")
        self._curve = Curve.load(path, label)
        super().__init__(sigma_max=float(self._curve.sigmas(1)[0]), **settings)

    def timesteps(self, num_steps: int, *, device: Any = None, dtype: Any = None) -> Any:
        """[num_steps + 1] noise levels, from the largest down; the last is 0."""
        return torch.as_tensor(self._curve.sigmas(num_steps), device=device, dtype=dtype or torch.get_default_dtype())
