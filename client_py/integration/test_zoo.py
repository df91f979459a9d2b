"""The zoo: what `put_network` accepts of what people have, and that the server computes it as torch does."""

import re

import pytest
import torch
from network_fixtures import networks
from zoo import ROWS, Row, spoil

from anisoflight import Client
from anisoflight.errors import AnisoflightError
from anisoflight.torch import service

ALLOWED = 2e-6  # of F and D, relative


WITH_DERIVATIVES = {
    name: Row("one of the networks whose derivatives are compared in Go", lambda module=module: module, how)
    for name, (module, how) in networks().items()
}
ALL = {**WITH_DERIVATIVES, **ROWS}


def random(row: Row) -> torch.nn.Module:
    torch.manual_seed(0)
    return spoil(row.make())


@pytest.mark.parametrize("name", [name for name, row in ALL.items() if not row.refused])
def test_accepted(client: Client, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "TOLERANCE", ALLOWED)
    row = ALL[name]
    client.put_network("zoo", random(row), prediction="flow", replace=True, progress=False, **row.how)
    client.delete_model("zoo")


@pytest.mark.parametrize("name", [name for name, row in ALL.items() if row.refused])
def test_refused(client: Client, name: str) -> None:
    row = ALL[name]
    with pytest.raises(AnisoflightError) as refused:
        client.put_network("zoo", random(row), prediction="flow", replace=True, progress=False, **row.how)
    assert re.search(row.refused, str(refused.value), re.DOTALL), refused.value


def test_47_of_51_are_accepted() -> None:
    """The numbers of docs/networks.md."""
    assert (len(ALL), sum(not row.refused for row in ALL.values())) == (51, 47)
