"""Starts from the normal law of a dataset: in the client, as files, and in plans."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import anisoflight
from anisoflight.latents import latents
from anisoflight.start import Start

SAMPLER = {"solver": "ipndm", "nfe": 4, "grid": "polynomial", "dtype": "float32", "progress": False}


@pytest.fixture(scope="module")
def two(client: anisoflight.Client) -> str:
    """A schedule of two subspaces that end at noise levels of their own, with a start."""
    rows = {"subspace": [0, 0, 1, 1], "t": [0, 9, 0, 9], "g": [1e-6, 25, 1e-6, 4]}
    client.put_schedule("two-ends", rows, basis="dct", k=4, replace=True)
    client.make_schedule("start-two", "start", dataset="blocks", schedule="two-ends", replace=True, progress=False)
    return "start-two"


@pytest.fixture(scope="module")
def one(client: anisoflight.Client) -> str:
    options = {"dataset": "blocks", "schedule": {"edm": {"T": 16}}, "replace": True, "progress": False}
    client.make_schedule("start-one", "start", per_class=False, **options)
    return "start-one"


def test_latents_are_the_servers(client: anisoflight.Client) -> None:
    want = client.sample("digits", labels=[3, 4], seed=2**64 - 1, **SAMPLER).images
    drawn = latents([2**64 - 1, 0], (8, 8, 1))
    got = client.sample("digits", labels=[3, 4], latents=drawn, **SAMPLER).images
    np.testing.assert_allclose(got, want, atol=1e-5)


@pytest.mark.parametrize("kind", ["start", "geodesic"])
def test_a_network_outside_is_told_what_can_be_done(client: anisoflight.Client, kind: str) -> None:
    """The advice is followed, word by word."""
    options: dict[str, Any] = {"dataset": "blocks", "replace": True, "progress": False}
    options |= {"model": "digits", "points": 8, "samples": 4} if kind == "geodesic" else {"per_class": False}
    outside: dict[str, Any] = {"sigma_min": 0.02, "sigma_max": 40.0, "solver": "heun", "nfe": 4}
    client.make_schedule("outside", kind, **options)
    origin = " from a schedule of kind edm" if kind == "start" else ""
    message = rf"Make one{origin} with T = 1600 and g0 = 0\.0004, or take the schedule edm\."
    with pytest.raises(anisoflight.BadRequestError, match=message):
        client.plan("outside", **outside)
    ends: dict[str, Any] = {"T": 1600, "g0": 0.0004}
    if kind == "start":
        client.make_schedule("ends", "edm", **ends, replace=True, progress=False)
        ends = {"schedule": "ends"}
    client.make_schedule("outside", kind, **options, **ends)
    for plan in (client.plan("outside", **outside), client.plan("edm", **outside)):
        levels = [stage.sigma for stage in plan.evaluations]
        assert plan.init == pytest.approx([40])
        assert 0.02 <= min(levels) * 1.0001 < max(levels) <= 40.0001


@pytest.mark.parametrize("name", ["one", "two"])
def test_a_plan_begins_where_the_server_does(
    client: anisoflight.Client, one: str, two: str, name: str, tmp_path: Path
) -> None:
    """The plan with its start, from a file and stepped by hand, gives the server's own samples."""
    schedule = {"one": one, "two": two}[name]
    options = {"solver": "ipndm", "nfe": 4, "grid": "polynomial" if name == "one" else "schedule"}
    levels = {"model": "digits"} if name == "one" else {}  # its grid is between the network's
    if name == "two":
        with pytest.raises(anisoflight.BadRequestError, match="label and labels are both missing"):
            client.plan(schedule, **options)
    client.plan(schedule, labels=[3, 7], **levels, **options).save(tmp_path / "plan.json")
    plan = anisoflight.Plan.load(tmp_path / "plan.json")
    loop = plan.stages(np.moveaxis(latents([5, 6], (8, 8, 1)), -1, 1), labels=[7, 3])
    for stage in loop:
        g = np.tile(np.square(stage.sigmas), (2, 1))
        basis = {} if name == "one" else {"basis": "dct", "k": 4}
        found = client.denoise("digits", np.moveaxis(loop.x, 1, -1), labels=[7, 3], g=g, progress=False, **basis)
        loop.step(np.moveaxis(found.denoised, -1, 1))
    x = loop.x
    want = client.sample("digits", labels=[7, 3], seed=5, schedule=schedule, dtype="float32", progress=False, **options)
    np.testing.assert_allclose(np.clip(np.moveaxis(x, 1, -1), -1, 1), np.clip(want.images, -1, 1), atol=2e-3)


def test_a_start_is_the_symmetric_root(client: anisoflight.Client, two: str) -> None:
    """Drawn from the rows of the identity it is a symmetric matrix whose square is Σ + M."""
    start = client.schedule(two).start
    assert start is not None
    assert start.labels == list(range(10))
    plan = client.plan(two, label=3, solver="euler", steps=1)
    units = np.eye(64).reshape(64, 8, 8, 1)
    mean = start.draw(0 * units[:1], 0.0, 3)
    root = (start.draw(units, [25, 4], 3, plan.subspaces) - mean).reshape(64, 64)
    np.testing.assert_allclose(root, root.T, atol=1e-10)
    sigma = (start.draw(units, 0.0, 3) - mean).reshape(64, 64)
    noise = np.moveaxis(plan.subspaces.combine([g * np.moveaxis(units, -1, 1) for g in (25.0, 4.0)]), 1, -1)
    np.testing.assert_allclose(root @ root, sigma @ sigma + noise.reshape(64, 64), atol=1e-9)


def test_a_start_travels_with_its_schedule(client: anisoflight.Client, one: str, tmp_path: Path) -> None:
    client.schedule(one).save(tmp_path / "one.json")
    start = Start.load(tmp_path / "start.safetensors")
    info = client.schedule(one).info["start"]
    assert (start.hash, info["covariance"], info["images"]) == (info["hash"], "dct", 64)
    client.put_schedule("one-copy", tmp_path / "one.json", replace=True)
    same = [client.sample("digits", n=2, schedule=name, **SAMPLER).images for name in (one, "one-copy")]
    np.testing.assert_array_equal(same[0], same[1])
    other = client.sample("digits", n=2, schedule=one, start="standard", **SAMPLER).images
    assert np.abs(other - same[0]).max() > 0.01


def test_what_is_no_start_is_refused(client: anisoflight.Client, one: str, two: str, tmp_path: Path) -> None:
    start = client.schedule(one).start
    assert start is not None
    assert client.schedule("edm").start is None
    with pytest.raises(ValueError, match="not a start"):
        Start(b"nothing")
    with pytest.raises(ValueError, match=r"xi must be images \[n, 8, 8, 1\], got \[2, 4, 4, 1\]"):
        start.draw(np.zeros((2, 4, 4, 1)), 1.0)
    with pytest.raises(ValueError, match="g must be one number unless the subspaces are given"):
        start.draw(np.zeros((2, 8, 8, 1)), [1.0, 2.0])
    client.schedule(one).save(tmp_path / "one.json")
    with pytest.raises(FileExistsError, match="holds another start"):
        client.schedule(two).save(tmp_path / "two.json")
    plan = client.plan(one, solver="euler", steps=2)
    with pytest.raises(ValueError, match="not a plan: its start must be the file of hash"):
        anisoflight.Plan(plan.file, plan.vectors)
