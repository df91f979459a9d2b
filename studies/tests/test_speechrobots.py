"""The page of speechrobots, from rows that are made up, and what docs/speech-and-robots.md says of the real ones."""

import json
import re
from pathlib import Path

from studies.reports import speechrobotspage as page
from studies.reports.page import kept_rows


def test_the_page_divides_by_the_best_rival(tmp_path: Path) -> None:
    made = {page.FEW: (0.002, 0.003), page.PLAIN: (0.004, 0.004), page.OWN: (0.01, 0.02), page.TUNED: (0.003, 0.009)}
    rows = [
        {
            "key": json.dumps({"package": page.F5, "network": network, "method": name, "nfe": 4}),
            "error": value, **({"trained": 30.0 + network} if name == page.FEW else {}),
        }
        for name, values in made.items() for network, value in enumerate(values, 1)
    ]  # fmt: skip
    (tmp_path / page.ROWS).write_text("".join(json.dumps(row) + "\n" for row in rows))
    text = page.write(tmp_path).read_text()
    assert "Aim 1: 1 of 1 pairs, of 3." in text
    errors = "2.5 ± 0.7 | 4.0 ± 0.0 | 15.0 ± 7.1 | 6.0 ± 4.2"
    assert f"| F5-TTS | 32 s | 4 | {errors} | 0.62 ± 0.12 (plain solvers) |" in text


def test_what_recipes_gain_is_what_the_rows_say() -> None:
    root = Path(__file__).parents[2]
    found = kept_rows(root / "studies/docs" / page.ROWS)
    found = found[found.network > 10]  # trained for a minute
    table = found.pivot_table("error", ["package", "network"], "method")
    own, known = (
        table[page.FEW],
        ((page.PLAIN, page.PACKAGES), (page.TUNED, page.PACKAGES), (page.UNTOLD, (page.MATCHA,))),
    )
    over = [(own / table[method])[package] for method, packages in known for package in packages]
    assert all(len(ratios.dropna()) == 3 and (ratios < 1).all() for ratios in over)
    said = (root / "docs/speech-and-robots.md").read_text()
    told = re.findall(r"(\.\d\d) ± (\.\d\d)", said[said.index("## What they gain") :])
    errors = [(ratios.mean(), ratios.std() / 3**0.5) for ratios in over]
    assert [(f"{mean:.2f}"[1:], f"{error:.2f}"[1:]) for mean, error in errors] == told
