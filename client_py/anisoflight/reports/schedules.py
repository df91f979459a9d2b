"""The schedules that the reports compare, each made once and kept on the server under its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anisoflight.demo import stages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from anisoflight import Client

    from .networks import Problem

KNOTS = 32


def edm(problem: Problem) -> dict[str, Any]:
    """EDM's grid as a schedule up to the problem's horizon, as Sample takes it."""
    return {"edm": {"T": problem.T}}


def geodesic(client: Client, problem: Problem, seed: int = 1) -> str:
    """The isotropic schedule of constant speed, in one pass over the data."""
    name = f"{problem.name}-geodesic"
    if name not in client.schedules().index:
        options = {"model": problem.name, "dataset": problem.name, "T": problem.T, "c": problem.c}
        client.make_schedule(name, "geodesic", knots=KNOTS, seed=seed, **options)
    return name


def learned(
    client: Client,
    problem: Problem,
    name: str,
    family: Mapping[str, Any] | None = None,
    *,
    kimg: float = 12.8,
    seed: int = 1,
    **settings: Any,
) -> str:
    """The schedule of a family learned from the geodesic with the network frozen, 200 steps × 64; a model of that name.

    Without a family, or with one of J = 1, the stage is isotropic.
    """
    name = f"{problem.name}-{name}"
    if name not in client.models().index:
        split = family is not None and family.get("basis", "none") != "none"
        config = {
            "stage": "anisotropic" if split else "isotropic",
            "dataset": problem.name,
            "model": problem.name,
            "schedule": geodesic(client, problem),
            "train_network": False,
            "estimator": "backprop",
            "c": problem.c,
            "batch": 64,
            "kimg": kimg,
            "schedule_lr": 0.02,
            "schedule_lr_warmup": 0.05 * kimg,
            "seed": seed,
            **settings,
        }
        if family is not None:
            config["family"] = dict(family)
        stages.train(client, name, config, save=name)
    return name


def nodes(client: Client, problem: Problem, solver: str, nfe: int, **family: Any) -> str:
    """The noise levels that suit a solver of nfe evaluations on the data's own Gaussian (no network, no training)."""
    words = [f"{key}{value}".replace(" ", "") for key, value in family.items() if key != "basis"]
    name = (
        "-".join([problem.name, "nodes", solver, str(nfe), *words]).replace("[", "").replace("]", "").replace(",", ".")
    )
    if name not in client.schedules().index:
        options = {"dataset": problem.name, "solver": solver, "nfe": nfe, "T": problem.T, **family}
        client.make_schedule(name, "gaussian", progress=False, **options)
    return name
