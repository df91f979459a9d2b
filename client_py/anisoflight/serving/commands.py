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

from ..errors import AnisoflightError, say
from ..files import path_of
from ..files.locks import try_lock
from .client import Client, connect
from .local import serve

_TICK = 0.05  # seconds between two looks at the lock of a data folder
_LOOKS_BEFORE_NOTE = 20  # looks at a held folder, after which its holder is named
_FILES = {
    "tls_ca": "PEM of the authorities for the server's certificate",
    "client_cert": "PEM of this client's certificate, for servers that require one",
    "client_key": "PEM of the certificate's key",
}
"""Settings that name a file, with the names of the program `anisoflight`."""


def positive(text: str) -> int:
    """A number of at least 1."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


def value_of(text: str) -> Any:
    """JSON if the text is valid JSON, else the text itself.

    >>> value_of('{"edm": {"T": 400}}'), value_of("edm")
    ({'edm': {'T': 400}}, 'edm')
    """
    try:
        return json.loads(text)
    except ValueError:
        return text


def add_server(group: argparse._ArgumentGroup, default: str | None, about: str) -> None:
    """Add the arguments that select a server, for `connected`."""
    group.add_argument("--server", metavar="URL", default=default, help=about)
    about = "file with the token (default: the variable ANISOFLIGHT_TOKEN)"
    group.add_argument("--token-file", metavar="FILE", type=path_of, help=about)
    for name, what in _FILES.items():
        flags = [f"--{name.replace('_', '-')}"] + (["--tls-root-certs"] if name == "tls_ca" else [])
        about = f"{what} (default: $ANISOFLIGHT_{name.upper()})"
        group.add_argument(*flags, dest=name, metavar="FILE", type=path_of, help=about)


def connected(args: argparse.Namespace) -> Client:
    """A client of the server that the arguments of `add_server`, or the variables of `anisoflight`, select."""
    token = args.token_file.read_text(encoding="utf-8").strip() if args.token_file else None
    roots, chain, key = (getattr(args, name) or os.environ.get(f"ANISOFLIGHT_{name.upper()}") for name in _FILES)
    token = token or os.environ.get("ANISOFLIGHT_TOKEN")
    return connect(args.server, token, roots, cert_chain=chain, private_key=key)


def add_folder(group: argparse._ArgumentGroup) -> None:
    """Add the arguments that select a data folder and its server, for `folder_server`."""
    data = path_of(os.environ.get("ANISOFLIGHT_DATA") or "data")
    about = "data folder (default: $ANISOFLIGHT_DATA, else data)"
    group.add_argument("--data", metavar="DIR", type=path_of, default=data, help=about)
    about = "location of a server (default: $ANISOFLIGHT_SERVER, else the folder's, else a new one)"
    add_server(group, os.environ.get("ANISOFLIGHT_SERVER") or None, about)


@contextmanager
def folder_server(args: argparse.Namespace, *arguments: str) -> Iterator[Client]:
    """A client of the named server, else of the data folder's server, else of a new one with these arguments."""
    server = args.server or address_of(args.data)
    named = argparse.Namespace(**{**vars(args), "server": server})
    with connected(named) if server else serve(data=args.data, arguments=arguments) as client:
        yield client


def address_of(data: Path) -> str | None:
    """The address of the server of a data folder; None if no process holds the folder. Waits while another holds it."""
    last = b""
    for attempt in itertools.count(1):
        try:
            with (data / "lock").open("rb") as file:
                if try_lock(file):
                    return None
                holder = file.read()
        except FileNotFoundError:
            return None
        if holder and holder == last:  # seen twice, so not the remains of a killed process
            process = json.loads(holder)
            if address := process.get("address"):
                return address
            if attempt == _LOOKS_BEFORE_NOTE:
                say(f"process {process['pid']} ({process['program']}) uses the folder {data}; waiting for it")
        last = holder
        time.sleep(_TICK)
    return None


def ended(run: Callable[[], None], interrupted: str = "interrupted") -> int:
    """Run a program and return its status: 0, 1 after an error, 130 after an interrupt. Errors are printed."""
    try:
        run()
    except (AnisoflightError, OSError, ValueError) as error:
        say(f"anisoflight: {error.message if isinstance(error, AnisoflightError) else error}")
        return 1
    except KeyboardInterrupt:
        say(f"anisoflight: {interrupted}")
        return 130
    return 0


def exit_with(main: Callable[[], int]) -> None:
    """Run `main` and exit with its status. SIGTERM is handled like Ctrl-C, so that no partial files remain."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
