"""The acceptance tests of plans, with stock pyarrow."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.flight as fl
import pytest
import wire

GOLDEN = json.loads((Path(__file__).parent / "testdata" / "plans" / "ab.json").read_text())


@pytest.fixture(scope="module")
def two_paths(flight: fl.FlightClient) -> str:
    """A schedule of two subspaces whose paths part between the ends."""
    rows = [
        (subspace, t, np.exp(logg))
        for subspace, lift in enumerate((0.4, -0.4))
        for t, logg in ((0.0, np.log(1e-9)), (30, -4 + lift), (170, lift), (290, 2.5 + lift), (400.0, np.log(400)))
    ]
    subspace, t, g = zip(*rows, strict=True)
    labels = wire.int32([-1] * len(rows))
    columns = wire.table(label=labels, subspace=wire.int32(subspace), t=pa.array(t), g=pa.array(g))
    descriptor = wire.command({"op": "PutSchedule", "name": "plan-wire", "basis": "dct", "k": 4, "replace": True})
    assert wire.put(flight, descriptor, columns) == {"rows": len(rows)}
    return "plan-wire"


def close(got: Any, want: Any) -> None:
    """The same JSON, numbers to rounding."""
    if isinstance(want, dict):
        assert got.keys() == want.keys()
        for key in want:
            close(got[key], want[key])
    elif isinstance(want, list):
        assert len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            close(one, other)
    else:
        assert got == (want if isinstance(want, str) else pytest.approx(want, rel=1e-12, abs=1e-15))


def test_a_plan_is_the_stored_one(flight: fl.FlightClient, two_paths: str) -> None:
    (plan,) = wire.act(flight, "PlanSampler", {"schedule": two_paths, "solver": "ab", "steps": 3})
    assert plan.pop("provenance")["kind"] == "upload"
    close(plan, {**GOLDEN, "schedule": two_paths})


def test_a_request_for_samples_is_one_for_a_plan(flight: fl.FlightClient, model: str) -> None:
    request = {"model": model, "labels": [1, 2], "seed": 5, "nfe": 7, "solver": "heun", "S_churn": 2, "layout": "CHW"}
    (plan,) = wire.act(flight, "PlanSampler", request)
    samples = wire.get(flight, "Sample", request).table
    assert plan["nfe"] == samples["nfe"][0].as_py() == len(plan["stages"])
    assert [stage["step"] for stage in plan["stages"]] == [-1, 0, -1, 1, -1, 2]
    assert ["noise" in stage for stage in plan["stages"]] == [True, False] * 3
