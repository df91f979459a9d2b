"""The page of foreign networks, from rows that are made up."""

import json
from pathlib import Path

from studies.reports import foreignpage as page


def test_the_page_compares_with_the_best_rival_by_each_measure(tmp_path: Path) -> None:
    made = {
        page.CONVERGED: (0, [0.0, 0.0], 1.0, 0.5),
        page.FEW: (3, [1.0, 3.0], 2.0, 3.0),
        page.PLAIN: (3, [4.0, 6.0], 4.0, 2.0),
        page.ANALYTICAL: (3, [3.0, 5.0], 8.0, 4.0),
        page.WEIGHTS: (3, [8.0, 8.0], 8.0, 4.0),
        page.AS_MANY: (3, [0.5, 1.5], 2.0, 3.0),
    }
    rows = [
        {
            "key": json.dumps({"method": method, "network": "hsc_LogNet64", "nfe": nfe, "run": run}),
            "squares": squares, page.COMPONENTS: components, page.EDGES: edges, "seconds": 7.0, "choice": method,
            "tuning": 2000 * nfe,
        }
        for method, (nfe, squares, components, edges) in made.items()
        for run in [page.SINCE if method in page.OURS else page.RUN]
    ]  # fmt: skip
    (tmp_path / page.ROWS).write_text("".join(json.dumps(row) + "\n" for row in rows))
    table = page.ratios(page.rows(tmp_path))
    assert table[[page.SQUARES, page.COMPONENTS, page.EDGES]].to_numpy().tolist() == [[0.5, 0.5, 1.5]]
    as_many = page.ratios(page.with_as_many(page.rows(tmp_path)))
    assert as_many[[page.SQUARES, "choice"]].to_numpy().tolist() == [[0.25, page.AS_MANY]]
    text = page.write(tmp_path).read_text()
    assert "Aim 1: 0 of 1 pairs, of 24; on networks that building did not see 0 of 1." in text
    assert "| LogNet 64 | 3 | 0.50 ± 0.12 | 0.50 | 1.50 | 0.47 | 0.25, 0.25 | AFS / plain solvers |" in text
    assert "| AFS / plain solvers | 3 | 7 s | 6 / 6 | few |" in text
    assert "| plain solvers | 0.40 | 1 of 1 |\n| AFS | 0.50 | 1 of 1 |" in text
    begun = text.index("## With as many evaluations as learned weights")
    assert text.index("| AFS | 0.25 | 1 of 1 |") > begun
    assert text.index("of learned weights on 1 of 1 pairs. The search spends 1.00 to 1.00") > begun
