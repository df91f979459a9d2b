"""``python -m studies.floors DATA DATASET``: the distance of real images, by 20 draws, for each kind of features.

    python -m studies.floors runs/real cifar10-16
    python -m studies.floors runs/real cifar10-16 --count 512

A draw is the Fréchet distance of 2,500 random images, or --count, to all others. No sampler is expected below it. Rows
are in studies/docs/floors.jsonl. The classifier is fitted again, in the same way; those by which rows were measured are
not kept.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

import anisoflight
from anisoflight import images as pixels
from anisoflight.fid.builtin import classifier_features, principal_features
from anisoflight.fid.cells import Cells, rows_of
from anisoflight.moments import Moments, frechet_distance
from studies.features import edge_features
from studies.reports.page import spread

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS, DRAWS, COUNT = "floors.jsonl", 20, 2500
DOCS = Path(__file__).parent / "docs"


def draws(features: np.ndarray, count: int) -> list[float]:
    """Fréchet distances of `count` random rows to all other rows, by the seeds from 0 on."""
    found = []
    for seed in range(DRAWS):
        order = np.random.default_rng(seed).permutation(len(features))
        drawn, others = features[order[:count]], features[order[count:]]
        found.append(frechet_distance(Moments.of(drawn), Moments.of(others)))
    return found


def floor(docs: Path, dataset: str, features: str, count: int = COUNT) -> str:
    """Mean ± standard deviation over the draws; empty if they were not measured."""
    for row in rows_of(docs / ROWS) if (docs / ROWS).exists() else []:
        key = json.loads(row["key"])
        if (key["dataset"], key["features"], key["count"]) == (dataset, features, count):
            return spread(pd.Series(row["distances"]))
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m studies.floors", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("data", type=Path, help="data folder")
    parser.add_argument("dataset", help="data set in it")
    parser.add_argument("--count", type=int, default=COUNT, help="images of a draw (default %(default)s)")
    parser.add_argument("--docs", type=Path, default=DOCS, help="folder of the rows")
    args = parser.parse_args()
    with anisoflight.serve(data=args.data) as client:
        found = client.dataset(args.dataset)
    x = pixels.to_float(found.images)
    judges: dict[str, Callable[[], Any]] = {
        "pca-64": lambda: principal_features(x, 64),
        "edges": lambda: edge_features(pixels.to_float(found.images[::5])),
        "classifier": lambda: classifier_features(x, found.labels)[0],
    }
    cells = Cells(args.docs / ROWS)
    for name, fitted in judges.items():
        key = {"dataset": args.dataset, "features": name, "count": args.count}
        row = cells.measured(key, lambda fitted=fitted: {"distances": draws(fitted()(x), args.count)})
        print(f"{args.dataset}, {name}: {spread(pd.Series(row['distances']))}", flush=True)


if __name__ == "__main__":
    main()
