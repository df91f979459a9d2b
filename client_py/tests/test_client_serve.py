"""Starting and ending a server, mostly with small programs in its place."""

import contextlib
import io
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pytest
from wire import NETWORK, within

from anisoflight import AnisoflightError, ServerStartError, UnavailableError, connect, serve
from anisoflight.files.temporary import TemporaryFolder
from anisoflight.serving.local import find_binary


def program(folder: Path, body: str) -> Path:
    path = folder / "anisoflight"
    path.write_text(f"#!{sys.executable}\nimport sys, time, signal\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_the_log_explains_a_failed_start(tmp_path: Path) -> None:
    binary = program(tmp_path, "print('the folder is not writable'); sys.exit(3)")
    with pytest.raises(ServerStartError, match=r"exit code 3(.|\n)*the folder is not writable"):
        serve(binary=binary)


def test_a_server_that_never_listens_is_given_up_and_ended(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    body = f"import os; open({str(pid)!r}, 'w').write(str(os.getpid())); print('compiling', flush=True); time.sleep(60)"
    start = time.monotonic()
    with pytest.raises(ServerStartError, match=r"not ready after 1 s(.|\n)*compiling"):
        serve(binary=program(tmp_path, body), timeout=1)
    assert time.monotonic() - start < 10
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_arguments_and_the_end_of_a_server(tmp_path: Path) -> None:
    body = f"""
said = open({str(tmp_path / "said")!r}, "w")
print(*sys.argv[1:], file=said, flush=True)
def stop(*_):
    print("stopped cleanly", file=said, flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
print('level=INFO msg="listening on 127.0.0.1:4242" location=grpc://127.0.0.1:4242 data=x', flush=True)
while True: time.sleep(1)
"""
    with serve("a.yaml", data=tmp_path, listen="127.0.0.1:0", binary=program(tmp_path, body)) as client:
        assert client.location == "grpc://127.0.0.1:4242"
        assert client.server.process.poll() is None
        assert "listening on" in client.server.log
    assert client.server.process.poll() == 0
    arguments, end = (tmp_path / "said").read_text().splitlines()
    assert arguments == f"serve --config a.yaml --data {tmp_path} --listen 127.0.0.1:0 --until-eof"
    assert end == "stopped cleanly"


class Broken(io.StringIO):
    """A file of a widget that is gone."""

    def write(self, _: str) -> int:
        raise RuntimeError("the widget is gone")


LOGS: dict[str, tuple[Callable[[], TextIO], str]] = {  # and what is said of them
    "closed": (io.StringIO, "closed file"),
    "full": (lambda: io.TextIOWrapper(io.FileIO("/dev/full", "w"), write_through=True), "No space left on device"),
    "broken": (Broken, "the widget is gone"),
}


@pytest.mark.parametrize("kind", LOGS)
@pytest.mark.parametrize("lines", [3, 3000])
def test_a_log_that_fails_does_not_stop_the_server(tmp_path: Path, kind: str, lines: int) -> None:
    """Its output, which may be more than a pipe holds, is read on; the last lines say why the file has no more."""
    body = f"""
print('msg="listening on 127.0.0.1:4242" location=grpc://127.0.0.1:4242', flush=True)
for i in range({lines}): print("line", i, 100 * "x", flush=True)
time.sleep(60)
"""
    with LOGS[kind][0]() as log:
        if kind == "closed":
            log.close()
        with serve(binary=program(tmp_path, body), log=log) as client:
            assert within(20, lambda: f"line {lines - 1} x" in client.server.log)
            if lines == 3:
                assert re.search(rf"\(the log is not copied any more: .*{LOGS[kind][1]}", client.server.log)


@pytest.mark.parametrize("level", ["warn", "error"])
def test_a_log_without_its_first_lines_tells_when_the_server_is_ready(tmp_path: Path, level: str) -> None:
    with serve(data=tmp_path, environment={"ANISOFLIGHT_LOG_LEVEL": level}, timeout=30) as client:
        assert client.models().empty
        assert client.server.log.count("\n") == 1


def test_the_address_of_a_configuration(tmp_path: Path) -> None:
    """`listen` of the file holds, unless the argument is given; without both it is a socket of the server's own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    with_address, without = tmp_path / "a.yaml", tmp_path / "b.yaml"
    with_address.write_text(f"listen: {address}\ndevice: go\n")
    without.write_text("device: go\n")
    cases: list[tuple[Path, dict[str, Any], str]] = [
        (with_address, {}, f"grpc://{address}"),
        (with_address, {"listen": f"unix:{tmp_path}/given"}, f"grpc+unix://{tmp_path}/given"),
        (without, {}, "grpc+unix://"),
    ]
    for config, options, location in cases:
        with serve(config, data=tmp_path, **options) as client:
            assert client.location.startswith(location)
            assert client.info()["device"]["name"] == "go"


def test_a_server_waits_for_one_that_is_ending(tmp_path: Path) -> None:
    """Such as that of a notebook's kernel that was killed during a request."""
    arguments = ["--device", "go", "--grace", "3"]
    with serve(data=tmp_path, arguments=arguments) as first:
        first.put_dataset("small", np.zeros((8, 8, 8, 1), np.uint8), progress=False)
        first.make_mixture("m", "small", progress=False)
        started = threading.Event()

        def endless() -> None:
            with contextlib.suppress(AnisoflightError):
                for _ in first.stream("Sample", {"model": "m", "n": 4096, "steps": 50_000}):
                    started.set()

        thread = threading.Thread(target=endless)
        thread.start()
        assert started.wait(20)
        first.server.process.terminate()
        with serve(data=tmp_path, arguments=arguments) as second:
            assert "which is ending" in second.server.log
            assert second.models().index.tolist() == ["m"]
        thread.join()


def test_a_server_that_does_not_end_is_named(tmp_path: Path) -> None:
    """Its address would be of no use."""
    said = 'the data folder "d" is in use by process 7 (anisoflight serve, grpc://x:1), which is ending; try again'
    with pytest.raises(ServerStartError, match="which is ending; try again") as raised:
        serve(binary=program(tmp_path, f"print({said!r}); sys.exit(1)"))
    assert "connect(" not in str(raised.value)


def test_a_folder_in_use_is_refused_and_its_holder_named(tmp_path: Path) -> None:
    with serve(data=tmp_path, arguments=["--device", "go"]) as client:
        holder = f"process {client.server.process.pid} (anisoflight serve, {client.location})"
        with pytest.raises(ServerStartError, match="in use by process") as raised:
            serve(data=tmp_path, arguments=["--device", "go"])
        assert f'the data folder "{tmp_path}" is in use by {holder}; stop it' in raised.value.message
        advice = re.search(r"connect\('(.*)'\), or close the client", str(raised.value))
        assert advice
        with connect(advice[1]) as other:
            assert other.models().empty
        assert client.info()["active_requests"] == 0
    with serve(data=tmp_path, arguments=["--device", "go"]) as client:
        assert client.models().empty


def test_a_server_on_this_machine_is_reached_past_a_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of a call that goes through the proxy names its variable."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    with serve(data=tmp_path, listen="127.0.0.1:0", arguments=["--device", "go"]) as client:
        port = client.location.rpartition(":")[2]
        for host in ("127.0.0.1", "localhost"):
            with connect(f"{host}:{port}") as other:
                assert other.models().empty
        with connect("192.0.2.1:8815", retry=0) as away, pytest.raises(UnavailableError) as raised:
            away.info()
    assert "http_proxy is set: if the proxy does not lead to the server, name its host in no_proxy" in str(raised.value)
    words = [find_binary(), "model", "list", "--server", "192.0.2.1:8815"]
    environment = {**os.environ, "HTTPS_PROXY": "http://127.0.0.1:9"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert "HTTPS_PROXY is set: if the proxy does not lead to the server, name its host in NO_PROXY" in done.stderr


def test_the_binary_is_looked_for_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "on-path").mkdir()
    on_path, given = program(tmp_path / "on-path", ""), program(tmp_path, "")
    monkeypatch.delenv("ANISOFLIGHT_BIN", raising=False)
    monkeypatch.setenv("PATH", str(on_path.parent))
    assert find_binary() == str(on_path)
    monkeypatch.setenv("ANISOFLIGHT_BIN", str(given))
    assert find_binary() == str(given)
    assert find_binary(on_path) == str(on_path)
    monkeypatch.setenv("ANISOFLIGHT_BIN", str(tmp_path / "missing"))
    with pytest.raises(ServerStartError, match="make build"):
        find_binary()


def test_temporary_folders_of_killed_processes_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the next start, and those of the living are left alone, as are those of others."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    script = """
import sys, time
from anisoflight.files.temporary import TemporaryFolder
mine = TemporaryFolder()
(mine.path / "data").mkdir()
print(mine.path, flush=True)
time.sleep(600)
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    killed, alive = (
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(2)
    )
    others = tmp_path / "anisoflight-others"
    others.mkdir()
    data = tmp_path / "data"
    (data / "models").mkdir(parents=True)
    (data / "lock").touch()
    link = tmp_path / "anisoflight-link"
    link.symlink_to(data)
    try:
        gone, there = (Path(process.stdout.readline().strip()) for process in (killed, alive) if process.stdout)
        killed.kill()
        killed.wait()
        with TemporaryFolder():
            assert gone.exists(), "it is fresh"
        for path in (gone, there, others):
            os.utime(path, (0, 0))
        with TemporaryFolder() as mine:
            assert mine.path.parent == tmp_path
            assert not gone.exists()
            assert there.exists()
            assert others.exists()
            assert (data / "models").exists()
        assert not mine.path.exists()
    finally:
        for process in (killed, alive):
            process.kill()
            process.communicate()


def ended(pid: int) -> bool:
    """Whether a process of nobody's has ended, and been taken note of or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_a_server_killed_under_a_run_keeps_it(tmp_path: Path) -> None:
    """The error says so, and how to go on."""
    with serve(data=tmp_path, arguments=["--device", "go"]) as client:
        client.put_dataset("small", np.zeros((8, 8, 8, 1), np.uint8), np.zeros(8, np.int32))
        run = client.create_run("r", "pretrain", dataset="small", network=NETWORK, batch=8, kimg=1000)
        run.step(2, progress=False)

        def kill() -> None:
            with connect(client.location) as other:
                while other.run("r").info["step"] < 4:
                    time.sleep(0.01)
            client.server.process.kill()

        threading.Thread(target=kill, daemon=True).start()
        with pytest.raises(UnavailableError, match=r"the run r is kept .* client\.run\('r'\)\.step\(\) or \.start\(\)"):
            run.step(10**6, progress=False)
    with serve(data=tmp_path, arguments=["--device", "go"]) as client:
        assert client.run("r").step(progress=False)["step"].tolist()[0] >= 3


def test_the_server_ends_when_python_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With kill -9 too, with a child of it alive, and with the run stored that was at work."""
    script = f"""
import os, sys, time
import numpy as np
import anisoflight
client = anisoflight.serve(data={str(tmp_path)!r}, arguments=["--device", "go"])
client.put_dataset("few", np.zeros((8, 8, 8, 1), np.uint8), np.zeros(8, np.int32))
run = client.create_run("r", "pretrain", dataset="few", network={NETWORK!r}, batch=8, kimg=1000)
run.start(1000)
while client.run("r").info["step"] < 3:
    time.sleep(0.05)
child = os.fork()
if child == 0:
    time.sleep(60)
    os._exit(0)
print(client.server.process.pid, child, flush=True)
time.sleep(60)
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    python = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=environment)
    assert python.stdout
    server, child = map(int, python.stdout.readline().split())
    try:
        python.kill()
        python.wait()
        end = time.monotonic() + 30
        while not ended(server):
            assert time.monotonic() < end, "the server is still there"
            time.sleep(0.05)
        assert not ended(child)
    finally:
        os.kill(child, signal.SIGKILL)
    assert within(10, lambda: ended(child))  # it held the folder's lock
    (left,) = tmp_path.glob("anisoflight-*")  # where its socket was
    os.utime(left, (0, 0))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with serve(data=tmp_path, arguments=["--device", "go"]) as client:
        assert not left.exists()
        run = client.run("r").info
        assert run["state"] == "paused"
        assert run["step"] >= 3
