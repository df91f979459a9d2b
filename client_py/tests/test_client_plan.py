"""Plans followed outside: the server's own samples from the same latents, with the network asked from outside."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anisoflight import BadRequestError, Client
from anisoflight.plans.parametrizations import ddpm, denoiser, edm, flow
from anisoflight.plans.plan import Plan
from anisoflight.subspaces import Coordinates, Subspaces, radial_bands

T = 400.0
GOLDEN = Path(__file__).parent / "testdata" / "plans" / "ab.json"
"""Three steps of ab on `two_paths` of dct, k = 4; test_wire_plan compares the server's answer with it."""
SOLVERS = {
    name: {"solver": name}
    for name in (
        *("euler", "heun", "ab", "ipndm", "ipndm_v"),
        *("dpmpp2m", "dpmpp3m", "dpmpp3m_taylor", "unipc", "deis"),
    )
}
OPTIONS: dict[str, dict[str, Any]] = {
    **SOLVERS,
    "endpoint": {"solver": "heun", "second_point": "endpoint"},
    "warm and clean": {"solver": "ipndm", "order": 3, "warmup": "heun", "denoise_to_zero": True},
    "other levels": {"solver": "dpmpp2m", "grid": {"edm": {"sigma_max": 15}}},
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


def drawn(client: Client, plan: Plan, latents: np.ndarray, labels: list[int], **basis: Any) -> np.ndarray:
    """Sample with a plan and the server's network."""

    def denoiser(x: np.ndarray, sigma: np.ndarray, labels: list[int]) -> np.ndarray:
        assert sigma.shape == (len(x), plan.count)[: plan.count]
        noise: dict[str, Any] = {"g": np.square(sigma), **basis} if basis else {"sigma": sigma}
        return client.denoise("digits", x, labels=labels, progress=False, **noise).denoised

    return np.moveaxis(plan(denoiser, np.moveaxis(latents, 3, 1), labels=labels, progress=False), 1, 3)


def latents_of(count: int) -> np.ndarray:
    return np.random.default_rng(3).standard_normal((count, 8, 8, 1)).astype(np.float32)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_anisotropic_samples_are_the_servers(client: Client, options: dict[str, Any]) -> None:
    client.put_schedule("plan-dct", two_paths(), basis="dct", k=4, replace=True)
    latents, labels = latents_of(3), [0, 4, 7]
    steps = {"steps": 6, **options}
    expected = client.sample(
        "digits", latents=latents, labels=labels, schedule="plan-dct", dtype="float32", progress=False, **steps
    )
    plan = client.plan("plan-dct", model="digits", **steps)
    got = drawn(client, plan, latents, labels, basis="dct", k=4)
    assert np.abs(got - expected.images).max() < 1e-4
    assert len(plan.evaluations) == plan.nfe == expected.nfe[0]


def test_a_file_of_a_class(client: Client, tmp_path: Path) -> None:
    """A schedule and a basis for each class, through files: no server is needed to follow the plan."""
    rng = np.random.default_rng(0)
    vectors = {label: np.linalg.qr(rng.standard_normal((64, 3)))[0].T.reshape(3, 8, 8) for label in range(2)}
    client.put_basis("plan-basis", vectors, replace=True)
    client.put_schedule("plan-class", two_paths((0, 1)), basis="plan-basis", k=3, replace=True)
    options: dict[str, Any] = {"solver": "ab", "steps": 4}
    plan = client.plan("plan-class", label=1, **options)
    plan.save(tmp_path / "plan.json")
    latents = latents_of(2)
    options |= {"schedule": "plan-class", "dtype": "float32", "progress": False}
    expected = client.sample("digits", latents=latents, labels=[1, 1], **options).images
    loaded, noise = Plan.load(tmp_path / "plan.json"), np.moveaxis(latents, 3, 1)
    assert np.abs(drawn(client, loaded, latents, [1, 1], basis="plan-basis") - expected).max() < 1e-4
    assert loaded.file == plan.file
    with pytest.raises(ValueError, match=r"one of \[0, 1\], got 5"):
        Plan({**plan.file, "label": 5}, vectors).begin(noise)
    for shape in [(2, 64), (2, 1, 8, 9)]:
        with pytest.raises(ValueError, match=r"noise must have the shape \[B, C, 8, 8\], got \[2, "):
            loaded.begin(np.zeros(shape))
    (tmp_path / "basis.safetensors").unlink()
    with pytest.raises(ValueError, match="vectors"):
        Plan.load(tmp_path / "plan.json").begin(noise)


def test_one_plan_of_several_classes(client: Client, tmp_path: Path) -> None:
    """Paths and bases by class, and a label for each image: the server's own samples."""
    rng = np.random.default_rng(0)
    vectors = {label: np.linalg.qr(rng.standard_normal((64, 3)))[0].T.reshape(3, 8, 8) for label in range(3)}
    client.put_basis("plan-basis", vectors, replace=True)
    client.put_schedule("plan-class", two_paths((0, 1, 2)), basis="plan-basis", k=3, replace=True)
    options: dict[str, Any] = {"solver": "dpmpp3m", "steps": 4}
    with pytest.raises(BadRequestError, match=r"label and labels are both missing.* Give the label of one class, or"):
        client.plan("plan-class", **options)
    client.plan("plan-class", labels=[0, 2, 1], **options).save(tmp_path / "plan.json")
    plan = Plan.load(tmp_path / "plan.json")
    assert plan.labels == [0, 1, 2]
    one = client.plan("plan-class", label=1, **options)
    assert plan.for_label(1).evaluations[1].alpha == one.evaluations[1].alpha
    latents, labels = latents_of(4), [2, 0, 2, 1]
    shown: dict[str, Any] = {"schedule": "plan-class", "dtype": "float32", "progress": False, **options}
    expected = client.sample("digits", latents=latents, labels=labels, **shown).images
    assert np.abs(drawn(client, plan, latents, labels, basis="plan-basis") - expected).max() < 1e-4
    noise = np.moveaxis(latents, 3, 1)
    loop = plan.stages(noise, labels=labels)
    loop.step(noise)
    stage = loop.stage
    assert stage.sigmas.shape == (4, 2)
    assert stage.sigma[0] == stage.sigma[2] != stage.sigma[1]
    alike = drawn(client, plan, latents, [2] * 4, basis="plan-basis")
    assert np.abs(alike - expected)[[0, 2]].max() < 1e-4 < np.abs(alike - expected)[[1, 3]].max()
    for wrong, message in (
        ([0, 3, 1, 1], "make a plan for it, or for"), ([0, 1], "as many as the 4 images, got 2"),
        ([0, 0.5, 1, 1], "must be whole numbers"), (["a"] * 4, "must be whole numbers"),
    ):  # fmt: skip
        with pytest.raises(BadRequestError, match=message):
            plan.begin(noise, labels=wrong)
    for missing in (lambda: plan.stages(noise), lambda: plan.evaluations):
        with pytest.raises(BadRequestError, match=r"labels must be given, .* the plan has \[0, 1, 2\]"):
            missing()


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


def halved(plan: Plan, **given: Any) -> np.ndarray:
    """Samples of a network that halves its input."""
    noise = np.random.default_rng(1).standard_normal((2, 3, 8, 8)).astype(np.float32)
    return plan(lambda x, sigma: 0.5 * x, noise, progress=False, **given)


def test_churn_adds_noise_before_an_evaluation(client: Client) -> None:
    client.put_schedule("plan-dct", two_paths(), basis="dct", k=4, replace=True)
    plan = client.plan("plan-dct", solver="euler", steps=3, S_churn=1)
    assert all(len(stage.noise) == 2 for stage in plan.evaluations)
    x = np.ones((1, 1, 8, 8))
    assert plan.begin(x) == pytest.approx(plan.evaluations[0].sigmas[0])  # a constant is all in P_1
    after = [
        plan.stages(x, generator=lambda like, value=value: np.full(like.shape, value)).step(0 * x) for value in (0, 1)
    ]
    assert after[1] - after[0] == pytest.approx(plan.evaluations[1].noise[0])
    one, same, other = (halved(plan, generator=np.random.default_rng(seed)) for seed in (5, 5, 6))
    assert (one == same).all()
    assert (one != other).any()
    assert (halved(plan) != one).any()


def test_churn_of_several_classes_draws_once(client: Client) -> None:
    client.put_schedule("plan-dct-class", two_paths((0, 1)), basis="dct", k=4, replace=True)
    plan = client.plan("plan-dct-class", labels=[0, 1], solver="euler", steps=3, S_churn=1)
    noise = np.random.default_rng(0).standard_normal((3, 1, 8, 8))
    shapes: list[Any] = []

    def normal(like: Any) -> Any:
        shapes.append(like.shape)
        return noise

    ends = []
    for labels in ([0, 1, 0], [0, 0, 0]):
        loop = plan.stages(noise, labels=labels, generator=normal)
        for _ in loop:
            loop.step(0.5 * loop.x)
        ends.append(loop.x)
    assert shapes == [(3, 1, 8, 8)] * 4
    assert (np.abs(ends[0] - ends[1]).max((1, 2, 3)) > 1e-3).tolist() == [False, True, False]


TAILS: dict[str, dict[str, Any]] = {
    **SOLVERS,
    "warm": {"solver": "deis", "order": 2, "warmup": "heun"},
    "clean": {"solver": "unipc", "denoise_to_zero": True},
}


@pytest.mark.parametrize("options", TAILS.values(), ids=TAILS)
def test_a_tail_is_the_plan_of_the_levels_that_are_left(client: Client, options: dict[str, Any]) -> None:
    """From an image with noise, in each of the classes; nothing of the evaluations before it is needed."""
    client.put_schedule("plan-dct-class", two_paths((0, 1)), basis="dct", k=4, replace=True)
    times, rng = [400.0, 280, 150, 80, 33, 9, 2], np.random.default_rng(0)
    order = {"order": 2} if options["solver"] in ("dpmpp3m", "dpmpp3m_taylor", "unipc") else {}

    def made(grid: list[float], **more: Any) -> Plan:
        given = {**order, **options, **more, "grid": {"t": grid}}
        return client.plan("plan-dct-class", labels=[0, 1], **given)

    whole, (noise, image), labels = made(times), rng.standard_normal((2, 3, 1, 8, 8)), [1, 0, 1]

    def denoiser(x: np.ndarray, sigma: np.ndarray, labels: list[int]) -> np.ndarray:
        return np.tanh(x / sigma.mean(1).reshape(-1, 1, 1, 1)) + 0.1 * np.reshape(labels, (-1, 1, 1, 1))

    def ends(plan: Plan) -> np.ndarray:
        return plan(denoiser, noise, image, labels=labels, progress=False)

    for step in range(6):
        left = made(times[step:], warmup="euler") if step else whole
        tail = whole.tail(step)
        assert (tail.steps, tail.nfe) == (left.steps, left.nfe)
        np.testing.assert_allclose(ends(tail), ends(left), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(ends(whole.tail(2).tail(2)), ends(whole.tail(4)))


def test_a_tail_begins_at_an_image(client: Client, tmp_path: Path) -> None:
    plan = client.plan(
        "edm", sigma_min=0.002, sigma_max=80, solver="heun", grid={"sigma": [50, 20, 8, 3, 1, 0]}, S_churn=2
    )
    noise, image = np.random.default_rng(0).standard_normal((2, 2, 3, 5))  # of one axis
    tail = plan.tail(strength=0.7)
    assert (tail.steps, tail.file["begin"]) == (3, 2)
    assert tail.tail(1).file["begin"] == 3
    first = plan.evaluations[4]
    np.testing.assert_allclose(tail.begin(noise, image), image + first.sigma * noise)
    tail.save(tmp_path / "tail.json")
    loaded = Plan.load(tmp_path / "tail.json")
    assert loaded.file == tail.file
    for asked in (lambda: client.put_plan("tail", tail), lambda: client.sample("digits", n=1, plan=tail)):
        with pytest.raises(BadRequestError, match="begin must be left out, got 2: a tail starts from an image"):
            asked()
    with pytest.raises(ValueError, match="image must be given: a tail starts from an image with noise"):
        loaded(lambda x, sigma: x, noise)
    with pytest.raises(ValueError, match=r"image must have the noise's shape \[2, 3, 5\], got \[1, 3, 5\]"):
        tail.begin(noise, image[:1])
    assert plan.tail(strength=1).begin(noise, image) == pytest.approx(plan.begin(noise, image))
    wrong: list[tuple[dict[str, Any], str]] = [
        ({}, "step or strength must be given"),
        ({"step": 1, "strength": 0.5}, "and one of them"),
        ({"step": 5}, "step must lie in 0 … 4, got 5"),
        ({"strength": 0.1}, "strength must lie in 0.2 … 1 for 5 steps, got 0.1"),
        ({"strength": 1.1}, "got 1.1"),
    ]
    for given, message in wrong:
        with pytest.raises(ValueError, match=message):
            plan.tail(**given)


def test_a_file_says_where_the_plan_comes_from(client: Client, tmp_path: Path) -> None:
    client.put_schedule("plan-dct", two_paths(), basis="dct", k=4, replace=True)
    plan = client.plan("plan-dct", solver="ab", steps=3)
    assert plan.provenance is not None
    assert plan.provenance["kind"] == "upload"
    assert plan.info is None
    report = {"distance": 0.25, "against": {"solver": "heun", "distance": 0.5}}
    Plan({**plan.file, "info": report}).save(tmp_path / "plan.json")
    loaded = Plan.load(tmp_path / "plan.json")
    assert (loaded.info, loaded.provenance) == (report, plan.provenance)
    assert loaded.tail(1).info == report


def test_dtypes_and_conditions(client: Client) -> None:
    """Half precision is what the network sees, and float32 what is computed."""
    plan = client.plan("edm", sigma_min=0.002, sigma_max=80, solver="unipc", steps=4)
    noise = np.random.default_rng(0).standard_normal((2, 3, 4, 5, 6))  # of three axes
    seen: list[Any] = []

    def denoiser(x: np.ndarray, sigma: np.ndarray, **conditions: Any) -> np.ndarray:
        seen.append((x.dtype, sigma.dtype, conditions))
        return x / (1 + sigma.reshape(-1, 1, 1, 1, 1) ** 2)

    exact = plan(denoiser, noise, text="a", progress=False)
    half = plan(denoiser, noise.astype(np.float16), labels=[0, 1], progress=False)
    assert seen[0] == (np.float64, np.float64, {"text": "a"})
    assert seen[-1] == (np.float16, np.float32, {"labels": [0, 1]})
    assert (exact.dtype, half.dtype) == (np.float64, np.float16)
    np.testing.assert_allclose(half, exact, rtol=0, atol=1e-2)


def test_misuse_is_told(tmp_path: Path) -> None:
    plan, x = Plan.load(GOLDEN), np.zeros((1, 1, 8, 8))
    loop = plan.stages(x)
    with pytest.raises(ValueError, match="step must be called once for every stage"):
        list(loop)
    with pytest.raises(ValueError, match=r"denoised must have the shape \[1, 1, 8, 8\] of x, got \[1, 8, 8\]"):
        loop.step(x[0])
    for _ in range(3):
        loop.step(x)
    with pytest.raises(ValueError, match=r"begin again with plan\.stages\(noise\)"):
        loop.step(x)
    tails, stages = plan.file["tails"], plan.file["stages"]
    early = {**stages[0], "beta": [[1.0, 0.5], [1.0, 0.0]]}
    for message, change in {
        "tails must be lists of what begins at each of the steps 1 to 2": {"tails": tails[:1]},
        "beta must be of evaluations made before, got others in stage 0": {"stages": [early, *stages[1:]]},
        "alpha must be 2 finite numbers": {"tails": [[{**tails[0][0], "alpha": [1.0]}], []]},
        "beta must have 2 rows of 1 to 3 numbers": {"tails": [[{**tails[0][0], "beta": [[1.0]]}], []]},
        "begin must be 1 whole numbers from 0 on, got -1": {"begin": -1},
        "provenance must be an object, got upload": {"provenance": "upload"},
        "info must be an object, got 3": {"info": 3},
        "clip must be 1 finite numbers": {"provenance": {"clip": -1}},
        "temperature must be 1 finite numbers": {"provenance": {"temperature": "hot"}},
        "states must be true or false, got 'yes'": {"states": "yes"},
    }.items():
        with pytest.raises(BadRequestError, match=f"not a plan: {message}"):
            Plan({**plan.file, **change})
    with pytest.raises(BadRequestError, match="beta must be of evaluations made before"):
        Plan({key: value for key, value in plan.file.items() if key != "tails"}).tail(1)
    for other in ([], {**plan.file, "version": 2}, {"format": "anisoflight-schedule", "version": 1}):
        (tmp_path / "other.json").write_text(json.dumps(other))
        with pytest.raises(ValueError, match="not a plan"):
            Plan.load(tmp_path / "other.json")


NETWORKS = {
    "denoiser": denoiser("epsilon"),
    "edm": edm("v_prediction", 0.7),
    "ddpm ε": ddpm(np.cumprod(1 - np.linspace(1e-4, 0.02, 1000))),
    "ddpm v": ddpm(np.cumprod(1 - np.linspace(1e-4, 0.02, 1000)), "v_prediction"),
    "flow": flow(1000),
}


@pytest.mark.parametrize("kind", NETWORKS)
@pytest.mark.parametrize("sigma", [0.02, 1.0, 60.0])
def test_kinds_of_networks(kind: str, sigma: float) -> None:
    """Times are inverted, and the exact output for a known image gives that image back."""
    network, (x0, noise) = NETWORKS[kind], np.random.default_rng(2).standard_normal((2, 5))
    assert network.sigma(network.time(sigma)) == pytest.approx(sigma, rel=1e-9)
    held = network.scale(sigma) * (x0 + sigma * noise)
    alpha = 1 / np.hypot(1, sigma)
    norm = np.hypot(sigma, 0.7)
    output = {
        "denoiser": noise,
        "edm": -(x0 - (0.7 / norm) ** 2 * held) / (sigma * 0.7 / norm),
        "ddpm ε": noise,
        "ddpm v": alpha * noise - sigma * alpha * x0,
        "flow": noise - x0,
    }[kind]
    assert network.denoised(output, held, sigma) == pytest.approx(x0, abs=1e-9)
    assert network.scale(1e-12) == pytest.approx(1)
    if kind.startswith("ddpm"):
        assert np.hypot(network.scale(sigma), sigma * network.scale(sigma)) == pytest.approx(1)


def test_kinds_of_networks_say_what_they_predict() -> None:
    with pytest.raises(ValueError, match="epsilon or sample or v_prediction for a network of kind ddpm, got 'x'"):
        ddpm([0.5], "x")


def test_the_bands_are_the_servers() -> None:
    """Those of small planes, and sums over those of large ones, which the server's tests have as well."""
    assert radial_bands(2, 3, 0).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert radial_bands(2, 2, 1).tolist() == [[0, 0], [0, 0]]
    assert radial_bands(1, 1, 8).tolist() == [[0]]
    assert radial_bands(1, 4, 3).tolist() == [[0, 1, 2, 2]]
    wide = [[0, 1, 2, 3, 3, 4], [1, 2, 2, 3, 4, 4], [3, 3, 3, 4, 4, 4], [4, 4, 4, 4, 4, 4]]
    assert radial_bands(4, 6, 5).tolist() == wide
    for size, count, total in [
        ((32, 32, 32), 28, 11793007),
        ((64, 64, 32), 29, 48554628),
        ((512, 512, 32), 31, 3584464413),
        ((40, 72, 16), 16, 18533480),
    ]:
        bands = radial_bands(*size).ravel()
        assert (bands.max() + 1, int(bands @ (np.arange(bands.size) % 1009))) == (count, total)


def test_bands_have_weights_and_axes_of_their_own() -> None:
    """The transform with every frequency's own weights and axes, repeated over the bands."""
    bands = radial_bands(6, 4, 5)
    count = bands.max() + 1
    rng = np.random.default_rng(3)
    axes = np.linalg.qr(rng.standard_normal((count, 3, 3)))[0]
    weights = [rng.standard_normal((count, 3)) for _ in range(2)]
    images = [rng.standard_normal((2, 3, 6, 4)) for _ in range(2)]
    got = Coordinates(6, 4, 3, axes, bands=5).combine(images, [weight.ravel() for weight in weights])
    want = Coordinates(6, 4, 3, axes[bands]).combine(images, [weight[bands].ravel() for weight in weights])
    assert np.allclose(got, want, atol=1e-12)


def test_a_plan_that_sets_guidance_is_obeyed_or_refused(client: Client) -> None:
    plain = client.plan("edm", sigma_min=0.002, sigma_max=80, solver="ipndm", nfe=3)
    factors = [0.5, 0.0, 1.0]
    stages = [{**stage, "guidance": r} for stage, r in zip(plain.file["stages"], factors, strict=True)]
    plan = Plan({**plain.file, "stages": stages})
    assert (plain.guides, plan.guides, plan.tail(1).guides) == (False, True, True)
    assert [stage.guidance for stage in plan.evaluations] == factors
    noise = np.random.default_rng(0).standard_normal((2, 1, 8, 8))

    def network(x: np.ndarray, sigma: np.ndarray, level: float) -> np.ndarray:
        keep = 1 / (1 + sigma.reshape(-1, 1, 1, 1) ** 2)
        return keep * x + (1 - keep) * level

    loop, wanted = plan.stages(noise), plain.stages(noise)
    for r, _ in zip(factors, loop, strict=False):
        scale = 1 + loop.guidance * (3.0 - 1)
        assert scale == 1 + r * 2
        loop.step(network(loop.x, loop.sigma, scale * 0.7))  # D₀ + s (D₁ − D₀) of means 0 and 0.7
        wanted.step(network(wanted.x, wanted.sigma, (1 + r * 2) * 0.7))
    np.testing.assert_array_equal(loop.x, wanted.x)
    with pytest.raises(BadRequestError, match="guidance must be that of the plan"):
        plan(lambda x, sigma: network(x, sigma, 0.7), noise)
    loop = plan.stages(noise)
    _ = loop.guidance
    loop.step(network(loop.x, loop.sigma, 1.4))
    with pytest.raises(BadRequestError, match="guidance must be that of the plan"):  # each evaluation has its own
        loop.step(network(loop.x, loop.sigma, 1.4))
    for wrong in ("a", float("nan"), [1.0]):
        with pytest.raises(BadRequestError, match="guidance must be 1 finite numbers"):
            Plan({**plain.file, "stages": [{**stage, "guidance": wrong} for stage in plain.file["stages"]]})


def test_a_loop_clips_as_the_denoiser_of_the_plan_did(client: Client) -> None:
    plain = client.plan("edm", sigma_min=0.002, sigma_max=80, solver="ipndm", nfe=3)
    plan = Plan({**plain.file, "provenance": {"clip": 0.5}})
    noise = np.random.default_rng(0).standard_normal((2, 1, 8, 8))
    x0 = np.linspace(-1, 1, 64).reshape(1, 8, 8)
    wanted = plain(lambda x, _: np.broadcast_to(x0.clip(-0.5, 0.5), x.shape), noise)
    np.testing.assert_array_equal(plan(lambda x, _: np.broadcast_to(x0, x.shape), noise), wanted)
    client.put_plan("plan-clipped", plan, replace=True)
    with pytest.raises(BadRequestError, match=r"clipped to ±0\.5"):
        client.sample("digits", n=1, plan="plan-clipped", progress=False)


def test_images_get_noise_of_the_temperature(client: Client) -> None:
    plain = client.plan("edm", sigma_min=0.002, sigma_max=80, solver="ipndm", nfe=3)
    plan = Plan({**plain.file, "provenance": {"temperature": 0.3}})
    noise, image = np.random.default_rng(0).standard_normal((2, 2, 1, 8, 8))
    begun, without = plan.tail(1).begin(noise, image), plain.tail(1).begin(noise, image)
    np.testing.assert_allclose(begun - image, 0.3 * (without - image), atol=1e-12)
