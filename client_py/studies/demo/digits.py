"""Handwritten digits: what a learned isotropic schedule buys on a plain network.

A small class-conditional network is trained with EDM's loss; then, with the network frozen, a schedule g(t) is learned
by the trajectory loss, and once more computed in one pass over the data (the geodesic).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from anisoflight.compare.bench import Bench, Reference, Sampler, value
from anisoflight.compare.metrics import classifier_features
from studies.features import edge_features

from . import data, figures, stages
from .energy import EnergyMeter, energy_table
from .report import layout, pm

if TYPE_CHECKING:
    from anisoflight import Client

    from .checks import Checks
    from .report import Report

NFES = (5, 7, 9)
CONVERGED = 25  # evaluations after which the Fréchet distance no longer depends on the solver
PRETRAIN = stages.recipe("digits-pretrain")
LEARN = stages.recipe("digits-isotropic")
T, C, KNOTS = LEARN["T"], LEARN["c"], LEARN["knots"]
MODES = ("full", "backprop", "explicit")

EDM80 = "EDM Heun, T = 80²"
EDM20 = "EDM Heun, T = 20²"
UNLEARNED = "unlearned, uniform in t, Heun"
GEODESIC = "geodesic, Heun"
LEARNED = "learned, Heun"
BACKPROP = "learned by backprop, Heun"
IPNDM = "iPNDM-4, T = 20²"
AB3 = "learned, Adams–Bashforth 3"

FD, FD_TRAIN, EDGES = "FD", "FD to train", "edge FD"


def run(client: Client, report: Report, checks: Checks, seed: int) -> None:
    """Train, learn, measure, and write the experiment's part of the report."""
    digits = data.digits()
    client.put_dataset("digits", digits.train.images, digits.train.labels, replace=True)
    _, seconds = stages.train(client, "digits-pretrain", {**PRETRAIN, "seed": seed}, save="digits")
    cost = [("network, EDM's loss, 1200 steps × 128", seconds)]

    learning: dict[str, list[float]] = {}
    for mode in MODES:
        config = {**LEARN, "estimator": mode, "seed": seed}
        rows, seconds = stages.train(client, f"digits-{mode}", config, save=f"digits-{mode}")
        learning[mode] = rows["energy"].tolist()
        cost.append((f"schedule, estimator {mode}, 200 steps × 64", seconds))
    client.make_schedule("digits-start", "edm", T=T, knots=KNOTS, replace=True)
    geodesic = stages.geodesic(
        client, "digits-geodesic", model="digits", dataset="digits", T=T, knots=KNOTS, c=C, seed=seed
    )
    cost.append(("schedule, geodesic in one pass", geodesic.seconds))

    meter = EnergyMeter(client, "digits", digits.train, c=C, n=4096, seed=seed)
    start, oracle = meter.measure("digits-start"), meter.measure("digits-geodesic")
    learned = {mode: meter.measure(f"digits-{mode}") for mode in MODES}
    checks.at_most("digits: E learned / E start", learned["full"].mean / start.mean, 0.75)
    checks.at_most("digits: E learned / E geodesic", learned["full"].mean / oracle.mean, 1.05)
    checks.at_least("digits: E explicit / E full", learned["explicit"].mean / learned["full"].mean, 1.0)

    bench = _bench(client, digits, seed)
    table = bench.measure(list(SAMPLERS.values()), NFES)
    _check_samplers(checks, table)
    real = bench.references[FD].distance(digits.train.images)
    floor = bench.distances(SAMPLERS[AB3], CONVERGED).by_reference

    report.heading("Digits: what a learned schedule buys")
    report.text(
        "Real data: the 1797 handwritten digits of scikit-learn, 8 × 8, ten classes; 1297 to train, 500 held out. "
        "The network is EDM's SongUNet (DDPM++) with 0.19 M parameters. It is trained once and then frozen, so every "
        "difference below comes from where the sampler evaluates it."
    )
    for nfe in (5, 9):
        report.mosaics(
            _pictures(client, nfe, seed),
            f"{nfe} evaluations of the network. Same latents and labels in every panel: the sampler alone differs.",
        )
    report.figure(
        figures.schedule_curves(
            {
                "EDM's grid (start)": client.schedule("digits-start").evaluate(),
                "learned": client.schedule("digits-full").evaluate(),
                "geodesic, one pass": client.schedule("digits-geodesic").evaluate(),
            },
            "noise variance over time, T = 20²",
        ),
        "The path learned by the estimator “full”, and the geodesic computed in one pass over the data. Both leave "
        "EDM's grid.",
    )
    report.figure(
        figures.energy_curves(learning, {"geodesic": oracle.mean, "bound": geodesic.bound}),
        "The loss while the schedule is learned, by estimator. No schedule can go below the bound; a path of "
        f"{KNOTS} knots cannot reach it.",
    )
    energies = {
        "start (EDM's grid)": start,
        **{f"learned, {mode}": energy for mode, energy in learned.items()},
        "geodesic, one pass": oracle,
    }
    report.table(
        energy_table(energies),
        f"Energy E = T² · loss on the same {len(start.samples)} evaluations, ± standard error; the bound is "
        f"{geodesic.bound:.1f} ± {geodesic.bound_stderr:.1f}. “explicit” leaves out how the network itself depends on "
        "g: a diagnostic, not a method.",
    )
    report.table(
        layout(table),
        f"Fréchet distance (classifier features) to held-out and to training digits, and to training digits on random "
        f"convolutions, which see edges; {bench.count} samples × {len(bench.seeds)} seeds, mean ± half the range. Real "
        f"training digits have {real:.2f}, the network's samples after {CONVERGED} evaluations {pm(floor[FD])}, "
        f"{pm(floor[FD_TRAIN])} to train and {pm(floor[EDGES])}. iPNDM-4 is on the literature's grid of n + 1 noise "
        "levels, the strongest sampler that learns nothing. ODE error: "
        "rms distance per pixel to the converged sample of the same latent. NFE as counted by the server.",
    )
    report.figure(
        figures.error_curves(table[table["sampler"] != EDM80]),
        "Nearly free of noise: how far a sample is from where its latent would end with many evaluations.",
    )
    report.table(stages.cost_table(cost), "What it cost, on this machine.")
    report.text(
        "“learned” is the schedule of the estimator “full”; the one learned by “backprop” stands beside it. Compare "
        "their energies with their errors: the least energy is not the least error of a given solver."
    )
    report.text(
        "What it buys nothing: with a multistep solver EDM's own levels are near the floor of the Fréchet distance at "
        "NFE 5 already, so the large factors above are over Heun's method; there the learned schedule lowers the ODE "
        "error at five evaluations, and hardly at nine. Anisotropic and per-class schedules gain nothing on digits "
        "(predicted energy gain: 2 % at most)."
    )


_HEUN = {"solver": "heun", "second_point": "endpoint"}
_EDM20 = {"grid": "edm", "schedule": "digits-start"}  # up to the schedule's end
SAMPLERS = {
    s.name: s
    for s in (
        Sampler(EDM80, "digits", {**_HEUN, "grid": "edm", "schedule": "edm"}, "80"),
        Sampler(EDM20, "digits", {**_HEUN, **_EDM20}, "20"),
        Sampler(UNLEARNED, "digits", {**_HEUN, "schedule": "digits-start"}, "20"),
        Sampler(GEODESIC, "digits", {**_HEUN, "schedule": "digits-geodesic"}, "20"),
        Sampler(BACKPROP, "digits-backprop", _HEUN, "20"),
        Sampler(LEARNED, "digits-full", _HEUN, "20"),
        Sampler(IPNDM, "digits", {**_EDM20, "solver": "ipndm", "grid": "polynomial"}, "20"),
        Sampler(AB3, "digits-full", {"solver": "ab"}, "20"),
    )
}


def _bench(client: Client, digits: data.Data, seed: int) -> Bench:
    features, _ = classifier_features(digits.train.images, digits.train.labels)
    train = digits.train.images
    references = {
        FD: Reference(features, digits.test.images),
        FD_TRAIN: Reference(features, train),
        EDGES: Reference(edge_features(train), train),
    }
    bench = Bench(client, references, seeds=(10**6 * seed, 10**6 * seed + 5 * 10**5), count=2000)
    bench.converged("80", SAMPLERS[EDM80].with_options(steps=45))
    bench.converged("20", SAMPLERS[EDM20].with_options(steps=45))
    return bench


def _check_samplers(checks: Checks, table: pd.DataFrame) -> None:
    def ratio(column: str, nfe: int, sampler: str, other: str) -> float:
        return value(table, sampler, nfe, column) / value(table, other, nfe, column)

    for nfe, most in zip(NFES, (0.5, 0.65, 0.75), strict=True):
        quotient = ratio("ode_error", nfe, LEARNED, UNLEARNED)
        checks.at_most(f"digits: ODE error learned / unlearned, Heun, NFE {nfe}", quotient, most)
    checks.at_most("digits: ODE error learned / EDM (T = 20²), NFE 5", ratio("ode_error", 5, LEARNED, EDM20), 0.25)
    checks.at_most("digits: FD learned / EDM (T = 80²), NFE 9", ratio(FD, 9, LEARNED, EDM80), 0.5)
    checks.at_most("digits: FD to train learned / EDM (T = 20²), NFE 5", ratio(FD_TRAIN, 5, LEARNED, EDM20), 0.4)
    checks.at_most("digits: ODE error AB3 learned / iPNDM-4, NFE 5", ratio("ode_error", 5, AB3, IPNDM), 0.85)


def _pictures(client: Client, nfe: int, seed: int) -> dict[str, str]:
    labels = [i % 10 for i in range(50)]
    panels = {}
    for name in (EDM80, EDM20, UNLEARNED, LEARNED):
        sampler = SAMPLERS[name]
        drawn = sampler.draw(client, labels=labels, nfe=nfe, seed=seed)
        panels[f"{name}, NFE {nfe}"] = drawn.images
    return figures.mosaics(panels)
