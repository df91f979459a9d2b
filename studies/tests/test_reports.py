"""The reports: what is kept, chosen and said of measurements."""

from __future__ import annotations

import json
import re
import subprocess
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

from anisoflight.fid.cells import rows_of
from studies import floors, rival
from studies.floors import floor
from studies.reports import (
    diffuserspage,
    foreignpage,
    images,
    imagespage,
    learned,
    learnedpage,
    posteriorspage,
    real,
    rivalspage,
)
from studies.reports.page import Page, spread

if TYPE_CHECKING:
    from collections.abc import Iterable


def test_a_page_with_its_numbers(tmp_path: Path) -> None:
    page = Page(tmp_path, "page", "Title")
    page.heading("part")
    page.table(pd.DataFrame({"a": ["x", "y"], "b": [1, 2]}))
    page.numbers(pd.DataFrame({"v": [1 / 3]}), "part")
    text = page.write().read_text(encoding="utf-8")
    assert text == (
        "# Title\n\n## part\n\n| a | b |\n| --- | --- |\n| x | 1 |\n| y | 2 |\n\n"
        "All 1 rows: [page-part.csv](page-part.csv).\n"
    )
    assert (tmp_path / "page-part.csv").read_text() == "v\n0.333333\n"


ROOT = Path(__file__).parents[2]
REAL = {
    "Heun, EDM's levels, σ_max 80": "EDM, σ_max 80",
    "Heun, geodesic": "geodesic, nothing trained",
    "Heun, geodesic of order 1": "geodesic of order 1",
    "iPNDM-4, EDM's levels": "iPNDM-4",
    "DPM-Solver++(2M), EDM's levels": "DPM-Solver++(2M)",
    "`few`": "few",
}
"""Rows of docs/schedules.md, and what they are called in the report."""


def _document(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _printed(line: str, count: int) -> list[list[str]]:
    """The numbers of the last `count` cells of a line."""
    return [re.findall(r"[\d.]+", cell) for cell in line.replace("*", "").strip().split("|")[:-1][-count:]]


def _rounded(value: float, digits: str) -> bool:
    return abs(value - float(digits)) <= 0.5001 * 10.0 ** -len(digits.partition(".")[2])


def _cifar(sampler: str, nfe: int) -> pd.DataFrame:
    """The distances by classifier and by pca-64 of three networks of CIFAR-10 in the server."""
    rows = real.read()
    return rows[(rows.method == sampler) & (rows.nfe == nfe)].pivot_table("frechet", "network", "features")


def _torch(sampler: str, nfe: int) -> pd.DataFrame:
    """The same of the three in torch."""
    found = diffuserspage.read(ROOT / "studies/docs" / diffuserspage.ROWS)
    found = found[found.network != diffuserspage.EARLY]
    by = {name: diffuserspage.distances(found, name).loc[(sampler, nfe)].dropna() for name in real.FEATURES}
    return pd.DataFrame(by)


def _lies_within(values: pd.Series, cell: list[str]) -> bool:
    """Whether mean and deviation over networks are rounded to two numbers."""
    return all(map(_rounded, (float(values.mean()), float(values.std())), cell))


def _images(method: str, nfe: int, dataset: str = imagespage.AGAIN_TRAINED) -> pd.DataFrame:
    """The distances of the networks of a data set, of the study with images."""
    found = imagespage.rows(ROOT / "studies/docs")
    found = found[(found.dataset == dataset) & (found.method == method) & (found.nfe == nfe)]
    return found.set_index("network")[list(real.FEATURES)]


def _best(nfe: int, features: str, methods: Iterable[str]) -> pd.Series:
    """The distances of the method with the least mean."""
    by = {method: rows for method in methods if len(rows := _images(method, nfe)[features])}
    assert {len(rows) for rows in by.values()} == {3}
    return min(by.values(), key=lambda rows: rows.mean())


SEARCHES = imagespage.FEW, *(f"{imagespage.FEW}{imagespage.AGAIN}{seed}" for seed in range(1, images.SEARCHES))
"""The rows of `few` by seeds of the search; README has the first of them."""

PLAIN = imagespage.ANALYTICAL, *imagespage.PLAIN.values()
"""The plain rivals, measured on all networks or on none; at 9 those from the data's law and AFS."""


def test_whether_to_use_it_is_what_the_rows_say() -> None:
    """The distances in README, in order; at 9 all samplers are as good as converged ones."""
    said = _joined()
    classifier, components = real.FEATURES
    ours, ends = _images(imagespage.FEW, 3), _images(imagespage.CONVERGED, 48)
    learned, at_5, at_9 = _images(imagespage.WEIGHTS, 3), _images(imagespage.FEW, 5), _images(imagespage.FEW, 9)
    wanted = [
        *(ours[classifier], ends[classifier], _best(3, classifier, PLAIN)),
        *(ours[components], ends[components], _best(3, components, PLAIN)),
        *(learned[classifier], learned[components]),
        *(at_5[classifier], at_5[components], _best(5, classifier, PLAIN), _best(5, components, PLAIN)),
        *(_best(9, classifier, PLAIN), _best(9, components, PLAIN), at_9[classifier], at_9[components]),
    ]
    part = said[said.index("**Yes, at 3") : said.index("An earlier search lost 8")]
    found = re.findall(r"(\d*\.\d+) ± (\d*\.\d+)", part)
    assert len(found) == len(wanted)
    for cell, values in zip(found, wanted, strict=True):
        assert len(values) == 3
        assert _lies_within(values, list(cell))
    starts = [key[1] for key, name in imagespage.PLAIN.items() if name in PLAIN]
    sigmas = {imagespage.NOISE: images.NOISE_SIGMAS, imagespage.MATCHED: images.LAW_SIGMAS}
    tried = len(images.RHOS) * (sum(len(sigmas[start]) for start in starts) + 2 * 4)
    assert f"the best of {tried} tuned plain samplers" in said
    assert all(len(_images(name, nfe)) == 3 for name in PLAIN for nfe in (3, 5))
    mean = _short(float(np.mean([_images(search, 5)[classifier] for search in SEARCHES])))
    assert f"by other seeds of the search up to {_worst(5):.2f} on one network and {mean} in the mean" in said
    assert f"another seed of the search has {_worst(9):.2f} on one network" in said
    for name in real.FEATURES:
        assert max(at_9[name].mean(), _best(9, name, PLAIN).mean()) < ends[name].mean()
    rows = diffuserspage.read(ROOT / "studies/docs" / diffuserspage.ROWS)
    rows = rows[rows.network != diffuserspage.EARLY]
    without = (diffuserspage.PAIRED, diffuserspage.WIDE)
    lost, compared = len(diffuserspage.losses(rows, without)), diffuserspage.compared(rows, without)
    assert f"An earlier search lost {lost} of {compared} comparisons with diffusers' schedulers without data" in said


def test_what_is_said_of_networks_of_others_is_that_of_the_rows() -> None:
    said, found = _joined(), foreignpage.rows(ROOT / "studies/docs")
    errors = found[found.nfe > 0].pivot_table(foreignpage.SQUARES, ["network", "nfe"], "method")
    tuned, learned = ((errors[foreignpage.FEW] / errors[names].min(axis=1)) for names in (TUNED, LEARNED))
    eighth = tuned["ZTF_ScoreNet64"]
    others = tuned.drop("ZTF_ScoreNet64")
    seconds = found[found.method == foreignpage.FEW].seconds
    assert (len(tuned), len(learned), sum(map(len, (others, eighth)))) == (24, 24, 24)
    assert "on seven of eight networks that others trained, of galaxies, its samplers have" in said
    spread_of = f"{_short(others.min())} to {_short(others.max())}"
    assert f"its samplers have {spread_of} times the squared error of the best of 84 tuned samplers" in said
    assert f"after {seconds.min():.0f} to {seconds.max():.0f} seconds" in said
    assert f"it lost at 3, 5 and 9, by {eighth.min():.2f} to {eighth.max():.2f}" in said
    assert round(float(np.exp(np.log(learned).mean())), 1) == 1.0
    many = foreignpage.with_as_many(found)
    with_many = many[many.nfe > 0].pivot_table(foreignpage.SQUARES, ["network", "nfe"], "method")
    won = int((with_many[foreignpage.FEW] <= with_many[LEARNED].min(axis=1)).sum())
    of_all = f"in {int((learned <= 1).sum())} of {len(learned)} comparisons"
    assert f"{of_all} (with a `budget` of as many, in {won}), but as much in the mean" in said
    assert len(with_many) == len(learned)
    assert f"as it loses by up to {learned.max():.2f}" in said
    spent = found[found.nfe > 0].pivot_table("tuning", ["network", "nfe"], "method")
    assert round((spent[foreignpage.WEIGHTS] / spent[foreignpage.FEW]).median()) == 2
    large = {name: _images(name, nfe, imagespage.LARGE)[real.FEATURES[0]].mean() for name, nfe in AT_32.items()}
    ours, ends = large.pop(imagespage.FEW), large.pop(imagespage.CONVERGED)
    learns = large.pop(imagespage.WEIGHTS)
    assert f"On one at 32×32, by the classifier, {ours:.2f}, converged {ends:.2f}, the best of 60" in said
    assert f"such samplers {min(large.values()):.2f}, learned levels and weights {learns:.2f}" in said
    pairs = posteriorspage.compared(posteriorspage.rows(ROOT / "studies/docs"))
    won = int((pairs.difference <= pairs.error).sum())
    assert f"52 plain solvers, Euler's and the midpoint method, or better, in {won} of {len(pairs)} comparisons" in said


def test_the_table_of_networks_of_others_is_that_of_the_rows() -> None:
    lines, found = _document("docs/results.md"), foreignpage.rows(ROOT / "studies/docs")
    for cells in foreignpage.of_each(found).to_numpy().tolist():
        best_of = {foreignpage.PLAIN: "the best of 48 plain solvers", foreignpage.ANALYTICAL: "the best of 24 with AFS"}
        rival, *numbers = map(str, cells)
        row = " | ".join([best_of.get(rival, rival), *(number.removeprefix("0") for number in numbers)])
        assert f"| {row} |" in lines
    table, said = foreignpage.ratios(found), " ".join(lines.split())
    won = int((table[list(foreignpage.MEASURES)] <= 1).all(axis=1).sum())
    assert f"two Fréchet distances in {won} of {len(table)} comparisons, for 22" in said
    assert f"a mean of {_short(table[table.nfe == 3][foreignpage.SQUARES].mean())} of the best rival's error" in said
    by = table.set_index(["network", "nfe"])[foreignpage.SQUARES]
    assert f"HSC 64 at 9 ({by['hsc_ScoreNet64', 9]:.2f})" in said
    assert f"on LSST 60 at 5 ({by['lsst_ScoreNet60', 5]:.2f})" in said
    many = foreignpage.with_as_many(found)
    by = foreignpage.ratios(many).set_index(["network", "nfe"])[foreignpage.SQUARES]
    high, low = by["hsc_ScoreNet64", 9], by["lsst_ScoreNet60", 5]
    assert f"as many evaluations HSC 64 has {high:.2f} at 9, LSST 60 still {low:.2f}" in said
    won_by_error = foreignpage.of_each(many).set_index("rival")["at most 1"]
    assert f"beats learned weights on {won_by_error[foreignpage.WEIGHTS]} pairs as before" in said
    shares = foreignpage.shares(many)
    assert f"It spends {_short(shares.min())} to {_short(shares.max())} of it" in said
    assert f"In {foreignpage.beyond(found, table)} of them converged samples themselves" in said


def test_what_results_say_of_32_is_that_of_the_rows() -> None:
    said = " ".join(_document("docs/results.md").split())

    def cells(method: str, nfe: int) -> str:
        classifier, components = (_images(method, nfe, imagespage.LARGE)[name].mean() for name in real.FEATURES)
        return f"{classifier:#.3g} / {components:#.3g}"

    law = imagespage.PLAIN["UniPC", imagespage.MATCHED]
    names = {
        imagespage.FEW: "at 3 `few` has",
        imagespage.WEIGHTS: "levels and weights learned",
        law: "UniPC from the data's Gaussian",
    }
    names |= {imagespage.ANALYTICAL: "AFS", imagespage.PLAIN["iPNDM-4", imagespage.NOISE]: "iPNDM-4"}
    for method, name in names.items():
        assert f"{name} {cells(method, 3)}" in said
    assert f"at 5 `few` has {cells(imagespage.FEW, 5)}, converged samples {cells(imagespage.CONVERGED, 24)}" in said
    for method, name in {**names, law: "UniPC"}.items():
        assert method == imagespage.FEW or f"{name} at 5 {cells(method, 5)}" in said
    learned, ours = (_images(method, 5, imagespage.LARGE).iloc[0] for method in (imagespage.WEIGHTS, imagespage.FEW))
    apart = [f"{learned[name] / ours[name] - 1:.0%}".removesuffix("%") for name in real.FEATURES]
    assert "learned weights at 5, which differ by {} and {} %".format(*apart) in said
    floors_of = [floor(ROOT / "studies/docs", imagespage.LARGE, name, 1250) for name in real.FEATURES]
    assert "real images " + " / ".join(floors_of).replace("0.", ".") in said


LEARNED = [foreignpage.LEVELS, foreignpage.WEIGHTS]
TUNED = [foreignpage.PLAIN, foreignpage.ANALYTICAL, foreignpage.SHORTEST]
AT_32 = {imagespage.FEW: 3, imagespage.CONVERGED: 24, imagespage.ANALYTICAL: 3, imagespage.WEIGHTS: 3} | dict.fromkeys(
    (imagespage.PLAIN["iPNDM-4", imagespage.NOISE], imagespage.PLAIN["UniPC", imagespage.MATCHED]), 3
)
"""Rows of the network at 32×32, by evaluations."""


def _short(value: float) -> str:
    return f"{value:.2f}".removeprefix("0")


def _worst(nfe: int) -> float:
    """The largest distance by the classifier over networks and seeds of the search."""
    return max(_images(search, nfe)["classifier"].max() for search in SEARCHES)


RESULTS = {
    "`few`": imagespage.FEW,
    "iPNDM-4 from the data's Gaussian": imagespage.PLAIN["iPNDM-4", imagespage.MATCHED],
    "UniPC from the data's Gaussian": imagespage.PLAIN["UniPC", imagespage.MATCHED],
    "AFS": imagespage.ANALYTICAL,
    "levels and weights learned (ours, after S4S)": imagespage.WEIGHTS,
}
"""Rows of the table of docs/results.md, and their names in the study."""


@pytest.mark.parametrize("label", RESULTS)
def test_the_table_of_results_is_that_of_the_rows(label: str) -> None:
    line = next(x for x in _document("docs/results.md").splitlines() if x.startswith(f"| {label} |"))
    for nfe, numbers in zip(imagespage.NFE, _printed(line, 3), strict=True):
        rows = _images(RESULTS[label], nfe)
        assert len(rows) == 3
        assert _lies_within(rows["classifier"], numbers[:2])
        assert _lies_within(rows["pca-64"], numbers[2:])


def test_what_results_say_of_letters_is_that_of_the_rows() -> None:
    said = " ".join(_document("docs/results.md").split())
    found = re.findall(r"(\d\.\d+) ± (\.\d+)", said[said.index("letters of eleven scripts") : said.index("It tries")])
    cells = [(method, nfe) for method in (imagespage.FEW, imagespage.ANALYTICAL) for nfe in (3, 5)]
    cells.append((imagespage.CONVERGED, 48))
    assert len(found) == len(cells)
    for cell, of in zip(found, cells, strict=True):
        rows = _images(*of, "glyphs16")["classifier"]
        assert len(rows) == 3
        assert _lies_within(rows, list(cell))


def test_what_results_say_of_few_is_that_of_the_rows() -> None:
    said, found = " ".join(_document("docs/results.md").split()), imagespage.rows(ROOT / "studies/docs")
    held = [
        re.search(r"(\d) of 9 comparisons hold", imagespage.verdict(found[found.dataset == dataset], 3))
        for dataset in (imagespage.AGAIN_TRAINED, imagespage.DATASET)
    ]
    assert held[0] is not None
    assert held[1] is not None
    assert (
        f"by one standard error, holds in {held[0][1]} of 9 comparisons, of an earlier search in {held[1][1]} of"
        in said
    )
    table = imagespage.searches(found[found.dataset == imagespage.AGAIN_TRAINED])
    assert table.searches.tolist() == [3 * images.SEARCHES] * 3
    cells = [" / ".join(row[f"{name}, mean"] for name in real.FEATURES) for _, row in table.iterrows()]
    means = "{}, {} and {}".format(*cells).replace("0.", ".")
    assert f"Over five seeds of the search** `few` has {means} at 3, 5 and 9, ± over networks" in said
    spreads = [cell.removesuffix("%") for cell in table["classifier, spread"]]
    assert "On one network seeds vary by {}, {} and {} % by the classifier".format(*spreads) in said
    assert f"up to {_worst(5):.2f} at 5 and {_worst(9):.2f} at 9" in said
    line = next(x for x in _document("docs/results.md").splitlines() if x.startswith("| converged network |"))
    (ends, *_) = _printed(line, 3)
    for name, cell in zip(real.FEATURES, (ends[:2], ends[2:]), strict=True):
        assert _lies_within(_images(imagespage.CONVERGED, 48)[name], cell)


STARTS = {
    "noise": imagespage.NOISE,
    "noise of a fitted deviation": imagespage.SCALED,
    "the data's Gaussian": imagespage.MATCHED,
}


@pytest.mark.parametrize("label", STARTS)
def test_what_results_say_of_bands_is_that_of_the_rows(label: str) -> None:
    line = next(x for x in _document("docs/results.md").splitlines() if x.startswith(f"| {label} |"))
    ways = product((imagespage.FITTED, imagespage.LEARNED), (imagespage.ONE, imagespage.BANDS))
    for (how, which), cell in zip(ways, _printed(line, 4), strict=True):
        assert _lies_within(_images(f"{STARTS[label]}, {which}, {how}", 3)["classifier"], cell)


def test_what_results_say_of_diffusers_is_that_of_the_rows() -> None:
    said = " ".join(_document("docs/results.md").split())
    for sampler, nfe in product(("few, with data", diffuserspage.BEST), (3, 5)):
        assert spread(_torch(sampler, nfe)["classifier"]) in said
    assert f"converged {spread(_torch(diffuserspage.CONVERGED, 40)['classifier'])}" in said


def test_the_floor_and_the_converged_network_are_those_of_the_rows() -> None:
    """In the tables of the documents, of CIFAR-10; and of Fashion-MNIST."""
    docs = ROOT / "studies/docs"
    real_images = " / ".join(floor(docs, rivalspage.DATASET, name) for name in real.FEATURES)
    ends = " / ".join(rivalspage.converged(docs, "fashion16", name) for name in real.FEATURES)
    assert f"| real images, 20 draws | {real_images.replace('0.', '.')} |" in _document("docs/results.md")
    assert f"converged ({ends})" in " ".join(_document("docs/results.md").split())
    means = real.read().groupby(["method", "nfe", "features"]).frechet.mean()["EDM, σ_max 80", 79]
    for label, values in (
        ("converged network: Heun, EDM's levels, 79", means[list(real.FEATURES)]),
        ("real images, 20 draws", [float(part.split()[0]) for part in real_images.split(" / ")]),
    ):
        line = next(x for x in _document("docs/schedules.md").splitlines() if x.startswith(f"| {label} |"))
        assert all(map(_rounded, values, _printed(line, 6)[0]))


def _numbers(row: dict[str, object]) -> str:
    """The distances of a row."""
    return json.dumps([row.get(name) for name in ("frechet", *rivalspage.FEATURES)])


def _git(*arguments: str) -> list[str]:
    """The lines that git prints; skips the test if the repository has no history."""
    git = ["git", "-C", str(ROOT)]
    if subprocess.run([*git, "rev-parse", "--is-shallow-repository"], capture_output=True).stdout != b"false\n":
        pytest.skip("needs the history")
    return subprocess.run([*git, *arguments], capture_output=True, check=True, text=True).stdout.splitlines()


ONLY_IN_HISTORY = {
    "alone": "b8183cd4",
    "fair": "b8183cd4",
    "families": "b8183cd4",
    "gain": "a1e8ca88",
    "joint": "b8183cd4",
    "solvers": "b8183cd4",
}
"""The pages that were taken out with their rows, and a commit that has them."""


def test_rows_that_are_only_in_the_history_are_named() -> None:
    """Every file of rows that was ever in studies/docs is there, or README names its page and the commit."""
    rows = ("studies/docs/*.csv", "studies/docs/*.jsonl")
    ever = _git("log", "--format=", "--name-only", "--diff-filter=A", "--", *rows)
    missing = {name for name in ever if not (ROOT / name).exists()}
    found = {
        name
        for commit in set(ONLY_IN_HISTORY.values())
        for name in _git("ls-tree", "--name-only", commit, "studies/docs/")
        if ONLY_IN_HISTORY.get(Path(name).stem.partition("-")[0]) == commit
    }
    assert missing == {name for name in found if name.endswith(("csv", "jsonl"))}
    readme = _document("studies/README.md")
    for page, commit in ONLY_IN_HISTORY.items():
        assert f"studies/docs/{page}.md" in found
        assert re.search(rf"\b{page}\b[^.]*`{commit}`", readme), page


@pytest.mark.parametrize("name", sorted(file.name for file in (ROOT / "studies/docs").glob("*-rows.jsonl")))
def test_no_row_was_ever_removed(name: str) -> None:
    """The distances of each line that a commit took out are still there, under whatever name."""
    file = ROOT / "studies/docs" / name
    history = _git("log", "-p", "--format=", "--", str(file))
    removed = [json.loads(line[1:]) for line in history if line.startswith("-{")]
    there = set(map(_numbers, rows_of(file)))
    assert not [row["key"] for row in removed if _numbers(row) not in there]


def test_the_table_of_schedules_is_that_of_the_rows() -> None:
    means = real.read().groupby(["method", "nfe", "features"]).frechet.mean()
    lines = _document("docs/schedules.md").splitlines()
    for label, method in REAL.items():
        cells = _printed(next(x for x in lines if x.startswith(f"| {label} |")), 6)
        shown = {nfe: cell for nfe, cell in zip((3, 5, 9, 13, 17, 35), cells, strict=True) if cell}
        assert set(shown) == set(means[method].index.get_level_values("nfe")) - {79}
        for nfe, cell in shown.items():
            assert all(map(_rounded, means[method, nfe][["classifier", "pca-64"]], cell)), (label, nfe)


def test_where_few_loses_is_what_the_rows_say() -> None:
    """The networks on which the documents say that `few` is worse than its rival."""

    def worse(ours: pd.DataFrame, theirs: pd.DataFrame) -> list[int]:
        return [int(n) for n in (ours - theirs > 0).sum()]

    cifar = {nfe: worse(_cifar("few", nfe), _cifar("iPNDM-4", nfe)) for nfe in (3, 5, 9)}
    assert cifar == {3: [0, 0], 5: [0, 2], 9: [2, 1]}  # classifier, pca-64
    rows = product((3, 5, 9), ("few, with data", "few"))
    lost = {key: sum(worse(_torch(key[1], key[0]), _torch(diffuserspage.BEST, key[0]))) for key in rows}
    assert [sum(lost[nfe, s] for nfe in (3, 5, 9)) for s in ("few, with data", "few")] == [2, 6]
    assert worse(_images(imagespage.FEW, 3), _images(imagespage.WEIGHTS, 3)) == [0, 1]


def _joined() -> str:
    return " ".join(_document("README.md").split())


def test_the_page_of_real_images_is_that_of_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(real, "DOCS", tmp_path)
    page = real.write().read_text(encoding="utf-8")
    assert page == _document("studies/docs/real.md")
    assert (tmp_path / "real-rows.csv").read_text() == _document("studies/docs/real-rows.csv")


def test_the_rival_is_exact_on_a_normal_law() -> None:
    """With many levels only the start's error is left: the flow maps σ_max to √λ σ_max/√(λ + σ_max²)."""
    variances, means, top = np.array([4.0, 0.25]), np.array([1.0, 0.0]), 20.0
    left = np.sqrt(variances / (variances + top**2))  # of x − m at σ_max
    want = ((np.sqrt(variances) - left * top) ** 2 + (left * means) ** 2).sum() / variances.sum()
    levels = np.append(rival.ruled(4000, top, 7), 0)
    assert rival.w2_squared(levels, variances, means) == pytest.approx(want, rel=1e-4)
    assert rival.w2_squared(levels, variances, means, midpoint=True) == pytest.approx(want, rel=1e-4)
    steps = np.append(rival.geodesic(40, variances, top), 0)
    assert rival.w2_squared(steps, variances, means) == pytest.approx(want, rel=0.1)


def test_the_table_of_tuned_levels_is_that_of_its_rows() -> None:
    rows = pd.read_csv(ROOT / "studies/docs/rival-gaussian.csv").set_index(["schedule", "nfe"])["w2_squared"]
    text = _document("docs/schedules.md")
    for start, name in (
        ("EDM's levels (grid `edm`), ρ 7", "edm, σ_max {}, ρ 7"),
        ("grid `polynomial`, ρ 7", "polynomial, σ_max {}, ρ 7"),
        ("grid `polynomial`, ρ 3", "polynomial, σ_max {}, ρ 3"),
        ("geodesic", "geodesic, σ_max {}"),
        ("EDM's levels, ρ 7, second point in the middle", "edm, midpoint, σ_max {}, ρ 7"),
    ):
        line = [x for x in text.splitlines() if x.startswith(f"| {start} |")][-1]
        for sigma, (digits,) in zip((80, 40, 20, 10), _printed(line, 4), strict=True):
            assert _rounded(rows[name.format(sigma), 9], digits), (start, sigma)


Distances = dict[tuple[str, str], list[float]]
"""By sampler and row, a distance for each network."""
_EVEN: Distances = {
    (learnedpage.HEUN, learnedpage.GEODESIC): [2, 3, 4],
    (learnedpage.IPNDM, learnedpage.START): [1, 2, 3],
    **{(learnedpage.HEUN, row): [2, 3, 4] for row in (*learnedpage.LEARNED, learnedpage.LOSS)},
    **{(learnedpage.IPNDM, row): [1, 2, 3] for row in (*learnedpage.LEARNED, learnedpage.LOSS)},
}
"""Nothing is gained or lost anywhere."""


def _learned(folder: Path, values: Distances, other: Distances | None = None) -> pd.DataFrame:
    """Rows as fid calc writes them, by the classifier and by pca-64 (other, if they differ); the blocks differ by 2."""
    lines = []
    for features, nfe in product(learnedpage.FEATURES, learnedpage.NFE):
        found = other if other and features == "pca-64" else values
        for (sampler, method), column in found.items():
            for (network, distance), (block, more) in product(enumerate(column, 1), (("0-9", 1), ("100-109", -1))):
                row = {
                    "key": str(len(lines)),
                    "benchmark": f"network {network}",
                    "method": method,
                    "asked": {"nfe": nfe},
                    "seeds": block,
                    "count": 10,
                    "frechet": distance + more,
                    "features": {"name": features},
                    "reference": {"floor": {"10": 0.5}},
                    "source": {"sample": {"solver": "heun" if sampler == learnedpage.HEUN else "ipndm"}},
                }
                lines.append(json.dumps(row) + "\n")
    (folder / learnedpage.ROWS).write_text("".join(lines), encoding="utf-8")
    return learnedpage.read(folder / learnedpage.ROWS)


def _words(found: pd.DataFrame) -> dict[str, str]:
    return {name: verdict.word for name, verdict in learnedpage.verdicts(found).items()}


@pytest.mark.parametrize(
    ("g", "word"), [([1.0, 2.1, 3.3], "held"), ([1.1, 2.2, 3.2], "failed"), ([1.1, 2.2], "not measured yet")]
)
def test_worse_than_the_start_is_by_more_than_the_spread_of_the_difference(
    tmp_path: Path, g: list[float], word: str
) -> None:
    """The networks differ by 1, and the second g is above each of them by about as much."""
    found = _learned(tmp_path, {**_EVEN, (learnedpage.IPNDM, "g"): g})
    verdict = learnedpage.verdicts(found)["a"]
    assert verdict.word == word
    if word == "failed":
        assert "8 of 64 differences are above their spread: g with iPNDM-4 at 9, classifier: +0.17 ± 0.06" in (
            verdict.reason
        )
    if word == "not measured yet":
        assert verdict.reason == "not all three networks have " + "; ".join(
            f"g with iPNDM-4 at {nfe}" for nfe in learnedpage.NFE
        )


@pytest.mark.parametrize(("heun", "word"), [(0.89, "held"), (0.91, "failed")])
def test_a_tenth_below_the_loss_of_edm_is_with_both_samplers(tmp_path: Path, heun: float, word: str) -> None:
    loss, factors = [2.0, 3.0, 4.0], {learnedpage.HEUN: heun, learnedpage.IPNDM: 0.8}
    rows: Distances = {(sampler, learnedpage.LOSS): loss for sampler in factors}
    rows |= {(sampler, "g"): [factor * value for value in loss] for sampler, factor in factors.items()}
    found = _learned(tmp_path, {**_EVEN, **rows})
    assert _words(found)["b"] == word
    shown = learnedpage.quotient_table(found, learnedpage.HEUN).set_index("row")
    assert shown.loc["g", "17"] == f"{heun:.2f} ± 0.00 / {heun:.2f} ± 0.00"


def test_two_subspaces_must_win_where_a_user_would_be(tmp_path: Path) -> None:
    """That is with the sampler whose mean is lower, here iPNDM-4, and with both kinds of features."""
    worse, better = (learnedpage.HEUN, "PCA"), (learnedpage.IPNDM, "DCT")
    other_sampler = {**_EVEN, worse: [1.5, 2.5, 3.5]}
    assert _words(_learned(tmp_path, other_sampler))["c"] == "failed"
    gain = {**_EVEN, better: [0.9, 1.8, 2.9]}
    assert _words(_learned(tmp_path, gain, _EVEN))["c"] == "failed"
    verdict = learnedpage.verdicts(_learned(tmp_path, gain))["c"]
    assert verdict.word == "held"
    assert "DCT at 9: -0.13 ± 0.06 / -0.13 ± 0.06" in verdict.reason
    assert _words(_learned(tmp_path, {**_EVEN, better: [0.5, 2.0, 3.4]}))["c"] == "failed"  # below the spread


def test_the_tables_of_learned_schedules_pair_by_network(tmp_path: Path) -> None:
    """Blocks are averaged; a row that was measured again counts once, as it was last."""
    rows = {**_EVEN, (learnedpage.HEUN, "g"): [1.9, 2.8, 3.7], (learnedpage.HEUN, "edm"): [9]}
    found = _learned(tmp_path, rows)
    file = tmp_path / learnedpage.ROWS
    file.write_text(_again(file, distance=7.0), encoding="utf-8")
    assert len(learnedpage.read(file)) == len(found)
    shown = learnedpage.table(learnedpage.read(file), "classifier", learnedpage.HEUN).set_index("row")
    assert list(shown.index) == ["geodesic", "edm", "EDM's loss continued", "g", "{g_y}", "DCT", "PCA"]
    assert shown.loc["g", "9"] == "2.80 ± 0.90"
    assert shown.loc["g", "9, less start"] == "-0.20 ± 0.10"
    assert shown.loc["geodesic", "9, less start"] == ""
    assert (shown.loc["edm", "9"], shown.loc["edm", "9, less start"]) == ("7.50", "+5.50")


def _again(file: Path, distance: float) -> str:
    """The rows, and that of EDM's levels at 9 in the first block, by the classifier, measured again."""
    text = file.read_text(encoding="utf-8")
    rows = [row for row in map(json.loads, text.splitlines()) if row["method"] == "edm" and row["asked"] == {"nfe": 9}]
    (old,) = (row for row in rows if row["seeds"] == "0-9" and row["features"]["name"] == "classifier")
    return text + json.dumps({**old, "key": "again", "frechet": distance}) + "\n"


def test_the_page_of_learned_schedules_says_what_is_not_measured(tmp_path: Path) -> None:
    page = " ".join(learnedpage.write(tmp_path).read_text(encoding="utf-8").split())
    assert "**No row is measured yet.**" in page
    assert page.count("**Not measured yet**: ") == len(learnedpage.AIMS)
    assert page.index("before any row was measured") < page.index("What was measured")


def test_the_page_of_learned_schedules_is_that_of_its_rows(tmp_path: Path) -> None:
    docs = ROOT / "studies" / "docs"
    for file in (docs / floors.ROWS, *docs.glob("learned-*.jsonl")):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    assert learnedpage.write(tmp_path).read_text(encoding="utf-8") == _document("studies/docs/learned.md")
    assert (tmp_path / "learned-rows.csv").read_text() == (docs / "learned-rows.csv").read_text()


def test_the_page_on_learning_has_the_rows_of_the_study() -> None:
    found, document = learnedpage.read(ROOT / "studies" / "docs" / learnedpage.ROWS), _document("docs/learning.md")
    blocks = found[found.nfe == 9].groupby(["method", "sampler", "features", "network"]).frechet.mean()
    cells_of = blocks.groupby(["method", "sampler", "features"]).agg(["mean", "std"])
    methods = {
        "start": (learnedpage.GEODESIC, learnedpage.START),
        "EDM's loss continued": (learnedpage.LOSS, learnedpage.LOSS),
        "trajectory loss, path stays": ("trajectory loss, path stays",) * 2,
        "trajectory loss, one path learned (g)": ("g", "g"),
    }
    for said, pair in methods.items():
        cells = [
            " / ".join(
                "{:.2f} ± {:.2f}".format(*cells_of.loc[(method, sampler, features)])
                for features in learnedpage.FEATURES
            )
            for method, sampler in zip(pair, (learnedpage.HEUN, learnedpage.IPNDM), strict=True)
        ]
        assert f"| {said} | {' | '.join(cells)} |" in document


def test_the_page_on_learning_has_the_rows_of_blind_data() -> None:
    lines = _document("studies/docs/blind-rows.jsonl").splitlines()
    found = pd.DataFrame(
        {**{name: row[name] for name in ("method", "nfe", "frechet")}, "features": row["features"]["name"]}
        for row in map(json.loads, lines)
    )
    assert set(found.groupby(["method", "nfe", "features"]).size()) == {2}  # blocks
    means = found.groupby(["method", "nfe", "features"]).frechet.mean()
    document = _document("docs/learning.md").splitlines()
    of = {"start": "start", "EDM's loss continued": "EDM's loss continued", "the run without options": "learned"}
    columns = [("Heun", 9), ("iPNDM-4", 9)]
    for said, name in of.items():
        line = next(x for x in document if x.startswith(f"| {said} |") and " ± " not in x)
        for (sampler, nfe), cell in zip(columns, _printed(line, 2), strict=True):
            values = [float(means[f"{sampler}, {name}", nfe, features]) for features in learnedpage.FEATURES]
            assert all(map(_rounded, values, cell))
    by = means.unstack(0)
    for sampler in ("Heun", "iPNDM-4"):
        assert (by[f"{sampler}, learned"] < by[f"{sampler}, start"]).all()
        continued = by[f"{sampler}, learned"] - by[f"{sampler}, EDM's loss continued"]
        assert set(np.sign(continued.loc[[9, 13]])) == {-1 if sampler == "Heun" else 1}  # better; worse with iPNDM-4
    assert set(found[found.method == "Heun, learned"].nfe) == {9, 13, 17}


def test_a_whole_study_of_learned_schedules(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Tiny, from images to the page; once more, which measures nothing; and with another length, which is refused."""
    docs = tmp_path / "docs"
    arguments = ["--twin", "--data", str(tmp_path / "data"), "--docs", str(docs), "--networks", "1", "--nfe", "3"]
    arguments += ["--rows", "geodesic", learnedpage.START, "g", learnedpage.LOSS, "tuned"]
    assert learned.main(arguments) == 0
    found, page = learnedpage.read(docs / learnedpage.ROWS), (docs / "learned.md").read_text(encoding="utf-8")
    asked = {(row.sampler, row.method) for row in learned.rows() if row.name in arguments}
    assert set(zip(found.sampler, found.method, strict=True)) == asked
    assert found.groupby(["features", "sampler", "method"]).seeds.nunique().tolist() == [2] * 2 * len(asked)
    assert all(json.loads(grid) for grid in found[found.method == "tuned"].grid)
    runs = learnedpage.outcomes(docs / learnedpage.OUTCOMES)
    assert runs[["row", "images"]].to_numpy().tolist() == [[learnedpage.LOSS, "8"], ["g", "8"]]
    kept = {file.name: file.read_bytes() for file in docs.iterdir()}
    assert learned.main(arguments) == 0
    assert {file.name: file.read_bytes() for file in docs.iterdir()} == kept
    capfd.readouterr()
    assert learned.main([*arguments, "--kimg", "1"]) == 1
    assert "FAILED: the run cifar10-16-twin-learned-g-s1 that is there has kimg 0.008, not 1" in capfd.readouterr().out
    assert (docs / "learned.md").read_text(encoding="utf-8") == page


def _against_diffusers(folder: Path, ours: float, *, networks: int = 3) -> Path:
    """Rows in which the best of diffusers by the classifier has 2 there, by pca-64 3 there, and 9 by the other."""
    lines = []
    samplers: dict[str, tuple[float, float]] = {
        **dict.fromkeys(diffuserspage.OURS, (1, 1)),
        diffuserspage.PAIRED: (ours, 1),
        diffuserspage.best("classifier"): (2, 9),
        diffuserspage.best("pca-64"): (9, 3),
    }
    for network, nfe, block, (sampler, values) in product(
        range(networks), diffuserspage.NFE, (-1, 1), samplers.items()
    ):
        facts = {"network": f"n{network}", "sampler": sampler, "nfe": nfe, "block": block, "evaluations": nfe}
        facts |= {"parameters": 10, "count": 512, "tried": 7, "chosen": "one", "search": 100}
        measured = {name: value + network + block for name, value in zip(diffuserspage.FEATURES, values, strict=True)}
        lines.append(json.dumps({"key": str(len(lines)), **facts, **measured}) + "\n")
    (folder / diffuserspage.ROWS).write_text("".join(lines), encoding="utf-8")
    return diffuserspage.write(folder)


def test_the_best_of_diffusers_is_the_better_of_those_chosen(tmp_path: Path) -> None:
    page = _against_diffusers(tmp_path, 1.5).read_text(encoding="utf-8")
    assert "| 3 | few | 2.50 ± 1.00 | 1.50 | 2.50 | 3.50 | **-0.50 ± 0.00** |" in page
    assert "| 3 | best of diffusers | 3.00 ± 1.00 | 2.00 | 3.00 | 4.00 |  |" in page
    assert "| 3 | best of diffusers | 4.00 ± 1.00 | 3.00 | 4.00 | 5.00 |  |" in page
    assert "**The aim was met.** `few` loses in none of 54 comparisons." in page


def test_each_loss_against_diffusers_is_named(tmp_path: Path) -> None:
    page = _against_diffusers(tmp_path, 2.25).read_text(encoding="utf-8")
    lost = "few 9 of 18, few, budget 16000 0 of 18, few, with data 0 of 18"
    assert f"`few` loses in 9 of 54 comparisons: {lost}." in " ".join(page.split())
    assert page.count("- few, 5 evaluations, n1, classifier: 3.25, theirs 3.00") == 1
    assert page.count(", theirs ") == 9


def test_a_comparison_with_diffusers_says_what_is_not_measured(tmp_path: Path) -> None:
    page = _against_diffusers(tmp_path, 1.5, networks=2).read_text(encoding="utf-8")
    assert "**Not all is measured**" in page
    assert "The aim was met" not in page
    assert "not all is measured" in diffuserspage.write(tmp_path / "none").read_text(encoding="utf-8").lower()


def test_the_page_of_diffusers_is_that_of_its_rows(tmp_path: Path) -> None:
    docs = ROOT / "studies" / "docs"
    for name in (diffuserspage.ROWS, floors.ROWS):
        (tmp_path / name).write_bytes((docs / name).read_bytes())
    assert diffuserspage.write(tmp_path).read_text(encoding="utf-8") == _document("studies/docs/diffusers.md")
    assert (tmp_path / "diffusers-rows.csv").read_text() == (docs / "diffusers-rows.csv").read_text()
