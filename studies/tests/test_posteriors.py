"""The page of posteriors, from rows that are made up."""

import json
from pathlib import Path

from studies.reports import posteriorspage as page


def test_the_page_compares_with_the_best_rival_of_each_pair(tmp_path: Path) -> None:
    made = {page.OWN: (0.55, 0.56), page.FEW: (0.6, 0.65), page.PLAIN: (0.7, 0.8), page.EULER: (0.9, 0.95)}
    rows = [
        {
            "key": json.dumps({"task": page.MOONS, "network": network, "method": name, "nfe": 9 * (name != page.OWN)}),
            "c2st": [value - 0.1, value + 0.1], **({"calls": 200} if name == page.OWN else {}),
        }
        for name, values in made.items() for network, value in enumerate(values)
    ]  # fmt: skip
    (tmp_path / page.ROWS).write_text("".join(json.dumps(row) + "\n" for row in rows))
    text = page.write(tmp_path).read_text()
    assert "Aim 1: 1 of 1 pairs, of 9." in text
    assert "Aim 2: above sbi's own solver by +0.070 (two moons)." in text
    assert "| two moons | 9 | 0.625 ± 0.035 | 0.750 ± 0.071 | 0.925 ± 0.035 |  | -0.125 ± 0.025 | " in text
    assert "| 0.555 ± 0.007 (200) |" in text
