"""Times and memory of both halves, taken in turn."""

from __future__ import annotations

import dataclasses
import math
import resource
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from .ours import Ours
    from .programs import Programs

_LEAST = 0.15  # seconds that a measurement lasts, by as many calls as that takes
OURS, INDUCTOR = "ours", "inductor"


@dataclasses.dataclass
class Time:
    """Seconds per call."""

    wall: float
    cpu: float


@dataclasses.dataclass
class Row:
    """What a program takes in each round, by half: OURS, and PyTorch's ways to run it by name."""

    program: str
    difference: float  # the worst of PyTorch's ways
    compiled: dict[str, Any]  # the answer of ours to compile
    first: dict[str, float]  # seconds of the first calls, compilation included, by PyTorch's ways
    times: dict[str, list[Time]] = dataclasses.field(default_factory=dict)
    flops: float = 0.0  # floating-point operations of a call of ours
    peak: dict[str, float] = dataclasses.field(default_factory=dict)  # bytes, by half

    def best(self, kind: str, among: Callable[[str], bool] = lambda name: True) -> str:
        """PyTorch's way with the least median of "wall" or "cpu", of those that among takes; "" for none."""
        ways = [name for name in self.times if name != OURS and among(name)]
        return min(ways, key=lambda name: self.median(name, kind), default="")

    def ratios(self, kind: str) -> list[float]:
        """PyTorch's best over ours, round by round: 1 and above means that ours is not slower."""
        theirs, ours = self.times[self.best(kind)], self.times[OURS]
        return [getattr(t, kind) / getattr(o, kind) for t, o in zip(theirs, ours, strict=True)]

    def median(self, half: str, kind: str) -> float:
        return statistics.median(getattr(t, kind) for t in self.times[half])


def cpu_seconds() -> float:
    """Processor time of all threads of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def timed(work: Callable[[], object], calls: int, device: str) -> Time:
    """The time of a call, of a number of calls in a row."""
    cpu, wall = cpu_seconds(), time.perf_counter()
    for _ in range(calls):
        work()
    synchronise(device)
    return Time((time.perf_counter() - wall) / calls, (cpu_seconds() - cpu) / calls)


def synchronise(device: str) -> None:
    """Wait until the device has done what it was given."""
    if device == "cuda":
        torch.cuda.synchronize()


def first_call(work: Callable[[], object], device: str) -> float:
    """Seconds of a call."""
    return timed(work, 1, device).wall


def rounds(rows: list[Row], ours: Ours, ways: dict[str, Programs], count: int, device: str) -> None:
    """Take every program by every half in each round, the halves in another order each time."""
    calls = {}
    for row in rows:
        answer = ours.order(run=row.program, calls=1)
        row.flops = answer["flops"]
        calls[row.program] = max(1, math.ceil(_LEAST / answer["wall"]))
    halves = [OURS, *ways]
    for n in range(count):
        for row in rows:
            for half in halves[n % len(halves) :] + halves[: n % len(halves)]:
                taken = _one(half, row.program, calls[row.program], ours, ways, device)
                row.times.setdefault(half, []).append(taken)


def _one(half: str, program: str, calls: int, ours: Ours, ways: dict[str, Programs], device: str) -> Time:
    time.sleep(0.02)  # until the other half's threads have stopped waiting for work
    if calls > 1:  # processors that have slept, virtual ones above all, are slow to wake for a tenth of a second
        _calls(half, program, calls - 1, ours, ways, device)
    return _calls(half, program, calls, ours, ways, device)


def _calls(half: str, program: str, calls: int, ours: Ours, ways: dict[str, Programs], device: str) -> Time:
    if half == OURS:
        answer = ours.order(run=program, calls=calls)
        return Time(answer["wall"] / calls, answer["cpu"] / calls)
    return timed(ways[half].named(program), calls, device)


def resident() -> tuple[int, int]:
    """Memory of this process that is in use, and the most that ever was, in bytes."""
    found = {}
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in ("VmRSS", "VmHWM"):
            found[name] = int(value.split()[0]) * 1024
    return found["VmRSS"], found["VmHWM"]


def matmul_rate(device: str) -> float:
    """PyTorch's rate of float32 matrix products, in GFLOP/s."""
    size = 512
    while True:
        a = torch.zeros(size, size, device=device)
        torch.mm(a, a)
        best = min(first_call(lambda a=a: torch.mm(a, a), device) for _ in range(12))
        if best >= 0.01 or size == 16384:
            return 2e-9 * size**3 / best
        size *= 2
