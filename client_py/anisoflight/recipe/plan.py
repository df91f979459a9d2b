"""What recipes would do, with an estimate of what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .recipe import network_report
from .stages import after, stages_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .recipe import Recipe
    from .stages import Place, Stage

_EVALUATIONS = {"pretrain": 3, "isotropic": 3, "anisotropic": 5}
"""Of a training step on one image, in evaluations of the network: forward and reverse, and the full estimator's."""
_KIMG = 1200  # of a run, by default


def plan(recipe: Recipe, place: Place, rate: float) -> dict[str, Any]:
    """The stages with their commands and costs, on a device that does `rate` floating-point operations a second."""
    d, report, stages = recipe.dataset, network_report(recipe), stages_of(recipe, place)
    found: list[dict[str, Any]] = []
    for stage, before in zip(stages, after(stages), strict=True):
        row = {"kind": stage.kind, "makes": stage.makes, "command": stage.command, "after": before}
        if stage.trains:
            row["settings"] = stage.request
        if cost := _cost(recipe, stage, report["flops"], rate):
            row["cost"] = cost
        found.append(row)
    return {
        "recipe": str(recipe.file),
        "dataset": recipe.name,
        "images": d.images,
        "shape": [d.resolution, d.resolution, d.channels],
        "classes": d.classes,
        "network": recipe.network_model,
        "type": report["model_type"],
        "parameters": report["parameters"],
        "flops": report["flops"],
        "flops_per_second": rate,
        "stages": found,
        "serve": f"anisoflight serve --data {place.data}",
        "hours": sum(row["cost"]["hours"] for row in found if "cost" in row),
    }


def _cost(recipe: Recipe, stage: Stage, flops: int, rate: float) -> dict[str, float] | None:
    """What the network computes in a stage; None if the stage does not use it."""
    if stage.trains:
        images = round(1000 * stage.request.get("kimg", _KIMG))
        evaluations = images * _EVALUATIONS[stage.request["stage"]]
    elif stage.kind == "fid":
        samples = sum(recipe.fid.counts)
        images, evaluations = samples * len(recipe.fid.nfe), samples * sum(recipe.fid.nfe)
    else:
        return None
    total = float(flops) * evaluations
    return {"images": images, "flops": total, "per_second": rate * images / total, "hours": total / rate / 3600}


def lines(plan: dict[str, Any]) -> Iterator[str]:
    """A plan for people."""
    height, width, channels = plan["shape"]
    classes = f"in {plan['classes']} classes" if plan["classes"] else "without classes"
    yield f"recipe {plan['recipe']}"
    yield f"data set {plan['dataset']}: {plan['images']} images of {height}×{width}×{channels}, {classes}"
    network = f"{plan['type']}, {plan['parameters']} parameters, {plan['flops'] / 1e9:.4g} GFLOP per image"
    yield f"network {plan['network']}: {network}"
    yield ""
    rate = f"{plan['flops_per_second'] / 1e12:.4g} TFLOP/s"
    yield f"estimates for {rate}, if all of the rate were reached; half of it is a good share"
    yield f"{'STAGE':<14}{'MAKES':<42}{'IMAGES':>9}{'GFLOP/IMAGE':>13}{'IMAGES/S':>10}{'HOURS':>9}"
    for number, stage in enumerate(plan["stages"], 1):
        row = f"{number} {stage['kind']}".ljust(14) + stage["makes"].ljust(42)
        if cost := stage.get("cost"):
            each = cost["flops"] / cost["images"] / 1e9
            row += f"{cost['images']:>9}{each:>13.4g}{cost['per_second']:>10.3g}{cost['hours']:>9.3g}"
        yield row.rstrip()
    yield f"{plan['hours']:.3g} hours in all"
    for number, stage in enumerate(plan["stages"], 1):
        if stage["kind"] == "reference":
            yield f"\n# for the rest, a server of the folder\n{plan['serve']} &"
        yield f"\n# {number} {stage['kind']}\n{stage['command']}"
