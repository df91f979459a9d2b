"""One network on a number of threads, in its own process, since neither half changes its threads later."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import load_file

from . import measure, network, probes
from .agree import difference
from .compiled import Compiled
from .ours import Ours
from .programs import Inputs, Programs

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from .programs import Network

_BATCH = {"8x8": 64, "32x32": 8, **dict.fromkeys(probes.NAMES, 8)}
# The greatest difference of outputs, of their largest entry, at which they count as the same numbers: in float32, with
# factors that are rounded to 10 bits of mantissa, and with all tensors rounded to 7.
_AGREE = {"float32": 1e-3, "tf32": 5e-2, "bfloat16": 0.15}
_LAYOUTS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}


@dataclasses.dataclass
class Session:
    """What was measured of one network on a number of threads."""

    network: str
    threads: int
    rounds: int
    batch: int
    parameters: int
    matmul: dict[str, float]  # GFLOP/s of matrix products, by half
    load: list[float]  # the load average before and after the rounds
    rows: list[measure.Row]

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(dataclasses.asdict(self)))

    @classmethod
    def read(cls, path: Path) -> Session:
        held: dict[str, Any] = json.loads(path.read_text())
        for row in held["rows"]:
            row["times"] = {half: [measure.Time(**t) for t in times] for half, times in row["times"].items()}
        return cls(**{**held, "rows": [measure.Row(**row) for row in held["rows"]]})


def _loader(name: str, folder: Path) -> Callable[[], Network]:
    if name in probes.NAMES:
        return lambda: probes.Imported(probes.made(name))
    return lambda: network.load(folder)


def _ways(load: Callable[[], Network], saved: dict[str, torch.Tensor], options: argparse.Namespace) -> dict[str, Any]:
    """PyTorch's ways to run the network, each with a copy of it: eager in two layouts, and through Inductor, which
    chooses the layouts of convolutions itself."""
    made: dict[str, Any] = {}
    ways: list[tuple[str, str, Callable[..., Programs]]] = [(name, name, Programs) for name in _LAYOUTS]
    if not options.no_inductor:
        ways.append((measure.INDUCTOR, "contiguous", functools.partial(Compiled, mode=options.mode)))
    for name, layout, kind in ways:
        net: Any = load()
        net = net.to(device=options.device, memory_format=_LAYOUTS[layout])
        autocast = options.precision == "bfloat16"
        made[name] = kind(net, Inputs(saved, net, options.device, _LAYOUTS[layout], autocast))
    return made


def _command(options: argparse.Namespace, folder: Path, batch: int | None) -> list[str]:
    line = [str(options.binary), "model", "--drive", "--model", str(folder), "--device", options.device]
    line += ["--precision", options.precision]
    return [*line, "--batch", str(batch)] if batch else line


def run(options: argparse.Namespace, name: str, work: Path) -> Session:
    """Measure one network in this process and one of ours."""
    folder, batch = Path(name), options.batch
    if not (folder / "config.json").exists():
        folder, batch = work / name, batch or _BATCH.get(name)
        if name in probes.NAMES:
            probes.write(name, folder)
        else:
            subprocess.run([options.binary, "model", "--network", name, "--write", folder], check=True)
    load, programs, saved_file = _loader(name, folder), options.programs, work / "saved.safetensors"
    environment = {**os.environ, "ANISOFLIGHT_PROGRAM_CACHE": str(work / "programs")}
    rows = []
    with Ours(_command(options, folder, batch), environment) as ours:
        compiled = {}
        for program in programs:
            say(f"{name}: compiling {program}")
            compiled[program] = ours.order(compile=program)
        ours.order(save=str(saved_file), programs=programs)
        saved = load_file(saved_file)
        ways = _ways(load, saved, options)
        for program in programs:  # before any step trains PyTorch's networks
            rows.append(_compared(program, ways, saved, compiled[program], options.device))
            say(f"{name}: {program}: greatest relative difference of the outputs {rows[-1].difference:.1e}")
        if not all(row.difference <= _AGREE[options.precision] for row in rows):
            raise SystemExit(f"{name}: the halves do not compute the same; no times are taken")
        for row in rows:
            for half, way in ways.items():
                row.first[half] += measure.first_call(way.named(row.program), options.device)
        say(f"{name}: measuring")
        load_before = os.getloadavg()[0]
        measure.rounds(rows, ours, ways, options.rounds, options.device)
        session = Session(
            name,
            options.threads[0],
            options.rounds,
            ours.hello["batch"],
            ours.hello["parameters"],
            {"ours": ours.order(matmul=True)["matmul_gflops"], "torch": measure.matmul_rate(options.device)},
            [load_before, os.getloadavg()[0]],
            rows,
        )
    if options.device == "cpu" and not options.no_memory:
        for row in rows:
            with Ours(_command(options, folder, batch), environment) as fresh:
                row.peak[measure.OURS] = fresh.order(peak=row.program)["peak_bytes"]
            row.peak["torch"] = _peak(options, name, row, folder, saved_file)
    return session


def _compared(program: str, ways: dict[str, Any], saved: dict[str, torch.Tensor], compiled: Any, device: str) -> Any:
    """A row without times: the first call of each way, and the worst difference of its outputs from ours."""
    first, worst = {}, 0.0
    for half, way in ways.items():
        found: list[float] = []
        first[half] = measure.first_call(lambda w=way, f=found: f.append(difference(program, w, saved)), device)
        worst = max(worst, found[0])
    return measure.Row(program, worst, compiled, first)


def _peak(options: argparse.Namespace, name: str, row: measure.Row, folder: Path, saved: Path) -> float:
    """PyTorch's peak memory, eager, in the layout that is faster."""
    way = row.best("wall", lambda half: half in _LAYOUTS)
    line = [sys.executable, "-m", __package__ or "bench_torch", "--peak-of", row.program, "--way", way]
    line += ["--networks", name, "--folder", str(folder), "--saved", str(saved), "--threads", str(options.threads[0])]
    out = subprocess.run(line, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    return json.loads(out.stdout)["peak_bytes"]


def peak_of(options: argparse.Namespace) -> None:
    """Print the growth of this process's memory by three runs of one program."""
    load, saved = _loader(options.networks[0], options.folder), load_file(options.saved)
    before, _ = measure.resident()
    net: Any = load()
    layout = _LAYOUTS[options.way]
    net = net.to(memory_format=layout)
    work = Programs(net, Inputs(saved, net, "cpu", layout)).named(options.peak_of)
    for _ in range(3):
        work()
    print(json.dumps({"peak_bytes": measure.resident()[1] - before}))


def say(text: str) -> None:
    """Tell how far the work is."""
    print(text, file=sys.stderr, flush=True)
