"""Lists of the server as DataFrames that print only their main columns."""

from typing import Any, ClassVar

import pandas as pd


class Listing(pd.DataFrame):
    """A DataFrame that prints only the columns in `shown`. Slices of it print all of their columns."""

    _metadata: ClassVar[list[str]] = ["shown"]
    shown: tuple[str, ...]

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame

    def _parts(self) -> tuple[pd.DataFrame, str]:
        """The columns that are printed, and a note of the others."""
        rest = [name for name in self.columns if name not in self.shown]
        narrow = self[[name for name in self.shown if name in self.columns]]
        return narrow, f"not shown: {', '.join(rest)}" if rest else ""

    def __repr__(self) -> str:
        narrow, rest = self._parts()
        return f"{narrow!r}\n{rest}".rstrip()

    def _repr_html_(self) -> str:
        narrow, rest = self._parts()
        return f"{narrow.to_html(max_rows=pd.get_option('display.max_rows'))}<p>{rest}</p>"


def frame_of(rows: list[dict[str, Any]], *shown: str) -> pd.DataFrame:
    """Entries as a DataFrame indexed by name, which prints only the columns in `shown`, if any are given.

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
