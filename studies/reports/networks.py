"""The data sets of the reports and the networks that they have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from studies.demo import data, stages

if TYPE_CHECKING:
    from collections.abc import Callable

    from anisoflight import Client


@dataclass(frozen=True)
class Problem:
    """A data set, the horizon T and weight c of its schedules, and how its networks are trained.

    A plain network is EDM's own: isotropic noise, no further input. Any other takes one log-ratio and is trained on
    anisotropic noise in the DCT family of k dimensions, so that it serves isotropic and anisotropic schedules alike
    (docs/method.md, section 3).
    """

    name: str
    load: Callable[[], data.Data]
    T: float
    c: float
    k: int
    recipe: str
    network: dict[str, Any]

    def config(self, seed: int, kimg: float, *, plain: bool = False) -> dict[str, Any]:
        """The training configuration: the recipe in configs/, kimg thousand images long.

        The draw of the shared noise level, the size and the budget are the same for a plain network and any other.
        """
        base = stages.recipe(self.recipe)
        noise = stages.recipe("patches-plain" if plain else "patches-pretrain")
        anisotropic = {} if plain else {"family": {"basis": "dct", "k": self.k}, "ratio_embedding": True}
        return {
            **base,
            **{key: value for key, value in noise.items() if key.startswith("p_")},
            **anisotropic,
            "dataset": self.name,
            "network": {**base["network"], **self.network},
            "kimg": kimg,
            "ema_halflife_kimg": 0.03 * kimg,
            "seed": seed,
        }


PROBLEMS = {
    problem.name: problem
    for problem in (
        Problem("digits", data.digits, T=20.0**2, c=1, k=16, recipe="digits-pretrain", network={}),
        Problem("patches8", data.patches, T=80.0**2, c=16, k=4, recipe="patches-plain", network={}),
        Problem(
            "patches16",
            lambda: data.patches(size=16),
            T=80.0**2,
            c=16,
            k=16,
            recipe="patches-plain",
            network={"img_resolution": 16, "channel_mult": [1, 2, 2], "attn_resolutions": [8, 4]},
        ),
        Problem(
            "fields16",
            data.fields,
            T=80.0**2,
            c=16,
            k=16,
            recipe="patches-plain",
            network={
                "img_resolution": 16,
                "img_channels": 1,
                "channel_mult": [1, 2, 2],
                "attn_resolutions": [4],
            },
        ),
    )
}
IMAGES = ("digits", "patches8", "patches16")
KIMG = 153.6  # 1200 steps of 128


def prepare(client: Client, problem: Problem, kimg: float = KIMG, seed: int = 1) -> data.Data:
    """Upload the problem's training split and train its network, unless the server has the model already."""
    split = problem.load()
    train(client, problem, split, problem.name, problem.config(seed, kimg))
    return split


def train(client: Client, problem: Problem, split: data.Data, name: str, config: dict[str, Any]) -> str:
    """Train a network of the problem as the model of that name, unless the server has it; returns the name."""
    if problem.name not in client.datasets().index:
        client.put_dataset(problem.name, split.train.images, split.train.labels)
    if name not in client.models().index:
        stages.train(client, f"{name}-pretrain", config, save=name)
    return name
