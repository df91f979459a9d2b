"""The operations on training runs."""

from typing import Any

import pandas as pd

from ..errors import warn
from ..listing import frame_of
from ..run import Run
from ..wire.calls import Connection
from . import documented


class Training(Connection):
    """Training runs; a `Run` is one of them."""

    def runs(self) -> pd.DataFrame:
        """The training runs. A notebook shows the main columns."""
        return frame_of(self.call("ListRuns")["runs"], "state", "stage", "dataset", "step", "kimg", "target_kimg")

    @documented("CreateRun")
    def create_run(self, name: str, stage: str, dataset: str, **settings: Any) -> Run:
        """Create a training run of stage "pretrain", "isotropic" or "anisotropic" on a data set.

        The settings are below; each has a default. The run shows the size of its network, and the seconds per step
        after two steps.
        """
        created = self.call("CreateRun", name=name, stage=stage, dataset=dataset, **settings)
        warn(created.get("notes", []))
        return Run(self, name)

    def run(self, name: str) -> Run:
        """The run of that name; `NotFoundError` if there is none."""
        run = Run(self, name)
        _ = run.info
        return run
