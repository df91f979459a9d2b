"""``python -m studies.reports.foreign``: `few` on networks that others trained, against tuned rivals, by aims.

    pip install --no-deps galaxygrad==0.2.1 && pip install jax equinox einops
    python -m studies.reports.foreign                          # eight networks at 3, 5 and 9 evaluations; two hours
    python -m studies.reports.foreign --networks hsc_ScoreNet32 --nfe 3
    python -m studies.reports.foreign --page                   # the page alone, from the rows that are there

The networks are score networks of galaxies (arXiv 2401.07313), of PyPI's galaxygrad. Its licence is not declared:
nothing of it is kept here. Each row is in studies/docs/foreign-rows.jsonl once it is measured, so that a command that
was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
import warnings
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import anisoflight
from anisoflight.fid.cells import Cells
from anisoflight.moments import Moments, frechet_distance
from anisoflight.torch import Denoiser
from anisoflight.torch import few as search
from studies.reports import foreignpage as page
from studies.reports import rivals
from studies.reports.page import command, parser_of
from studies.reports.rivals import END, SOLVERS, TUNING, Sampler, Study

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Array = np.ndarray[Any, Any]

HIGHEST = 80.0
SIGMAS, RHOS = (80, 40, 20, 10), (7, 4, 3)
SAME, OTHER, COUNT = 32_000_000, 33_000_000, 512
"""First seeds of the samples that are judged and of the converged ones that they are compared with; their number. The
rows of the earlier run have 10,000,000, 11,000,000 and 256.
"""
CONVERGED = 48
"""Steps of converged samples, by iPNDM-4 on EDM's levels."""
FIRST, LAST, FINALISTS = 24, 96, 6
"""Samples of every rival and of the best ones."""
LEARNING = 20_000
"""Evaluations that a learned rival may learn with, from each of its starts."""
ROWS = 128


class Galaxies:
    """A network as a denoiser of arrays [B, 1, n, n], VP with mean e^{−t/2} and variance 1 − e^{−t}."""

    def __init__(self, name: str) -> None:
        import equinox  # pyright: ignore[reportMissingImports]
        import jax  # pyright: ignore[reportMissingImports]
        import jax.numpy as jnp  # pyright: ignore[reportMissingImports]

        package = importlib.util.find_spec("galaxygrad")
        assert package is not None
        assert package.origin is not None, "the package galaxygrad is missing"
        folder = Path(package.origin).parent
        found = importlib.util.spec_from_file_location("models_eqx", folder / "models_eqx.py")
        assert found is not None
        assert found.loader is not None
        module = importlib.util.module_from_spec(found)
        found.loader.exec_module(module)
        self.model, self.size = name, int("".join(filter(str.isdigit, name)))
        shape = 1, self.size, self.size
        empty = module.ScoreNet(shape, 4, 64, 512, 512, 4, 10.0, key=jax.random.PRNGKey(0))
        network = equinox.tree_deserialise_leaves(folder / f"eqx_{name}.eqx", empty)
        self.evaluations = 0
        self.known: dict[bytes, Array] | None = None

        @jax.jit
        def denoised(x: Any, sigma: Any) -> Any:
            time = jnp.log1p(sigma**2)
            mean = jnp.exp(-time / 2)[:, None, None, None]
            return (mean * x + (1 - mean**2) * jax.vmap(network)(mean * x, time)) / mean

        self._denoised = denoised

    def __call__(self, x: Array, sigma: Array, labels: None = None) -> Array:
        self.evaluations += len(x)
        size = 1 << (len(x) - 1).bit_length()  # few sizes are compiled
        images, levels = np.zeros((size, *x.shape[1:]), np.float32), np.ones(size, np.float32)
        images[: len(x)], levels[: len(x)] = x, sigma
        return np.asarray(self._denoised(images, levels))[: len(x)]


@dataclass(frozen=True, eq=False)
class Foreign(Study):
    """A network of others, as the study of rivals has networks of ours."""

    __hash__ = object.__hash__  # for `kept`: each is of its own

    def plan(self, schedule: str, **options: Any) -> anisoflight.Plan:
        return self.client.plan(schedule, sigma_min=END, sigma_max=HIGHEST, **options)

    def follow(self, sampler: Sampler, noise: Array, labels: Array | None) -> Array:
        parts = [super(Foreign, self).follow(sampler, noise[i : i + ROWS], labels) for i in range(0, len(noise), ROWS)]
        return np.concatenate(parts)

    def converged(self, first: int, count: int) -> Array:
        """Converged samples of the seeds."""
        return self.follow(Sampler("", self.rule("iPNDM-4", CONVERGED, HIGHEST)), *self.latents(first, count))


def plain(study: Study, nfe: int) -> Iterator[Sampler]:
    for name, sigma, rho in product(SOLVERS, SIGMAS, RHOS):
        yield Sampler(f"{name}, σ_max {sigma}, ρ {rho}", study.rule(name, nfe, sigma, rho))


def afs(study: Study, nfe: int) -> Iterator[Sampler]:
    for name, sigma, rho in product(("iPNDM-4", "UniPC"), SIGMAS, RHOS):
        yield Sampler(f"{name}, σ_max {sigma}, ρ {rho}", study.rule(name, nfe + 1, sigma, rho), analytical=True)


def levels(study: Study, nfe: int) -> Iterator[Sampler]:
    for name in ("DPM-Solver++(2M)", "UniPC"):
        begin = np.log([stage.sigma for stage in study.rule(name, nfe, HIGHEST).evaluations[1:]])
        build = partial(rivals.on_levels, study, name, HIGHEST)
        yield rivals.learn(study, name, build, begin, HIGHEST, LEARNING)


def weights(study: Study, nfe: int) -> Iterator[Sampler]:
    for analytical in (False, True):
        begin = study.rule("DPM-Solver++(2M)", nfe + analytical, HIGHEST)
        build = partial(rivals.weighted, begin)
        yield rivals.learn(study, "AFS" * analytical or "noise", build, rivals.weights_of(begin), HIGHEST, LEARNING,
                           analytical)  # fmt: skip


METHODS: dict[str, Callable[[Study, int], Iterator[Sampler]]] = {
    page.PLAIN: plain, page.ANALYTICAL: afs, page.SHORTEST: rivals.gits, page.LEVELS: levels, page.WEIGHTS: weights,
}  # fmt: skip


def few(study: Foreign, nfe: int, budget: int | None = None) -> dict[str, Any]:
    """What the product finds without options but the budget, except that the networks' highest level is known."""
    network, begun, began = study.network, study.network.evaluations, time.monotonic()
    denoiser = Denoiser(lambda x, sigma: network(x, sigma), "denoiser", dtype=np.float32)  # pyright: ignore[reportArgumentType]
    plan = search(denoiser, nfe, study.shape[::-1], client=study.client, sigma_max=HIGHEST, budget=budget,
                  progress=False)  # fmt: skip
    told = rivals.chosen(plan.info["chosen"])
    spent, seconds = network.evaluations - begun, time.monotonic() - began
    ratio = {"ratio": plan.info["ratio"], "ratio_stderr": plan.info["ratio_stderr"]}
    return {"choice": told, "tuning": spent, "seconds": round(seconds, 1), **ratio, **judged(study, Sampler("", plan))}


def rival(study: Foreign, method: str, nfe: int) -> dict[str, Any]:
    """The candidate of least squared error."""
    begun = study.network.evaluations
    chosen = best(study, list(METHODS[method](study, nfe)))[0]
    spent = study.network.evaluations - begun
    return {"choice": chosen.choice, "tuning": spent, **judged(study, chosen)}


def best(study: Foreign, candidates: Sequence[Sampler], number: int = 1) -> list[Sampler]:
    """So many of least squared error, on seeds that nothing is judged on."""

    def error(sampler: Sampler, count: int) -> float:
        return squares(study.follow(sampler, *study.latents(TUNING, count)), kept(study, TUNING, LAST)[:count]).mean()

    return rivals.raced(candidates, error, ((FIRST, FINALISTS), (LAST, number)))


@cache
def kept(study: Foreign, first: int, count: int) -> Array:
    """The converged samples of a study, made once."""
    return study.converged(first, count)


def judged(study: Foreign, sampler: Sampler | None) -> dict[str, Any]:
    """The squared errors of samples to converged ones from the same noise, and their Fréchet distances to converged
    samples of other noise. Without a sampler those of the converged samples.
    """
    ends, others = kept(study, SAME, COUNT), kept(study, OTHER, COUNT)
    samples = ends if sampler is None else study.follow(sampler, *study.latents(SAME, COUNT))
    flat = others.reshape(COUNT, -1)
    axes = np.linalg.svd(flat - flat.mean(0), full_matrices=False)[2][:40]
    features: dict[str, Callable[[Array], Array]] = {
        page.COMPONENTS: lambda x: (x.reshape(len(x), -1) - flat.mean(0)) @ axes.T,
        page.EDGES: lambda x: rivals.edges(np.moveaxis(x, 1, -1)),
    }
    distances = {
        name: frechet_distance(Moments.of(of(samples)), Moments.of(of(others))) for name, of in features.items()
    }
    return {"squares": [float(f"{v:.5g}") for v in squares(samples, ends)], **distances}


def squares(samples: Array, ends: Array) -> Array:
    """The squared error of each sample."""
    return ((samples - ends) ** 2).reshape(len(ends), -1).sum(axis=1)


def key_of(network: str, method: str, nfe: int) -> dict[str, Any]:
    """The key of a row."""
    steps = 0 if method == page.CONVERGED else nfe
    return {"run": page.SINCE if method in page.OURS else page.RUN, "network": network, "method": method, "nfe": steps}


def run(args: argparse.Namespace) -> None:
    """Measure what is asked for: `few` and the plain solvers on all networks, then the others, and what needs them."""
    cells = Cells(args.docs / page.ROWS)
    with anisoflight.serve(data=args.data) as client:
        studies: dict[str, Foreign] = {}
        for wave in (
            (page.CONVERGED, page.FEW, page.PLAIN, page.ANALYTICAL),
            (page.SHORTEST, page.LEVELS, page.WEIGHTS),
            (page.AS_MANY,),
        ):
            for name, nfe, method in product(args.networks, args.nfe, wave):
                key = key_of(name, method, nfe)
                if method not in args.rows or key in cells:
                    continue
                if name not in studies:
                    network = Galaxies(name)
                    shape = network.size, network.size, 1
                    studies = {name: Foreign(client, network, "", shape, 0, None, {}, COUNT)}  # pyright: ignore[reportArgumentType]
                study, began = studies[name], time.monotonic()
                work = {page.CONVERGED: partial(judged, study, None), page.FEW: partial(few, study, nfe)}
                if method == page.AS_MANY:
                    weighted = partial(rival, study, page.WEIGHTS, nfe)
                    spent = cells.measured(key_of(name, page.WEIGHTS, nfe), weighted)["tuning"]
                    work[method] = partial(few, study, nfe, spent)
                found = cells.measured(key, work.get(method, partial(rival, study, method, nfe)))
                said = f"{time.strftime('%H:%M')} {name}, NFE {nfe}, {method}: {found.get('choice', '')}"
                print(f"{said} ({time.monotonic() - began:.0f} s)", flush=True)
                page.write(args.docs)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: 0, or 130 if interrupted."""
    parser = parser_of("foreign", __doc__)
    rows = [page.CONVERGED, page.FEW, *METHODS, page.AS_MANY]
    parser.add_argument("--networks", nargs="+", default=list(page.NETWORKS), help="default %(default)s")
    parser.add_argument("--nfe", type=int, nargs="+", default=list(page.NFE), help="default %(default)s")
    parser.add_argument("--rows", nargs="+", default=rows, choices=rows, metavar="NAME", help=f"of {'; '.join(rows)}")
    args = parser.parse_args(arguments)
    warnings.simplefilter("ignore", anisoflight.AnisoflightWarning)
    return command(args, run, page.write)


if __name__ == "__main__":
    sys.exit(main())
