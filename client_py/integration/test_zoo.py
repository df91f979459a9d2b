"""The zoo: what `put_network` accepts of what people have, and that the server computes it as torch does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
import torch
from zoo import ROWS

from anisoflight.errors import AnisoflightError
from anisoflight.torch import service

if TYPE_CHECKING:
    from anisoflight import Client

    from zoo import Row

ALLOWED = 2e-6  # of F and D, relative


def random(row: Row) -> torch.nn.Module:
    """The module with weights in which no zeros hide a rule, and statistics that are not those of white noise."""
    torch.manual_seed(0)
    module = row.make()
    with torch.no_grad():
        for one in module.parameters():
            one.add_(0.05 * torch.randn_like(one))
        for name, one in module.named_buffers():
            if name.endswith(("running_mean", "running_var")):
                one.add_(torch.rand_like(one))
    return module


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if not row.refused])
def test_accepted(client: Client, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "TOLERANCE", ALLOWED)
    row = ROWS[name]
    client.put_network("zoo", random(row), prediction="flow", replace=True, progress=False, **row.how)
    client.delete_model("zoo")


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.refused])
def test_refused(client: Client, name: str) -> None:
    row = ROWS[name]
    with pytest.raises(AnisoflightError) as refused:
        client.put_network("zoo", random(row), prediction="flow", replace=True, progress=False, **row.how)
    assert re.search(row.refused, str(refused.value), re.DOTALL), refused.value


def test_46_of_51_are_accepted() -> None:
    assert sum(not row.refused for row in ROWS.values()) >= 46
    assert len(ROWS) == 51
