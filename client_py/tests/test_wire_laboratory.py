"""The laboratory: mixtures with exact score as models."""

import numpy as np
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
