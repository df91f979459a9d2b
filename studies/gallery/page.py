"""The page of all figures: small networks trained through the server, their schedules, and what they look like."""

from __future__ import annotations

import io
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib import pyplot

from anisoflight import figures
from studies.demo import data, stages
from studies.demo.report import Report
from studies.gallery import panels

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from anisoflight import Client

DPI = 130


class Gallery:
    """Collects figures, each as a PNG in `folder`, and writes them as one page that needs no other file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._report = Report("anisoflight: figures")
        folder.mkdir(parents=True, exist_ok=True)

    def section(self, title: str, text: str) -> None:
        self._report.heading(title)
        self._report.text(text)

    def add(self, name: str, drawn: Figure | Axes, caption: str) -> None:
        """Keep a figure as NAME.png, with what it shows."""
        figure = drawn.get_figure(root=True) if hasattr(drawn, "get_figure") else drawn
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=DPI)  # type: ignore[union-attr]
        pyplot.close(figure)  # type: ignore[arg-type]
        (self.folder / f"{name}.png").write_bytes(buffer.getvalue())
        self._report.figure("data:image/png;base64," + b64encode(buffer.getvalue()).decode(), caption, wide=True)

    def write(self) -> Path:
        """Write index.html and return its path."""
        path = self.folder / "index.html"
        self._report.write(path)
        return path


@dataclass(frozen=True)
class Problem:
    """A data set, the horizon T and weight c of its schedules, and how its network is trained.

    The network takes one log-ratio and is trained on anisotropic noise in the DCT family of k dimensions, so that it
    serves isotropic and anisotropic schedules alike (docs/method.md, section 3).
    """

    name: str
    load: Callable[[], data.Data]
    T: float
    c: float
    k: int
    recipe: str
    network: dict[str, Any]

    def config(self, seed: int, kimg: float) -> dict[str, Any]:
        """The training configuration: the recipe in configs/, kimg thousand images long."""
        base, noise = stages.recipe(self.recipe), stages.recipe("patches-pretrain")
        return {
            **base,
            **{key: value for key, value in noise.items() if key.startswith("p_")},
            "family": {"basis": "dct", "k": self.k},
            "ratio_embedding": True,
            "dataset": self.name,
            "network": {**base["network"], **self.network},
            "kimg": kimg,
            "ema_halflife_kimg": 0.03 * kimg,
            "seed": seed,
        }


DIGITS = Problem("digits", data.digits, T=20.0**2, c=1, k=16, recipe="digits-pretrain", network={})
PATCHES = Problem(
    "patches16",
    lambda: data.patches(size=16),
    T=80.0**2,
    c=16,
    k=16,
    recipe="patches-plain",
    network={"img_resolution": 16, "channel_mult": [1, 2, 2], "attn_resolutions": [8, 4]},
)


@dataclass(frozen=True)
class Length:
    """How long networks and schedules are trained, in thousands of images."""

    network: float
    schedule: float


@dataclass(frozen=True)
class Session:
    """A data set with its network, on a server, and how schedules are made of it."""

    client: Client
    problem: Problem
    length: Length
    seed: int

    def prepare(self) -> data.Data:
        """Upload the data, train the network, and compute the geodesic that all schedules start from."""
        name, client = self.problem.name, self.client
        split = self.problem.load()
        client.put_dataset(name, split.train.images, split.train.labels, replace=True)
        kimg = self.length.network
        config = {**self.problem.config(self.seed, kimg), "lr_warmup": kimg / 12}
        stages.train(client, f"{name}-pretrain", config, save=name)
        options = {"model": name, "dataset": name, "T": self.problem.T, "c": self.problem.c, "seed": self.seed}
        client.make_schedule(f"{name}-geodesic", "geodesic", order=1, replace=True, **options)
        client.make_schedule(f"{name}-edm", "edm", T=self.problem.T, replace=True)
        return split

    def learn(self, stage: str, name: str, **family: Any) -> str:
        """Learn a schedule with the network frozen, and save it as the model NAME."""
        config = {
            "stage": stage,
            "order": 1,
            "dataset": self.problem.name,
            "model": self.problem.name,
            "schedule": f"{self.problem.name}-geodesic",
            "family": family,
            "train_network": False,
            "estimator": "backprop",
            "c": self.problem.c,
            "batch": 64,
            "kimg": self.length.schedule,
            "schedule_lr": 0.02,
            "schedule_lr_warmup": 0.64,
            "seed": self.seed,
        }
        saved = f"{self.problem.name}-{name}"
        stages.train(self.client, saved, config, save=saved)
        return saved


def draw(client: Client, folder: Path, seed: int, scale: float) -> Path:
    """Train, learn, draw, and write the page; `scale` stretches the training."""
    gallery = Gallery(folder)
    digits = Length(network=76.8 * scale, schedule=6.4 * scale)
    patches = Length(network=51.2 * scale, schedule=9.6 * scale)
    draw_digits(Session(client, DIGITS, digits, seed), gallery)
    draw_patches(Session(client, PATCHES, patches, seed), gallery)
    return gallery.write()


def draw_digits(session: Session, gallery: Gallery) -> None:
    """The handwritten digits: ten classes, 8 × 8 pixels, one channel."""
    client, name = session.client, session.problem.name
    data = session.prepare()
    client.make_basis(f"{name}-pca", "pca", name, 16, replace=True)
    client.make_basis(f"{name}-pca-class", "pca_per_class", name, 16, replace=True)
    classes = session.learn("isotropic", "classes", basis="none", per_class=True)
    per_class = client.schedule(classes).evaluate(points=figures.POINTS)
    edm, geodesic = client.schedule(f"{name}-edm"), client.schedule(f"{name}-geodesic")
    gallery.section(
        "Handwritten digits",
        "scikit-learn's 8 × 8 digits in ten classes. The network is EDM's SongUNet with 16 channels, trained for "
        f"{session.length.network:.3g} thousand images; schedules are learned with the network frozen.",
    )
    gallery.add(
        "digits-variances",
        figures.variances({"EDM": edm, "geodesic": geodesic}),
        "Noise variance over time. The geodesic moves at constant speed in the metric of the measured loss: it stays "
        "longer where the network has something to decide.",
    )
    gallery.add(
        "digits-classes",
        panels.class_ratios(per_class, names=data.classes),
        "Isotropic schedules learned per class, each over their geometric mean: what one class wants more noise for "
        "than the others, and when. All ends are shared.",
    )
    gallery.add(
        "digits-components",
        figures.components(client.basis(f"{name}-pca"), count=8),
        "Leading principal components of all digits.",
    )
    gallery.add(
        "digits-class-components",
        figures.components(client.basis(f"{name}-pca-class"), count=6, names=data.classes),
        "Leading principal components of each digit: the basis of a family with pca_per_class.",
    )
    gallery.add(
        "digits-subspaces",
        panels.subspace_map(client.basis(f"{name}-pca-class"), names=data.classes),
        "Classical multidimensional scaling of the distances between the digits' 16-dimensional subspaces, "
        "‖Q₁Q₁ᵀ − Q₂Q₂ᵀ‖ / √(2k). The title says how much of the squared distances two dimensions can show.",
    )


def draw_patches(session: Session, gallery: Gallery) -> None:
    """Patches of photographs: two classes, 16 × 16 pixels, three channels."""
    client, name, k = session.client, session.problem.name, session.problem.k
    data = session.prepare()
    client.make_basis(f"{name}-pca", "pca", name, k, replace=True)
    client.make_basis(f"{name}-pca-class", "pca_per_class", name, k, replace=True)
    isotropic = session.learn("isotropic", "isotropic", basis="none")
    dct = session.learn("anisotropic", "dct", basis="dct", k=k)
    pca = session.learn("anisotropic", "pca", basis=f"{name}-pca")
    dct_classes = session.learn("anisotropic", "dct-classes", basis="dct", k=k, per_class=True)
    pca_classes = session.learn("anisotropic", "pca-classes", basis=f"{name}-pca-class", per_class=True)
    curves = {
        key: client.schedule(model).evaluate(points=figures.POINTS)
        for key, model in {"isotropic": isotropic, "DCT": dct, "PCA": pca}.items()
    }
    gallery.section(
        "Patches of photographs",
        "16 × 16 colour crops of scikit-learn's two sample photographs, downsampled by two; a class per photograph. "
        f"P₁ holds the {k} lowest frequencies, or the {k} leading components, of each channel; P₂ the rest. The "
        f"network is told the ratio of the two variances and was trained on anisotropic noise for "
        f"{session.length.network:.3g} thousand images.",
    )
    gallery.add(
        "patches-variances",
        figures.variances({key: curves[key] for key in ("isotropic", "DCT")}),
        "Learned noise variances: one path for all, and one for each of two DCT subspaces. All start from the "
        "isotropic geodesic and share their ends.",
    )
    gallery.add(
        "patches-ratio",
        figures.ratio({key: curves[key] for key in ("DCT", "PCA")}, over="sigma"),
        "Learned anisotropy by noise level. Above 1 the coarse subspace is noisier than the fine one: sampling from "
        "right to left, fine detail is denoised first there.",
    )
    gallery.add(
        "patches-mean",
        panels.geometric_mean({key: curves[key] for key in ("DCT", "PCA")}),
        "Geometric means √(g₁g₂) of the learned schedules, and the log-linear path.",
    )
    by_class = client.schedule(dct_classes).evaluate(points=figures.POINTS)
    gallery.add(
        "patches-classes",
        panels.class_ratios(by_class, names=data.classes),
        "DCT schedules learned per class, g over the classes' geometric mean: solid P₁, dashed P₂.",
    )
    gallery.add(
        "patches-class-means",
        panels.class_ratios(by_class, names=data.classes, mean=True),
        "The same, by the geometric mean of each class's two subspaces.",
    )
    gallery.add(
        "patches-class-ratio",
        figures.ratio(client.schedule(pca_classes), names=data.classes),
        "Anisotropy of a schedule per class on the class's own principal components.",
    )
    gallery.add(
        "patches-dct", panels.dct_functions(16, 9), "The first nine two-dimensional DCT functions, by frequency."
    )
    gallery.add(
        "patches-components",
        figures.components({-1: client.basis(f"{name}-pca")[-1], **client.basis(f"{name}-pca-class")}, 8, data.classes),
        "Leading principal components of all patches, and of those of each photograph.",
    )
    for key, model in {"isotropic": isotropic, "dct": dct}.items():
        figure = figures.reverse(client, model, label=1, family={"basis": "dct", "k": k}, seed=session.seed)
        gallery.add(f"patches-reverse-{key}", figure, _REVERSE[key])
    channels = 3
    pixels = 16 * 16
    c = session.problem.c
    levels = client.evaluate_model(name, name, schedule=dct, points=32, samples=128, c=c, seed=session.seed)
    gallery.add(
        "patches-loss",
        panels.loss_by_level(levels, dims=[channels * k, channels * (pixels - k)]),
        "Where the loss is made. Left: what is left of the noise that the network cannot tell from the image, per "
        "dimension of each subspace, with standard errors. Right: its part in the energy over time along the DCT "
        f"schedule, weighed with the c = {c:g} that it was learned with.",
    )


_REVERSE = {
    "isotropic": "The reverse process along the isotropic schedule: an image from noise to a sample, and its parts.",
    "dct": "The same from the same noise along the learned DCT schedule, with √g of P₁ and of P₂ above each state.",
}
