"""What 0.1 had and is gone says what to type now."""

from typing import Any

import pytest

import anisoflight
from anisoflight import figures, widgets

CLIENT = anisoflight.connect("127.0.0.1:1")
GONE: list[tuple[Any, str, str]] = [
    (CLIENT, "advise", "anisoflight data inspect"),
    (CLIENT, "compare", "fid calc --metrics ode-error"),
    (anisoflight, "plot_comparison", "anisoflight-table"),
    (CLIENT, "bench_schedule", "make_schedule prints"),
    (figures, "advice", "anisoflight data inspect"),
    (widgets, "ScheduleEditor", "put_schedule"),
]
"""The object or module, the name, and a part of what is said."""


@pytest.mark.parametrize(("owner", "name", "instead"), GONE, ids=[name for _, name, _ in GONE])
def test_a_gone_name_says_what_to_type(owner: Any, name: str, instead: str) -> None:
    with pytest.raises(anisoflight.BadRequestError, match=rf"{name} is gone since 0\.1: .*{instead}"):
        getattr(owner, name)
    missing = "nonsense"
    with pytest.raises(AttributeError, match=missing):
        getattr(owner, missing)


def test_kinds_of_the_first_release(client: anisoflight.Client) -> None:
    with pytest.raises(anisoflight.BadRequestError, match=r"gaussian is gone since 0\.1\. Kind few searches"):
        client.make_schedule("gone", "gaussian", dataset="blocks", solver="heun", nfe=5)
