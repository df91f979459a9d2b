"""Plans that the server searches: what they report and print, and samples that are the server's own."""

import contextlib
import io
import json
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE
from typing import Any

import numpy as np
import pytest
import wire

from anisoflight import AnisoflightWarning, BadRequestError, CancelledError, Client, LocalClient, NameTakenError, Plan
from anisoflight.latents import latents
from anisoflight.operations.plans import budget_fields
from anisoflight.serving.local import find_binary
from anisoflight.wire.progress import Bar

SEARCHES: dict[str, dict[str, Any]] = {
    "alone": {"budget": 4000},
    "among images": {"dataset": "blocks", "samples": 64, "solvers": ["ipndm"]},
    "learned": {"budget": 16_000},
}


@pytest.fixture(scope="module")
def mixed(client: Client) -> Iterator[str]:
    """A mixture of the classes of the images, whose score is exact."""
    client.make_mixture("few-mixed", "blocks", covariance="dct", progress=False)
    yield "few-mixed"
    client.delete_model("few-mixed")


@pytest.fixture(scope="module", params=SEARCHES)
def found(request: pytest.FixtureRequest, client: Client) -> tuple[Plan, list[str]]:
    """A plan of the small network, and the lines that its search printed."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        plan = client.few("digits", nfe=3, **SEARCHES[request.param])
    return plan, printed.getvalue().splitlines()


def test_it_prints_its_worth_and_its_evaluations(found: tuple[Plan, list[str]]) -> None:
    plan, (*cost, summary, evaluations) = found
    report = plan.info
    chosen, against = report["chosen"], report["against"]
    assert summary == report["summary"]
    assert evaluations == f"few: 3 evaluations in {plan.steps} steps"
    assert all(re.fullmatch(r"about \d+ evaluations of the network", line) for line in cost)  # none if it was short
    assert summary.startswith(f"{chosen['solver']} from sigma {chosen['sigma_max']:.4g} ({chosen['start']} start")
    compared = "its Fréchet distance on 64 samples"
    if "dataset" not in plan.provenance:
        compared = f"its error, {report['mean_ratio']:.3g} ± {report['mean_ratio_stderr']:.1g} times its mean squared"
    if chosen == against:
        assert "no try is clearly better" in summary
    else:
        assert f"{report['ratio']:.3g} ± {report['ratio_stderr']:.1g} times {compared}" in summary
        clear = report["ratio"] + report["ratio_stderr"] < 1
        assert ("better than the best simpler plain sampler" in summary) == clear


def test_its_samples_are_the_servers(client: Client, found: tuple[Plan, list[str]], tmp_path: Path) -> None:
    """In numpy with the server's network, from a file, and in float64: to the rounding of float32, 1e-6 of the samples'
    size, which the largest weight of the plan amplifies."""
    plan, labels, noise = found[0], [1, 2, 3, 4], latents(np.arange(4), (8, 8, 1))
    expected = client.sample("digits", labels=labels, seed=0, plan=plan, dtype="float32", progress=False)
    assert expected.nfe.tolist() == [3] * 4
    plan.save(tmp_path / "plan.json")

    def denoiser(x: np.ndarray, sigma: np.ndarray, labels: list[int]) -> np.ndarray:
        x = np.moveaxis(x, 1, 3).astype(np.float32)
        return np.moveaxis(client.denoise("digits", x, sigma, labels, progress=False).denoised, 3, 1)

    stages = [stage for label in labels for stage in plan.for_label(label).evaluations]
    weights = [weight for stage in stages for row in (stage.alpha, *stage.beta) for weight in row]
    bound = 1e-6 * np.abs(expected.images).max() * max(1, *map(abs, weights))
    for one, dtype in ((plan, np.float32), (Plan.load(tmp_path / "plan.json"), np.float64)):
        got = one(denoiser, np.moveaxis(noise, 3, 1).astype(dtype), labels=labels, progress=False)
        assert np.abs(np.moveaxis(got, 1, 3) - expected.images).max() < bound


def test_classes_may_differ_in_frequencies(client: Client) -> None:
    """A plan whose classes combine frequencies by weights of their own, with states in its history."""
    search: dict[str, Any] = {"solvers": ["ipndm"], "learn": False, "progress": False}
    plans = (client.few("digits", nfe=nfe, budget=9000, seed=seed, **search) for seed in range(3) for nfe in (3, 5))
    plan = next(plan for plan in plans if plan.coordinates is not None)
    assert plan.states
    one = {name: plan.file[name] for name in ("t", "init", "coordinates", "stages", "tails")}
    slower = [{**stage, "alpha": [0.9 * weight for weight in stage["alpha"]]} for stage in one["stages"]]
    rest = {name: value for name, value in plan.file.items() if name not in one}
    classes = [{"labels": [3], **one}, {"labels": [4, 7], **one, "stages": slower}]
    draw: dict[str, Any] = {"seed": 5, "dtype": "float32", "progress": False}
    images = client.sample("digits", labels=[3, 7, 3], plan={**rest, "classes": classes}, **draw).images
    for labels, stages in (([3, 3, 3], one["stages"]), ([7, 7, 7], slower)):
        expected = client.sample("digits", labels=labels, plan={**plan.file, "stages": stages}, **draw).images
        rows = [row for row, label in enumerate([3, 7, 3]) if label == labels[0]]
        np.testing.assert_allclose(images[rows], expected[rows], atol=1e-5)
    with pytest.raises(BadRequestError, match=r"has no class 5\. It is of the classes \[3 4 7\]"):
        client.sample("digits", labels=[5], plan={**rest, "classes": classes}, **draw)


def test_the_cost_is_said_and_levels_are_learned(
    client: Client, mixed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    settings: dict[str, Any] = {"nfe": 2, "dataset": "blocks", "samples": 64, "solvers": ["ipndm"]}
    costs, learned = [], []
    for learn in (False, None):
        plan = client.few(mixed, learn=learn, **settings)
        lines = capsys.readouterr().out.splitlines()[:-2]  # none of a search that is over within a second
        costs += [int(re.findall(r"about (\d+) evaluations", line)[0]) for line in lines]
        learned.append("learned" in {tried["levels"] for tried in plan.info["tries"]})
    assert costs == sorted(set(costs))
    assert learned == [False, True]
    client.few(mixed, progress=False, **settings)
    assert capsys.readouterr() == ("", "")


def test_budgets(client: Client, mixed: str) -> None:
    with pytest.raises(BadRequestError, match=r"budget must be at least \d+ evaluations here, got 50") as refused:
        client.few(mixed, nfe=3, budget=50, progress=False)
    least = int(str(refused.value).split("at least ")[1].split()[0])
    assert client.few(mixed, nfe=3, budget=least, progress=False).nfe == 3
    budgets: list[Any] = [None, "1.5 s", np.int64(7), "90s"]
    given = [budget_fields(budget, learn) for budget, learn in zip(budgets, (None, True, False, None), strict=True)]
    assert given == [{}, {"learn": True, "seconds": 1.5}, {"learn": False, "budget": 7}, {"seconds": 90}]
    for wrong in (0, -5, True, False, "hours", "7", 1.5, "0 s", "1.2.3s"):
        with pytest.raises(BadRequestError, match=rf'budget must be .* "90 s", got {re.escape(repr(wrong))}'):
            client.few(mixed, nfe=3, budget=wrong)  # pyright: ignore[reportArgumentType]
    with pytest.raises(BadRequestError, match=r"budget minutes is gone since 0\.1: levels and coefficients"):
        client.few(mixed, nfe=3, budget="minutes")
    with pytest.raises(BadRequestError, match="budget and seconds must not both be given"):
        client.few(mixed, nfe=3, budget=4000, seconds=3.0)
    assert client.few(mixed, nfe=3, budget="0.5 s", learn=False, progress=False).nfe == 3


LONG: dict[str, Any] = {"nfe": 9, "dataset": "blocks", "samples": 65536, "name": "few-ended"}
"""A search of many minutes."""


def test_ctrl_c_ends_it_with_the_best_so_far(
    client: Client, mixed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    follow = Bar.follow

    def interrupts(bar: Bar, event: dict[str, Any]) -> None:
        follow(bar, event)
        if event.get("part") == "last rounds":
            monkeypatch.undo()
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Bar, "follow", interrupts)
    plan = client.few(mixed, **{**LONG, "nfe": 5, "samples": 2048})
    assert plan.info["stopped"]
    assert plan.info["summary"] in capsys.readouterr().out
    assert len(plan.info["tries"]) > 20
    assert client.sample("digits", n=2, plan="few-ended", other_weights=True).nfe.tolist() == [5, 5]
    client.delete_plan("few-ended")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_before_anything_was_measured(client: Client, mixed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    follow, seen = Bar.follow, []

    def interrupts(bar: Bar, event: dict[str, Any]) -> None:
        follow(bar, event)
        seen.extend({"search"} & event.keys())
        if len(seen) == 2:
            monkeypatch.undo()
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Bar, "follow", interrupts)
    with pytest.raises(CancelledError, match="before anything was measured"):
        client.few(mixed, progress=False, **LONG)
    assert "few-ended" not in client.plans().index


def test_an_interrupted_command_writes_its_plan(client: LocalClient, mixed: str, tmp_path: Path) -> None:
    words = ["--server", client.location, "--model", mixed, "--nfe", "9", "--dataset", "blocks", "--samples", "65536"]
    with subprocess.Popen([find_binary(), "few", *words, "--out", tmp_path / "few.json"], stderr=PIPE) as process:
        assert process.stderr is not None
        assert b"trying" in process.stderr.readline()  # after ten seconds
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    assert Plan.load(tmp_path / "few.json").info["stopped"]


def test_it_is_stored_under_a_name(client: Client, mixed: str) -> None:
    search: dict[str, Any] = {"nfe": 2, "solvers": ["ipndm"], "budget": 2000, "progress": False}
    plan = client.few(mixed, name="few-stored", **search)
    listed = client.plans().loc["few-stored"]
    assert (listed["nfe"], listed["solver"], listed["summary"]) == (2, plan.solver, plan.info["summary"])
    assert client.plan(plan="few-stored").file == plan.file
    with pytest.raises(NameTakenError, match="few-stored"):
        client.few(mixed, name="few-stored", **search)
    again = client.few(mixed, name="few-stored", replace=True, **search)
    assert again.file["stages"] == plan.file["stages"]
    client.delete_plan("few-stored")


def test_a_plan_outlives_a_name_that_was_taken_meanwhile(
    client: Client, mixed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, follow = client.plan("edm", model=mixed, solver="ipndm", nfe=4), Bar.follow

    def takes(bar: Bar, event: dict[str, Any]) -> None:
        follow(bar, event)
        if "search" in event:
            monkeypatch.undo()
            client.put_plan("few-taken", other)

    monkeypatch.setattr(Bar, "follow", takes)
    with pytest.warns(AnisoflightWarning, match='the plan is not stored: A plan is already called "few-taken"'):
        plan = client.few(mixed, nfe=2, dataset="blocks", samples=64, name="few-taken", progress=False)
    assert client.sample(mixed, n=2, plan=plan).nfe.tolist() == [2, 2]
    assert "notes" not in plan.file
    assert client.plan(plan="few-taken").nfe == 4
    client.delete_plan("few-taken")


def test_a_plan_is_for_the_weights_that_it_was_made_for(client: Client, mixed: str) -> None:
    plan = client.few(mixed, nfe=3, solvers=["ipndm"], budget=4000, progress=False)
    with pytest.raises(BadRequestError, match=r'The plan was made for the weights .* of the model "few-mixed"'):
        client.sample("digits", n=1, plan=plan, progress=False)
    drawn = client.sample("digits", n=1, plan=plan, other_weights=True, progress=False)
    assert drawn.nfe.tolist() == [3]
    client.put_plan("few-named", plan, replace=True)
    with pytest.raises(BadRequestError, match=r'The plan "few-named" was made .* or set other_weights'):
        client.sample("digits", n=1, plan="few-named", progress=False)
    client.delete_plan("few-named")


def test_the_command_writes_the_same_plan(client: Client, mixed: str, tmp_path: Path) -> None:
    """Its file has the law in it; Python's has it next to it."""
    out = tmp_path / "few.json"
    words = ["--server", client.location, "--model", mixed, "--dataset", "blocks", "--nfe", "3", "--samples", "64"]
    run = subprocess.run([find_binary(), "few", *words, "--out", out], capture_output=True, check=True, text=True)
    made = client.few(mixed, nfe=3, dataset="blocks", samples=64, progress=False)
    assert run.stdout.splitlines() == made.told.splitlines()
    assert "law" in json.loads(out.read_text())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["few.json"]
    written = Plan.load(out)
    assert written.law is not None
    assert "law" not in written.file
    written.save(tmp_path / "again.json")
    assert (tmp_path / "start.safetensors").exists()
    beside = Plan.load(tmp_path / "again.json")
    assert beside.law is not None
    assert beside.law.hash == written.law.hash
    drawn = client.sample(mixed, n=2, plan=made, progress=False).images
    for plan in (written, beside):
        np.testing.assert_array_equal(client.sample(mixed, n=2, plan=plan, progress=False).images, drawn)


def test_a_network_without_classes_gets_a_plan_without(client: Client) -> None:
    """Also from the law of images that have classes."""
    settings: dict[str, Any] = {"network": {**wire.NETWORK, "label_dim": 0}, "batch": 16, "kimg": 1, "lr": 1e-3}
    run = client.create_run("few-unlabelled", "pretrain", "blocks", **settings)
    run.step(8)
    run.save("few-unlabelled", force=True)
    plan = client.few("few-unlabelled", 2, "blocks", samples=64, solvers=["ipndm"], learn=False, progress=False)
    assert plan.labels == []
    noise = latents([3, 4], (8, 8, 1))
    drawn = client.sample("few-unlabelled", latents=noise, plan=plan, dtype="float32", progress=False).images

    def denoiser(x: np.ndarray, sigma: np.ndarray) -> np.ndarray:
        return client.denoise("few-unlabelled", x.astype(np.float32), sigma, progress=False).denoised

    own = plan(denoiser, np.moveaxis(noise, -1, 1), progress=False)
    np.testing.assert_allclose(np.moveaxis(own, 1, -1), drawn, atol=1e-4)
