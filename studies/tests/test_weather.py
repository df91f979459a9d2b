"""The study of anemoi's curves: the curves, its page, and a whole small one."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from studies.reports import weatherpage as page

if TYPE_CHECKING:
    from collections.abc import Sequence

DOCS = Path(__file__).parents[1] / "docs"


def test_the_piecewise_curve_is_anemois() -> None:
    """It meets the turn once, by equal factors above it; the schedule adds a zero."""
    levels = page.piecewise(8, 5)
    assert len(levels) == 8
    assert np.sum(np.isclose(levels, 10)) == 1
    np.testing.assert_allclose(levels[:6], 100 * 10 ** (-np.arange(6) / 5))
    np.testing.assert_allclose(levels[5:], page.karras(3, 10, 0.02))
    assert [round(level, 1) for level in page.piecewise(3)] == [100, 31.6, 10]  # three steps have none below the turn
    for steps in (3, 5, 9, 17):
        assert page.given(page.PIECEWISE, steps) == page.piecewise(steps)
        for name in page.TUNED[:2]:
            curves = [levels for _, levels in page.grid(name, steps)]
            assert {len(levels) for levels in curves} == {steps}
            assert all(np.all(np.diff(levels) < 0) for levels in curves)
            assert len({name for name, _ in page.grid(name, steps)}) == len(curves) >= 20


def test_the_verdicts_are_by_networks(tmp_path: Path) -> None:
    """Errors grow with the number of the network, which is in both; a rival is as good where it is so on average."""
    errors = dict.fromkeys(page.METHODS, 3.0)
    errors |= {"geodesic, heun": 1.0, "piecewise, heun": 2.0, "geodesic tuned, heun": 1.0, "few": 0.9}
    rows = [
        {"key": json.dumps({"network": network, "method": method, "nfe": nfe}), "crps": 0.5, "levels": [80, 1],
         "choice": "σ_max 40, turn 1, 3 of 9 steps above it, ρ 3" if "piecewise" in method else "σ_max 20, ρ 7",
         "error": network * (0.8 if (method, nfe) == ("piecewise tuned, heun", 17) else error) / nfe}
        for network in (1, 2, 3) for method, error in errors.items() for nfe in page.NFE
    ]  # fmt: skip
    rows += [{"key": json.dumps({"network": n, "method": page.BOUNDS, "nfe": 0}), "crps": 0.4, "simulator": [0.3, 0.35]}
             for n in (1, 2, 3)]  # fmt: skip
    (tmp_path / page.ROWS).write_text("".join(json.dumps(row) + "\n" for row in rows))
    first, second, third = page.verdicts(page.rows(tmp_path))
    assert first.startswith("Aim 1 held, at 3 of 3: 0.50 (±0 %, piecewise, heun) at 5;")
    assert second.startswith("Aim 2 failed, at 2 of 3: 0.33 (±0 %) at 5; 0.33 (±0 %) at 9; 1.25 (±0 %) at 17.")
    assert third.startswith("Aim 3 failed, at 2 of 3: 0.90 (±0 %, geodesic, heun) at 5;")
    text = page.write(tmp_path).read_text(encoding="utf-8")
    assert "| piecewise, heun | 0.800 ± 0.400 | 0.444 ± 0.222 | 0.235 ± 0.118 | 0.500 ± 0.000 |" in text
    assert "9 of 18 tuned curves of anemoi's lie at an edge" in text
    assert "| converged network |  |  |  | 0.400 ± 0.000 |" in text
    assert "| simulator |  |  |  | 0.325 ± 0.027 |" in text
    assert (tmp_path / "weather-curves.png").stat().st_size > 10_000


def test_the_page_is_that_of_its_rows(tmp_path: Path) -> None:
    (tmp_path / page.ROWS).write_bytes((DOCS / page.ROWS).read_bytes())
    assert page.write(tmp_path).read_text(encoding="utf-8") == (DOCS / "weather.md").read_text(encoding="utf-8")


def test_what_networks_say_is_that_of_the_rows() -> None:
    said, found = " ".join((DOCS.parents[1] / "docs/networks.md").read_text(encoding="utf-8").split()), page.rows(DOCS)

    def times(one: str, others: Sequence[str]) -> str:
        values = [f"{np.exp(page.ratio(found, one, page.best(found, others, nfe), nfe)[0]):.2f}" for nfe in page.NFE]
        return "{}, {} and {}".format(*(value.removeprefix("0") for value in values))

    assert f"has {times(page.FEW, page.METHODS[:-1])} times the error of the best" in said
    for sampler, words in (page.HEUN, "by Heun's method"), (page.DPM, "by DPM-Solver++(2M)"):
        tuned = times(f"{page.TUNED[2]}, {sampler}", [f"{page.TUNED[1]}, {sampler}"])
        assert f"{tuned} {words}" in said


def test_a_whole_small_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every method draws by anemoi's samplers, with as many evaluations as its row says; again nothing is measured."""
    pytest.importorskip("anemoi.models")
    from studies.reports import weather

    monkeypatch.setattr(weather, "few", partial(weather.few, budget=3000, learn=False))
    monkeypatch.setattr(page, "NFE", (5,))
    arguments = ["--data", str(tmp_path / "data"), "--docs", str(tmp_path), "--networks", "1", "--nfe", "5"]
    arguments += ["--steps", "20", "--judged", "2"]
    assert weather.main(arguments) == 0
    found, kept = page.rows(tmp_path).set_index("method"), (tmp_path / page.ROWS).read_bytes()
    assert list(found.index) == [page.BOUNDS, *page.METHODS]
    for method in page.METHODS:
        assert len(found.loc[method, "levels"]) == (3 if method.endswith(page.HEUN) else 5)
        assert 0 < found.loc[method, "error"] < 20
    for sampler in (page.HEUN, page.DPM):  # tuning sees what is as given, on other states
        assert found.loc[f"geodesic tuned, {sampler}", "error"] < 1.5 * found.loc[f"geodesic, {sampler}", "error"]
        assert found.loc[f"piecewise tuned, {sampler}", "error"] < 1.5 * found.loc[f"piecewise, {sampler}", "error"]
    assert weather.main(arguments) == 0
    assert (tmp_path / page.ROWS).read_bytes() == kept


def test_next_states_keep_their_law_and_what_moved() -> None:
    pytest.importorskip("anemoi.models")
    torch = pytest.importorskip("torch")
    from studies.reports import weather

    previous, after = weather.pairs(2000, torch.Generator().manual_seed(0))
    for state in (previous, after):
        np.testing.assert_allclose(state.mean((0, 2, 3)), 0, atol=0.05)
        np.testing.assert_allclose(state.std((0, 2, 3)), 1, atol=0.1)
    spectrum = [torch.fft.fft2(state).abs().mean(0) for state in (previous, after)]
    np.testing.assert_allclose(spectrum[1][:, 1:5, 1:5], spectrum[0][:, 1:5, 1:5], rtol=0.1)
    torch.testing.assert_close(weather.images(weather.states(after)), after)
