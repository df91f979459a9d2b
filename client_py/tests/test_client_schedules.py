"""Schedules as files, and as the noise levels of other programs' samplers."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import anisoflight
from anisoflight import Client
from anisoflight.plans.schedule import Schedule
from anisoflight.plans.storage import basis_bytes, basis_of

KNOTS = pd.DataFrame({"subspace": [0, 0, 0, 1, 1], "t": [0, 3, 10, 0, 10], "g": [1e-9, 0.1, 100, 1e-9, 100]})


@pytest.fixture
def pair(client: Client) -> Iterator[Schedule]:
    yield client.put_schedule("pair-of-files", KNOTS, basis="dct", k=16, replace=True)
    client.delete_schedule("pair-of-files")


def test_csv_comes_back_as_it_went(client: Client, pair: Schedule, tmp_path: Path) -> None:
    path = tmp_path / "pair.csv"
    assert pair.to_csv(path) == path.read_text()
    pd.testing.assert_frame_equal(pair.knots()[["subspace", "t", "g"]], KNOTS, check_dtype=False, check_exact=True)
    again = client.put_schedule("again", path, basis="dct", k=16)
    assert again.to_csv() == pair.to_csv()
    assert again.provenance is not None
    assert again.provenance["kind"] == "upload"
    client.delete_schedule("again")


def test_json_comes_back_with_its_provenance(client: Client, tmp_path: Path) -> None:
    options = {"model": "digits", "dataset": "blocks", "T": 400, "points": 8, "samples": 4, "seed": 3, "replace": True}
    made = client.make_schedule("geo-file", **options)
    provenance = made.provenance
    assert provenance is not None
    assert (provenance["kind"], provenance["seed"], provenance["dataset"]["name"]) == ("geodesic", 3, "blocks")
    assert provenance["model"] == {"name": "digits", "hash": client.describe_model("digits")["hash"]}
    assert provenance["energy_after"]["value"] < provenance["energy_before"]["value"]
    assert client.schedules().loc["geo-file", "provenance"] == provenance
    path = tmp_path / "geo.json"
    made.save(path)
    assert not (tmp_path / "basis.safetensors").exists()
    client.delete_schedule("geo-file")
    assert client.put_schedule("geo-file", path).file == json.loads(path.read_text())
    assert client.sample("digits", n=1, steps=2, schedule="geo-file").nfe.tolist() == [4]
    client.delete_schedule("geo-file")


def test_the_end_of_a_geodesic_follows_the_number_of_evaluations(client: Client) -> None:
    options = {"model": "digits", "dataset": "blocks", "points": 8, "samples": 1, "replace": True}
    ends = [client.make_schedule("geo-nfe", **options, nfe=nfe).info["T"] for nfe in (5, 10, 35, 9)]
    assert ends[0] <= ends[1] == ends[3] < ends[2] <= 6400
    chosen = client.schedule("geo-nfe").knots()
    pd.testing.assert_frame_equal(client.make_schedule("geo-nfe", **options, T=ends[3]).knots(), chosen)
    assert client.make_schedule("geo-nfe", **options, nfe=9, second_point="midpoint").info["T"] > ends[3]
    with pytest.raises(anisoflight.BadRequestError, match="T and nfe must not both be given"):
        client.make_schedule("geo-nfe", **options, nfe=9, T=400)
    client.delete_schedule("geo-nfe")


def test_a_basis_travels_beside_the_file(client: Client, tmp_path: Path) -> None:
    vectors = np.linalg.qr(np.random.default_rng(0).standard_normal((64, 6)))[0].T.reshape(6, 8, 8)
    client.put_basis("six", {0: vectors[:3], 4: vectors[3:]})
    schedule = client.put_schedule("on-six", KNOTS, basis="six")
    path = tmp_path / "schedule.json"
    schedule.save(path)
    schedule.save(path)  # the same basis may be there
    client.delete_schedule("on-six")
    client.delete_basis("six")
    back = client.put_schedule("back", path)
    assert back.file["family"] == {"per_class": False, "basis": "back", "k": 3}
    stored = client.basis("back")
    assert sorted(stored) == [0, 4]
    np.testing.assert_array_equal(stored[4], vectors[3:])
    np.testing.assert_array_equal(client.basis(schedule="back")[0], vectors[:3])
    (tmp_path / "basis.safetensors").write_bytes(basis_bytes({-1: vectors}))
    with pytest.raises(FileExistsError, match="another basis"):
        back.save(path)
    client.delete_schedule("back")
    client.delete_basis("back")


def test_basis_file_is_safetensors() -> None:
    rows = {2: np.full((1, 2, 2), 0.5), 1: np.eye(4)[2:3].reshape(1, 2, 2)}
    data = basis_bytes(rows)
    size = int.from_bytes(data[:8], "little")
    assert size % 8 == 0
    head = json.loads(data[8 : 8 + size])
    assert head["vectors.2"] == {"dtype": "F64", "shape": [1, 2, 2], "data_offsets": [32, 64]}
    assert len(data) == 8 + size + 64
    np.testing.assert_array_equal(basis_of(data)[2], rows[2])
    assert data == basis_bytes({1: rows[1], 2: rows[2]})  # whatever the order
    hostile = [data[: size // 2], data[:-1], data + b"0", b"\xff" * 8 + data[8:]]
    hostile += [data.replace(b"F64", kind) for kind in (b"F32", b"I64", b"F16")]
    hostile += [data.replace(b"F64", b"BF16").replace(b"]}}", b"]}", 1), data.replace(b"[32,64]", b"[16,64]")]
    hostile += [data.replace(b"vectors.2", name) for name in (b"weights.2", b"vectors.x", b"vectors.,")]
    for bad in (b"", *hostile):
        with pytest.raises(ValueError, match="not a"):
            basis_of(bad)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("t,g\n0,1\n5,2\n6,1\n", "Row 2"),
        ("t,g\n0,1\nfive,2\n", "t of the schedule: Unable to parse string .five. at position 1"),
        ("label,t,g\n0.5,0,1\n", "label of the schedule: Float value 0.5.* was truncated"),
        ("t,h\n0,1\n", "must have the columns t and g, got t, h; add g"),
        ("t,g\n0,1\n5,\n", "Row 1 of the schedule: g must be finite"),
    ],
)
def test_bad_tables_are_refused_by_row_and_field(client: Client, tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(anisoflight.BadRequestError, match=says) as caught:
        client.put_schedule("bad", path)
    assert caught.value.code == "BAD_SCHEDULE"
    assert "bad" not in client.schedules().index


def test_bad_files_are_refused(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text('{"format":"anisoflight-schedule","version":1,"colour":1}')
    with pytest.raises(anisoflight.BadRequestError, match="colour") as caught:
        client.put_schedule("bad", path)
    assert caught.value.code == "BAD_SCHEDULE"
    with pytest.raises(ValueError, match="knows its k"):
        client.put_schedule("bad", path, k=16)


def test_sigmas_for_other_programs(client: Client, pair: Schedule) -> None:
    g = np.sqrt(pair.evaluate(points=6)["g"].to_numpy().reshape(2, 6))[:, ::-1]
    np.testing.assert_allclose(pair.sigmas(5), np.sqrt(g[0] * g[1]), rtol=1e-12)
    assert pair.sigmas(5, zero=True)[-1] == 0
    np.testing.assert_array_equal(pair.sigmas(5, zero=True)[:-1], pair.sigmas(5)[:-1])
    client.put_schedule("classes", {"label": [0, 0, 1, 1], "t": [0, 4, 0, 4], "g": [1, 9, 2, 9]}, replace=True)
    with pytest.raises(ValueError, match=r"label must be one of \[0, 1\]: this schedule differs by class"):
        client.schedule("classes").sigmas(3)
    assert client.schedule("classes").sigmas(1, label=1).tolist() == pytest.approx([3, np.sqrt(2)])
    client.delete_schedule("classes")


def edm_heun(denoiser: Any, latents: np.ndarray, sigmas: np.ndarray) -> np.ndarray:
    """EDM's deterministic sampler (Karras et al. 2022, algorithm 1) over noise levels that end with 0."""
    x = latents * sigmas[0]
    for now, after in itertools.pairwise(sigmas):
        slope = (x - denoiser(x, now)) / now
        euler = x + (after - now) * slope
        x = euler if after == 0 else x + (after - now) * 0.5 * (slope + (euler - denoiser(euler, after)) / after)
    return x


def test_edms_sampler_on_our_sigmas_is_our_sampler(client: Client) -> None:
    """Someone else's sampler, given a schedule's noise levels and the model's denoiser, draws the same images."""
    schedule = client.make_schedule("outside", "cosine", T=400, replace=True)
    labels, latents = [3, 7], np.random.default_rng(0).standard_normal((2, 8, 8, 1)).astype(np.float32)

    def denoiser(x: np.ndarray, sigma: float) -> np.ndarray:
        return client.denoise("digits", x, sigma=sigma, labels=labels, progress=False).denoised

    theirs = edm_heun(denoiser, latents, schedule.sigmas(6, zero=True))
    ours = client.sample(
        "digits",
        latents=latents,
        labels=labels,
        steps=6,
        schedule="outside",
        grid="schedule",
        solver="heun",
        second_point="endpoint",
        dtype="float32",
        progress=False,
    )
    assert ours.nfe.tolist() == [11, 11]
    np.testing.assert_allclose(theirs, ours.images, rtol=0, atol=1e-4)
    client.delete_schedule("outside")


def test_tables_of_arrow_are_schedules(client: Client) -> None:
    """Also one record batch; and labels of a basis that are no classes are refused."""
    batch = pa.record_batch({"t": [0.0, 9.0], "g": [1e-6, 4.0]})
    assert client.put_schedule("of-arrow", batch, replace=True).knots()["g"].tolist() == [1e-6, 4.0]
    client.delete_schedule("of-arrow")
    rows = np.eye(64)[:2].reshape(2, 8, 8)
    for vectors, labels in ((rows, [0.5, 1]), ({"a": rows}, None)):
        with pytest.raises(ValueError, match="labels must be integers"):
            client.put_basis("of-nothing", vectors, labels)
