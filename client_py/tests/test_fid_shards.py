"""Shards of a measurement, merged: the rows of one run to the last bit, and nothing but a whole set of them."""

import json
import multiprocessing
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from anisoflight import LocalClient
from anisoflight.fid import table
from anisoflight.fid.__main__ import main
from anisoflight.fid.cells import Cells, rows_of
from anisoflight.fid.sources import ServerSamples
from anisoflight.images import Pixels

SAMPLED = ["--steps", "1,2", "--seeds", "3-62,100-149", "--checkpoint", "20", "--metrics", "precision-recall,ode-error"]


@pytest.fixture(scope="module")
def calc(client: LocalClient, dataset: str, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that measures, but for its --out."""
    reference = tmp_path_factory.mktemp("reference") / "blocks.npz"
    made = ["ref", "--server", client.location, "--dataset", dataset, "--features", "pca-6", "--rows", "--quiet"]
    assert main([*made, "--out", str(reference)]) == 0
    known = ["--server", client.location, "--model", "digits", "--ref", str(reference), "--allow-fewer", "--quiet"]
    return ["calc", *known, *SAMPLED]


@pytest.fixture(scope="module")
def whole(calc: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rows of one run."""
    out = tmp_path_factory.mktemp("whole") / "rows.jsonl"
    assert main([*calc, "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="module")
def shards(calc: list[str], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three shards of the same."""
    folder = tmp_path_factory.mktemp("shards")
    files = [folder / f"{i}.npz" for i in range(3)]
    for i, file in enumerate(files):
        assert main([*calc, "--shard", f"{i}/3", "--out", str(file)]) == 0
    return files


def measured(path: Path) -> bytes:
    """The rows but for what time they took, and when."""
    rows = [{k: v for k, v in row.items() if k not in ("seconds", "finished")} for row in rows_of(path)]
    return json.dumps(rows).encode()


def merge(*arguments: str | Path) -> int:
    return main(["merge", *map(str, arguments), "--quiet"])


def test_merged_rows_are_those_of_one_run(
    whole: Path, shards: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "rows.jsonl"
    assert merge(shards[2], shards[0], shards[1], "--out", out) == 0
    assert measured(out) == measured(whole)
    assert len(rows_of(out)) == 4
    tables = []
    for path in (out, whole):
        capsys.readouterr()
        assert table.main([str(path)]) == 0
        tables.append(capsys.readouterr().out)
    assert tables[0] == tables[1]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["rows.jsonl"]


def test_more_shards_than_stretches(calc: list[str], tmp_path: Path) -> None:
    few = ["--steps", "1", "--seeds", "0-29", "--metrics", "fid"]
    files = [tmp_path / f"{i}.npz" for i in range(4)]
    for i, file in enumerate(files):
        assert main([*calc, *few, "--shard", f"{i}/4", "--out", str(file)]) == 0
    assert merge(*files, "--out", tmp_path / "merged.jsonl") == 0
    assert main([*calc, *few, "--out", str(tmp_path / "one.jsonl")]) == 0
    assert measured(tmp_path / "merged.jsonl") == measured(tmp_path / "one.jsonl")


def test_sets_that_are_refused(
    calc: list[str], shards: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(message: str, *arguments: str | Path) -> None:
        assert merge(*arguments, "--out", tmp_path / "rows.jsonl") == 1
        assert message in capsys.readouterr().err
        assert not (tmp_path / "rows.jsonl").exists()

    refused("1 of 3 shards missing: 1/3", shards[0], shards[2])
    refused("shard 1/3 is given twice", shards[0], shards[1], shards[1], shards[2])
    refused("there is no shard", shards[0], shards[1], tmp_path / "none.npz")
    for i, (flags, message) in enumerate(
        [
            (["--solver", "euler"], "of another measurement than"),
            (["--method", "digits", "--seeds", "3-62,100-148"], "with other rows"),
            (["--checkpoint", "10"], "with other stretch"),
            (["--shard", "1/2"], "is one of 2 shards"),
        ]
    ):
        assert main([*calc, "--shard", "1/3", *flags, "--out", str(tmp_path / f"{i}.npz")]) == 0
        refused(message, shards[0], tmp_path / f"{i}.npz", shards[2])
    np.savez(tmp_path / "other.npz", mu=np.zeros(6), sigma=np.eye(6))
    refused("is not the reference that the shards were made for", *shards, "--ref", tmp_path / "other.npz")


def test_a_damaged_shard_is_refused(shards: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = shards[1].read_bytes()
    place = text.index(b"NUMPY") + 200  # within the first features
    for damaged in (text[:place] + bytes([text[place] ^ 1]) + text[place + 1 :], text[:-100]):
        (tmp_path / "1.npz").write_bytes(damaged)
        assert merge(shards[0], tmp_path / "1.npz", shards[2], "--out", tmp_path / "rows.jsonl") == 1
        assert f"{tmp_path / '1.npz'}: not a whole shard" in capsys.readouterr().err


def test_a_shard_goes_on_where_it_was_and_is_written_once(
    calc: list[str], shards: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, reads = tmp_path / "0.npz", []
    read = ServerSamples.read

    def failing(self: ServerSamples, start: int, stop: int) -> Iterator[Pixels]:
        reads.append(start)
        if len(reads) == 3:
            raise KeyboardInterrupt
        yield from read(self, start, stop)

    monkeypatch.setattr(ServerSamples, "read", failing)
    assert main([*calc, "--shard", "0/3", "--out", str(out)]) == 130
    assert not out.exists()
    assert main([*calc, "--shard", "0/3", "--out", str(out)]) == 0
    assert reads[2] == reads[3]
    assert len(reads) == 1 + 4  # stretches of 20 of 2 × (60 + 50) images, a third of them
    assert sorted(p.name for p in tmp_path.iterdir()) == ["0.npz"]
    assert main([*calc, "--shard", "0/3", "--out", str(out)]) == 0
    assert main([*calc, "--shard", "1/3", "--out", str(out)]) == 1
    assert len(reads) == 5
    assert merge(out, *shards[1:], "--out", tmp_path / "rows.jsonl") == 0


@pytest.mark.parametrize("share", ["3/3", "1", "-1/3", "a/b"])
def test_shards_that_cannot_be(calc: list[str], tmp_path: Path, share: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*calc, f"--shard={share}", "--out", str(tmp_path / "s.npz")]) == 1
    assert "is no I/N with I = 0 … N−1" in capsys.readouterr().err


def test_cells_are_measured_once(tmp_path: Path) -> None:
    path, measured = tmp_path / "folder" / "cells.jsonl", []

    def measure() -> dict[str, float]:
        measured.append(1)
        return {"value": 2.5}

    cells = Cells(path)
    for _ in range(2):  # the second time as another run reads the file
        cells = Cells(path)
        for _ in range(2):
            assert cells.measured({"nfe": 5, "sampler": "s"}, measure) == {"value": 2.5}
    assert len(measured) == 1
    assert Cells(path).measured({"nfe": 7, "sampler": "s"}, lambda: {"value": 1.0}) == {"value": 1.0}
    kept = Cells(path, kept=True)
    assert kept.measured({"nfe": 7, "sampler": "s"}, measure) == {"value": 1.0}
    assert kept.measured({"nfe": 9, "sampler": "s"}, measure) == {}
    assert len(measured) == 1


def add(path: Path, who: int) -> None:
    for value in range(25):
        Cells(path).measured({"value": value}, lambda: {"who": who, "text": "x" * 5000})


def test_rows_of_programs_that_write_at_once_are_whole_and_single(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    programs = [multiprocessing.get_context("spawn").Process(target=add, args=(path, who)) for who in range(3)]
    for program in programs:
        program.start()
    for program in programs:
        program.join(120)
        assert program.exitcode == 0
    assert sorted(json.loads(row["key"])["value"] for row in rows_of(path)) == list(range(25))


def test_two_programs_measure_a_row_once(calc: list[str], whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    programs = [
        multiprocessing.get_context("spawn").Process(target=main, args=([*calc, "--out", str(out)],)) for _ in range(2)
    ]
    for program in programs:
        program.start()
    for program in programs:
        program.join(300)
    assert measured(out) == measured(whole)
    shutil.rmtree(tmp_path)
