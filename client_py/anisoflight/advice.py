"""What `Client.advise` recommends."""

from __future__ import annotations

import shutil
import textwrap
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Advice(dict[str, Any]):
    """Settings by name, such as ``advice["sigma_max"]``. It prints them with the measurement behind each."""

    @property
    def table(self) -> pd.DataFrame:
        """What is recommended, its value, and because of which measurement."""
        return pd.DataFrame(self["items"]).set_index("name").rename_axis("what")

    def figure(self) -> Figure:
        """The data's spectrum, the loss that can be reduced and the samplers; needs matplotlib (the extra `plot`)."""
        from .figures import advice

        return advice(self)

    def __repr__(self) -> str:
        rows = [("WHAT", "VALUE", "BECAUSE"), *self.table.itertuples()]
        what, value = (max(len(row[i]) for row in rows) + 2 for i in (0, 1))
        room = max(40, shutil.get_terminal_size((120, 24)).columns - what - value)
        lines = []
        for row in rows:
            first, *rest = textwrap.wrap(row[2], room, break_on_hyphens=False)
            lines += [f"{row[0]:{what}}{row[1]:{value}}{first}", *(" " * (what + value) + line for line in rest)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        with pd.option_context("display.max_colwidth", None):
            return self.table.to_html()
