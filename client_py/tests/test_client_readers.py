"""What is cut, changed or impossible is refused by Python's readers as by the server's."""

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save

from anisoflight import BadRequestError, Plan
from anisoflight.curve import Curve
from anisoflight.plans.storage import basis_of, read_with_basis
from anisoflight.start import Start

ROOT = Path(__file__).resolve().parents[2]
REFUSED = json.loads((ROOT / "train/checkpoint/testdata/refused.json").read_text(encoding="utf-8"))
"""Changes of good files, which Go's TestRefusedFiles reads, too."""
TYPES = {"F64": np.float64, "F32": np.float32, "I64": np.int64}
READERS = {"start": Start, "basis": basis_of}


def file(kind: str, change: dict[str, Any]) -> bytes:
    good = REFUSED[kind]["good"]
    metadata, tensors = ({**good[part], **change.get(part, {})} for part in ("metadata", "tensors"))
    arrays = {
        name: np.array([float(value) for value in tensor["values"].split()]).astype(TYPES[tensor["dtype"]])
        for name, tensor in tensors.items()
        if tensor is not None
    }
    shaped = {name: array.reshape(tensors[name]["shape"]) for name, array in arrays.items()}
    return save(shaped, {key: value for key, value in metadata.items() if value is not None})


@pytest.mark.parametrize("kind", READERS)
def test_files_that_the_server_refuses_are_refused(kind: str) -> None:
    good = file(kind, {})
    READERS[kind](good)
    for size in range(len(good)):
        with pytest.raises(BadRequestError, match=f"not a {kind}"):
            READERS[kind](good[:size])
    taken = []
    for name, change in REFUSED[kind]["bad"].items():
        try:
            READERS[kind](file(kind, change))
            taken.append(name)
        except BadRequestError as error:
            taken += [] if str(error).startswith(f"[BAD_SCHEDULE] not a {kind}: ") else [name]
    assert not taken


@pytest.mark.parametrize("units", ["[]", "3", '{"mean": null}', '{"mean": ["a"], "scale": [1]}'])
def test_units_of_a_start_that_are_none_are_refused(units: str) -> None:
    with pytest.raises(BadRequestError, match="not a start"):
        Start(file("start", {"metadata": {"normalization": units}}))


def test_tables_that_the_server_refuses_are_refused() -> None:
    def curve(change: dict[str, str]) -> Curve:
        columns = {**REFUSED["path"]["good"], **change}
        return Curve.of(pd.DataFrame({name: [float(v) for v in text.split()] for name, text in columns.items()}))

    assert curve({}).sigmas(1).tolist() == [2, 0]
    for name, change in REFUSED["path"]["bad"].items():
        with pytest.raises(BadRequestError, match="t must increase from 0 and g > 0 must increase"):
            pytest.fail(f"{name}: {curve(change)}")


NO_TABLES = [
    *(
        b"",
        b"t,g\n",
        b"\xff\xfe\x00",
        b"t,g\n0,1,2,3\n0,1\n1,2,3,4,5\n",
        b"t,g\n7,0,1\n8,9,4\n",
        b"t,g,g\n0,1,2\n9,4,5\n",
    ),
    *(b"subspace,t,g\n0,0,1\n0,9,4\n1,0,1\n1,8,4\n", b"label,t,g\n,0,1\n0,9,4\n"),
]


@pytest.mark.parametrize("data", NO_TABLES)
def test_files_that_are_no_tables_are_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.csv").write_bytes(data)
    with pytest.raises(BadRequestError):
        Curve.load(tmp_path / "x.csv")


PLANS = Path(__file__).parent / "testdata" / "plans"
GOLDEN = json.loads((PLANS / "ab.json").read_text(encoding="utf-8"))
NUMBERS = ("t", "init", "stages", "tails")
CLASSES = {
    **{name: value for name, value in GOLDEN.items() if name not in NUMBERS},
    "classes": [{"labels": [label], **{name: GOLDEN[name] for name in NUMBERS}} for label in (0, 3)],
}
FREE = {("schedule",), ("solver",), ("family", "basis")}
"""Entries that may be any name."""


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of all entries of a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, part in inner for place in [(*path, key), *places(part, (*path, key))]]


def changed(plan: Any, place: tuple[Any, ...], change: Any) -> Any:
    plan = copy.deepcopy(plan)
    holder = plan
    for key in place[:-1]:
        holder = holder[key]
    if change is ...:
        del holder[place[-1]]
    else:
        holder[place[-1]] = change
    return plan


@pytest.mark.parametrize("plan", [GOLDEN, CLASSES], ids=["one", "classes"])
def test_plans_that_no_server_writes_are_refused(plan: Any) -> None:
    """Each entry taken away, of another type, NaN or infinite, each list empty or one longer."""
    Plan(plan)
    taken = []
    for place in places(plan):
        value: Any = plan
        for key in place:
            value = value[key]
        changes: list[Any] = [..., None, {}, float("nan"), float("inf"), "1"]
        changes += [[], [*value, value[-1]]] if isinstance(value, list) else []
        for change in changes:
            named = place in FREE and isinstance(change, str)
            fewer = change is ... and (
                "beta" in place[-3:-1] or place in (("classes", 0), ("classes", 1), ("family", "k"))
            )
            longer = "beta" in place[-2:-1] and isinstance(change, list) and len(change) in range(1, 4)
            fewer = fewer or ("tails" in place[-3:] and change in (..., []))  # of what a tail can do without
            if named or fewer or longer:
                continue
            try:
                Plan(changed(plan, place, change))
                taken.append((place, change))
            except BadRequestError as error:
                taken += [] if "not a plan" in str(error) else [(place, change)]
    assert taken == []


def test_plans_that_are_impossible_are_refused(tmp_path: Path) -> None:
    stage = ("stages", 1)
    for place, change in [
        (("t",), [400, 266, 300, 0]),
        (("t", 3), -1),
        (("init", 0), 0),
        (("init", 1), -20),
        ((*stage, "g", 0), 0),
        ((*stage, "g", 1), -1),
        ((*stage, "step"), 2),
        ((*stage, "step"), -2),
        ((*stage, "noise"), [0, -1]),
        ((*stage, "noise"), [1]),
        ((*stage, "beta", 0), [1] * 4),
        (("family", "cuts"), [2, 2]),
        (("family", "cuts"), [1, 2]),
        (("family", "k"), -4),
        (("coordinates",), {"height": 2, "width": 2, "channels": 1}),
        (("coordinates",), {"height": 2, "width": 2, "channels": 1, "bands": 0}),
        (("coordinates",), {"height": 10**9, "width": 10**9, "channels": 1, "bands": 2}),
        (("history",), 2),
        (("nfe",), 4),
        (("steps",), 2),
        (("start",), [1]),
    ]:
        with pytest.raises(BadRequestError, match="not a plan"):
            Plan(changed(GOLDEN, place, change))
    with pytest.raises(BadRequestError, match="labels must be classes, each once"):
        Plan(changed(CLASSES, ("classes", 1, "labels"), [0]))
    text = json.dumps(GOLDEN)
    for data in (text[:-1], text[: len(text) // 2], "", "[" * 100_000, "\x00"):
        (tmp_path / "plan.json").write_text(data)
        with pytest.raises(BadRequestError, match="must be JSON"):
            Plan.load(tmp_path / "plan.json")
    for data in ("null", "3", "[]", '{"family": 5}', '{"family": {"basis": []}}'):
        (tmp_path / "plan.json").write_text(data)
        with pytest.raises(BadRequestError, match="not a plan"):
            Plan.load(tmp_path / "plan.json")
    assert read_with_basis(PLANS / "ab.json") == (GOLDEN, None, None)
