"""What a start, coefficients of a network, by part of an image or for all of it, and learning gain, each by itself.

A sampler here is a list of noise levels and, for each step, weights of the state and of the last three denoised images,
which begins at noise σ ξ, at noise s ξ of a fitted deviation, or at the data's law. Its weights are fitted step by step
to converged trajectories from the same ξ, with one set for all or for each of 8 bands of the DCT's frequencies in each
channel, and may then be learned: the levels, and what is added to the weights of all parts, by least squares of the
samples' errors. The last step is scaled to the squares of converged samples in each part.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from anisoflight.plans.plan import Plan
from anisoflight.subspaces import Coordinates
from studies.reports import rivals
from studies.reports.imagespage import BANDS, FITTED, LEARNED, MATCHED, NOISE, ONE, SCALED
from studies.reports.rivals import PATHS, SOLVERS, TEACHER, Sampler, Study

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Array = np.ndarray[Any, Any]
    Denoiser = Callable[..., Array]

SIGMAS = {NOISE: (80, 40), SCALED: (40, 20, 10, 5), MATCHED: (40, 20, 10, 5, 2.5)}
"""The noise levels at which samplers begin."""
RHOS = (7, 4)
NUMBER_OF_BANDS, FINE = 8, 48
RIDGE = 1e-3
"""Of the weights of a part, towards those of one set, relative to the squares of what they multiply."""


@dataclass(frozen=True)
class Start:
    """What samplers begin with at a noise level: noise, of a deviation or with the data's law added."""

    study: Study
    kind: str
    sigma: float
    deviation: float

    def __call__(self, noise: Array, labels: Array | None) -> Array:
        if self.kind == MATCHED:
            schedule = self.study.made(f"images-law-{self.study.dataset}", "start").name
            return self.study.rule("iPNDM-4", 2, self.sigma, schedule=schedule).stages(noise, labels=labels).x
        return self.deviation * noise


@dataclass(frozen=True)
class Weighted:
    """A sampler as weights [step][x, D, D before, …][parts]; it is called as a plan is."""

    start: Start
    levels: Array
    coordinates: Coordinates
    weights: list[list[Array]] = field(default_factory=list)

    def __call__(self, network: Denoiser, noise: Array, labels: Array | None = None, progress: bool = False) -> Array:
        x, kept = self.start(noise, labels), []
        for sigma, weights in zip(self.levels.tolist(), self.weights, strict=True):
            kept.insert(0, network(x, np.full(len(x), sigma), labels))
            x = self.coordinates.combine([x, *kept][: len(weights)], weights)
        return x

    def moved(self, theta: Array) -> Weighted | None:
        """With other numbers, in the order of `numbers`; None for levels that do not fall."""
        rest = iter(theta.tolist())
        levels = np.exp([next(rest) for _ in self.levels[1:]])
        weights = [[weight + next(rest) for weight in step] for step in self.weights]
        start = self.start
        if start.kind == SCALED:
            start = replace(start, deviation=math.exp(next(rest)))
        levels = np.array([self.levels[0], *levels])
        return replace(self, start=start, levels=levels, weights=weights) if rivals.falls(levels) else None

    @property
    def numbers(self) -> Array:
        """ln σ after the first, what is added to weights, and ln s if noise has a deviation of its own."""
        added = [0.0] * sum(map(len, self.weights))
        deviation = [math.log(self.start.deviation)] if self.start.kind == SCALED else []
        return np.array([*np.log(self.levels[1:]), *added, *deviation])


@dataclass(frozen=True)
class Teacher:
    """Converged trajectories: noise, labels, levels, and the state at each level; the last are the samples."""

    noise: Array
    labels: Array | None
    levels: Array
    states: list[Array]

    @classmethod
    def of(cls, study: Study) -> Teacher:
        noise, labels = study.latents(TEACHER, 2 * PATHS)
        plan = study.rule("iPNDM-4", FINE, 80)
        loop, states = plan.stages(noise, labels=labels), [80 * noise]
        for _ in loop:
            states.append(loop.step(study.network(loop.x, loop.sigma, labels)))
        return cls(noise, labels, np.array([stage.sigma for stage in plan.evaluations]), states)

    def nodes(self, sigma: float, rho: float, steps: int) -> list[int]:
        """The nodes of EDM's rule, moved to the nearest that are left."""
        ruled = np.linspace(sigma ** (1 / rho), rivals.END ** (1 / rho), steps + 1)[:-1] ** rho
        nodes: list[int] = []
        for k, level in enumerate(ruled):
            least = nodes[-1] + 1 if nodes else 0
            near = int(np.abs(np.log(self.levels / level)).argmin())
            nodes.append(min(max(near, least), len(self.levels) - steps + k))
        return [*nodes, len(self.levels)]

    def start(self, study: Study, kind: str, node: int) -> Start:
        x, sigma = self.states[node], float(self.levels[node])
        fitted = float((x * self.noise).sum() / (self.noise**2).sum())
        return Start(study, kind, sigma, fitted if kind == SCALED else sigma)


def parts_of(study: Study, which: str) -> Coordinates:
    height, width, channels = study.shape
    return Coordinates(height, width, channels, bands=NUMBER_OF_BANDS if which == BANDS else 1)


def fitted(study: Study, teacher: Teacher, kind: str, which: str, nodes: Sequence[int]) -> Weighted:
    """The sampler between nodes of the teacher, fitted step by step."""
    coordinates, start = parts_of(study, which), teacher.start(study, kind, nodes[0])
    made = Weighted(start, teacher.levels[nodes[:-1]], coordinates)
    x, kept = start(teacher.noise, teacher.labels), []
    for sigma, node in zip(made.levels.tolist(), nodes[1:], strict=True):
        kept.insert(0, study.network(x, np.full(len(x), sigma), teacher.labels))
        terms = [x, *kept[:3]]
        made.weights.append(_least_squares(coordinates, terms, teacher.states[node]))
        x = coordinates.combine(terms, made.weights[-1])
    return scaled(made, x, teacher.states[-1])


def _least_squares(coordinates: Coordinates, terms: Sequence[Array], target: Array) -> list[Array]:
    """Weights [term][parts]: of one set, and of each part by the ridge from there."""
    split, y = [coordinates.split(term) for term in terms], coordinates.split(target)
    one = np.linalg.lstsq(np.stack([term.ravel() for term in split], 1), y.ravel(), rcond=1e-6)[0]
    weights = np.tile(one[:, None], coordinates.size)
    for part in range(coordinates.size) if _bands(coordinates) else ():
        where = coordinates.parts == part
        a, b = np.stack([term[:, where].ravel() for term in split], 1), y[:, where].ravel()
        gram = a.T @ a
        weights[:, part] += np.linalg.solve(gram + RIDGE * np.diag(np.diag(gram)), a.T @ (b - a @ one))
    return list(weights)


def _bands(coordinates: Coordinates) -> bool:
    return coordinates.size > coordinates.shape[0]


def scaled(made: Weighted, x: Array, ends: Array) -> Weighted:
    """Its last step scaled to the squares of converged samples, in each part or in all."""
    ours, theirs = (made.coordinates.split(images) ** 2 for images in (x, ends))
    parts = made.coordinates.parts
    count = made.coordinates.size
    sums = [np.bincount(parts.ravel(), squares.sum(axis=0).ravel(), count) for squares in (theirs, ours)]
    gain = np.sqrt(sums[0] / sums[1] if _bands(made.coordinates) else np.full(count, sums[0].sum() / sums[1].sum()))
    return replace(made, weights=[*made.weights[:-1], [gain * weight for weight in made.weights[-1]]])


def learned(study: Study, teacher: Teacher, begin: Weighted, allowed: int) -> Weighted:
    """From a fitted sampler, on the first of the teacher's trajectories, to the end of the gain on the others."""

    def residual(part: slice, theta: Array) -> Array:
        made, ends = begin.moved(theta), teacher.states[-1][part]
        if made is None:
            return np.full(ends.size, 1e3)
        labels = None if teacher.labels is None else teacher.labels[part]
        return (made(study.network, teacher.noise[part], labels) - ends).ravel().astype(np.float64)

    fit, held_back = (partial(residual, slice(first, first + PATHS)) for first in (0, PATHS))
    found = begin.moved(rivals.descend(study.network, fit, held_back, begin.numbers, allowed))
    assert found is not None
    return scaled(found, found(study.network, teacher.noise, teacher.labels), teacher.states[-1])


def candidates(kind: str, which: str, how: str, study: Study, nfe: int) -> Iterator[Sampler]:
    """Of a start: fitted samplers, or the one that is learned from the best of them."""
    teacher = Teacher.of(study)
    made = []
    for sigma, rho in product(SIGMAS[kind], RHOS):
        nodes = teacher.nodes(sigma, rho, nfe)
        made.append(Sampler(f"σ_max {sigma:g}, ρ {rho}", fitted(study, teacher, kind, which, nodes)))  # pyright: ignore[reportArgumentType]
    if how == FITTED:
        yield from made
        return
    best = rivals.tuned(study, made, nfe)
    yield Sampler(best.choice, learned(study, teacher, best.plan, study.spends(nfe)))  # pyright: ignore[reportArgumentType]


def plain_scaled(study: Study, nfe: int) -> Iterator[Sampler]:
    """Each solver on EDM's rule from noise of a fitted deviation."""
    teacher = Teacher.of(study)
    for name, (sigma, rho) in product(SOLVERS, product(SIGMAS[SCALED], RHOS)):
        plan = study.rule(name, nfe, sigma, rho)
        near = int(np.abs(np.log(teacher.levels / sigma)).argmin())
        deviation = teacher.start(study, SCALED, near).deviation * sigma / float(teacher.levels[near])
        yield Sampler(f"{name}, σ_max {sigma:g}, ρ {rho}", Plan({**plan.file, "init": [deviation]}))


def methods() -> dict[str, Callable[[Study, int], Iterator[Sampler]]]:
    """The rows: by start, parts, and how weights are found."""
    rows: dict[str, Callable[[Study, int], Iterator[Sampler]]] = {f"{SCALED}, plain": plain_scaled}
    for kind, which, how in product(SIGMAS, (ONE, BANDS), (FITTED, LEARNED)):
        rows[f"{kind}, {which}, {how}"] = partial(candidates, kind, which, how)
    return rows
