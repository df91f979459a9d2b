"""The scheduler object: the server's own samples from the same latents, with the network asked from outside."""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from anisoflight import Client
from anisoflight.diffusers import Scheduler
from anisoflight.paths import Path, paths_of
from anisoflight.subspaces import Subspaces

if TYPE_CHECKING:
    import pathlib

T = 400.0
SOLVERS: dict[str, dict[str, Any]] = {
    "euler": {"solver": "euler"},
    "heun": {"solver": "heun", "second_point": "endpoint"},
    "ab": {"solver": "ab"},
    "dpmpp2m": {"solver": "dpmpp2m"},
}


def two_paths(labels: tuple[int, ...] = (-1,)) -> dict[str, list[float]]:
    """A table of two subspaces whose paths part, with knots where a uniform grid has none."""
    rows: dict[str, list[float]] = {"label": [], "subspace": [], "t": [], "g": []}
    for label in labels:
        for subspace, lift in enumerate((0.6 + 0.2 * label, -0.4)):
            for t, logg in ((0, np.log(1e-9)), (30, -4 + lift), (170, 0 + lift), (290, 2.5 + lift), (T, np.log(T))):
                for column, value in zip(rows, (label, subspace, t, np.exp(logg)), strict=True):
                    rows[column].append(value)
    return rows


def drawn(
    client: Client, scheduler: Scheduler, latents: np.ndarray, labels: list[int], steps: int, **noise: Any
) -> Any:
    """Sample with the scheduler and the server's network."""
    scheduler.set_timesteps(steps)
    x = np.moveaxis(latents, 3, 1) * scheduler.init_noise_sigma
    for t in scheduler.timesteps:
        assert scheduler.scale_model_input(x, t) is x
        asked: dict[str, Any] = {"g": scheduler.sigmas_by_subspace(t) ** 2, **noise}
        if not noise:
            asked = {"sigma": scheduler.sigma(t)}
        answer = client.denoise("digits", x.astype(np.float32), labels=labels, progress=False, **asked)
        output = {"sample": answer.denoised, "flow": answer.flow, "epsilon": -answer.flow}[scheduler.prediction_type]
        x = scheduler.step(output, t, x).prev_sample
    return np.moveaxis(x, 1, 3)


def latents_of(count: int) -> np.ndarray:
    return np.random.default_rng(3).standard_normal((count, 8, 8, 1)).astype(np.float32)


@pytest.mark.parametrize("solver", SOLVERS)
def test_anisotropic_samples_are_the_servers(client: Client, solver: Any) -> None:
    schedule = client.put_schedule("diffusers-dct", two_paths(), basis="dct", k=4, replace=True)
    latents, labels = latents_of(3), [0, 4, 7]
    options = {**SOLVERS[solver], "schedule": "diffusers-dct", "steps": 5, "dtype": "float32", "progress": False}
    expected = client.sample("digits", latents=latents, labels=labels, **options)
    scheduler = Scheduler.of(schedule, solver=solver)
    got = drawn(client, scheduler, latents, labels, 5, basis="dct", k=4)
    assert np.abs(got - expected.images).max() < 1e-4
    assert len(scheduler.timesteps) == expected.nfe[0] == (9 if solver == "heun" else 5)
    assert scheduler.order == (2 if solver == "heun" else 1)


@pytest.mark.parametrize("prediction", ["epsilon", "flow"])
def test_other_predictions_from_a_file_of_a_class(client: Client, tmp_path: pathlib.Path, prediction: Any) -> None:
    """A schedule and a basis for each class, through files: no server is needed to step."""
    rng = np.random.default_rng(0)
    vectors = {label: np.linalg.qr(rng.standard_normal((64, 3)))[0].T.reshape(3, 8, 8) for label in range(2)}
    client.put_basis("diffusers-basis", vectors, replace=True)
    schedule = client.put_schedule("diffusers-class", two_paths((0, 1)), basis="diffusers-basis", k=3, replace=True)
    schedule.save(tmp_path / "schedule.json")
    latents = latents_of(2)
    options = {"solver": "ab", "schedule": "diffusers-class", "steps": 4, "dtype": "float32", "progress": False}
    expected = client.sample("digits", latents=latents, labels=[1, 1], **options).images
    scheduler = Scheduler.load(tmp_path / "schedule.json", solver="ab", prediction_type=prediction, label=1)
    got = drawn(client, scheduler, latents, [1, 1], 4, basis="diffusers-basis")
    assert np.abs(got - expected).max() < 1e-4
    with pytest.raises(ValueError, match=r"one of the labels \[0, 1\]"):
        Scheduler.load(tmp_path / "schedule.json")


def test_isotropic_schedules_with_parameters(client: Client) -> None:
    client.make_schedule("diffusers-log", "log-linear", T=T, knots=8, replace=True, progress=False)
    latents = latents_of(2)
    options = {"solver": "dpmpp2m", "schedule": "diffusers-log", "steps": 6, "dtype": "float32", "progress": False}
    expected = client.sample("digits", latents=latents, labels=[2, 3], **options).images
    scheduler = Scheduler.of(client.schedule("diffusers-log"))
    assert np.abs(drawn(client, scheduler, latents, [2, 3], 6) - expected).max() < 1e-4
    assert scheduler.sigmas == pytest.approx(client.schedule("diffusers-log").sigmas(6), rel=1e-9)
    assert scheduler.init_noise_sigma == pytest.approx(np.sqrt(T))


def test_paths_are_the_servers(client: Client) -> None:
    schedule = client.schedule("edm")
    (path,) = paths_of(schedule.file)
    t = np.linspace(0, 6400, 57)
    assert [path.u(float(s)) ** 2 for s in t] == pytest.approx(schedule.evaluate(t=t)["g"].to_numpy(), rel=1e-9)


def test_the_integral_of_a_polynomial_along_a_path() -> None:
    """∫ t dU = [tU] − ∫ U dt, in closed form between knots."""
    path = Path(np.array([0, 1.0, 4]), np.array([-20.0, -2, 3]))

    def area(a: float, b: float, rate: float) -> float:
        return (path.u(b) - path.u(a)) / rate

    exact = 4 * path.u(4) - area(1e-300, 1, 9) - area(1, 4, 5 / 6)
    assert path.integral(lambda t: t, 0, 4) == pytest.approx(exact, rel=1e-12)
    assert path.integral(lambda t: t, 4, 0) == pytest.approx(-exact, rel=1e-12)
    assert path.integral(np.ones_like, 0.5, 2) == pytest.approx(path.u(2) - path.u(0.5), rel=1e-12)


@pytest.mark.parametrize(
    ("family", "dims"),
    [({"basis": "none"}, [36]), ({"basis": "dct"}, [9, 27]), ({"basis": "dct", "cuts": [1, 2, 4]}, [1, 3, 12, 20])],
)
def test_projectors_split_the_plane(family: dict[str, Any], dims: list[int]) -> None:
    subspaces = Subspaces(family)
    plane = np.eye(36).reshape(36, 1, 6, 6)
    parts = [subspaces.combine([plane * (i == j) for i in range(len(dims))]).reshape(36, 36) for j in range(len(dims))]
    assert sum(parts) == pytest.approx(np.eye(36), abs=1e-12)
    for part, trace in zip(parts, dims, strict=True):
        assert part @ part == pytest.approx(part, abs=1e-12)
        assert part == pytest.approx(part.T, abs=1e-12)
        assert np.trace(part) == pytest.approx(trace)


class _Tensor:
    """What of a torch tensor the scheduler needs: arithmetic, @, shape, reshape, T and new_tensor. Not an array."""

    __array_ufunc__ = None

    def __init__(self, data: np.ndarray) -> None:
        self.data, self.shape = data, data.shape

    def new_tensor(self, data: np.ndarray) -> _Tensor:
        return _Tensor(np.asarray(data, self.data.dtype))

    def reshape(self, *shape: Any) -> _Tensor:
        return _Tensor(self.data.reshape(*shape))

    @property
    def T(self) -> _Tensor:  # noqa: N802 (torch's name)
        return _Tensor(self.data.T)

    def __add__(self, other: _Tensor) -> _Tensor:
        return _Tensor(self.data + other.data)

    def __sub__(self, other: _Tensor) -> _Tensor:
        return _Tensor(self.data - other.data)

    def __neg__(self) -> _Tensor:
        return _Tensor(-self.data)

    def __matmul__(self, other: _Tensor) -> _Tensor:
        return _Tensor(self.data @ other.data)

    def __mul__(self, factor: float) -> _Tensor:
        assert type(factor) is float
        return _Tensor(self.data * np.float32(factor))

    __rmul__ = __mul__


FILE = {
    "family": {"basis": "dct", "k": 4},
    "paths": [[{"t": [0, 1, 4], "g": [1e-9, 0.1, 4]}, {"t": [0, 2, 4], "g": [1e-9, 0.3, 4]}]],
}


@pytest.mark.parametrize("solver", SOLVERS)
def test_tensors_are_stepped_as_arrays_are(solver: Any) -> None:
    results = []
    for kind in (lambda a: a, _Tensor):
        scheduler = Scheduler(FILE, solver=solver)
        scheduler.set_timesteps(3)
        x = kind(np.random.default_rng(1).standard_normal((2, 3, 6, 6)).astype(np.float32))
        for t in scheduler.timesteps:
            x, denoised = scheduler.step(0.5 * x, t, x, return_dict=False)
            assert denoised.shape == (2, 3, 6, 6)
        results.append(x)
    assert results[1].data.dtype == np.float32
    assert results[1].data == pytest.approx(results[0], rel=1e-4, abs=1e-6)


def test_timesteps_go_to_the_device_that_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = types.SimpleNamespace(float32="f4", tensor=lambda data, dtype, device: (list(data), dtype, device))
    monkeypatch.setitem(sys.modules, "torch", torch)  # pyright: ignore[reportArgumentType]
    scheduler = Scheduler(FILE)
    scheduler.set_timesteps(2, device="cuda")
    assert scheduler.timesteps == ([4.0, 2.0], "f4", "cuda")


def test_misuse_is_told() -> None:
    scheduler = Scheduler(FILE)
    x = np.zeros((1, 1, 6, 6))
    with pytest.raises(ValueError, match="set_timesteps"):
        scheduler.step(x, 4, x)
    scheduler.set_timesteps(2)
    with pytest.raises(ValueError, match="the next is 4"):
        scheduler.step(x, 2, x)
    with pytest.raises(ValueError, match="at least 1"):
        scheduler.set_timesteps(0)
    with pytest.raises(ValueError, match="no solver 'rk4'"):
        Scheduler(FILE, solver="rk4")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="no prediction type"):
        Scheduler(FILE, prediction_type="v")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="vectors"):
        Scheduler({**FILE, "family": {"basis": "pca", "k": 4}})
