"""What notebooks show of schedules, runs and clients: small tables, and curves as SVG, without any package."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

WIDTH, HEIGHT = 420, 190
_LEFT, _BOTTOM, _TOP, _RIGHT = 52, 30, 10, 10
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe and Ito's, for any colour vision."""
_NOISY = 40  # points from which on a mean is worth drawing
_LEGEND = 6  # lines beyond so many are drawn thin and without names


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


def curve(
    x: npt.ArrayLike,
    lines: Mapping[str, npt.ArrayLike],
    across: str,
    up: str,
    *,
    log: bool = False,
    smooth: bool = False,
) -> str:
    """Lines over x as an SVG, upwards on a logarithmic axis where log; smooth adds a moving mean to what is noisy.

    >>> curve([0, 1], {"σ": [1, 2]}, "t", "σ").count("<polyline")
    1
    """
    places = np.asarray(x, np.float64)
    values = {name: np.asarray(line, np.float64) for name, line in lines.items()}
    if smooth and len(places) >= _NOISY:
        values = {"": next(iter(values.values())), **{f"{name}, mean": _mean(line) for name, line in values.items()}}
    height = {name: np.log10(np.maximum(line, 1e-300)) if log else line for name, line in values.items()}
    finite = np.concatenate([line[np.isfinite(line)] for line in height.values()])
    if not len(finite):
        return ""
    low, high = _widened(finite.min(), finite.max())
    first, last = _widened(places.min(), places.max())

    def across_of(value: Any) -> Any:
        return _LEFT + (value - first) / (last - first) * (WIDTH - _LEFT - _RIGHT)

    def up_of(value: Any) -> Any:
        return HEIGHT - _BOTTOM - (value - low) / (high - low) * (HEIGHT - _BOTTOM - _TOP)

    parts = [f'<path d="M{_LEFT} {_TOP}V{HEIGHT - _BOTTOM}H{WIDTH - _RIGHT}" fill="none" stroke="currentColor"/>']
    for number, (name, line) in enumerate(height.items()):
        kept = np.isfinite(line)
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across_of(places[kept]), up_of(line[kept]), strict=True))
        faint = ' opacity=".35"' if not name or len(height) > _LEGEND else ""
        colour = COLOURS[max(0, number - (len(height) > len(lines))) % len(COLOURS)]
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"{faint}/>')
        if name and 1 < len(height) <= _LEGEND:
            parts.append(_text(_LEFT + 10, _TOP + 14 * (number + 1), name, "start", colour))
    for value in (low, high):
        label = 10**value if log else value
        parts.append(_text(_LEFT - 5, up_of(value) + 4, f"{label:.3g}", "end"))
    for value, anchor in ((first, "start"), (last, "end")):
        parts.append(_text(across_of(value), HEIGHT - 14, f"{value:.4g}", anchor))
    parts.append(_text((WIDTH + _LEFT) / 2, HEIGHT - 14, across, "middle"))
    parts.append(_text(_LEFT - 5, HEIGHT / 2, up, "end"))
    style = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" font-size="11"'
    names = escape(f"{up} over {across}")
    return f'<svg xmlns="http://www.w3.org/2000/svg" {style} aria-label="{names}">{"".join(parts)}</svg>'


def _text(x: float, y: float, text: str, anchor: str, colour: str = "currentColor") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'


def _widened(low: float, high: float) -> tuple[float, float]:
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _mean(line: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The mean of the last twentieth of the values so far, one value at least."""
    total = np.concatenate([[0.0], np.cumsum(np.nan_to_num(line))])
    ends = np.arange(1, len(line) + 1)
    starts = np.maximum(0, ends - max(1, len(line) // 20))
    return (total[ends] - total[starts]) / (ends - starts)
