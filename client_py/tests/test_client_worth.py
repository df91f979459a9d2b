"""What each maker says that its schedule is worth: the numbers, computed here again from the sampler and the images."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import pictures
from scipy.fft import dctn, idctn

import anisoflight
from anisoflight.plans.plan import Plan
from anisoflight.serving.local import find_binary

pytestmark = pytest.mark.usefixtures("model", "dataset")
QUIET: dict[str, Any] = {"replace": True, "progress": False}
GEODESIC: dict[str, Any] = {"model": "digits", "dataset": "blocks", "points": 12, "samples": 4, **QUIET}


@pytest.fixture(autouse=True)
def leave_nothing(client: anisoflight.Client) -> Iterator[None]:
    yield
    for name in client.schedules().index:
        if name.startswith("worth"):
            client.delete_schedule(name)


def dct(x: np.ndarray) -> np.ndarray:
    return dctn(x, axes=(-2, -1), norm="ortho")


def idct(x: np.ndarray) -> np.ndarray:
    return idctn(x, axes=(-2, -1), norm="ortho")


def law(label: int = -1) -> tuple[np.ndarray, np.ndarray]:
    """The mean of the images and the variances of their DCT coefficients."""
    images, labels = pictures(64)
    x = dct(images[labels == label if label >= 0 else slice(None)].reshape(-1, 1, 8, 8) / 127.5 - 1.0)
    return x.mean(0), x.var(0)


def w2(plan: Plan, label: int = -1) -> float:
    """W₂² between the images' normal law and what the plan makes of noise by that law's own denoiser, over the
    variance. The plan is affine in the noise, and diagonal in the DCT."""
    mean, variance = law(label)

    def denoise(x: np.ndarray, sigma: np.ndarray) -> np.ndarray:
        g = sigma.reshape(-1, 1, 1, 1) ** 2
        return idct((variance * dct(x) + g * mean) / (variance + g))

    if label >= 0:
        plan = plan.for_label(label)
    shift = plan(denoise, np.zeros((1, 1, 8, 8)))
    directions = idct(np.eye(64).reshape(64, 1, 8, 8))
    scale = np.diag(dct(plan(denoise, directions) - shift).reshape(64, 64))
    spread = (np.sqrt(variance).ravel() - abs(scale)) ** 2
    return float((spread.sum() + ((dct(shift)[0] - mean) ** 2).sum()) / variance.sum())


def edm(client: anisoflight.Client, ends: Sequence[float], label: int = -1, **sampler: Any) -> float:
    """The least distance on EDM's levels, from one of the ends, on either of their grids."""
    plans = (
        client.plan({"edm": {"T": end}}, model="digits", grid=grid, **sampler)
        for end in ends
        for grid in ("edm", "polynomial")
    )
    return min(w2(plan, label) for plan in plans)


def compared(ratio: float) -> str:
    return "about the same as" if abs(ratio - 1) <= 0.02 else "better than" if ratio < 1 else "worse than"


@pytest.mark.parametrize("labels", [(-1,), tuple(range(10))])
def test_a_geodesic(client: anisoflight.Client, labels: tuple[int, ...]) -> None:
    made = client.make_schedule("worth", "geodesic", per_class=len(labels) > 1, nfe=7, **GEODESIC)
    heun = {"solver": "heun", "second_point": "endpoint", "nfe": 7}
    rivals = (heun, {"solver": "ipndm", "nfe": 7}, {**heun, "second_point": "midpoint"})
    plans = [client.plan("worth", model="digits", label=label if label >= 0 else None, **heun) for label in labels]
    own, ends = sum(map(w2, plans, labels)), (6400, made.info["T"])
    first, *others = (own / sum(edm(client, ends, label, **of) for label in labels) for of in rivals)
    message = made.info["summary"]
    assert f"heun endpoint, 7 evaluations: {compared(first)} EDM's levels from sigma " in message
    law = "the squared W2 distance to the normal law with the data's mean and spectrum"
    assert f", with {first:.3g} times {law}; " in message
    names = ("ipndm", "heun midpoint")
    said_of_others = [
        f"{compared(x)} {of} on those, with {x:.3g} times that" for x, of in zip(others, names, strict=True)
    ]
    assert message.endswith("; " + "; ".join(said_of_others))


def test_a_start(client: anisoflight.Client) -> None:
    options = {"dataset": "blocks", **QUIET}
    sampler = {"solver": "dpmpp2m", "nfe": 5}
    started = client.make_schedule("worth", "start", sigma_max=10.0, per_class=False, **options)
    ratio = w2(client.plan("worth", model="digits", grid="polynomial", **sampler)) / edm(client, (6400, 100), **sampler)
    assert started.info["summary"].startswith(f"dpmpp2m, 5 evaluations: {compared(ratio)} EDM's levels from sigma ")
    assert f"with {ratio:.3g} times" in started.info["summary"]
    assert started.info["summary"].endswith("; a normal law favours a start from it")


def test_what_no_normal_law_can_judge(client: anisoflight.Client) -> None:
    client.make_basis("components", "pca", "blocks", k=8, **QUIET)
    made = client.make_schedule("worth", "geodesic", basis="components", **GEODESIC)
    provenance = made.provenance or {}
    ratio = provenance["energy_after"]["value"] / provenance["energy_before"]["value"]
    assert made.info["summary"].startswith("better than EDM's levels by energy, which ranks no samplers, with ")
    assert f" {ratio:.3g} ± " in made.info["summary"]
    assert "subspaces that mix frequencies" in made.info["summary"]
    client.delete_basis("components")


def test_where_it_is_said(client: anisoflight.Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = client.make_schedule("worth", "start", dataset="blocks", replace=True)
    message = made.info["summary"]
    assert capsys.readouterr().out == message + "\n"
    assert client.schedule("worth").info["summary"] == message  # a later client
    made.save(tmp_path / "worth.json")
    assert client.put_schedule("worth", tmp_path / "worth.json", replace=True).info["summary"] == message  # elsewhere
    words = [find_binary(), "schedule", "start", "--name", "worth", "--dataset", "blocks"]
    words += ["--replace", "--server", client.location]
    run = subprocess.run(words, capture_output=True, check=True, text=True)
    assert list(json.loads(run.stdout).items())[-1] == ("summary", message)  # the last line
    formula = client.make_schedule("worth", "cosine", **QUIET)
    assert formula.info["summary"].startswith("not judged: a formula knows no data")
