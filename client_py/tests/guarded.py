"""A server with TLS and tokens, for the tests of programs that reach one."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import anisoflight
from anisoflight.serving.local import find_binary

SCOPES = ("read", "sample", "train", "admin")


def new_token(file: Path, name: str, scopes: str) -> str:
    """A token whose line is added to the file."""
    made = subprocess.run(
        [find_binary(), "token", "new", "--name", name, "--scopes", scopes], capture_output=True, text=True, check=True
    )
    with file.open("a") as lines:
        lines.write(made.stdout)
    return next(word for word in made.stderr.split() if word.startswith("aniso_"))


def certificate(folder: Path, name: str) -> None:
    """NAME.pem and NAME-key.pem, a self-signed certificate of localhost."""
    make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
    command = f"{make} -subj /CN={name} -addext subjectAltName=DNS:localhost -out {name}.pem -keyout {name}-key.pem"
    subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)


@dataclass
class Guarded:
    """A server with TLS and tokens, whose model `digits` needs no training."""

    address: str
    """localhost:PORT"""
    roots: Path
    """server.pem"""
    token: str
    """of all scopes"""
    client: anisoflight.Client

    @property
    def port(self) -> str:
        return self.address.rpartition(":")[2]


@contextmanager
def guarded_server(folder: Path) -> Iterator[Guarded]:
    """A server with the certificate server.pem and server-key.pem of a folder, and its data there."""
    tokens = folder / "guarded-tokens"
    tokens.unlink(missing_ok=True)
    token = new_token(tokens, "tests", ",".join(SCOPES))
    files = {"--tokens": tokens, "--tls-cert": folder / "server.pem", "--tls-key": folder / "server-key.pem"}
    arguments = [str(word) for pair in files.items() for word in pair]
    with anisoflight.serve(data=folder / "guarded", listen="0.0.0.0:0", arguments=arguments) as server:
        address = f"localhost:{server.location.rsplit(':', 1)[1]}"
        roots = folder / "server.pem"
        with anisoflight.connect(f"grpc+tls://{address}", token, roots.read_bytes()) as client:
            images = np.random.default_rng(0).integers(0, 256, (64, 8, 8, 1), np.uint8)
            client.put_dataset("digits", images, np.arange(64) % 4, progress=False, replace=True)
            client.make_mixture("digits", "digits", covariance="dct", progress=False, replace=True)
            yield Guarded(address, roots, token, client)
