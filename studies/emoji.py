"""``python -m studies.emoji DATA TGZ…``: the blind data set of studies.reports.rivals, and its network.

    npm pack emoji-datasource-google@16.0.0 emoji-datasource-twitter@16.0.0
    python -m studies.emoji runs/emoji *.tgz
    python -m studies.reports.rivals --data runs/emoji --models emoji16-edm --dataset emoji16

Emoji on white at 16×16, in classes by category, of which most are people; the network sees no class, else it and its
training are those of configs/cifar10-16, of half the length.
"""

from __future__ import annotations

import io
import json
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

import anisoflight
from anisoflight.recipe.recipe import load
from studies.reports.real import CONFIGS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

KIMG = 200


def emoji(archives: Sequence[str]) -> Iterator[tuple[str, np.ndarray]]:
    """Category and pixels [16, 16, 3] of every emoji in packages emoji-datasource-VENDOR."""
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


def main() -> None:
    recipe = load([CONFIGS / "isotropic.yaml"])[0]
    categories, images = zip(*emoji(sys.argv[2:]), strict=True)
    labels = np.unique(categories, return_inverse=True)[1]
    settings = {**recipe.pretrain_settings, "dataset": "emoji16", "kimg": KIMG}
    settings["network"] = {**settings["network"], "label_dim": 0}
    with anisoflight.serve(data=sys.argv[1]) as client:
        client.put_dataset("emoji16", np.stack(images), labels)
        run = client.create_run("emoji16-edm", **settings)
        run.start(KIMG)
        run.wait()
        run.save("emoji16-edm")


if __name__ == "__main__":
    main()
