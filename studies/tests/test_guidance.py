"""The page of learned guidance, from rows that are made up."""

import json
from itertools import product
from pathlib import Path

from studies.reports import guidancepage as page


def test_the_page_judges_every_part_of_the_aim(tmp_path: Path) -> None:
    made = {page.LEARNED: 0.9, page.ONE: 1.0, page.PLAIN: 2.0, page.WITHIN: 0.95}
    rows = [
        {
            "key": json.dumps({"network": network, "scale": scale, "nfe": nfe, "method": name}),
            "calls": 2 * nfe, "power": 10.0, "squares": [value, 3 * value],
            **({"guidance": [1.2, 0.7]} if name == page.LEARNED else {}),
        }
        for network, scale, nfe in product(page.NETWORKS, page.SCALES, page.NFE) for name, value in made.items()
    ]  # fmt: skip
    (tmp_path / page.ROWS).write_text("".join(json.dumps(row) + "\n" for row in rows))
    text = page.write(tmp_path).read_text()
    assert "- Scale 7.5: 0.90 ± 0.00 of the error of one guidance, by the geometric mean over samples 0.90" in text
    assert "at most 0.45 (plain solvers), 0.95 (guidance in an interval)." in text
    assert "in its order: reached, reached, missed." in text
    assert "errs more than one in 0 of 18 cases, at most 0.90 times as much." in text
    assert "| 3 | 4 | 0.1800 (8.0) | 0.2000 (8.0) | 0.4000 (8.0) | 0.1900 (8.0) |" in text
    (tmp_path / page.ROWS).write_text("".join(json.dumps(row) + "\n" for row in rows[1:]))
    assert "What came out" not in page.write(tmp_path).read_text()
