"""Whether the answers of a network are those of a denoiser, and of which kind."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]

from ..errors import AnisoflightError, BadRequestError, warn
from .meaning import network_of, parametrization

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .denoiser import Denoiser

    Tensor = torch.Tensor

_STEPS, _LEVELS, _VALUES = 12, 6, 512  # of Euler's method to a sample, of noise, and of all samples at least
_BOUND, _INFORMED = 1.3, 0.7  # of relative errors
_NAMES = {"v": "v_prediction", "x0": "sample"}


@dataclass(frozen=True)
class Trial:
    """The errors of a denoiser, e(σ) = E|D(x_0 + σε, σ) − x_0|² for each value of x_0.

    With c the variance of x_0, the best linear denoiser has the error σ²c/(σ² + c). What has learned more has less.
    """

    seconds_per_evaluation: float
    """For each row that the network evaluates: the least that was measured."""
    sigmas: list[float]
    """Noise levels σ."""
    errors: list[float]
    """e(σ), relative to that of the best linear denoiser."""
    outputs: list[float]
    """e(σ), relative to that of a network of the same kind that returns 0."""

    @property
    def score(self) -> float:
        """The mean logarithm of the errors."""
        score = float(np.log(self.errors).mean())
        return math.inf if math.isnan(score) else score

    @property
    def informed(self) -> bool:
        """Whether it denoises better than any linear denoiser somewhere, and nowhere much worse."""
        return min(self.errors) <= _INFORMED and all(error <= _BOUND for error in self.errors)

    @property
    def passes(self) -> bool:
        """Whether it denoises no worse than a linear denoiser, but where its kind magnifies small errors of the
        network: that of ε at high noise levels, that of x_0 at low ones.
        """
        return all(e <= _BOUND or part <= 0.3 for e, part in zip(self.errors, self.outputs, strict=True))


def trial_of(denoiser: Denoiser, shape: Sequence[int], data: Any, rows: Any, samples: int) -> Trial:
    """The trial of `Denoiser.check`.

    A kind is refused when the network is clearly informed as another: on data, with clearly lower errors. Without data
    each kind denoises samples of its own; then the other must win by more on its samples than the given one on its own.
    """
    count = max(samples, -(-_VALUES // math.prod(shape)))
    numbers = None if rows is None else torch.as_tensor(rows)
    images = None
    if data is not None:
        if tuple(data.shape[1:]) != tuple(shape) or not len(data) or len(data) != len(data if rows is None else rows):
            raise BadRequestError(
                f"data must be [N, {', '.join(map(str, shape))}], with rows for each if any, got {list(data.shape)}",
                "BAD_TENSOR",
            )
        chosen = np.linspace(0, len(data) - 1, count).astype(int)
        images = torch.as_tensor(data[chosen]).to(denoiser.device, torch.float32)
        numbers = None if numbers is None else numbers[torch.from_numpy(chosen)]
        if not images.isfinite().all():
            raise BadRequestError("data must be finite", "BAD_TENSOR")
    if denoiser.rows and (numbers is None or images is None):  # images whose conditions are not known are of no use
        images, numbers = None, torch.arange(count) % denoiser.rows
    given = denoiser.unguided(numbers)
    generator = torch.Generator().manual_seed(0)

    def noise() -> Tensor:
        return torch.randn(count, *shape, generator=generator).to(denoiser.device)

    _first(given, noise())
    x0 = _samples(given, noise()) if images is None else images
    trial = _measured(given, x0, noise, images is None)
    if trial.informed and trial.score <= -0.3:
        return trial
    found: list[tuple[float, dict[str, Any], Trial, Trial]] = []
    for section in _others(denoiser.parametrization):
        other = given.read_as(network_of(section)[0])
        try:
            x1 = _samples(other, noise()) if images is None else images
            better = _measured(other, x1, noise, images is None)
            if not (better.informed or (images is not None and better.passes and min(better.errors) <= _INFORMED)):
                continue
            worse = _measured(given, x1, noise, images is None) if images is None else trial
            gain = worse.score - better.score
            if images is None and trial.informed:
                gain -= _measured(other, x0, noise, True).score - trial.score
        except Exception:  # a network can do anything at inputs that are not its own
            continue
        if gain >= (0.7 if images is None else 0.4):
            found.append((better.score, section, better, worse))
    asked = _said(denoiser.parametrization)
    if found:
        _, section, better, worse = min(found, key=lambda one: one[0])
        ratios = np.divide(worse.errors, better.errors)
        at = int(np.nanargmax(ratios))
        raise BadRequestError(
            f"prediction must be {_said(section)}, by the network's answers, got {asked}: "
            f"its error at σ = {worse.sigmas[at]:.3g} is {ratios[at]:.3g} times that as {_said(section)}",
            "BAD_MODEL",
        )
    if not x0.isfinite().all():
        raise BadRequestError(
            f"network must lead to finite samples, got NaN or infinity as {asked}; is the prediction right?",
            "BAD_MODEL",
        )
    if not trial.passes:
        at = int(np.argmax(trial.errors))
        warn(
            [
                f"the network's error at σ = {trial.sigmas[at]:.3g}, as {asked}, is {trial.errors[at]:.3g} times that "
                "of a linear denoiser, and it fits no other kind: is it trained, and are its scheduler and data right?"
            ]
        )
    return trial


def _first(denoiser: Denoiser, noise: Tensor) -> None:
    """Whether the network can be asked at all."""
    for sigma in (denoiser.sigma_min, denoiser.sigma_max):
        try:
            answer = denoiser(sigma * noise, sigma)
        except AnisoflightError:
            raise
        except Exception as error:
            raise BadRequestError(
                f"network must take inputs of shape {list(noise.shape)}, got {type(error).__name__}: {error}",
                "BAD_MODEL",
            ) from error
        if not answer.isfinite().all():
            raise BadRequestError(f"network must return finite values, got others at σ = {sigma:.3g}", "BAD_MODEL")


def _samples(denoiser: Denoiser, noise: Tensor) -> Tensor:
    """Samples of the network, by Euler's method."""
    sigmas = np.geomspace(min(denoiser.sigma_max, 20), max(denoiser.sigma_min, 0.01), _STEPS).tolist()
    x = sigmas[0] * noise
    for sigma, following in zip(sigmas, [*sigmas[1:], 0.0], strict=True):
        x = torch.lerp(denoiser(x, sigma), x, following / sigma)
    return x


def _measured(denoiser: Denoiser, x0: Tensor, noise: Callable[[], Tensor], own: bool) -> Trial:
    """The errors for x_0. Those of the network's own samples are relative to what differs between them: a kind by
    which all are alike is no explanation.
    """
    c = max(float(x0.var(0).mean() if own else x0.square().mean()), 1e-12)
    low, high = max(denoiser.sigma_min, 0.03 * c**0.5), min(denoiser.sigma_max, 30 * c**0.5)
    out = Trial(math.inf, np.geomspace(min(low, high), max(low, high), _LEVELS).tolist(), [], [])
    seconds = []
    for sigma in out.sigmas:
        x = x0 + sigma * noise()
        begun, counts = time.perf_counter(), denoiser.counts
        error = float((denoiser(x, sigma) - x0).square().mean())
        seconds.append((time.perf_counter() - begun) / (denoiser.counts - counts))
        zero = float((denoiser.without_output(x, sigma) - x0).square().mean())
        out.errors.append(error * (c + sigma**2) / (c * sigma**2))
        out.outputs.append(error / zero)
    return Trial(min(seconds), out.sigmas, out.errors, out.outputs)


def _others(section: dict[str, Any]) -> list[dict[str, Any]]:
    """The other kinds that a network of a section could be."""
    table = section.get("alphas_cumprod") or parametrization("epsilon")["alphas_cumprod"]
    sections: list[dict[str, Any]] = [{"kind": kind, "alphas_cumprod": table} for kind in ("epsilon", "v", "x0")]
    sections += [{"kind": kind} for kind in ("edm", "ve", "denoiser")]
    sections += [{"kind": "flow", "steps": steps, "to_data": back} for back in (False, True) for steps in (1, 1000)]
    return [one for one in sections if section | one != section]


def _said(section: dict[str, Any]) -> str:
    """A kind by the name of its prediction, or by its section."""
    if section["kind"] == "flow":
        return str({key: section[key] for key in ("kind", "steps", "to_data") if section.get(key)})
    return _NAMES.get(section["kind"], section["kind"])
