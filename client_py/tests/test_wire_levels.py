"""A model's own noise levels, here 0.03 to 14.6, rule everything that is done with it, in every parametrisation."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.flight as fl
import pytest
import wire

import anisoflight
from anisoflight.errors import AnisoflightError

LOW, HIGH = 0.03, 14.6
SECTIONS: dict[str, dict[str, Any] | None] = {
    "edm": None,
    "epsilon": {"kind": "epsilon", "alphas_cumprod": (1 / (1 + np.geomspace(LOW, HIGH, 100) ** 2)).tolist()},
    "flow": {"kind": "flow", "steps": 1000, "sigma_min": LOW, "sigma_max": HIGH},
}


@pytest.fixture(scope="module", params=SECTIONS)
def bounded(
    request: pytest.FixtureRequest, server: anisoflight.LocalClient, data_folder: Path, model: str
) -> Iterator[str]:
    """The session's model with noise levels of its own, and without a schedule."""
    name = f"bounded-{request.param}"
    source, target = data_folder / "models" / model, data_folder / "models" / name
    target.mkdir()
    config = json.loads((source / "config.json").read_text())
    if SECTIONS[request.param] is None:
        config |= {"sigma_min": LOW, "sigma_max": HIGH}
    else:
        config["parametrization"] = SECTIONS[request.param]
    (target / "config.json").write_text(json.dumps(config))
    shutil.copy(source / "model.safetensors", target)
    server.load_model(name)
    yield name
    server.unload_model(name)


def plan(flight: fl.FlightClient, **request: Any) -> dict[str, Any]:
    return wire.act(flight, "PlanSampler", request)[0]


def levels(of: dict[str, Any]) -> np.ndarray:
    return np.sqrt([stage["g"] for stage in of["stages"]]).reshape(-1)


@pytest.mark.parametrize("grid", ["schedule", "edm", "logsnr", "polynomial"])
@pytest.mark.parametrize("solver", ["heun", "ab", "dpmpp2m", "unipc"])
def test_samplers_keep_within(flight: fl.FlightClient, bounded: str, grid: str, solver: str) -> None:
    made = plan(flight, model=bounded, grid=grid, solver=solver, nfe=8)
    sigma = levels(made)
    assert made["init"] == pytest.approx([HIGH], rel=1e-6)
    assert sigma.min() >= LOW * (1 - 1e-6)
    assert sigma.max() == pytest.approx(HIGH, rel=1e-6)
    if grid in ("edm", "logsnr"):
        assert sigma.min() == pytest.approx(LOW, rel=1e-5)


def test_noise_levels_beyond_are_refused(
    server: anisoflight.LocalClient, flight: fl.FlightClient, bounded: str
) -> None:
    info = server.describe_model(bounded)
    assert (info["sigma_min"], info["sigma_max"]) == pytest.approx((LOW, HIGH), rel=1e-9)
    for what, request in {
        "a schedule beyond": {"schedule": {"edm": {"T": 400}}, "nfe": 5},
        "a list beyond": {"grid": {"sigma": [10, 1, 0.01, 0]}},
        "a rule beyond": {"grid": {"edm": {"sigma_min": 0.01}}, "nfe": 5},
        "a start beyond": {"grid": {"edm": {"sigma_max": 40}}, "nfe": 5},
    }.items():
        with pytest.raises(AnisoflightError) as error:
            server.sample(bounded, n=1, **request)
        assert error.value.code == "BAD_REQUEST", what
    x = np.zeros((1, 8, 8, 1), np.float32)
    server.denoise(bounded, x, [HIGH])
    server.denoise(bounded, x, [LOW])
    for sigma in (80, 0.02):
        with pytest.raises(AnisoflightError, match=r"outside of 0\.03 … 14\.6"):
            server.denoise(bounded, x, [sigma])


def test_what_is_measured_and_made_keeps_within(
    server: anisoflight.LocalClient, flight: fl.FlightClient, dataset: str, bounded: str
) -> None:
    def made(**request: Any) -> None:
        wire.act(flight, "MakeSchedule", {"name": "within", "replace": True, **request})
        sigma = wire.get(flight, "EvaluateSchedule", {"schedule": "within"}).table["sigma"].to_numpy()
        assert sigma.min() >= LOW * (1 - 1e-6), request
        assert sigma.max() <= HIGH * (1 + 1e-6), request

    made(kind="geodesic", model=bounded, dataset=dataset, points=8, samples=2)
    sigma = levels(plan(flight, model=bounded, schedule="within", nfe=5))
    assert sigma.min() >= LOW * (1 - 1e-6)
    with pytest.raises(AnisoflightError, match="within the model's noise levels"):
        server.make_schedule("beyond", "geodesic", model=bounded, dataset=dataset, T=6400.0)


def test_training_keeps_within(
    server: anisoflight.LocalClient, flight: fl.FlightClient, dataset: str, bounded: str
) -> None:
    request = {"name": f"run-{bounded}", "stage": "isotropic", "dataset": dataset, "model": bounded, "batch": 4}
    request["init"] = "edm"  # not measured
    wire.act(flight, "CreateRun", request)
    config = wire.act(flight, "GetRun", {"run": request["name"]})[0]["config"]
    assert config["g0"] == pytest.approx(LOW**2, rel=1e-6)
    assert config["g0"] < config["T"] <= HIGH**2 * (1 + 1e-6)
    if bounded == "bounded-epsilon":  # one parametrization of the three, since each is compiled
        rows = wire.get(flight, "TrainStep", {"run": request["name"], "steps": 2}).table
        assert np.isfinite(rows["loss"].to_numpy()).all()


@pytest.mark.parametrize("images", [False, True])
def test_searched_levels_keep_within(flight: fl.FlightClient, dataset: str, bounded: str, *, images: bool) -> None:
    request = {"dataset": dataset, "samples": 64} if images else {}
    made = wire.act(flight, "MakePlan", {"model": bounded, "nfe": 3, "solvers": ["dpmpp2m"], **request})[-1]
    sigma = levels(made.get("classes", [made])[0])
    assert sigma.min() >= LOW * (1 - 1e-6)
    assert sigma.max() <= HIGH * (1 + 1e-6)


def test_a_plan_keeps_to_the_model_of_its_schedule(
    server: anisoflight.LocalClient, flight: fl.FlightClient, dataset: str, bounded: str
) -> None:
    """Without a model it is that of sample, not another; where nothing says the levels, it is refused."""
    quiet: dict[str, Any] = {"replace": True, "progress": False}
    server.make_schedule("levels-of", "geodesic", model=bounded, dataset=dataset, points=6, samples=2, **quiet)
    server.make_schedule("levels-started", "start", dataset=dataset, schedule="levels-of", per_class=False, **quiet)
    options: dict[str, Any] = {"solver": "dpmpp2m", "nfe": 5, "grid": "logsnr"}
    for schedule in ("levels-of", "levels-started", bounded):
        made = plan(flight, schedule=schedule, **options)
        assert made["model"] == bounded
        assert made == plan(flight, schedule=schedule, model=bounded, **options)
    latents = np.random.default_rng(0).standard_normal((2, 8, 8, 1)).astype(np.float32)

    def denoiser(x: np.ndarray, sigma: np.ndarray, labels: list[int]) -> np.ndarray:
        return server.denoise(bounded, x, sigma, labels, progress=False).denoised

    x = server.plan("levels-of", **options)(denoiser, np.moveaxis(latents, 3, 1), labels=[1, 2], progress=False)
    drawn = server.sample(
        bounded, latents=latents, labels=[1, 2], schedule="levels-of", dtype="float32", progress=False, **options
    )
    np.testing.assert_allclose(np.moveaxis(x, 1, 3), drawn.images, atol=1e-4)

    known = server.describe_model(bounded)
    levels = {"sigma_min": known["sigma_min"], "sigma_max": known["sigma_max"]}
    outside = plan(flight, schedule="edm", **levels, **options)
    assert "model" not in outside
    assert outside == {k: v for k, v in plan(flight, schedule="edm", model=bounded, **options).items() if k != "model"}
    with pytest.raises(AnisoflightError, match=r'model is missing.*"edm" was made for none'):
        server.plan("edm", **options)
    server.unload_model(bounded)
    try:
        with pytest.raises(AnisoflightError, match=rf'model is missing.*for the model "{bounded}", which is not here'):
            server.plan("levels-of", **options)
    finally:
        server.load_model(bounded)
