"""What a newcomer types: it works, or one sentence says what was given, what is allowed and what to do."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import anisoflight
from anisoflight import Client
from anisoflight.calls import Calls
from anisoflight.run import Run, RunInterrupted


def test_numbers_of_numpy_are_numbers(client: Client) -> None:
    options: dict[str, Any] = {
        "n": np.int32(2),
        "nfe": np.int64(7),
        "seed": np.uint64(2**64 - 1),
        "afs": np.bool_(False),
        "S_churn": np.float32(0),
    }
    samples = client.sample("digits", grid={"edm": {"sigma_max": np.float64(20)}}, **options)
    assert samples.nfe.tolist() == [7, 7]
    assert client.sample("digits", n=1, grid={"sigma": np.array([20, 1, 0])}).nfe.tolist() == [3]


def test_what_is_no_number_is_told(client: Client) -> None:
    with pytest.raises(ValueError, match=r'nfe must be a number, got "nine"'):
        client.sample("digits", n=1, nfe="nine")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"n must be a whole number, got 2\.5"):
        client.sample("digits", n=2.5, nfe=8)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="numbers, strings, lists and mappings, got <object"):
        client.sample("digits", n=1, steps=2, grid=object())  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("location", ["localhost:8941", "localhost", "http://localhost:8941", ""])
def test_a_location_without_its_scheme(location: str) -> None:
    with pytest.raises(ValueError, match=f"grpc://HOST:PORT.*got '{location}'; write grpc://localhost:8815"):
        anisoflight.connect(location)


def test_labels_that_are_no_integers(client: Client) -> None:
    images = np.zeros((2, 8, 8, 1), np.uint8)
    for labels, said in (
        (["cat", "dog"], "integers, got 'cat'"),
        ([0, 1.5], "integers, got 1.5"),
        ([0, np.nan], "integers, got nan"),
        ([0, 2**40], f"in the range of int32, got {2**40}"),
    ):
        error = pytest.raises(ValueError, match=f"labels must be {said}; number the classes from 0")
        with error:
            client.put_dataset("misuse", images, labels)
        with error:
            client.sample("digits", labels=labels, steps=2)
        with error:
            client.denoise("digits", images, sigma=1, labels=labels)
    assert client.sample("digits", labels=[3.0, 1.0], steps=2).labels.tolist() == [3, 1]


def test_images_on_another_scale_are_told(client: Client) -> None:
    unit = np.random.default_rng(0).random((5, 8, 8, 1))
    binary = (unit > 0.5).astype(np.uint8)
    for images in (unit, unit.astype(np.float32), binary):
        for given in (images, (images[i : i + 2] for i in (0, 2)), ((images[i : i + 2], [0, 1]) for i in (0, 2))):
            with pytest.warns(UserWarning, match=r"uint8 in \[0, 255\] or floats in \[-1, 1\].* check_range=False"):
                client.put_dataset("misuse", given, replace=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        client.put_dataset("misuse", unit, replace=True, check_range=False)
        client.put_dataset("misuse", 2 * unit - 1, replace=True)
        client.put_dataset("misuse", binary * np.uint8(255), replace=True)
        client.put_dataset("misuse", np.zeros((2, 8, 8, 1), np.uint8), replace=True)
        client.put_dataset("misuse", iter([unit, 2 * unit - 1]), replace=True)


def test_fewer_evaluations_than_asked_for(client: Client) -> None:
    with pytest.warns(UserWarning, match=r'^nfe=9: .* take 8 evaluations; second_point="endpoint" takes 9$'):
        assert client.sample("digits", n=1, nfe=9).nfe.tolist() == [8]
    with pytest.warns(UserWarning, match="take 7 evaluations; ask for 7, or give steps"):
        client.sample("digits", latents=np.zeros((1, 8, 8, 1)), nfe=8, second_point="endpoint")
    with pytest.warns(UserWarning, match="take 8 evaluations"):
        assert client.plan("edm", nfe=9).nfe == 8
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        client.sample("digits", n=1, nfe=9, second_point="endpoint")
        client.sample("digits", n=1, nfe=8)
        client.sample("digits", n=1, nfe=9, solver="ab")


def test_a_stale_average_is_told(client: Client) -> None:
    settings: dict[str, Any] = {
        "network": client.run("for-model").info["config"]["network"],
        "batch": 8,
        "ema_rampup": 0,
    }
    run = client.create_run("misuse-stale", "pretrain", "blocks", **settings)
    run.step(2, progress=False)
    with pytest.warns(UserWarning, match="still what the run started from.* or ema_rampup 0.05"):
        run.save("misuse-stale")
    client.delete_model("misuse-stale")
    run.delete()


def test_an_interrupted_run_says_what_is_kept() -> None:
    class Interrupted(Calls):
        def __init__(self) -> None:
            pass

        def call(self, action: str, *, show: str | None = None, **request: Any) -> dict[str, Any]:
            raise KeyboardInterrupt

    with pytest.raises(RunInterrupted) as caught:
        Run(Interrupted(), "first").step(3)
    (line,) = caught.value._render_traceback_()  # what IPython shows
    assert line == (
        "run first was interrupted; its steps are kept: metrics() shows them, save() saves what was learned, "
        "step() goes on"
    )
