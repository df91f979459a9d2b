"""``python -m studies.gallery.bases SOURCE``: Figures 6 and 7 of the paper, of CIFAR-10 alone.

SOURCE is what ``anisoflight data convert`` reads: cifar-10-python.tar.gz, or a folder or archive with a folder for each
class in train/. Each class of the training images has the basis that the recipe pca makes: its 256 leading principal
components of 32×32 pixels. Figure 6 shows the first of cat, dog and airplane; Figure 7 lays out the distances of all
ten subspaces. Writes paper-6.png and paper-7.png.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot

import anisoflight
from anisoflight import figures
from anisoflight.data.__main__ import main as data
from studies.gallery.panels import subspace_map

NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
SHOWN = ("cat", "dog", "airplane")
COMPONENTS = 256


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m studies.gallery.bases", description=__doc__)
    parser.add_argument("source", type=Path, help="CIFAR-10")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs", help="folder of the pictures")
    args = parser.parse_args()
    mpl.use("agg")
    under = [] if args.source.name.endswith(".tar.gz") else ["--under", "train", "--labels", "folder"]
    with tempfile.TemporaryDirectory() as folder:
        if data(["convert", str(args.source), *under, "--name", "cifar10", "--data", folder]):
            sys.exit(1)
        with anisoflight.serve(data=folder) as client:
            client.make_basis("classes", "pca_per_class", "cifar10", COMPONENTS)
            vectors = client.basis("classes")
    shown = {i: vectors[NAMES.index(name)] for i, name in enumerate(SHOWN)}
    figures.components(shown, count=8, names=SHOWN).savefig(args.out / "paper-6.png", dpi=80)
    subspace_map(vectors, names=NAMES)
    pyplot.savefig(args.out / "paper-7.png", dpi=80)
    pyplot.close("all")
    print(args.out / "paper-6.png", args.out / "paper-7.png", sep="\n")


if __name__ == "__main__":
    main()
