"""The solvers and schedules that the reports compare; a schedule is made once and kept on the server by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from studies.demo import stages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from anisoflight import Client

    from .networks import Problem

KNOTS = 32
SOLVERS: dict[str, dict[str, Any]] = {
    "Heun": {"solver": "heun", "second_point": "endpoint"},
    "AB3": {"solver": "ab"},
    "iPNDM-4": {"solver": "ipndm"},
    "2M": {"solver": "dpmpp2m"},
    "UniPC-3": {"solver": "unipc", "order": 3},
}
"""Options of Sample by the name of the solver."""


def geodesic(client: Client, problem: Problem, model: str, seed: int = 1) -> str:
    """The isotropic schedule of constant speed under a model, in one pass over the data."""
    name = f"{model}-geodesic-t{problem.T:g}-c{problem.c:g}"
    if name not in client.schedules().index:
        options = {"model": model, "dataset": problem.name, "T": problem.T, "c": problem.c}
        client.make_schedule(name, "geodesic", knots=KNOTS, seed=seed, **options)
    return name


def local(client: Client, problem: Problem, model: str, *, matched: float | None = None) -> str:
    """EDM's path to the problem's horizon with the statistics of a model's errors, for the solver local; matched: from
    the normal law of the training images at that noise level.
    """
    name = f"{model}-local"
    if name not in client.schedules().index:
        client.make_schedule(name, "geodesic", model=model, dataset=problem.name, T=problem.T, statistics=True)
    if matched is None:
        return name
    started = f"{name}-start-{matched:g}"
    if started not in client.schedules().index:
        options = {"dataset": problem.name, "schedule": name, "sigma_max": matched}
        client.make_schedule(started, "start", progress=False, **options)
    return started


def fitted(
    client: Client,
    problem: Problem,
    model: str,
    nfe: int,
    *,
    matched: float | None = None,
    isotropic: bool = False,
    whole: bool = False,
) -> str:
    """`local` with the coefficients of every step fitted to 192 trajectories of the model; isotropic: DPM-Solver++, its
    coefficients fitted to the same trajectories, the same for all frequencies; whole: of order 3 to the last step.
    """
    base = local(client, problem, model, matched=matched)
    name = f"{base}-fit-{nfe}" + ("-isotropic" if isotropic else "") + ("-whole" if whole else "")
    if name not in client.schedules().index:
        options = {"model": model, "schedule": base, "nfe": nfe, "isotropic": isotropic, "samples": 192, "seed": 5}
        if whole:
            options |= {"order": 3, "lower_order_final": False}
        client.make_schedule(name, "fit", progress=False, **options)
    return name


def learned(
    client: Client,
    problem: Problem,
    name: str,
    family: Mapping[str, Any],
    *,
    model: str | None = None,
    kimg: float = 12.8,
    seed: int = 1,
    kept: bool = False,
) -> str:
    """The schedule of a family learned from the geodesic with the network frozen, in steps of 64: a model MODEL-NAME.

    model is the problem's network unless another is named. If kept, it only returns the name.
    """
    model = model or problem.name
    name = f"{model}-{name}"
    if not kept and name not in client.models().index:
        config = {
            "order": 1,
            "stage": "isotropic" if family["basis"] == "none" else "anisotropic",
            "family": dict(family),
            "dataset": problem.name,
            "model": model,
            "schedule": geodesic(client, problem, model),
            "train_network": False,
            "estimator": "backprop",
            "c": problem.c,
            "batch": 64,
            "kimg": kimg,
            "schedule_lr": 0.02,
            "schedule_lr_warmup": 0.05 * kimg,
            "seed": seed,
        }
        stages.train(client, name, config, save=name)
    return name


def nodes(
    client: Client,
    problem: Problem,
    solver: str,
    nfe: int,
    family: Mapping[str, Any],
    *,
    tag: str = "",
) -> str:
    """The noise levels that suit a solver of nfe evaluations on the data's normal law (no network, no training). tag
    ends the name.
    """
    subspaces = "-".join(str(n) for n in family.get("cuts", [family.get("k", "none")]))
    name = f"{problem.name}-nodes-{solver}-{nfe}-{subspaces}{tag}"
    if name not in client.schedules().index:
        options = {"dataset": problem.name, "solver": solver, "nfe": nfe, "T": problem.T, **family}
        client.make_schedule(name, "gaussian", progress=False, **options)
    return name
