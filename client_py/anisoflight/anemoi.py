"""A learned schedule in ECMWF's anemoi-models: `CurveSchedule`, an EDM sigma schedule.

    client.schedule("weather").to_csv("weather.csv")

    from anemoi.models.transport.schedules import SIGMA_SCHEDULES
    from anisoflight.anemoi import CurveSchedule

    SIGMA_SCHEDULES["anisoflight"] = CurveSchedule  # then, in a configuration, its name and path: weather.csv

It needs the package anemoi-models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch  # pyright: ignore[reportMissingImports]
from anemoi.models.transport.schedules import SigmaSchedule  # pyright: ignore[reportMissingImports]

from .curve import Curve

if TYPE_CHECKING:
    from os import PathLike


class CurveSchedule(SigmaSchedule):  # pyright: ignore[reportGeneralTypeIssues]
    """num_steps noise levels of a schedule that `Schedule.to_csv` wrote to path, and the 0 after them.

    The schedule decides its largest and smallest level: sigma_max and sigma_min, where they are given, must be the
    first level or above it, and the last or below it, which is what the network has to have been trained for.
    """

    def __init__(
        self,
        num_steps: int,
        path: str | PathLike[str],
        label: int | None = None,
        sigma_max: float | None = None,
        sigma_min: float | None = None,
    ) -> None:
        self._sigmas = Curve.load(path, label).sigmas(num_steps)
        first, last = float(self._sigmas[0]), float(self._sigmas[-2])
        for name, given, level, bad in (
            ("sigma_max", sigma_max, first, sigma_max is not None and sigma_max < first * (1 - 1e-6)),
            ("sigma_min", sigma_min, last, sigma_min is not None and sigma_min > last * (1 + 1e-6)),
        ):
            if bad:
                raise ValueError(f"{name} must reach the schedule's {level:g}, got {given:g}: leave it out")
        super().__init__(sigma_max=first, sigma_min=last, num_steps=num_steps)

    def _build_schedule(self, device: Any = None, dtype_compute: Any = torch.float64) -> Any:
        return torch.as_tensor(self._sigmas, device=device, dtype=dtype_compute)
