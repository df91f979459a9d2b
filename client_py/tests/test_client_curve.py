"""Schedules without a server: curves of tables, and noise levels as other programs read them."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from anisoflight import Client
from anisoflight.curve import Curve, sigma_text

PAIR = {"subspace": [0, 0, 0, 1, 1, 1], "t": [0, 3, 9, 0, 5, 9], "g": [1e-6, 0.3, 4, 1e-6, 0.1, 4]}


def test_a_curve_is_the_servers(client: Client, tmp_path: Path) -> None:
    """Knots at times of their own in every subspace, from a table, a file and the schedule."""
    schedule = client.put_schedule("curve-pair", PAIR, basis="dct", k=16, replace=True)
    expected = schedule.sigmas(7, zero=True)
    schedule.to_csv(tmp_path / "pair.csv")
    for curve in (schedule.curve(), Curve.load(tmp_path / "pair.csv"), Curve.of(pd.DataFrame(PAIR))):
        np.testing.assert_allclose(curve.sigmas(7), expected, rtol=1e-9)
    client.delete_schedule("curve-pair")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize(("separator", "decimal"), [(",", "."), (";", "."), (";", ",")])
def test_tables_of_spreadsheets(separator: str, decimal: str, encoding: str, client: Client, tmp_path: Path) -> None:
    """What a spreadsheet saves of a schedule is that schedule, as a curve and on the server."""
    path = tmp_path / "pair.csv"
    pd.DataFrame(PAIR).to_csv(path, sep=separator, decimal=decimal, encoding=encoding, index=False)
    assert (Curve.load(path).sigmas(5) == Curve.of(pd.DataFrame(PAIR)).sigmas(5)).all()
    form = {"basis": "dct", "k": 16, "replace": True}
    want = client.put_schedule("of-numbers", PAIR, **form).to_csv()
    assert client.put_schedule("of-numbers", path, **form).to_csv() == want
    client.delete_schedule("of-numbers")


def test_a_curve_of_classes() -> None:
    table = pd.concat([pd.DataFrame(PAIR).assign(label=label) for label in (0, 1)])
    table.loc[table["label"] == 1, "g"] *= 4
    np.testing.assert_allclose(Curve.of(table, 1).sigmas(3), 2 * Curve.of(table, 0).sigmas(3))
    for label in (None, 5):
        with pytest.raises(ValueError, match=r"label must be one of \[0, 1\]"):
            Curve.of(table, label)
    with pytest.raises(ValueError, match=r"label must be one of \[1\]: got 5"):
        Curve.of(table[table["label"] == 1], 5)
    with pytest.raises(ValueError, match="steps must be at least 1, got 0"):
        Curve.of(table, 0).sigmas(0)


def test_every_form_is_read_back() -> None:
    """As JSON, by the numbers without exponents that ComfyUI looks for, and by C++'s stof between commas."""
    sigmas = np.append(np.geomspace(157.4, 3e-6, 40), 0)
    assert json.loads(sigma_text(sigmas)) == sigmas.tolist()
    comfy = sigma_text(sigmas, "comfyui")
    assert "e" not in comfy
    found = [float(number) for number in re.findall(r"[-+]?(?:\d*\.*\d+)", comfy)]
    np.testing.assert_allclose(found, sigmas, rtol=1e-7)
    np.testing.assert_allclose([float(part) for part in sigma_text(sigmas, "sd.cpp").split(",")], sigmas, rtol=1e-7)
    flow = json.loads(sigma_text(sigmas, flow=True))
    np.testing.assert_allclose(flow, sigmas / (1 + sigmas))
    assert found[-1] == flow[-1] == 0
    with pytest.raises(ValueError, match=r"form must be json, comfyui or sd\.cpp, got 'yaml'"):
        sigma_text(sigmas, "yaml")  # pyright: ignore[reportArgumentType]
