"""Rows measured by actors of Ray, some of which are lost on the way: the bytes of one run."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from small import known, measured

import anisoflight
from anisoflight.fid import fleet
from anisoflight.fid.__main__ import main

ray = pytest.importorskip("ray")


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="warning")
    yield
    ray.shutdown()


def with_ray(folder: Path, out: Path, *more: str) -> int:
    flags = ["--ray", "2", "--ray-cpus", "0.5", "--data", str(folder / "data")]
    return main([*known(folder, out), *flags, *more])


def test_two_actors_measure_what_one_server_does(folder: Path, one: bytes, tmp_path: Path) -> None:
    assert with_ray(folder, tmp_path / "rows.jsonl") == 0
    assert measured(tmp_path / "rows.jsonl") == one
    assert with_ray(folder, tmp_path / "rows.jsonl") == 0  # and once
    assert measured(tmp_path / "rows.jsonl") == one


@pytest.mark.parametrize("victim", ["actor", "only actor", "server"])
def test_what_is_lost_is_replaced(
    folder: Path, one: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, victim: str
) -> None:
    killed: list[int] = []

    class Watched(fleet.Fleet):
        def expect(self, *arguments: Any) -> None:
            super().expect(*arguments)
            worker, server = ray.get(self.workers[0].processes.remote())

            def kill() -> None:
                while not rows_of_state(tmp_path):
                    time.sleep(0.01)
                killed.append(server if victim == "server" else worker)
                os.kill(killed[0], signal.SIGKILL)

            threading.Thread(target=kill, daemon=True).start()
            self.before = (worker, server)

        def __exit__(self, *error: object) -> None:
            after = ray.get(self.workers[0].processes.remote(), timeout=120)
            assert after[0] != self.before[0]
            assert after[1] != self.before[1]
            super().__exit__(*error)
            end = time.monotonic() + 60
            while any(map(alive, self.before)) and time.monotonic() < end:  # one ends with the other
                time.sleep(0.1)
            assert not any(map(alive, self.before))

    monkeypatch.setattr(fleet, "Fleet", Watched)
    assert with_ray(folder, tmp_path / "rows.jsonl", *(["--ray", "1"] if victim == "only actor" else [])) == 0
    assert killed
    assert measured(tmp_path / "rows.jsonl") == one


def rows_of_state(folder: Path) -> list[Path]:
    """What a pass has stored: it is under way."""
    return list(folder.glob("rows.jsonl.state/*/*.npz"))


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]


def test_a_run_goes_on_where_another_stopped(folder: Path, one: bytes, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    with anisoflight.serve(data=folder / "data") as client:
        assert main([*known(folder, out), "--server", client.location, "--steps", "1", "--seeds", "0-79"]) == 0
    assert with_ray(folder, out) == 0
    assert measured(out) == one


def test_mistakes_are_told_as_they_are_elsewhere(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "rows.jsonl"
    assert with_ray(folder, out, "--model", "none") == 1
    assert "there is no model 'none' in" in capsys.readouterr().err
    assert with_ray(folder, out, "--shard", "0/2") == 1
    assert "--ray needs --model, and excludes --shard" in capsys.readouterr().err
    assert with_ray(folder, out, "--option", "sheep=1") == 1
    assert "sheep" in capsys.readouterr().err
    assert not out.exists()
