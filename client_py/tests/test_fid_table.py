"""``anisoflight-table``: the paper's table, and results beside it."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from anisoflight.fid import table
from anisoflight.fid.table import NFES, published

Row = dict[str, Any]


def row(frechet: float, *, method: str = "pca", nfe: int | None = 9, seeds: str = "0-49999", **more: Any) -> Row:
    """A row as calc writes it, of fifty thousand samples on Inception features."""
    sample = {"solver": more.pop("solver", "heun"), "nfe": nfe}
    source = {"model": "m", "weights": "w", "seeds": seeds, "sample": sample}
    known = {"source": source, "asked": {"nfe": nfe}, "nfe": nfe, "seeds": seeds, "method": method, "count": 50_000}
    features = {"name": "inception.pkl", "hash": "f", "dimension": 2048, "published": True}
    judged = {"comparable": True, "notes": [], "benchmark": "cifar10", "frechet": frechet}
    full = {**known, "features": features, "reference": {"hash": "0123456789"}, **judged, **more}
    return {"key": json.dumps([method, nfe, seeds, source, more]), **full}


def printed(capsys: pytest.CaptureFixture[str], path: Path, rows: list[Row], *flags: str) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert table.main([str(path), *flags]) == 0
    return capsys.readouterr().out


def lines_of(text: str) -> dict[str, list[str]]:
    """The cells of a Markdown table, by method."""
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")
    ]
    return {line[0]: line[1:] for line in cells}


def test_the_paper_has_sixteen_rows_whose_best_are_these(capsys: pytest.CaptureFixture[str]) -> None:
    assert table.main(["--published"]) == 0
    text = capsys.readouterr().out
    assert text.count("(published)") == 16
    found = {(name, row.method): row.cells for name in NFES for row in published(name)}
    best = {row: min(cell.values[0] for cell in cells.values()) for row, cells in found.items()}
    ours = [("cifar10", "pca"), ("afhqv2", "dct"), ("ffhq", "isotropic"), ("imagenet64", "dct-per-class")]
    assert [best[row] for row in ours] == [1.803, 2.010, 2.242, 2.238]
    assert [best[name, "EDM"] for name in NFES] == [1.829, 2.042, 2.374, 2.276]


def test_blocks_of_seeds_join_in_a_cell(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    blocks = {"0-49999": 1.9, "50000-99999": 1.8, "100000-149999": 2.0}
    rows = [*(row(frechet, seeds=seeds) for seeds, frechet in blocks.items()), row(12.346, nfe=5)]
    path = tmp_path / "r.jsonl"
    text = printed(capsys, path, rows)
    joined = "1.800 (1.900 ± 0.100)"
    assert lines_of(text)["pca"] == ["12.35", joined, joined]
    assert "### CIFAR-10: inception.pkl, reference 01234567" in text
    assert "FID of several blocks of seeds: the least, and the mean ± half the range." in text


def test_published_rows_stand_below_the_measured_ones(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rows = [row(1.7, nfe=79), *(row(fid, nfe=nfe, method="mine", solver="unipc") for fid, nfe in ((2.0, 79), (9.0, 9)))]
    found = lines_of(printed(capsys, tmp_path / "r.jsonl", rows, "--published"))
    assert list(found)[-3:] == ["pca", "pca (published)", "mine"]
    assert found["method"] == [*(f"nfe {nfe}" for nfe in NFES["cifar10"]), "best FID"]
    assert found["pca"][-2:] == ["**1.700**", "**1.700**"]  # the best of two that were measured
    assert found["pca (published)"][-2:] == ["1.803", "1.803"]
    assert found["mine"] == ["9.000", *["–"] * 6, "2.000", "2.000"]


def test_what_is_not_comparable_is_marked(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    notes = ["100 images, fewer than 50000"]
    rows = [row(1.9), row(5.0, nfe=5, count=100, comparable=False, notes=notes)]
    text = printed(capsys, tmp_path / "r.jsonl", rows)
    assert lines_of(text)["pca"] == ["5.000<sup>a</sup>", "1.900", "1.900"]
    assert "<sup>a</sup> 100 images, fewer than 50000." in text
    pixels = {"name": "pixels", "hash": "p", "dimension": 4, "published": False}
    text = printed(capsys, tmp_path / "r.jsonl", [*rows, row(3.0, features=pixels)])
    assert text.count("###") == 2  # other features, another table
    assert "best Fréchet distance" in text


def test_rows_are_counted_once_and_never_mixed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    again = {**row(1.9), "key": "with precision", "precision": 0.7}
    rows = [row(1.9), again, row(4.0, solver="euler")]
    found = lines_of(printed(capsys, tmp_path / "r.jsonl", rows))
    assert [found[name][0] for name in ("pca", "pca (2)")] == ["**1.900**", "4.000"]
    found = lines_of(printed(capsys, tmp_path / "r.jsonl", [again], "--metric", "precision"))
    assert found["pca"] == ["0.700", "0.700"]


def test_the_least_ode_error_is_the_best(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    errors = {"heun": (8.0, 2.0), "unipc": (3.0, 1.0)}
    rows = [
        row(1.9, method=method, nfe=nfe, solver=method, ode_error=error)
        for method, pair in errors.items()
        for nfe, error in zip((5, 9), pair, strict=True)
    ]
    found = lines_of(printed(capsys, tmp_path / "r.jsonl", rows, "--metric", "ode_error"))
    assert found["method"] == ["nfe 5", "nfe 9", "best ode_error"]
    assert found["unipc"] == ["**3.000**", "**1.000**", "**1.000**"]
    assert found["heun"] == ["8.000", "2.000", "2.000"]


def test_csv_has_a_row_for_every_cell(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rows = [row(1.9), row(1.8, seeds="50000-99999"), row(7.0, nfe=None, method="folder")]
    text = printed(capsys, tmp_path / "r.jsonl", rows, "--published", "--form", "csv")
    found = list(csv.DictReader(io.StringIO(text)))
    assert len(found) == 5 * 8 + 2
    mine = next(line for line in found if line["origin"] == "measured" and line["nfe"] == "9")
    assert (mine["blocks"], mine["count"], mine["min"]) == ("2", "50000", "1.8")
    assert float(mine["mean"]) == pytest.approx(1.85)
    assert [line["nfe"] for line in found if line["method"] == "folder"] == [""]


def test_real_images_have_a_row_with_their_number(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    reference = {"hash": "0123456789", "floor": {"1000": 4.0, "5000": 0.8, "25000": 0.16}}
    rows = [
        row(1.9, reference=reference),
        row(1.95, reference=reference, method="EDM", solver="euler"),
        row(0.1, nfe=5),
    ]
    text = printed(capsys, tmp_path / "r.jsonl", [{**one, "count": 6000} for one in rows[:2]])
    found = lines_of(text)
    assert list(found)[-1] == "real images, N = 5000"
    assert found["real images, N = 5000"] == ["–", "0.800"]
    assert found["pca"] == ["**1.900**", "**1.900**"]  # the best of what was measured
    assert table.FLOOR in text
    text = printed(capsys, tmp_path / "r.jsonl", rows[:2], "--published", "--form", "csv")
    (real,) = [line for line in csv.DictReader(io.StringIO(text)) if line["origin"] == "real images"]
    assert (real["count"], real["nfe"], real["min"], real["mean"]) == ("25000", "", "0.16", "")
    assert "real images" not in printed(capsys, tmp_path / "r.jsonl", rows[2:])


def test_two_sets_of_features_that_rank_differently_are_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    dino: Row = {"features": {"name": "dino", "hash": "d", "dimension": 4, "published": False}}
    blocks = ("0-49999", "50000-99999")

    def measured(pca: tuple[float, float], edm: tuple[float, float], **more: Any) -> list[Row]:
        known = {"pca": (pca, "heun"), "EDM": (edm, "euler")}
        return [
            row(value, method=name, solver=solver, seeds=seeds, **more)
            for name, (values, solver) in known.items()
            for seeds, value in zip(blocks, values, strict=True)
        ]

    def warned(rows: list[Row], *flags: str) -> list[str]:
        return [
            line for line in printed(capsys, tmp_path / "r.jsonl", rows, *flags).splitlines() if "change order" in line
        ]

    one, other = measured((1.8, 2.0), (2.1, 2.3)), measured((12.5, 12.7), (11.4, 11.6), **dino)
    places = "1.900 and 2.200 in CIFAR-10: inception.pkl, reference 01234567; "
    places += "12.60 and 11.50 in CIFAR-10: dino, reference 01234567."
    message = f"pca and EDM change order at NFE 9, by more than half the range of seeds: {places}"
    assert warned([*one, *other]) == [message]
    assert warned([*one, *other], "--form", "latex") == [f"% {message}"]
    assert warned([*one, *measured((11.4, 12.6), (11.4, 11.6), **dino)]) == []  # 0.5 apart, half the range is 0.6
    assert warned([*one, *measured((2.4, 2.5), (3.1, 3.2), **dino)]) == []  # the same order
    assert warned([*one, *[{**line, "source": {**line["source"], "weights": "v"}} for line in other]]) == []
    places = "1.800 and 2.100 in CIFAR-10: inception.pkl, reference 01234567; "
    places += "12.50 and 11.40 in CIFAR-10: dino, reference 01234567."
    single = [line for line in [*one, *other] if line["seeds"] == blocks[0]]
    assert warned(single) == [f"pca and EDM change order at NFE 9, of one block of seeds, without a spread: {places}"]


def test_latex_is_whole(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rows = [row(1.9), row(3.0, method="a_b & 5%", notes=["odd"], comparable=False)]
    text = printed(capsys, tmp_path / "r.jsonl", rows, "--published", "--form", "latex")
    body = [line for line in text.splitlines() if line.endswith(r"\\") and "multicolumn" not in line]
    assert {line.count("&") - line.count(r"\&") for line in body} == {9}
    assert r"a\_b \& 5\%" in text
    assert r"$(g^{\mathrm{PCA}}_1, g^{\mathrm{PCA}}_2)$ (published)" in text
    assert r"3.000\textsuperscript{a}" in text
    assert text.count("{") == text.count("}")
    assert text.index(r"\toprule") < text.index(r"\bottomrule") < text.index(r"\end{tabular}")


def test_files_that_are_no_results(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps(row(1.9)) + "\n{}\n")
    assert table.main([str(path)]) == 1
    assert "r.jsonl, line 2: not a row of measurements" in capsys.readouterr().err
    path.write_text(json.dumps(row(1.9)) + "\n" + json.dumps(row(2.0, nfe=11))[:-20])  # a torn end is no row
    assert table.main([str(path)]) == 0
    assert lines_of(capsys.readouterr().out)["pca"] == ["1.900", "1.900"]
    assert table.main([str(tmp_path / "nothing.jsonl")]) == 1
