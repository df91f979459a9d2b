"""What `Client.advise` recommends."""

from __future__ import annotations

import json
import shlex
import shutil
import textwrap
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_CALLS = {
    "Sample": ("sample", "sample"),
    "CreateRun": ("create_run", "train"),
    "MakeBasis": ("make_basis", "basis make"),
    "MakeSchedule": ("make_schedule", "schedule"),  # and its kind
}
"""The client's method and the command of an operation."""


def _python(op: str, **fields: Any) -> str:
    """The line of Python that makes a request."""
    line = f"client.{_CALLS[op][0]}({', '.join(f'{key}={value!r}' for key, value in fields.items())})"
    if op != "CreateRun":
        return line
    return f"run = {line}; run.start(); run.wait(); run.save({fields['name']!r})"


def _shell(op: str, **fields: Any) -> str:
    """The command that makes a request."""
    words = ["anisoflight", *_CALLS[op][1].split()] + ([fields.pop("kind")] if op == "MakeSchedule" else [])
    for key, value in fields.items():
        text = value if isinstance(value, str) else json.dumps(value)
        words.append(f"--{key.replace('_', '-')}={text}")
    return shlex.join(words)


class Advice(dict[str, Any]):
    """Recommended settings by name, such as ``advice["sigma_max"]``. It prints as a table with the reason of each."""

    @property
    def table(self) -> pd.DataFrame:
        """The recommended settings: columns value and because (the measurement), by name."""
        return pd.DataFrame(self["items"]).set_index("name").rename_axis("what")[["value", "because"]]

    def commands(self, shell: bool = False) -> dict[str, list[str]]:
        """The lines of Python, or of a shell, that carry out each recommendation. Each builds on the earlier ones."""
        write = _shell if shell else _python
        return {item["name"]: [write(**request) for request in item["do"]] for item in self["items"] if item.get("do")}

    def figure(self) -> Figure:
        """The data's spectrum, the reducible loss, and the samplers. Needs matplotlib (the extra `plot`)."""
        from .figures import advice

        return advice(self)

    def text(self, shell: bool = False) -> str:
        """The table, followed by `commands`."""
        rows = [("WHAT", "VALUE", "BECAUSE"), *self.table.itertuples()]
        what, value = (max(len(row[i]) for row in rows) + 2 for i in (0, 1))
        room = max(40, shutil.get_terminal_size((120, 24)).columns - what - value)
        lines = []
        for row in rows:
            first, *rest = textwrap.wrap(row[2], room, break_on_hyphens=False)
            lines += [f"{row[0]:{what}}{row[1]:{value}}{first}", *(" " * (what + value) + line for line in rest)]
        for name, commands in self.commands(shell).items():
            lines += ["", f"{name}:", *(f"  {command}" for command in commands)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        with pd.option_context("display.max_colwidth", None):
            return self.table.to_html()
