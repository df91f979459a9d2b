"""``python -m studies.samples MODEL IMAGES``: a plain solver, `few` with as many evaluations, and EDM's sampler at 35.

    make picture MODEL=checkpoint IMAGES=cifar10.zip UNDER=train   # the README's; docs/images/samples.png and .json

MODEL is a folder with config.json and model.safetensors, IMAGES a folder or zip of images such as it was trained on,
with a folder for each class if the model has classes. Both are kept under --data, as is what `few` has found. The plain
solver is the one that the search compared its choice with, from noise alone; all have the seeds 0, 1, 2, …
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

import anisoflight
from anisoflight.data import Conversion, open_source, upload
from anisoflight.images import grid

if TYPE_CHECKING:
    from anisoflight import Client, Plan
    from anisoflight.images import Pixels

ROOT = Path(__file__).parents[1]
COLUMNS, GAP, BANNER = 5, 12, 24
MANY = 35
"""Evaluations of the last panel, with which EDM samples CIFAR-10."""
NAMES = {"ipndm": "iPNDM-4", "dpmpp2m": "DPM-Solver++(2M)", "unipc": "UniPC"}
RHO = {"polynomial": 7, "polynomial 3": 3}
"""The exponents of EDM's rule by what `few` calls the levels."""
KEPT = ("summary", "ratio", "ratio_stderr", "samples", "chosen", "against")
"""What the search says of both samplers, kept next to the picture."""


def copy_model(model: Path, folder: Path) -> None:
    """Copy a model into the data folder, unless it is there."""
    target = folder / "models" / model.name
    target.mkdir(parents=True, exist_ok=True)
    for file in ("config.json", "model.safetensors"):
        if not (target / file).exists():
            shutil.copy(model / file, target / file)


def search(client: Client, name: str, nfe: int, samples: int) -> Plan:
    """What `few` finds for a model and a number of evaluations."""
    found = f"{name}-few{nfe}"
    if found in client.plans().index:
        return client.plan(plan=found)
    return client.few(name, nfe, name, name=found, samples=samples)


def draw(panels: dict[str, Pixels], scale: int) -> Image.Image:
    """One picture of grids next to each other, each below its name."""
    grids = {title: grid(images, COLUMNS, scale, gap=0) for title, images in panels.items()}
    height, width, _ = next(iter(grids.values())).shape
    picture = Image.new("RGB", (len(grids) * (width + GAP) - GAP, BANNER + height), "white")
    for k, (title, pixels) in enumerate(grids.items()):
        left = k * (width + GAP)
        ImageDraw.Draw(picture).text((left, 3), title, fill="black", font=ImageFont.load_default(15))
        picture.paste(Image.fromarray(np.broadcast_to(pixels, (*pixels.shape[:2], 3))), (left, BANNER))
    return picture


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m studies.samples", description=__doc__)
    parser.add_argument("model", type=Path, help="folder with config.json and model.safetensors")
    parser.add_argument("images", type=Path, help="folder or zip of images")
    parser.add_argument("--under", help="folder in it, such as train (default: all of it)")
    parser.add_argument("--nfe", type=int, default=3, help="evaluations of an image (default %(default)s)")
    parser.add_argument("--samples", type=int, default=128, help="of each try of few (default %(default)s)")
    parser.add_argument("--scale", type=int, default=2, help="side of a pixel in the picture (default %(default)s)")
    parser.add_argument("--rows", type=int, default=4, help="rows of images in the picture (default %(default)s)")
    parser.add_argument(
        "--data", type=Path, default=ROOT / "runs" / "samples", help="data folder (default %(default)s)"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images" / "samples.png",
                        help="the picture (default %(default)s)")  # fmt: skip
    args = parser.parse_args(arguments)
    for given in (args.model / "model.safetensors", args.images):
        if not given.exists():
            parser.error(f"{given} is missing")
    copy_model(args.model, args.data)
    with anisoflight.serve(data=args.data) as client:
        name, count = args.model.name, COLUMNS * args.rows
        if name not in client.datasets().index:
            with open_source(args.images, under=args.under) as source:
                upload(client, name, Conversion(source))
        found = search(client, name, args.nfe, args.samples)
        classes = client.describe_model(name)["label_dim"]
        labels = [i % classes for i in range(count)] if classes else []
        options: dict[str, Any] = {"labels": labels} if classes else {"n": count}
        plain = found.info["against"]
        levels = {"polynomial": {"sigma_max": plain["sigma_max"], "rho": RHO[plain["levels"]]}}
        drawn: dict[tuple[str, int], dict[str, Any]] = {
            (NAMES[plain["solver"]], args.nfe): {
                "schedule": "edm", "solver": plain["solver"], "grid": levels, "nfe": args.nfe
            },
            ("few", args.nfe): {"plan": found},
            ("Heun", MANY): {"schedule": "edm", "solver": "heun", "grid": "edm", "nfe": MANY},
        }  # fmt: skip
        panels = {
            f"{title}, {nfe} evaluations": client.sample(name, seed=0, **options, **how).to_pictures()[0]
            for (title, nfe), how in drawn.items()
        }
        report = {key: found.info[key] for key in KEPT}
    draw(panels, args.scale).save(args.out, optimize=True)
    args.out.with_suffix(".json").write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(report["summary"])
    print(args.out)


if __name__ == "__main__":
    main()
