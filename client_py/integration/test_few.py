"""`few` on denoisers in torch: the search of the server by questions and answers."""

import itertools
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from diffusers import DDPMPipeline, DDPMScheduler, UNet2DModel
from network import digits

from anisoflight import AnisoflightWarning, BadRequestError, Client, Plan
from anisoflight.torch import Denoiser, searching
from anisoflight.torch import few as search

MEANS = torch.randn(4, 3 * 8 * 8, generator=torch.Generator().manual_seed(1))
SPREAD = torch.linspace(0.1, 0.5, 3 * 8 * 8)


def exact(x: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
    """The denoiser of a mixture of four normal laws about MEANS/2."""
    flat, noise = x.flatten(1).double(), sigma.double()[:, None, None] ** 2
    total = SPREAD.double() ** 2 + noise
    away = flat[:, None] - MEANS / 2
    weights = torch.softmax(-(away**2 / total + total.log()).sum(-1) / 2, 1)[..., None]
    return (weights * (MEANS / 2 + SPREAD.double() ** 2 / total * away)).sum(1).to(x).reshape(x.shape)


def sharp(x: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
    """The denoiser of four normal laws about MEANS/2 that hardly overlap."""
    away, variance = x.flatten(1).double()[:, None] - MEANS / 2, 0.15**2 + sigma.double()[:, None, None] ** 2
    weights = torch.softmax(-(away**2 / variance).sum(-1) / 2, 1)[..., None]
    return (weights * (MEANS / 2 + 0.15**2 / variance * away)).sum(1).to(x).reshape(x.shape)


def images(count: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(2)
    own = MEANS[torch.randint(4, (count,), generator=generator)] / 2
    return (own + SPREAD * torch.randn(count, 192, generator=generator)).reshape(count, 3, 8, 8)


def few(denoiser: Any, nfe: int, *given: Any, **options: Any) -> Plan:
    """The search, of as few evaluations as of a slow network, unless a test asks for more."""
    among_images = len(given) > 1 or "data" in options
    return search(denoiser, nfe, *given, **{**({"learn": False} if among_images else {"budget": 4000}), **options})


def squared_error(plan: Plan, against: Plan, count: int = 64) -> float:
    """The geometric mean of the squared errors of samples beside those of another plan."""
    noise = torch.randn(count, 3, 8, 8, generator=torch.Generator().manual_seed(9))
    off = (plan(exact, noise, progress=False) - against(exact, noise, progress=False)).flatten(1).square().sum(1)
    return float(off.log().mean().exp())


def test_the_search_is_the_servers(client: Client, unet: UNet2DModel, capsys: pytest.CaptureFixture[str]) -> None:
    """The same network uploaded and as a callable: the same tries and distances, the same plan, the same lines."""
    client.put_network("few-served", unet, scheduler=DDPMScheduler(), replace=True, progress=False)
    data = digits()[:512]
    client.put_dataset("few-data", data, replace=True, progress=False)
    settings: dict[str, Any] = {"nfe": 3, "samples": 64, "solvers": ["ipndm"], "learn": True}
    plan = client.few("few-served", dataset="few-data", **settings)
    theirs = capsys.readouterr().out.splitlines()
    D = Denoiser(unet, DDPMScheduler())
    ours = few(D, shape=(1, 8, 8), data=np.moveaxis(data, -1, 1), client=client, **settings)
    mine = capsys.readouterr().out.splitlines()
    for printed, of in ((theirs, plan), (mine, ours)):
        assert printed[-2] == of.info["summary"]
        assert printed[-1].split("; ")[0] == f"few: {of.nfe} evaluations in {of.steps} steps"
    assert re.sub(r"[\d.e+-]+", "#", theirs[-2]) == re.sub(r"[\d.e+-]+", "#", mine[-2])
    assert len(plan.info["tries"]) == len(ours.info["tries"])
    for a, b in zip(plan.info["tries"], ours.info["tries"], strict=True):
        learned = a["levels"] == "learned"
        assert all(a[key] == b[key] for key in ("solver", "start", "levels", "samples"))
        assert b["sigma_max"] == (pytest.approx(a["sigma_max"], rel=0.3) if learned else a["sigma_max"])
        for key in ("frequencies", "edges", "responses"):
            assert b[key] == pytest.approx(a[key], rel=0.3 if learned else 1e-4)
    assert "learned" in {tried["levels"] for tried in plan.info["tries"]}
    assert (plan.solver, plan.law is None) == (ours.solver, ours.law is None)
    mine, its = (one.file.get("classes", [one.file])[0] for one in (ours, plan))
    for key in ("t", "init"):
        np.testing.assert_allclose(mine[key], its[key], rtol=1e-12)
    rounding = 1e-12 if plan.solver == "ipndm" else 1e-3  # the network's statistics in float32, of torch and of XLA
    for a, b in zip(mine["stages"], its["stages"], strict=True):
        np.testing.assert_allclose(a["alpha"], b["alpha"], rtol=rounding, atol=rounding)
    for tail, other in zip(mine["tails"], its["tails"], strict=True):
        for a, b in zip(tail, other, strict=True):
            np.testing.assert_allclose(a["alpha"], b["alpha"], rtol=10 * rounding, atol=10 * rounding)


@pytest.fixture(scope="module")
def alone() -> Plan:
    """The search without data, on a server of its own."""
    return few(exact, 5, (3, 8, 8), progress=False)


def test_without_data_samples_are_closer_to_converged_ones(client: Client, alone: Plan) -> None:
    ends: dict[str, float] = {"sigma_min": 0.002, "sigma_max": 80}
    converged = client.plan("edm", **ends, solver="heun", steps=200, grid="edm")
    plain = [
        client.plan("edm", **ends, solver=s, nfe=5, grid=g) for s in ("ipndm", "unipc") for g in ("edm", "polynomial")
    ]
    errors = [squared_error(plan, converged) for plan in plain]
    assert squared_error(alone, converged) < 0.5 * min(errors)
    report = alone.info
    assert report["ratio"] + 2 * report["ratio_stderr"] < 1
    assert report["evaluations"] <= 4000
    assert "squared error" in report["summary"]


def test_learning_brings_samples_closer(client: Client) -> None:
    """A sampler that is learned through the denoiser errs far less than what is fitted by steps, on a curved law."""
    report = few(sharp, 3, (3, 8, 8), budget=20_000, client=client, progress=False).info
    errors = {(tried["solver"], tried["levels"]): tried["distance"] for tried in reversed(report["tries"])}
    learned = errors.pop(("fitted", "learned"))
    assert learned < 0.1 * min(errors.values())


def test_tails_lead_where_converged_samples_do(client: Client) -> None:
    """Of the first of two fits with data, whose states are not the second's, and of a sampler that is learned."""
    means = torch.randn(4, 48, generator=torch.Generator().manual_seed(1)) / 2

    def narrow(x: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
        away, variance = x.flatten(1).double()[:, None] - means, 0.05**2 + sigma.double()[:, None, None] ** 2
        weights = torch.softmax(-(away**2 / variance).sum(-1) / 2, 1)[..., None]
        return (weights * (means + 0.05**2 / variance * away)).sum(1).to(x).reshape(x.shape)

    generator = torch.Generator().manual_seed(2)
    data = means[torch.randint(4, (400,), generator=generator)] + 0.05 * torch.randn(400, 48, generator=generator)
    data = data.reshape(400, 3, 4, 4)
    settings: dict[str, Any] = {"client": client, "progress": False, "seed": 2}
    fitted = few(narrow, 4, (3, 4, 4), data, samples=400, solvers=["dpmpp2m"], **settings)
    assert (fitted.solver, fitted.info["chosen"]["levels"]) == ("fitted", "trajectories")
    learned = few(narrow, 4, (3, 4, 4), budget=30_000, **settings)
    assert learned.info["chosen"]["levels"] == "learned"
    for plan, step in ((fitted, 1), (learned, 2)):
        tail, noise = plan.tail(step), torch.randn(400, 3, 4, 4, generator=generator)
        x = begun = tail.begin(noise, data)
        levels = np.geomspace(float(tail.evaluations[0].sigma), 0.002, 200)
        for high, low in itertools.pairwise(levels):  # DDIM's steps
            x = low / high * x + (1 - low / high) * narrow(x, torch.full((400,), high))
        off, before = ((y - x).square().sum((1, 2, 3)).mean() for y in (tail(narrow, noise, data), begun))
        assert off < 0.3
        assert off < 0.01 * before


def test_budgets_are_kept(client: Client) -> None:
    assert few(sharp, 8, (3, 8, 8), budget=3820, client=client, progress=False).info["evaluations"] <= 3820
    guided = Denoiser(lambda x, sigma, c: sharp(x, sigma) + c[:, :1, None, None], "denoiser",
                      cond={"c": torch.zeros(2, 1)}, empty={"c": torch.zeros(1, 1)}, guidance=2.0)  # fmt: skip
    with pytest.raises(BadRequestError, match=r"at least \d+ evaluations") as refused:
        few(guided, 3, (3, 8, 8), budget=1500, client=client, progress=False)
    least = int(str(refused.value).split("at least ")[1].split()[0])
    plan = few(guided, 3, (3, 8, 8), budget=least, client=client, progress=False)
    assert 1500 < plan.info["evaluations"] <= least
    for budget in (0, -5, True, "hours", 1.5):
        with pytest.raises(BadRequestError, match="budget must be"):
            few(sharp, 3, (3, 8, 8), budget=budget, client=client, progress=False)  # pyright: ignore[reportArgumentType]


def test_levels_that_are_close_together_are_searched(client: Client) -> None:
    plan = few(sharp, 4, (3, 8, 8), budget=30_000, sigma_min=2.5, sigma_max=3, client=client, progress=False)
    assert plan.nfe <= 4


def test_a_plan_is_stored_and_begins_anywhere(tmp_path: Path, alone: Plan) -> None:
    alone.save(tmp_path / "few.json")
    again = Plan.load(tmp_path / "few.json")
    assert again.info == json.loads(json.dumps(alone.info))
    noise = torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(3))
    torch.testing.assert_close(again(exact, noise, progress=False), alone(exact, noise, progress=False))
    x0 = images(64)
    tail, noise = alone.tail(step=3), torch.randn(64, 3, 8, 8, generator=torch.Generator().manual_seed(4))
    changed = tail(exact, noise, x0, progress=False)
    begun = tail.begin(noise, x0)
    sigma = torch.full((64,), float(tail.evaluations[0].sigma))
    off = [(y - x0).square().mean() for y in (changed, exact(begun, sigma))]
    assert off[0] < 1.9 * off[1]  # a sample errs by twice what the mean does, less where there is little noise


def test_with_data_the_search_may_start_from_their_law(client: Client) -> None:
    """Of a normal law the start is exact at any noise level, and noise alone is not."""
    spread = 0.6 / (1 + torch.arange(8.0)[:, None] + torch.arange(8.0))
    data = 0.3 + spread * torch.randn(2000, 3, 8, 8, generator=torch.Generator().manual_seed(2))

    def normal(x: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
        keep = spread**2 / (spread**2 + sigma[:, None, None, None] ** 2)
        return 0.3 + keep * (x - 0.3)

    plan = few(normal, 3, (3, 8, 8), data, samples=128, client=client, progress=False, solvers=["ipndm", "dpmpp2m"])
    assert plan.law is not None
    samples = plan(normal, torch.randn(1024, 3, 8, 8, generator=torch.Generator().manual_seed(3)), progress=False)
    torch.testing.assert_close(samples.mean(0), data.mean(0), atol=0.1, rtol=0)
    torch.testing.assert_close(samples.std(0), data.std(0), atol=0.05, rtol=0.2)


@torch.no_grad()
def test_a_temperature_of_the_noise(client: Client) -> None:
    """The plan begins at noise of that temperature, and ends where that leads; one that was not told ends elsewhere."""
    plan, untold = (few(exact, 4, (3, 8, 8), client=client, temperature=heat) for heat in (0.6, 1.0))
    noise = torch.randn(64, 3, 8, 8, generator=torch.Generator().manual_seed(9))
    many = client.plan("edm", sigma_min=0.002, sigma_max=80, solver="ipndm", nfe=64)
    ends = many(exact, 0.6 * noise, progress=False)
    offs = [(one(exact, noise, progress=False) - ends).flatten(1) for one in (plan, untold)]
    errors = [float(off.square().mean(1).log().mean().exp()) for off in offs]  # a few are of another mixture component
    assert errors[0] < 0.1 * errors[1]
    assert plan.init[0] < 0.8 * plan.evaluations[0].sigma
    with pytest.raises(BadRequestError, match=r"temperature must be above 0, and 1 with data, got 0\.6 with data"):
        few(exact, 4, data=images(64), client=client, temperature=0.6)


def test_without_data_errors_are_of_features(client: Client) -> None:
    """The first channel is easy: any sampler of a search that sees it alone has hardly an error."""

    def mixed(x: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
        return torch.cat([x[:, :1] / (1 + 4 * sigma[:, None, None, None] ** 2), exact(x, sigma)[:, 1:]], 1)

    every, first = (
        few(mixed, 3, (3, 8, 8), client=client, features=features).info["chosen"]["distance"]
        for features in (None, lambda x: x[:, :1])
    )
    assert first < 0.01 * every


def test_a_linear_denoiser_has_the_same_plan_at_any_temperature(client: Client) -> None:
    def linear(x: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
        return x / (1 + 4 * sigma[:, None, None, None] ** 2)

    plain, warm = (few(linear, 3, (3, 8, 8), client=client, temperature=heat) for heat in (1.0, 0.25))
    assert warm.init == [0.25 * level for level in plain.init]
    assert warm.file["stages"] == plain.file["stages"]


def test_features_are_what_distances_see(client: Client) -> None:
    """Features that see one channel alone."""
    seen: list[torch.Size] = []

    def features(x: torch.Tensor) -> torch.Tensor:
        seen.append(x.shape)
        return x[:, 0, ::4, ::4].flatten(1)

    options: dict[str, Any] = {"client": client, "progress": False, "features": features, "solvers": ["ipndm"]}
    with_data = few(exact, 3, (3, 8, 8), images(400), samples=64, **options)
    assert seen
    assert with_data.info["tries"][0]["distance"] > 0
    assert "paired" not in with_data.info
    assert few(exact, 3, (3, 8, 8), **options).info["tries"][0]["distance"] > 0


@pytest.mark.parametrize("axes", [(24,), (4, 4, 6)])
def test_one_axis_and_three(client: Client, axes: tuple[int, ...]) -> None:
    def denoise(x: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
        """Of two images, 1 and −1 everywhere."""
        wide = sigma.reshape(-1, *[1] * (x.ndim - 1))
        return torch.tanh(x.mean(tuple(range(2, x.ndim)), keepdim=True) * math.prod(axes) / wide**2).expand_as(x)

    plan = few(denoise, 4, (2, *axes), client=client, progress=False)
    noise = torch.randn(8, 2, *axes, generator=torch.Generator().manual_seed(3))
    samples = plan(denoise, noise, progress=False)
    assert samples.shape == (8, 2, *axes)
    torch.testing.assert_close(samples.abs().mean(), torch.tensor(1.0), atol=0.05, rtol=0)


def test_conditions_are_drawn_and_matched(client: Client) -> None:
    """A network of two classes, of which every sample has the own mean."""
    table = torch.tensor([-0.6, 0.6])

    def net(x: torch.Tensor, sigma: torch.Tensor, level: torch.Tensor) -> torch.Tensor:
        keep = 0.04 / (0.04 + sigma[:, None, None, None] ** 2)
        return keep * x + (1 - keep) * level[:, None, None, None]

    labels = torch.randint(2, (600,), generator=torch.Generator().manual_seed(0))
    data = table[labels][:, None, None, None] + 0.2 * torch.randn(
        600, 1, 4, 4, generator=torch.Generator().manual_seed(1)
    )
    D = Denoiser(net, "denoiser", cond={"level": table})
    plan = few(D, 3, (1, 4, 4), data, labels=labels, samples=64, client=client, progress=False, solvers=["ipndm"])
    rows = torch.tensor([0, 1] * 32)
    samples = plan(D, torch.randn(64, 1, 4, 4), labels=rows, progress=False)
    torch.testing.assert_close(samples.mean((1, 2, 3)), table[rows], atol=0.25, rtol=0)


def test_interrupted_searches_keep_the_best(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    original, calls = searching._Follower._follow, [0]

    def interrupted(self: Any, event: Any, question: Any) -> Any:
        calls[0] += 1
        if calls[0] == 12:
            raise KeyboardInterrupt
        return original(self, event, question)

    monkeypatch.setattr(searching._Follower, "_follow", interrupted)
    plan = few(exact, 5, (3, 8, 8), client=client, progress=False)
    assert calls[0] == 12
    assert plan.info["stopped"]
    assert "when the search was stopped" in plan.info["summary"]
    assert torch.isfinite(plan(exact, torch.randn(2, 3, 8, 8), progress=False)).all()
    calls[0] = -28  # among data: in the last rounds
    assert few(exact, 3, (3, 8, 8), images(300), samples=64, client=client, progress=False).info["stopped"]
    calls[0] = 11
    with pytest.raises(Exception, match="before anything was measured"):
        few(exact, 5, (3, 8, 8), client=client, progress=False)


def test_answers_that_cannot_be(client: Client) -> None:
    with pytest.raises(BadRequestError, match="budget must be at least"):
        few(exact, 5, (3, 8, 8), budget=50, client=client, progress=False)
    with pytest.raises(BadRequestError, match="nfe must"):
        few(exact, 0, (3, 8, 8), client=client, progress=False)
    with pytest.raises(BadRequestError, match="shape must be"):
        few(exact, 5, (), client=client, progress=False)

    def breaks(x: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:  # once the trial is over
        return torch.full_like(x, torch.nan) if len(x) > 8 else exact(x, sigma)

    with pytest.raises(BadRequestError, match="not finite"):
        few(breaks, 5, (3, 8, 8), client=client, progress=False)

    def raises(x: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
        if len(x) > 8:
            raise RuntimeError("the network's own trouble")
        return exact(x, sigma)

    with pytest.raises(RuntimeError, match="own trouble"):
        few(raises, 5, (3, 8, 8), client=client, progress=False)
    assert client.info()["version"]  # which leaves nothing behind


def test_data_and_labels_that_cannot_be(client: Client) -> None:
    D = Denoiser(
        lambda x, sigma, level: x / (1 + sigma[:, None, None, None] ** 2), "denoiser", cond={"level": [0, 1.0]}
    )
    x = torch.randn(300, 1, 4, 4)
    for labels, message in (
        (None, "labels must be given"),
        ([0] * 299, "300 whole"),
        ([2] * 300, "2 rows"),
        ([0.5] * 300, "whole"),
    ):
        with pytest.raises(BadRequestError, match=message):
            few(D, 3, (1, 4, 4), x, labels=labels, client=client, progress=False)
    with pytest.raises(BadRequestError, match="floats in the denoiser's units"):
        few(exact, 3, (3, 8, 8), np.zeros((9, 3, 8, 8), np.uint8), client=client, progress=False)
    for value in (np.nan, np.inf):
        broken = images(300)
        broken[112, 1, 0, 0] = value
        with pytest.raises(BadRequestError, match="data must be finite, got other values in image 112"):
            few(exact, 3, (3, 8, 8), broken, client=client, progress=False)
    for taken in ({"images": 3}, {"each": 7}, {"labelled": True}):
        with pytest.raises(BadRequestError, match=f"{next(iter(taken))} must be left out: the search sets them"):
            few(exact, 3, (3, 8, 8), client=client, progress=False, **taken)
    with pytest.raises(BadRequestError, match=r"an answer must have \d+ values"):
        few(exact, 3, (3, 8, 8), images(300), lambda x: x.flatten(1)[:, : 2 if len(x) > 60 else 3], samples=64,
            client=client, progress=False)  # fmt: skip
    few(lambda x, sigma: 0 * x, 3, (1, 4, 4), client=client, progress=False)


def test_in_a_pipeline(client: Client, unet: UNet2DModel) -> None:
    pipe = DDPMPipeline(unet, DDPMScheduler())
    pipe.set_progress_bar_config(disable=True)
    D = Denoiser(pipe.unet, pipe.scheduler)
    plan = few(D, 5, (1, 8, 8), client=client, progress=False)
    pipe.scheduler = plan.scheduler(pipe)
    generator = torch.Generator().manual_seed(5)
    drawn = pipe(batch_size=4, num_inference_steps=5, generator=generator, output_type="np").images
    noise = torch.randn(4, 1, 8, 8, generator=torch.Generator().manual_seed(5))
    samples = plan(D, noise, progress=False).clamp(-1, 1) / 2 + 0.5
    np.testing.assert_allclose(drawn, samples.permute(0, 2, 3, 1).numpy(), atol=2e-3)  # unit noise is not quite σ = 80


def test_guidance_counts_twice(client: Client) -> None:
    table = torch.tensor([-0.6, 0.6])

    def net(x: torch.Tensor, sigma: torch.Tensor, level: torch.Tensor) -> torch.Tensor:
        keep = 0.04 / (0.04 + sigma[:, None, None, None] ** 2)
        return keep * x + (1 - keep) * level[:, None, None, None]

    D = Denoiser(net, "denoiser", cond={"level": table}, empty={"level": torch.zeros(1)}, guidance=2.0)
    before = D.counts
    plan = few(D, 4, (1, 4, 4), budget=7000, client=client, progress=False)
    assert plan.info["evaluations"] <= 7000
    assert plan.info["evaluations"] <= D.counts - before
    samples = plan(D, torch.randn(2, 1, 4, 4), labels=[0, 1], progress=False)
    torch.testing.assert_close(samples.mean((1, 2, 3)), 2 * table, atol=0.3, rtol=0)


def test_the_guidance_of_each_evaluation_is_learned(client: Client) -> None:
    """A plan errs less with its own guidance; only a denoiser with guidance may be sampled by it."""
    generator = torch.Generator().manual_seed(0)
    means = 0.6 * torch.randn(4, 3, 16, generator=generator)
    deviations = 0.05 + 0.25 * torch.rand(4, 3, 16, generator=generator)

    def net(x: torch.Tensor, sigma: torch.Tensor, known: torch.Tensor) -> torch.Tensor:  # of 12 laws, or of 3
        shown = (known[:, None] < 0) | (known[:, None] == torch.arange(4))
        wide = deviations.square().flatten(0, 1) + sigma[:, None, None].square()
        off = x[:, None] - means.flatten(0, 1)
        log = -(off.square() / wide + wide.log()).sum(2) / 2
        weights = log.masked_fill(~shown.repeat_interleave(3, 1), -torch.inf).softmax(1)
        return (weights[..., None] * (x[:, None] - sigma[:, None, None].square() / wide * off)).sum(1)

    D = Denoiser(net, "denoiser", cond={"known": torch.arange(4)}, empty={"known": torch.tensor([-1])}, guidance=3.0)
    how: dict[str, Any] = {"budget": 160_000, "client": client, "progress": False}
    plan = few(D, 4, (16,), learn_guidance=True, **how)
    assert plan.guides
    assert not few(D, 4, (16,), **how).guides
    noise, labels = torch.randn(512, 16, generator=generator), torch.arange(512) % 4
    fine = client.plan("edm", sigma_min=0.002, sigma_max=80, solver="ipndm", nfe=99)
    stages = [{key: value for key, value in stage.items() if key != "guidance"} for stage in plan.file["stages"]]
    without = Plan({**plan.file, "stages": stages})
    drawn = [one(D, noise, labels=labels, progress=False) for one in (fine, plan, without)]
    off = [(one - drawn[0]).square().sum(1).log() for one in drawn[1:]]
    assert (off[0] - off[1]).mean() < -3 * (off[0] - off[1]).std() / 512**0.5
    before, unguided = D.counts, [{**stage, "guidance": 0} for stage in stages]
    Plan({**plan.file, "stages": unguided})(D, noise, labels=labels, progress=False)
    assert D.counts - before == 4 * 512  # none of it saves an evaluation
    plain = Denoiser(net, "denoiser", cond={"known": torch.zeros(1, dtype=torch.int64)})
    with pytest.raises(BadRequestError, match="learn_guidance must be left out"):
        few(plain, 3, (16,), learn_guidance=True, **how)
    for wrong, message in ((plain, "guidance must be given"), (lambda x, _: x, "guidance must be that of the plan")):
        with pytest.raises(BadRequestError, match=message):
            plan(wrong, noise)


def test_what_it_prints_is_what_pipelines_do(client: Client, unet: UNet2DModel, capsys: pytest.CaptureFixture) -> None:
    """A plan that begins at a low noise level costs DDPM's pipeline an evaluation of unit noise."""
    pipe = DDPMPipeline(unet, DDPMScheduler())
    pipe.set_progress_bar_config(disable=True)
    D = Denoiser(pipe.unet, pipe.scheduler)
    data = np.moveaxis(digits()[:256], -1, 1)
    for given in ({"sigma_max": 12.0}, {"data": data, "samples": 64, "solvers": ["ipndm"]}):
        plan = few(D, 3, client=client, **given)
        printed = "" if plan.takes_unit_noise(D.network) else "; 4 in pipelines"
        told = capsys.readouterr().out.splitlines()
        assert told[0].startswith("few: about")
        assert told[-1].startswith(f"few: 3 evaluations in {plan.steps} steps{printed}")
        pipe.scheduler = plan.scheduler(pipe)
        calls: list[int] = []
        hook = unet.register_forward_pre_hook(lambda *_, calls=calls: calls.append(1))
        pipe(num_inference_steps=plan.steps)
        hook.remove()
        assert len(calls) == pipe.scheduler.nfe == (4 if printed else 3)


@pytest.mark.parametrize(("mean", "deviation"), [(30.0, 16.5), (-3e-4, 2e-3), (128.0, 64.0)])
@pytest.mark.parametrize("known", [False, True], ids=["alone", "with data"])
def test_data_of_any_unit(client: Client, mean: float, deviation: float, known: bool) -> None:
    """Levels follow from the data, or from the network's own samples, so that these have its mean and deviation."""

    def peaks(x: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
        wide = sigma.double().reshape(-1, 1, 1) / deviation
        at, variance = (x.double() - mean) / deviation, wide**2 + 0.06
        peak = 0.97 * torch.tanh(0.97 * at / variance)
        return (mean + deviation * (peak + 0.06 / variance * (at - peak))).float()

    signs = torch.randint(2, (256, 2, 8), generator=torch.Generator().manual_seed(0)) * 2 - 1
    noise = torch.randn(256, 2, 8, generator=torch.Generator().manual_seed(1))
    data = mean + deviation * (0.97 * signs + 0.06**0.5 * noise)
    plan = few(peaks, 5, (2, 8), data if known else None, samples=64, client=client, progress=False)
    size = math.hypot(mean, deviation)
    assert size < plan.evaluations[0].sigma <= 81 * max(size, min(1, 4 * size))
    first, chosen = plan.evaluations[0].sigma, plan.info["chosen"]
    assert chosen["sigma_max"] == pytest.approx(first, rel=1e-3)
    assert chosen.get("deviation", chosen["sigma_max"]) == pytest.approx(plan.init[0], rel=1e-3)
    assert f"from sigma {first:.4g} " in plan.info["summary"]
    drawn = plan(peaks, torch.randn(2000, 2, 8, generator=torch.Generator().manual_seed(2)), progress=False)
    assert float(drawn.mean() - mean) == pytest.approx(0, abs=0.05 * deviation)
    assert float(drawn.std()) == pytest.approx(deviation, rel=0.15)


def test_the_callers_highest_level(client: Client) -> None:
    plan = few(exact, 3, (3, 8, 8), sigma_max=400, client=client, progress=False)
    assert plan.init[0] == pytest.approx(400)
    with pytest.raises(BadRequestError, match="sigma_max must increase, up to 50, the highest"):
        few(Denoiser(exact, "denoiser", sigma_max=50), 3, (3, 8, 8), sigma_max=400, client=client)


def test_vectors(client: Client) -> None:
    """Normal data [B, D] with a deviation for each value, as a posterior of parameters has it."""
    spread = torch.tensor([0.1, 0.3, 1.0])

    def shrink(x: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
        return x * spread**2 / (spread**2 + sigma[:, None] ** 2)

    noise = torch.randn(4000, 3, generator=torch.Generator().manual_seed(1))
    data = spread * torch.randn(512, 3, generator=torch.Generator().manual_seed(2))
    for known in (None, data):
        plan = few(shrink, 5, (3,), known, samples=64, client=client, progress=False)
        drawn = plan(Denoiser(shrink, "denoiser"), noise, progress=False)
        torch.testing.assert_close(drawn.std(0), spread, rtol=0.15, atol=0)


TABLE = DDPMScheduler(num_train_timesteps=100, beta_schedule="squaredcos_cap_v2")
RATIOS = torch.nn.Embedding.from_pretrained(TABLE.alphas_cumprod[:, None])


def embedded(z: torch.Tensor, timestep: torch.Tensor) -> torch.Tensor:
    """ε for normal data of deviation ½, from a table of times: others raise a RuntimeError."""
    alpha = RATIOS(timestep)[:, :, None]
    return z * (1 - alpha).sqrt() / (alpha / 4 + 1 - alpha)


def rounded(z: torch.Tensor, timestep: torch.Tensor) -> torch.Tensor:
    """The same, with times rounded down."""
    return embedded(z, timestep.long())


@pytest.mark.parametrize("network", [embedded, rounded])
@pytest.mark.parametrize("known", [False, True], ids=["alone", "with data"])
def test_whole_times(client: Client, network: Any, known: bool) -> None:
    data = 0.5 * torch.randn(256, 2, 16, generator=torch.Generator().manual_seed(0)) if known else None
    denoise = Denoiser(network, TABLE)
    plan = few(denoise, 5, (2, 16), data, samples=64, learn=True, client=client, progress=False)
    times = [denoise.network.time(stage.sigma) for stage in plan.evaluations]
    np.testing.assert_allclose(times, np.round(times), atol=1e-6)
    assert plan.whole_times
    scheduler = plan.scheduler(TABLE)
    scheduler.set_timesteps(plan.steps)
    assert scheduler.timesteps.dtype == torch.int64
    assert scheduler.timesteps.tolist() == np.round(times).tolist()
    drawn = plan(denoise, torch.randn(2000, 2, 16, generator=torch.Generator().manual_seed(1)), progress=False)
    assert float(drawn.std()) == pytest.approx(0.5, rel=0.05)
    with pytest.raises(BadRequestError, match=r"sigma must be one of the denoiser's levels, such as .* whole times"):
        denoise(torch.ones(1, 2, 16), 1.0)
    short = Denoiser(network, DDPMScheduler(num_train_timesteps=20))
    with pytest.raises(BadRequestError, match="the network must take 40 whole times or more for a search, got 20"):
        few(short, 5, (2, 16), client=client)


def test_random_answers_and_memory_are_noticed(client: Client) -> None:
    last: list[torch.Tensor] = []

    def lazy(x: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
        """Every second answer is the last one's change of x."""
        if last:
            return x + last.pop()
        last.append(exact(x, sigma) - x)
        return x + last[0]

    for network in (lazy, lambda x, sigma: exact(x, sigma) + 0.01 * torch.randn_like(x)):
        with pytest.warns(AnisoflightWarning, match="answers the same input differently at .* random .* remembers"):
            Denoiser(network, "denoiser").check((3, 8, 8))
