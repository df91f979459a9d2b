"""The data sets of the reports and the one network that each has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from studies.demo import data, stages

if TYPE_CHECKING:
    from collections.abc import Callable

    from anisoflight import Client


@dataclass(frozen=True)
class Problem:
    """A data set, the horizon T and weight c of its schedules, and how its network is trained.

    Every network takes one log-ratio and is trained on anisotropic noise in the DCT family of k dimensions, so that it
    serves isotropic and anisotropic schedules alike (docs/method.md, section 3).
    """

    name: str
    load: Callable[[], data.Data]
    T: float
    c: float
    k: int
    recipe: str
    network: dict[str, Any]
    like: str | None = None
    """The problem whose best samplers are judged on this one too, four times as dear, with no choice of its own."""

    def config(self, seed: int, kimg: float) -> dict[str, Any]:
        """The training configuration: the recipe in configs/, on anisotropic noise, kimg thousand images long."""
        base = stages.recipe(self.recipe)
        noise = {key: value for key, value in stages.recipe("patches-pretrain").items() if key.startswith("p_")}
        return {
            **base,
            **noise,
            "dataset": self.name,
            "network": {**base["network"], **self.network},
            "family": {"basis": "dct", "k": self.k},
            "ratio_embedding": True,
            "kimg": kimg,
            "ema_halflife_kimg": 0.03 * kimg,
            "seed": seed,
        }


PROBLEMS = {
    problem.name: problem
    for problem in (
        Problem("digits", data.digits, T=20.0**2, c=1, k=16, recipe="digits-pretrain", network={}),
        Problem("patches8", data.patches, T=80.0**2, c=16, k=4, recipe="patches-pretrain", network={}),
        Problem(
            "patches16",
            lambda: data.patches(size=16),
            T=80.0**2,
            c=16,
            k=16,
            recipe="patches-pretrain",
            network={"img_resolution": 16, "channel_mult": [1, 2, 2], "attn_resolutions": [8, 4]},
            like="patches8",
        ),
    )
}
KIMG = 153.6  # 1200 steps of 128


def prepare(client: Client, problem: Problem, kimg: float = KIMG, seed: int = 1) -> data.Data:
    """Upload the problem's training split and train its network, unless the server has the model already."""
    split = problem.load()
    if problem.name not in client.models().index:
        client.put_dataset(problem.name, split.train.images, split.train.labels, replace=True)
        config = problem.config(seed, kimg)
        stages.train(client, f"{problem.name}-pretrain", config, save=problem.name)
    return split
