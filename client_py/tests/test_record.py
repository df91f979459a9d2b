"""Nothing changes without being named: samples, plans, schedules and rows of training are those of the record."""

from pathlib import Path

import numpy as np
import pytest
import record


@pytest.mark.slow
def test_the_device_go_computes_the_bits_of_the_record() -> None:
    seen = {f"go: {name}": np.asarray(value) for name, value in record.observe("go")}
    assert record.changes(seen) == []


def test_differences_are_relative() -> None:
    """To the largest value; in a table, to that of the column; a number in the place of NaN is no rounding."""
    assert record.difference(np.array([1.0, 4e6 + 0.125]), np.array([1.0, 4e6])) == 0.125 / 4e6
    assert record.difference(np.array([[0.0, 1e6], [1.0, 2.5]]), np.array([[0.0, 1e6], [1.0, 2.0]])) == 0.25
    assert record.difference(np.array([np.nan, 2.5]), np.array([np.nan, 2.0])) == 0.25
    assert record.difference(np.array([1.0, 2.0]), np.array([np.nan, 2.0])) == np.inf


def test_what_differs_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = f"{tmp_path}/record.npz"
    old = {"go: same": np.ones(2), "go: gone": np.ones(2), "go: shape": np.ones(2), "go: value": np.full(2, 4e6)}
    np.savez(path, allow_pickle=False, **old, **{"cpu: another device": np.ones(2)})
    monkeypatch.setattr(record, "RECORD", path)
    new = {"go: same": np.ones(2), "go: shape": np.ones(3), "go: value": np.full(2, 4e6 + 0.125), "go: new": np.ones(2)}
    assert record.changes(new) == [
        "go: gone: missing",
        "go: new: not in the record",
        "go: shape: shape (3,), was (2,)",
        "go: value: differs by at most 3.1e-08 of the largest value",
    ]
