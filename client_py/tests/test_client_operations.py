"""The client's methods against the real server."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.flight as fl
import pytest
from conftest import pictures
from test_wire_cancel import becomes_idle

import anisoflight
from anisoflight import Client, LocalClient, NotFiniteError
from anisoflight.serving.local import find_binary
from anisoflight.wire.calls import Connection
from anisoflight.wire.tensors import table_of, tensor_column


def test_lists_are_frames_indexed_by_name(client: Client) -> None:
    assert client.models().loc["digits", "label_dim"] == 10
    assert client.datasets().loc["blocks", "rows"] == 64
    assert "digits" in client.schedules().index
    assert "for-model" in client.runs().index
    assert isinstance(client.bases(), pd.DataFrame)
    assert {"Sample", "CreateRun"} <= set(client.operations())
    assert client.describe_model("digits")["config"]["img_resolution"] == 8


def test_samples_by_number_by_label_and_by_latent(client: Client) -> None:
    by_number = client.sample("digits", n=3, steps=3, seed=9, dtype="float32")
    assert by_number.images.shape == (3, 8, 8, 1)
    assert not by_number.images.flags.writeable
    assert by_number.seeds.tolist() == [9, 10, 11]
    by_label = client.sample("digits", labels=by_number.labels, steps=3, seed=9, dtype="float32")
    np.testing.assert_allclose(by_label.images, by_number.images, rtol=0, atol=1e-4)
    latents = np.random.default_rng(0).standard_normal((3, 8, 8, 1))
    by_latent = client.sample("digits", latents=latents, labels=[1, 2, 3], steps=3, layout="CHW")
    assert by_latent.images.shape == (3, 1, 8, 8)
    assert by_latent.labels.tolist() == [1, 2, 3]
    assert "digits" in str(by_latent.metadata)


def test_datasets_round_trip(client: Client) -> None:
    images, labels = pictures(30, seed=3)
    client.put_dataset("mine", images, labels, progress=False)
    dataset = client.dataset("mine")
    np.testing.assert_array_equal(dataset.images, images)
    np.testing.assert_array_equal(dataset.labels, labels)
    assert len(client.dataset("mine", offset=25)) == 5
    assert "data:image/png" in dataset._repr_html_()
    with pytest.raises(anisoflight.NameTakenError):
        client.put_dataset("mine", images)
    client.delete_dataset("mine")
    with pytest.raises(KeyError):
        client.dataset("mine")


def test_datasets_larger_than_memory(client: LocalClient, tmp_path: Path) -> None:
    images, labels = pictures(300, seed=4)
    client.put_dataset("parts", ((images[i : i + 70], labels[i : i + 70]) for i in range(0, 300, 70)), progress=False)
    np.testing.assert_array_equal(client.dataset("parts").images, images)
    np.testing.assert_array_equal(client.dataset("parts").labels, labels)
    np.save(tmp_path / "images.npy", images)
    client.put_dataset("parts", np.load(tmp_path / "images.npy", mmap_mode="r"), replace=True, progress=False)
    np.testing.assert_array_equal(client.dataset("parts").images, images)
    client.delete_dataset("parts")
    for pieces, why in (
        (iter([]), "images must be one or more"),
        (iter([images[:2], images[2:4, :4]]), "piece 1"),
        (iter([images[:2], (images[2:4], labels[2:4])]), "piece 1"),
    ):
        with pytest.raises(ValueError, match=why):
            client.put_dataset("parts", pieces, progress=False)
        assert "parts" not in client.datasets().index
    with pytest.raises(ValueError, match="pairs"):
        client.put_dataset("parts", iter([images]), labels)


def test_an_interrupted_upload_is_not_stored(client: LocalClient) -> None:
    batches = table_of({"image": tensor_column(pictures(1000)[0], "HWC")}).to_batches(max_chunksize=10)
    connection = Connection(client.location)
    for _ in connection.upload({"op": "PutDataset", "name": "half"}, batches[0].schema, batches):
        break
    time.sleep(0.5)
    assert "half" not in client.datasets().index
    connection.close()


def test_a_schedule_is_a_frame_a_plot_and_sigmas(client: Client) -> None:
    schedule = client.schedule("digits")
    frame = schedule.evaluate(points=11)
    assert list(frame.columns) == ["label", "subspace", "t", "g", "gdot", "sigma"]
    sigmas = schedule.sigmas(10)
    np.testing.assert_allclose(sigmas[::-1], np.sqrt(frame["g"]), rtol=1e-12)
    assert np.all(np.diff(sigmas) < 0)
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    assert len(schedule.plot(points=5).lines) == 1
    pyplot.close("all")
    assert "<svg" in schedule._repr_html_()


def test_denoise_takes_one_sigma_or_many(client: Client) -> None:
    x = np.random.default_rng(0).standard_normal((3, 8, 8, 1)).astype(np.float32)
    one = client.denoise("digits", x, sigma=0.5, labels=[1, 2, 3])
    many = client.denoise("digits", x, sigma=[0.5, 0.5, 0.5], labels=[1, 2, 3])
    np.testing.assert_array_equal(one.denoised, many.denoised)
    np.testing.assert_allclose(0.5 * one.flow, one.denoised - x, atol=1e-5)
    assert one.raw.shape == x.shape


@pytest.fixture
def layered(client: Client) -> Iterator[Callable[..., str]]:
    """Makes models that denoise each value by a variance of its own, so that no axis can be taken for another."""
    made: list[str] = []

    def make(*shape: int) -> str:
        d = int(np.prod(shape))
        made.append("layered-" + "-".join(map(str, shape)))
        means, covariances = [np.linspace(-1, 1, d).tolist()], [np.diag(np.linspace(0.1, 2, d)).tolist()]
        client.make_mixture(made[-1], means=means, covariances=covariances, shape=list(shape), progress=False)
        return made[-1]

    yield make
    for name in made:
        client.delete_model(name)


@pytest.mark.parametrize("shape", [(4, 4, 5), (4, 4, 16), (5, 3, 4), (8, 8, 1)])
def test_the_models_shape_tells_the_axes(
    client: Client, layered: Callable[..., str], shape: tuple[int, int, int]
) -> None:
    """D = μ + v/(v + σ²) (x − μ) for each value, whichever side the channels are on."""
    name, d = layered(*shape), int(np.prod(shape))
    x = np.random.default_rng(0).standard_normal((3, *shape)).astype(np.float32)
    mean, variances = np.linspace(-1, 1, d).reshape(shape), np.linspace(0.1, 2, d).reshape(shape)
    want = mean + variances / (variances + 0.25) * (x - mean)
    first = np.moveaxis(x, 3, 1)
    for layout in (None, "HWC"):
        np.testing.assert_allclose(client.denoise(name, x, 0.5, layout=layout).denoised, want, atol=1e-5)
    for layout in (None, "CHW"):
        got = client.denoise(name, first, 0.5, layout=layout).denoised
        np.testing.assert_allclose(got, np.moveaxis(want, 3, 1), atol=1e-5)
    sampler = {"solver": "euler", "nfe": 3, "dtype": "float32", "progress": False}
    drawn = client.sample(name, latents=x, **sampler).images
    np.testing.assert_array_equal(client.sample(name, latents=first, **sampler).images, drawn)
    other = client.sample(name, latents=x, layout="CHW", **sampler).images
    np.testing.assert_array_equal(other, np.moveaxis(drawn, 3, 1))
    gradients = [client.schedule_gradient("edm", name, a, a, 1.0, probe=np.sign(a)).loss for a in (x, first)]
    np.testing.assert_array_equal(gradients[0], gradients[1])
    if 1 not in shape:
        with pytest.raises(ValueError, match=r"images of the model's \d×\d pixels in \d+ channels, got shape"):
            client.denoise(name, x, 0.5, layout="CHW")


def test_a_shape_that_fits_both_ways_is_refused(client: Client, layered: Callable[..., str]) -> None:
    """And what the error says to give decides."""
    name = layered(4, 4, 4)
    x = np.random.default_rng(0).standard_normal((2, 4, 4, 4)).astype(np.float32)
    first = np.ascontiguousarray(np.moveaxis(x, 3, 1))
    sampler = {"solver": "euler", "nfe": 3, "dtype": "float32", "progress": False}
    message = r'of shape \[4 4 4\] must name its axes, .* in Python, layout="HWC" or "CHW"'
    for ask in (
        lambda **how: client.denoise(name, x, 0.5, **how),
        lambda **how: client.sample(name, latents=x, **sampler, **how),
        lambda **how: client.schedule_gradient("edm", name, x, x, 1.0, probe=np.sign(x), **how),
    ):
        with pytest.raises(anisoflight.BadRequestError, match=message):
            ask()
        ask(layout="HWC")
        with pytest.raises(anisoflight.AnisoflightError, match="layout must be HWC or CHW, got 'NHWC'"):
            ask(layout="NHWC")
    d = client.denoise(name, x, 0.5, layout="HWC").denoised
    np.testing.assert_array_equal(client.denoise(name, first, 0.5, layout="CHW").denoised, np.moveaxis(d, 3, 1))
    y = client.sample(name, latents=x, layout="HWC", **sampler).images
    z = client.sample(name, latents=first, layout="CHW", **sampler).images
    np.testing.assert_array_equal(z, np.moveaxis(y, 3, 1))


def test_schedule_gradient(client: Client) -> None:
    rng = np.random.default_rng(0)
    images, noise = rng.uniform(-1, 1, (4, 8, 8, 1)), rng.standard_normal((4, 8, 8, 1))
    gradient = client.schedule_gradient("digits", "digits", images, noise, t=[1.0, 10.0, 100.0, 300.0], mode="backprop")
    assert gradient.loss.shape == (4,)
    assert gradient.A.shape == gradient.B.shape == (4, 1)
    assert len(gradient.d_theta[0][0]) == len(gradient.d_logg[0][0]) - 1


def test_a_run_from_creation_to_model(client: Client) -> None:
    run = client.create_run("mine", "pretrain", "blocks", model="digits", batch=8, T=400)
    assert run.state == "created"
    assert run.step(2)["step"].tolist() == [1, 2]
    assert (run.stored_step, run.store_error, run.restored) == (2, None, None)
    run.start(kimg=0.04)
    assert [row["step"] for row in run.watch(from_=2)] == [3, 4, 5]
    assert run.wait()["step"].tolist() == [1, 2, 3, 4, 5]
    assert run.metrics()["loss"].notna().all()
    run.save("mine")
    with pytest.raises(anisoflight.NameTakenError):
        run.save("mine")
    assert "mine" in client.models().index
    assert client.run("mine").info["step"] == 5
    client.delete_model("mine")
    run.delete()
    with pytest.raises(KeyError, match="RUN_NOT_FOUND"):
        client.run("mine")


def test_metrics_of_a_run_at_work_do_not_wait_for_its_end(client: Client) -> None:
    run = client.create_run("at-work", "pretrain", "blocks", model="digits", batch=8)
    assert len(run.metrics()) == 0
    run.start(kimg=1000)
    while run.info["step"] < 3:
        time.sleep(0.05)
    assert len(run.metrics()) >= 3
    assert run.state == "running"
    run.pause()
    assert run.state == "paused"
    run.cancel()
    with pytest.raises(anisoflight.RunNotRunnableError):
        run.step()


GEODESIC = "'long', 'geodesic', model='digits', dataset='blocks'"
LONG = {  # a call that takes hours, and the same in short, which compiles what it needs
    "sample": ("client.sample('digits', n=4096, steps={})", 50_000, 1),
    "step": ("client.run('endless').step({})", 10**6, 1),
    "make": (f"client.make_schedule({GEODESIC}, replace=True, samples=256, points={{}})", 16_000, 4),
}


@pytest.mark.parametrize("name", LONG)
def test_ctrl_c_ends_the_call_on_both_sides(client: LocalClient, name: str) -> None:
    if name == "step":
        client.create_run("endless", "pretrain", "blocks", model="digits", batch=8)
    call, long, short = LONG[name]
    eval(call.format(short), {"client": client})
    program = textwrap.dedent(f"""
        import threading, time
        import anisoflight
        client = anisoflight.connect({client.location!r})
        client.info()
        threading.Timer(1.5, lambda: print("under way", flush=True)).start()
        try:
            {call.format(long)}
        except KeyboardInterrupt:  # Run.step returns what was learned
            pass
        print(time.time(), flush=True)
    """)
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    assert process.stdout.readline() == b"under way\n"
    sent = time.time()
    process.send_signal(signal.SIGINT)
    assert float(process.stdout.readline()) - sent < 0.5
    assert process.wait(5) == 0
    with fl.connect(client.location) as flight:
        assert becomes_idle(flight, client.server.process.pid)
    if name == "step":
        assert client.run("endless").step()["step"].item() > 2


def test_serve_in_a_folder_of_its_own(tmp_path: Path) -> None:
    with anisoflight.serve(data=tmp_path) as client:
        assert client.location.startswith("grpc+unix://")
        assert client.models().empty
        pid = client.server.process.pid
        client.put_dataset("kept", np.zeros((2, 8, 8, 1), np.uint8))
    assert client.server.process.returncode == 0
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with anisoflight.serve(data=tmp_path) as client:
        assert "kept" in client.datasets().index


def test_a_run_that_diverges_warns(client: Client) -> None:
    settings = {"T": 400, "batch": 8, "kimg": 1.0, "lr": 1e30}
    run = client.create_run("overshooting", "isotropic", "blocks", model="digits", **settings)
    assert run.stopped is None
    run.start(kimg=1.0)
    with pytest.warns(UserWarning, match="the gradients of 20 steps in a row were not finite"):
        rows = run.wait(progress=False)
    assert run.stopped is not None
    assert run.stopped["reason"] == "diverged"
    assert run.stopped["step"] == len(rows)
    assert run.state == "paused"
    pd.testing.assert_frame_equal(run.metrics(), rows)


def test_a_network_that_diverges_is_no_silent_result(client: Client, diverged: str, tmp_path: Path) -> None:
    run = client.run(diverged)
    with pytest.warns(UserWarning, match=r"step \d+: the loss is not finite"):
        run.step(1, progress=False)
    with pytest.raises(NotFiniteError, match=r"\[NOT_FINITE\] .*the loss of its last step, "):
        run.save("refused")
    assert "refused" not in client.models().index
    more: list[dict[str, Any]] = [{}, {"dtype": "float32"}, {"every": 2}]
    for options in more:
        with pytest.warns(UserWarning, match="4 of 4 images are not finite"):
            samples = client.sample("blown", n=4, steps=3, **options)
        assert "4 of 4 images are not finite" in samples.notes[-1]
        assert samples.to_pictures()[0].dtype == np.uint8
    x = np.full((2, 8, 8, 1), 0.5, np.float32)
    with pytest.warns(UserWarning, match="2 of 2 images are not finite"):
        client.sample("blown", latents=x, steps=3)
    with pytest.warns(UserWarning, match="2 of 2 images are not finite"):
        client.denoise("blown", x, sigma=1.0)
    for search in (
        lambda: client.make_schedule("blown-path", "geodesic", model="blown", dataset="blocks"),
        lambda: client.few("blown", nfe=3, dataset="blocks", samples=64),
        lambda: client.evaluate_model("blown", "blocks"),
        lambda: client.predict("blown", "blocks"),
        lambda: client.schedule_gradient("edm", "blown", x, x, [1.0, 100.0], progress=False),
    ):
        with pytest.raises(NotFiniteError, match="not finite"):
            search()
    command = [find_binary(), "sample", "--server", client.location, "--model", "blown", "--n", "4", "--steps", "3"]
    done = subprocess.run([*command, "--out", tmp_path / "black.png"], capture_output=True, text=True, check=False)
    assert (done.returncode, (tmp_path / "black.png").exists()) == (1, True)
    assert "4 of 4 images are not finite" in done.stderr


STDERR = {  # the shell's redirection, and what the program does first
    "none": ("2>&-", "assert sys.stderr is None"),
    "closed": ("", "sys.stderr.close()"),
    "full": ("2>/dev/full", ""),
    "a full terminal": ("2>/dev/full", "sys.stderr.isatty = lambda: True"),
    "a pipe that nobody reads": ("2>&1 >&3 | true", "import time; time.sleep(1)"),
}


@pytest.mark.parametrize("kind", STDERR)
def test_results_do_not_depend_on_stderr(client: Client, diverged: str, tmp_path: Path, kind: str) -> None:
    """Progress, warnings and notes have nowhere to go; the program has its results and ends well."""
    redirection, first = STDERR[kind]
    program = textwrap.dedent(f"""
        import sys
        import anisoflight
        from anisoflight.errors import say
        from anisoflight.wire import progress
        {first}
        progress._LINES = progress._DELAY = 0.0
        with anisoflight.connect({client.location!r}) as client:
            samples = client.sample({diverged!r}, n=4, steps=30)
            rows = client.run({diverged!r}).step(2)
        say("done")
        with open({str(tmp_path / "results")!r}, "w") as file:
            print(samples.images.shape, "not finite" in samples.notes[-1], len(rows), file=file)
    """)
    words = ["sh", "-c", f'exec 3>&1; "$0" -c "$1" {redirection}', sys.executable, program]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (tmp_path / "results").exists(), done.stdout + done.stderr
    assert (tmp_path / "results").read_text() == "(4, 8, 8, 1) True 2\n"
    assert done.returncode == 0


def test_a_network_that_overflows_before_its_first_step_is_not_saved(client: Client, diverged: str) -> None:
    """No loss says it: the network itself is asked."""
    run = client.create_run("from-blown", "pretrain", "blocks", model=diverged, batch=8, kimg=1)
    with pytest.raises(NotFiniteError, match=r"the answer of the network at noise level 0\.002 is not finite"):
        run.save("refused")
    assert "refused" not in client.models().index


def test_classes_without_images_are_not_drawn(client: Client) -> None:
    labels = np.arange(32) % 3 * 2 + 1
    client.put_dataset("odd", np.zeros((32, 8, 8, 1), np.uint8), labels, progress=False)
    network = {"img_resolution": 8, "img_channels": 1, "label_dim": 7, "model_channels": 8, "channel_mult": [1]}
    with pytest.warns(UserWarning, match="label_dim is 7 and 4 of these classes have no images, such as label 0"):
        run = client.create_run("odd", "pretrain", "odd", batch=8, kimg=1, network=network)
    run.step(1, progress=False)
    run.save("odd")
    with pytest.warns(UserWarning, match="4 classes of the model had no images in training, such as label 0"):
        drawn = client.sample("odd", n=64, steps=1)
    assert set(drawn.labels.tolist()) == {1, 3, 5}
    assert client.sample("odd", labels=[0], steps=1).labels.tolist() == [0]


def test_a_run_says_what_it_gained(
    client: anisoflight.Client, dataset: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {"model": "digits", "batch": 8, "kimg": 0.016, "keep": "energy", "replace": True}
    run = client.create_run("gains", "anisotropic", dataset, **options)
    assert "0.016 kimg in about" in repr(run)
    run.step(2)
    run.save("gains", replace=True)
    outcome = run.info["outcome"]
    assert outcome["summary"] in capsys.readouterr().out
    assert outcome["summary"].startswith("kept the s")  # the start or the state of a step
    assert (client.schedule("gains").provenance or {})["outcome"] == outcome
    assert client.schedule("gains").info["summary"] == outcome["summary"]
    assert run.info["config"]["ratio_embedding"]
    client.delete_model("gains")
    run.delete()


def test_a_network_is_trained_along_a_path_that_stays(client: anisoflight.Client, dataset: str) -> None:
    options = {"model": "digits", "batch": 8, "kimg": 0.016, "train_schedule": False, "init": "edm", "replace": True}
    run = client.create_run("stays", "isotropic", dataset, **options)
    rows = run.step(2)
    assert rows["energy"].notna().all()
    assert rows["schedule_grad_norm"].isna().all()
    run.save("stays", replace=True)
    assert "moved" not in (client.schedule("stays").provenance or {})
    client.delete_model("stays")
    run.delete()
