"""``python -m studies.demo``: train a network, search its sampler for few evaluations, and show what that gains.

It trains on 8×8 patches of two photographs, which come with scikit-learn. What is there already is not made again.
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

import anisoflight
from anisoflight.fid.builtin import principal_features
from studies.demo.distances import Bench, Reference, Sampler
from studies.features import edge_features

from . import data, stages
from .report import Report, mosaics, pm

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from anisoflight import Client

TITLE = "anisoflight: samplers of few evaluations"
NFES = (3, 5)
MANY = 35
"""Evaluations of EDM's sampler, with which samples have converged."""
COUNT, BLOCKS = 1500, 2
"""Samples for a distance, from seeds that chose nothing, and how often."""
KIMG, SAMPLES = 51.2, 1024
"""Thousands of images of training; samples of each try of a search."""
STANDARD, FEW, CONVERGED, REAL = "iPNDM-4", "few", "EDM's Heun", "real patches"
COMPONENTS, EDGES = "principal components", "edges"


class Demo:
    """The demonstration on a server; its page grows with what there is."""

    def __init__(self, client: Client, path: Path, seed: int) -> None:
        self._client, self._path, self._seed = client, path, seed
        self._model = f"patches-{seed}"
        self._patches = data.patches()
        self._found: dict[int, str] = {}  # the search's own sentence, by evaluations
        self._started, self._step = time.perf_counter(), 0

    def run(self) -> str:
        """All steps. Returns what was found, in a sentence."""
        client = self._client
        with self._next("train a network"):
            self._train()
        self._write("The network is trained, and its sampler is being searched: this page will have it.")
        for nfe in NFES:
            with self._next(f"search a sampler of {nfe} evaluations"):
                if self._plan(nfe) not in client.plans().index:
                    options = {"name": self._plan(nfe), "seed": self._seed, "samples": SAMPLES}
                    client.few(self._model, nfe, "patches", **options)
            self._found[nfe] = client.plans()["summary"][self._plan(nfe)]
            self._write("What the samplers are worth is being measured.")
        with self._next("measure on other seeds"):
            table = self._measure()
        sentences = [headline(table, nfe) for nfe in NFES]
        self._write(*sentences, table=table)
        return sentences[0]

    @contextmanager
    def _next(self, step: str) -> Iterator[None]:
        self._step += 1
        print(f"{self._step} of {len(NFES) + 2}: {step}", flush=True)
        yield
        print(f"   {time.perf_counter() - self._started:.0f} s since the start", flush=True)

    def _train(self) -> None:
        client, split = self._client, self._patches.train
        if "patches" not in client.datasets().index:
            client.put_dataset("patches", split.images, split.labels)
        if self._model not in client.models().index:
            config = {**stages.recipe("patches-plain"), "kimg": KIMG, "seed": self._seed}
            stages.train(client, self._model, config, save=self._model)

    def _plan(self, nfe: int) -> str:
        return f"{self._model}-few{nfe}"

    def _samplers(self) -> list[tuple[Sampler, int]]:
        """What there is so far, and its evaluations."""
        standard = {"schedule": "edm", "solver": "ipndm", "grid": "polynomial"}
        converged = {"schedule": "edm", "solver": "heun", "grid": "edm", "nfe": MANY}
        rows = [(Sampler(STANDARD, self._model, {**standard, "nfe": nfe}), nfe) for nfe in NFES]
        rows += [(Sampler(FEW, self._model, {"plan": self._plan(nfe)}), nfe) for nfe in self._found]
        rows.append((Sampler(CONVERGED, self._model, converged), MANY))
        return sorted(rows, key=lambda row: (row[1], row[0].name == FEW))

    def _measure(self) -> pd.DataFrame:
        """Fréchet distances to patches that are held out: a list over blocks for each sampler."""
        real, held = self._patches.train.images, self._patches.test.images
        references = {
            COMPONENTS: Reference(principal_features(real, 40), held),
            EDGES: Reference(edge_features(real), held),
        }
        bench = Bench(self._client, references, [10**8 * (self._seed + i) for i in range(BLOCKS)], COUNT)
        rows = []
        for sampler, nfe in self._samplers():
            print(f"   {sampler.name}, {nfe} evaluations", flush=True)
            measured = bench.distances(sampler)
            require_count(sampler.name, nfe, measured.evaluations)
            rows.append({"sampler": sampler.name, "evaluations": nfe, **measured.by_reference})
        blocks = [real[i * COUNT : (i + 1) * COUNT] for i in range(BLOCKS)]
        floor = {name: [one.distance(images) for images in blocks] for name, one in references.items()}
        return pd.DataFrame([*rows, {"sampler": REAL, "evaluations": 0, **floor}])

    def _write(self, *sentences: str, table: pd.DataFrame | None = None) -> None:
        """The page: pictures first, then what was found."""
        pictures = {
            f"{sampler.name}, {nfe} evaluations": sampler.draw(self._client, n=36, seed=0).images
            for sampler, nfe in self._samplers()
        }
        report = Report(TITLE)
        report.mosaics(mosaics(pictures, columns=6), "One network, the same seeds: the sampler alone differs.")
        report.text(*sentences)
        if table is not None:
            report.table(
                table.assign(**{name: table[name].map(pm) for name in (COMPONENTS, EDGES)}),
                f"Fréchet distances to {len(self._patches.test.images)} patches that are held out, by 40 principal "
                f"components and by random filters, which see edges; smaller is better. Mean of {BLOCKS} blocks of "
                f"{COUNT} samples from seeds that chose nothing, ± half their range.",
            )
        report.text(*(f"The search at {nfe} evaluations: {summary}." for nfe, summary in self._found.items()))
        minutes = (time.perf_counter() - self._started) / 60
        report.text(
            f"{STANDARD} takes EDM's noise levels and is not tuned; the search compared its choice with tuned "
            "samplers. One small network of patches of two photographs: docs/results.md says what holds elsewhere. "
            f"Seed {self._seed}; {minutes:.1f} minutes."
        )
        report.write(self._path)
        print(f"   pictures: {self._path.resolve()}", flush=True)


def require_count(sampler: str, nfe: int, counted: int) -> None:
    """Raises RuntimeError if the server counted another number of evaluations than asked for."""
    if counted != nfe:
        raise RuntimeError(f"{sampler}: asked for {nfe} evaluations, the server counted {counted}")


def headline(table: pd.DataFrame, nfe: int) -> str:
    """What was found at a number of evaluations, and what it gained."""
    cells = table.set_index(["sampler", "evaluations"])[EDGES].map(pm)
    return (
        f"With {nfe} evaluations, samples of what the search found are at a distance of {cells[FEW, nfe]} from real "
        f"patches, those of {STANDARD} at {cells[STANDARD, nfe]}. The network's best, with {MANY}, are at "
        f"{cells[CONVERGED, MANY]}; real patches at {cells[REAL, 0]}."
    )


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m studies.demo", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="seed of training, search and samples (default 1)")
    parser.add_argument("--out", type=Path, default=Path("runs/demo"), help="folder of the page and of what is stored")
    args = parser.parse_args(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    with anisoflight.serve(data=args.out / "data") as client:
        print(f"pictures in two minutes, all of it in about five: {args.out / 'report.html'}", flush=True)
        found = Demo(client, args.out / "report.html", args.seed).run()
    print(found, (args.out / "report.html").resolve(), sep="\n")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
