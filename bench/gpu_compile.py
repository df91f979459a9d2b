"""Compile the networks' programs for GPUs that are not there, and check what comes out: `make gpu-compile`.

XLA's plugin for CUDA compiles ahead of time from a description of the GPU. Each program is compiled for an H100 in
bfloat16; with --all for an H200, and in float32 and tf32, too. It is an error if a program

  - does not compile,
  - has a convolution that is no call of cuDNN, or one whose channels are not the last axis,
  - multiplies float32 in a bfloat16 program, except in the embedding of noise levels and labels,
  - may round factors of float32 to TensorFloat-32, or may not although tf32 asks for it,
  - copies an argument that it is donated,
  - needs memory that differs from what anisoflight expects by more than 15 %,
  - has more kernels, traffic or temporaries than its row in bench/docs/gpu.csv, by more than a twentieth.

With --write the table in bench/docs/gpu.csv is written instead, and that of the page. Nothing runs on a GPU: times are
those of a model, the larger of work and traffic of each kernel, at the rates of the data sheet.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import itertools
import json
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from hlo import GPU, Module

ROOT = Path(__file__).parents[1]
TABLE = Path(__file__).parent / "docs" / "gpu.csv"
PAGE = TABLE.with_suffix(".md")
GPUS = {
    "h100": GPU("NVIDIA H100 80GB HBM3", 84_942_979_072, 3.352e12, 2_619_000),
    "h200": GPU("NVIDIA H200 141GB HBM3e", 151_397_597_184, 4.8e12, 3_750_000),
}
BATCHES = {"cifar10": 128, "ffhq": 32, "imagenet64": 32}
PRECISIONS = ("float32", "tf32", "bfloat16")
PROGRAMS = {"sample": "evaluate", "step-score": "plain step", "step-full": "full step"}
"""As anisoflight-bench calls them, and as the table does: sampling is evaluations."""
USUAL = {"gpus": ["h100"], "precisions": ["bfloat16"]}
"""What is compiled without --all: what is most likely to break, in a third of the time. An H200 has the same cores."""
OPTIONS: list[tuple[str, bool | int]] = [
    ("xla_gpu_autotune_level", 0),  # it would run kernels
    ("xla_allow_excess_precision", False),  # as kernels/device sets it
]
"""XLA's flags."""
EMBEDDING = 1e-3
"""The most that products of the embedding may be of a program's work."""
GROWTH = 1.05
ESTIMATE = 0.15
"""How far what anisoflight expects of arguments and temporaries may be off."""


@dataclass(frozen=True)
class Row:
    """What a compiled program is made of."""

    gpu: str
    network: str
    batch: int
    precision: str
    program: str
    kernels: int
    tflop: float
    gb: float
    ms: float
    """The least that it takes by the model."""
    share: float
    """Of that time, what its products would take at the full rate."""
    arguments_mib: float
    temporary_mib: float
    estimate_mib: float
    """What anisoflight expects of temporaries before it compiles."""

    @property
    def key(self) -> tuple[str, ...]:
        return self.gpu, self.network, str(self.batch), self.precision, self.program


def description(gpu: GPU) -> str:
    """What XLA needs to know of a GPU of the architecture sm_90a, in its text format."""
    scalar = [(4, 64, 1), (8, 64, 1), (10, 128, 2), (11, 128, 1), (12, 64, 1), (16, 128, 2)]
    matrix = [*((key, 1024) for key in (2, 6, 19, 20, 23, 24, 25, 28, 29, 33, 35, 36)), (10, 512), (11, 256), (16, 512)]
    units = [("scalar", 1.98, scalar), ("matrix", 1.83, [(key, 4, ops) for key, ops in matrix])]
    rates = "\n".join(
        f"{kind}_unit_description {{ "
        + " ".join(
            f"rate_infos {{ key: {key} value {{ clock_rate_ghz: {clock} units_per_core: {n} ops_per_clock: {ops} }} }}"
            for key, n, ops in each
        )
        + " }"
        for kind, clock, each in units
    )
    return f"""gpu_device_info {{
  threads_per_block_limit: 1024 threads_per_warp: 32 threads_per_core_limit: 2048
  shared_memory_per_block: 49152 shared_memory_per_core: 233472 shared_memory_per_block_optin: 232448
  core_count: 132 fpus_per_core: 128 clock_rate_ghz: 1.98
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  thread_dim_limit_x: 1024 thread_dim_limit_y: 1024 thread_dim_limit_z: 64
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
  memory_bandwidth: {gpu.bandwidth:.0f} l2_cache_size: 52428800 device_memory_size: {gpu.memory}
  cuda_compute_capability {{ major: 9 feature_extension: ACCELERATED_FEATURES }}
  {rates}
  device_vendor: "NVIDIA Corporation" name: "{gpu.name}" platform_version: "Compute Capability 9.0a"
  model_str: "sm_9.0a with {gpu.memory}B RAM, 132 cores, 1980000KHz clock, "
    "{gpu.memory_clock}KHz mem clock, 52428800B L2$"
  device_address_bits: 64 pcie_bandwidth: 34359738368 ecc_enabled: true
  driver_version: "13.0.0" runtime_version: "13.0.0" compile_time_toolkit_version: "13.0.0" dnn_version: "9.12.0"
  device_interconnect_info {{ active_links: 18 }}
}}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 12 patch: 0 }}
device_description_str: "{gpu.name}"
"""


@dataclass(frozen=True)
class Job:
    """A program for a GPU."""

    gpu: str
    program: tuple[str, ...]
    """Network, precision and name; of a test nothing."""
    file: Path
    out: Path

    @property
    def name(self) -> str:
        return " ".join([self.gpu, *(self.program or ["test", self.file.stem])])


def compile_all(jobs: list[Job], kernels: Path) -> list[str]:
    """Compile programs that share kernels, which are kept in a file. Returns an error for each, or nothing."""
    errors = []
    for job in jobs:
        begin = time.monotonic()
        errors.append(compile_for(GPUS[job.gpu], job.file, job.out, kernels))
        print(f"{job.name}: {errors[-1] or f'{time.monotonic() - begin:.0f} s'}", flush=True)
    return errors


def compile_for(gpu: GPU, file: Path, out: Path, kernels: Path) -> str:
    """Compile a program for a GPU; the optimised program's text goes to out, its memory to .json. Returns an error."""
    key = hashlib.sha256(file.read_bytes() + f"{description(gpu)}{OPTIONS}".encode()).hexdigest()
    kept = out.with_suffix(".json")
    if kept.exists() and json.loads(kept.read_text())["of"] == key:
        return ""
    import numpy as np
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jax.experimental import topologies
    from jaxlib.mlir import ir

    topology = topologies.get_topology_desc(
        platform="cuda", topology_name="none", target_config=description(gpu), topology="1x1x1"
    )
    options = xla_client.CompileOptions()
    build = options.executable_build_options
    for settings in (options, build):
        settings.num_replicas = settings.num_partitions = 1
    build.device_assignment = xla_client.DeviceAssignment.create(np.zeros((1, 1), np.int32))
    options.env_option_overrides = [
        *OPTIONS,
        ("xla_gpu_enable_llvm_module_compilation_parallelism", True),  # which the file of kernels needs
        ("xla_gpu_kernel_cache_file", str(kernels)),
    ]
    try:
        with mlir.make_ir_context() as context:
            context.allow_unregistered_dialects = True
            executable = topology.devices[0].client.compile(
                ir.Module.parse(file.read_text()), xla_client.DeviceList(tuple(topology.devices)), options
            )
    except Exception as error:
        return f"does not compile: {str(error).splitlines()[0]}"
    memory = executable.get_compiled_memory_stats()
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(executable.hlo_modules()[0].to_string())
    kept.write_text(json.dumps({
        "of": key, "arguments": memory.argument_size_in_bytes, "temporary": memory.temp_size_in_bytes,
    }))  # fmt: skip
    return ""


def problems(module: Module, precision: str, donated: int) -> list[str]:
    """What is wrong with a program of a network."""
    found = []
    products = [product for kernel in module.kernels for product in kernel.products]
    total = sum(product.flops for product in products)
    layouts = {p.layout for p in products if p.layout}
    found += [f"convolutions with {way}" for way in sorted(layouts) if not re.fullmatch(r"b01f_\w+->b01f", way)]
    single = [product for product in products if product.dtype == "f32"]
    if precision == "bfloat16":
        if any(product.layout for product in single) or sum(p.flops for p in single) > EMBEDDING * total:
            found.append("products of float32")
    elif any(product.exact != (precision == "float32") for product in single):
        found.append("products that may not be rounded" if precision == "tf32" else "products that may be rounded")
    copied = [kernel.name for kernel in module.kernels if kernel.kind == "copy"]
    if module.aliased < donated or copied:
        found.append(f"{donated - module.aliased} donated bytes are not taken over, copies {copied}")
    return found


def measure(job: Job) -> tuple[Row, list[str]]:
    """The row of a compiled program of a network, and what is wrong with it."""
    lowered, memory = (json.loads(file.with_suffix(".json").read_text()) for file in (job.file, job.out))
    module, card = Module(job.out.read_text()), GPUS[job.gpu]
    network, precision, program = job.program
    seconds = card.seconds(module.kernels)
    products = sum(product.flops / card.rate(product) for kernel in module.kernels for product in kernel.products)
    row = Row(
        job.gpu, network, BATCHES[network], precision, PROGRAMS[program], len(module.kernels),
        round(sum(k.flops for k in module.kernels) / 1e12, 3), round(sum(k.bytes for k in module.kernels) / 1e9, 2),
        round(1e3 * seconds, 2), round(products / seconds, 3), round(memory["arguments"] / 2**20, 1),
        round(memory["temporary"] / 2**20, 1), round(lowered["memory"]["temporary"] / 2**20, 1),
    )  # fmt: skip
    found = problems(module, precision, lowered["memory"]["aliased"])
    needed, expected = (row.arguments_mib + mib for mib in (row.temporary_mib, row.estimate_mib))
    if abs(expected - needed) > ESTIMATE * needed:
        found.append(f"needs {needed:.0f} MiB, {expected:.0f} are expected")
    return row, found


def grown(row: Row, before: dict[tuple[str, ...], Row]) -> list[str]:
    """What a program has more of than the table says; nothing if it has no row."""
    old = before.get(row.key, row)
    return [
        f"{name}: {getattr(row, name):g}, the table says {getattr(old, name):g}"
        for name in ("kernels", "gb", "temporary_mib")
        if getattr(row, name) > GROWTH * getattr(old, name)
    ]


def read(file: Path = TABLE) -> list[Row]:
    """The committed table."""
    if not file.exists():
        return []
    kinds = {f.name: {"str": str, "int": int, "float": float}[str(f.type)] for f in fields(Row)}
    with file.open(newline="") as lines:
        return [Row(**{name: kinds[name](value) for name, value in line.items()}) for line in csv.DictReader(lines)]


def write(rows: list[Row], file: Path = TABLE) -> None:
    """Write the table, with the rows that stand there and were not measured."""
    kept = {row.key: row for row in [*read(file), *rows]}
    order = [list(GPUS), list(BATCHES), None, list(PRECISIONS), list(PROGRAMS.values())]

    def place(row: Row) -> list[int]:
        return [known.index(word) for known, word in zip(order, row.key, strict=True) if known]

    with file.open("w", newline="") as out:
        writer = csv.DictWriter(out, [f.name for f in fields(Row)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in sorted(kept.values(), key=place))


HEAD = ("network", "batch", "precision", "program", "kernels", "TFLOP", "GB", "H100 ms", "share", "H200 ms", "share",
        "temporaries, MiB", "estimate, MiB")  # fmt: skip


def table(rows: list[Row]) -> str:
    """The table of the page: a line for each program that both GPUs have."""
    lines = [f"| {' | '.join(HEAD)} |", "|---|---|---|---|" + "--:|" * (len(HEAD) - 4)]
    other = {row.key[1:]: row for row in rows if row.gpu == "h200"}
    for row in rows:
        if row.gpu == "h100" and (twin := other.get(row.key[1:])):
            cells = [row.network, row.batch, row.precision, row.program, f"{row.kernels:,}", f"{row.tflop:.3g}",
                     f"{row.gb:.3g}", f"{row.ms:.3g}", f"{row.share:.0%}", f"{twin.ms:.3g}", f"{twin.share:.0%}",
                     f"{row.temporary_mib:,.0f}", f"{row.estimate_mib:,.0f}"]  # fmt: skip
            lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def put(text: str, page: str) -> str:
    """The page with another table."""
    head, _, rest = page.partition("| network |")
    return head + text + rest[rest.index("\n\n") :]


def lower(options: argparse.Namespace) -> None:
    """Write the programs of the networks, and those that the tests compile."""
    tests, running = options.folder / "tests", None
    if options.tests:
        shutil.rmtree(tests, ignore_errors=True)  # of tests that have changed
        tests.mkdir(parents=True)
        running = start(["go", "test", "-count=1", "-vet=off", "./kernels/...", "./train/..."],
                        ANISOFLIGHT_TEST_LOWER=str(tests), ANISOFLIGHT_TEST_DEVICE="xla",
                        XLA_FLAGS="--xla_backend_optimization_level=0")  # fmt: skip
    for network, precision in itertools.product(options.networks, options.precisions):
        out = options.folder / precision / network
        command = [ROOT / "bin" / "anisoflight-bench", "lower", out, "--network", network]
        command += ["--batch", BATCHES[network], "--precision", precision, "--programs", ",".join(options.programs)]
        finish(start(command))
    if running:
        finish(running)


def start(command: list[Any], **environment: str) -> subprocess.Popen[bytes]:
    print("$", *command, flush=True)
    return subprocess.Popen([*map(str, command)], cwd=ROOT, env=os.environ | environment)


def finish(process: subprocess.Popen[bytes]) -> None:
    if process.wait():
        sys.exit(f"failed with status {process.returncode}: {process.args}")


def groups(options: argparse.Namespace) -> dict[str, list[Job]]:
    """What there is to compile, by the file of its kernels, which one process writes at a time. float32 and tf32 have
    most kernels in common, and so have both GPUs; tests come in two halves, told apart by their hashes.
    """
    found: dict[str, list[Job]] = {}
    for network, precision in itertools.product(options.networks, options.precisions):
        jobs = found.setdefault(f"{network}-{'bfloat16' if precision == 'bfloat16' else 'float32'}", [])
        for program, gpu in itertools.product(options.programs, options.gpus):
            out = options.folder / gpu / precision / network / f"{program}.hlo"
            file = options.folder / precision / network / f"{program}.mlir"
            jobs.append(Job(gpu, (network, precision, program), file, out))
    if options.tests:
        for file, gpu in itertools.product(sorted((options.folder / "tests").glob("*.mlir")), options.gpus):
            job = Job(gpu, (), file, options.folder / gpu / "tests" / f"{file.stem}.hlo")
            found.setdefault(f"tests-{int(file.stem[:8], 16) % 2}", []).append(job)
    return found


def check(options: argparse.Namespace) -> tuple[list[Row], list[str]]:
    """Compile everything; returns the rows of the networks, and what is wrong."""
    before = {row.key: row for row in read()}
    rows, wrong = [], []
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, mp_context=spawn) as pool:
        kernels = options.folder / "kernels"
        kernels.mkdir(parents=True, exist_ok=True)
        waiting = [(jobs, pool.submit(compile_all, jobs, kernels / name)) for name, jobs in groups(options).items()]
        for jobs, future in waiting:
            for job, error in zip(jobs, future.result(), strict=True):
                found = [error] if error else []
                if job.program and not error:
                    row, found = measure(job)
                    rows.append(row)
                    found += [] if options.write else grown(row, before)
                    if row.key not in before:
                        print(f"{job.name}: new")
                wrong += [f"{job.name}: {problem}" for problem in found]
    return rows, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    known = {"gpus": GPUS, "precisions": PRECISIONS, "networks": BATCHES, "programs": PROGRAMS}
    for name, words in known.items():
        default = USUAL.get(name, list(words))
        add(f"--{name}", nargs="+", choices=list(words), default=default, help=f"default {' '.join(default)}")
    add("--all", action="store_true", help="all GPUs and precisions")
    add("--tests", action=argparse.BooleanOptionalAction, default=True, help="the programs of the Go tests, too")
    add("--folder", type=Path, default=ROOT / "bin" / "gpu", help="for programs; what is there is not compiled again")
    add("--jobs", type=int, default=os.cpu_count(), help="processes (default %(default)s)")
    add("--write", action="store_true", help="write the table")
    options = parser.parse_args()
    if options.all:
        options.gpus, options.precisions = list(GPUS), list(PRECISIONS)
    lower(options)
    rows, wrong = check(options)
    if options.write:
        write(rows)
        PAGE.write_text(put(table(read()), PAGE.read_text()))
    if wrong:
        sys.exit("\n".join([f"{len(wrong)} problems:", *sorted(wrong)]))


if __name__ == "__main__":
    main()
