"""``python -m studies.reports.images``: `few` with images against rivals that are tuned as well, by aims.

    python -m studies.reports.images --train 1 --source cifar10.zip    # a network of CIFAR-10 at 16×16; 15 minutes
    python -m studies.reports.images --section "cifar10-16, trained again"    # three of them; hours
    python -m studies.reports.images --models glyphs16-edm-s1 --dataset glyphs16 --data runs/glyphs
    python -m studies.reports.images --page                            # the page alone, from the rows that are there

The networks of CIFAR-10 are those of `make report-real` before its recipes. Each row is in
studies/docs/images-rows.jsonl once it is measured, so that a command that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

import anisoflight
from anisoflight.fid.cells import Cells
from anisoflight.moments import Moments, frechet_distance
from studies.reports import coefficients, rivals
from studies.reports import imagespage as page
from studies.reports.page import command, parser_of
from studies.reports.real import ROOT, network_of
from studies.reports.rivals import TUNING, Sampler, Study

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

BLOCKS, COUNT = (20_000_000, 21_000_000), 2500
"""First seeds of the blocks, of which each has a distance, and the samples of a block. The rows of cifar10-16, glyphs16
and earth16 that are there have 14,000,000 and 15,000,000.
"""
CONVERGED = 48
"""Steps of the converged row, by iPNDM-4 on EDM's levels."""
SPENDS = {3: 50_000, 5: 100_000, 9: 190_000}
"""Evaluations that `few` takes, and a rival may be tuned or learned with, by the number of a sample's."""
SEARCHES = 5
"""Searches of `few` for each network, by seeds from 0 on."""
NOISE_SIGMAS, LAW_SIGMAS, RHOS = (80, 40, 20, 10, 5), (40, 20, 10, 5, 2.5, 1.25, 0.625), (7, 4, 3)
TRIED = 1000
"""Samples of each plain solver whose score is compared with the judges."""


def plain(name: str, start: str, study: Study, nfe: int) -> Iterator[Sampler]:
    """A solver on EDM's rule, from noise or from the data's own law."""
    law = start == page.MATCHED
    schedule = study.made(f"images-law-{study.dataset}", "start").name if law else "edm"
    for sigma, rho in product(LAW_SIGMAS if law else NOISE_SIGMAS, RHOS):
        yield Sampler(f"σ_max {sigma:g}, ρ {rho}", study.rule(name, nfe, sigma, rho, schedule))


def afs(study: Study, nfe: int) -> Iterator[Sampler]:
    """One step more, whose first evaluation is analytical."""
    for name, sigma, rho in product(("iPNDM-4", "UniPC"), NOISE_SIGMAS[:4], RHOS):
        yield Sampler(f"{name}, σ_max {sigma:g}, ρ {rho}", study.rule(name, nfe + 1, sigma, rho), analytical=True)


METHODS: dict[str, Callable[[Study, int], Iterator[Sampler]]] = {
    page.WEIGHTS: rivals.weights,
    page.ANALYTICAL: afs,
    **{method: partial(plain, *key) for key, method in page.PLAIN.items()},
    page.SHORTEST: rivals.gits,
    page.LEVELS: rivals.ld3,
    **coefficients.methods(),
}
"""Rivals in the order in which they are measured, then samplers of coefficients, and the candidates of each."""


def few(seed: int, study: Study, nfe: int) -> dict[str, Any]:
    """What the product finds without options, except the seed of the search."""
    begun = time.monotonic()
    plan = study.client.few(study.network.model, nfe, study.dataset, seed=seed, progress=False)
    found, seconds = plan.info, round(time.monotonic() - begun, 1)
    told = {"choice": rivals.chosen(found["chosen"]), "against": rivals.chosen(found["against"]), "seconds": seconds}
    told |= {"ratio": found["ratio"], "ratio_stderr": found["ratio_stderr"], "parts": found["seconds"]}
    return {**told, **judged(study, Sampler("", plan))}


def rival(method: str, study: Study, nfe: int) -> dict[str, Any]:
    """What is chosen, what choosing took, and how it is judged."""
    begun = study.network.evaluations
    sampler = rivals.tuned(study, list(METHODS[method](study, nfe)), nfe)
    return {"choice": sampler.choice, "tuning": study.network.evaluations - begun, **judged(study, sampler)}


def converged(study: Study, nfe: int) -> dict[str, Any]:
    """The network's own samples, by many steps."""
    return judged(study, Sampler("", study.rule("iPNDM-4", nfe, 80)))


def judged(study: Study, sampler: Sampler) -> dict[str, Any]:
    """The distances on the judging seeds, to five digits."""
    found = rivals.judged(study, sampler, BLOCKS)
    return found | {name: np.round(found[name], 5).tolist() for name in study.judges}


def agreement(study: Study, nfe: int) -> dict[str, Any]:
    """Spearman's correlation of the score with each judge, over all plain solvers, on the same samples: of its
    geometric mean of three distances, and of the worst of them over the best solver's.
    """
    rows = []
    for method in page.PLAIN.values():
        for sampler in METHODS[method](study, nfe):
            images = study.draw(sampler, TUNING, min(TRIED, study.count))
            row = {name: frechet_distance(Moments.of(of(images)), real) for name, (of, real) in study.judges.items()}
            rows.append({"mean": study.score(images), "parts": study.score.parts(images), **row})
    table, parts = pd.DataFrame(rows), np.array([row["parts"] for row in rows])
    table["worst"] = (parts / parts.min(axis=0)).max(axis=1)
    close = table["mean"] < 2 * table["mean"].min()
    found: dict[str, Any] = {"tried": len(table), "close": int(close.sum())}
    for score, (name, some) in product(("mean", "worst"), {"all": table, "near": table[close]}.items()):
        by = {judge: some[score].corr(some[judge], method="spearman") for judge in study.judges}
        found[f"{score}, {name}"] = {judge: round(float(value), 4) for judge, value in by.items()}
    return found


def work_of(method: str) -> Callable[[Study, int], dict[str, Any]]:
    """What measures a row."""
    if method.startswith(page.FEW):
        return partial(few, int(method.removeprefix(page.FEW).removeprefix(page.AGAIN) or 0))
    return {page.CONVERGED: converged, page.AGREEMENT: agreement}.get(method, partial(rival, method))


def run(args: argparse.Namespace) -> None:
    """Measure what is asked for, a row on all networks before the next."""
    cells = Cells(args.docs / page.ROWS)
    with anisoflight.serve(data=args.data) as client:
        studies = rivals.studies_of(client, args, cells, SPENDS.__getitem__)
        for nfe, method, study in product(args.nfe, args.rows, studies):
            began, steps = time.monotonic(), args.converged if method == page.CONVERGED else nfe
            key = {
                "dataset": args.section or args.dataset,
                "network": study.network.model,
                "method": method,
                "nfe": steps,
            }
            if key in cells or nfe not in page.nfes(method):
                continue
            found = cells.measured(key, partial(work_of(method), study, steps))
            means = ", ".join(f"{name} {np.mean(found[name]):.3g}" for name in study.judges if name in found)
            said = f"{time.strftime('%H:%M')} {study.network.model}, NFE {steps}, {method}: {found.get('choice', '')}"
            print(f"{said}: {means} ({time.monotonic() - began:.0f} s)", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: 0, or 130 if interrupted."""
    parser = parser_of("images", __doc__, "real")
    again = [f"{page.FEW}{page.AGAIN}{seed}" for seed in range(1, SEARCHES)]
    rows = [page.CONVERGED, page.FEW, *METHODS, *again, page.AGREEMENT]
    parser.add_argument("--train", type=int, nargs="+", metavar="SEED", help="train networks of CIFAR-10, and end")
    parser.add_argument("--source", type=Path, default=ROOT / "downloads" / "cifar10.zip",
                        help="its images, with a folder for each class in train/ (default %(default)s)")  # fmt: skip
    parser.add_argument("--models", nargs="+", default=list(page.NETWORKS), help="default %(default)s")
    parser.add_argument("--dataset", default=page.DATASET, help="of the models (default %(default)s)")
    parser.add_argument("--section", help="the page's, which rows have as their data set (default the data set)")
    parser.add_argument("--nfe", type=int, nargs="+", default=list(page.NFE), help="default %(default)s")
    parser.add_argument("--rows", nargs="+", default=rows, choices=rows, metavar="NAME",
                        help=f"of {'; '.join(rows)} (default all)")  # fmt: skip
    parser.add_argument("--count", type=int, default=COUNT, help="samples of a block (default %(default)s)")
    parser.add_argument("--converged", type=int, default=CONVERGED, metavar="STEPS",
                        help="of the converged row (default %(default)s)")  # fmt: skip
    args = parser.parse_args(arguments)
    warnings.simplefilter("ignore", anisoflight.AnisoflightWarning)  # of orders and steps that are chosen here
    for seed in args.train or ():
        network_of(seed, args.data, args.source)
    return 0 if args.train else command(args, run, page.write)


if __name__ == "__main__":
    sys.exit(main())
