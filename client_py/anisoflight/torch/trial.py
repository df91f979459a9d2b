"""Whether the answers of a network are those of a denoiser, and of which kind."""

from __future__ import annotations

import math
import operator
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]

from ..errors import AnisoflightError, bad_model, bad_tensor, warn
from ..plans.parametrizations import Network
from .meaning import network_of, parametrization

Tensor = torch.Tensor
Denoiser = Any
"""A `Denoiser`, whose module imports this one."""

_STEPS, _LEVELS, _VALUES = 12, 6, 512  # Euler steps of a sample, noise levels, least values of all samples
_SCALES, _CHANGE = 4, 1e-3  # first noise levels that are tried; the change of an answer that is noticed

# Limits of errors relative to the best linear denoiser's, and of their mean logarithms. The trained networks of
# integration/test_meaning.py and test_denoiser.py set them: each passes as its own kind and is refused as the others.
_POOR, _INFORMED = 1.3, 0.7  # above it no denoiser of this kind; below it the network knows more than the variance
_MAGNIFIED = 0.3  # share of the output's error up to which a poor error is that of the kind
_SETTLED = -0.3  # the score of a network that informs so well that no other kind is tried
_CLEARLY = 0.4  # by how much another kind's score has to be lower
_WARNED = 2.0  # the error of a network that fits no kind

# Of samples that a network makes for its own trial: their first noise level, that level divided by the last, and the
# sizes of samples for which it was high enough. Of measurements: the levels divided by the values' size.
_HIGH, _FALL, _SIZES = 20.0, 2000, (1 / 400, 1 / 10)
_LOW_RATIO, _HIGH_RATIO = 0.03, 30


@dataclass(frozen=True)
class Trial:
    """The errors e(σ) = E|D(x_0 + σε, σ) − x_0|² of a denoiser.

    With c the variance of x_0, the best linear denoiser has σ²c/(σ² + c). A trained network has less.
    """

    seconds_per_evaluation: float = math.inf
    """Least measured time per row of the network."""
    sigmas: list[float] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    """e(σ), relative to the best linear denoiser's."""
    outputs: list[float] = field(default_factory=list)
    """e(σ), relative to that of a network of the same kind that returns 0."""
    size: float = 1.0
    """The root mean square of x_0's values."""

    def bounded(self, least: float = _MAGNIFIED) -> list[float]:
        """The errors, at most `_POOR` if an error of the network's output of a share of at most `least` explains it:
        the kind magnifies small errors, ε at high noise levels and x_0 at low ones.
        """
        both = zip(self.errors, self.outputs, strict=True)
        return [min(error, _POOR) if output <= least else error for error, output in both]

    @property
    def score(self) -> float:
        """The mean logarithm of the bounded errors."""
        return float(np.nan_to_num(np.log(np.maximum(self.bounded(), 1e-30)).mean(), nan=np.inf))

    def passes(self, least: float = _MAGNIFIED) -> bool:
        """Whether no error is much above a linear denoiser's."""
        return all(error <= _POOR for error in self.bounded(least))

    def informed(self, least: float = 0.0) -> bool:
        """Whether it passes, and some error is well below a linear denoiser's."""
        return self.passes(least) and min(self.errors) <= _INFORMED


def trial_of(denoiser: Denoiser, shape: Sequence[int], data: Any, rows: Any, samples: int) -> Trial:
    """The trial of `Denoiser.check`.

    A kind is refused if the network passes as another, with clearly lower errors on data. Without data each kind
    denoises its own samples; then the other kind has to win more on its samples than it loses on those of the given
    kind.
    """
    count = max(samples, -(-_VALUES // math.prod(shape)))
    own_samples = data is None or (denoiser.rows > 0 and rows is None)  # also for data with unknown conditions
    chosen = np.arange(count) % denoiser.rows if own_samples and denoiser.rows else None
    known: Any = None  # images
    if data is not None:
        picked = np.linspace(0, len(data) - 1, count).astype(int)
        known = torch.as_tensor(data[picked]).to(torch.float32).to(denoiser.device)
        if not own_samples:
            chosen = None if rows is None else torch.as_tensor(rows)[picked]
    given = denoiser.with_attributes(guidance=1.0, clip=None, _rows=chosen)  # a guided D is no mean of x_0
    generator = torch.Generator().manual_seed(0)

    def noise() -> Tensor:
        return torch.randn(count, *shape, generator=generator).to(denoiser.device)

    def samples_of(reading: Denoiser) -> Tensor:
        return _samples(reading, noise()) if own_samples else known

    def measured(reading: Denoiser, x0: Tensor) -> Trial:
        return _measured(reading, x0, x0.var(0) if own_samples else x0.square(), noise)

    least = 0.0 if own_samples else _MAGNIFIED
    requested = _prediction_name(denoiser.parametrization)
    _check_callable(denoiser.at(chosen), noise())
    x0 = samples_of(given)
    trial = replace(measured(given, x0), size=float((x0 if data is None else known).square().mean().sqrt()))
    if trial.informed(least) and trial.score <= _SETTLED:
        return trial
    found = []
    for section in _others(denoiser.parametrization):
        other = given.with_attributes(_kind=network_of(section)[0])
        try:
            x1 = samples_of(other)
            better = measured(other, x1)
            if better.informed(least):
                worse = measured(given, x1) if own_samples else trial
                loss = measured(other, x0).score - trial.score if own_samples and trial.informed() else 0.0
                if worse.score - better.score - loss >= _CLEARLY:
                    found.append(
                        (better.score, _prediction_name(section), np.divide(worse.errors, better.errors), worse.sigmas)
                    )
        except Exception:  # a network may fail at inputs of another kind
            continue
    if found:
        _, name, ratios, sigmas = min(found, key=lambda one: one[0])
        at = int(np.nanargmax(ratios))
        raise bad_model(
            f"prediction must be {name}, by the network's answers, got {requested}: "
            f"as {requested} its error at σ = {sigmas[at]:.3g} is {ratios[at]:.3g} times that as {name}"
        )
    if max(trial.bounded()) > _WARNED:
        at = int(np.argmax(trial.bounded()))
        note = f"the network as {requested} has {trial.errors[at]:.3g} times the error of a linear denoiser at "
        note += f"σ = {trial.sigmas[at]:.3g}, and fits no other kind: "
        warn([note + "check that it is trained, its scheduler and its data"])
    return trial


def sample_shape(denoiser: Denoiser, shape: Sequence[int] | None, data: Any = None) -> tuple[int, ...]:
    """The shape (C, *axes) of one sample: as given, or of data [N, C, *axes], or of the network's config.

    BadRequestError (BAD_TENSOR) if none is known, or they contradict each other.
    """
    known, of_data = denoiser.shape, None if data is None else tuple(data.shape[1:])
    given = shape if shape is not None else of_data if of_data is not None else known
    form = "that of one sample without the batch, (D,), (C, L), (C, H, W) or (C, D, H, W), such as shape=(3, 32, 32)"
    if given is None:
        raise bad_tensor(f"shape must be given, {form}: {_says(denoiser)}")
    try:
        found = tuple(operator.index(n) for n in given)
    except TypeError:
        found = (0,)
    if not 1 <= len(found) <= 4 or min(found) < 1:
        raise bad_tensor(f"shape must be {form}, got {given!r}; {_says(denoiser)}")
    if known is not None and (len(found) != len(known) or found[0] != known[0]):
        raise bad_tensor(
            f"shape must have {known[0]} channels and {len(known) - 1} axes, got {found}; {_says(denoiser)}"
        )
    if data is not None and (of_data != found or not len(data)):
        raise bad_tensor(f"data must be [N, {', '.join(map(str, found))}] by shape, got {list(data.shape)}")
    return found


def _says(denoiser: Denoiser) -> str:
    """What the network's config says of the shape."""
    if denoiser._module is None:
        return "a function has no config that says it"
    name = type(denoiser._module).__name__
    known = denoiser.shape
    return f"the config of {name} does not say it" if known is None else f"the config of {name} says {known}"


def _check_callable(denoiser: Denoiser, noise: Tensor) -> None:
    """Raise if the network cannot be called; warn if its answers depend on more than its input."""
    shape = tuple(noise.shape[1:])
    hint = "" if shape == denoiser.shape else f"; shape is {shape}, {_says(denoiser)}"
    with suppress(Exception):  # about whole times, which are then known; anything else comes again
        denoiser(denoiser.sigma_min * noise, denoiser.sigma_min)
    ends = _known(denoiser, denoiser.sigma_max), _known(denoiser, denoiser.sigma_min)
    answers: list[Tensor] = []
    for sigma in (*ends, *reversed(ends)):  # so that a network that repeats every second answer is noticed
        try:
            answers.append(denoiser(sigma * noise, sigma))
        except AnisoflightError as error:
            raise type(error)(error.message + hint, error.code) from error
        except Exception as error:
            message = f"network must take inputs {list(noise.shape)} and then times [{len(noise)}], got "
            raise bad_model(f"{message}{type(error).__name__}: {error}{hint}") from error
        if not answers[-1].isfinite().all():
            raise bad_model(f"network must return finite values, got others at σ = {sigma:.3g}")
    for sigma, first, again in zip(ends, answers, reversed(answers), strict=False):
        change = float((first - again).norm() / (first.norm() + again.norm()).clamp(min=1e-30))
        if change > _CHANGE:
            note = f"the network answers the same input differently at σ = {sigma:.3g}, by {100 * change:.2g} %: "
            warn([note + "it draws random numbers or remembers earlier inputs; plans are for networks that do neither"])
    if denoiser.levels is None and _rounds(denoiser, noise):
        denoiser.take_whole_times()


def _rounds(denoiser: Denoiser, noise: Tensor) -> bool:
    """Whether the network rounds its times."""
    times = denoiser.whole_times
    if len(times) < 4:
        return False
    raw = denoiser.with_attributes(_kind=Network(lambda output, _, __: output))  # its σ is the time
    at = float(times[len(times) // 3])
    first, nearly, following = (raw(noise, one) for one in (at, at + 0.25, at + 1))
    return torch.equal(first, nearly) and not torch.equal(first, following)


def _known(denoiser: Denoiser, sigma: float) -> float:
    """The noise level of a whole time that is nearest, if the network takes no other."""
    return min(denoiser.levels or [sigma], key=lambda level: abs(math.log(level / sigma)))


def _samples(denoiser: Denoiser, noise: Tensor) -> Tensor:
    """Samples of the network by Euler's method, from a noise level well above their values."""
    (least, most), high = denoiser.bounds, _HIGH
    x, scales = noise, _SCALES
    while scales:
        sigmas = np.geomspace(min(high, most), max(min(high, most) / _FALL, least), _STEPS).tolist()
        sigmas = list(dict.fromkeys(_known(denoiser, sigma) for sigma in sigmas))
        x = sigmas[0] * noise
        for sigma, following in zip(sigmas, [*sigmas[1:], 0.0], strict=True):
            x = torch.lerp(denoiser(x, sigma), x, following / sigma)
        size = float(x.square().mean().sqrt())
        if _SIZES[0] <= size / high <= _SIZES[1] or not 0 < size < math.inf or high > most:
            break
        high, scales = _HIGH * size, scales - 1
    return x


def _measured(denoiser: Denoiser, x0: Tensor, squares: Tensor, noise: Any) -> Trial:
    """The errors at x_0, whose values have the mean squares c. For the network's own samples c is their variance: a
    kind whose samples are all equal explains nothing.
    """
    c, kind = max(float(squares.mean()), 1e-12), denoiser._kind
    low, high = max(denoiser.sigma_min, _LOW_RATIO * c**0.5), min(denoiser.sigma_max, _HIGH_RATIO * c**0.5)
    out, seconds = Trial(sigmas=np.geomspace(min(low, high), max(low, high), _LEVELS).tolist()), []
    out.sigmas[:] = [_known(denoiser, sigma) for sigma in out.sigmas]
    for sigma in out.sigmas:
        x = x0 + sigma * noise()
        begun, counts = time.perf_counter(), denoiser.counts
        error = float((denoiser(x, sigma) - x0).square().mean())
        seconds.append((time.perf_counter() - begun) / (denoiser.counts - counts))
        nothing = kind.denoised(torch.zeros_like(x), kind.scale(sigma) * x, sigma)
        out.errors.append(error * (1 / c + 1 / sigma**2))
        out.outputs.append(error / max(float((nothing - x0).square().mean()), 1e-30))
    return Trial(min(seconds), out.sigmas, out.errors, out.outputs)


def _others(section: dict[str, Any]) -> list[dict[str, Any]]:
    """The other kinds that a network of a section may be."""
    table = section.get("alphas_cumprod") or parametrization("epsilon")["alphas_cumprod"]
    sections: list[dict[str, Any]] = [{"kind": kind, "alphas_cumprod": table} for kind in ("epsilon", "v", "x0")]
    sections += [{"kind": kind} for kind in ("edm", "ve", "denoiser")]
    sections += [{"kind": "flow", "steps": steps, "to_data": back} for back in (False, True) for steps in (1, 1000)]
    return [one for one in sections if section | one != section]


def _prediction_name(section: dict[str, Any]) -> str:
    """The name by which a user selects a kind."""
    if section["kind"] == "flow":
        return str({key: section[key] for key in ("kind", "steps", "to_data") if section.get(key)})
    kind = str(section["kind"])
    return {"v": "v_prediction", "x0": "sample"}.get(kind, kind)
