"""Noise schedules on the server."""

from __future__ import annotations

import base64
import io
from html import escape
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..curve import Curve, Form, sigma_text
from ..errors import AnisoflightError, NotFoundError
from ..files import path_of
from ..files.temporary import whole_file
from ..start import Start
from ..wire.calls import Connection
from ..wire.listing import frame_of
from ..wire.tensors import to_numpy
from .storage import FORMULAS, Vectors, vectors_of, write_with_basis


class Schedule:
    """A schedule on the server: noise variances g_j(t) for t in [0, T], per label and subspace.

        x_t = x_0 + Σ_j √g_j(t) P_j ε,    σ(t) = Π_j g_j(t)^{1/(2J)}

    g_j increases from about 0 to T (σ² of the largest noise). P_1 holds the low frequencies or leading components. J =
    1 is the ordinary, isotropic case, with g = σ².

    >>> frame = client.schedule("edm").evaluate(points=3)
    >>> frame["t"].tolist()
    [0.0, 3200.0, 6400.0]
    """

    def __init__(self, client: Connection, name: str, made: dict[str, Any] | None = None) -> None:
        self._client = client
        self._made = made
        self.name = name

    @property
    def info(self) -> dict[str, Any]:
        """The server's description of the schedule; after `Client.make_schedule`, the result of that."""
        if self._made:
            return self._made
        listed = frame_of(self._client.call("ListSchedules")["schedules"])
        if self.name not in listed.index:
            raise NotFoundError(f"no schedule is called {self.name!r}; see Client.schedules()", "SCHEDULE_NOT_FOUND")
        return listed.loc[self.name].dropna().to_dict()

    def __repr__(self) -> str:
        return f"Schedule({self.name!r})"

    def evaluate(
        self, points: int = 256, t: npt.ArrayLike | None = None, labels: npt.ArrayLike | None = None
    ) -> pd.DataFrame:
        """The curves at `points` uniform times in [0, T], or at the times t: columns label, subspace, t, g, gdot,
        sigma.

        Label −1 is the schedule shared by all classes. Rows are sorted by label, subspace and t.
        """
        times = {"points": points} if t is None else {"t": np.asarray(t, np.float64)}
        request = {"schedule": self.name, **times, "labels": None if labels is None else np.asarray(labels)}
        return self._client.table("EvaluateSchedule", request).to_pandas()

    def knots(self) -> pd.DataFrame:
        """The knots of the paths: columns label, subspace, t, g, as in `Client.put_schedule`. ln g is linear between
        them.
        """
        request = {"schedule": self.name, "knots": True}
        return self._client.table("EvaluateSchedule", request).to_pandas()[["label", "subspace", "t", "g"]]

    def curve(self, label: int | None = None) -> Curve:
        """The noise levels σ(t), for use without a server."""
        return Curve.of(self.knots(), label)

    def sigmas(self, steps: int, label: int | None = None, *, zero: bool = False) -> np.ndarray[Any, Any]:
        """The steps + 1 noise levels σ of grid "schedule" in decreasing order, for the solvers of other programs.

        σ is the geometric mean over the subspaces, exp(½ mean_j ln g_j). The last is that of g(0), about 3e-5; with
        `zero` it is exactly 0, as EDM's sampler needs it. A per-class schedule needs the label.

        >>> client.schedule("edm").sigmas(3, zero=True).round(2).tolist()
        [80.0, 9.71, 0.47, 0.0]
        """
        curve = self.curve(label)
        sigmas = curve.sigmas(steps)
        if not zero:
            sigmas[-1] = np.exp(curve.logs[0])
        return sigmas

    def sigma_text(self, steps: int, form: Form = "json", label: int | None = None, *, flow: bool = False) -> str:
        """`sigmas(steps, zero=True)` in a format of `anisoflight.curve.sigma_text`: "json", "comfyui" or "sd.cpp".

        >>> client.schedule("edm").sigma_text(3, "sd.cpp")
        '80,9.7143963,0.46898728,0'
        """
        return sigma_text(self.sigmas(steps, label, zero=True), form, flow=flow)

    # Files

    @property
    def file(self) -> dict[str, Any]:
        """The schedule file: all that the schedule holds, and its provenance."""
        return self._client.call("ExportSchedule", schedule=self.name)

    def vectors(self) -> Vectors | None:
        """The rows [k, H, W] of P_1 by label (−1 shared); None for the bases none, dct and haar."""
        if self.file["family"]["basis"] in FORMULAS:
            return None
        rows = self._client.table("Basis", {"schedule": self.name})
        return vectors_of(to_numpy(rows["label"]), to_numpy(rows["vector"]))

    @property
    def start(self) -> Start | None:
        """The law that sampling along the schedule starts from; None for noise alone."""
        if self.name == "edm" or "start" not in self.info:
            return None
        return Start(base64.b64decode(self._client.call("ExportStart", schedule=self.name)["file"]))

    @property
    def provenance(self) -> dict[str, Any] | None:
        """How, when and from what the schedule was made; None if unknown."""
        return self.file.get("provenance")

    def save(self, path: str | PathLike[str]) -> None:
        """Write the schedule file as JSON and, next to it, what the schedule has of basis.safetensors and
        start.safetensors. `Client.put_schedule` reads them.
        """
        write_with_basis(path_of(path), self.file, self.vectors(), self.start)

    def to_csv(self, path: str | PathLike[str] | None = None) -> str:
        """The knots as CSV with the columns label, subspace, t, g and every digit; also written to path if it is given.

        >>> print(client.put_schedule("two-knots", {"t": [0, 400], "g": [1e-9, 400]}, replace=True).to_csv())
        label,subspace,t,g
        -1,0,0.0,1e-09
        -1,0,400.0,400.0
        <BLANKLINE>
        """
        text = self.knots().to_csv(index=False)
        if path is not None:
            with whole_file(path) as file:
                file.write(text.encode())
        return text

    def plot(self, ax: Any = None, points: int = 513) -> Any:
        """Draw g_j(t) of every label by `anisoflight.figures.variances`; returns the matplotlib axes."""
        from ..figures import variances

        ax = variances(self.evaluate(points=points), ax)
        ax.set_title(self.name)
        return ax

    def _repr_html_(self) -> str:
        """The noise variances over time as SVG, if matplotlib is installed."""
        try:
            from matplotlib.figure import Figure

            from ..figures import variances

            curves = self.evaluate(points=65)
        except (ImportError, AnisoflightError):
            return f"<div><code>{escape(repr(self))}</code></div>"
        figure, svg = Figure(figsize=(4.6, 2.4), layout="constrained"), io.StringIO()
        variances(curves, figure.subplots())
        figure.savefig(svg, format="svg")
        drawn = svg.getvalue()[svg.getvalue().index("<svg") :]
        return f"<div><code>{escape(repr(self))}</code>{drawn}</div>"
