"""``python -m anisoflight.fid`` against the real server: measured once, and resumed to the same bits."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anisoflight import LocalClient
from anisoflight.fid.__main__ import main
from anisoflight.fid.builtin import principal_features
from anisoflight.fid.reference import load_reference, save_arrays
from anisoflight.fid.sources import CONVERGED, ServerSamples
from anisoflight.fid.stretches import Stretch
from anisoflight.images import Pixels, to_float
from anisoflight.moments import Moments, frechet_distance

ENDPOINT = ["--second-point", "endpoint"]


@pytest.fixture(scope="module")
def reference(client: LocalClient, dataset: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fid") / "blocks.npz"
    made = ["ref", "--server", client.location, "--dataset", dataset, "--features", "pca-6", "--rows", "--quiet"]
    assert main([*made, "--out", str(path)]) == 0
    return path


class Calc:
    """calc on the small model; its rows."""

    def __init__(self, client: LocalClient, reference: Path, out: Path) -> None:
        self.out, self.folder = out, out.with_name(out.name + ".state")
        known = ["--server", client.location, "--model", "digits", "--ref", str(reference), "--out", str(out)]
        self.arguments = ["calc", *known, "--allow-fewer", "--quiet"]

    def __call__(self, *flags: str) -> list[dict[str, Any]]:
        assert main([*self.arguments, *flags]) == 0
        return self.rows()

    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.read_text().splitlines()] if self.out.exists() else []


@pytest.fixture
def calc(client: LocalClient, reference: Path, tmp_path: Path) -> Calc:
    return Calc(client, reference, tmp_path / "rows" / "results.jsonl")


def test_rows_say_what_they_are_of(
    calc: Calc, client: LocalClient, dataset: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = calc("--nfe", "3,5", *ENDPOINT, "--seeds", "0-29,30-59", "--method", "pca", "--benchmark", "cifar10")
    found = [(row["nfe"], row["seeds"], row["count"]) for row in rows]
    assert found == [(nfe, seeds, 30) for nfe in (3, 5) for seeds in ("0-29", "30-59")]
    real = to_float(client.dataset(dataset).images)
    features = principal_features(real, 6)
    drawn = client.sample("digits", n=30, seed=30, nfe=3, second_point="endpoint").images
    expected = frechet_distance(Moments.of(features(to_float(drawn))), Moments.of(features(real)))
    assert rows[1]["frechet"] == pytest.approx(expected, rel=1e-9)

    row = rows[1]
    assert (row["method"], row["benchmark"], row["asked"]) == ("pca", "cifar10", {"nfe": 3})
    assert row["source"]["weights"] == client.describe_model("digits")["hash"]
    assert len(row["source"]["schedule"]["hash"]) == len(row["features"]["hash"]) == len(row["reference"]["hash"]) == 64
    assert row["reference"]["source"]["dataset"] == dataset
    assert row["versions"]["server"] == client.info()["version"]
    assert row["seconds"]["images"] > 0
    assert not row["comparable"]
    assert [note.split(",")[0] for note in row["notes"]] == ["30 images", "features pca-6"]
    least, mean = min(rows[0]["frechet"], expected), (rows[0]["frechet"] + expected) / 2
    assert f"| pca | {least:.3f} ({mean:.3f} ± " in capsys.readouterr().out
    assert not calc.folder.exists()


def test_a_row_is_measured_once(calc: Calc, monkeypatch: pytest.MonkeyPatch) -> None:
    first = calc("--nfe", "3", "--seeds", "0-19")

    def never(*_: object) -> Iterator[Pixels]:
        raise AssertionError("it has been measured")

    monkeypatch.setattr(ServerSamples, "read", never)
    assert calc("--nfe", "3", "--seeds", "0-19") == first


def test_fewer_than_fifty_thousand_are_refused_before_anything_is_drawn(
    calc: Calc, capsys: pytest.CaptureFixture[str]
) -> None:
    calc.arguments.remove("--allow-fewer")
    assert main([*calc.arguments, "--nfe", "3", "--seeds", "0-49999,50000-50099"]) == 1
    assert "anisoflight: digits, nfe 3, seeds 50000-50099: FID needs 50000 images, got 100" in capsys.readouterr().err
    assert not calc.out.exists()


def test_a_network_that_has_diverged_has_no_row(calc: Calc, diverged: str, capsys: pytest.CaptureFixture[str]) -> None:
    calc.arguments[calc.arguments.index("digits")] = diverged
    for _ in range(2):  # the second would find what the first had kept
        assert main([*calc.arguments, "--nfe", "3", "--seeds", "0-39", "--checkpoint", "10"]) == 1
        said = capsys.readouterr().err
        assert re.search(r"model 'blown': 1\d* of 1\d* images are not finite: the network overflows", said), said
    assert not calc.out.exists()


def test_what_was_interrupted_goes_on_to_the_same_bits(
    calc: Calc, client: LocalClient, reference: Path, tmp_path: Path
) -> None:
    flags = ["--steps", "2", "--seeds", "7-206", "--checkpoint", "40"]
    flags += ["--metrics", "precision-recall,density-coverage,ode-error"]
    whole = Calc(client, reference, tmp_path / "whole.jsonl")(*flags)[0]
    kept, read = [], ServerSamples.read

    def failing(self: ServerSamples, start: int, stop: int) -> Iterator[Pixels]:
        kept.append(start)
        parts = read(self, start, stop)
        if start == 80:
            yield next(iter(parts))[:17]
            raise KeyboardInterrupt
        yield from parts

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ServerSamples, "read", failing)
        assert main([*calc.arguments, *flags]) == 130
        assert kept == [0, 40, 80]
        patch.setattr(ServerSamples, "read", lambda self, start, stop: (kept.append(start), read(self, start, stop))[1])
        resumed = calc(*flags)[0]
    assert kept[3:] == [80, 120, 160]
    for name in ("frechet", "precision", "recall", "density", "coverage", "ode_error", "images", "nfe", "key"):
        assert resumed[name] == whole[name], name
    assert not calc.folder.exists()


def test_a_killed_process_loses_no_more_than_since_its_checkpoint(
    calc: Calc, client: LocalClient, reference: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--nfe", "5", "--seeds", "0-599", "--checkpoint", "50"]
    process = subprocess.Popen([sys.executable, "-m", "anisoflight.fid", *calc.arguments, *flags])
    try:
        end = time.monotonic() + 60
        while not list(calc.folder.glob("*/*.npz")):
            assert time.monotonic() < end
            assert process.poll() is None
            time.sleep(0.02)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    kept = list(calc.folder.glob("*/*.npz"))
    assert 1 <= len(kept) < 12
    resumed = calc(*flags)[0]
    assert f"going on from {50 * len(kept)} of 600 images" in capsys.readouterr().out
    whole = Calc(client, reference, calc.out.with_name("whole.jsonl"))(*flags)[0]
    assert (resumed["frechet"], resumed["images"]) == (whole["frechet"], whole["images"])


def test_checkpoints_and_batches_move_nothing_but_rounding(calc: Calc, client: LocalClient, reference: Path) -> None:
    flags = ["--nfe", "3", "--seeds", "0-99"]
    one = calc(*flags)[0]["frechet"]
    other = Calc(client, reference, calc.out.with_name("other.jsonl"))
    assert other(*flags, "--checkpoint", "7", "--batch", "3")[0]["frechet"] == pytest.approx(one, rel=1e-3)
    calc.out.unlink()
    assert calc(*flags, "--batch", "3")[0]["frechet"] == pytest.approx(one, rel=1e-12)


@pytest.fixture(scope="module")
def second(client: LocalClient, dataset: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reference of other features of the same images."""
    path = tmp_path_factory.mktemp("fid") / "pixels.npz"
    made = ["ref", "--server", client.location, "--dataset", dataset, "--features", "pixels", "--quiet"]
    assert main([*made, "--out", str(path)]) == 0
    return path


def lasting(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without what time they took, and when."""
    return [{name: value for name, value in row.items() if name not in ("seconds", "finished")} for row in rows]


def test_several_references_in_one_pass(
    calc: Calc, client: LocalClient, reference: Path, second: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = ["--nfe", "3,5", "--seeds", "0-99", "--checkpoint", "40"]
    one = Calc(client, reference, tmp_path / "one.jsonl")(*flags)
    other = Calc(client, second, tmp_path / "other.jsonl")(*flags)
    starts, read = [], ServerSamples.read

    def reading(self: ServerSamples, start: int, stop: int) -> Iterator[Pixels]:
        starts.append(start)
        if len(starts) == 2:
            raise KeyboardInterrupt
        yield from read(self, start, stop)

    monkeypatch.setattr(ServerSamples, "read", reading)
    assert main([*calc.arguments, *flags, "--ref", str(second)]) == 130
    both = calc(*flags, "--ref", str(second))
    assert starts == [0, 40, 40, 80, 0, 40, 80]  # each image once, except for the stretch that was stopped
    assert lasting(both) == lasting([one[0], other[0], one[1], other[1]])

    calc.out.write_text("".join(line + "\n" for line in calc.out.read_text().splitlines()[:3]))
    assert lasting(calc(*flags, "--ref", str(second))) == lasting(both)
    assert starts[7:] == [0, 40, 80]  # of the missing row alone
    assert not calc.folder.exists()


def test_a_dry_run_prints_what_is_left(calc: Calc, second: Path, capsys: pytest.CaptureFixture[str]) -> None:
    calc("--nfe", "3", *ENDPOINT, "--seeds", "0-29")
    capsys.readouterr()
    calc("--nfe", "3,5", *ENDPOINT, "--seeds", "0-29", "--ref", str(second), "--dry-run")
    of = "evaluations of the network at most"
    assert capsys.readouterr().out.splitlines() == [
        f"digits, heun endpoint, nfe 3, seeds 0-29: rows 1, images 30, {of} 90",
        f"digits, heun endpoint, nfe 5, seeds 0-29: rows 2, images 30, {of} 150",
        f"to measure: rows 3, images 60, {of} 240",
    ]
    calc("--steps", "2", *ENDPOINT, "--seeds", "0-9", "--option", "guidance=2", "--dry-run")
    assert f"to measure: rows 1, images 10, {of} 60\n" in capsys.readouterr().out
    calc("--nfe", "3", *ENDPOINT, "--seeds", "0-299", "--metrics", "ode-error", "--dry-run")
    evaluations = 300 * 3 + 256 * (3 + 119)
    assert f"to measure: rows 1, images 300, {of} {evaluations}\n" in capsys.readouterr().out
    assert len(calc.rows()) == 1


def test_what_is_to_be_done_is_said_first_and_then_the_time_of_all_rows(
    calc: Calc, capsys: pytest.CaptureFixture[str]
) -> None:
    calc.arguments.remove("--quiet")
    calc("--nfe", "3,5", *ENDPOINT, "--seeds", "0-29")
    printed = capsys.readouterr()
    assert printed.out.startswith("to measure: rows 2, images 60, evaluations of the network at most 240\n")
    first, last = [line for line in printed.err.splitlines() if ", all rows 0" in line]
    assert ("nfe 3" in first, "nfe 5" in last) == (True, True)
    assert last.endswith(", all rows 00:00]")


def test_references_carry_the_distances_of_real_images(
    client: LocalClient, dataset: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = ["ref", "--server", client.location, "--dataset", dataset, "--features", "pca-6", "--rows", "--quiet"]
    made += ["--checkpoint", "10", "--out", str(tmp_path / "r.npz")]
    assert main([*made, "--floor", "9,20"]) == 0
    with np.load(tmp_path / "r.npz") as file:
        rows, provenance = file["rows"].astype(float), json.loads(str(file["provenance"]))
    floor, digest = provenance["floor"], bytes.fromhex(provenance["images"])
    order = np.argsort(np.random.default_rng(list(digest)).permutation(64))  # images by rank
    rest = Moments.of(rows[order[32:]])
    expected = {str(size): frechet_distance(Moments.of(rows[order[:size]]), rest) for size in (9, 20)}
    assert floor == pytest.approx(expected, rel=1e-5)
    capsys.readouterr()
    assert main(made) == 0
    assert "real images, N = 32: " in capsys.readouterr().out
    assert main([*made, "--floor", "33"]) == 1
    assert "--floor must be 2 to 32, half of the 64 images, got 33" in capsys.readouterr().err
    assert main([*made, "--floor", "none"]) == 0
    assert "real images" not in capsys.readouterr().out


def test_the_floor_of_images_that_a_user_has_shuffled(tmp_path: Path) -> None:
    """Two classes in order, then shuffled by the commonest line there is: halves have both classes."""
    rng = np.random.default_rng(7)
    dark, light = (rng.integers(low, low + 60, (200, 4, 4, 1), np.uint8) for low in (0, 190))
    images = np.concatenate([dark, light])
    orders = {"sorted": np.arange(400), **{f"seed-{k}": np.random.default_rng(k).permutation(400) for k in (0, 1, 42)}}
    floors = {}
    for name, order in orders.items():
        np.savez(tmp_path / f"{name}.npz", images=images[order])
        words = ["ref", "--images", str(tmp_path / f"{name}.npz"), "--features", "pixels", "--quiet"]
        assert main([*words, "--out", str(tmp_path / "r.npz")]) == 0
        floors[name] = load_reference(tmp_path / "r.npz").provenance["floor"]["200"]
    between = frechet_distance(*(Moments.of(to_float(part).reshape(200, -1).astype(float)) for part in (dark, light)))
    assert between > 20
    assert all(floor < 0.02 * between for floor in floors.values()), (floors, between)


def test_images_written_are_the_images_measured(
    calc: Calc, client: LocalClient, reference: Path, tmp_path: Path
) -> None:
    """A folder of the samples gives the distance of the stream."""
    asked = ["--steps", "2", "--seeds", "990-1009", "--class", "4"]
    streamed = calc(*asked, "--second-point", "endpoint", "--grid", "edm")[0]
    folder = tmp_path / "images"
    folder.mkdir()
    drawn = client.sample("digits", labels=[4] * 20, seed=990, steps=2, second_point="endpoint", grid="edm")
    for number, image in enumerate(drawn.to_pil()):
        image.save(folder / f"{number:06d}.png")
    out = tmp_path / "folder.jsonl"
    measured = ["calc", "--images", str(folder), "--ref", str(reference), "--out", str(out), "--allow-fewer", "--quiet"]
    assert main(measured) == 0
    row = json.loads(out.read_text())
    assert (row["images"], row["nfe"]) == (streamed["images"], None)
    assert row["frechet"] == pytest.approx(streamed["frechet"], rel=1e-12)


def test_the_ode_error_is_the_distance_to_the_solution_of_a_normal_law(client: LocalClient, tmp_path: Path) -> None:
    """Of N(0, Σ) the flow from x at σ ends at Σ^½ (Σ + σ²)^−½ x; one step of Euler's method, Σ (Σ + σ²)⁻¹ x, has x."""
    rng = np.random.default_rng(1)
    vectors, variances = np.linalg.qr(rng.standard_normal((4, 4)))[0], np.array([0.2, 0.05, 0.01, 0.002])
    covariance = (vectors * variances) @ vectors.T
    law: dict[str, Any] = {"means": [[0.0] * 4], "covariances": [covariance.tolist()], "shape": [2, 2, 1]}
    client.make_mixture("normal-law", **law, replace=True, progress=False)
    pictures = rng.multivariate_normal(np.zeros(4), covariance, 50).reshape(50, 2, 2, 1).clip(-1, 1).astype(np.float32)
    client.put_dataset("normal-law", pictures, replace=True, progress=False)
    reference, server = tmp_path / "r.npz", ["--server", client.location, "--quiet"]
    made = ["ref", "--dataset", "normal-law", "--features", "pixels", "--floor", "none", "--out", str(reference)]
    assert main([*made, *server]) == 0
    calc = Calc(client, reference, tmp_path / "rows.jsonl")
    calc.arguments[calc.arguments.index("digits")] = "normal-law"
    flags = [
        "--grid",
        "edm",
        "--schedule",
        '{"edm": {"T": 9}}',
        *ENDPOINT,
        "--seeds",
        "5-64",
        "--checkpoint",
        "25",
        "--batch",
        "7",
    ]
    rows = calc(*flags, "--nfe", "5,9,17", "--metrics", "ode-error")

    def drawn(**options: Any) -> np.ndarray:
        options |= {"n": 60, "seed": 5, "grid": "edm", "schedule": {"edm": {"T": 9}}, "dtype": "float32"}
        return client.sample("normal-law", **options, progress=False).images.reshape(60, 4).astype(np.float64) @ vectors

    exact = drawn(solver="euler", steps=1) * np.sqrt((variances + 9) / variances)
    for row in rows:
        error = drawn(second_point="endpoint", nfe=row["nfe"]) - exact
        assert row["ode_error"] == pytest.approx(100 * np.sqrt((error**2).mean()), rel=0.02), row["nfe"]
    assert rows[0]["ode_error"] > 2 * rows[1]["ode_error"] > 4 * rows[2]["ode_error"] > 1
    plain = calc(*flags, "--nfe", "5")[3]
    assert rows[0].keys() - plain.keys() == {"ode_error"}
    assert (plain["images"], plain["frechet"]) == (rows[0]["images"], rows[0]["frechet"])


def test_the_first_samples_of_a_block_are_probes(client: LocalClient) -> None:
    guided: dict[str, Any] = {"guidance": 2, "guidance_interval": [0, 2]}
    source = ServerSamples(client, "digits", 20, 12, {"steps": 2, **guided}, probes=5)
    errors = source.ode_errors(0, 12)
    assert [len(errors), len(source.ode_errors(5, 12))] == [5, 0]
    np.testing.assert_allclose(source.ode_errors(3, 8), errors[3:], rtol=1e-4)
    asked: dict[str, Any] = {"seed": 23, "n": 1, **guided, "dtype": "float32", "progress": False}
    one, exact = (client.sample("digits", **{**asked, **options}).images for options in ({"steps": 2}, CONVERGED))
    assert errors[3] == pytest.approx(np.square(one - exact).mean(), rel=1e-4)


def test_images_of_a_data_set_have_no_ode_error(calc: Calc, dataset: str, capsys: pytest.CaptureFixture[str]) -> None:
    calc.arguments[calc.arguments.index("--model") : calc.arguments.index("--model") + 2] = ["--dataset", dataset]
    assert main([*calc.arguments, "--metrics", "ode-error"]) == 1
    assert "anisoflight: ode-error needs --model" in capsys.readouterr().err


def test_stretches_of_the_first_release_are_read(tmp_path: Path) -> None:
    whole = Stretch(np.ones((2, 3)), np.zeros((2, 32), np.uint8), np.array([1, 1, 1]), np.array([9]), np.array(0.5))
    save_arrays(tmp_path / "s.npz", {name: part for name, part in vars(whole).items() if name != "ode_errors"})
    read = Stretch.load(tmp_path / "s.npz")
    assert read.features.tolist() == whole.features.tolist()
    assert read.ode_errors.shape == (0,)


def test_a_plan_is_measured_as_its_request_is(calc: Calc, client: LocalClient, reference: Path, tmp_path: Path) -> None:
    """By its name and from its file it is one plan, with one row, and the distances are those of the request."""
    flags = ["--seeds", "0-39", "--checkpoint", "10"]
    plan = client.plan("edm", model="digits", solver="ipndm", nfe=3)
    plan.save(tmp_path / "ipndm.json")
    client.put_plan("fid-plan", plan)
    (asked,) = Calc(client, reference, tmp_path / "asked.jsonl")(
        "--schedule", "edm", "--solver", "ipndm", "--nfe", "3", *flags
    )
    read = ServerSamples.read

    def failing(self: ServerSamples, start: int, stop: int) -> Iterator[Pixels]:
        if start == 20:
            raise KeyboardInterrupt
        return read(self, start, stop)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ServerSamples, "read", failing)
        assert main([*calc.arguments, "--plan", "fid-plan", *flags]) == 130
    resumed = calc("--plan", str(tmp_path / "ipndm.json"), *flags)
    assert calc("--plan", "fid-plan", *flags) == resumed
    (row,) = resumed
    for name in ("frechet", "images", "nfe", "count"):
        assert row[name] == asked[name], name
    assert (row["method"], row["asked"]) == ("digits, plan ipndm", {})
    client.put_plan("fid-plan", client.plan("edm", model="digits", solver="ipndm", nfe=4), replace=True)
    assert [row["nfe"] for row in calc("--plan", "fid-plan", *flags)] == [3, 4]
    client.delete_plan("fid-plan")


def test_a_data_set_is_at_no_distance_from_itself(calc: Calc, dataset: str, client: LocalClient) -> None:
    calc.arguments[calc.arguments.index("--model") : calc.arguments.index("--model") + 2] = ["--dataset", dataset]
    row = calc("--metrics", "precision-recall")[0]
    assert abs(row["frechet"]) < 1e-9
    assert (row["precision"], row["recall"]) == (1, 1)


def test_a_data_set_that_was_replaced_is_measured_again(calc: Calc, client: LocalClient, dataset: str) -> None:
    images = client.dataset(dataset).images
    flags = ["--dataset", "fid-replaced"]
    calc.arguments[calc.arguments.index("--model") : calc.arguments.index("--model") + 2] = flags
    repeated = np.concatenate([images] * 5)  # 320, of which the last alone will differ
    client.put_dataset("fid-replaced", repeated, progress=False)
    assert len(calc()) == 1
    assert len(calc()) == 1
    repeated[-1] = 255 - repeated[-1]
    client.put_dataset("fid-replaced", repeated, replace=True, progress=False)
    old, new = calc()
    assert old["images"] != new["images"]
    assert new["source"]["hash"] == client.datasets().loc["fid-replaced", "hash"] != old["source"]["hash"]
    client.delete_dataset("fid-replaced")


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--nfe", "3", "--steps", "2"], "anisoflight: give one of --nfe, --steps and --plan"),
        (["--nfe", "3", "--plan", "five"], "anisoflight: give one of --nfe, --steps and --plan"),
        (["--plan", "five", "--seeds", "0-9"], 'anisoflight: No plan is called "five"'),
        (["--plan", "five", "--metrics", "ode-error"], "anisoflight: ode-error needs a schedule"),
        (["--nfe", "3", "--seeds", "0-9,5-14"], "anisoflight: --seeds: blocks 0-9 and 5-14 share seeds"),
        (["--nfe", "3", "--seeds", "5"], "anisoflight: --seeds: '5' is no block of seeds such as 0-49999"),
        (["--nfe", "0,3"], "anisoflight: --nfe: '0,3' is no list"),
        (["--nfe", "3", "--model", "nobody"], 'anisoflight: No model is called "nobody"'),
        (["--nfe", "3", "--seeds", "0-9", "--option", "temperature=2"], "anisoflight: temperature is not a field here"),
        (["--nfe", "3", "--features", "pixels"], "anisoflight: --features pixels, but the reference is of pca-6"),
        (["--nfe", "3", "--shard", "0/2", "--dry-run"], "anisoflight: --ray and --shard take one --ref"),
        (
            ["--steps", "3", "--seeds", "0-9", "--metrics", "ode-error", "--option", "S_churn=5"],
            "anisoflight: ode-error needs S_churn = 0",
        ),
    ],
)
def test_what_cannot_be_measured(calc: Calc, capsys: pytest.CaptureFixture[str], flags: list[str], says: str) -> None:
    assert main([*calc.arguments, *flags]) == 1
    assert says in capsys.readouterr().err
    assert calc.rows() == []


def test_other_metrics_need_the_features_of_the_reference(
    calc: Calc, reference: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with np.load(reference) as file:
        entries = {name: file[name] for name in file.files if name != "rows"}
    np.savez(tmp_path / "r.npz", **entries)
    flags = ["--ref", str(tmp_path / "r.npz"), "--nfe", "3", "--metrics", "density-coverage"]
    assert main([*calc.arguments, *flags]) == 1
    assert "density-coverage needs the features of the reference: make it with" in capsys.readouterr().err


def test_guided_samples_are_of_both_networks(calc: Calc, client: LocalClient) -> None:
    options = ["--option", "guidance=2", "--option", "guidance_interval=[0,2]"]
    (row,) = calc("--steps", "3", *ENDPOINT, "--seeds", "0-9", *options)
    guided: dict[str, Any] = {"guidance": 2, "guidance_interval": (0, 2)}
    drawn = client.sample("digits", n=10, steps=3, second_point="endpoint", **guided, progress=False)
    assert row["nfe"] == drawn.nfe[0] > 5
    by = ServerSamples(client, "digits", 0, 10, {"steps": 3, "guidance": 2, "guide": "digits"})
    assert by.identity()["guide"] == by.weights
    assert "guide" not in ServerSamples(client, "digits", 0, 10, {"steps": 3}).identity()
