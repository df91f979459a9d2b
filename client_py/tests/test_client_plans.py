"""Plans in the place of a solver's request, and stored under names."""

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_client_plan import two_paths

from anisoflight import AnisoflightError, BadRequestError, Client, NameTakenError, NotFoundError, Plan
from anisoflight.latents import latents

GUIDED = {"guidance": 2.0, "guidance_interval": [0.1, 5.0]}
REQUESTS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "heun": ("edm", {"solver": "heun", "nfe": 5, "grid": "edm", "second_point": "endpoint"}, {}),
    "churn": ("edm", {"solver": "euler", "steps": 4, "S_churn": 2.0}, {}),
    "guided": ("edm", {"solver": "dpmpp2m", "nfe": 4, "grid": "polynomial"}, GUIDED),
    "two subspaces": ("plans-dct", {"solver": "unipc", "order": 3, "steps": 5}, {}),
    "by class": ("plans-class", {"solver": "ipndm", "warmup": "heun", "steps": 4, "denoise_to_zero": True}, GUIDED),
    "by class, with vectors": ("plans-vectors", {"solver": "deis", "steps": 4}, {}),
    "a start": ("plans-start", {"solver": "dpmpp3m", "order": 3, "nfe": 4}, {}),
    "a start by class, two subspaces": ("plans-starts", {"solver": "ab", "steps": 4}, {}),
}
"""A schedule, what shapes the sampler, and what does not."""


@pytest.fixture(scope="module")
def schedules(client: Client) -> Client:
    made: dict[str, Any] = {"replace": True}
    labels = tuple(range(3))
    rng = np.random.default_rng(0)
    vectors = {label: np.linalg.qr(rng.standard_normal((64, 3)))[0].T.reshape(3, 8, 8) for label in labels}
    client.put_basis("plans-basis", vectors, **made)
    client.put_schedule("plans-dct", two_paths(), basis="dct", k=4, **made)
    client.put_schedule("plans-class", two_paths(labels), basis="dct", k=4, **made)
    client.put_schedule("plans-vectors", two_paths(labels), basis="plans-basis", k=3, **made)
    start: dict[str, Any] = {"dataset": "blocks", "progress": False, **made}
    client.make_schedule("plans-start", "start", sigma_max=10, per_class=False, **start)
    client.make_schedule("plans-starts", "start", schedule="plans-dct", **start)
    return client


def made(client: Client, request: str) -> tuple[Plan, dict[str, Any], dict[str, Any]]:
    """A plan, the request of the solver that it came from, and the rest of the request."""
    schedule, sampler, rest = REQUESTS[request]
    plan = client.plan(schedule, model="digits", labels=[0, 2, 1], **sampler)
    return plan, {"schedule": schedule, **sampler}, rest


@pytest.mark.parametrize("request_name", REQUESTS)
def test_a_plan_draws_the_bytes_of_its_request(schedules: Client, request_name: str) -> None:
    client = schedules
    plan, sampler, rest = made(client, request_name)
    client.put_plan("plans-kept", plan, replace=True)
    draw: dict[str, Any] = {"labels": [2, 0, 1], "dtype": "float32", "progress": False, **rest}
    noise = latents([5, 6, 7], (8, 8, 1))
    expected = client.sample("digits", seed=5, **sampler, **draw)
    own = client.sample("digits", latents=noise, **sampler, **draw)
    for way in (plan, "plans-kept", json.loads(json.dumps(plan.wire))):
        drawn = client.sample("digits", seed=5, plan=way, **draw)
        np.testing.assert_array_equal(drawn.images, expected.images)
        np.testing.assert_array_equal(drawn.nfe, expected.nfe)
        np.testing.assert_array_equal(client.sample("digits", latents=noise, plan=way, **draw).images, own.images)


@pytest.mark.parametrize("request_name", REQUESTS)
def test_a_stored_plan_comes_back_whole(schedules: Client, request_name: str) -> None:
    client = schedules
    plan = made(client, request_name)[0]
    client.put_plan("plans-kept", plan, replace=True)
    again = client.plan(plan="plans-kept")
    assert again.file == plan.file
    assert (again.law and again.law.file) == (plan.law and plan.law.file)
    assert (again.vectors is None) == (plan.vectors is None) == (request_name != "by class, with vectors")
    for label, rows in (plan.vectors or {}).items():
        np.testing.assert_array_equal((again.vectors or {})[label], rows)


def test_names_of_plans(client: Client) -> None:
    five, three = (
        client.plan("edm", sigma_min=0.002, sigma_max=80, solver="unipc", order=2, nfe=nfe) for nfe in (5, 3)
    )
    client.put_plan("plans-unipc", five)
    assert client.plans().loc["plans-unipc", ["nfe", "steps", "solver"]].tolist() == [5, 5, "unipc"]
    with pytest.raises(NameTakenError, match="plans-unipc"):
        client.put_plan("plans-unipc", three)
    assert client.sample("digits", n=1, plan="plans-unipc", progress=False).nfe.tolist() == [5]
    client.put_plan("plans-unipc", three, replace=True)
    assert client.sample("digits", n=1, plan="plans-unipc", progress=False).nfe.tolist() == [3]
    for missing in (
        lambda: client.sample("digits", n=1, plan="plans-unpic", progress=False),
        lambda: client.plan(plan="plans-unpic"),
        lambda: client.delete_plan("plans-unpic"),
    ):
        with pytest.raises(NotFoundError, match='Did you mean "plans-unipc"') as error:
            missing()
        assert error.value.code == "PLAN_NOT_FOUND"
    client.delete_plan("plans-unipc")
    assert "plans-unipc" not in client.plans().index


def test_a_plan_is_the_whole_sampler(client: Client) -> None:
    plan = client.plan("edm", sigma_min=0.002, sigma_max=80, solver="euler", nfe=2)
    beside: dict[str, Any] = {
        "schedule": "edm", "solver": "heun", "steps": 3, "nfe": 3, "grid": "edm", "order": 2, "start": "standard",
        "second_point": "endpoint", "variant": "bh1", "warmup": "heun", "denoise_to_zero": True,
        "lower_order_final": False, "S_churn": 1.0, "S_min": 0.1, "S_max": 1.0, "S_noise": 1.1,
    }  # fmt: skip
    for field, value in beside.items():
        with pytest.raises(BadRequestError, match=f"{field} must be left out with plan, which has the whole sampler"):
            client.sample("digits", n=1, plan=plan, progress=False, **{field: value})
    with pytest.raises(BadRequestError, match="other_weights must be left out without plan"):
        client.sample("digits", n=1, nfe=3, other_weights=True)


def test_what_is_no_plan_is_refused(schedules: Client, tmp_path: Path) -> None:
    whole = made(schedules, "a start")[0].wire
    own = base64.b64encode(b"own").decode()
    broken: dict[str, dict[str, Any]] = {
        "law and vectors must be files in base64": {"law": "a"},
        "law and vectors must be": {"vectors": 5},
        "not a start": {"law": own},
        "not a basis": {"vectors": own},
        "its start must be the file of hash": {"law": None},
    }
    for message, wrong in broken.items():
        (tmp_path / "plan.json").write_text(json.dumps({**whole, **wrong}))
        for read in (lambda wrong=wrong: Plan.whole({**whole, **wrong}), lambda: Plan.load(tmp_path / "plan.json")):
            with pytest.raises(AnisoflightError, match=message) as error:
                read()
            assert error.value.code == "BAD_SCHEDULE"
        for take in (
            lambda wrong=wrong: schedules.sample("digits", n=1, plan={**whole, **wrong}, progress=False),
            lambda wrong=wrong: schedules.call("ImportPlan", name="plans-wrong", plan={**whole, **wrong}),
        ):
            with pytest.raises(AnisoflightError, match="plan") as error:
                take()
            assert error.value.code in ("BAD_SCHEDULE", "BAD_REQUEST")
    assert "plans-wrong" not in schedules.plans().index
