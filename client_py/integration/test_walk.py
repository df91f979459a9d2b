"""Everything that the server does, on one exported network with classes, guidance, and noise levels of 0.03 to 14.6."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from diffusers import DDPMScheduler
from network import digits
from network_fixtures import networks

import anisoflight
from anisoflight.fid.__main__ import main as fid

QUICK = {"XLA_FLAGS": "--xla_backend_optimization_level=0"}  # compiles in a third of the time
ENDPOINT: dict[str, Any] = {"solver": "heun", "second_point": "endpoint"}
LABELS = [0, 3, 1, 2]
FIELDS: dict[str, Any] = {"dataset": "digits", "model": "walk", "batch": 8, "kimg": 1.0, "seed": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("walk")


@pytest.fixture(scope="module")
def module() -> torch.nn.Module:
    """Its fifth class stands for none."""
    return networks()["unet"][0]


@pytest.fixture(scope="module")
def client(folder: Path, module: torch.nn.Module) -> Iterator[anisoflight.LocalClient]:
    with anisoflight.serve(data=folder, environment=QUICK) as client:
        images = digits()
        client.put_dataset("digits", images, np.arange(len(images)) % 4, progress=False)
        noises = DDPMScheduler(beta_schedule="scaled_linear", beta_start=0.00085, beta_end=0.012)
        client.put_network("walk", module, scheduler=noises, labels=4, progress=False)
        yield client


def drawn(client: anisoflight.Client, model: str = "walk", **options: Any) -> np.ndarray[Any, Any]:
    """Samples of one seed and four classes, all of them finite."""
    samples = client.sample(model, labels=LABELS, seed=5, dtype="float32", progress=False, **options)
    assert np.isfinite(samples.images).all()
    if "nfe" in options and "guidance" not in options:
        assert set(samples.nfe) == {options["nfe"]}
    return samples.images


def test_its_own_noise_levels_rule(client: anisoflight.LocalClient) -> None:
    known = client.describe_model("walk")
    assert (known["label_dim"], known["parametrization"]) == (4, "epsilon")
    np.testing.assert_allclose([known["sigma_min"], known["sigma_max"]], [0.02917, 14.615], rtol=1e-3)
    plan = client.plan("walk", **ENDPOINT, steps=5, grid="edm", model="walk")
    sigma = np.sqrt([stage["g"][0] for stage in plan.file["stages"]])
    np.testing.assert_allclose([sigma.max(), sigma.min()], [known["sigma_max"], known["sigma_min"]], rtol=1e-3)
    with pytest.raises(anisoflight.BadRequestError, match=r"14\.6"):
        client.sample("walk", n=1, grid={"sigma": [40, 1, 0]}, progress=False)


def test_samples_guided_and_not_converge(client: anisoflight.LocalClient) -> None:
    plain = drawn(client, **ENDPOINT, nfe=9)
    guided = drawn(client, **ENDPOINT, nfe=9, guidance=3.0, guidance_interval=(0.2, 5.0))
    assert np.abs(guided - plain).max() > 1e-3
    for more in ({}, {"guidance": 3.0}):
        exact = drawn(client, **ENDPOINT, grid="edm", steps=60, **more)
        for solver in (ENDPOINT, {"solver": "ipndm"}, {"solver": "dpmpp2m"}, {"solver": "unipc"}):
            few, many = (drawn(client, **solver, grid="edm", nfe=nfe, **more) - exact for nfe in (5, 15))
            assert np.square(many).mean() < np.square(few).mean(), solver


@pytest.mark.parametrize("kind", ["geodesic", "start"])
def test_schedules_that_are_made(client: anisoflight.LocalClient, kind: str) -> None:
    options: dict[str, Any] = {
        "geodesic": {"model": "walk", "dataset": "digits", "points": 8, "samples": 4},
        "start": {"dataset": "digits", "sigma_max": 10, "schedule": "walk"},
    }[kind]
    made = client.make_schedule(f"walk-{kind}", kind, progress=False, **options)
    assert made.info["T"] <= client.describe_model("walk")["sigma_max"] ** 2 * (1 + 1e-6)
    images = drawn(client, schedule=made.name, solver="dpmpp2m", nfe=5)
    assert np.abs(images - drawn(client, solver="dpmpp2m", nfe=5)).max() > 1e-4


@pytest.mark.parametrize("options", [{}, {"dataset": "digits"}, {"dataset": "digits", "guidance": 3.0}])
def test_plans_that_are_searched(client: anisoflight.LocalClient, options: dict[str, Any]) -> None:
    plan = client.few("walk", nfe=5, samples=64, solvers=["dpmpp2m"], progress=False, **options)
    highest = client.describe_model("walk")["sigma_max"]
    assert max(plan.for_label(0).init) <= highest * (1 + 1e-6)
    guided = {"guidance": options["guidance"]} if "guidance" in options else {}
    images = drawn(client, plan=plan, **guided)
    assert np.abs(images - drawn(client, solver="dpmpp2m", nfe=5, **guided)).max() > 1e-4


@pytest.mark.parametrize("mode", ["explicit", "backprop", "full"])
def test_schedules_that_are_learned(client: anisoflight.LocalClient, mode: str) -> None:
    run = client.create_run(f"learned-{mode}", "isotropic", estimator=mode, train_network=False, **FIELDS)
    rows = run.step(3, progress=False)
    assert np.isfinite(rows["loss"]).all()
    run.save(f"learned-{mode}")
    assert np.abs(drawn(client, f"learned-{mode}", steps=4) - drawn(client, steps=4)).max() > 0


def test_the_network_is_trained_and_goes_on_after_a_restart(
    client: anisoflight.LocalClient, module: torch.nn.Module, tmp_path: Path
) -> None:
    whole = client.create_run("whole", "pretrain", **FIELDS).step(4, progress=False)
    data = tmp_path / "data"
    exported = client.get_network("walk", copy.deepcopy(module))
    noises = DDPMScheduler(beta_schedule="scaled_linear", beta_start=0.00085, beta_end=0.012)
    for begun in (True, False):
        with anisoflight.serve(data=data, environment=QUICK) as other:
            if begun:
                images = digits()
                other.put_dataset("digits", images, np.arange(len(images)) % 4, progress=False)
                other.put_network("walk", exported, scheduler=noises, labels=4, progress=False)
                first = other.create_run("parted", "pretrain", **FIELDS).step(2, progress=False)
                other.run("parted").pause()
                continue
            last = other.run("parted").step(2, progress=False)
            np.testing.assert_array_equal([*first["loss"], *last["loss"]], whole["loss"])
            np.testing.assert_array_equal(drawn(other, nfe=4), drawn(client, nfe=4))
    client.run("whole").save("trained")
    trained = client.get_network("trained", copy.deepcopy(module))
    assert any(not torch.equal(a, b) for a, b in zip(trained.parameters(), module.parameters(), strict=True))
    autoguided = drawn(client, "trained", nfe=4, guidance=2.0, guide="walk")
    assert np.abs(autoguided - drawn(client, "trained", nfe=4)).max() > 0


def test_log_ratios_come_in_at_zero(client: anisoflight.LocalClient) -> None:
    """The network that has the input and the one that has none take the same first step."""
    family = {"basis": "dct", "k": 16}
    rows = [
        client.create_run(f"ratios-{has:d}", "anisotropic", family=family, ratio_embedding=has, **FIELDS).step(
            1, progress=False
        )
        for has in (True, False)
    ]
    np.testing.assert_allclose(rows[0]["loss"], rows[1]["loss"], rtol=1e-5)
    run = client.run("ratios-1")
    assert np.isfinite(run.step(2, progress=False)["loss"]).all()
    run.save("with-ratios")
    drawn(client, "with-ratios", steps=3)


def test_distances_of_its_samples(client: anisoflight.LocalClient, tmp_path: Path) -> None:
    server = ["--server", client.location, "--quiet"]
    assert fid(["ref", *server, "--dataset", "digits", "--features", "pca-6", "--out", str(tmp_path / "r.npz")]) == 0
    asked = ["--model", "walk", "--steps", "3", "--second-point", "endpoint", "--seeds", "0-31", "--allow-fewer"]
    guided = ["--option", "guidance=2"]
    for more in ([], guided):
        words = ["calc", *server, *asked, *more, "--ref", str(tmp_path / "r.npz"), "--out", str(tmp_path / "rows")]
        assert fid(words) == 0
    rows = [json.loads(line) for line in (tmp_path / "rows").read_text().splitlines()]
    assert [row["nfe"] for row in rows] == [5, 10]
    assert rows[0]["frechet"] != rows[1]["frechet"]


@pytest.mark.parametrize(("precision", "least", "most"), [("tf32", 0.0, 1e-3), ("bfloat16", 1e-6, 0.2)])
def test_other_arithmetic(client: anisoflight.LocalClient, precision: str, least: float, most: float) -> None:
    exact = drawn(client, nfe=4)
    client.load_model("walk", precision=precision)
    assert client.describe_model("walk")["precision"] == precision
    away = np.abs(drawn(client, nfe=4) - exact).max()
    client.load_model("walk", precision="float32")
    assert least <= away <= most
