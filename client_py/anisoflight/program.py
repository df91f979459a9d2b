"""What the programs of this package share: how they reach a server, and how they end."""

import argparse
import itertools
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .client import Client, connect
from .errors import AnisoflightError
from .files import path_of
from .files.locks import try_lock
from .serve import serve

_TICK = 0.05  # seconds between two looks at who holds a data folder
_TOLD = 20  # looks, after which that is said
_FILES = {
    "tls_ca": "PEM of the authorities that the server's certificate may be of",
    "client_cert": "PEM of this client's certificate, for servers that ask for one",
    "client_key": "PEM of its key",
}
"""Settings that name a file, as the program `anisoflight` calls them."""


def positive(text: str) -> int:
    """A number from 1 on."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


def words(text: str) -> list[str]:
    """A list with commas between."""
    return [word.strip() for word in text.split(",") if word.strip()]


def numbers(text: str) -> list[int]:
    """A list of numbers."""
    return [int(word) for word in words(text)]


def value_of(text: str) -> Any:
    """JSON if it is that, else the text: a name.

    >>> value_of('{"edm": {"T": 400}}'), value_of("edm")
    ({'edm': {'T': 400}}, 'edm')
    """
    try:
        return json.loads(text)
    except ValueError:
        return text


def add_server(group: argparse._ArgumentGroup, default: str | None, said: str) -> None:
    """The arguments that choose a server, for `connected`."""
    group.add_argument("--server", metavar="URL", default=default, help=said)
    said = "file that holds its token (default: the variable ANISOFLIGHT_TOKEN)"
    group.add_argument("--token-file", metavar="FILE", type=path_of, help=said)
    for name, what in _FILES.items():
        flags = [f"--{name.replace('_', '-')}"] + (["--tls-root-certs"] if name == "tls_ca" else [])
        said = f"{what} (default: what ANISOFLIGHT_{name.upper()} names)"
        group.add_argument(*flags, dest=name, metavar="FILE", type=path_of, help=said)


def connected(args: argparse.Namespace) -> Client:
    """A client of the server that the arguments of `add_server` choose, else the variables that `anisoflight` reads."""
    token = args.token_file.read_text(encoding="utf-8").strip() if args.token_file else None

    def content(name: str) -> bytes | None:
        named = getattr(args, name) or os.environ.get(f"ANISOFLIGHT_{name.upper()}")
        return path_of(named).read_bytes() if named else None

    roots, chain, key = (content(name) for name in _FILES)
    token = token or os.environ.get("ANISOFLIGHT_TOKEN")
    return connect(args.server, token, roots, cert_chain=chain, private_key=key)


def add_folder(group: argparse._ArgumentGroup) -> None:
    """The arguments that choose a data folder and its server, for `folder_server`."""
    data = path_of(os.environ.get("ANISOFLIGHT_DATA") or "data")
    said = "data folder (default: what ANISOFLIGHT_DATA names, else data)"
    group.add_argument("--data", metavar="DIR", type=path_of, default=data, help=said)
    said = "location of a server (default: what ANISOFLIGHT_SERVER names, else the folder's, else one of its own)"
    add_server(group, os.environ.get("ANISOFLIGHT_SERVER") or None, said)


@contextmanager
def folder_server(args: argparse.Namespace, *arguments: str) -> Iterator[Client]:
    """The server that is named, else that of the data folder, else one with these arguments for as long as it takes."""
    server = args.server or address_of(args.data)
    named = argparse.Namespace(**{**vars(args), "server": server})
    with connected(named) if server else serve(data=args.data, arguments=arguments) as client:
        yield client


def address_of(data: Path) -> str | None:
    """Where a data folder is served; None if no process holds it. Waits for one that serves it nowhere, or not yet."""
    last = b""
    for attempt in itertools.count(1):
        try:
            with (data / "lock").open("rb") as file:
                if try_lock(file):
                    return None
                holder = file.read()
        except FileNotFoundError:
            return None
        if holder and holder == last:  # and not what is left of a process that was killed
            held = json.loads(holder)
            if address := held.get("address"):
                return address
            if attempt == _TOLD:
                said = f"process {held['pid']} ({held['program']}) works on the folder {data}; waiting for it"
                print(said, file=sys.stderr, flush=True)
        last = holder
        time.sleep(_TICK)
    return None


def ended(run: Callable[[], None], interrupted: str = "interrupted") -> int:
    """Run a program: 0, 1 of an error that is said, 130 of an interrupt, after which that is said."""
    try:
        run()
    except (AnisoflightError, OSError, ValueError) as error:
        print(f"anisoflight: {error.message if isinstance(error, AnisoflightError) else error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"anisoflight: {interrupted}", file=sys.stderr)
        return 130
    return 0


def exit_with(main: Callable[[], int]) -> None:
    """Run `main` and exit with its status. A SIGTERM ends it as a Ctrl-C does: nothing half-made is left behind."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
