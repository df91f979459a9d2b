"""What the programs of this package share: how they reach a server, and how they end."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .client import connect
from .errors import AnisoflightError

if TYPE_CHECKING:
    from collections.abc import Callable

    from .client import Client

_FILES = {
    "tls_ca": "PEM of the authorities that the server's certificate may be of",
    "client_cert": "PEM of this client's certificate, for servers that ask for one",
    "client_key": "PEM of its key",
}
"""Settings that name a file, as the program `anisoflight` calls them."""


def path_of(text: str) -> Path:
    """A path on the command line."""
    return Path(text).expanduser()


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
    """A client of the server that the arguments of `add_server` choose."""
    token = args.token_file.read_text(encoding="utf-8").strip() if args.token_file else None
    return connected_to(args.server, token, {name: getattr(args, name) for name in _FILES})


def connected_to(location: str, token: str | None = None, given: dict[str, Path | None] | None = None) -> Client:
    """A client of a server. What is not given the environment has, under the names that `anisoflight` reads."""
    token = token or os.environ.get("ANISOFLIGHT_TOKEN")

    def content(name: str) -> bytes | None:
        named = (given or {}).get(name) or os.environ.get(f"ANISOFLIGHT_{name.upper()}")
        return Path(named).read_bytes() if named else None

    roots, chain, key = (content(name) for name in _FILES)
    return connect(location, token, roots, cert_chain=chain, private_key=key)


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
