"""Tokens, scopes, TLS and the drain, as stock pyarrow meets them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.flight as fl
import pytest
import wire
from guarded import SCOPES, certificate, new_token

import anisoflight
from anisoflight.serving.local import find_binary


@dataclass
class Guarded:
    """A server with TLS and tokens."""

    location: str
    roots: bytes
    file: Path
    tokens: dict[str, str]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    certs, file = folder / "certs", folder / "tokens"
    certs.mkdir()
    for name in ("server", "client"):
        certificate(certs, name)
    tokens = {scope: new_token(file, scope.replace(",", "-"), scope) for scope in (*SCOPES, ",".join(SCOPES))}
    arguments = ["--tls-cert", str(certs / "server.pem"), "--tls-key", str(certs / "server-key.pem")]
    arguments += ["--tokens", str(file), "--device", "go"]
    # On every address: with TLS other machines may reach it.
    with anisoflight.serve(data=folder / "data", listen="0.0.0.0:0", arguments=arguments) as server:
        port = server.location.rsplit(":", 1)[1]
        yield Guarded(f"grpc+tls://localhost:{port}", (certs / "server.pem").read_bytes(), file, tokens)


def test_basic_authentication(guarded: Guarded) -> None:
    """The password is a token, the user anybody; what comes back is the header of later calls."""
    with fl.FlightClient(guarded.location, tls_root_certs=guarded.roots) as client:
        pair = client.authenticate_basic_token("anyone", guarded.tokens["read"])
        assert pair == (b"authorization", b"Bearer " + guarded.tokens["read"].encode())
        options = fl.FlightCallOptions(headers=[pair])
        list(client.do_action(fl.Action("ListModels", b""), options))
        assert wire.code(lambda: list(client.do_action(fl.Action("DeleteModel", b'{"model":"x"}'), options))) == "SCOPE"
        for user, password in (("anyone", "aniso_wrong"), ("anyone", ""), (guarded.tokens["read"], "")):
            with pytest.raises(fl.FlightUnauthenticatedError, match=r"\[NO_TOKEN\]"):
                client.authenticate_basic_token(user, password)


HANDSHAKE = """
import sys, pyarrow.flight as fl

class Handler(fl.ClientAuthHandler):
    def authenticate(self, outgoing, incoming):
        outgoing.write(b"user:password")
        incoming.read()

    def get_token(self):
        return b"token"

roots = sys.stdin.buffer.read() or None
try:
    fl.FlightClient(sys.argv[1], tls_root_certs=roots).authenticate(Handler())
except NotImplementedError as error:
    print(error)
"""


def test_the_other_handshake_is_refused(guarded: Guarded, server: anisoflight.LocalClient) -> None:
    """pyarrow's own process aborted when the server ended the handshake without a message."""
    for location, roots in ((guarded.location, guarded.roots), (server.location, b"")):
        command = [sys.executable, "-c", HANDSHAKE, location]
        done = subprocess.run(command, input=roots, capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        assert b"[UNIMPLEMENTED] A handshake needs the header" in done.stdout


def test_the_package_over_tls(guarded: Guarded) -> None:
    token = guarded.tokens[",".join(SCOPES)]
    images = np.arange(5 * 16, dtype=np.uint8).reshape(5, 4, 4, 1)
    with anisoflight.connect(guarded.location, token=token, tls_root_certs=guarded.roots) as client:
        client.put_dataset("small", images)
        assert (client.dataset("small").images == images).all()
        client.delete_dataset("small")


@pytest.fixture(scope="module")
def mutual(guarded: Guarded, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, list[str]]]:
    """The data folder of a server that asks for tokens and certificates of clients, and the flags that reach it."""
    folder, certs = tmp_path_factory.mktemp("mutual"), guarded.file.parent / "certs"
    arguments = ["--tls-cert", str(certs / "server.pem"), "--tls-key", str(certs / "server-key.pem"), "--device", "go"]
    arguments += ["--tokens", str(guarded.file), "--client-ca", str(certs / "client.pem")]
    with anisoflight.serve(data=folder, listen="0.0.0.0:0", arguments=arguments) as server:
        flags = ["--server", f"grpc+tls://localhost:{server.location.rsplit(':', 1)[1]}", "--data", str(folder)]
        flags += ["--token", guarded.tokens[",".join(SCOPES)], "--tls-ca", str(certs / "server.pem")]
        flags += ["--client-cert", str(certs / "client.pem"), "--client-key", str(certs / "client-key.pem")]
        yield folder, flags


def test_client_certificates(guarded: Guarded, mutual: tuple[Path, list[str]]) -> None:
    location, token = mutual[1][1], guarded.tokens["read"]
    chain, key = ((guarded.file.parent / "certs" / name).read_bytes() for name in ("client.pem", "client-key.pem"))
    with anisoflight.connect(location, token, guarded.roots, cert_chain=chain, private_key=key) as client:
        assert client.models().empty
    with anisoflight.connect(location, token, guarded.roots) as client, pytest.raises(anisoflight.AnisoflightError):
        client.models()
    with pytest.raises(ValueError, match="cert_chain and private_key must be given together"):
        anisoflight.connect(location, token, guarded.roots, cert_chain=chain)


def test_commands_in_python_reach_a_guarded_server(mutual: tuple[Path, list[str]], tmp_path: Path) -> None:
    """Uploads and the stages of a recipe, which `anisoflight` gives its own token and certificates."""
    folder, flags = mutual
    np.savez(tmp_path / "grey.npz", images=np.random.default_rng(0).integers(0, 255, (8, 8, 8, 1), np.uint8))
    place = flags.index("--token")
    (tmp_path / "token").write_text(flags[place + 1])
    named = [*flags[:place], "--token-file", str(tmp_path / "token"), *flags[place + 2 :]]
    recipe = str(Path(__file__).parents[2] / "configs" / "cifar10" / "isotropic.yaml")
    made = ["--replace", "--floor", "0.01"]
    for command in (
        [find_binary(), "data", "convert", str(tmp_path / "grey.npz"), "--name", "grey", *named],
        [find_binary(), "model", "mixture", "--name", "grey", "--dataset", "grey", *made, *flags],
        [sys.executable, "-m", "anisoflight.recipe", recipe, "--twin", *named],
    ):
        environment = {**os.environ, "ANISOFLIGHT_PYTHON": sys.executable}
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)
        assert done.returncode == 0, done.stderr
    rows = (folder / "fid" / "cifar10-twin.jsonl").read_text(encoding="utf-8").splitlines()
    methods = ("EDM", "EDM, uniform in t", "isotropic", "isotropic, EDM's grid", "isotropic, EDM's grid, midpoint")
    assert [json.loads(row)["method"] for row in rows] == [method for method in methods for _ in range(2)]
