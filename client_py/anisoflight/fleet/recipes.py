"""Recipes as a graph of Ray's tasks: every distinct command of ``python -m anisoflight.recipe`` once.

A stage that makes something works in a data folder of its own, DATA/fleet/NAME, which has what is there already by
links. So stages need not wait for one server, each has the GPU of its node, and a run that was lost with its node goes
on from its last stored state. What it has made is put into DATA as a whole when it is done. Distances are measured by
actors (`sampling`).
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..fid.errors import FidError
from ..files.locks import exclusive
from ..files.temporary import TemporaryFolder
from ..recipe.stages import MEASURES, Stage, after
from ..serve import find_binary, serve
from .folders import bring
from .sampling import joined

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

KINDS = ("datasets", "models", "bases", "schedules")
"""Folders of a data folder whose entries are written once, as a whole."""
_RETRIES = 4  # of a task whose node was lost


@dataclass(frozen=True)
class Cluster:
    """Where stages are done: the same paths on every node."""

    data: Path
    folder: Path
    """In which the commands stand."""
    actors: int
    address: str


@dataclass
class Step:
    """A stage, and the commands that must have ended before."""

    stage: Stage
    after: set[str] = field(default_factory=set)

    @property
    def title(self) -> str:
        return f"{self.stage.kind} {self.stage.makes}".strip()


def graph(recipes: Iterable[list[Stage]]) -> dict[str, Step]:
    """Every distinct stage of recipes, by its command, with all that it waits for in any of them; tables last.

    >>> stages = [Stage("data", "a", ("A",)), Stage("basis", "b", ("B",))]
    >>> [(step.title, sorted(step.after)) for step in graph([stages, stages]).values()]
    [('data a', []), ('basis b', ['A'])]
    """
    found: dict[str, Step] = {}
    for stages in recipes:
        for stage, before in zip(stages, after(stages), strict=True):
            step = found.setdefault(stage.command, Step(stage))
            step.after |= {stages[place].command for place in before}
    return dict(sorted(found.items(), key=lambda item: item[1].stage.kind == "table"))


def do_all(steps: dict[str, Step], place: Cluster, measures: bool, say: Any = print) -> None:
    """Do the stages, each as soon as those before it have ended. What fails keeps back what waits for it alone."""
    ray = joined(place.address or None)
    address = ray.get_runtime_context().gcs_address
    place = Cluster(place.data, place.folder, place.actors, address)
    gpus = 1 if ray.cluster_resources().get("GPU") else 0
    task = ray.remote(max_retries=_RETRIES)(do)
    names: dict[Any, Step] = {}
    promises: dict[str, Any] = {}
    for command, step in steps.items():
        stage = step.stage
        if stage.kind in MEASURES and not measures:
            continue
        own = gpus if stage.trains or stage.kind in ("basis", "reference") else 0
        cpus = 0 if stage.kind in ("fid", "table") else 1  # actors have them
        before = [promises[other] for other in sorted(step.after)]
        promises[command] = task.options(num_cpus=cpus, num_gpus=own).remote(stage, place, *before)
        names[promises[command]] = step
    failed, open_promises = [], list(names)
    while open_promises:
        (promise,), open_promises = ray.wait(open_promises, num_returns=1)
        step = names[promise]
        try:
            say(f"{step.title}: {ray.get(promise)}")
        except ray.exceptions.RayError as error:
            cause = getattr(error, "cause", None) or error
            while (inner := getattr(cause, "cause", None)) is not None:
                cause = inner
            failed.append(f"{step.title}: {cause}")
    if failed:
        raise FidError("\n".join([f"{len(failed)} of {len(names)} stages failed", *dict.fromkeys(failed)]), "FLEET")


def do(stage: Stage, place: Cluster, *_: object) -> str:
    """Do one stage; gives a word on it. The rest are the words of those before it."""
    program, *words = stage.words
    words = [sys.executable if program == "python" else find_binary(), *words]
    if stage.kind == "table":
        return "\n" + _run(words, place)
    if stage.kind == "fid":
        shared = ["--ray", str(place.actors), "--ray-address", place.address, "--data", str(place.data), "--quiet"]
        return _run([*words, *shared], place)
    if stage.kind == "reference":
        if Path(stage.makes).exists():
            return "is there"
        with TemporaryFolder() as folder:
            own = folder.path / "data"
            own.mkdir()
            bring(place.data, own, ("datasets",))
            with serve(data=own) as client:
                words[words.index("--server") + 1] = client.location
                return _run([*words, "--quiet"], place)
    return _make(stage, words, place)


def _make(stage: Stage, words: list[str], place: Cluster) -> str:
    """Make what is not there, in a folder of its own that other programs keep out of meanwhile."""
    made = stage.path(place.data)
    own = place.data / "fleet" / stage.makes
    with exclusive(own.with_name(own.name + ".lock")):
        if made.exists():
            return "is there"
        own.mkdir(parents=True, exist_ok=True)
        bring(place.data, own, KINDS)
        if stage.trains and (own / "runs" / stage.makes).exists():
            words = [words[0], "train", "--data", str(own), "--name", stage.makes, "--resume"]
        else:
            words = [_moved(word, place.data, own) for word in words]
        told = _run(words, place)
        bring(own, place.data, (*KINDS, "runs"))
        shutil.rmtree(own)
    return told


def _moved(word: str, data: Path, own: Path) -> str:
    """A word of a command with the stage's own folder in the place of the data folder."""
    if word == str(data):
        return str(own)
    return str(own / word.removeprefix(f"{data}/")) if word.startswith(f"{data}/") else word


def _run(words: Sequence[str], place: Cluster) -> str:
    done = subprocess.run(words, cwd=place.folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise FidError(f"{shlex.join(words)}\n{done.stderr.strip()[-2000:]}", "FLEET")
    return done.stdout.strip()
