"""Schedules for networks that stay in the notebook: a mixture in numpy against the device's own."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from offers import offered

from anisoflight import BadRequestError, Client, NameTakenError, NotFoundError
from anisoflight.offering import Question

D = 8  # pixels, as 2×4
MEANS = np.random.default_rng(0).uniform(-0.6, 0.6, (3, D))
VARIANCES = np.array([0.02, 0.05, 0.1])
WEIGHTS = np.array([0.5, 0.3, 0.2])
COUNT = 96
T, C = 100.0, 0.2


def drawn() -> np.ndarray:
    rng = np.random.default_rng(1)
    of = rng.choice(3, COUNT, p=WEIGHTS)
    x = MEANS[of] + np.sqrt(VARIANCES[of])[:, None] * rng.standard_normal((COUNT, D))
    return np.clip(x, -1, 1).astype(np.float32).reshape(COUNT, 2, 4, 1)


IMAGES = drawn()


@pytest.fixture(scope="module")
def mixture(client: Client) -> str:
    """The same law on the device."""
    covariances = VARIANCES[:, None, None] * np.eye(D)
    client.call(
        "MakeModel",
        name="remote-mixture",
        means=MEANS.tolist(),
        covariances=covariances.tolist(),
        weights=WEIGHTS.tolist(),
        shape=[2, 4, 1],
        replace=True,
    )
    client.put_dataset("remote-images", IMAGES, replace=True, progress=False)
    return "remote-mixture"


class Mixture:
    """The score ū of Σ_i π_i N(μ_i, (v_i + g) I) and its derivatives, in closed form.

    With s_i = v_i + g, u_i = (μ_i − x)/s_i and the posterior weights ρ_i:
    ū = Σ ρ_i u_i, its Jacobian H = Σ ρ_i (u_i u_iᵀ − I/s_i) − ū ūᵀ.
    """

    def __init__(self, x: np.ndarray, g: np.ndarray) -> None:
        self.s = VARIANCES + g[:, None]  # [B, n]
        away = MEANS - x[:, None]
        self.u = away / self.s[..., None]  # [B, n, D]
        square = (away**2).sum(-1)
        logs = np.log(WEIGHTS) - D / 2 * np.log(self.s) - square / (2 * self.s)
        rho = np.exp(logs - logs.max(1, keepdims=True))
        self.rho = rho / rho.sum(1, keepdims=True)
        self.score = np.einsum("bn,bnd->bd", self.rho, self.u)
        self.rate = square / (2 * self.s**2) - D / (2 * self.s)  # ∂ ln N_i / ∂g

    def along(self, w: np.ndarray) -> np.ndarray:
        """H w."""
        wu = np.einsum("bd,bnd->bn", w, self.u)
        own = np.einsum("bn,bnd->bd", self.rho * wu, self.u) - w * (self.rho / self.s).sum(1, keepdims=True)
        return own - self.score * (w * self.score).sum(1, keepdims=True)

    def bent(self, w: np.ndarray, z: np.ndarray) -> np.ndarray:
        """∇ (wᵀ H z)."""
        wu, zu = (np.einsum("bd,bnd->bn", v, self.u) for v in (w, z))
        inner = wu * zu - (w * z).sum(1, keepdims=True) / self.s
        first = np.einsum("bn,bnd->bd", self.rho * inner, self.u - self.score[:, None])
        each = self.rho / self.s
        second = -w * (each * zu).sum(1, keepdims=True) - z * (each * wu).sum(1, keepdims=True)
        ws, zs = ((v * self.score).sum(1, keepdims=True) for v in (w, z))
        return first + second - self.along(w) * zs - self.along(z) * ws

    def by_variance(self) -> np.ndarray:
        """∂ū/∂g at fixed x."""
        c = self.rate - (self.rho * self.rate).sum(1, keepdims=True) - 1 / self.s
        return np.einsum("bn,bnd->bd", self.rho * c, self.u)


def terms(question: Question, probe: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """The per-sample terms of docs/method.md, in one subspace."""
    g, omega = question.g[:, 0], question.omega[:, 0]
    root = np.sqrt(g)[:, None]
    eps = question.noise((D,)).astype(np.float64)
    z = (question.probe((D,)) if probe is None else probe).astype(np.float64)
    law = Mixture(IMAGES.reshape(COUNT, D)[question.image] + root * eps, g)
    flow = root * law.score
    r = flow + eps
    w = 2 * omega[:, None] * r
    a = root * law.along(w)
    through = law.score / (2 * root) + law.along(eps) / 2 + root * law.by_variance()

    def dot(p: np.ndarray, q: np.ndarray) -> np.ndarray:
        return (p * q).sum(1)

    return {
        "residual": dot(r, r),
        "explicit": dot(a, eps) / (2 * root[:, 0]),
        "implicit1": dot(root * law.bent(w, z), z) / 2,
        "implicit2": dot(a, flow) / root[:, 0],
        "implicit3": dot(w, flow) / (2 * g),
        "backprop": dot(w, through),
    }


MODES: Mapping[str, list[str]] = {
    "explicit": ["explicit"],
    "backprop": ["backprop"],
    "full": ["explicit", "implicit1", "implicit2", "implicit3"],
}


@pytest.mark.parametrize("mode", MODES)
def test_the_terms_are_those_of_the_device(client: Client, mixture: str, mode: str) -> None:
    """A and B of the first question, at the device's own inputs: float32 there, closed form here."""
    client.make_schedule("remote-start", "log-linear", T=T, knots=8, replace=True)
    asked: list[tuple[Question, dict[str, np.ndarray]]] = []

    def answer(question: Question) -> dict[str, np.ndarray]:
        asked.append((question, terms(question)))
        return asked[-1][1]

    offered(
        client,
        "remote-terms",
        answer,
        (2, 4, 1),
        images=COUNT,
        schedule="remote-start",
        estimator=mode,
        batch=COUNT,
        kimg=COUNT / 1000,
        c=C,
        order=1,
        replace=True,
    )
    ((question, ours),) = asked
    assert sorted(question.image.tolist()) == list(range(COUNT))
    shape = (2, 4, 1)
    theirs = client.schedule_gradient(
        "remote-start",
        mixture,
        IMAGES[question.image],
        question.noise(shape),
        question.t,
        probe=question.probe(shape),
        mode=mode,
        c=C,
    )
    g = question.g[:, 0]
    gdot = np.sqrt(question.omega[:, 0] * g * (C + g))
    weighed = question.omega[:, 0] * ours["residual"]
    a = -weighed * (1 / g + 1 / (C + g)) + sum(ours[name] for name in MODES[mode])
    scale = abs(theirs.A[:, 0]) + weighed / g  # terms that cancel
    assert (abs(a - theirs.A[:, 0]) / scale).max() < 2e-4
    np.testing.assert_allclose(2 * weighed / gdot, theirs.B[:, 0], rtol=2e-4)
    np.testing.assert_allclose(weighed, theirs.loss, rtol=2e-4)


def logs(client: Client, schedule: str) -> np.ndarray:
    return np.log(client.schedule(schedule).evaluate(t=np.linspace(0.02, 1, 50) * T)["g"].to_numpy())


def test_the_geodesic_is_that_of_the_device(client: Client, mixture: str) -> None:
    """With the same seed the same images and noise: the paths agree to float32's rounding."""
    settings: dict[str, Any] = {"T": T, "c": C, "points": 40, "samples": 8, "seed": 5, "replace": True}
    device = client.make_schedule("device-geodesic", model=mixture, dataset="remote-images", progress=False, **settings)
    ours = offered(client, "remote-geodesic", terms, (2, 4, 1), kind="geodesic", images=COUNT, batch=100, **settings)
    np.testing.assert_allclose(logs(client, "remote-geodesic"), logs(client, "device-geodesic"), atol=2e-4)
    for key in ("energy", "bound"):
        assert ours["schedule"]["energies"][0][key] == pytest.approx(device.info["energies"][0][key], rel=1e-4)
    assert client.schedule("remote-geodesic").info["provenance"]["kind"] == "geodesic"


def test_what_was_learned_stays_where_the_answers_end(client: Client) -> None:
    calls = 0

    def answer(question: Question) -> dict[str, np.ndarray]:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise RuntimeError("the notebook's own trouble")
        return terms(question)

    with pytest.raises(RuntimeError, match="own trouble"):
        offered(client, "remote-cut", answer, (2, 4, 1), images=COUNT, batch=16, replace=True)
    for _ in range(100):
        try:
            assert client.schedule("remote-cut").info["provenance"]["steps"] == 3
            break
        except NotFoundError:
            continue
    with pytest.raises(NameTakenError):
        offered(client, "remote-cut", answer, (2, 4, 1), images=COUNT)


def test_answers_that_cannot_be(client: Client) -> None:
    def with_answer(**columns: Any) -> None:
        offered(client, "remote-bad", lambda _: columns, (2, 4, 1), images=9, batch=4, estimator="explicit")

    with pytest.raises(BadRequestError, match=r"an answer must hold residual, explicit, got residual"):
        with_answer(residual=np.ones(4))
    with pytest.raises(BadRequestError, match=r"residual must have the shape \(4, 1\) of g, got \(3,\)"):
        with_answer(residual=np.ones(3), explicit=np.ones(4))
    with pytest.raises(BadRequestError, match=r'"values" must be finite, got NaN in row 4'):
        with_answer(residual=np.ones(4), explicit=np.full(4, np.nan))
    with pytest.raises(BadRequestError, match="stage is not a field here"):
        offered(client, "remote-bad", terms, (2, 4, 1), images=9, stage="pretrain")
    with pytest.raises(BadRequestError, match="estimator must be one of"):
        offered(client, "remote-bad", terms, (2, 4, 1), images=9, estimator="fulll")
