"""``python -m studies.reports.real``: schedules on CIFAR-10 at 16×16, by the recipes of configs/cifar10-16.

    make report-real                              # three networks, one after the other; hours
    python -m studies.reports.real --seeds 1      # one of them
    python -m studies.reports.real --page         # the page alone, from the rows that are there

Each network is trained once; each recipe starts from it. Everything is kept under --data, so that a command that was
stopped goes on where it was. Rows are in studies/docs/real-rows.jsonl. Those of `few` are of an earlier search, and are
not measured again: rivals.py measures the present one.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from matplotlib.figure import Figure

import anisoflight
from anisoflight.data.__main__ import main as data
from anisoflight.fid.__main__ import main as fid
from anisoflight.recipe.__main__ import main as recipe
from anisoflight.recipe.recipe import load
from anisoflight.recipe.stages import Place, stages_of
from studies.floors import floor
from studies.reports.page import DOCS, ROOT, Page, spread, with_bounds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from anisoflight import Client
    from anisoflight.recipe.recipe import Recipe

CONFIGS = ROOT / "configs" / "cifar10-16"
ROWS = DOCS / "real-rows.jsonl"
LEARNED = {
    "isotropic": "g",
    "isotropic-per-class": "{g_y}",
    "dct-per-class": "DCT, per class",
    "pca": "PCA",
    "paper": "g from EDM's levels",
}
"""Recipes, and what their rows are called."""
RENAMED = {"g as in the paper": LEARNED["paper"]}
"""Names in rows that were measured before: its 100 steps are not the paper's 4,687."""
FEATURES = ("classifier", "pca-64")
NFE = (9, 13, 17, 35)
EDM_20 = '{"edm": {"T": 400}}'


@dataclass(frozen=True)
class Row:
    """What is sampled: a model, with options of Sample."""

    method: str
    model: str
    options: dict[str, str] = field(default_factory=dict)
    nfe: tuple[int, ...] = NFE


def rows(seed: int) -> Iterator[Row]:
    """All rows of a network; the cheap and telling ones first."""
    name = f"cifar10-16-edm-s{seed}"
    heun = {"solver": "heun", "second-point": "endpoint"}
    edm, geodesic = {**heun, "grid": "edm", "schedule": "edm"}, {**heun, "schedule": f"geodesic-s{seed}"}
    yield Row("EDM, σ_max 80", name, edm)
    yield Row("geodesic, nothing trained", name, geodesic)
    yield Row("EDM, σ_max 20", name, {**heun, "grid": "edm", "schedule": EDM_20})
    for solver, called in (("ipndm", "iPNDM-4"), ("dpmpp2m", "DPM-Solver++(2M)")):
        yield Row(called, name, {"solver": solver, "grid": "polynomial", "schedule": "edm"}, (3, 5, *NFE[:3]))
    for method, called in LEARNED.items():
        yield Row(called, f"cifar10-16-{method}-s{seed}", heun)
    yield Row("that geodesic, network of g", f"cifar10-16-isotropic-s{seed}", geodesic)
    yield Row("iPNDM-4, network of g", f"cifar10-16-isotropic-s{seed}",
              {"solver": "ipndm", "grid": "polynomial", "schedule": "edm"}, (5, *NFE[:3]))  # fmt: skip
    yield Row("geodesic of order 1", name, {**heun, "schedule": f"energy-s{seed}"})
    yield Row("EDM, σ_max 80", name, edm, (79,))
    yield Row("geodesic, nothing trained", name, geodesic, (79,))


def train(seed: int, folder: Path, source: Path) -> None:
    """Train a network and the recipes that start from it, unless they are there."""
    files = [str(CONFIGS / f"{method}.yaml") for method in LEARNED]
    convert(load(files[:1])[0], folder, source)
    done(recipe([*files, "--seed", str(seed), "--data", str(folder)]))


def network_of(seed: int, folder: Path, source: Path) -> None:
    """Train a network alone, unless it is there."""
    made = load([CONFIGS / "isotropic.yaml"], seed=seed)[0]
    convert(made, folder, source)
    with anisoflight.serve(data=folder) as client:
        if made.network_model not in {found["name"] for found in client.call("ListModels")["models"]}:
            run = client.create_run(made.network_model, **made.pretrain_settings)
            run.start()
            run.wait()
            run.save(made.network_model)


def convert(made: Recipe, folder: Path, source: Path) -> None:
    """Convert the images of a recipe from a source, unless they are there."""
    if not (folder / "datasets" / made.name).exists():
        made = replace(made, dataset=replace(made.dataset, source=str(source)))
        done(data(list(stages_of(made, Place(folder))[0].words[3:])))


def references(server: Sequence[str], folder: Path, dataset: str, count: int) -> list[Path]:
    """The reference of each kind of features, with the distance of as many real images to the others."""
    files = [folder / f"{features}.npz" for features in FEATURES]
    for features, file in zip(FEATURES, files, strict=True):
        if not file.exists():
            common = ["--dataset", dataset, "--features", features, "--out", str(file), *server]
            done(fid(["ref", *common, "--floor", str(count)]))
    return files


def measure(seed: int, folder: Path, count: int) -> None:
    """Measure all rows of a network that are not there."""
    with anisoflight.serve(data=folder) as client:
        server = ["--server", client.location]
        files = references(server, folder, "cifar10-16", count)
        _make_schedules(client, seed)
        for row in rows(seed):
            words = [word for name, value in row.options.items() for word in (f"--{name}", value)]
            words += ["--nfe", ",".join(map(str, row.nfe)), "--seeds", f"0-{count - 1}", "--allow-fewer"]
            words += ["--benchmark", f"network {seed}", "--method", row.method, "--out", str(ROWS)]
            done(fid(["calc", "--model", row.model, "--ref", *map(str, files), *words, *server]))


def _make_schedules(client: Client, seed: int) -> None:
    """The schedules that need a pass, and no training."""
    there = {found["name"] for found in client.call("ListSchedules")["schedules"]}
    common: dict[str, Any] = {"model": f"cifar10-16-edm-s{seed}", "dataset": "cifar10-16"}
    for name, order in ((f"geodesic-s{seed}", 2), (f"energy-s{seed}", 1)):
        if name not in there:
            client.make_schedule(name, "geodesic", order=order, **common)


def done(status: int) -> None:
    """End with the status of a command that failed."""
    if status:
        raise SystemExit(status)


def table(found: pd.DataFrame) -> pd.DataFrame:
    """Mean over the networks, ± their standard deviation, of each method and number of evaluations."""
    wide = found.groupby(["method", "nfe"]).frechet.agg(spread).unstack("nfe").fillna("")
    return wide.reindex(found.method.unique()).rename_axis(None, axis=1).reset_index()


def read(file: Path = ROWS) -> pd.DataFrame:
    """The rows: features, network, method, nfe, frechet; floor is the distance of as many real images to others."""
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return pd.DataFrame(
        [
            {
                "features": r["features"]["name"],
                "network": r["benchmark"],
                "method": RENAMED.get(r["method"], r["method"]),
                "nfe": r["nfe"],
                "frechet": r["frechet"],
                "count": r["count"],
                "floor": r["reference"]["floor"][str(r["count"])],
            }
            for r in lines
        ]
    )


DRAWN = {
    "EDM, σ_max 80": "k-", "EDM, σ_max 20": "k--", "geodesic, nothing trained": "C0-", "g": "C1-",
    "DCT, per class": "C2-", "PCA": "C3-", "g from EDM's levels": "C1:", "iPNDM-4": "C4--",
    "iPNDM-4, network of g": "C4-", "few": "C5o",
}  # fmt: skip
"""Methods of the picture, and their lines."""


def figure(found: pd.DataFrame) -> Figure:
    """Distance by the number of evaluations, mean and range over the networks, for each kind of features."""
    drawn = Figure(figsize=(11, 4.2))
    for axes, (features, rows) in zip(drawn.subplots(1, 2), found.groupby("features", sort=False), strict=True):
        for method, style in DRAWN.items():
            points = rows[rows.method == method].groupby("nfe").frechet.agg(["mean", "min", "max"])
            (line,) = axes.plot(points.index, points["mean"], style, label=method, linewidth=1.3, markersize=4)
            axes.fill_between(points.index, points["min"], points["max"], color=line.get_color(), alpha=0.15)
        axes.axhline(rows.floor.mean(), color="0.6", linewidth=0.8, label="real images")
        axes.set(xscale="log", yscale="log", xlabel="evaluations", title=f"Fréchet distance, {features}")
        axes.set_xticks(sorted(rows.nfe.unique()), labels=sorted(rows.nfe.unique()))
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    drawn.tight_layout(rect=(0, 0.14, 1, 1))
    drawn.legend(*drawn.axes[0].get_legend_handles_labels(), frameon=False, fontsize=9, loc="lower center", ncols=5)
    return drawn


def write() -> Path:
    """Write the page from the rows that are there."""
    found = read()
    page = Page(DOCS, "real", "Schedules on CIFAR-10 at 16×16")
    networks, count = found.network.nunique(), int(found["count"].min())
    at_9 = found[(found.nfe == 9) & (found.network == "network 1")].set_index(["features", "method"]).frechet
    geodesic = at_9["classifier", "geodesic, nothing trained"]
    page.text(
        f"Fréchet distances of {count:,} samples to the 50,000 training images, which were re-encoded as JPEG and "
        f"reduced to 16×16. Networks: {networks}, of 329,075 parameters, trained on 400,000 images by EDM's loss. ± is "
        "the standard deviation over networks; one network has none. Heun's method takes 2n − 1 evaluations in n "
        "steps. The geodesics are of order 2 unless stated. `make report-real` repeats it; `--count` sets the number "
        "of samples.",
        "EDM's levels for Heun's method are not tuned: σ_max has two values, ρ one, and the last step ends at "
        "σ = .002.",
        "**The rows of `few` are favoured**: it chose on the latents of seeds 0 to 2,047, and seeds 0 to 2,499 are "
        "measured. The search now draws other latents; these rows are older.",
        "g, {g_y}, DCT and PCA train network and path together for 100 steps of 256 images, from the geodesic. "
        "**Their paths cannot move**: the learning rates add up to .0165 (`schedule_lr` 3e-4) or .0055 (1e-4), which "
        "changes a path by at most 17 % and g₁/g₂ by at most 11 %. So these rows are one network, trained further "
        "along one path. They do not show what learning a schedule, a schedule per class, or anisotropy gains.",
        "Rows “first run” are of network 1 alone. They had been taken out of the file when those runs were made again, "
        "and are back from its history. By the classifier, at 9 evaluations, two of them are worse than the geodesic "
        f"with nothing trained on that network, which has {geodesic:.2f}.",
        "“g from EDM's levels” starts from those levels, with order 1, c = 1 and T = 80² as in the paper, but takes "
        "100 of the paper's 4,687 steps, with other rates. Its comparison, steps uniform in t of EDM's schedule with "
        "nothing learned, is not measured.",
    )
    page.figure(figure(found), "distances", "Distances by number of evaluations; bands are the range over networks.")
    for features in found.features.unique():
        rows = found[found.features == features]
        page.heading(f"Features: {features}")
        converged = rows[(rows.method == "EDM, σ_max 80") & (rows.nfe == 79)].frechet
        page.text(
            "± is the standard deviation over networks, of real images that over 20 draws. The converged network is "
            "Heun's method on EDM's levels with 79 evaluations. The picture has one draw of real images, "
            f"{rows.floor.iloc[0]:.2f}."
        )
        page.table(with_bounds(table(rows), spread(converged), floor(ROWS.parent, "cifar10-16", str(features))))
    page.numbers(found, "rows")
    return page.write()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m studies.reports.real", description=__doc__)
    parser.add_argument("--source", type=Path, default=ROOT / "downloads" / "cifar10.zip",
                        help="CIFAR-10 with a folder for each class in train/ (default %(default)s)")  # fmt: skip
    parser.add_argument("--data", type=Path, default=ROOT / "runs" / "real", help="data folder (default %(default)s)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="of the networks (default 1 2 3)")
    parser.add_argument("--count", type=int, default=2500, help="samples of a row (default %(default)s)")
    parser.add_argument("--page", action="store_true", help="write the page alone")
    args = parser.parse_args()
    if not args.page:
        if not args.source.exists():
            parser.error(f"{args.source} is missing; give the images as --source")
        args.data.mkdir(parents=True, exist_ok=True)
        for seed in args.seeds:
            train(seed, args.data, args.source)
            measure(seed, args.data, args.count)
    print(write())


if __name__ == "__main__":
    main()
