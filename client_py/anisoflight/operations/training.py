"""The operations on training runs, and runs."""

import time
from collections.abc import Iterator
from typing import Any

import pandas as pd

from ..errors import AnisoflightError, UnavailableError, say, warn
from ..wire.calls import Connection, Message, joined
from ..wire.listing import frame_of
from ..wire.progress import Bar
from ..wire.tensors import to_numpy
from . import documented

_PATIENCE = 5.0  # seconds for the step that an interrupt falls into; a second interrupt ends the wait


def _info_property(name: str, doc: str) -> Any:
    """A property that returns a field of `Run.info`."""
    return property(lambda run: run.info.get(name), doc=doc)


class Run:
    """A training run on the server, by name. It outlives the client.

    >>> run = client.create_run("doc-run", stage="pretrain", dataset="blocks", model="digits", batch=8, T=400)
    >>> run.step(2)["step"].tolist()
    [1, 2]
    >>> run.cancel()
    >>> run.delete()
    """

    def __init__(self, client: Connection, name: str) -> None:
        self._client = client
        self.name = name

    def __repr__(self) -> str:
        """The state, the size of the network, and the time of a step if it is known."""
        try:
            info = self.info
        except AnisoflightError as error:
            return f"Run({self.name!r}, {error.code})"
        size = f", {info['parameters']:,} parameters" if info.get("parameters") else ""
        speed = f", {info['step_seconds']:.2g} s a step" if info.get("step_seconds") else ""
        if not speed and info.get("seconds") and "config" in info:
            speed = f", {info['config']['kimg']:g} kimg in about {info['seconds'] / 60:.2g} min"
        return f"Run({self.name!r}, {info['state']!r}{size}{speed})"

    @property
    def info(self) -> dict[str, Any]:
        """The run as the server describes it: its settings, state and last step."""
        return self._client.call("GetRun", run=self.name)

    @property
    def state(self) -> str:
        """created, running, paused, done, cancelled, failed, or broken if its files cannot be read.

        It is running while it trains in the background or in `step`. A paused run can be started.
        """
        return self.info["state"]

    stored_step = _info_property("stored_step", "The last step on the server's disk.")
    store_error = _info_property("store_error", "Why the server could not store the run, or None; it tries again.")
    restored = _info_property("restored", "Damage of the last stored state, and where the run continued, or None.")
    stopped = _info_property("stopped", "Why it stopped by itself: reason (diverged), step and message; or None.")

    def step(self, steps: int = 1, progress: bool = True) -> pd.DataFrame:
        """Train for a number of steps now and return their rows.

        An interrupt (Ctrl-C) ends the training and returns the rows so far, with ``rows.attrs["interrupted"]`` and a
        line on stderr. The server keeps the steps; `step` continues from there, also from another client.
        """
        kept = "its steps are kept: step() continues, save() saves it, metrics() shows all rows"
        return self._follow("TrainStep", {"run": self.name, "steps": steps}, progress, kept)

    def start(self, kimg: float | None = None) -> None:
        """Train in the background until `kimg` thousand images have been seen in all; by default the run's own kimg."""
        self._client.call("StartRun", run=self.name, kimg=kimg)

    def watch(self, from_: int = 0) -> Iterator[dict[str, Any]]:
        """The rows after step `from_`, as they are made, until the run is paused, done or cancelled."""
        for message in self._client.stream("WatchRun", {"run": self.name, "from": from_}):
            yield from message.batch.to_pylist()

    def metrics(self) -> pd.DataFrame:
        """The rows so far, also while the run trains.

        They hold the loss, energy and rates; the estimate's standard error and its cosine to the previous one; and the
        share and standard error of each of its terms. docs/wire.md lists the columns.
        """
        last = int(self.info["step"])

        def so_far() -> Iterator[Message]:
            for message in self._client.stream("WatchRun", {"run": self.name, "from": 0}):
                yield message
                if last == 0 or (message.batch.num_rows and to_numpy(message.batch["step"])[-1] >= last):
                    return

        return joined(so_far()).to_pandas()

    def wait(self, progress: bool = True) -> pd.DataFrame:
        """Wait for a background run and return its rows. An interrupt stops the waiting, not the run."""
        kept = "it continues in the background: wait() follows it again, pause() stops it"
        before = self.info.get("notes", [])
        rows = self._follow("WatchRun", {"run": self.name, "from": 0}, progress, kept)
        info = self.info
        warn(f"run {self.name}: {note}" for note in info.get("notes", [])[len(before) :])
        stopped = info.get("stopped")
        if stopped and len(rows) and stopped["step"] == rows["step"].iloc[-1]:
            warn([f"run {self.name} stopped: {stopped['message']}"])
        return rows

    def _follow(self, op: str, request: dict[str, Any], progress: bool, kept: str) -> pd.DataFrame:
        """All rows of op, or those before an interrupt, with a progress bar."""
        before = self.info
        target = before.get("target_kimg", 0.0)
        bar = Bar("train", "step", request.get("steps"), progress)

        def noted() -> Iterator[Message]:
            for message in bar.over(self._client.stream(op, request)):
                if "warning" in message.event:
                    warn([f"run {self.name}: {message.event.pop('warning')}"])
                if message.batch.num_rows:
                    row = message.batch.slice(message.batch.num_rows - 1).to_pylist()[0]
                    if "steps" not in request and target:
                        total = round(row["step"] * target / row["kimg"])
                        bar.follow({"event": "batch", "done": row["step"], "total": total})
                    bar.note(f"{row['seconds']:.2g} s a step, loss {row['loss']:.3g}")
                yield message

        try:
            return joined(noted()).to_pandas()
        except UnavailableError as error:
            raise UnavailableError(
                f"{error.message}; the run {self.name} is kept up to its last checkpoint: start the server again, then "
                f"client.run({self.name!r}).step() or .start() continues",
                error.code,
            ) from error
        except KeyboardInterrupt:
            rows = self._rows_after(before["step"]) if "steps" in request else self.metrics()
            last = f" after step {rows['step'].iloc[-1]}" if len(rows) else ""
            say(f"run {self.name} was interrupted{last}; {kept}")
            rows.attrs["interrupted"] = True
            return rows

    def _rows_after(self, before: int) -> pd.DataFrame:
        """The rows after step `before`, including steps that the server took before it noticed an interrupt."""
        end = time.monotonic() + _PATIENCE
        while self.state == "running" and time.monotonic() < end:
            time.sleep(0.02)
        rows = self.metrics()
        return rows[rows["step"] > before].reset_index(drop=True)

    def pause(self) -> None:
        """Stop after the current step; `start` and `step` continue."""
        self._client.call("PauseRun", run=self.name)

    def cancel(self) -> None:
        """End the run permanently."""
        self._client.call("CancelRun", run=self.name)

    def save(self, name: str, replace: bool = False, force: bool = False) -> None:
        """Write the averaged weights and the schedule as the model `name`, from the best state if the run keeps it.

        It prints the gain over the start. It warns if the average is mostly the start, if the learning rate has not
        fallen because the run was stopped early, and if the schedule's gradient is noise. A network whose last loss or
        answers are not finite is a `NotFiniteError`; `force` saves it all the same.
        """
        saved = self._client.call("SaveModel", run=self.name, name=name, replace=replace, force=force or None)
        if "outcome" in saved:
            print(saved["outcome"]["summary"])
        warn(f"run {self.name}: {warning}" for warning in saved.get("warning", "").splitlines())

    def delete(self) -> None:
        """Delete the run and its files."""
        self._client.call("DeleteRun", run=self.name)


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
