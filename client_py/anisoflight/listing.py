"""Lists of what a server has, as DataFrames that print a few of their columns."""

from __future__ import annotations

from typing import Any, ClassVar

import pandas as pd


class Listing(pd.DataFrame):
    """A DataFrame with a column for every field, which prints those in `shown`. Slices of it print all they have."""

    _metadata: ClassVar[list[str]] = ["shown"]
    shown: tuple[str, ...]

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame

    def _narrow(self) -> pd.DataFrame:
        return self[[name for name in self.shown if name in self.columns]]

    def __repr__(self) -> str:
        return f"{self._narrow()!r}\n{self._rest()}".rstrip()

    def _repr_html_(self) -> str:
        return f"{self._narrow().to_html(max_rows=pd.get_option('display.max_rows'))}<p>{self._rest()}</p>"

    def _rest(self) -> str:
        rest = [name for name in self.columns if name not in self.shown]
        return f"not shown: {', '.join(rest)}" if rest else ""


def frame_of(rows: list[dict[str, Any]], *shown: str) -> pd.DataFrame:
    """Entries with names as a DataFrame indexed by them, which prints the columns in `shown`, or all without.

    >>> frame = frame_of([{"name": "fast", "T": 400, "family": {"basis": "dct", "k": 16}}], "T")
    >>> repr(frame).splitlines()[-2:], list(frame.columns)
    (['fast  400', 'not shown: family'], ['T', 'family'])
    """
    frame = pd.DataFrame.from_records(rows, columns=None if rows else ["name"]).set_index("name")
    if not shown:
        return frame
    listing = Listing(frame)
    listing.shown = shown
    return listing
