"""What the server finds for few evaluations (`make_schedule(…, "few")`), measured like any other sampler."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pandas as pd
from tqdm.auto import tqdm

from anisoflight.compare.bench import Bench, Sampler
from studies.measuring import require_count

if TYPE_CHECKING:
    from anisoflight import Client

    from .stages import Clock

NFES = (3, 5, 9)


@dataclass
class Few:
    """The schedules of kind few of a model, one for each NFE, and the name of their rows in a table."""

    name: str
    model: str
    dataset: str
    _found: dict[int, dict[str, Any]] = field(default_factory=dict)

    def make(self, client: Client, clock: Clock, seed: int) -> None:
        """Let the server find start, noise levels and solver for each NFE."""
        options = {"model": self.model, "dataset": self.dataset, "seed": seed, "replace": True}
        for nfe in NFES:
            with clock.stage(f"few at {nfe} evaluations on {self.model}: start, levels and solver"):
                made = client.make_schedule(self._schedule(nfe), "few", nfe=nfe, **options)
            self._found[nfe] = made.info["few"]["chosen"]

    def sampler(self, nfe: int) -> Sampler:
        """Sampling with what was found for nfe evaluations."""
        return Sampler(self.name, self.model, {"schedule": self._schedule(nfe)}, "")

    def measure(self, bench: Bench) -> pd.DataFrame:
        """Its rows for `measuring.measure`'s table. They may start from another law than the probes of the ODE error,
        which is left empty.
        """
        rows = []
        for nfe in tqdm(NFES, desc="few", unit="row"):
            found = bench.distances(self.sampler(nfe), nfe)
            require_count(self.name, nfe, found.evaluations)
            rows.append({"sampler": self.name, "nfe": nfe, **found.by_reference, "seconds": found.seconds})
        return pd.DataFrame(rows)

    def chosen(self) -> pd.DataFrame:
        """What was found: a row for each NFE."""
        rows = []
        for nfe, best in self._found.items():
            start = "the data's normal law" if best["start"] == "matched" else "noise"
            rows.append((nfe, best["solver"], start, f"{best['sigma_max']:g}"))
        return pd.DataFrame(rows, columns=pd.Index(["NFE", "solver", "starts from", "at σ"]))

    def _schedule(self, nfe: int) -> str:
        return f"{self.model}-few-{nfe}"
