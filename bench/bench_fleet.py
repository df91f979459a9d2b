"""What sharing a measurement costs: one stretch, many, shards that are merged, and one actor of Ray, of the same row.

``python bench/bench_fleet.py`` prints a table for docs/scale.md; the rows are asserted to be the same numbers.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import tempfile
import time
from pathlib import Path

import numpy as np

import anisoflight
from anisoflight.fid import fleet
from anisoflight.fid.__main__ import main
from anisoflight.fid.cells import rows_of
from anisoflight.fid.table import half_range

NETWORK = {"img_resolution": 16, "img_channels": 3, "model_channels": 32, "channel_mult": [1, 2], "num_blocks": 1}


def quiet(*arguments: object) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        assert main([str(argument) for argument in arguments]) == 0


class Started(fleet.Fleet):
    """Actors whose server and program are there before the clock starts."""

    began = 0.0

    def expect(self, *arguments: object) -> None:
        import ray  # pyright: ignore[reportMissingImports]

        ray.get([worker.processes.remote() for worker in self.workers])
        Started.began = time.perf_counter()
        super().expect(*arguments)  # pyright: ignore[reportArgumentType]


def run(count: int, stretch: int, repeats: int) -> None:
    fleet.Fleet = Started
    seconds: dict[str, list[float]] = {}
    distances = set()
    with tempfile.TemporaryDirectory() as name:
        data, reference = Path(name, "data"), Path(name, "ref.npz")
        with anisoflight.serve(data=data) as client:
            images = np.random.default_rng(0).integers(0, 256, (2000, 16, 16, 3), np.uint8)
            client.put_dataset("noise", images, progress=False)
            client.create_run("tiny", stage="pretrain", dataset="noise", network=NETWORK, batch=8, kimg=0.016).step(
                2, progress=False
            )
            client.run("tiny").save("tiny")
            server = ["--server", client.location]
            quiet("ref", *server, "--dataset", "noise", "--features", "pixels", "--out", reference, "--quiet")
            asked = ["--model", "tiny", "--steps", 4, "--seeds", f"0-{count - 1}", "--ref", reference, "--allow-fewer"]
            calc = ["calc", *asked, "--quiet"]
            for repeat in range(repeats + 1):  # the first one compiles
                for kind in ("one stretch", "stretches", "two shards, merged", "one actor of Ray"):
                    out = Path(name, f"{repeat}-{kind.split()[0]}-{kind.split()[-1]}.jsonl")
                    pace = ["--checkpoint", count if kind == "one stretch" else stretch]
                    began = time.perf_counter()
                    if kind.startswith("two"):
                        shards = [out.with_suffix(f".{i}.npz") for i in range(2)]
                        for i, shard in enumerate(shards):
                            quiet(*calc, *server, *pace, "--shard", f"{i}/2", "--out", shard)
                        quiet("merge", *shards, "--out", out, "--quiet")
                    elif kind.endswith("Ray"):
                        quiet(*calc, *pace, "--ray", 1, "--data", data, "--out", out)
                        began = Started.began
                    else:
                        quiet(*calc, *server, *pace, "--out", out)
                    if repeat:
                        seconds.setdefault(kind, []).append(time.perf_counter() - began)
                    distances.add(rows_of(out)[0]["images"])
    assert len(distances) == 1, distances
    base = seconds["one stretch"]
    print(f"{count} samples, stretches of {stretch}, {repeats} repetitions in turn\n")
    print("| | seconds, median ± half the range | against one stretch, pair by pair |\n|---|---|---|")
    for kind, found in seconds.items():
        ratios = [a / b for a, b in zip(found, base, strict=True)]
        times = f"{np.median(found):.2f} ± {half_range(found):.2f}"
        print(f"| {kind} | {times} | {np.median(ratios):.3f} ± {half_range(ratios):.3f} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2048)
    parser.add_argument("--stretch", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    run(given.count, given.stretch, given.repeats)
