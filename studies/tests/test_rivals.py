"""The study of tuned rivals: its levels, weights and verdicts, and a whole small one."""

from __future__ import annotations

import json
import re
from itertools import combinations, pairwise, product
from pathlib import Path

import numpy as np
import pytest

import anisoflight
from anisoflight.plans.plan import Plan
from studies import floors
from studies.reports import rivals
from studies.reports import rivalspage as page

TINY = {"img_resolution": 8, "img_channels": 1, "label_dim": 2, "model_channels": 8, "channel_mult": [1, 1],
        "num_blocks": 1, "attn_resolutions": [4], "augment_dim": 0, "model_type": "DhariwalUNet"}  # fmt: skip
DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("coefficient", [1.0, 1.3])
def test_the_levels_of_gits_are_the_best_of_all_paths(coefficient: float) -> None:
    cost = np.triu(np.random.default_rng(0).uniform(1, 9, (8, 8)), 1) + np.tril(np.full((8, 8), np.inf))
    paths = [[0, *inner, 7] for inner in combinations(range(1, 7), 3)]

    def total(path: list[int]) -> float:
        return sum(coefficient**k * cost[i, j] for k, (i, j) in enumerate(pairwise(path)))

    assert rivals.shortest(cost, 4, coefficient) == min(paths, key=total)


def test_the_score_hardly_depends_on_the_number_of_samples() -> None:
    rng = np.random.default_rng(0)

    def images(count: int, contrast: float) -> np.ndarray:
        noise = np.cumsum(np.cumsum(rng.normal(size=(count, 8, 8, 1)), axis=1), axis=2)
        return np.clip(127 + contrast * noise, 0, 255).astype(np.uint8)

    score = rivals.Score(images(4000, 12))
    near, far = ([score(images(count, contrast)) for count in (128, 1024)] for contrast in (12, 18))
    assert near[1] < near[0] < far[0] / 2
    assert far[0] == pytest.approx(far[1], rel=0.25)


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    with anisoflight.serve(data=tmp_path_factory.mktemp("data")) as client:
        return client.plan("edm", sigma_min=0.002, sigma_max=80, solver="dpmpp2m", nfe=4, grid="polynomial")


class Gaussian(rivals.Network):
    """The denoiser of normal data, by default of standard deviation 1/2."""

    def __init__(self, deviation: np.ndarray | float = 0.5) -> None:
        self.evaluations, self.known, self._variance = 0, None, np.square(deviation)

    def __call__(self, x: np.ndarray, sigma: np.ndarray, labels: np.ndarray | None = None) -> np.ndarray:
        self.evaluations += len(x)
        return x * self._variance / (self._variance + sigma[:, None, None, None] ** 2)


def test_weights_are_those_of_the_plan_until_they_are_learned(plan: Plan) -> None:
    """On normal data a sampler is a factor for each deviation, so that little error is left of what is learned."""
    spread = np.linspace(0.24, 0.7, 16).reshape(4, 4)
    network, theta, noise = (
        Gaussian(spread),
        rivals.weights_of(plan),
        np.random.default_rng(1).normal(size=(64, 1, 4, 4)),
    )
    begun = rivals.weighted(plan, theta)
    assert begun is not None
    assert np.allclose(begun(network, noise), plan(network, noise), rtol=0, atol=1e-9)
    assert rivals.weighted(plan, -theta) is None  # levels that rise

    def error(theta: np.ndarray, part: slice) -> np.ndarray:
        found = rivals.weighted(plan, theta)
        x = np.full_like(noise[part], 9) if found is None else found(network, noise[part])
        return (x - spread * noise[part]).ravel()

    fit, held = slice(0, 32), slice(32, 64)
    learned = rivals.descend(network, lambda z: error(z, fit), lambda z: error(z, held), theta, 100_000)
    assert (error(learned, held) ** 2).sum() < 1e-3 * (error(theta, held) ** 2).sum()


def test_afs_spares_the_first_evaluation(plan: Plan) -> None:
    network, x = Gaussian(), np.ones((3, 1, 4, 4))
    first = rivals._denoised(network, 80.0, x, np.full(3, 80.0))
    assert network.evaluations == 0
    assert np.allclose(x - first, 80 / np.hypot(1, 80) * x)  # noise of unit variance, times its level
    assert np.array_equal(rivals._denoised(network, 80.0, x, np.full(3, 5.0)), x / 101)
    assert network.evaluations == 3


def _page(folder: Path, changed: dict[tuple[str, int], float], networks: int = 3) -> Path:
    """Rows in which ours has 1 and every rival 2, except what is changed; networks and blocks differ by as much."""
    lines = []
    for network, method in product(page.NETWORKS[:networks], page.ORDER):
        for nfe in page.nfes(method):
            key = {"dataset": page.DATASET, "network": network, "method": method, "nfe": nfe, "count": 10}
            mean = changed.get((method, nfe), 2.0 if method in page.RIVALS else 1.0) * int(network[-1])
            row = {"choice": f"fitted, {page.MATCHED}", "tuning": 9, "evaluations": nfe}
            row |= {name: [mean - 0.1, mean + 0.1] for name in page.FEATURES}
            lines.append(json.dumps({"key": json.dumps(key), **row}))
    lines.append(json.dumps({"key": json.dumps({"dataset": page.DATASET}), "accuracy": 0.5}))
    (folder / page.ROWS).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({}, "held held held"),
        ({(page.LEVELS, 5): 1.12}, "held held held"),
        ({(page.LEVELS, 5): 1.1}, "failed held held"),
        ({(page.WEIGHTS, 9): 1.01}, "held held held"),
        ({("UniPC, matched start", 9): 0.95}, "failed failed held"),
        ({("UniPC, from noise", 9): 0.95}, "failed held held"),  # few begins at the data's law
        ({(page.TUNED_HEUN, 17): 0.96}, "held held held"),
        ({(page.TUNED_HEUN, 35): 0.99}, "held held failed"),
    ],
)
def test_an_aim_holds_within_its_bound_of_the_best_rival(
    tmp_path: Path, changed: dict[tuple[str, int], float], words: str
) -> None:
    found = page.read(_page(tmp_path, changed) / page.ROWS)
    assert " ".join(page.verdict(aim, found).word for aim in page.AIMS) == words
    if (page.LEVELS, 5) in changed and words.startswith("failed"):
        assert f"above the bound classifier at 5: 0.91 ± 0.00 of {page.LEVELS}" in page.verdict(1, found).reason


def test_a_rival_that_is_better_fails_an_aim_whatever_is_missing(tmp_path: Path) -> None:
    found = page.read(_page(tmp_path, {(page.LEVELS, 5): 1.0}) / page.ROWS)
    few_rows = found[found.method.isin([page.MINUTES, page.LEVELS, page.FEW])]
    assert [page.verdict(aim, few_rows).word for aim in page.AIMS] == ["failed", "not measured yet", "not measured yet"]


def test_two_of_three_networks_decide_nothing(tmp_path: Path) -> None:
    text = " ".join(page.write(_page(tmp_path, {}, networks=2)).read_text(encoding="utf-8").split())
    assert text.count("**Not measured yet**: ") == len(page.AIMS)
    assert text.index("no longer one test") < text.index("What was measured")
    assert text.count("| converged network | not measured |") == text.count("| real images | not measured |") == 3
    assert "| **few** |" not in text
    assert "| few | **1.50 ± 0.71** |" in text


def test_the_page_is_that_of_its_rows(tmp_path: Path) -> None:
    for name in (page.ROWS, page.CONVERGED_ROWS, floors.ROWS):
        (tmp_path / name).write_bytes((DOCS / name).read_bytes())
    assert page.write(tmp_path).read_text(encoding="utf-8") == (DOCS / "rivals.md").read_text(encoding="utf-8")


def test_the_page_repeats_other_pages_as_they_are() -> None:
    """Numbers of LIMITS and CONVERGED that are not of this study's rows."""
    learned, real = ((DOCS / f"{name}.md").read_text(encoding="utf-8") for name in ("learned", "real"))
    for text, row, cells in (
        (learned, "| midpoint | {} |", re.findall(r"geodesic has (.*?) / (.*?) \(", " ".join(page.LIMITS.split()))[0]),
        (real, "| converged network | {} |", re.findall(r"alike: (.*?) / (.*?) \(", page.CONVERGED[page.DATASET])[0]),
    ):
        assert all(row.format(cell) in text for cell in cells), cells


def train_tiny(folder: Path) -> None:
    """Train a small network on images of two classes, each of which has its own start."""
    labels = np.arange(600) % 2
    images = np.random.default_rng(0).integers(0, 120, (600, 8, 8, 1)) + 130 * labels[:, None, None, None]
    with anisoflight.serve(data=folder) as client:
        client.put_dataset("tiny", images.astype(np.uint8), labels)
        run = client.create_run("tiny", dataset="tiny", stage="pretrain", kimg=0.064, batch=16, network=TINY)
        run.start(0.064)
        run.wait(progress=False)
        run.save("tiny")


def test_a_whole_study_of_rivals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tiny, from a network to the page; and once more, which measures nothing."""
    train_tiny(tmp_path / "data")
    rows = (page.PLAIN["UniPC", page.MATCHED], page.SHORTEST, page.LEVELS, page.WEIGHTS, page.ANALYTICAL)
    arguments = ["--data", str(tmp_path / "data"), "--docs", str(tmp_path), "--models", "tiny", "--dataset", "tiny"]
    arguments += ["--nfe", "3", "--count", "80", "--rows", *rows]
    assert rivals.main(arguments) == 0
    found, kept = page.read(tmp_path / page.ROWS), (tmp_path / page.ROWS).read_bytes()
    assert list(dict.fromkeys(found.method)) == list(rows)
    assert len(found) == len(rows) * len(page.FEATURES) * 2
    assert (found.evaluations == 3).all()
    assert (found[~found.method.isin([page.LEVELS, page.WEIGHTS])].tuning <= rivals.few_spends(3)).all()
    assert rivals.main(arguments) == 0
    assert (tmp_path / page.ROWS).read_bytes() == kept


def test_the_floor_is_the_distance_of_some_rows_to_the_others(tmp_path: Path) -> None:
    """Of more rows it is less, and each draw has its own."""
    features = np.random.default_rng(0).normal(size=(2000, 4))
    few, many = floors.draws(features, 100), floors.draws(features, 800)
    assert len(set(few)) == floors.DRAWS
    assert 0 < np.mean(many) < np.mean(few) / 2
    key = json.dumps({"dataset": "a", "features": "b", "count": 100})
    (tmp_path / floors.ROWS).write_text(json.dumps({"key": key, "distances": [1.0, 2.0, 3.0]}) + "\n")
    assert floors.floor(tmp_path, "a", "b", 100) == "2.00 ± 1.00"
    assert floors.floor(tmp_path, "a", "b") == ""
