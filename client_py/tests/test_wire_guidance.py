"""Guided samples of a class-conditional mixture are those of the closed form D₀ + s (D₁ − D₀)."""

import json
from typing import Any

import numpy as np
import pyarrow.flight as fl
import pytest
import wire

import anisoflight

MEANS = np.array([[0.8, -0.2], [-0.5, 0.6]])
VARIANCES = np.array([0.05, 0.2])
LABELS = [0, 1, 1, 0]


@pytest.fixture(scope="module")
def mixtures(server: anisoflight.LocalClient, flight: fl.FlightClient) -> tuple[str, str]:
    """A mixture of two classes, and a wider one of the same means."""
    for name, factor in (("guided", 1.0), ("guiding", 3.0)):
        request = {
            "name": name, "means": MEANS.tolist(), "weights": [0.5, 0.5], "labels": [0, 1], "shape": [1, 2, 1],
            "covariances": [(factor * v * np.eye(2)).tolist() for v in VARIANCES],
        }  # fmt: skip
        wire.act(flight, "MakeModel", request)
    return "guided", "guiding"


def denoised(x: np.ndarray, g: float, label: int | None, factor: float = 1.0) -> np.ndarray:
    """E[x_0 | x] under noise of variance g."""
    total = factor * VARIANCES + g
    each = MEANS + (factor * VARIANCES / total)[:, None] * (x - MEANS)
    if label is not None:
        return each[label]
    log = -np.sum((x - MEANS) ** 2, 1) / (2 * total) - np.log(total)
    weight = np.exp(log - log.max())
    return weight @ each / weight.sum()


def expected(flight: fl.FlightClient, latents: np.ndarray, options: dict[str, Any]) -> tuple[np.ndarray, int]:
    """The sampler's plan in float64, with the guided denoiser in closed form; and the evaluations that it takes."""
    s, guide = options.get("guidance", 1.0), options.get("guide")
    low, high = options.get("guidance_interval", (0, np.inf))
    shape = {k: v for k, v in options.items() if not k.startswith("guid")}
    (plan,) = wire.act(flight, "PlanSampler", {"model": "guided", **shape})
    assert plan["predicts"] == "flow"
    out, nfe = [], 0
    for xi, label in zip(latents.reshape(-1, 2).astype(float), LABELS, strict=True):
        x, history, nfe = plan["init"][0] * xi, [], 0
        for stage in plan["stages"]:
            g = stage["g"][0]
            d = denoised(x, g, label)
            nfe += 1
            if s != 1 and low < np.sqrt(g) <= high:
                d0 = denoised(x, g, label, 3.0) if guide else denoised(x, g, None)
                d = d0 + s * (d - d0)
                nfe += s != 0
            history = [(d - x) / np.sqrt(g), *history]
            x = stage["alpha"][0] * x + sum(b * e for b, e in zip(stage["beta"][0], history, strict=False))
        out.append(x)
    return np.array(out), nfe


@pytest.mark.parametrize(
    "options",
    [
        {"guidance": 2.5},
        {"guidance": 0},
        {"guidance": 0.5, "guidance_interval": [0.2, 3]},
        {"guidance": 2, "guide": "guiding"},
        {"guidance": 3, "guide": "guiding", "guidance_interval": [0, 1]},
    ],
    ids=json.dumps,
)
def test_guided_samples_are_those_of_the_closed_form(
    server: anisoflight.LocalClient, flight: fl.FlightClient, mixtures: tuple[str, str], options: dict[str, Any]
) -> None:
    latents = np.random.default_rng(0).standard_normal((4, 1, 2, 1), np.float32)
    options = {"solver": "heun", "steps": 6, "grid": {"edm": {"sigma_max": 20}}, "second_point": "endpoint", **options}
    want, nfe = expected(flight, latents, options)
    got = server.sample("guided", latents=latents, labels=LABELS, dtype="float32", **options)
    np.testing.assert_allclose(got.images.reshape(-1, 2), want, atol=2e-4)
    assert set(got.nfe.tolist()) == {nfe}


def test_guidance_of_1_is_none_and_0_is_unconditional(
    server: anisoflight.LocalClient, mixtures: tuple[str, str]
) -> None:
    def draw(labels: list[int], **more: Any) -> np.ndarray:
        return server.sample("guided", labels=labels, steps=4, seed=3, dtype="float32", **more).images

    np.testing.assert_array_equal(draw(LABELS, guidance=1), draw(LABELS))
    np.testing.assert_array_equal(draw(LABELS, guidance=0), draw([-1] * 4))
    assert np.abs(draw(LABELS, guidance=2) - draw(LABELS)).max() > 1e-2


def test_plans_are_chosen_for_what_is_guided(
    server: anisoflight.LocalClient, mixtures: tuple[str, str], dataset: str
) -> None:
    """At guidance 0 the samples are the guide's, and so is what is chosen by drawing them."""
    server.put_dataset("pairs", np.tile(MEANS.reshape(2, 1, 2, 1), (8, 1, 1, 1)).astype(np.float32), LABELS * 4)
    asked: dict[str, Any] = {"samples": 64, "nfe": 4, "dataset": "pairs", "solvers": ["dpmpp2m"], "learn": False,
                             "progress": False}  # fmt: skip

    def frequencies(**options: Any) -> list[float]:
        tries = server.few(**asked, **options).info["tries"]  # others use statistics of the model alone
        return [tried["frequencies"] for tried in tries if tried["solver"] == "dpmpp2m"]

    alone = frequencies(model="guided")
    np.testing.assert_allclose(
        frequencies(model="guided", guidance=0, guide="guiding"), frequencies(model="guiding"), rtol=1e-3
    )
    assert frequencies(model="guided", guidance=2.5) != alone
    assert frequencies(model="guided", guidance=2.5, guidance_interval=[100, 200]) == alone
