"""Paths as users give them: ~, folders of any name, links, and disks that are full."""

import os
import resource
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import anisoflight
from anisoflight import BadRequestError, LocalClient, Plan, ServerStartError, serve
from anisoflight.curve import Curve
from anisoflight.data import open_source
from anisoflight.fid.rows import state_of
from anisoflight.files.temporary import whole_file
from anisoflight.serving.commands import address_of
from anisoflight.serving.local import find_binary
from anisoflight.start import Start

GO = ["--device", "go"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home folder, and another to work in, where no folder ~ comes into being."""
    (tmp_path / "work").mkdir()
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "work")
    yield tmp_path / "home"
    assert not list((tmp_path / "work").iterdir())


def test_a_server_in_the_home_folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "server").symlink_to(find_binary())
    (home / "c.yaml").write_text("data: ~/data\n")
    with serve("~/c.yaml", binary="~/server", listen=f"unix:{home}/socket", arguments=GO) as client:
        assert client.models().empty
        assert (home / "socket").is_socket()
        assert (home / "data" / "lock").exists()
    monkeypatch.setenv("ANISOFLIGHT_BIN", "~/server")
    with serve(data="~/other", arguments=GO) as client:
        assert client.models().empty
    assert (home / "other" / "lock").exists()


@pytest.mark.usefixtures("home")
def test_files_in_the_home_folder(client: LocalClient) -> None:
    samples, schedule = client.sample("digits", n=2, steps=2), client.schedule("edm")
    samples.save("~/new/samples.npz")
    with open_source("~/new/samples.npz") as source:
        assert source.count == 2
    schedule.save("~/s.json")
    made = client.put_schedule("paths", "~/s.json", replace=True)
    assert made.knots().equals(schedule.knots())
    schedule.to_csv("~/s.csv")
    assert Curve.load("~/s.csv").sigmas(3).tolist() == schedule.curve().sigmas(3).tolist()
    assert client.put_schedule("paths", "~/s.csv", replace=True).knots().equals(schedule.knots())
    client.delete_schedule("paths")
    plan = client.plan("edm", model="digits", steps=2)
    plan.save("~/p.json")
    assert Plan.load("~/p.json").file == plan.file
    started = client.make_schedule("paths", "start", dataset="blocks", sigma_max=4, progress=False)
    assert started.start is not None
    started.start.save("~/law.safetensors")
    assert Start.load("~/law.safetensors").file == started.start.file
    client.delete_schedule("paths")
    with pytest.raises(BadRequestError, match="~ must be followed by / or the name of a user, got the path '~nobody-"):
        samples.save("~nobody-of-this-name/samples.npz")


@pytest.mark.parametrize(
    "name", ["two words", "ümläut", "per%20cent", "hash#tag", "what?x", 'a"quote', "a=b,c", "long" + 100 * "g"]
)
def test_a_server_is_reached_in_any_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """By its client, by its location and by its data folder."""
    (tmp_path / name).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / name))
    with serve(data=tmp_path / name / "data", arguments=GO) as client:
        assert client.models().empty
        address = address_of(tmp_path / name / "data")
        assert address is not None
        for location in (client.location, address):
            with anisoflight.connect(location) as other:
                assert other.models().empty


def test_sockets_of_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with serve(data="data", listen="unix:50% of a socket?", arguments=GO) as client:
        assert client.models().empty
        for location in (f"unix:{tmp_path}/50% of a socket?", "unix:50% of a socket?"):
            with anisoflight.connect(location) as other:
                assert other.models().empty
    with pytest.raises(ServerStartError, match=r"a socket must have at most 10\d bytes, got \d+"):
        serve(data="data", listen=f"unix:{tmp_path}/{'s' * 108}", arguments=GO)


def kinds_of_files(client: LocalClient) -> dict[str, Callable[[Path], object]]:
    """What writes a file that a user names."""
    samples, schedule = client.sample("digits", n=40, steps=1), client.schedule("edm")
    suffixes = ("png", "npy", "npz", "parquet", "arrow", "feather")
    kinds: dict[str, Callable[[Path], object]] = {f"samples.{suffix}": samples.save for suffix in suffixes}
    plan = client.plan("edm", model="digits", steps=30)
    law = client.make_schedule("paths", "start", dataset="blocks", sigma_max=4, replace=True, progress=False).start
    assert law is not None
    kinds |= {"schedule.json": schedule.save, "plan.json": plan.save, "law.safetensors": law.save}
    return {**kinds, "schedule.csv": schedule.to_csv}


def test_a_full_disk_leaves_the_older_file(client: LocalClient, tmp_path: Path) -> None:
    for name, save in kinds_of_files(client).items():
        path = tmp_path / name
        save(path)
        older = path.read_bytes()
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(older) // 2, limits[1]))
        try:
            with pytest.raises(OSError, match=r"File too large|written"):  # nothing passes without a word
                save(path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert path.read_bytes() == older, name
    assert not list(tmp_path.glob(".*")), "what is not whole"
    client.delete_schedule("paths")


def test_a_file_keeps_its_link_and_its_mode(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "file", tmp_path / "link"
    target.write_bytes(b"older")
    target.chmod(0o640)
    link.symlink_to(target)
    with whole_file(link) as file:
        file.write(b"newer")
    assert link.is_symlink()
    assert (target.read_bytes(), target.stat().st_mode & 0o777) == (b"newer", 0o640)
    with whole_file(os.devnull) as file:
        file.write(b"nothing")
    assert not Path(os.devnull).is_file()


def test_who_waits_for_a_measurement_comes_next(tmp_path: Path) -> None:
    """The one before removes the lock and its folder, which were all that was there."""
    waits, entered = threading.Event(), threading.Event()

    def second() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("anisoflight.wire.progress.Progress.write", lambda *_: waits.set())
            with state_of(tmp_path / "rows.jsonl", {"row": 1}, "waiting"):
                entered.set()

    with state_of(tmp_path / "rows.jsonl", {"row": 1}, "waiting"):
        thread = threading.Thread(target=second)
        thread.start()
        assert waits.wait(30)
        assert not entered.is_set()
    thread.join(30)
    assert entered.is_set()
    assert not list(tmp_path.iterdir())


def test_a_socket_whose_folder_is_as_long_as_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every length around the limit of a socket's path is served, here or in another folder."""
    for length in range(70, 84):
        base = tmp_path / ("x" * max(length - len(str(tmp_path)) - 1, 1))
        base.mkdir(exist_ok=True)
        monkeypatch.setattr(tempfile, "tempdir", str(base))
        with serve(data=tmp_path / "data", arguments=GO) as client:
            assert client.info()["version"]
