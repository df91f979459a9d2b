"""What a newcomer types: it works, or one sentence says what was given, what is allowed and what to do."""

import json
import os
import re
import signal
import threading
import time
import warnings
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest
import wire

import anisoflight
from anisoflight import AnisoflightError, AnisoflightWarning, BadRequestError, Client, LocalClient, UnavailableError


def test_numbers_of_numpy_are_numbers(client: Client) -> None:
    options: dict[str, Any] = {
        "n": np.int32(2),
        "nfe": np.int64(7),
        "seed": np.uint64(2**64 - 1),
        "denoise_to_zero": np.bool_(False),
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


def test_numbers_that_are_none(client: Client) -> None:
    for value in (np.nan, [0.1, np.inf], {"sigma_max": np.float32(np.nan)}):
        with pytest.raises(BadRequestError, match=r"grid must hold finite numbers, got .*(nan|inf)"):
            client.sample("digits", n=1, steps=2, grid=value)  # pyright: ignore[reportArgumentType]
    with pytest.raises(BadRequestError, match="S_churn must hold finite numbers, got nan"):
        client.sample("digits", n=1, steps=2, S_churn=float("nan"))


@pytest.mark.parametrize("location", ["localhost", "http://localhost:8941", "localhost:x", ""])
def test_what_is_no_location(location: str) -> None:
    with pytest.raises(ValueError, match=f"must be HOST:PORT, .*got '{location}'; write localhost:8815"):
        anisoflight.connect(location)


@pytest.mark.parametrize("location", [Path("socket"), 8815, b"localhost:8815", None])
def test_locations_of_other_types(location: Any) -> None:
    with pytest.raises(BadRequestError, match="location must be text such as localhost:8815 or unix:PATH, got"):
        anisoflight.connect(location)


@pytest.mark.parametrize("option", ["data", "listen", "config"])
def test_places_of_a_server_of_other_types(option: str) -> None:
    for value in (0, b"data", 1.5):
        with pytest.raises(BadRequestError, match=f"{option} must be text or a pathlib.Path, got"):
            anisoflight.serve(**{option: value})  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("seconds", [np.nan, np.inf, -1, "1", [1], 1e12])
def test_seconds_that_are_none(seconds: Any) -> None:
    for option in ("timeout", "retry"):
        with pytest.raises(BadRequestError, match=f"{option} must be a number of seconds from .* to 1e9, got"):
            anisoflight.connect("localhost:1", **{option: seconds})
    with pytest.raises(BadRequestError, match="timeout must be a number of seconds"):
        anisoflight.serve(timeout=seconds)


def test_what_is_printed_of_what_is_gone(client: LocalClient) -> None:
    with anisoflight.connect(client.location) as other:
        run = other.create_run("gone", "pretrain", "blocks", network=wire.NETWORK, batch=8)
        schedule = other.schedule("edm")
        run.delete()
        assert repr(run) == "Run('gone', RUN_NOT_FOUND)"
    assert repr(run) == "Run('gone', UNAVAILABLE)"
    assert "edm" in schedule._repr_html_()


def test_addresses_as_commands_take_them(client: LocalClient) -> None:
    address = client.location.removeprefix("grpc://")
    for given in (address, address.replace("127.0.0.1", "localhost")):
        with anisoflight.connect(given) as other:
            assert other.location == f"grpc://{given}"
            assert "digits" in other.models().index
    with anisoflight.connect("[::1]:1", retry=0) as nobody, pytest.raises(UnavailableError, match="no server answers"):
        nobody.info()


def test_labels_that_are_no_integers(client: Client) -> None:
    images = np.zeros((2, 8, 8, 1), np.uint8)
    for labels, message in (
        (["cat", "dog"], "integers, got 'cat'"),
        ([0, 1.5], "integers, got 1.5"),
        ([0, 2**40], f"in the range of int32, got {2**40}"),
    ):
        error = pytest.raises(ValueError, match=f"labels must be {message}; number the classes from 0")
        with error:
            client.put_dataset("misuse", images, labels)
        with error:
            client.sample("digits", labels=labels, steps=2)
        with error:
            client.denoise("digits", images.astype(float), sigma=1, labels=labels)
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
    with pytest.warns(UserWarning, match=r"^nfe 9: .* take 8 evaluations; second_point endpoint takes 9$"):
        assert client.sample("digits", n=1, nfe=9).nfe.tolist() == [8]
    with pytest.warns(UserWarning, match="take 7 evaluations; ask for 7, or give steps"):
        client.sample("digits", latents=np.zeros((1, 8, 8, 1)), nfe=8, second_point="endpoint")
    with pytest.warns(UserWarning, match="take 8 evaluations"):
        assert client.plan("edm", model="digits", nfe=9).nfe == 8
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        client.sample("digits", n=1, nfe=9, second_point="endpoint")
        client.sample("digits", n=1, nfe=8)
        client.sample("digits", n=1, nfe=9, solver="ab")


def test_defaults_and_poor_choices_are_said_once(client: Client) -> None:
    asked: dict[str, Any] = {"solver": "unipc", "nfe": 5}
    with pytest.warns(AnisoflightWarning, match="order is 2 by default with solver unipc") as caught:
        samples = client.sample("digits", n=1, **asked)
    assert caught[0].filename == __file__
    assert samples.notes == [str(caught[0].message)]
    assert "order is 2 by default" in samples._repr_html_()
    with pytest.warns(AnisoflightWarning, match="order is 2"):
        client.sample("digits", latents=np.zeros((1, 8, 8, 1)), **asked)
    assert json.loads(samples.metadata["request"])["order"] == 2
    assert "solver unipc of order 2, 5 evaluations, grid schedule" in samples._repr_html_()
    with warnings.catch_warnings(record=True) as message:
        warnings.simplefilter("default")
        for _ in range(3):
            client.sample("digits", n=1, **asked)
    assert len(message) == 1


def test_a_doubtful_layout_is_said(client: Client) -> None:
    with pytest.warns(AnisoflightWarning, match="are taken as CHW: 6 channels of 6×5 pixels"):
        client.put_dataset("misuse-layout", np.zeros((2, 6, 6, 5), np.float32), mean=0, scale=1, replace=True)
    with pytest.warns(AnisoflightWarning, match=r'HWC: 4 channels of 16×4 pixels; give layout="CHW"'):
        client.put_dataset("misuse-layout", np.zeros((2, 16, 4, 4), np.float32), mean=0, scale=1, replace=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        client.put_dataset("misuse-layout", np.zeros((2, 16, 8, 8), np.float32), mean=0, scale=1, replace=True)
        client.put_dataset(
            "misuse-layout", np.zeros((2, 6, 6, 5), np.float32), mean=0, scale=1, layout="HWC", replace=True
        )
    client.delete_dataset("misuse-layout")


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that are not what they are taken for."""
    folder = tmp_path_factory.mktemp("misuse")
    (folder / "broken.json").write_text("{")
    (folder / "other.json").write_text("{}")
    return folder


IMAGES = np.zeros((3, 8, 8, 1), np.uint8)
X = np.zeros((2, 8, 8, 1), np.float32)
MISTAKES: dict[str, tuple[str, str]] = {
    # What is typed, and the sentence, or its telling part.
    "nobody listens": ("connect('127.0.0.1:1').info()", r"no server answers at \S+:1 \(conn.* to another location"),
    "no such program": ("serve(binary='/nowhere')", "no program at /nowhere; build one with make build"),
    "a model's name misspelt": ("client.sample('digit', n=1, steps=2)", 'No model is called "digit". .*digits'),
    "a file of another kind": ("client.sample('digits', n=1, steps=2).save('x.gif')", "path must end in .png"),
    "a folder's path": (
        "client.put_dataset('new', 'photos')",
        "not paths or encoded images, got .photos.; python -m anisoflight.data",
    ),
    "nothing": ("client.put_dataset('new', None)", r"images must have all values, got 1 missing"),
    "bytes": (
        "client.put_dataset('new', pa.table({'image': [b'x']}))",
        "must be pixels, not paths or encoded images, got b'x'",
    ),
    "images of two sizes": ("client.put_dataset('new', [images[0], images[0, :4]])", "must be of one form, got .4, 8"),
    "labels too few": (
        "client.put_dataset('new', images, [1])",
        r"one number per image, got shape \(1,\) for 3 images",
    ),
    "a frame without images": ("client.put_dataset('new', {'pixels': images})", "a column named .*, got pixels"),
    "a schedule of nothing": ("client.put_schedule('new', [1, 2])", "columns t and g, got 0; add t and g"),
    "a broken file": ("client.put_schedule('new', places / 'broken.json')", "broken.json must be JSON"),
    "another file as a plan": ("Plan.load(places / 'other.json')", "not a plan: format and version must be"),
    "no such schedule": ("client.schedule('nope').info", "no schedule is called 'nope'"),
    "no levels": ("client.schedule('edm').sigmas(0)", "steps must be at least 1, got 0"),
    "no noise level": ("client.denoise('digits', x)", "sigma or g must be given, one of them, got neither"),
    "levels of other images": ("client.denoise('digits', x, sigma=[1, 2, 3])", r"each of 2 images, got shape \(3,\)"),
    "a level in words": ("client.denoise('digits', x, sigma='big')", "sigma must be a number, .* got 'big'"),
    "a basis of rows": ("client.put_basis('new', np.eye(64))", r"must have the shape \[k, H, W\], got \(64, 64\)"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_in_one_sentence(client: LocalClient, places: Path, mistake: str) -> None:
    typed, message = MISTAKES[mistake]
    names = {"client": client, "places": places, "images": IMAGES, "x": X, "np": np, "pa": pa}
    with pytest.raises((AnisoflightError, ValueError), match=message) as caught:
        eval(typed, {**names, "connect": anisoflight.connect, "serve": anisoflight.serve, "Plan": anisoflight.Plan})
    sentence = getattr(caught.value, "message", str(caught.value))
    assert "\n" not in sentence
    assert len(sentence) <= 200, sentence
    assert "new" not in {*client.datasets().index, *client.schedules().index, *client.bases().index}


def interrupt_after(client: LocalClient, run: str, step: int) -> None:
    """Interrupt this process once a run has taken a step."""

    def watch() -> None:
        with anisoflight.connect(client.location) as other:
            while other.run(run).info["step"] < step:
                time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=watch, daemon=True).start()


def test_an_interrupt_returns_the_rows_so_far(client: LocalClient, capfd: pytest.CaptureFixture[str]) -> None:
    """What the server took before it heard of the interrupt is among them; a later client goes on."""
    run = client.create_run("misuse-interrupted", "pretrain", "blocks", model="digits", batch=8)
    run.step(1, progress=False)
    interrupt_after(client, run.name, 3)
    rows = run.step(10**6, progress=False)
    assert rows.attrs == {"interrupted": True}
    steps = rows["step"].tolist()
    assert steps == list(range(2, len(steps) + 2))
    assert capfd.readouterr().err == (
        f"run misuse-interrupted was interrupted after step {steps[-1]}; its steps are kept: step() continues, "
        "save() saves it, metrics() shows all rows\n"
    )
    with anisoflight.connect(client.location) as later:
        assert later.run("misuse-interrupted").step(1, progress=False)["step"].tolist() == [steps[-1] + 1]
        interrupt_after(client, run.name, steps[-1] + 3)
        run.step(10**6, progress=False)
        assert run.state == "paused"
        run.start(kimg=1000)  # paused means startable
        steps.append(run.info["step"])
        interrupt_after(client, run.name, steps[-1] + 40)  # when wait() has long begun to follow
        rows = later.run("misuse-interrupted").wait(progress=False)
    assert "it continues in the background: wait() follows it again" in capfd.readouterr().err
    assert len(rows) > len(steps)
    assert run.state == "running"
    run.pause()
    run.delete()


def test_what_notebooks_show(client: LocalClient) -> None:
    page = ElementTree.fromstring(client.schedule("edm")._repr_html_())  # well-formed
    assert [child.tag.rpartition("}")[2] for child in page] == ["code", "svg"]
    run = client.run("for-model")
    parameters = run.info["parameters"]
    assert parameters > 1000
    assert re.match(rf"Run\('for-model', 'paused', {parameters:,} parameters[,)]", repr(run))
    assert repr(client.schedule("edm")) == "Schedule('edm')"
    client.put_schedule("misuse-shown", {"t": [0, 9], "g": [1e-6, 4]}, replace=True)
    lists = [(client.runs(), "state", "created"), (client.models(), "parameters", "hash")]
    for listed, shown, kept in [*lists, (client.schedules(), "T", "provenance")]:
        printed = repr(listed)
        assert "\\" not in printed, f"wider than a terminal:\n{printed}"
        assert shown in printed.splitlines()[0]
        assert kept in printed.splitlines()[-1]
        assert f"<th>{kept}</th>" not in listed._repr_html_()
        assert kept in listed.columns
    client.delete_schedule("misuse-shown")
