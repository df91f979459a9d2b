"""Kinds of networks: how each takes a noisy image x = x_0 + σ ε, and what it returns, in terms of σ.

Samplers here compute with x. A network trained on images in another scaling takes c·x and its own time; a pipeline that
does not know σ holds c·x throughout, from unit noise to x_0.

    kind        holds c·x            time            returns
    denoiser    x                    σ               x_0 or ε
    edm         x                    ¼ ln σ          F of D = c_skip x + c_out F, at c_in x
    ve          x                    ln(σ/2)         −ε
    ddpm        x / √(1 + σ²)        τ               ε, x_0, or v = √ᾱ ε − √(1 − ᾱ) x_0; ᾱ_τ = 1 / (1 + σ²)
    flow        x / (1 + σ)          s·N             ε − x_0 at (1 − s) x_0 + s ε; s = σ / (1 + σ)

References: Karras et al. 2022 (EDM), Table 1; Ho et al. 2020 (DDPM); Salimans and Ho 2022 (v); Lipman et al. 2023.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Level = Any
"""A noise level σ > 0: a number, or an array or tensor that broadcasts with images."""


@dataclass(frozen=True)
class Network:
    """What a scheduler needs to know of a network; by default one that takes x and σ. Images are tensors or arrays."""

    denoised: Callable[[Any, Any, Level], Any]
    """x_0 from the network's output, the pipeline's images, and σ."""
    time: Callable[[Level], Any] = lambda sigma: sigma
    """The network's own time at σ."""
    sigma: Callable[[float], float] = lambda time: time
    """The noise level at a time: the inverse of `time`."""
    scale: Callable[[Level], Any] = lambda _: 1.0
    """c: the pipeline's images are c·x; c(0) = 1."""
    input_scale: Callable[[Level], Any] = lambda _: 1.0
    """The network's input divided by the pipeline's images."""


def denoiser(prediction: str = "sample") -> Network:
    """A network that takes x and σ.

    >>> denoiser("epsilon").denoised(2.0, 5.0, 0.5)
    4.0
    """
    _check(prediction, "denoiser", "sample", "epsilon")
    if prediction == "sample":
        return Network(lambda output, _, __: output)
    return Network(lambda output, x, sigma: x - sigma * output)


def edm(prediction: str = "epsilon", sigma_data: float = 0.5) -> Network:
    """The raw network F of EDM's preconditioning, as diffusers' EDM schedulers have it: v_prediction negates c_out.

    >>> network = edm(sigma_data=0.5)
    >>> network.time(1.0), round(network.denoised(0.0, 1.0, 0.5), 6)
    (0.0, 0.5)
    """
    _check(prediction, "edm", "epsilon", "v_prediction")
    sign = 1 if prediction == "epsilon" else -1

    def denoised(output: Any, images: Any, sigma: Level) -> Any:
        norm = _hypot(sigma_data, sigma)
        return (sigma_data / norm) ** 2 * images + sign * sigma * sigma_data / norm * output

    return Network(
        denoised,
        time=lambda sigma: 0.25 * _log(sigma),
        sigma=lambda time: math.exp(4 * time),
        input_scale=lambda sigma: 1 / _hypot(sigma_data, sigma),
    )


def ve() -> Network:
    """EDM's VE baseline: a network that takes x and returns −ε.

    >>> ve().denoised(-2.0, 5.0, 0.5), round(ve().sigma(ve().time(3.0)), 6)
    (4.0, 3.0)
    """
    return Network(
        lambda output, images, sigma: images + sigma * output,
        time=lambda sigma: _log(sigma / 2),
        sigma=lambda time: 2 * math.exp(time),
    )


def ddpm(alphas_cumprod: npt.ArrayLike, prediction: str = "epsilon", timesteps: npt.ArrayLike | None = None) -> Network:
    """A network of N discrete times with ᾱ [N]. Times between them are interpolated in ln σ, those outside clamped.

    >>> network = ddpm([0.9, 0.5, 0.1], "epsilon")
    >>> round(network.time(1.0), 6), round(network.time(1e-6), 6), round(network.sigma(2), 6)
    (1.0, 0.0, 3.0)
    """
    _check(prediction, "ddpm", "epsilon", "sample", "v_prediction")
    alphas = np.asarray(alphas_cumprod, np.float64)
    times = np.asarray(np.arange(len(alphas)) if timesteps is None else timesteps, np.float64)
    finite = alphas > 0  # a last level of pure noise has no σ
    times, alphas = times[finite], alphas[finite]
    logs = 0.5 * np.log((1 - alphas) / alphas)

    def time(sigma: Level) -> Any:
        if not hasattr(sigma, "new_tensor"):
            return float(np.interp(math.log(sigma), logs, times))
        import torch  # pyright: ignore[reportMissingImports]

        x, y = (torch.as_tensor(values) for values in (logs, times))  # on the CPU: MPS has no float64
        exact = sigma.cpu().double().log().clamp(x[0], x[-1])
        left = (torch.searchsorted(x, exact.detach(), right=True) - 1).clamp(0, len(x) - 2)
        slope = (y[left + 1] - y[left]) / (x[left + 1] - x[left])
        return (y[left] + slope * (exact - x[left])).to(sigma)

    def denoised(output: Any, images: Any, sigma: Level) -> Any:
        if prediction == "sample":
            return output
        norm = _hypot(1, sigma)
        if prediction == "v_prediction":
            return (images - sigma * output) / norm
        return norm * images - sigma * output

    return Network(
        denoised, time, lambda time: math.exp(np.interp(time, times, logs)), lambda sigma: 1 / _hypot(1, sigma)
    )


def vp(beta_d: float = 19.9, beta_min: float = 0.1, times: float = 1000) -> Network:
    """EDM's VP baseline: ε of x/√(1 + σ²), at continuous times; beta grows from beta_min by beta_d."""

    def time(sigma: Level) -> Any:
        log = sigma.square().log1p() if hasattr(sigma, "log1p") else math.log1p(sigma**2)
        root = (beta_min**2 + 2 * beta_d * log) ** 0.5
        return (times - 1) * 2 * log / (root + beta_min)  # (root − beta_min)/beta_d, without a difference

    def sigma(time: float) -> float:
        t = time / (times - 1)
        return math.sqrt(math.expm1(0.5 * beta_d * t * t + beta_min * t))

    return Network(
        lambda output, images, sigma: _hypot(1, sigma) * images - sigma * output,
        time,
        sigma,
        lambda sigma: 1 / _hypot(1, sigma),
    )


def flow(times: float = 1000, to_data: bool = False) -> Network:
    """A flow-matching network (rectified flow) with times s·N, from N (noise) to 0.

    If `to_data`, times go from 0 (noise) to N, and it returns x_0 − ε.

    >>> network = flow(1000)
    >>> network.time(1.0), network.sigma(500.0), network.scale(1.0)
    (500.0, 1.0, 0.5)
    """
    sign = 1 if to_data else -1

    def sigma(time: float) -> float:
        share = 1 - time / times if to_data else time / times
        return share / (1 - share) if share < 1 else math.inf

    return Network(
        lambda output, images, sigma: images + sign * sigma / (1 + sigma) * output,
        lambda sigma: times / (1 + sigma) if to_data else times * sigma / (1 + sigma),
        sigma,
        lambda sigma: 1 / (1 + sigma),
    )


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
