"""The operations on training runs."""

from typing import Any

import pandas as pd

from ..errors import warn
from ..listing import frame_of
from ..run import Run
from ..wire.calls import Connection
from . import documented


class Training(Connection):
    """Training runs; `Run` holds what can be done with one."""

    def runs(self) -> pd.DataFrame:
        """The training runs. A notebook shows the main columns; the frame has all."""
        return frame_of(self.call("ListRuns")["runs"], "state", "stage", "dataset", "step", "kimg", "target_kimg")

    @documented("CreateRun")
    def create_run(self, name: str, stage: str, dataset: str, **settings: Any) -> Run:
        """Create a training run: stage "pretrain", "isotropic" or "anisotropic", on a dataset.

        Settings are the training configuration's own names: model or network, schedule, family, batch, lr,
        schedule_lr, c, T, g0, knots, init, estimator, probes, train_network, seed and so on; each has a default.
        The run shows the size of its network at once, and the seconds of a step once it has taken two.
        """
        created = self.call("CreateRun", name=name, stage=stage, dataset=dataset, **settings)
        warn(created.get("notes", []))
        return Run(self, name)

    def run(self, name: str) -> Run:
        """The run of that name; `NotFoundError` if there is none."""
        run = Run(self, name)
        _ = run.info
        return run
