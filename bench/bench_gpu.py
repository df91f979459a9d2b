"""The network's programs on a GPU, in every precision: `python bench/bench_gpu.py --help`.

It needs Python alone, with the CUDA plugin installed, and the programs `anisoflight` and `anisoflight-bench`.
bench/docs/gpu.md says how.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

HEADER = ("precision", "program", "ms", "images/s", "GFLOP", "TFLOP/s", "MFU", "compile s", "GPU memory")


class Memory(threading.Thread):
    """The most memory that the GPU has in use while this runs, in MiB, as nvidia-smi reports it ten times a second."""

    def __init__(self, index: int) -> None:
        super().__init__(daemon=True)
        self.index, self.most, self.stop = index, 0, threading.Event()

    def run(self) -> None:
        query = ["nvidia-smi", f"--id={self.index}", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
        while shutil.which("nvidia-smi") and not self.stop.wait(0.1):
            answer = subprocess.run(query, capture_output=True, text=True, check=False)
            if answer.returncode == 0:
                self.most = max(self.most, int(answer.stdout))


def run(options: argparse.Namespace, program: str, *arguments: str) -> Any:
    """What the program prints as JSON; what it logs goes through."""
    command = [
        options.folder / program,
        *arguments,
        "--device",
        options.device,
        "--json",
    ]
    print("$", " ".join(map(str, command)), file=sys.stderr)
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": str(options.index)}
    answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=False)
    if answer.returncode != 0:
        sys.exit(f"{program} {arguments[0]} failed with status {answer.returncode}")
    return json.loads(answer.stdout)


def measure(options: argparse.Namespace, precision: str, programs: list[str]) -> dict[str, Any]:
    """One report of `anisoflight-bench model`; memory is that of a process that runs these programs alone."""
    memory = Memory(options.index)
    memory.start()
    report = run(
        options, "anisoflight-bench", "model", "--network", options.network, "--batch", str(options.batch),
        "--precision", precision, "--programs", ",".join(programs), "--repeats", str(options.repeats),
    )  # fmt: skip
    memory.stop.set()
    memory.join()
    return report | {"gpu_memory_mib": memory.most}


def lines(report: dict[str, Any]) -> list[tuple[str, ...]]:
    """The rows of the table."""
    memory = f"{report['gpu_memory_mib']} MiB" if report["gpu_memory_mib"] else ""
    return [
        (
            report["precision"], row["program"], f"{1e3 * row['wall']['median']:.1f}",
            f"{report['batch'] / row['wall']['median']:.4g}", f"{row['flops'] / 1e9:.4g}", f"{row['gflops'] / 1e3:.3g}",
            f"{row['mfu']:.1%}", f"{row['compile_seconds']:.1f}", memory,
        )
        for row in report["rows"]
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("bin"), help="of the programs (default %(default)s)")
    parser.add_argument("--device", default="cuda", help="its --device (default %(default)s)")
    parser.add_argument("--index", type=int, default=0, help="number of the GPU")
    parser.add_argument("--network", default="cifar10", help="built-in network or JSON (default %(default)s)")
    parser.add_argument("--batch", type=int, default=256, help="images (default %(default)s)")
    parser.add_argument("--repeats", type=int, default=15, help="rounds (default %(default)s)")
    parser.add_argument("--precisions", default="float32,tf32,bfloat16")
    parser.add_argument(
        "--programs", default="forward,vjp,double step-score step-explicit step-full sample,sample-35",
        help="lists of programs; each list is a process (default %(default)s)",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, default=Path("gpu.json"), help="file for all numbers (default %(default)s)")
    options = parser.parse_args()

    results: dict[str, Any] = {"doctor": run(options, "anisoflight", "doctor"), "reports": []}
    print(f"| {' | '.join(HEADER)} |\n|{'---|' * len(HEADER)}", flush=True)
    for precision in options.precisions.split(","):
        for programs in options.programs.split():
            report = measure(options, precision, programs.split(","))
            results["reports"].append(report)
            options.out.write_text(json.dumps(results, indent=1))
            for line in lines(report):
                print(f"| {' | '.join(line)} |", flush=True)


if __name__ == "__main__":
    main()
