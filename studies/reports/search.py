"""Where anisotropy gains most: a search without a network, on mixtures and Gaussians whose truth is known.

The model is the Gaussian mixture of the data set's classes with the variances of their DCT coefficients, whose score
is exact. Schedules are learned under it as they are under a network. The exact bench judges them by the squared
2-Wasserstein distance of a sampler to the data's Gaussian.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from . import schedules

if TYPE_CHECKING:
    from collections.abc import Mapping

    from anisoflight import Client

    from .networks import Problem
    from .workbench import Workbench

SOLVERS = ("ab", "dpmpp2m", "unipc")
NFES = (5, 9)


@dataclass(frozen=True)
class Grid:
    """The settings searched: horizons, weights, and lengths in thousand images; the bases are `bases`."""

    T: tuple[float, ...] = (20.0**2, 80.0**2)
    c: tuple[float, ...] = (1.0, 16.0)
    lengths: tuple[float, ...] = (12.8, 51.2)


@dataclass(frozen=True)
class Setting:
    """A basis, and how the schedule in it is learned."""

    family: Mapping[str, Any]
    T: float
    c: float
    kimg: float

    @property
    def name(self) -> str:
        return f"{text(self.family)}, T = {self.T:g}, c = {self.c:g}, {self.kimg:g} kimg"

    @property
    def slug(self) -> str:
        """What the names of its schedules end in."""
        family = "-".join(str(n) for n in self.family.get("cuts", [self.family.get("k", "isotropic")]))
        return f"{family}-t{self.T:g}-c{self.c:g}-{self.kimg:g}"


def bases(problem: Problem) -> list[dict[str, Any]]:
    """DCT bands: J = 2 at three cuts, and J = 4."""
    side = 16 if problem.name.endswith("16") else 8
    cuts = [1, side // 4, side // 2]
    return [{"basis": "dct", "k": cut * cut} for cut in cuts] + [{"basis": "dct", "cuts": cuts}]


def text(family: Mapping[str, Any]) -> str:
    """The name of a family of DCT bands.

    >>> text({"basis": "dct", "k": 4}), text({"basis": "dct", "cuts": [1, 2]}), text({"basis": "none"})
    ('DCT cut 2', 'DCT cuts 1, 2', 'isotropic')
    """
    if family.get("basis", "none") == "none":
        return "isotropic"
    if "cuts" in family:
        return "DCT cuts " + ", ".join(str(cut) for cut in family["cuts"])
    return f"DCT cut {round(family['k'] ** 0.5)}"


def search(bench: Workbench, grid: Grid) -> pd.DataFrame:
    """Learned schedules of every setting on the mixture, against the isotropic ones learned alike.

    Columns problem, basis, T, c, kimg, solver, nfe, w2_isotropic, w2_anisotropic and gain, their quotient.
    """
    client, problem = bench.client, bench.problem
    rows = []
    settings = [Setting(*one) for one in product(bases(problem), grid.T, grid.c, grid.lengths)]
    for setting in tqdm(settings, desc=f"{problem.name}: search"):

        def measure(setting: Setting = setting) -> dict[str, list[Any]]:
            mixture = f"{problem.name}-mixture"
            if mixture not in client.models().index:
                client.make_mixture(mixture, problem.name)
            names = [learn(client, problem, one, mixture) for one in (twin(setting), setting)]
            table = client.bench_schedule(problem.name, names, SOLVERS, NFES, progress=False)
            whole = table[table["subspace"] == -1]
            values = [whole[whole["schedule"] == name].set_index(["solver", "nfe"])["w2_squared"] for name in names]
            cells = [(solver, nfe) for solver in SOLVERS for nfe in NFES]
            return {"w2": [(*cell, float(values[0][cell]), float(values[1][cell])) for cell in cells]}

        key = {"problem": problem.name, "search": setting.name, "solvers": SOLVERS, "nfes": NFES}
        for solver, nfe, isotropic, anisotropic in bench.cells.measured(key, measure).get("w2", []):
            row = (problem.name, text(setting.family), setting.T, setting.c, setting.kimg, solver, nfe)
            rows.append((*row, isotropic, anisotropic, isotropic / anisotropic))
    columns = ["problem", "basis", "T", "c", "kimg", "solver", "nfe", "w2_isotropic", "w2_anisotropic", "gain"]
    return pd.DataFrame(rows, columns=pd.Index(columns))


def best(problem: Problem, table: pd.DataFrame) -> Setting:
    """The setting of the greatest mean of ln gain over solvers and NFE, of those with the two subspaces that the
    problem's network knows.
    """
    keys = ["basis", "T", "c", "kimg"]
    served = table[table["basis"].isin([text(family) for family in bases(problem) if "k" in family])]
    score = np.log(served.set_index(keys)["gain"]).groupby(level=keys).mean()
    basis, T, c, kimg = score.idxmax()  # pyright: ignore[reportGeneralTypeIssues]
    family = next(family for family in bases(problem) if text(family) == basis)
    return Setting(family, float(T), float(c), float(kimg))


def twin(setting: Setting) -> Setting:
    """The isotropic setting that is learned alike."""
    return replace(setting, family={"basis": "none"})


def learn(client: Client, problem: Problem, setting: Setting, model: str | None = None, *, kept: bool = False) -> str:
    """The schedule learned with a setting, under a model (default: the problem's network)."""
    adjusted = replace(problem, T=setting.T, c=setting.c)
    return schedules.learned(client, adjusted, setting.slug, setting.family, model=model, kimg=setting.kimg, kept=kept)


def nodes(bench: Workbench, grid: Grid) -> pd.DataFrame:
    """What solver-aware nodes reach on the bench: columns problem, T, basis, solver, nfe, w2_squared."""
    client, problem = bench.client, bench.problem
    families: list[dict[str, Any]] = [{}, *bases(problem)]
    rows = []
    for T, solver, nfe in product(grid.T, SOLVERS, NFES):

        def measure(T: float = T, solver: str = solver, nfe: int = nfe) -> dict[str, list[Any]]:
            found = []
            for family in families:
                name = schedules.nodes(client, replace(problem, T=T), solver, nfe, family, tag=f"-t{T:g}")
                table = client.bench_schedule(problem.name, [name], [solver], [nfe], progress=False)
                found.append((text(family), float(table[table["subspace"] == -1]["w2_squared"].iloc[0])))
            return {"w2": found}

        key = {"problem": problem.name, "nodes": [text(family) for family in families]}
        key |= {"T": T, "solver": solver, "nfe": nfe}
        for basis, value in bench.cells.measured(key, measure).get("w2", []):
            rows.append((problem.name, T, basis, solver, nfe, value))
    return pd.DataFrame(rows, columns=pd.Index(["problem", "T", "basis", "solver", "nfe", "w2_squared"]))
