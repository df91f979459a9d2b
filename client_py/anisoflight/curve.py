"""A schedule's noise levels without a server, in the forms that other programs take."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import pandas as pd

from .errors import BadRequestError
from .files import path_of

if TYPE_CHECKING:
    from os import PathLike

Array = np.ndarray[Any, Any]
Form = Literal["json", "comfyui", "sd.cpp"]


def read_csv(path: str | PathLike[str]) -> pd.DataFrame:
    """A table of a CSV file, also as spreadsheets save it: UTF-16, semicolons, and then perhaps decimal commas."""
    data = path_of(path).read_bytes()
    text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig", errors="replace")
    separator = ";" if ";" in text.partition("\n")[0] else ","
    decimal = "," if separator == ";" and "," in text else "."
    try:
        return pd.read_csv(io.StringIO(text), sep=separator, decimal=decimal)
    except ValueError as error:
        raise BadRequestError(f"{path} must be a table with columns t and g, got {error}", "BAD_SCHEDULE") from None


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
        """The curve of a table with columns t, g and, where needed, label and subspace; of one class, or of all."""
        if not {"t", "g"} <= {*knots}:
            raise BadRequestError(
                f"knots must have the columns t and g, got {', '.join(map(str, knots))}", "BAD_SCHEDULE"
            )
        knots = pd.DataFrame({"label": -1, "subspace": 0}, knots.index).assign(**knots)
        labels = sorted(set(knots["label"]))
        if len(labels) > 1 and label not in labels:
            got = "this schedule differs by class" if label is None else f"got {label}"
            raise BadRequestError(f"label must be one of {labels}: {got}")
        shown = knots[knots["label"] == label] if len(labels) > 1 else knots
        paths = [rows for _, rows in shown.groupby("subspace")]
        for path in paths:
            check_path(path["t"], path["g"])
        t = np.unique(np.concatenate([path["t"].to_numpy(np.float64) for path in paths]))
        logs = [np.interp(t, path["t"], 0.5 * np.log(path["g"])) for path in paths]
        return cls(t, np.mean(logs, axis=0))

    @classmethod
    def load(cls, path: str | PathLike[str], label: int | None = None) -> Self:
        """The curve of a .csv file that `Schedule.to_csv` wrote."""
        return cls.of(read_csv(path), label)

    def sigmas(self, steps: int) -> Array:
        """steps + 1 noise levels at uniform times, from the largest down; the last is exactly 0."""
        if steps < 1:
            raise BadRequestError(f"steps must be at least 1, got {steps}")
        times = np.linspace(self.t[-1], 0, steps + 1)[:-1]
        return np.append(np.exp(np.interp(times, self.t, self.logs)), 0.0)


def check_path(t: pd.Series[float], g: pd.Series[float]) -> None:
    """BadRequestError unless t increases from 0 and g increases and is positive, as the server wants them."""
    times, logs = t.to_numpy(np.float64), g.to_numpy(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        logs = np.log(logs)
    finite = np.isfinite([times, logs]).all()
    if len(times) < 2 or not finite or times[0] != 0 or np.diff(times).min() <= 0 or np.diff(logs).min() <= 0:
        raise BadRequestError(
            f"t must increase from 0 and g > 0 must increase, two knots or more, got t = {t.tolist()[:4]} and "
            f"g = {g.tolist()[:4]}",
            "BAD_SCHEDULE",
        )


def sigma_text(sigmas: Array, form: Form = "json", *, flow: bool = False) -> str:
    """Noise levels, the last of them 0, as another program takes them.

    - "json": a list, for ``torch.tensor(json.loads(text))`` as the sigmas of k-diffusion's samplers.
    - "comfyui": the text of ComfyUI's ManualSigmas: its reader knows no exponents.
    - "sd.cpp": the value of stable-diffusion.cpp's ``--sigmas``.

    With flow they are s = σ / (1 + σ), what those programs call σ of flow-matching models (Flux, SD3, Wan).

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
    texts = [
        np.format_float_positional(value, precision=8, unique=True, fractional=False, trim="-") for value in values
    ]
    return (", " if form == "comfyui" else ",").join(texts)
