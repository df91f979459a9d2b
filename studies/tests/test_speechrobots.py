"""The page of speechrobots, from rows that are made up."""

import json
from pathlib import Path

from studies.reports import speechrobotspage as page


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
