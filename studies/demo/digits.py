"""Handwritten digits: few evaluations, and what a learned isotropic schedule buys, on a plain network.

A small class-conditional network is trained with EDM's loss. With the network frozen, the server finds samplers for few
evaluations, a schedule g(t) is computed in one pass over the data (the geodesic), and one is learned by the trajectory
loss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from anisoflight.compare.bench import Bench, Reference, Sampler
from anisoflight.compare.metrics import classifier_features
from studies.features import edge_features
from studies.measuring import measure, value

from . import data, figures, stages
from .checks import missing
from .energy import EnergyMeter, energy_table
from .few import NFES, Few
from .report import Report, layout, pm

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from anisoflight import Client

    from .checks import Checks
    from .stages import Clock, Geodesic

FULL_NFES = (3, 5, 7, 9)
CONVERGED = 25  # evaluations after which the Fréchet distance no longer depends on the solver
PRETRAIN = stages.recipe("digits-pretrain")
LEARN = stages.recipe("digits-isotropic")
T, C, KNOTS = LEARN["T"], LEARN["c"], LEARN["knots"]
MODES = ("full", "backprop", "explicit")
AGREEMENT = 4  # standard errors that two estimates of one number may differ by

EDM80 = "EDM Heun, T = 80²"
EDM20 = "EDM Heun, T = 20²"
UNLEARNED = "unlearned, uniform in t, Heun"
GEODESIC = "geodesic, Heun"
LEARNED = "learned, Heun"
BACKPROP = "learned by backprop, Heun"
IPNDM80 = "iPNDM-4, T = 80²"
IPNDM = "iPNDM-4, T = 20²"
AB3 = "learned, Adams–Bashforth 3"
FEW = "few"

_HEUN = {"solver": "heun", "second_point": "endpoint"}
_IPNDM = {"solver": "ipndm", "grid": "polynomial"}
_EDM20 = {"grid": "edm", "schedule": "digits-start"}  # up to the schedule's end
SAMPLERS = {
    s.name: s
    for s in (
        Sampler(EDM80, "digits", {**_HEUN, "grid": "edm", "schedule": "edm"}, "80"),
        Sampler(IPNDM80, "digits", {**_IPNDM, "schedule": "edm"}, "80"),
        Sampler(EDM20, "digits", {**_HEUN, **_EDM20}, "20"),
        Sampler(UNLEARNED, "digits", {**_HEUN, "schedule": "digits-start"}, "20"),
        Sampler(GEODESIC, "digits", {**_HEUN, "schedule": "digits-geodesic"}, "20"),
        Sampler(BACKPROP, "digits-backprop", _HEUN, "20"),
        Sampler(LEARNED, "digits-full", _HEUN, "20"),
        Sampler(IPNDM, "digits", {**_IPNDM, "schedule": "digits-start"}, "20"),
        Sampler(AB3, "digits-full", {"solver": "ab"}, "20"),
    )
}
SHORT = (EDM80, IPNDM80, IPNDM, LEARNED, AB3)
PICTURES = (EDM80, IPNDM80, FEW, LEARNED, AB3)

FD, FD_TRAIN, EDGES = "FD", "FD to train", "edge FD"
DISTANCES = (FD, FD_TRAIN, EDGES)


def run(
    client: Client, report: Report, checks: Checks, clock: Clock, seed: int, path: Path, *, full: bool
) -> pd.DataFrame:
    """Train, learn, measure, and write the experiment's part of the report; returns its table.

    As soon as there is a network its first pictures are the page at path, where the report will be.
    """
    digits = data.digits()
    client.put_dataset("digits", digits.train.images, digits.train.labels, replace=True)
    client.make_schedule("digits-start", "edm", T=T, knots=KNOTS, replace=True)
    with clock.stage("digits: network, EDM's loss, 1200 steps × 128"):
        stages.train(client, "digits-pretrain", {**PRETRAIN, "seed": seed}, save="digits")
    _write_first(client, Report(report.title), seed, path)
    few = Few(FEW, "digits", "digits")
    few.make(client, clock, seed)
    with clock.stage("digits: geodesic, in one pass over the data"):
        options = {"model": "digits", "dataset": "digits", "T": T, "knots": KNOTS, "c": C, "seed": seed}
        geodesic = stages.geodesic(client, "digits-geodesic", **options)
    learning: dict[str, list[float]] = {}
    for mode in MODES if full else MODES[:1]:
        with clock.stage(f"digits: schedule, estimator {mode}, 200 steps × 64"):
            config = {**LEARN, "estimator": mode, "seed": seed}
            rows = stages.train(client, f"digits-{mode}", config, save=f"digits-{mode}")
        learning[mode] = rows["energy"].tolist()
    _check_learning(checks, learning["full"], geodesic)

    with clock.stage("digits: samples of every row of the table"):
        bench = _bench(client, digits, seed, full=full)
        samplers, nfes = (SAMPLERS, FULL_NFES) if full else (SHORT, NFES)
        table = measure(bench, [SAMPLERS[name] for name in samplers], nfes)
        before = table["sampler"].isin([EDM80, IPNDM80])
        table = pd.concat([table[before], few.measure(bench), table[~before]], ignore_index=True)
    lost = missing(table, list(samplers), nfes, [*DISTANCES, "ode_error"]) + missing(table, [FEW], NFES, DISTANCES)
    checks.at_most("digits: distances and errors that are missing or no numbers", lost, 0, required=True)
    _check_samplers(checks, table, full=full)

    report.heading("Digits: few evaluations, and a learned schedule")
    report.text(
        "Real data: the 1797 handwritten digits of scikit-learn, 8 × 8, ten classes; 1297 to train, 500 held out. "
        "The network is EDM's SongUNet (DDPM++) with 0.19 M parameters. It is trained once and then frozen, so every "
        "difference below comes from where the sampler evaluates it.",
        "“few” is what the server finds for a number of evaluations: a start, noise levels and a solver. The baseline "
        "is iPNDM-4 from noise at σ = 80, for which nothing is learned.",
        *_headline(table),
    )
    report.table(few.chosen(), "What few found.")
    for nfe in NFES:
        report.mosaics(
            _pictures(client, few, nfe, seed, PICTURES),
            f"{nfe} evaluations of the network. Same seeds and labels in every panel: the sampler alone differs.",
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
        figures.energy_curves(learning, {"geodesic": geodesic.energy, "bound": geodesic.bound}),
        "The loss while the schedule is learned, by estimator. No schedule can go below the bound; a path of "
        f"{KNOTS} knots cannot reach it.",
    )
    floor = ""
    if full:
        _energies(client, report, checks, clock, digits, geodesic, seed)
        with clock.stage(f"digits: samples of {CONVERGED} evaluations"):
            ends = bench.distances(SAMPLERS[AB3], CONVERGED).by_reference
        floor = (
            f", the network's samples after {CONVERGED} evaluations {pm(ends[FD])}, {pm(ends[FD_TRAIN])} to train and "
            f"{pm(ends[EDGES])}"
        )
    real = bench.references[FD].distance(digits.train.images)
    report.table(
        layout(table),
        f"Fréchet distance (classifier features) to held-out and to training digits, and to training digits on random "
        f"convolutions, which see edges; {bench.count} samples × {len(bench.seeds)} seeds, mean ± half the range. Real "
        f"training digits have {real:.2f}{floor}. iPNDM-4 is on the literature's grid of n + 1 noise levels, the "
        "strongest sampler that learns nothing. ODE error: "
        "rms distance per pixel to the converged sample of the same latent; few has none if it starts from another "
        "law. NFE as counted by the server.",
    )
    report.figure(
        figures.error_curves(table[~table["sampler"].isin([EDM80, IPNDM80, FEW])]),
        "Nearly free of noise: how far a sample is from where its latent would end with many evaluations.",
    )
    if full:
        report.text(
            "“learned” is the schedule of the estimator “full”; the one learned by “backprop” is next to it. "
            "Compare their energies with their errors: the least energy is not the least error of a given solver."
        )
    report.text(
        "What it buys nothing: with a multistep solver EDM's own levels are near the floor of the Fréchet distance at "
        "NFE 5 already, so the large factors of the learned schedule are over Heun's method; there the learned "
        "schedule lowers the ODE error at five evaluations, and hardly at nine. Anisotropic and per-class schedules "
        "gain nothing on digits (predicted energy gain: 2 % at most)."
    )
    return table


def redraw(client: Client, seed: int) -> np.ndarray:
    """Images of the digits' network along its stored schedule of kind few: the same ones in any process."""
    return _draw(client, Few(FEW, "digits", "digits").sampler(NFES[0]), NFES[0], seed)


def _bench(client: Client, digits: data.Data, seed: int, *, full: bool) -> Bench:
    features, _ = classifier_features(digits.train.images, digits.train.labels)
    train = digits.train.images
    references = {
        FD: Reference(features, digits.test.images),
        FD_TRAIN: Reference(features, train),
        EDGES: Reference(edge_features(train), train),
    }
    probes = 512 if full else 128
    bench = Bench(client, references, seeds=(10**6 * seed, 10**6 * seed + 5 * 10**5), count=2000, probes=probes)
    bench.converged("80", SAMPLERS[EDM80].with_options(steps=45))
    bench.converged("20", SAMPLERS[EDM20].with_options(steps=45))
    return bench


def _energies(
    client: Client, report: Report, checks: Checks, clock: Clock, digits: data.Data, geodesic: Geodesic, seed: int
) -> None:
    """Measure the energies of all schedules on the same evaluations."""
    with clock.stage("digits: energies of the schedules"):
        meter = EnergyMeter(client, "digits", digits.train, c=C, n=4096, seed=seed)
        start, oracle = meter.measure("digits-start"), meter.measure("digits-geodesic")
        learned = {mode: meter.measure(f"digits-{mode}") for mode in MODES}
    energies = {
        "start (EDM's grid)": start,
        **{f"learned, {mode}": energy for mode, energy in learned.items()},
        "geodesic, one pass": oracle,
    }
    below = oracle.minus(start)
    checks.at_most(
        "digits: E geodesic − E start, in standard errors", below.mean / below.stderr, AGREEMENT, required=True
    )
    checks.at_most("digits: E learned / E start", learned["full"].mean / start.mean, 0.75)
    checks.at_most("digits: E learned / E geodesic", learned["full"].mean / oracle.mean, 1.05)
    checks.at_least("digits: E explicit / E full", learned["explicit"].mean / learned["full"].mean, 1.0)
    report.table(
        energy_table(energies),
        f"Energy E = T² · loss on the same {len(start.samples)} evaluations, ± standard error; the bound is "
        f"{geodesic.bound:.1f} ± {geodesic.bound_stderr:.1f}. “explicit” leaves out how the network itself depends on "
        "g: a diagnostic, not a method.",
    )


def _check_learning(checks: Checks, energy: Sequence[float], geodesic: Geodesic) -> None:
    """The energy of the last steps is that of some schedule, and no schedule's is below the bound."""
    last = np.asarray(energy[-50:])
    error = np.hypot(last.std(ddof=1) / np.sqrt(len(last)), geodesic.bound_stderr)
    excess = (last.mean() - geodesic.bound) / error
    checks.at_least("digits: E learned − bound, in standard errors", excess, -AGREEMENT, required=True)
    checks.at_most("digits: E of the last 50 steps / of the first 5", last.mean() / np.mean(energy[:5]), 0.8)


def _check_samplers(checks: Checks, table: pd.DataFrame, *, full: bool) -> None:
    def ratio(column: str, nfe: int, sampler: str, other: str) -> float:
        return value(table, sampler, nfe, column) / value(table, other, nfe, column)

    for nfe in NFES:
        checks.at_most(f"digits: FD {FEW} / {IPNDM80}, NFE {nfe}", ratio(FD, nfe, FEW, IPNDM80), 1)
    checks.at_most(f"digits: edge FD {FEW} / {IPNDM80}, NFE 3", ratio(EDGES, 3, FEW, IPNDM80), 0.75)
    checks.at_most("digits: FD learned / EDM (T = 80²), NFE 9", ratio(FD, 9, LEARNED, EDM80), 0.5)
    checks.at_most("digits: ODE error AB3 learned / iPNDM-4, NFE 5", ratio("ode_error", 5, AB3, IPNDM), 0.85)
    if not full:
        return
    for nfe, most in zip((5, 7, 9), (0.5, 0.65, 0.75), strict=True):
        quotient = ratio("ode_error", nfe, LEARNED, UNLEARNED)
        checks.at_most(f"digits: ODE error learned / unlearned, Heun, NFE {nfe}", quotient, most)
    checks.at_most("digits: ODE error learned / EDM (T = 20²), NFE 5", ratio("ode_error", 5, LEARNED, EDM20), 0.25)
    checks.at_most("digits: FD to train learned / EDM (T = 20²), NFE 5", ratio(FD_TRAIN, 5, LEARNED, EDM20), 0.4)


def _headline(table: pd.DataFrame) -> list[str]:
    """The Fréchet distances of the baseline, few and the learned schedule at each NFE, a sentence each."""
    sentences = []
    for nfe in NFES:
        here = table[table["nfe"] == nfe].set_index("sampler")[FD]
        words = [f"{name} {pm(here.loc[name])}" for name in (IPNDM80, FEW, AB3)]
        sentences.append(f"FD at {nfe} evaluations: {'; '.join(words)}.")
    return sentences


def _write_first(client: Client, page: Report, seed: int, path: Path) -> None:
    page.text("The first pictures of the network. Samplers and schedules are being found; the report will be here.")
    few = Few(FEW, "digits", "digits")
    for nfe in NFES:
        pictures = _pictures(client, few, nfe, seed, (EDM80, IPNDM80))
        page.mosaics(pictures, f"{nfe} evaluations, same latents and labels.")
    page.write(path)
    print(f"   first pictures: {path.resolve()}", flush=True)


def _pictures(client: Client, few: Few, nfe: int, seed: int, names: Sequence[str]) -> Mapping[str, str]:
    samplers = {name: few.sampler(nfe) if name == FEW else SAMPLERS[name] for name in names}
    return figures.mosaics({f"{name}, NFE {nfe}": _draw(client, s, nfe, seed) for name, s in samplers.items()})


def _draw(client: Client, sampler: Sampler, nfe: int, seed: int) -> np.ndarray:
    return sampler.draw(client, labels=[i % 10 for i in range(50)], nfe=nfe, seed=seed).images
