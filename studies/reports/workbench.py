"""One network of a problem, the real images that its samples are compared with, and the cells measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anisoflight.fid.builtin import classifier_features, principal_features
from studies.demo.distances import Bench, Reference, Sampler

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anisoflight import Client
    from anisoflight.files.cells import Cells
    from studies.demo.data import Data

    from .networks import Problem

FD, FD_TRAIN = "FD", "FD to train"


class Workbench:
    """Measures the samplers of the problem's network on a server, unless their cells are kept.

    FD is to held-out images: of digits on a classifier's hidden units, of patches on 40 principal components. Seeds
    are the same for every sampler, so that differences can be taken seed by seed.
    """

    def __init__(self, client: Client, problem: Problem, split: Data, cells: Cells) -> None:
        self.client, self.problem, self.split, self.cells = client, problem, split, cells
        self.network = client.describe_model(problem.name)["hash"][:12]
        train = split.train
        if problem.name == "digits":
            features, _ = classifier_features(train.images, train.labels)
        else:
            features = principal_features(train.images, 40)
        self.references = {FD: Reference(features, split.test.images), FD_TRAIN: Reference(features, train.images)}

    def distances(self, sampler: Sampler, nfe: int, count: int, seeds: Sequence[int]) -> dict[str, list[float]]:
        """The Fréchet distances to held-out and training images, a list over seeds; empty if they are not kept."""
        key = {"problem": self.problem.name, "network": self.network, "sampler": sampler.name, "nfe": nfe}
        key |= {"count": count, "seeds": list(seeds)}
        bench = Bench(self.client, self.references, seeds, count)
        return self.cells.measured(key, lambda: bench.distances(sampler, nfe).by_reference)
