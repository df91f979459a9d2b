"""A schedule to draw: knots to drag, and measures of the result."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, cast

import anywidget
import numpy as np
import pandas as pd
import traitlets

from ..client import Client
from ..errors import AnisoflightError, BadRequestError
from ..fid.sources import CONVERGED
from ..files.schedules import FORMULAS
from ..schedule import Schedule
from .script import script

SOLVERS = ("ipndm", "heun", "dpmpp2m", "unipc")
SHOWN = ["paths", "nfe", "solver"]
"""The traits that are drawn and measured."""
_SMOOTH = 65  # points of the curves in the background
Path = dict[str, Any]
"""name, and the knots t and sigma of one subspace, from t = 0 to T."""


class ScheduleEditor(anywidget.AnyWidget):
    """Knots of a schedule's paths to drag, with two measures by the server, before and now:

    - W₂²: the distance of a solver with `nfe` evaluations to the data set's Gaussian, over its variance
      (`Client.bench_schedule`), if a data set is given.
    - ODE error: 100 × the rms distance per pixel of `probes` samples to the converged ones of the same path
      if a model is given.

    Both step uniformly in t. The drawing is at any moment the schedule `name` on the server, by default "NAME-drawn":
    sample with it, or `save` it under another name. `schedule` is the initial one, `knots` the number of knots per
    subspace, at even distances in ln g; the ends are fixed. A schedule that differs by class is refused, and a start of
    the schedule is dropped.

    Traits: `paths`, `nfe` and `solver` are shown; setting one of them measures again. `result` has the measures.
    """

    _esm = script("editor")
    curves = traitlets.List(traitlets.Dict()).tag(sync=True)
    original = traitlets.List(traitlets.Dict()).tag(sync=True)
    paths = traitlets.List(traitlets.Dict()).tag(sync=True)
    nfe = traitlets.Int(9).tag(sync=True)
    solver = traitlets.Unicode("ipndm").tag(sync=True)
    solvers = traitlets.List(traitlets.Unicode()).tag(sync=True)
    edit = traitlets.Dict().tag(sync=True)
    result = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        client: Client,
        schedule: str | Schedule = "edm",
        *,
        dataset: str | None = None,
        model: str | None = None,
        knots: int = 9,
        nfe: int = 9,
        solver: str = "ipndm",
        solvers: Sequence[str] = SOLVERS,
        probes: int = 64,
        name: str | None = None,
    ) -> None:
        if dataset is None and model is None:
            raise BadRequestError("the editor measures on a data set, a model or both: give one")
        if knots < 3:
            raise BadRequestError(f"knots must be at least 3, got {knots}")
        self._client = client
        self._source = client.schedule(schedule) if isinstance(schedule, str) else schedule
        self._dataset, self._model = dataset, model
        self.schedule = client.schedule(name or f"{self._source.name}-drawn")
        """The drawing, on the server."""
        self._family: dict[str, Any] = self._source.file["family"] if self._source.name != "edm" else {"basis": "none"}
        drawn = self._source.knots()
        if drawn["label"].nunique() > 1:
            raise BadRequestError(f"schedule must have the same paths for all classes, got {self._source.name!r}")
        self._probes = probes
        self._converged: Any = None
        self._before: dict[tuple[int, str], dict[str, float]] = {}
        paths, solvers = _paths(drawn, knots), list(dict.fromkeys([solver, *solvers]))
        super().__init__(
            curves=_paths(drawn, _SMOOTH), original=paths, paths=paths, nfe=nfe, solver=solver, solvers=solvers
        )
        self.observe(self._edited, names="edit")
        self.observe(self._set, names=SHOWN)
        self._measure()

    @property
    def knots(self) -> pd.DataFrame:
        """The drawing as `Client.put_schedule` takes it: columns label, subspace, t, g."""
        parts = [
            pd.DataFrame({"label": -1, "subspace": subspace, "t": path["t"], "g": np.square(path["sigma"])})
            for subspace, path in enumerate(self.paths)
        ]
        return pd.concat(parts, ignore_index=True)

    @property
    def measures(self) -> pd.DataFrame:
        """Columns before and now, a row for each measure."""
        return pd.DataFrame(self.result["measures"], columns=["name", "before", "now"]).set_index("name")

    def save(self, name: str, replace: bool = False) -> Schedule:
        """Store the drawing under another name."""
        return self._put(name, self.knots, replace)

    def reset(self) -> None:
        """Return to the initial schedule."""
        self.paths = self.original

    def _edited(self, change: Any) -> None:
        """Handle a change in the page."""
        self.unobserve(self._set, names=SHOWN)
        try:
            with self.hold_sync():
                for name in SHOWN:
                    setattr(self, name, change["new"][name])
                self._measure(change["new"]["number"])
        finally:
            self.observe(self._set, names=SHOWN)

    def _set(self, _: Any) -> None:
        """Handle a change in Python."""
        self._measure(self.result["number"])

    def _measure(self, number: int = 0) -> None:
        key, rows, message = (self.nfe, self.solver), [], ""
        try:
            if key not in self._before:
                self._before[key] = self._values(self._source.name)
            self._put(self.schedule.name, self.knots, True)
            now = self._values(self.schedule.name)
            rows = [{"name": name, "before": before, "now": now[name]} for name, before in self._before[key].items()]
        except AnisoflightError as error:
            message = str(error)
        self.result = {"number": number, "measures": rows, "message": message}

    def _values(self, schedule: str) -> dict[str, float]:
        """The measures of a schedule on the server."""
        values = {}
        if self._dataset is not None and self._family["basis"] in ("none", "dct"):  # the bases of bench_schedule
            rows = self._client.bench_schedule(self._dataset, [schedule], [self.solver], [self.nfe], progress=False)
            seen = (rows["subspace"] == -1) & (rows["label"] == -1)
            values["W₂²"] = float(rows.loc[seen, "w2_squared"].iloc[0])
        if self._model is not None:
            # All isotropic paths converge to the same samples.
            if len(self.original) > 1 or self._converged is None:
                self._converged = self._draw(schedule, CONVERGED)
            with warnings.catch_warnings():  # if fewer evaluations than nfe are used
                warnings.simplefilter("ignore")
                drawn = self._draw(schedule, {"solver": self.solver, "nfe": self.nfe})
            values["ODE error"] = 100 * float(np.sqrt(np.square(drawn.astype(np.float64) - self._converged).mean()))
        return values

    def _draw(self, schedule: str, options: Mapping[str, Any]) -> Any:
        """The samples for the ODE error, [probes, H, W, C]."""
        common = {"n": self._probes, "seed": 10**12, "dtype": "float32", "progress": False}
        return self._client.sample(cast("str", self._model), schedule=schedule, **common, **options).images

    def _put(self, name: str, knots: pd.DataFrame, replace: bool) -> Schedule:
        basis = self._family["basis"]
        if basis in FORMULAS:
            shape = {key: self._family[key] for key in ("k", "cuts") if self._family.get(key)}
            return self._client.put_schedule(name, knots, basis=basis, replace=replace, **shape)
        vectors = f"{name}-basis"
        self._client.put_basis(vectors, self._source.vectors(), replace=True)
        return self._client.put_schedule(name, knots, basis=vectors, replace=replace)


def _paths(curves: pd.DataFrame, knots: int) -> list[Path]:
    """The paths, with `knots` points each."""
    paths = []
    for subspace, rows in curves.groupby("subspace"):
        t, logs = rows["t"].to_numpy(), np.log(rows["g"].to_numpy())
        levels = np.linspace(logs[0], logs[-1], knots)
        times = np.interp(levels, logs, t)
        paths.append({"name": f"subspace {subspace}", "t": times.tolist(), "sigma": np.exp(levels / 2).tolist()})
    return paths
