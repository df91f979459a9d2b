"""Patches of photographs: anisotropic schedules against a plain network, the fair comparison.

The plain network is trained on isotropic noise, as everybody trains. The anisotropic one has the same size, data and
budget, is trained on anisotropic noise and sees the ratio of the two subspaces' variances (ratio embedding). The
subspaces are low and high spatial frequencies (DCT, max(u, v) < 2, k = 4 per channel).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from anisoflight.compare.bench import Bench, Reference, Sampler
from anisoflight.compare.metrics import principal_features
from studies.features import clipped_gaussian, edge_features
from studies.measuring import measure, value

from . import data, figures, stages
from .checks import missing
from .energy import EnergyMeter, energy_table
from .few import NFES, Few
from .report import layout, pm

if TYPE_CHECKING:
    from anisoflight import Client

    from .checks import Checks
    from .report import Report
    from .stages import Clock

LEARN = {stage: stages.recipe(f"patches-{stage}") for stage in ("isotropic", "anisotropic")}
NETWORKS = {"patches-plain": "plain", "patches-pretrain": "anisotropic"}  # by recipe
T, KNOTS = 80.0**2, 32
C = LEARN["isotropic"]["c"]

EDM = "plain network, EDM Heun"
IPNDM = "plain network, iPNDM-4"
FEW = "plain network, few"
ISOTROPIC = "plain network, learned isotropic, Heun"
AB3_ISOTROPIC = "plain network, learned isotropic, AB3"
ANISOTROPIC = "anisotropic network, learned J = 2, Heun"
AB3_ANISOTROPIC = "anisotropic network, learned J = 2, AB3"
NOTHING = "clipped Gaussian, no evaluation"

FD, EDGES = "FD", "edge FD"


def run(client: Client, report: Report, checks: Checks, clock: Clock, seed: int) -> pd.DataFrame:
    """Train, learn both schedules, measure, and write the experiment's part of the report; returns its table."""
    patches = data.patches()
    client.put_dataset("patches", patches.train.images, patches.train.labels, replace=True)
    learning, energies, bounds = {}, {}, {}
    for recipe, kind in NETWORKS.items():
        model = LEARN["isotropic" if kind == "plain" else kind]["model"]
        config = {**stages.recipe(recipe), "seed": seed}
        with clock.stage(f"patches: {kind} network, EDM's loss, 800 steps × 128"):
            stages.train(client, f"{model}-pretrain", config, save=model)
        with clock.stage(f"patches: geodesic of the {kind} network"):
            options = {"model": model, "dataset": "patches", "T": T, "knots": KNOTS, "c": C, "seed": seed}
            bounds[kind] = stages.geodesic(client, f"{model}-geodesic", **options)
    few = Few(FEW, "patches-plain", "patches")
    few.make(client, clock, seed)
    client.make_schedule("patches-start", "edm", T=T, knots=KNOTS, replace=True)
    for stage, config in LEARN.items():
        with clock.stage(f"patches: {stage} schedule, 200 steps × 64, and its energy"):
            rows = stages.train(client, f"patches-{stage}", {**config, "seed": seed}, save=f"patches-{stage}")
            meter = EnergyMeter(client, config["model"], patches.train, c=C, n=4096, seed=seed)
            energies[stage] = meter.measure(f"patches-{stage}")
        learning[stage] = rows["energy"].tolist()

    isotropic, anisotropic = energies["isotropic"], energies["anisotropic"]
    gain = isotropic.minus(anisotropic)
    curves = client.schedule("patches-anisotropic").evaluate(points=512)
    ratio = curves[curves["subspace"] == 0]["g"].to_numpy() / curves[curves["subspace"] == 1]["g"].to_numpy()
    checks.at_most("patches: E anisotropic / E plain", anisotropic.mean / isotropic.mean, 0.98)
    checks.at_least("patches: max g₁/g₂", ratio.max(), 2)

    with clock.stage("patches: samples of every row of the table"):
        bench = _bench(client, patches, seed)
        table = measure(bench, list(SAMPLERS.values()), NFES)
        before = table["sampler"].isin([EDM, IPNDM])
        table = pd.concat([table[before], few.measure(bench), table[~before]], ignore_index=True)
    lost = missing(table, list(SAMPLERS), NFES, [FD, EDGES, "ode_error"]) + missing(table, [FEW], NFES, [FD, EDGES])
    checks.at_most("patches: distances and errors that are missing or no numbers", lost, 0, required=True)
    for name, most in ((ISOTROPIC, 0.75), (IPNDM, 0.4), (AB3_ANISOTROPIC, 0.4)):
        quotient = value(table, name, 9, FD) / value(table, EDM, 9, FD)
        checks.at_most(f"patches: FD {name} / {EDM}, NFE 9", quotient, most)
    for column, most in ((FD, 1), (EDGES, 0.75)):
        quotient = value(table, FEW, 3, column) / value(table, IPNDM, 3, column)
        checks.at_most(f"patches: {column} {FEW} / {IPNDM}, NFE 3", quotient, most)

    train, references = patches.train.images, bench.references.values()
    drawn = clipped_gaussian(train, bench.count, seed)
    nothing, real = ([reference.distance(images) for reference in references] for images in (drawn, train))

    report.heading("Patches of photographs: anisotropic schedules against a plain network")
    report.text(
        "Real data: 8 × 8 colour crops of scikit-learn's two sample photographs, one class each. The baseline is a "
        "plain network, trained on isotropic noise, sampled with iPNDM-4 on the literature's grid of n + 1 noise "
        "levels: nothing is learned for it. “few” is what the server finds on the same network: a start from the "
        "data's own normal law, noise levels and a solver. The anisotropic network has the same size, data and "
        "budget; low frequencies (subspace 1) and high frequencies (subspace 2) get learned paths of their own, g₁ "
        "and g₂.",
        *_headline(table),
    )
    report.table(
        pd.concat([layout(table), _nothing(nothing)], ignore_index=True).fillna("–"),
        f"Two Fréchet distances to held-out crops, {bench.count} samples × {len(bench.seeds)} seeds, mean ± half the "
        "range: on 40 principal components, which see mean and covariance alone, and on random convolutions, which see "
        f"edges; real training crops have {real[0]:.2f} and {real[1]:.2f}. The spread is that of drawing from one "
        "network: networks trained with other seeds differ by more (studies/docs/fair.md has five of each). The ODE "
        "error is to each path's own converged sample; paths of two networks are different maps, and their errors "
        "cannot be compared.",
    )
    for nfe in NFES:
        report.mosaics(_pictures(client, few, nfe, seed), f"{nfe} evaluations, same latents and labels in every panel.")
    report.figure(
        figures.schedule_curves(
            {
                "EDM's grid": client.schedule("patches-start").evaluate(),
                "isotropic": client.schedule("patches-isotropic").evaluate(),
                "anisotropic": client.schedule("patches-anisotropic").evaluate(),
            },
            "noise variance over time, T = 80²",
        ),
        "Solid: low frequencies, or all of them; dashed: high frequencies.",
    )
    report.figure(figures.ratio_curve(curves), "The learned ratio of the two variances. At 1 the noise is isotropic.")
    report.figure(
        figures.energy_curves(learning, {"plain network, isotropic bound": bounds["plain"].bound}),
        "The loss while the schedules are learned, each on its own network. The bound is that of isotropic schedules "
        "on the plain one.",
    )
    report.table(
        energy_table({f"{stage} schedule on its own network": energy for stage, energy in energies.items()}),
        f"Energy E = T² · loss on the same {len(gain.samples)} images, noise and times, ± standard error. Isotropic "
        f"minus anisotropic, paired: {gain.mean:.2f} ± {gain.stderr:.2f}, that is "
        f"{100 * gain.mean / isotropic.mean:.1f} %.",
    )
    return table


def _headline(table: pd.DataFrame) -> list[str]:
    """What the baseline, few and the best anisotropic sampler have at each NFE, a sentence each, and what holds."""
    sentences = []
    for nfe in NFES:
        here = table[table["nfe"] == nfe].set_index("sampler")
        anisotropic = min((ANISOTROPIC, AB3_ANISOTROPIC), key=lambda name: sum(here.loc[name, FD]))
        words = [f"{name} {pm(here.loc[name, FD])}" for name in (IPNDM, FEW, anisotropic)]
        sentences.append(f"FD at {nfe} evaluations: {'; '.join(words)}.")
    holds = (
        "Over five networks of each kind few is far better than iPNDM-4 at three evaluations, and anisotropic "
        "schedules do not beat iPNDM-4 on a plain network at this size. Against Heun's method any learned schedule "
        "wins clearly."
    )
    return [*sentences, holds]


def _nothing(distances: list[float]) -> pd.DataFrame:
    """The row of what is drawn from the data's mean and covariance."""
    row = {"sampler": NOTHING, "NFE": 0, FD: pm(distances[:1]), EDGES: pm(distances[1:])}
    return pd.DataFrame([row])


_HEUN = {"solver": "heun", "second_point": "endpoint"}
_EDM = {"grid": "edm", "schedule": "edm"}
SAMPLERS = {
    s.name: s
    for s in (
        Sampler(EDM, "patches-plain", {**_HEUN, **_EDM}, "isotropic"),
        Sampler(IPNDM, "patches-plain", {"solver": "ipndm", "grid": "polynomial", "schedule": "edm"}, "isotropic"),
        Sampler(ISOTROPIC, "patches-isotropic", _HEUN, "isotropic"),
        Sampler(AB3_ISOTROPIC, "patches-isotropic", {"solver": "ab"}, "isotropic"),
        Sampler(ANISOTROPIC, "patches-anisotropic", _HEUN, "anisotropic"),
        Sampler(AB3_ANISOTROPIC, "patches-anisotropic", {"solver": "ab"}, "anisotropic"),
    )
}


def _bench(client: Client, patches: data.Data, seed: int) -> Bench:
    references = {
        FD: Reference(principal_features(patches.train.images, 40), patches.test.images),
        EDGES: Reference(edge_features(patches.train.images), patches.test.images),
    }
    bench = Bench(client, references, seeds=(10**8 * seed, 10**8 * seed + 5 * 10**7), count=4_000)
    bench.converged("isotropic", SAMPLERS[EDM].with_options(steps=45))
    bench.converged("anisotropic", SAMPLERS[AB3_ANISOTROPIC].with_options(steps=90))
    return bench


def _pictures(client: Client, few: Few, nfe: int, seed: int) -> dict[str, str]:
    labels = [i % 2 for i in range(40)]
    panels = {}
    for name in (EDM, IPNDM, FEW, AB3_ANISOTROPIC):
        sampler = few.sampler(nfe) if name == FEW else SAMPLERS[name]
        drawn = sampler.draw(client, labels=labels, nfe=nfe, seed=seed)
        panels[name] = drawn.images
    return figures.mosaics(panels)
