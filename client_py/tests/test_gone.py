"""What 0.1 had and is gone says what to type now."""

from collections.abc import Callable
from typing import Any

import pytest

import anisoflight
from anisoflight import AnisoflightError, Client, figures, widgets

Attempt = Callable[[Client], Any]


def schedule(kind: str) -> Attempt:
    return lambda client: client.make_schedule("gone", kind, model="digits", dataset="blocks", nfe=5)


def sample(**options: Any) -> Attempt:
    return lambda client: client.sample("digits", n=1, nfe=3, **options)


def operation(name: str, **request: Any) -> Attempt:
    return lambda client: client.call(name, **request)


GONE: list[tuple[str, Attempt, str]] = [
    ("advise", lambda client: client.advise, "anisoflight data inspect"),
    ("compare", lambda client: client.compare, "fid calc --metrics ode-error"),
    ("bench_schedule", lambda client: client.bench_schedule, "make_schedule prints"),
    ("plot_comparison", lambda _: anisoflight.plot_comparison, "anisoflight-table"),  # pyright: ignore
    ("advice", lambda _: figures.advice, "anisoflight data inspect"),  # pyright: ignore
    ("ScheduleEditor", lambda _: widgets.ScheduleEditor, "put_schedule"),  # pyright: ignore
    ("kind gaussian", schedule("gaussian"), "MakePlan searches levels and solver"),
    ("kind few", schedule("few"), "sample with plan in place of schedule and nfe"),
    ("kind fit", schedule("fit"), "sample with plan"),
    ("solver local", sample(solver="local"), "Plans by MakePlan step by it"),
    ("solver fitted", sample(solver="fitted"), "sample with plan in place of schedule, solver and nfe"),
    ("solver local", lambda client: client.few("digits", nfe=3, solvers=["local"]), "Plans by MakePlan"),
    ("Advise", operation("Advise", dataset="blocks"), "anisoflight data inspect"),
    ("BenchSchedule", operation("BenchSchedule"), "anisoflight.fid measures samples"),
    ("ExportStatistics", operation("ExportStatistics", schedule="edm"), "PlanSampler with plan"),
    ("ExportFitted", operation("ExportFitted", schedule="edm"), "PlanSampler with plan"),
]
"""The name, what was typed, and a part of what is said."""


@pytest.mark.parametrize(
    ("name", "typed", "instead"), GONE, ids=[f"{number}-{name}" for number, (name, *_) in enumerate(GONE)]
)
def test_a_gone_name_says_what_to_type(client: Client, name: str, typed: Attempt, instead: str) -> None:
    with pytest.raises(AnisoflightError, match=rf"{name} is gone since 0\.1[:.] .*{instead}"):
        typed(client)


@pytest.mark.parametrize("owner", [anisoflight, figures, widgets, Client])
def test_a_name_that_never_was_is_an_attribute_error(owner: Any) -> None:
    missing = "nonsense"
    with pytest.raises(AttributeError, match=missing):
        getattr(owner, missing)
