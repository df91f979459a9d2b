"""What 0.1 had and is gone says what to type now."""

from typing import Any

import pytest

import anisoflight
from anisoflight import BadRequestError, figures, widgets

GONE: list[tuple[Any, str, str]] = [
    (anisoflight.connect("127.0.0.1:1"), "advise", "anisoflight data inspect"),
    (figures, "advice", "anisoflight data inspect"),
    (widgets, "ScheduleEditor", "put_schedule"),
]
"""The object or module, the name, and a part of what is said."""


@pytest.mark.parametrize(("owner", "name", "instead"), GONE, ids=[name for _, name, _ in GONE])
def test_a_gone_name_says_what_to_type(owner: Any, name: str, instead: str) -> None:
    with pytest.raises(BadRequestError, match=rf"{name} is gone since 0\.1: .*{instead}"):
        getattr(owner, name)
    missing = "nonsense"
    with pytest.raises(AttributeError, match=missing):
        getattr(owner, missing)
