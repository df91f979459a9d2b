"""`python -m bench_torch`: a network in PyTorch and in anisoflight, measured in turn. See docs/benchmarks/model.md."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file

from . import measure, network, report
from .agree import difference
from .ours import Ours
from .programs import Inputs, Programs

_ROOT = Path(__file__).parents[2]
_NETWORKS = {"cpu": ["8x8", "32x32"], "cuda": ["cifar10"]}
_PROGRAMS = {
    "cpu": "forward,vjp,parameters,double,step-score,step-explicit,step-full,sample,sample-flight",
    "cuda": "forward,step-score,step-full,sample,sample-35",
}
# The greatest difference of outputs, of their largest entry, at which they count as the same numbers: in float32, and
# on a GPU, where factors are rounded to 10 bits of mantissa.
_AGREE = {"cpu": 1e-3, "cuda": 5e-2}


def arguments() -> argparse.Namespace:
    cores = os.cpu_count()
    p = argparse.ArgumentParser(
        prog="bench_torch",
        description="Measure a network in PyTorch and in anisoflight in turn, and print the ratios of their times.",
        epilog="Example: python -m bench_torch --networks 8x8 --programs forward,step-full --rounds 5",
    )
    p.add_argument("--device", choices=["cpu", "cuda"], default="cuda" if torch.cuda.is_available() else "cpu")
    p.add_argument("--networks", help="built-in networks or model folders (default 8x8,32x32; cifar10 on a GPU)")
    p.add_argument("--batch", type=int, help="images per batch (default: the network's own)")
    p.add_argument("--programs", help="programs, with commas between")
    p.add_argument("--rounds", type=int, default=15)
    p.add_argument("--threads", type=int, default=cores, help=f"of PyTorch (default {cores})")
    p.add_argument("--binary", type=Path, default=_ROOT / "bin" / "anisoflight-bench")
    p.add_argument("--no-memory", action="store_true", help="leave out peak memory, which takes a process per program")
    p.add_argument("--write", type=Path, help="page to put the tables into; the CSV goes beside it")
    p.add_argument("--peak-of", help=argparse.SUPPRESS)
    p.add_argument("--saved", type=Path, help=argparse.SUPPRESS)
    return p.parse_args()


def variants(net_of: Path, saved: dict[str, torch.Tensor], device: str) -> dict[str, Programs]:
    """PyTorch's ways to run the network: eager in two layouts, and compiled on a GPU."""
    made = {}
    for name, layout in (("contiguous", torch.contiguous_format), ("channels_last", torch.channels_last)):
        net = network.load(net_of).to(device=device, memory_format=layout)
        inputs = Inputs(saved, net.labels, device, layout)
        made[name] = Programs(net, inputs)
        if device == "cuda" and name == "channels_last":
            net = network.load(net_of).to(device=device, memory_format=layout)
            made["compiled"] = Programs(net, inputs, torch.compile(net))
    return made


def peak_of(options: argparse.Namespace) -> None:
    """Print the growth of this process's memory by three runs of one program."""
    before, _ = measure.resident()
    folder = Path(options.networks)
    programs = variants(folder, load_file(options.saved), "cpu")["contiguous"]
    work = programs.named(options.peak_of)
    for _ in range(3):
        work()
    print(json.dumps({"peak_bytes": measure.resident()[1] - before}))


def command(options: argparse.Namespace, folder: Path, batch: int | None) -> list[str]:
    line = [str(options.binary), "model", "--drive", "--model", str(folder), "--device", options.device]
    line += ["--precision", "tf32" if options.device == "cuda" else "float32"]  # as PyTorch is set up
    return [*line, "--batch", str(batch)] if batch else line


def measure_network(options: argparse.Namespace, name: str, work: Path) -> tuple[list[measure.Row], dict[str, float]]:
    """Measure one network; also its batch and the rates of matrix products."""
    folder, batch = Path(name), options.batch
    if not (folder / "config.json").exists():
        folder = work / name
        subprocess.run([options.binary, "model", "--network", name, "--write", folder], check=True)
        batch = batch or {"8x8": 64, "32x32": 8}.get(name)
    environment = {**os.environ, "ANISOFLIGHT_PROGRAM_CACHE": str(work / "programs")}
    programs = (options.programs or _PROGRAMS[options.device]).split(",")
    saved_file = work / "saved.safetensors"
    rows = []
    with Ours(command(options, folder, batch), environment) as ours:
        compiled = {}
        for program in programs:
            say(f"{name}: compiling {program}")
            compiled[program] = ours.order(compile=program)
        ours.order(save=str(saved_file), of=programs)
        saved = load_file(saved_file)
        by_variant = variants(folder, saved, options.device)
        # Before any step trains PyTorch's networks.
        worst = {program: max(difference(program, v, saved) for v in by_variant.values()) for program in programs}
        for program in programs:
            say(f"{name}: {program}: greatest relative difference of the outputs {worst[program]:.1e}")
        if not all(d <= _AGREE[options.device] for d in worst.values()):
            sys.exit(f"{name}: the halves do not compute the same; no times are taken")
        for program in programs:
            first = {half: measure.first_call(v.named(program), options.device) for half, v in by_variant.items()}
            rows.append(measure.Row(program, {}, worst[program], compiled[program], first))
        say(f"{name}: measuring")
        measure.rounds(rows, ours, by_variant, options.rounds, options.device)
        rates = {"ours": ours.order(matmul=True)["matmul_gflops"], "torch": measure.matmul_rate(options.device)}
        about = {"batch": ours.hello["batch"], "parameters": ours.hello["parameters"], **rates}
    if options.device == "cpu" and not options.no_memory:
        for row in rows:
            with Ours(command(options, folder, batch), environment) as fresh:
                row.peak["ours"] = fresh.order(peak=row.program)["peak_bytes"]
            line = [sys.executable, "-m", __package__, "--peak-of", row.program]
            line += ["--networks", str(folder), "--saved", str(saved_file)]
            out = subprocess.run(line, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[1])
            row.peak["torch"] = json.loads(out.stdout)["peak_bytes"]
    return rows, about


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    options = arguments()
    torch.set_num_threads(options.threads)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    if options.peak_of:
        peak_of(options)
        return
    results, parts = {}, []
    with tempfile.TemporaryDirectory() as work:
        for name in options.networks.split(",") if options.networks else _NETWORKS[options.device]:
            rows, about = measure_network(options, name, Path(work))
            results[name] = rows
            parts.append(section(name, rows, about, options.rounds))
    text = "\n\n".join([circumstances(options), *parts])
    print(text)
    if options.write:
        report.insert(options.write, text)
        options.write.with_suffix(".csv").write_text(report.as_csv(results))


def section(name: str, rows: list[measure.Row], about: dict[str, float], rounds: int) -> str:
    """One network's part of the report."""
    top = max(about["ours"], about["torch"])
    size = f"{about['parameters'] / 1e6:.2f} M parameters, batch {about['batch']}, {rounds} rounds"
    rates = f"matrix products at {top:.0f} GFLOP/s (ours {about['ours']:.0f}, torch {about['torch']:.0f})"
    return f"### {name}\n\n{size}; {rates}.\n\n{report.table(rows, top)}"


def circumstances(options: argparse.Namespace) -> str:
    """When, on what and with what the numbers were taken."""
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    load = os.getloadavg()[0]
    using = f"PyTorch {torch.__version__} with {options.threads} threads"
    return f"{day}; {processor(options.device)}; {using}; load average {load:.1f} at the end."


def processor(device: str) -> str:
    """The device's name."""
    if device == "cuda":
        return torch.cuda.get_device_name()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return f"{os.cpu_count()} cores of {line.partition(':')[2].strip()}"
    return f"{os.cpu_count()} cores"


if __name__ == "__main__":
    main()
