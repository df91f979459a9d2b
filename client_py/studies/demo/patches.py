"""Experiment (ii), patches of photographs: what an anisotropic schedule buys, and what is not settled.

The network sees the ratio of the two subspaces' variances (ratio embedding) and is trained on anisotropic noise. The
subspaces are low and high spatial frequencies (DCT, max(u, v) < 2, k = 4 per channel).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from anisoflight.bench import Bench, Reference, Sampler, value
from anisoflight.metrics import principal_features

from . import data, figures, stages
from .energy import EnergyMeter, energy_table
from .report import layout

if TYPE_CHECKING:
    from anisoflight import Client

    from .checks import Checks
    from .report import Report

NFES = (5, 9)
CONVERGED = 15  # evaluations after which the Frechet distance no longer depends on the solver
PRETRAIN = stages.recipe("patches-pretrain")
LEARN = {stage: stages.recipe(f"patches-{stage}") for stage in ("isotropic", "anisotropic")}
T, KNOTS = 80.0**2, 32
C = LEARN["isotropic"]["c"]

EDM = "EDM Heun"
ISOTROPIC = "isotropic, Heun"
ANISOTROPIC = "anisotropic, Heun"
IPNDM = "iPNDM-4, ρ = 7"
AB3_ISOTROPIC = "isotropic, Adams–Bashforth 3"
AB3_ANISOTROPIC = "anisotropic, Adams–Bashforth 3"

FD, FD_PIXELS = "FD", "FD, all pixels"


def run(client: Client, report: Report, checks: Checks, seed: int) -> None:
    """Train, learn both schedules, measure, and write the experiment's part of the report."""
    patches = data.patches()
    client.put_dataset("patches", patches.train.images, patches.train.labels, replace=True)
    _, seconds = stages.train(client, "patches-pretrain", {**PRETRAIN, "seed": seed}, save="patches")
    cost = [("network, EDM's loss on anisotropic noise, 800 steps × 128", seconds)]

    client.make_schedule("patches-start", "edm", T=T, knots=KNOTS, replace=True)
    geodesic = stages.geodesic(
        client, "patches-geodesic", model="patches", dataset="patches", T=T, knots=KNOTS, c=C, seed=seed
    )
    cost.append(("isotropic geodesic in one pass", geodesic.seconds))
    learning: dict[str, list[float]] = {}
    for stage, config in LEARN.items():
        rows, seconds = stages.train(client, f"patches-{stage}", {**config, "seed": seed}, save=f"patches-{stage}")
        learning[stage] = rows["energy"].tolist()
        cost.append((f"{stage} schedule, 200 steps × 64", seconds))

    meter = EnergyMeter(client, "patches", patches.train, c=C, n=4096, seed=seed)
    energies = {name: meter.measure(f"patches-{name}") for name in ("start", "geodesic", "isotropic", "anisotropic")}
    isotropic, anisotropic = energies["isotropic"], energies["anisotropic"]
    gain = isotropic.minus(anisotropic)
    curves = client.schedule("patches-anisotropic").evaluate(points=512)
    ratio = curves[curves["subspace"] == 0]["g"].to_numpy() / curves[curves["subspace"] == 1]["g"].to_numpy()
    checks.at_most("patches: E anisotropic / E isotropic", anisotropic.mean / isotropic.mean, 0.97)
    checks.at_least("patches: energy gain in paired standard errors", gain.mean / gain.stderr, 3)
    checks.at_least("patches: max g₁/g₂", ratio.max(), 2)

    bench = _bench(client, patches, seed)
    table = bench.measure(list(SAMPLERS.values()), NFES)
    limits = bench.measure([SAMPLERS[AB3_ISOTROPIC], SAMPLERS[AB3_ANISOTROPIC]], [CONVERGED])
    table = pd.concat([table, limits], ignore_index=True)
    for name in (ISOTROPIC, ANISOTROPIC):
        quotient = value(table, name, 9, FD) / value(table, EDM, 9, FD)
        checks.at_most(f"patches: FD {name} / {EDM}, NFE 9", quotient, 0.5)

    real = [reference.distance(patches.train.images) for reference in bench.references.values()]

    report.heading("Patches of photographs: what anisotropy buys")
    report.text(
        "Real data: 8 × 8 colour crops of scikit-learn's two sample photographs, one class each. Low frequencies "
        "(subspace 1) and high frequencies (subspace 2) get paths of their own, g₁ and g₂; both start as the "
        "isotropic geodesic. One network serves every row; it is told the ratio g₁/g₂."
    )
    for nfe in NFES:
        report.figure(_pictures(client, nfe, seed), f"{nfe} evaluations, same latents and labels in every panel.")
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
        figures.energy_curves(
            learning, {"isotropic geodesic": energies["geodesic"].mean, "isotropic bound": geodesic.bound}
        ),
        "The loss while the schedules are learned. The bound is that of isotropic schedules; an anisotropic one may "
        "go below it.",
    )
    report.table(
        energy_table(energies),
        f"Energy E = T² · loss on the same {len(gain.samples)} evaluations, ± standard error. Isotropic minus "
        f"anisotropic, paired: {gain.mean:.2f} ± {gain.stderr:.2f}, that is {gain.mean / gain.stderr:.0f} standard "
        f"errors or {100 * gain.mean / isotropic.mean:.1f} %.",
    )
    report.table(
        layout(table),
        f"Fréchet distance on 40 principal components and on all 192 pixel values, {bench.count} samples × "
        f"{len(bench.seeds)} seeds, mean ± half the range; real training crops have {real[0]:.2f} and {real[1]:.2f}. "
        "The leading components are low frequencies: grain shows in the second column. The ODE error is to each path's "
        "own converged sample: the isotropic and the anisotropic path are different maps, and their errors cannot be "
        f"compared. The rows at NFE {CONVERGED} are near each path's limit: what remains there is the network's, not "
        "the solver's, and it differs between the paths.",
    )
    report.table(stages.cost_table(cost), "What it cost, on this machine.")
    report.text(
        "The gain in energy is certain. Whether it shows in the Fréchet distance changes from network to network and "
        "seed to seed at this size: read the learned rows with their spread, and conclude nothing from one run. "
        "Against EDM's Heun both learned schedules win clearly; against a multistep solver on EDM's grid they may not."
    )


_HEUN = {"solver": "heun", "second_point": "endpoint"}
_EDM = {"grid": "edm", "schedule": "edm"}
SAMPLERS = {
    s.name: s
    for s in (
        Sampler(EDM, "patches", {**_HEUN, **_EDM}, "isotropic"),
        Sampler(ISOTROPIC, "patches-isotropic", _HEUN, "isotropic"),
        Sampler(ANISOTROPIC, "patches-anisotropic", _HEUN, "anisotropic"),
        Sampler(IPNDM, "patches", {"solver": "ipndm", **_EDM}, "isotropic"),
        Sampler(AB3_ISOTROPIC, "patches-isotropic", {"solver": "ab"}, "isotropic"),
        Sampler(AB3_ANISOTROPIC, "patches-anisotropic", {"solver": "ab"}, "anisotropic"),
    )
}


def _bench(client: Client, patches: data.Data, seed: int) -> Bench:
    references = {
        FD: Reference(principal_features(patches.train.images, 40), patches.test.images),
        FD_PIXELS: Reference(principal_features(patches.train.images, 192), patches.test.images),
    }
    bench = Bench(client, references, seeds=(10**8 * seed, 10**8 * seed + 5 * 10**7), count=5_000)
    bench.converged("isotropic", SAMPLERS[EDM].with_options(steps=45))
    bench.converged("anisotropic", SAMPLERS[AB3_ANISOTROPIC].with_options(steps=90))
    return bench


def _pictures(client: Client, nfe: int, seed: int) -> str:
    labels = [i % 2 for i in range(40)]
    panels = {}
    for name in (EDM, ISOTROPIC, ANISOTROPIC):
        drawn = SAMPLERS[name].draw(client, labels=labels, nfe=nfe, seed=seed)
        panels[f"{name}, NFE {nfe}"] = drawn.images
    return figures.picture_grid(panels, across=3)
