"""What 0.1 had says what to type now."""

from typing import Any

import pytest

import anisoflight

GONE: list[tuple[Any, str, str]] = [
    (anisoflight, "plot_comparison", "anisoflight-table"),
    (anisoflight.Client, "compare", "fid calc --metrics ode-error"),
]
"""Owner, name, and a part of what to type now. Methods of the client are looked up on an instance."""


@pytest.mark.parametrize(("owner", "name", "instead"), GONE, ids=lambda value: value if isinstance(value, str) else "")
def test_names_of_the_first_release(owner: Any, name: str, instead: str) -> None:
    looked = object.__new__(owner) if isinstance(owner, type) else owner
    with pytest.raises(anisoflight.BadRequestError, match="is gone since 0.1: .*" + instead):
        getattr(looked, name)


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="anisoflight has no attribute 'nothing'"):
        anisoflight.nothing  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]
    assert not hasattr(object.__new__(anisoflight.Client), "nothing")
