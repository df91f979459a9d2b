"""Training runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from .tensors import to_numpy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .client import Client


class Run:
    """A training run on the server, by name. It outlives the client.

    >>> run = client.create_run("doc-run", stage="isotropic", dataset="blocks", model="digits", batch=8)
    >>> run.step(2)["step"].tolist()
    [1, 2]
    >>> run.cancel()
    >>> run.delete()
    """

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self.name = name

    def __repr__(self) -> str:
        return f"Run({self.name!r}, {self.state!r})"

    @property
    def info(self) -> dict[str, Any]:
        """The run as the server describes it: its settings, state and last step."""
        return self._client.call("GetRun", run=self.name)

    @property
    def state(self) -> str:
        """created, running, paused, done, cancelled or failed."""
        return self.info["state"]

    def step(self, steps: int = 1, progress: bool = True) -> pd.DataFrame:
        """Take training steps now and return their rows; the server keeps what was learned before an interrupt."""
        request = {"run": self.name, "steps": steps}
        table = self._client.table("TrainStep", request, "train", "step", total=steps, progress=progress)
        return table.to_pandas()

    def start(self, kimg: float) -> None:
        """Train in the background until `kimg` thousand images more have been seen."""
        self._client.call("StartRun", run=self.name, kimg=kimg)

    def watch(self, from_: int = 0) -> Iterator[dict[str, Any]]:
        """The rows from step `from_` on, each as it happens, until the run is paused, done or cancelled."""
        stream = self._client.stream("WatchRun", {"run": self.name, "from": from_})
        for message in stream:
            yield from message.batch.to_pylist()

    def metrics(self) -> pd.DataFrame:
        """The rows so far, of a run at work as well."""
        last = int(self.info["step"])
        batches = []
        for message in self._client.stream("WatchRun", {"run": self.name, "from": 0}):
            batches.append(message.batch)
            if last == 0 or (message.batch.num_rows and to_numpy(message.batch["step"])[-1] >= last):
                break
        return pd.concat([batch.to_pandas() for batch in batches], ignore_index=True)

    def wait(self, progress: bool = True) -> pd.DataFrame:
        """Follow a background run to its end; an interrupt stops the waiting, not the run."""
        for _ in self._client.follow("WatchRun", {"run": self.name, "from": 0}, "train", "step", progress=progress):
            pass
        return self.metrics()

    def pause(self) -> None:
        """Stop after the current step; `start` and `step` continue."""
        self._client.call("PauseRun", run=self.name)

    def cancel(self) -> None:
        """End the run for good."""
        self._client.call("CancelRun", run=self.name)

    def save(self, name: str, replace: bool = False) -> None:
        """Write the averaged weights and the schedule as the model `name`."""
        self._client.call("SaveModel", run=self.name, name=name, replace=replace)

    def delete(self) -> None:
        """Forget the run and its files."""
        self._client.call("DeleteRun", run=self.name)
