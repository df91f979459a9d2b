"""A schedule's noise levels without a server, in the formats of other programs."""

import io
import json
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
import pyarrow as pa

from .errors import BadRequestError, bad_schedule
from .files import path_of
from .wire.tensors import table_of

Array = np.ndarray[Any, Any]
Form = Literal["json", "comfyui", "sd.cpp"]

_KNOTS = {"label": (pa.int32(), -1), "subspace": (pa.int32(), 0), "t": (pa.float64(), None), "g": (pa.float64(), None)}
"""The columns of a schedule's table, and their defaults."""


def read_csv(path: str | PathLike[str]) -> pd.DataFrame:
    """A CSV table, also as spreadsheets save it: UTF-16, semicolons, decimal commas."""
    data = path_of(path).read_bytes()
    text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig", errors="replace")
    separator = ";" if ";" in text.partition("\n")[0] else ","
    decimal = "," if separator == ";" and "," in text else "."
    header, *rows = [line.split(separator) for line in text.splitlines() if line.strip()] or [[]]
    try:
        if len({*header}) < len(header) or any(len(row) != len(header) for row in rows):
            raise ValueError(f"rows without one value for each of {', '.join(header)}")
        return pd.read_csv(io.StringIO(text), sep=separator, decimal=decimal, skipinitialspace=True)
    except ValueError as error:
        raise bad_schedule(f"{path} must be a table with columns t and g, got {error}") from None


def schedule_table(table: Any) -> pa.Table:
    """The rows of PutSchedule from anything with columns t, g and, if needed, label and subspace.

    >>> schedule_table({"t": [0, 5], "g": [1e-9, "two"]})
    Traceback (most recent call last):
    anisoflight.errors.BadRequestError: [BAD_SCHEDULE] g of the schedule: Unable to parse string 'two' at position 1
    """
    what = "a schedule"
    try:
        arrow = hasattr(table, "__arrow_c_stream__") and not isinstance(table, pd.DataFrame)  # of polars, too
        frame = pa.table(table).to_pandas() if arrow else pd.DataFrame(table)
        if missing := [name for name in ("t", "g") if name not in frame]:
            names = ", ".join(map(str, frame.columns)) or "none"
            raise ValueError(f"must have the columns t and g, got {names}; add {' and '.join(missing)}")
        columns = {}
        for name, (kind, default) in _KNOTS.items():
            what = f"{name} of the schedule"
            values = pd.to_numeric(frame[name]).to_numpy() if name in frame else [default] * len(frame)
            columns[name] = pa.array(values, kind)
        return table_of(columns)
    except (ValueError, TypeError, pa.ArrowException) as error:
        raise bad_schedule(f"{what}: {error}") from None


@dataclass(frozen=True, eq=False)
class Curve:
    """σ(t) of a schedule, the geometric mean over its subspaces: ln σ is linear between knots.

    >>> curve = client.schedule("edm").curve()
    >>> curve.sigmas(3).round(2).tolist()
    [80.0, 9.71, 0.47, 0.0]
    """

    t: Array
    """[K] times, from 0 to T."""
    logs: Array
    """[K] ln σ at the times; it increases."""

    @classmethod
    def of(cls, knots: pd.DataFrame, label: int | None = None) -> Self:
        """The curve of a table as `schedule_table` takes it, for one class or, if they share it, for all."""
        knots = schedule_table(knots).to_pandas()
        labels = sorted(set(knots["label"]))
        if labels != [-1] and label not in labels and (len(labels) > 1 or label is not None):
            got = "this schedule differs by class" if label is None else f"got {label}"
            raise BadRequestError(f"label must be one of {labels}: {got}")
        shown = knots[knots["label"] == label] if len(labels) > 1 else knots
        paths = [rows[["t", "g"]].to_numpy().T for _, rows in shown.groupby("subspace")] or [np.empty((2, 0))]
        end = paths[0][:, -1:].tolist()
        for path in paths:
            rises = np.isfinite(path).all() and (np.diff(path) > 0).all() and path[:, -1:].tolist() == end
            if len(path[0]) < 2 or path[0, 0] != 0 or path[1, 0] <= 0 or not rises:
                t, g = path[:, :4].tolist()
                raise bad_schedule(
                    "t must increase from 0 and g > 0 must increase, two knots or more, to the same end in each "
                    f"subspace, got t = {t} and g = {g}"
                )
        t = np.unique(np.concatenate([path[0] for path in paths]))
        logs = [np.interp(t, path[0], 0.5 * np.log(path[1])) for path in paths]
        return cls(t, np.mean(logs, axis=0))

    @classmethod
    def load(cls, path: str | PathLike[str], label: int | None = None) -> Self:
        """The curve of a .csv file that `Schedule.to_csv` wrote."""
        return cls.of(read_csv(path), label)

    def sigmas(self, steps: int) -> Array:
        """steps + 1 noise levels at uniform times, in decreasing order; the last is exactly 0."""
        if steps < 1:
            raise BadRequestError(f"steps must be at least 1, got {steps}")
        times = np.linspace(self.t[-1], 0, steps + 1)[:-1]
        return np.append(np.exp(np.interp(times, self.t, self.logs)), 0.0)


def sigma_text(sigmas: Array, form: Form = "json", *, flow: bool = False) -> str:
    """Noise levels, the last of them 0, in the format of another program.

    - "json": a list, for ``torch.tensor(json.loads(text))`` as the sigmas of k-diffusion's samplers.
    - "comfyui": the text of ComfyUI's ManualSigmas, whose reader knows no exponents.
    - "sd.cpp": the value of stable-diffusion.cpp's ``--sigmas``.

    With `flow` they are s = σ / (1 + σ), which those programs call σ of flow-matching models (Flux, SD3, Wan).

    >>> sigma_text(np.array([14.6, 0.5, 0.00001, 0.0]), "comfyui")
    '14.6, 0.5, 0.00001, 0'
    >>> sigma_text(np.array([3.0, 1.0, 0.0]), "sd.cpp", flow=True)
    '0.75,0.5,0'
    """
    values = np.asarray(sigmas, np.float64)
    if flow:
        values = values / (1 + values)
    if form == "json":
        return json.dumps(values.tolist())
    if form not in ("comfyui", "sd.cpp"):
        raise BadRequestError(f"form must be json, comfyui or sd.cpp, got {form!r}")
    texts = (np.format_float_positional(v, precision=8, unique=True, fractional=False, trim="-") for v in values)
    return (", " if form == "comfyui" else ",").join(texts)
