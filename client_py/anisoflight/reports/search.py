"""Where anisotropy gains most: a search without a network, on mixtures and Gaussians whose truth is known.

The model is the Gaussian mixture of the data set's classes with the variances of their DCT coefficients, whose score
is exact. Schedules are learned under it as they are under a network; what they are worth is told by the exact bench,
the squared 2-Wasserstein distance of a sampler to the data's Gaussian.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from . import schedules

if TYPE_CHECKING:
    from collections.abc import Mapping

    from anisoflight import Client

    from .networks import Problem

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


def bases(problem: Problem) -> list[dict[str, Any]]:
    """DCT bands: J = 2 at three cuts, and J = 4."""
    side = 16 if problem.name.endswith("16") else 8
    cuts = [1, side // 4, side // 2]
    return [{"basis": "dct", "k": cut * cut} for cut in cuts] + [{"basis": "dct", "cuts": cuts}]


def text(family: Mapping[str, Any]) -> str:
    """The name of a family of DCT bands."""
    if family["basis"] == "none":
        return "isotropic"
    return "DCT cuts " + ", ".join(str(cut) for cut in family.get("cuts", [round(family.get("k", 0) ** 0.5)]))


def search(client: Client, problem: Problem, grid: Grid) -> tuple[pd.DataFrame, Setting]:
    """Learned schedules of every setting on the mixture, and the one whose anisotropic schedule gains most.

    Columns problem, basis, T, c, kimg, solver, nfe, w2_isotropic, w2_anisotropic and gain, their quotient: of the
    isotropic and the anisotropic schedule learned alike. The chosen setting has the greatest mean of ln gain over
    solvers and NFE.
    """
    mixture = f"{problem.name}-mixture"
    if mixture not in client.models().index:
        client.make_mixture(mixture, problem.name)
    rows: list[dict[str, Any]] = []
    best, score = None, -np.inf
    settings = [
        Setting(family, T, c, kimg)
        for T in grid.T
        for c in grid.c
        for kimg in grid.lengths
        for family in bases(problem)
    ]
    for setting in tqdm(settings, desc=f"{problem.name}: search"):
        names = [schedule_of(client, problem, s, mixture) for s in (twin(setting), setting)]
        table = client.bench_schedule(problem.name, names, SOLVERS, NFES, progress=False)
        whole = table[table["subspace"] == -1].pivot(index=["solver", "nfe"], columns="schedule", values="w2_squared")
        gain = whole[names[0]] / whole[names[1]]
        if np.log(gain).mean() > score:
            best, score = setting, np.log(gain).mean()
        for (solver, nfe), values in whole.iterrows():  # pyright: ignore[reportGeneralTypeIssues]
            row = {"problem": problem.name, "basis": text(setting.family), "T": setting.T, "c": setting.c}
            row |= {"kimg": setting.kimg, "solver": solver, "nfe": nfe}
            row |= {"w2_isotropic": values[names[0]], "w2_anisotropic": values[names[1]]}
            rows.append({**row, "gain": values[names[0]] / values[names[1]]})
    assert best is not None
    return pd.DataFrame(rows), best


def twin(setting: Setting) -> Setting:
    """The isotropic setting that is learned alike."""
    return replace(setting, family={"basis": "none"})


def schedule_of(client: Client, problem: Problem, setting: Setting, model: str | None = None) -> str:
    """The schedule learned with a setting, under a model (default: the problem's network)."""
    family = "-".join(str(n) for n in setting.family.get("cuts", [setting.family.get("k", "isotropic")]))
    name = f"{family}-t{setting.T:g}-c{setting.c:g}-{setting.kimg:g}"
    adjusted = replace(problem, T=setting.T, c=setting.c)
    return schedules.learned(client, adjusted, name, setting.family, model=model, kimg=setting.kimg)


def nodes(client: Client, problem: Problem) -> pd.DataFrame:
    """What solver-aware nodes reach on the bench: columns problem, T, basis, solver, nfe, w2_squared."""
    rows = []
    families: list[dict[str, Any]] = [{}, *bases(problem)]
    for T in (20.0**2, 80.0**2):
        for solver in SOLVERS:
            for nfe in NFES:
                for family in families:
                    adjusted = replace(problem, T=T)
                    name = schedules.nodes(client, adjusted, solver, nfe, family, tag=f"-t{T:g}")
                    table = client.bench_schedule(problem.name, [name], [solver], [nfe], progress=False)
                    value = table[table["subspace"] == -1]["w2_squared"].iloc[0]
                    basis = text(family) if family else "isotropic"
                    rows.append((problem.name, T, basis, solver, nfe, value))
    return pd.DataFrame(rows, columns=pd.Index(["problem", "T", "basis", "solver", "nfe", "w2_squared"]))
