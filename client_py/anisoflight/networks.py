"""Kinds of networks: how each takes a noisy image x = x_0 + σ ε, and what it returns, in terms of σ.

Samplers here compute with x. A network that was trained on images in another scaling is given c·x, with a time of its
own; a pipeline that knows nothing of σ holds c·x throughout, from unit noise to x_0.

    kind        holds c·x            time            returns
    denoiser    x                    σ               x_0 or ε
    edm         x                    ¼ ln σ          F of D = c_skip x + c_out F, at c_in x
    ve          x                    ln(σ/2)         −ε
    ddpm        x / √(1 + σ²)        τ               ε, x_0, or v = √ᾱ ε − √(1 − ᾱ) x_0; ᾱ_τ = 1 / (1 + σ²)
    flow        x / (1 + σ)          s·N             ε − x_0 at (1 − s) x_0 + s ε; s = σ / (1 + σ)

References: Karras et al. 2022 (EDM), Table 1; Ho et al. 2020 (DDPM); Salimans and Ho 2022 (v); Lipman et al. 2023.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

Level = Any
"""A noise level σ > 0: a number, or an array or a tensor whose shape can be multiplied with images."""


class Network:
    """What a scheduler asks of a kind of network; by default one that takes x and σ. Images are tensors or arrays."""

    def scale(self, sigma: Level) -> Any:
        """c, by which the images that a pipeline holds are x scaled; c(0) = 1."""
        del sigma
        return 1.0

    def input_scale(self, sigma: Level) -> Any:
        """What the network takes, over what the pipeline holds."""
        del sigma
        return 1.0

    def time(self, sigma: Level) -> Any:
        """The network's own time of a number or a tensor σ."""
        return sigma

    def sigma(self, time: float) -> float:
        """The noise level at a time: the inverse of `time`."""
        return time

    def denoised(self, output: Any, held: Any, sigma: Level) -> Any:
        """x_0 from the network's output at images that the pipeline holds."""
        raise NotImplementedError


@dataclass(frozen=True)
class Denoiser(Network):
    """A network that takes x and σ.

    >>> Denoiser("epsilon").denoised(2.0, 5.0, 0.5)
    4.0
    """

    prediction: str = "sample"

    def __post_init__(self) -> None:
        _check(self.prediction, "denoiser", "sample", "epsilon")

    def denoised(self, output: Any, held: Any, sigma: Level) -> Any:
        return output if self.prediction == "sample" else held - sigma * output


@dataclass(frozen=True)
class EDM(Network):
    """The raw network F of EDM's preconditioning, as diffusers' EDM schedulers have it: v_prediction turns c_out round.

    >>> edm = EDM(sigma_data=0.5)
    >>> edm.time(1.0), round(edm.denoised(0.0, 1.0, 0.5), 6)
    (0.0, 0.5)
    """

    prediction: str = "epsilon"
    sigma_data: float = 0.5

    def __post_init__(self) -> None:
        _check(self.prediction, "edm", "epsilon", "v_prediction")

    def input_scale(self, sigma: Level) -> Any:
        return 1 / _hypot(self.sigma_data, sigma)

    def time(self, sigma: Level) -> Any:
        return 0.25 * _log(sigma)

    def sigma(self, time: float) -> float:
        return math.exp(4 * time)

    def denoised(self, output: Any, held: Any, sigma: Level) -> Any:
        norm = _hypot(self.sigma_data, sigma)
        sign = 1 if self.prediction == "epsilon" else -1
        return (self.sigma_data / norm) ** 2 * held + sign * sigma * self.sigma_data / norm * output


class VE(Network):
    """EDM's VE baseline: a network that takes x as it is and returns −ε.

    >>> VE().denoised(-2.0, 5.0, 0.5), round(VE().sigma(VE().time(3.0)), 6)
    (4.0, 3.0)
    """

    def time(self, sigma: Level) -> Any:
        return _log(sigma / 2)

    def sigma(self, time: float) -> float:
        return 2 * math.exp(time)

    def denoised(self, output: Any, held: Any, sigma: Level) -> Any:
        return held + sigma * output


class _Preserving(Network):
    """A network of images x / √(1 + σ²), whose variance is that of the data where that is 1."""

    def scale(self, sigma: Level) -> Any:
        return 1 / _hypot(1, sigma)


class DDPM(_Preserving):
    """A network of N discrete times with ᾱ [N]; times between them are interpolated in ln σ, those outside clamped.

    >>> ddpm = DDPM([0.9, 0.5, 0.1], "epsilon")
    >>> round(ddpm.time(1.0), 6), round(ddpm.time(1e-6), 6), round(ddpm.sigma(2), 6)
    (1.0, 0.0, 3.0)
    """

    def __init__(
        self, alphas_cumprod: npt.ArrayLike, prediction: str = "epsilon", timesteps: npt.ArrayLike | None = None
    ) -> None:
        _check(prediction, "ddpm", "epsilon", "sample", "v_prediction")
        self.prediction = prediction
        alphas = np.asarray(alphas_cumprod, np.float64)
        times = np.asarray(np.arange(len(alphas)) if timesteps is None else timesteps, np.float64)
        kept = alphas > 0  # a last level of pure noise has no σ
        self._times, alphas = times[kept], alphas[kept]
        self._logs = 0.5 * np.log((1 - alphas) / alphas)

    def time(self, sigma: Level) -> Any:
        if not hasattr(sigma, "new_tensor"):
            return float(np.interp(math.log(sigma), self._logs, self._times))
        import torch  # pyright: ignore[reportMissingImports]

        logs, times = (torch.as_tensor(values).to(sigma.device) for values in (self._logs, self._times))
        exact = sigma.log().double().clamp(logs[0], logs[-1])
        left = (torch.searchsorted(logs, exact.detach(), right=True) - 1).clamp(0, len(logs) - 2)
        slope = (times[left + 1] - times[left]) / (logs[left + 1] - logs[left])
        return (times[left] + slope * (exact - logs[left])).to(sigma.dtype)

    def sigma(self, time: float) -> float:
        return math.exp(np.interp(time, self._times, self._logs))

    def denoised(self, output: Any, held: Any, sigma: Level) -> Any:
        if self.prediction == "sample":
            return output
        alpha = self.scale(sigma)
        if self.prediction == "v_prediction":
            return alpha * held - sigma * alpha * output
        return (1 / alpha) * held - sigma * output


@dataclass(frozen=True)
class VP(_Preserving):
    """EDM's VP baseline: ε of x/√(1 + σ²), at a continuous time of betas that grow from beta_min by beta_d."""

    beta_d: float = 19.9
    beta_min: float = 0.1
    times: float = 1000

    def time(self, sigma: Level) -> Any:
        log = sigma.square().log1p() if hasattr(sigma, "log1p") else math.log1p(sigma**2)
        root = (self.beta_min**2 + 2 * self.beta_d * log) ** 0.5
        return (self.times - 1) * 2 * log / (root + self.beta_min)  # (root − beta_min)/beta_d, without a difference

    def sigma(self, time: float) -> float:
        t = time / (self.times - 1)
        return math.sqrt(math.expm1(0.5 * self.beta_d * t * t + self.beta_min * t))

    def denoised(self, output: Any, held: Any, sigma: Level) -> Any:
        return _hypot(1, sigma) * held - sigma * output


@dataclass(frozen=True)
class Flow(Network):
    """A flow-matching network (rectified flow), whose times are s·N, from N (noise) to 0.

    One `to_data` has times from 0 (noise) to N, and returns x_0 − ε.

    >>> flow = Flow(1000)
    >>> flow.time(1.0), flow.sigma(500.0), flow.scale(1.0)
    (500.0, 1.0, 0.5)
    """

    times: float = 1000
    to_data: bool = False

    def scale(self, sigma: Level) -> Any:
        return 1 / (1 + sigma)

    def time(self, sigma: Level) -> Any:
        return self.times / (1 + sigma) if self.to_data else self.times * sigma / (1 + sigma)

    def sigma(self, time: float) -> float:
        share = 1 - time / self.times if self.to_data else time / self.times
        return share / (1 - share) if share < 1 else math.inf

    def denoised(self, output: Any, held: Any, sigma: Level) -> Any:
        sign = 1 if self.to_data else -1
        return held + sign * sigma / (1 + sigma) * output


def _hypot(a: float, sigma: Level) -> Any:
    """√(a² + σ²)."""
    return (a**2 + sigma**2) ** 0.5


def _log(sigma: Level) -> Any:
    return sigma.log() if hasattr(sigma, "log") else math.log(sigma)


def _check(prediction: str, kind: str, *allowed: str) -> None:
    if prediction not in allowed:
        raise ValueError(
            f"prediction_type must be {' or '.join(allowed)} for a network of kind {kind}, got {prediction!r}"
        )
