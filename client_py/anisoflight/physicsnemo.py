"""A learned schedule in NVIDIA PhysicsNeMo: `CurveNoiseScheduler`, for its samplers.

    client.schedule("weather").to_csv("weather.csv")

    from anisoflight.physicsnemo import CurveNoiseScheduler

    scheduler = CurveNoiseScheduler(Curve.load("weather.csv"))
    denoiser = scheduler.get_denoiser(x0_predictor=network)
    x = sample(denoiser, scheduler.init_latents(shape, times), scheduler, num_steps=9, solver="heun")

It needs the package nvidia-physicsnemo.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch  # pyright: ignore[reportMissingImports]
from physicsnemo.diffusion.noise_schedulers import EDMNoiseScheduler  # pyright: ignore[reportMissingImports]

if TYPE_CHECKING:
    from .curve import Curve


class CurveNoiseScheduler(EDMNoiseScheduler):  # pyright: ignore[reportGeneralTypeIssues]
    """EDM's noise scheduler, whose time is σ, stepping through the levels of a curve.

    Options are those of EDMNoiseScheduler for training: sigma_data, P_mean, P_std.
    """

    def __init__(self, curve: Curve, **options: Any) -> None:
        super().__init__(sigma_max=float(curve.sigmas(1)[0]), **options)
        self.curve = curve

    def timesteps(self, num_steps: int, *, device: Any = None, dtype: Any = None) -> Any:
        """num_steps noise levels, the largest first, and a 0."""
        return torch.as_tensor(self.curve.sigmas(num_steps), device=device, dtype=dtype or torch.get_default_dtype())
