"""``python -m studies.reports.rivals``: `few` and the geodesic against rivals that are tuned as well, by aims.

    make report-rivals                                           # three networks of CIFAR-10 at 16×16; hours
    python -m studies.reports.rivals --nfe 3 --rows few GITS     # some rows
    python -m studies.reports.rivals --models flowers --dataset flowers16    # other networks that are in --data
    python -m studies.reports.rivals --page                      # the page alone, from the rows that are there

The networks and their data set are those of `make report-real`, in --data. Each row is in
studies/docs/rivals-rows.jsonl once it is measured, so that a command that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import sys
import time
import warnings
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from scipy.optimize import least_squares

import anisoflight
from anisoflight import images as pixels
from anisoflight.fid.cells import Cells
from anisoflight.fid.features import for_calc
from anisoflight.fid.networks import Loading
from anisoflight.fid.reference import load_reference
from anisoflight.moments import Moments, frechet_distance
from anisoflight.plans.plan import Plan
from anisoflight.start import latents
from anisoflight.subspaces import dct_rows
from studies.features import edge_features
from studies.reports import rivalspage as page
from studies.reports.page import command, parser_of
from studies.reports.real import references
from studies.reports.rivalspage import MATCHED, NOISE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from anisoflight import Client

    Array = np.ndarray[Any, Any]
    Judges = dict[str, tuple[Callable[[Array], Array], Moments]]
    """By the name of features: they, of uint8 images, and their moments on the data."""

BLOCKS, COUNT = (6_000_000, 7_000_000), 2500
"""First seeds of the blocks, of which each has a distance, and the samples of a block."""
TUNING, TEACHER = 5_000_000, 5_500_000
"""First seeds of what rivals are tuned on, and learned from."""
FIRST, LAST, FINALISTS = 256, 1280, 3
"""Samples of every candidate and of the best ones."""
PATHS, FINE, END = 32, 40, 0.002
"""Trajectories to learn from, as many to stop by; steps of the teacher; the last noise level."""
SIGMAS, RHOS = (80, 40, 20, 10, 5, 2.5, 1.25, 0.625), (7, 3)
SOLVERS: dict[str, dict[str, Any]] = {
    "iPNDM-4": {"solver": "ipndm"}, "UniPC": {"solver": "unipc", "order": 2},
    "DPM-Solver++(2M)": {"solver": "dpmpp2m"}, "DEIS": {"solver": "deis"},
}  # fmt: skip
T = TypeVar("T")
HEUN = {"solver": "heun", "second_point": "endpoint"}


@dataclass(frozen=True)
class Sampler:
    """A plan, how it was chosen, and the evaluations that this took elsewhere.

    With `analytical` the first evaluation is AFS's: x scaled down, and no network.
    """

    choice: str
    plan: Plan
    analytical: bool = False
    spent: int = 0


class Network:
    """A model at a server as the denoiser of plans; it counts its evaluations of single images."""

    def __init__(self, client: Client, model: str) -> None:
        self._client, self.model, self.evaluations = client, model, 0
        self.known: dict[bytes, Array] | None = None
        """What is not evaluated again, by what it was evaluated at; None for nothing."""

    def __call__(self, x: Array, sigma: Array, labels: Array | None = None) -> Array:
        key = b"" if self.known is None else hashlib.sha256(x.tobytes() + sigma.tobytes()).digest()
        if self.known is not None and key in self.known:
            return self.known[key]
        self.evaluations += len(x)
        rows = np.ascontiguousarray(np.moveaxis(x, 1, -1), np.float32)
        found = self._client.denoise(self.model, rows, sigma, labels, layout="HWC", progress=False).denoised
        found = np.moveaxis(found, -1, 1)
        if self.known is not None:
            self.known[key] = found
        return found


class Score:
    """The same in kind as the score of `few`: the geometric mean of the Fréchet distance to images by low frequencies
    and of that of two by edges and random filters, each less the distance of as many of the images.
    """

    def __init__(self, images: Array) -> None:
        x = pixels.to_float(images)
        self._features = (_frequencies, edges, edge_features(x, filters=16, seed=1))
        rows = [features(x) for features in self._features]
        self._real = list(map(Moments.of, rows))
        self._bias = [_bias(part, real) for part, real in zip(rows, self._real, strict=True)]

    def __call__(self, images: Array) -> float:
        frequencies, edges, responses = self.parts(images)
        return math.sqrt(frequencies * math.sqrt(edges * responses))

    def parts(self, images: Array) -> list[float]:
        """The three distances."""
        x, distances = pixels.to_float(images), []
        for features, real, bias in zip(self._features, self._real, self._bias, strict=True):
            b = bias / len(x)
            over = frechet_distance(Moments.of(features(x)), real) - b
            distances.append((over + math.hypot(over, b / 5)) / 2)  # rounded off at 0
        return distances


def _bias(rows: Array, real: Moments) -> float:
    """The distance to features of as many others, times their number, by eighths of the features."""
    order = np.random.default_rng(0).permutation(len(rows))
    parts = [rows[order[k::8]] for k in range(8)]
    apart = [frechet_distance(Moments.of(part), real) / (1 / len(part) - 1 / len(rows)) for part in parts]
    return float(np.mean(apart))


def _frequencies(x: Array) -> Array:
    low, high = dct_rows(x.shape[1])[:8], dct_rows(x.shape[2])[:8]
    return np.einsum("ui,nijc,vj->nuvc", low, x, high, optimize=True).reshape(len(x), -1)


def edges(x: Array) -> Array:
    """Mean absolute differences to the next pixel, along both axes, in each quarter."""
    halves = [half for axis in (1, 2) for half in np.array_split(np.abs(np.diff(x, axis=axis)), 2, axis=1)]
    quarters = [quarter for half in halves for quarter in np.array_split(half, 2, axis=2)]
    return np.concatenate([quarter.mean(axis=(1, 2)) for quarter in quarters], axis=1)


def few_spends(nfe: int, budget: str = "seconds") -> int:
    """About the most evaluations that `few` takes, as internal/search counts them."""
    plain, first, samples = 3, 64, 1024
    candidates = plain * 2 * (4 + 7) + 7 + 4 + 2
    fits = 160 * 24 + 2 * 32 * (2 * (40 + nfe * (nfe + 1) // 2) + 4 * (nfe - 1))
    if budget == "minutes":
        candidates += 1
        fits += 64 * (5 * (11 * nfe + 1 + sum(5 * i + 1 for i in range(nfe))) // 2 + nfe)
    drawn = (candidates + 24) * first + 6 * (samples - 2 * first) + 2 * samples
    return fits + nfe * drawn + 16 * (nfe + 4 * max(nfe, 32))


@dataclass(frozen=True)
class Study:
    """Where rows are tuned and measured, on one network."""

    client: Client
    network: Network
    dataset: str
    shape: tuple[int, int, int]
    classes: int
    score: Score
    judges: Judges
    count: int
    spends: Callable[[int], int] = few_spends
    """What a rival may be tuned or learned with, in evaluations, by the number of a sample's."""

    def plan(self, schedule: str, **options: Any) -> Plan:
        """A plan of the server for this network, of all classes if each has its own start."""
        if schedule != "edm":
            options |= {"labels": range(self.classes)} if self.classes else {"label": -1}
        return self.client.plan(schedule, model=self.network.model, **options)

    def rule(self, name: str, nfe: int, sigma: float, rho: float = 7, schedule: str = "edm") -> Plan:
        """A plain solver on EDM's rule."""
        return self.plan(schedule, nfe=nfe, grid={"polynomial": {"sigma_max": sigma, "rho": rho}}, **SOLVERS[name])

    def nodes(self, name: str, levels: Sequence[float]) -> Plan:
        """A plain solver on levels."""
        return self.plan("edm", grid={"sigma": levels}, **SOLVERS[name])

    def latents(self, first: int, count: int) -> tuple[Array, Array | None]:
        """Unit normal noise [n, C, H, W] of the seeds, and labels in turn."""
        noise = np.ascontiguousarray(np.moveaxis(latents(range(first, first + count), self.shape), -1, 1))
        return noise, np.arange(first, first + count) % self.classes if self.classes else None

    def follow(self, sampler: Sampler, noise: Array, labels: Array | None) -> Array:
        """Samples [n, C, H, W]."""
        start = sampler.plan.init[0] if sampler.analytical else math.inf
        return sampler.plan(partial(_denoised, self.network, start), noise, labels=labels, progress=False)

    def draw(self, sampler: Sampler, first: int, count: int) -> Array:
        """Samples of the seeds as uint8 [n, H, W, C]."""
        return pixels.to_uint8(np.moveaxis(self.follow(sampler, *self.latents(first, count)), 1, -1))

    def made(self, name: str, kind: str, **options: Any) -> anisoflight.Schedule:
        """A schedule, made unless it is there."""
        if name in self.client.schedules().index:
            return self.client.schedule(name)
        return self.client.make_schedule(name, kind, dataset=self.dataset, progress=False, **options)


def _denoised(network: Network, start: float, x: Array, sigma: Array, labels: Array | None = None) -> Array:
    """The network's answer; above the level `start` that of data of variance 1 about 0 to nothing but noise."""
    return x * (1 - start / math.hypot(1, start)) if sigma[0] > 0.999 * start else network(x, sigma, labels)


def tuned(study: Study, candidates: Sequence[Sampler], nfe: int) -> Sampler:
    """The candidate with the least score: all see the first samples, the best more, within what `few` spends."""
    first, last = FIRST, LAST
    while nfe * (len(candidates) * first + FINALISTS * (last - first)) > study.spends(nfe) and first > 32:
        first, last = first // 2, last // 2
    drawn = [study.draw(each, TUNING, first) for each in candidates]
    scores = list(map(study.score, drawn))
    best = np.argsort(scores)[:FINALISTS].tolist()
    for k in best:
        more = study.draw(candidates[k], TUNING + first, last - first)
        scores[k] = study.score(np.concatenate([drawn[k], more]))
    return candidates[min(best, key=scores.__getitem__)]


def raced(candidates: Sequence[T], error: Callable[[T, int], float], rounds: Iterable[tuple[int, int]]) -> list[T]:
    """The candidates of least error, the best first: in each round all that are left see so many samples, and so many
    are left then.
    """
    left = list(candidates)
    for count, most in rounds:
        errors = [error(each, count) for each in left]
        left = [left[k] for k in np.argsort(errors)[:most]]
    return left


def plain(name: str, start: str, study: Study, nfe: int) -> Iterator[Sampler]:
    """A solver on EDM's rule, from noise or from the data's own law."""
    schedule = study.made(f"rivals-matched-{study.dataset}", "start").name if start == MATCHED else "edm"
    for sigma, rho in product(SIGMAS[1:] if start == MATCHED else SIGMAS[:5], RHOS):
        yield Sampler(f"σ_max {sigma:g}, ρ {rho}", study.rule(name, nfe, sigma, rho, schedule))


def afs(study: Study, nfe: int) -> Iterator[Sampler]:
    """One step more, whose evaluation is analytical."""
    for name, sigma, rho in product(("iPNDM-4", "UniPC"), SIGMAS[:4], RHOS):
        yield Sampler(f"{name}, σ_max {sigma:g}, ρ {rho}", study.rule(name, nfe + 1, sigma, rho), analytical=True)


def heun(study: Study, nfe: int) -> Iterator[Sampler]:
    """Heun's method on EDM's rule, with either second point."""
    for point, grid, sigma, rho in product(("endpoint", "midpoint"), ("edm", "polynomial"), SIGMAS[:4], (7, 5, 3)):
        more: dict[str, Any] = {"denoise_to_zero": True} if grid == "polynomial" else {}
        more |= {"solver": "heun", "second_point": point}
        levels = {grid: {"sigma_max": sigma, "rho": rho}}
        yield Sampler(f"{point}, {grid}, σ_max {sigma}, ρ {rho}", study.plan("edm", nfe=nfe, grid=levels, **more))


def gits(study: Study, nfe: int) -> Iterator[Sampler]:
    """Levels with the least sum of Euler's errors along recorded trajectories."""
    for sigma in (80, 20):
        levels, cost = step_costs(study, sigma)
        for coefficient, name in product((1.0, 1.15, 1.3), ("iPNDM-4", "DPM-Solver++(2M)")):
            nodes = [levels[i] for i in shortest(cost, nfe, coefficient)]
            yield Sampler(f"{name}, σ_max {sigma}, coefficient {coefficient:g}", study.nodes(name, nodes))


def step_costs(study: Study, sigma: float) -> tuple[list[float], Array]:
    """Levels of fine trajectories, and the mean error of Euler's step from each to each later one."""
    noise, labels = study.latents(TEACHER, 2 * PATHS)
    fine = study.rule("iPNDM-4", FINE, sigma)
    loop, states, slopes = fine.stages(noise, labels=labels), [noise], []
    for stage in loop:
        denoised = study.network(loop.x, loop.sigma, labels)
        slopes.append((loop.x - denoised) / stage.sigma)
        states[-1:] = [loop.x, loop.step(denoised)]
    levels = [*(stage.sigma for stage in fine.evaluations), END]
    cost = np.full((len(levels), len(levels)), np.inf)
    for i, j in zip(*np.triu_indices(len(levels), 1), strict=True):
        off = states[i] + (levels[j] - levels[i]) * slopes[i] - states[j]
        cost[i, j] = np.sqrt((off**2).sum(axis=(1, 2, 3))).mean()
    return levels, cost


def shortest(cost: Array, steps: int, coefficient: float = 1.0) -> list[int]:
    """The path with the least cost from the first node to the last in a number of steps; what follows a step has the
    coefficient as its weight.
    """
    least, follows = cost[:, -1], []
    for _ in range(steps - 1):
        total = cost + coefficient * least
        follows.insert(0, total.argmin(axis=1))
        least = total.min(axis=1)
    nodes = [0]
    for follow in follows:
        nodes.append(int(follow[nodes[-1]]))
    return [*nodes, len(cost) - 1]


def ld3(study: Study, nfe: int) -> Iterator[Sampler]:
    """Levels that are learned through a solver with its own coefficients."""
    for sigma, name in product((80, 20), ("iPNDM-4", "DPM-Solver++(2M)", "UniPC")):
        begin = np.log([stage.sigma for stage in study.rule(name, nfe, sigma).evaluations[1:]])
        build = partial(on_levels, study, name, sigma)
        yield learn(study, f"{name}, σ_max {sigma}", build, begin, sigma, study.spends(nfe) // 3)


def on_levels(study: Study, name: str, sigma: float, theta: Array) -> Plan | None:
    levels = np.array([sigma, *np.exp(theta), END])
    return study.nodes(name, levels.tolist()) if falls(levels) else None


def weights(study: Study, nfe: int) -> Iterator[Sampler]:
    """Levels and the scalar weights of the state and the last three evaluations are learned; none is tied to others."""
    for sigma, analytical in ((80, False), (20, False), (80, True)):
        begin = study.rule("DPM-Solver++(2M)", nfe + analytical, sigma)
        choice, build = f"σ_max {sigma}" + ", AFS" * analytical, partial(weighted, begin)
        yield learn(study, choice, build, weights_of(begin), sigma, study.spends(nfe), analytical)


def weights_of(plan: Plan) -> Array:
    """The logarithms of all levels but the first, then by stage the weights of x and of the last three evaluations."""
    found = [math.log(stage.sigma) for stage in plan.evaluations[1:]]
    for number, stage in enumerate(plan.evaluations):
        found += [stage.alpha[0], *[*stage.beta[0], 0.0, 0.0][: min(number, 2) + 1]]
    return np.array(found)


def weighted(plan: Plan, theta: Array) -> Plan | None:
    """The plan with other levels and weights, in the order of `weights_of`; None if the levels do not fall."""
    sigmas = np.array([plan.init[0], *np.exp(theta[: plan.nfe - 1])])
    rest, stages = iter(theta[plan.nfe - 1 :].tolist()), []
    for number, g in enumerate((sigmas**2).tolist()):
        alpha, beta = [next(rest)], [[next(rest) for _ in range(min(number, 2) + 1)]]
        stages.append({"g": [g], "t": g, "alpha": alpha, "beta": beta, "step": number})
    file = {**plan.file, "stages": stages, "t": [*(sigmas**2).tolist(), 0.0], "history": min(plan.nfe, 3), "tails": []}
    return Plan(file) if falls(sigmas) else None


def falls(levels: Array) -> bool:
    return bool(np.isfinite(levels).all() and (np.diff(np.log(levels)) < -0.02).all())


def learn(
    study: Study, choice: str, build: Callable[[Array], Plan | None], theta: Array, sigma: float, allowed: int,
    analytical: bool = False,
) -> Sampler:  # fmt: skip
    """The sampler of a parameter vector, learned towards the ends of converged trajectories from the same noise."""
    noise, labels = study.latents(TEACHER, 2 * PATHS)
    ends = study.follow(Sampler("", study.rule("DPM-Solver++(2M)", FINE, sigma)), noise, labels)

    def residual(part: slice, theta: Array) -> Array:
        plan = build(theta)
        if plan is None:
            return np.full(ends[part].size, 1e3)
        x = study.follow(Sampler("", plan, analytical), noise[part], None if labels is None else labels[part])
        return (x - ends[part]).ravel().astype(np.float64)

    fit, held_back = (partial(residual, slice(start, start + PATHS)) for start in (0, PATHS))
    plan = build(descend(study.network, fit, held_back, theta, allowed))
    assert plan is not None
    return Sampler(choice, plan, analytical)


def descend(
    network: Network, fit: Callable[[Array], Array], held_back: Callable[[Array], Array], theta: Array, allowed: int
) -> Array:
    """Least squares by scipy's trust-region method with differences, until what is held back gains no more, or the
    allowed evaluations are spent.
    """
    before, best, held = network.evaluations, theta, math.inf
    while network.evaluations - before < allowed:
        network.known = {}  # the stages before the one that a parameter moves are evaluated once
        moved = partial(_plus, fit, theta - 1)  # from 1, so that all differences are of one size
        found = least_squares(moved, np.ones(len(theta)), x_scale="jac", diff_step=0.02, max_nfev=4)
        network.known, theta = None, theta - 1 + found.x
        end = (held_back(theta) ** 2).sum()
        if end > 0.995 * held:
            break
        best, held = theta, end
    return best


def _plus(function: Callable[[Array], Array], origin: Array, z: Array) -> Array:
    return function(origin + z)


def few(study: Study, nfe: int, budget: str = "seconds") -> Iterator[Sampler]:
    """The product's own search."""
    model = study.network.model
    name = f"rivals-few-{nfe}-{budget}-{model}"
    if name in study.client.plans().index:
        plan = study.client.plan(plan=name)
    else:
        spend = None if budget == "seconds" else budget
        plan = study.client.few(model, nfe, study.dataset, name=name, budget=spend, progress=False)
    chosen = plan.info["chosen"]
    start = MATCHED if chosen["start"] == "matched" else NOISE
    choice = f"{chosen['solver']}, σ_max {chosen['sigma_max']:g}, {start}, levels {chosen['levels']}"
    yield Sampler(choice, plan, spent=few_spends(nfe, budget))


def geodesic(study: Study, nfe: int) -> Iterator[Sampler]:
    """The product's own schedule."""
    made = study.made(f"rivals-geodesic-{study.network.model}", "geodesic", model=study.network.model)
    yield Sampler("", study.plan(made.name, nfe=nfe, **HEUN))


METHODS: dict[str, Callable[[Study, int], Iterator[Sampler]]] = {
    page.FEW: few,
    page.MINUTES: partial(few, budget="minutes"),
    page.WEIGHTS: weights,
    page.LEVELS: ld3,
    **{method: partial(plain, *key) for key, method in page.PLAIN.items()},
    page.SHORTEST: gits,
    page.ANALYTICAL: afs,
    page.GEODESIC: geodesic,
    page.TUNED_HEUN: heun,
}
"""All rows, in the order in which they are measured, and the candidates of each."""


def measure(study: Study, method: str, nfe: int) -> dict[str, Any]:
    """What is chosen, what choosing took, and the distances of each block."""
    network, begun = study.network, study.network.evaluations
    candidates = list(METHODS[method](study, nfe))
    sampler = candidates[0] if len(candidates) == 1 else tuned(study, candidates, nfe)
    spent = network.evaluations - begun + sampler.spent
    return {"choice": sampler.choice, "tuning": spent, **judged(study, sampler, BLOCKS)}


def judged(study: Study, sampler: Sampler, blocks: Sequence[int]) -> dict[str, Any]:
    """The evaluations of a sample, and the distances of each block of seeds by each kind of features."""
    begun = study.network.evaluations
    found: dict[str, Any] = {"evaluations": 0.0, **{name: [] for name in study.judges}}
    for block in blocks:
        images = study.draw(sampler, block, study.count)
        for name, (features, real) in study.judges.items():
            found[name].append(frechet_distance(Moments.of(features(images)), real))
    found["evaluations"] = (study.network.evaluations - begun) / (len(blocks) * study.count)
    return found


def judges_of(files: Sequence[Path], images: Array) -> Judges:
    """The features that judge: those of references, and edges."""
    judges: Judges = {}
    for reference in map(load_reference, files):
        features = for_calc(None, reference, Loading())
        judges[features.name] = features, reference.moments
    random = edge_features(pixels.to_float(images[::5]))
    judges["edges"] = (lambda x: random(pixels.to_float(x))), Moments.of(random(pixels.to_float(images)))
    return judges


def accuracy(features: Callable[[Array], Array], images: Array, labels: Array) -> float:
    """The share of images whose label a linear read-out of the features finds, fitted on every other image."""
    rows = np.column_stack([features(images), np.ones(len(images))])
    read_out = np.linalg.lstsq(rows[::2], np.eye(labels.max() + 1)[labels[::2]], rcond=None)[0]
    return float(((rows[1::2] @ read_out).argmax(axis=1) == labels[1::2]).mean())


def studies_of(
    client: Client, args: argparse.Namespace, cells: Cells, spends: Callable[[int], int] = few_spends
) -> list[Study]:
    """A study for each model, with judges of the data set; a row says how well the classifier knows its classes."""
    data, server = client.dataset(args.dataset), ["--server", client.location]
    judges = judges_of(references(server, args.data, args.dataset, args.count), data.images)
    if data.labels is not None:
        read_out = partial(accuracy, judges["classifier"][0], data.images, data.labels)
        cells.measured({"dataset": args.dataset, "about": "classifier"}, lambda: {"accuracy": read_out()})
    score, studies = Score(data.images[::5]), []
    for model in args.models:
        facts, network = client.call("DescribeModel", model=model), Network(client, model)
        shape = facts["img_resolution"], facts["img_resolution"], facts["img_channels"]
        common = score, judges, args.count, spends
        studies.append(Study(client, network, args.dataset, shape, facts["label_dim"], *common))
    return studies


def chosen(found: dict[str, Any]) -> str:
    """What a search says of a sampler, in a few words."""
    return f"{found['solver']}, σ_max {found['sigma_max']:.3g}, {found['start']} start, levels {found['levels']}"


def run(args: argparse.Namespace) -> None:
    """Measure what is asked for, a row on all networks before the next."""
    cells = Cells(args.docs / page.ROWS)
    with anisoflight.serve(data=args.data) as client:
        studies = studies_of(client, args, cells)
        for nfe, method, study in product(args.nfe, args.rows, studies):
            model, began = study.network.model, time.monotonic()
            key = {"dataset": args.dataset, "network": model, "method": method, "nfe": nfe, "count": args.count}
            if nfe not in page.nfes(method) or key in cells:
                continue
            found = cells.measured(key, partial(measure, study, method, nfe))
            means = ", ".join(f"{name} {np.mean(found[name]):.3g}" for name in study.judges)
            said = f"{time.strftime('%H:%M')} NFE {nfe}, {method}, {model}: {found['choice']}"
            print(f"{said}: {means} ({time.monotonic() - began:.0f} s)", flush=True)
            page.write(args.docs)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: 0, or 130 if interrupted."""
    parser = parser_of("rivals", __doc__, "real")
    parser.add_argument("--models", nargs="+", default=list(page.NETWORKS), help="default %(default)s")
    parser.add_argument("--dataset", default=page.DATASET, help="of the models (default %(default)s)")
    parser.add_argument("--nfe", type=int, nargs="+", default=[3, 5, 9, 13, 17, 35], help="default %(default)s")
    parser.add_argument("--rows", nargs="+", default=list(METHODS), choices=list(METHODS), metavar="NAME",
                        help=f"of {'; '.join(METHODS)} (default all)")  # fmt: skip
    parser.add_argument("--count", type=int, default=COUNT, help="samples of a block (default %(default)s)")
    args = parser.parse_args(arguments)
    warnings.simplefilter("ignore", anisoflight.AnisoflightWarning)  # of orders and steps that are chosen here
    return command(args, run, page.write)


if __name__ == "__main__":
    sys.exit(main())
