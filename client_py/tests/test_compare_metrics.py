"""Distances and benches of `anisoflight.compare`, on answers known in closed form."""

from pathlib import Path

import numpy as np
import pytest

from anisoflight.compare import metrics
from anisoflight.compare.bench import Bench, Reference, Sampler
from anisoflight.files.cells import Cells


def test_cells_are_measured_once(tmp_path: Path) -> None:
    path, measured = tmp_path / "folder" / "cells.jsonl", []

    def measure() -> dict[str, float]:
        measured.append(1)
        return {"value": 2.5}

    cells = Cells(path)
    for _ in range(2):  # the second time as another run reads the file
        cells = Cells(path)
        for _ in range(2):
            assert cells.measured({"nfe": 5, "sampler": "s"}, measure) == {"value": 2.5}
    assert len(measured) == 1
    assert Cells(path).measured({"nfe": 7, "sampler": "s"}, lambda: {"value": 1.0}) == {"value": 1.0}
    kept = Cells(path, kept=True)
    assert kept.measured({"nfe": 7, "sampler": "s"}, measure) == {"value": 1.0}
    assert kept.measured({"nfe": 9, "sampler": "s"}, measure) == {}
    assert len(measured) == 1


class _Drawn:
    normalization = None

    def __init__(self, images: np.ndarray, nfe: int) -> None:
        self.images, self.nfe = images, np.full(len(images), nfe, np.int32)


class _Client:
    """Samples that are off by 0.1 / nfe."""

    def sample(self, _model: str, *, n: int, seed: int, nfe: int = 0, **_: object) -> _Drawn:
        noise = np.random.default_rng(seed).standard_normal((n, 2, 2, 1)).clip(-3, 3) / 4
        return _Drawn(noise + (0.1 / nfe if nfe else 0), nfe)


def _bench() -> Bench:
    real = (np.random.default_rng(5).standard_normal((500, 2, 2, 1)).clip(-3, 3) / 4).astype(np.float32)
    reference = Reference(metrics.flat, real)
    bench = Bench(_Client(), {"FD": reference}, seeds=(1, 2), count=400)  # pyright: ignore[reportArgumentType]
    bench.converged("path", Sampler("exact", "m", {}, "path"))
    return bench


def test_bench_measures_what_was_put_in() -> None:
    bench, sampler = _bench(), Sampler("s", "m", {}, "path")
    assert [bench.probe(sampler, nfe).ode_error for nfe in (1, 5)] == pytest.approx([10, 2])
    one, five = (np.mean(bench.distances(sampler, nfe).by_reference["FD"]) for nfe in (1, 5))
    assert one - five == pytest.approx(4 * (0.01 - 0.0004), rel=0.5)
    assert bench.distances(sampler, 5).evaluations == 5
