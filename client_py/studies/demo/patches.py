"""Patches of photographs: anisotropic schedules against a plain network, the fair comparison.

The plain network is trained on isotropic noise, as everybody trains. The anisotropic one has the same size, data and
budget, is trained on anisotropic noise and sees the ratio of the two subspaces' variances (ratio embedding). The
subspaces are low and high spatial frequencies (DCT, max(u, v) < 2, k = 4 per channel).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pandas as pd

from anisoflight.compare.bench import Bench, Reference, Sampler, require_count, value
from anisoflight.compare.metrics import principal_features
from studies.features import clipped_gaussian, edge_features

from . import data, figures, stages
from .energy import EnergyMeter, energy_table
from .report import Report, layout, pm

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from anisoflight import Client

    from .checks import Checks

NFES = (3, 5, 9)
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


def run(client: Client, report: Report, checks: Checks, seed: int, path: Path) -> pd.DataFrame:
    """Train, learn both schedules, measure, and write the experiment's part of the report; returns its table.

    As soon as there is a network its first pictures are the page at path, where the report will be.
    """
    patches = data.patches()
    client.put_dataset("patches", patches.train.images, patches.train.labels, replace=True)
    cost, learning, energies, bounds = [], {}, {}, {}
    for recipe, kind in NETWORKS.items():
        model = LEARN["isotropic" if kind == "plain" else kind]["model"]
        config = {**stages.recipe(recipe), "seed": seed}
        _, seconds = stages.train(client, f"{model}-pretrain", config, save=model)
        cost.append((f"{kind} network, EDM's loss, 800 steps × 128", seconds))
        if kind == "plain":
            _write_first(client, Report(report.title), seed, path)
        options = {"model": model, "dataset": "patches", "T": T, "knots": KNOTS, "c": C, "seed": seed}
        bounds[kind] = stages.geodesic(client, f"{model}-geodesic", **options)
    client.make_schedule("patches-start", "edm", T=T, knots=KNOTS, replace=True)
    for stage, config in LEARN.items():
        rows, seconds = stages.train(client, f"patches-{stage}", {**config, "seed": seed}, save=f"patches-{stage}")
        learning[stage] = rows["energy"].tolist()
        cost.append((f"{stage} schedule, 200 steps × 64", seconds))
        meter = EnergyMeter(client, config["model"], patches.train, c=C, n=4096, seed=seed)
        energies[stage] = meter.measure(f"patches-{stage}")

    isotropic, anisotropic = energies["isotropic"], energies["anisotropic"]
    gain = isotropic.minus(anisotropic)
    curves = client.schedule("patches-anisotropic").evaluate(points=512)
    ratio = curves[curves["subspace"] == 0]["g"].to_numpy() / curves[curves["subspace"] == 1]["g"].to_numpy()
    checks.at_most("patches: E anisotropic / E plain", anisotropic.mean / isotropic.mean, 0.98)
    checks.at_least("patches: max g₁/g₂", ratio.max(), 2)

    bench = _bench(client, patches, seed)
    table = bench.measure(list(SAMPLERS.values()), NFES)
    started = time.perf_counter()
    table = _with_few(client, bench, table, seed)
    cost.append(("few: start, levels and solver of the plain network for each NFE", time.perf_counter() - started))
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
        "network: networks trained with other seeds differ by more (docs/reports/fair.md has five of each). The ODE "
        "error is to each path's own converged sample; paths of two networks are different maps, and their errors "
        "cannot be compared.",
    )
    for nfe in NFES:
        report.mosaics(_pictures(client, nfe, seed), f"{nfe} evaluations, same latents and labels in every panel.")
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
    report.table(stages.cost_table(cost), "What it cost, on this machine.")
    return table


def _with_few(client: Client, bench: Bench, table: pd.DataFrame, seed: int) -> pd.DataFrame:
    """The table with rows of what the server finds for each NFE. They start from another law than the probes of the
    ODE error, which is left empty.
    """
    rows = []
    for nfe in NFES:
        options = {"model": "patches-plain", "dataset": "patches", "nfe": nfe, "seed": seed, "replace": True}
        client.make_schedule(f"patches-few-{nfe}", "few", **options)
        found = bench.distances(_few(nfe), nfe)
        require_count(FEW, nfe, found.evaluations)
        rows.append({"sampler": FEW, "nfe": nfe, **found.by_reference, "seconds": found.seconds})
    before = table["sampler"].isin([EDM, IPNDM])
    return pd.concat([table[before], pd.DataFrame(rows), table[~before]], ignore_index=True)


def _few(nfe: int) -> Sampler:
    return Sampler(FEW, "patches-plain", {"schedule": f"patches-few-{nfe}"}, "isotropic")


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


def _write_first(client: Client, page: Report, seed: int, path: Path) -> None:
    page.text("The first pictures of the plain network. Schedules are being learned; the report will be here.")
    for nfe in NFES:
        page.mosaics(_pictures(client, nfe, seed, (EDM, IPNDM)), f"{nfe} evaluations, same latents and labels.")
    page.write(path)
    print(f"first pictures: {path.resolve()}", flush=True)


def _pictures(
    client: Client, nfe: int, seed: int, names: Sequence[str] = (EDM, IPNDM, FEW, AB3_ANISOTROPIC)
) -> dict[str, str]:
    labels = [i % 2 for i in range(40)]
    panels = {}
    for name in names:
        sampler = _few(nfe) if name == FEW else SAMPLERS[name]
        drawn = sampler.draw(client, labels=labels, nfe=nfe, seed=seed)
        panels[name] = drawn.images
    return figures.mosaics(panels)
