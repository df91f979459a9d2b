"""What notebooks show of schedules, runs and clients: small tables, and figures where matplotlib is installed."""

from __future__ import annotations

import io
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from matplotlib.axes import Axes


def titled(thing: object, body: str) -> str:
    """A body below the repr of what it shows."""
    return f"<div><p><code>{escape(repr(thing))}</code></p>{body}</div>"


def table(facts: Mapping[str, Any]) -> str:
    """Names and values, side by side.

    >>> table({"T": 400})
    '<table><tr><th>T</th></tr><tr><td>400</td></tr></table>'
    """
    heads = "".join(f"<th>{escape(str(name))}</th>" for name in facts)
    cells = "".join(f"<td>{escape(str(value))}</td>" for value in facts.values())
    return f"<table><tr>{heads}</tr><tr>{cells}</tr></table>"


def figure(draw: Callable[[Axes], object]) -> str:
    """What `draw` draws on matplotlib's axes, as an SVG; empty where matplotlib is not installed.

    >>> figure(lambda ax: ax.plot([0, 1], [1, 2])).startswith("<svg")
    True
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return ""
    made = Figure(figsize=(4.6, 2.4), layout="constrained")
    draw(made.subplots())
    text = io.StringIO()
    made.savefig(text, format="svg")
    return text.getvalue()[text.getvalue().index("<svg") :]
