"""The laboratory: mixtures with exact score as models."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.flight as fl
import pytest
import wire

MEANS = np.array([[0.5, 0.0], [-0.5, 0.25]])
COVARIANCES = np.array([[[0.04, 0.01], [0.01, 0.02]], [[0.01, 0.0], [0.0, 0.03]]])


@pytest.fixture(scope="module")
def plane(flight: fl.FlightClient) -> str:
    """A mixture of two classes in the plane, as images of 1×2 pixels."""
    request = {"name": "plane", "weights": [3, 1], "means": MEANS.tolist(), "covariances": COVARIANCES.tolist()}
    (info,) = wire.act(flight, "MakeModel", {**request, "labels": [0, 1], "replace": True})
    assert (info["model_type"], info["img_resolution"], info["img_width"], info["label_dim"]) == ("Mixture", 1, 2, 2)
    return "plane"


def test_the_score_of_a_mixture_is_exact(flight: fl.FlightClient, plane: str) -> None:
    """flow = σ S⁻¹(μ − x), S = Σ + σ²I, for each class; D = x + σ flow."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((6, 1, 2, 1)).astype(np.float32)
    labels = np.array([0, 1, 0, 1, 0, 1], np.int32)
    sigma = np.geomspace(0.01, 10, 6)
    rows = wire.table(x=wire.tensor(x), label=wire.int32(labels), sigma=pa.array(sigma))
    reply = wire.exchange(flight, "Denoise", {"model": plane}, rows.to_batches()).table
    flow = wire.numbers(reply["flow"]).reshape(6, 2)
    for i, label in enumerate(labels):
        s = COVARIANCES[label] + sigma[i] ** 2 * np.eye(2)
        want = sigma[i] * np.linalg.solve(s, MEANS[label] - x[i].ravel())
        np.testing.assert_allclose(flow[i], want, rtol=1e-4, atol=1e-5)


def test_a_data_set_drawn_from_a_mixture_has_its_law(flight: fl.FlightClient, plane: str) -> None:
    """20,000 draws; five standard errors: false alarms below 1e-5."""
    request = {"name": "drawn-of-plane", "model": plane, "n": 20000, "seed": 7}
    (info,) = wire.act(flight, "MakeDataset", request)
    assert (info["rows"], info["shape"], info["classes"]) == (20000, [1, 2, 1], 2)
    table = wire.get(flight, "Dataset", {"dataset": "drawn-of-plane"}).table
    x, labels = wire.numbers(table["image"]).reshape(-1, 2), table["label"].to_numpy()
    for label, share in enumerate([0.75, 0.25]):
        own = x[labels == label]
        assert abs(len(own) / len(x) - share) < 5 * np.sqrt(share * (1 - share) / len(x))
        error = np.sqrt(np.diag(COVARIANCES[label]) / len(own))
        assert (abs(own.mean(0) - MEANS[label]) < 5 * error).all()
        variances = np.diag(COVARIANCES[label])
        spread = np.sqrt((np.outer(variances, variances) + COVARIANCES[label] ** 2) / len(own))
        assert (abs(np.cov(own.T) - COVARIANCES[label]) < 5 * spread).all()
    assert wire.code(lambda: wire.act(flight, "MakeDataset", request)) == "NAME_TAKEN"


def test_a_mixture_of_a_data_set_samples_its_classes(flight: fl.FlightClient, dataset: str) -> None:
    (info,) = wire.act(flight, "MakeModel", {"name": "blocks-gmm", "dataset": dataset, "replace": True})
    assert (info["model_type"], info["img_resolution"], info["label_dim"]) == ("Mixture", 8, 10)
    request = {"model": "blocks-gmm", "labels": list(range(10)), "nfe": 15, "schedule": {"edm": {"T": 400}}}
    images = wire.numbers(wire.get(flight, "Sample", request).table["sample"])
    for label, image in enumerate(images):
        block = image[label % 5 + 1 : label % 5 + 3, label // 5 * 4 : label // 5 * 4 + 3]
        assert block.mean() > 200 > image.mean()


def test_the_bench_is_exact(flight: fl.FlightClient, dataset: str) -> None:
    """Euler's method on every DCT direction by hand: x ↦ a ξ + b m, W2² = Σ (|a| − √λ)² + (b − 1)² m²."""
    images = wire.numbers(wire.get(flight, "Dataset", {"dataset": dataset}).table["image"])[..., 0] / 127.5 - 1
    i = np.arange(8)
    dct = np.sqrt(2 / 8) * np.cos(np.pi * (2 * i + 1) * i[:, None] / 16)
    dct[0] /= np.sqrt(2)
    coefficients = np.einsum("uy,nyx,vx->nuv", dct, images, dct)
    mean, variance = coefficients.mean(0), coefficients.var(0)
    request = {"schedule": {"edm": {"T": 400}}, "points": 7}
    g = wire.get(flight, "EvaluateSchedule", request).table["g"].to_numpy()[::-1]
    a, b = np.full((8, 8), np.sqrt(g[0])), np.zeros((8, 8))
    for now, after in zip(np.sqrt(g[:-1]), np.sqrt(g[1:]), strict=True):
        step = (after - now) * now / (variance + now**2)
        a, b = a + step * a, b + step * (b - 1)
    each = ((a - np.sqrt(variance)) ** 2 + (b - 1) ** 2 * mean**2) / variance.sum()
    low = np.zeros((8, 8), bool)
    low[:4, :4] = True

    request = {"dataset": dataset, "schedules": [{"edm": {"T": 400}}], "solvers": ["euler"], "nfe": [6]}
    reply = wire.get(flight, "BenchSchedule", {**request, "basis": "dct", "k": 16}).table
    assert reply.equals(wire.act_rows(flight, "BenchSchedule", {**request, "basis": "dct", "k": 16}))
    assert reply["subspace"].to_pylist() == [-1, 0, 1]
    assert reply["dims"].to_pylist() == [64, 16, 48]
    assert reply["steps"].to_pylist() == reply["nfe"].to_pylist() == [6, 6, 6]
    want = [each.sum(), each[low].sum(), each[~low].sum()]
    np.testing.assert_allclose(reply["w2_squared"].to_numpy(), want, rtol=1e-6)
    share = [1, variance[low].sum() / variance.sum(), variance[~low].sum() / variance.sum()]
    np.testing.assert_allclose(reply["variance"].to_numpy(), share, rtol=1e-6)

    classes = wire.get(flight, "BenchSchedule", {**request, "per_class": True}).table
    assert classes["label"].to_pylist() == np.repeat(np.arange(10), 2).tolist()
    assert wire.code(lambda: wire.get(flight, "BenchSchedule", {**request, "nfe": [0]})) == "BAD_REQUEST"


def test_the_bench_refuses_what_it_cannot_measure(flight: fl.FlightClient, dataset: str) -> None:
    """Subspaces that mix frequencies, classes without images, and images without classes."""
    rows = wire.table(
        label=wire.int32([-1] * 4), subspace=wire.int32([0, 0, 1, 1]), t=[0.0, 400] * 2, g=[1e-6, 400] * 2
    )
    wire.put(flight, wire.command({"op": "PutSchedule", "name": "on-haar", "basis": "haar", "replace": True}), rows)
    mixed = {"dataset": dataset, "schedules": ["on-haar"], "nfe": [6]}
    assert wire.code(lambda: wire.get(flight, "BenchSchedule", mixed)) == "BAD_REQUEST"
    images = wire.tensor(np.random.default_rng(0).integers(0, 255, (4, 8, 8, 1), np.uint8))
    for name, labels in {"bench-gap": [0, 0, 2, 2], "bench-unlabelled": [-1] * 4}.items():
        rows = wire.table(image=images, label=wire.int32(labels))
        wire.put(flight, wire.command({"op": "PutDataset", "name": name, "replace": True}), rows)
        bad = {"dataset": name, "nfe": [5], "per_class": True}
        assert wire.code(lambda bad=bad: wire.get(flight, "BenchSchedule", bad)) == "BAD_REQUEST"


def least_energy(variances: np.ndarray, T: float) -> float:
    """(∫√F dg)² with F = Σ λ/((λ + g) g (1 + g)), by the trapezoidal rule in ln g."""
    log = np.linspace(np.log(1e-9), np.log(T), 4000)
    g = np.exp(log)
    density = (variances / (variances + g[:, None])).sum(1) / (g * (1 + g))
    return float(np.trapezoid(np.sqrt(density) * g, log) ** 2)


def test_predictions_are_true_of_a_gaussian(flight: fl.FlightClient) -> None:
    """On data whose variance falls with frequency the best energies of all cuts are known; four standard errors."""
    rng = np.random.default_rng(3)
    i = np.arange(8)
    dct = np.sqrt(2 / 8) * np.cos(np.pi * (2 * i + 1) * i[:, None] / 16)
    dct[0] /= np.sqrt(2)
    spectrum = 0.3 / (1 + np.maximum.outer(i, i)) ** 2
    images = np.einsum("uy,nuv,vx->nyx", dct, rng.standard_normal((2000, 8, 8)) * spectrum, dct)
    images = np.clip(images, -1, 1).astype(np.float32)[..., None]
    wire.put(flight, fl.FlightDescriptor.for_path("datasets", "falling"), wire.table(image=wire.tensor(images)))
    wire.act(flight, "MakeModel", {"name": "falling-law", "dataset": "falling"})
    wire.act(flight, "MakeDataset", {"name": "falling-drawn", "model": "falling-law", "n": 4000})
    variances = np.maximum(np.einsum("uy,nyx,vx->nuv", dct, images[..., 0], dct).var(0), 1e-4)

    request = {"model": "falling-law", "dataset": "falling-drawn", "T": 400, "samples": 32, "bases": ["dct", "haar"]}
    reply = wire.get(flight, "Predict", request).table
    assert reply.column_names == ["basis", "per_class", "k", "cut", "cut_2", "energy", "stderr", "gain", "gain_stderr"]
    rows = reply.to_pylist()
    assert [row["gain"] for row in rows] == sorted((row["gain"] for row in rows), reverse=True)
    ring, whole = np.maximum.outer(i, i), least_energy(variances.ravel(), 400)
    checked = 0
    for row in rows:
        if row["basis"] == 2:  # haar
            continue
        edges = [0, row["cut"], row["cut_2"] or 8, 8]
        bands = [variances[(ring >= low) & (ring < high)] for low, high in itertools.pairwise(edges)]
        energy = sum(least_energy(band, 400) for band in bands if band.size)
        assert abs(row["energy"] - energy) < 4 * row["stderr"] + 1e-3 * energy
        assert abs(row["gain"] - (1 - energy / whole)) < 4 * row["gain_stderr"] + 1e-3
        assert row["k"] == row["cut"] ** 2
        checked += 1
    assert checked == 1 + 7 + 21
    assert wire.act_rows(flight, "Predict", request).equals(reply)
    assert wire.code(lambda: wire.get(flight, "Predict", {**request, "samples": 1})) == "BAD_REQUEST"
    assert wire.code(lambda: wire.get(flight, "Predict", {**request, "bases": ["dst"]})) == "BAD_REQUEST"


def test_a_geodesic_for_each_class_and_subspace(flight: fl.FlightClient, dataset: str) -> None:
    """It stores its densities, so that the grid geodesic works on it; a run may begin with one."""
    wire.act(flight, "MakeModel", {"name": "blocks-gmm", "dataset": dataset, "replace": True})
    request = {"name": "each", "kind": "geodesic", "model": "blocks-gmm", "dataset": dataset, "T": 400, "knots": 8}
    request |= {"points": 12, "samples": 4, "basis": "dct", "cuts": [2, 4], "per_class": True}
    info = wire.act(flight, "MakeSchedule", request)[-1]
    assert (info["J"], info["per_class"], len(info["labels"])) == (3, True, 10)
    assert all(row["bound"] < row["energy"] and row["bound_stderr"] > 0 for row in info["energies"])
    sample = {"model": "blocks-gmm", "labels": [3, 7], "steps": 4, "schedule": "each", "grid": "geodesic"}
    assert wire.get(flight, "Sample", sample).table.num_rows == 2
    assert wire.code(lambda: wire.act(flight, "MakeSchedule", {**request, "name": "x", "k": 4})) == "BAD_REQUEST"

    run = {"name": "from-geodesic", "stage": "isotropic", "dataset": dataset, "model": "blocks-gmm", "T": 400}
    run |= {"knots": 8, "train_network": False, "init": "geodesic", "batch": 8, "kimg": 0.016}
    wire.act(flight, "CreateRun", run)
    assert wire.get(flight, "TrainStep", {"run": "from-geodesic", "steps": 2}).table.num_rows == 2
    assert wire.code(lambda: wire.act(flight, "CreateRun", {**run, "name": "y", "init": "table"})) == "BAD_REQUEST"
