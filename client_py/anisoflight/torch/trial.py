"""Whether the answers of a network are those of a denoiser, and of which kind."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]

from ..errors import AnisoflightError, BadRequestError, warn
from .meaning import network_of, parametrization, range_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .denoiser import Denoiser

    Tensor = torch.Tensor

_STEPS = 12  # of Euler's method, to samples of the network itself
_LEVELS = 6
_NAMES = {"v": "v_prediction", "x0": "sample"}


@dataclass(frozen=True)
class Trial:
    """What a network answered for x_0 + σε, with e(σ) = E|D(x_0 + σε, σ) − x_0|² by value and c = E|x_0|².

    Of the linear denoisers that treat all values alike, the best has an error of σ²c/(σ² + c), and every network that
    has learned something a lower one at some σ.
    """

    seconds_per_evaluation: float
    """For one row; the least of several measurements."""
    sigmas: tuple[float, ...]
    """The noise levels σ that were tried."""
    errors: tuple[float, ...]
    """e(σ) over that of the linear denoiser."""
    own: tuple[float, ...]
    """e(σ) over that of a network of its kind that returns 0."""

    @property
    def score(self) -> float:
        """The mean of ln `errors`."""
        return float(np.log(self.errors).mean())

    @property
    def passes(self) -> bool:
        """Whether no level is much worse than the linear denoiser, or it is that only because the kind's own output,
        which is right, counts for much: ε at high noise levels, x_0 at low ones.
        """
        return all(error <= 1.3 or own <= 0.3 for error, own in zip(self.errors, self.own, strict=True))

    @property
    def informative(self) -> bool:
        """Whether the network knows more of x_0 than its variance."""
        return self.passes and min(self.errors) <= 0.7


def tried(denoiser: Denoiser, shape: Sequence[int], data: Any, rows: Any, samples: int) -> Trial:
    """The trial of a denoiser; see `Denoiser.check`."""
    count = samples
    if rows is None and denoiser.rows:
        data, numbers = None, torch.arange(count) % denoiser.rows  # whose conditions are not known
    else:
        numbers = None if rows is None else torch.as_tensor(rows)
    generator = torch.Generator().manual_seed(0)
    images = None
    if data is not None:
        if tuple(data.shape[1:]) != tuple(shape) or not len(data):
            raise BadRequestError(
                f"data must be images [N, {', '.join(map(str, shape))}], got {list(data.shape)}", "BAD_TENSOR"
            )
        chosen = np.linspace(0, len(data) - 1, count).astype(int)
        images = torch.as_tensor(data[chosen]).to(denoiser.device, torch.float32)
        numbers = None if numbers is None else numbers[torch.from_numpy(chosen)]
        if not images.isfinite().all():
            raise BadRequestError("data must be finite", "BAD_TENSOR")
    plain = denoiser._with(guidance=1.0, _rows=numbers)  # with guidance it is no mean of x_0

    def noise() -> Tensor:
        return torch.randn(count, *shape, generator=generator).to(denoiser.device)

    def of_section(section: Any) -> Denoiser:
        low, high = range_of(section)
        return plain._with(_kind=network_of(section)[0], sigma_min=low, sigma_max=high)

    x0 = _samples(plain, noise()) if images is None else images
    trial = _trial(plain, x0, noise)
    if trial.informative:
        return trial
    found = []
    for section in _others(denoiser.parametrization):
        other = of_section(section)
        try:
            x0 = _samples(other, noise()) if images is None else images
            answers = _trial(other, x0, noise)
            if answers.informative:
                found.append((answers.score - _trial(plain, x0, noise).score, section))
        except AnisoflightError:
            continue
    return trial, found


def _samples(denoiser: Denoiser, noise: Tensor) -> Tensor:
    """The network's own samples, by Euler's method."""
    sigmas = np.geomspace(min(denoiser.sigma_max, 20.0), max(denoiser.sigma_min, 0.01), _STEPS).tolist()
    x = sigmas[0] * noise
    for sigma, following in zip(sigmas, [*sigmas[1:], 0.0], strict=True):
        x = torch.lerp(denoiser(x, sigma), x, following / sigma)
    return x


def _trial(denoiser: Denoiser, x0: Tensor, noise: Any) -> Trial:
    variance = float(x0.square().mean())
    scale = variance**0.5
    low, high = max(denoiser.sigma_min, 0.03 * scale), min(denoiser.sigma_max, 30 * scale)
    sigmas = np.geomspace(min(low, high), high, _LEVELS).tolist()
    errors, own, seconds = [], [], []
    for sigma in sigmas:
        x = x0 + sigma * noise()
        begun, counts = time.perf_counter(), denoiser.counts
        error = float((denoiser(x, sigma) - x0).square().mean())
        seconds.append((time.perf_counter() - begun) / (denoiser.counts - counts))
        held = denoiser._kind.scale(sigma) * x
        zero = float((denoiser._kind.denoised(torch.zeros_like(x), held, sigma) - x0).square().mean())
        errors.append(error / (variance * sigma**2 / (variance + sigma**2)))
        own.append(error / zero)
    return Trial(min(seconds), tuple(sigmas), tuple(errors), tuple(own))


def _others(section: Any) -> list[dict[str, Any]]:
    table = section.get("alphas_cumprod") or parametrization("epsilon")["alphas_cumprod"]
    sections: list[dict[str, Any]] = [{"kind": kind, "alphas_cumprod": table} for kind in ("epsilon", "v", "x0")]
    sections += [{"kind": kind} for kind in ("edm", "ve", "denoiser")]
    sections += [{"kind": "flow", "steps": steps, "to_data": back} for back in (False, True) for steps in (1, 1000)]
    return [one for one in sections if section | one != section]
