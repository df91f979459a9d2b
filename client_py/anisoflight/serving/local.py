"""A local server: start the anisoflight program, connect, and end it."""

from __future__ import annotations

import collections
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import IO, Any, TextIO

from ..errors import BadRequestError, ServerStartError
from ..files import path_of
from ..files.temporary import TemporaryFolder
from ..wire.calls import seconds_of
from .client import Client

_LISTENING = re.compile(r"listening on .*?location[=\":]+([^\s\"]+)")
_IN_USE = re.compile(r"is in use by process .*?(grpc[^\s)]+)\)")
_MAX_FOLDER = 103 - len("/anisoflight-12345678/socket")  # bytes; a socket's path may have 103
_LOG_LINES = 200  # kept for error messages
_GRACE = 60.0  # seconds that a server may take to finish requests and store its runs


class LocalClient(Client):
    """A client of a server that `serve` started; closing it ends the server."""

    def __init__(self, process: LocalServer, token: str | None) -> None:
        super().__init__(process.location, token=token)
        self.server = process

    def close(self) -> None:
        super().close()
        self.server.close()


class LocalServer:
    """A running server process and its log."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str] | None, log: TextIO | None, timeout: float
    ) -> None:
        self.lines: collections.deque[str] = collections.deque(maxlen=_LOG_LINES)
        self._folder: TemporaryFolder | None = None
        arguments = [*command, "--until-eof"]
        if not any(word.partition("=")[0] == "--listen" for word in arguments):
            self._folder = _socket_folder() if os.name == "posix" else None
            option = "--default-listen" if "--config" in command else "--listen"  # the file may have an address
            arguments += [option, f"unix:{self._folder.path}/socket" if self._folder else "127.0.0.1:0"]
        try:
            # In a new session, so that Ctrl-C in the terminal reaches only Python, which then ends the server. If
            # Python is killed, the pipe to the server's standard input closes, and the server ends.
            self.process = subprocess.Popen(
                arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                env={**os.environ, **(environment or {})},
                start_new_session=True,
                pass_fds=(self._folder.lock.fileno(),) if self._folder else (),
            )
        except OSError as error:
            if self._folder:
                self._folder.close()
            raise ServerStartError(f"cannot run {arguments[0]}: {error}") from error
        self.close = weakref.finalize(self, _end, self.process, self._folder)
        _servers.add(self)
        found: queue.Queue[str | None] = queue.Queue()
        args = (self.process.stdout, self.lines, log, found)
        threading.Thread(target=_copy_log, args=args, name="anisoflight-log", daemon=True).start()
        try:
            address = found.get(timeout=timeout)
            if address is None:
                code = self.process.wait(_GRACE)
                message = f"the server ended with exit code {code}"
                if "which is ending" not in self.log and (holder := _IN_USE.search(self.log)):
                    message += f"; the folder has a server: connect({holder[1]!r}), or close the client that started it"
                raise ServerStartError(f"{message}. Its log:\n{self.log}")
        except BaseException as error:
            self.close()
            if isinstance(error, queue.Empty):
                raise ServerStartError(f"the server was not ready after {timeout:g} s. Its log:\n{self.log}") from None
            raise
        self.location = address

    @property
    def log(self) -> str:
        """The last lines of the server's log."""
        return "".join(self.lines)


def serve(
    config: str | os.PathLike[str] | None = None,
    *,
    data: str | os.PathLike[str] | None = None,
    listen: str | None = None,
    binary: str | os.PathLike[str] | None = None,
    token: str | None = None,
    arguments: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    log: TextIO | None = None,
    timeout: float = 60.0,
) -> LocalClient:
    """Start a local server and connect to it. Leaving the context, `close` or the end of Python ends the server.

    config is a configuration file, data the folder of models, schedules, bases, data sets and runs (both as in
    ``anisoflight serve``). listen is ``HOST:PORT`` (port 0: any free one) or ``unix:PATH``, by default that of config,
    else a private Unix socket. The server's log goes to `log`, such as ``sys.stderr``. If the server does not start
    within `timeout` seconds, the error shows the log.

    The program is searched in this order: `binary`, ``$ANISOFLIGHT_BIN``, the package anisoflight-server, the PATH, and
    ``bin/`` of the repository of this package.

    >>> with serve(data=folder) as client:
    ...     client.info()["device"]["name"]
    'xla:cpu'
    """
    timeout = seconds_of("timeout", timeout)
    for name, value in {"config": config, "data": data, "listen": listen, "binary": binary}.items():
        if not isinstance(value, str | os.PathLike | None):
            raise BadRequestError(f"{name} must be text or a pathlib.Path, got {value!r:.100}")
    command = [find_binary(binary), "serve"]
    paths = {"--config": config and path_of(config), "--data": data and path_of(data), "--listen": listen}
    for option, value in paths.items():
        if value is not None:
            command += [option, os.fspath(value)]
    return LocalClient(LocalServer([*command, *arguments], environment, log, timeout), token)


def find_binary(binary: str | os.PathLike[str] | None = None) -> str:
    """The path of the server's program, in the order of `serve`."""
    if given := binary or os.environ.get("ANISOFLIGHT_BIN"):
        path = os.fspath(path_of(given))
        if not os.access(path, os.X_OK):
            raise ServerStartError(f"no program at {path}; build one with make build")
        return path
    name = "anisoflight.exe" if os.name == "nt" else "anisoflight"
    built = Path(__file__).resolve().parents[3] / "bin" / name
    found = _installed(name) or shutil.which(name) or (str(built) if os.access(built, os.X_OK) else None)
    if found is None:
        raise ServerStartError(
            f"no anisoflight program in $ANISOFLIGHT_BIN, this environment, the PATH or {built}. On Linux: pip install "
            '"anisoflight[server]", or make build in the repository; elsewhere start one on another machine, and give '
            "client=anisoflight.connect(its location) where a client is asked for"
        )
    return found


def model_report(folder: str | os.PathLike[str], binary: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """The result of `anisoflight model check --json` for a folder: faults, config with defaults, parameters, flops."""
    command = [find_binary(binary), "model", "check", "--json", os.fspath(folder)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=False).stdout)


def _installed(name: str) -> str | None:
    """The program that the package anisoflight-server installed."""
    try:
        files = metadata.files("anisoflight-server") or ()
    except metadata.PackageNotFoundError:
        return None
    paths = (os.path.normpath(str(file.locate())) for file in files if file.name == name)
    return next((path for path in paths if os.access(path, os.X_OK)), None)


def _socket_folder() -> TemporaryFolder:
    """A folder for a socket: not that of temporary files if its path is too long or has a comma, gRPC's separator."""
    usual = tempfile.gettempdir()
    return TemporaryFolder("/tmp" if len(os.fsencode(usual)) > _MAX_FOLDER or "," in usual else None)


def _copy_log(
    stream: IO[str], lines: collections.deque[str], log: TextIO | None, found: queue.Queue[str | None]
) -> None:
    """Thread: keep the last lines, copy them, and report the address, or None when the log ends first."""
    for line in stream:
        lines.append(line)
        if log is not None:
            try:
                log.write(line)
                log.flush()
            except Exception as error:  # any file of the user's; a server whose log nobody reads would stop
                lines.append(f"(the log is not copied any more: {error})\n")
                log = None
        if match := _LISTENING.search(line):
            found.put(match[1])
    found.put(None)


_servers: weakref.WeakSet[LocalServer] = weakref.WeakSet()


def _forked() -> None:
    """In a forked process: release the servers, which belong to the parent."""
    for server in list(_servers):
        server.close.detach()
        if server.process.stdin:
            os.close(server.process.stdin.fileno())
        if server._folder:
            server._folder.left()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def _end(process: subprocess.Popen[str], folder: TemporaryFolder | None) -> None:
    """End the server: by SIGTERM, then by SIGKILL."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process.stdin:
        process.stdin.close()
    if folder:
        folder.close()
