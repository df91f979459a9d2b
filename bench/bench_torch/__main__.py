"""`python -m bench_torch`: a network in PyTorch and in anisoflight, measured in turn. See bench/docs/model.md."""

from __future__ import annotations

import argparse
import datetime
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

from . import report, session
from .compiled import check_compiler

_ROOT = Path(__file__).parents[2]
_NETWORKS = {"cpu": "8x8,32x32,diffusers-unet,diffusers-dit", "cuda": "cifar10"}
_PROGRAMS = {
    "cpu": "forward,vjp,parameters,double,step-score,step-full,sample",
    "cuda": "forward,step-score,step-full,sample,sample-35",
}


def _names(text: str) -> list[str]:
    return text.split(",")


def _numbers(text: str) -> list[int]:
    numbers = [int(part) if part.isdecimal() else 0 for part in text.split(",")]
    if not all(numbers):
        raise argparse.ArgumentTypeError(f"must be positive whole numbers with commas between, got {text!r}")
    return numbers


def arguments() -> argparse.Namespace:
    cores = len(os.sched_getaffinity(0))
    p = argparse.ArgumentParser(
        prog="bench_torch",
        description="Measure a network in PyTorch, eager and through Inductor, and in anisoflight in turn, and print "
        "the ratios of their times.",
        epilog="Example: python -m bench_torch --networks 8x8 --programs forward,step-full --rounds 5 --threads 2",
    )
    p.add_argument("--device", choices=["cpu", "cuda"], default="cuda" if torch.cuda.is_available() else "cpu")
    p.add_argument("--networks", type=_names, help=f"names, or model folders (default {_NETWORKS['cpu']}; on a GPU "
                   f"{_NETWORKS['cuda']})")  # fmt: skip
    p.add_argument("--batch", type=int, help="images per batch (default: the network's own)")
    p.add_argument("--programs", type=_names, help="programs, with commas between")
    p.add_argument("--rounds", type=int, default=11)
    p.add_argument("--threads", type=_numbers, default=sorted({1, cores}),
                   help=f"numbers of threads and processors of both halves, one after the other (default "
                   f"{','.join(map(str, sorted({1, cores})))})")  # fmt: skip
    p.add_argument("--binary", type=Path, default=_ROOT / "bin" / "anisoflight-bench")
    p.add_argument("--precision", choices=["float32", "tf32", "bfloat16"],
                   help="of matrix products, or of the whole network (bfloat16, by autocast in PyTorch; default "
                   "float32; on a GPU tf32)")  # fmt: skip
    p.add_argument("--mode", help="of torch.compile, such as max-autotune-no-cudagraphs (default: its own default)")
    p.add_argument("--no-inductor", action="store_true", help="leave out torch.compile, which needs a C++ compiler")
    p.add_argument("--no-memory", action="store_true", help="leave out peak memory, which takes a process per program")
    p.add_argument("--keep", type=Path, help="folder for what was measured; a run that was ended goes on from there")
    p.add_argument("--write", type=Path, help="page to put the tables into; the CSV goes next to it")
    for hidden in ("--session", "--folder", "--saved"):
        p.add_argument(hidden, type=Path, help=argparse.SUPPRESS)
    p.add_argument("--peak-of", help=argparse.SUPPRESS)
    p.add_argument("--way", help=argparse.SUPPRESS)
    options = p.parse_args()
    options.networks = options.networks or _names(_NETWORKS[options.device])
    options.precision = options.precision or ("tf32" if options.device == "cuda" else "float32")
    options.programs = options.programs or _names(_PROGRAMS[options.device])
    if max(options.threads) > cores:
        p.error(f"--threads must be at most the {cores} processors that this process may use, got {options.threads}")
    return options


def _run_session(options: argparse.Namespace, name: str, threads: int, into: Path) -> None:
    """Measure in a new process, on as many processors as threads, with empty caches of compiled programs."""
    all_cpus = os.sched_getaffinity(0)
    line = [sys.executable, "-m", __package__ or "bench_torch", "--session", str(into), "--networks", name]
    line += ["--threads", str(threads), "--programs", ",".join(options.programs), "--rounds", str(options.rounds)]
    line += ["--device", options.device, "--precision", options.precision, "--binary", str(options.binary.absolute())]
    line += ["--batch", str(options.batch)] if options.batch else []
    line += ["--mode", options.mode] if options.mode else []
    line += ["--no-inductor"] if options.no_inductor else []
    line += ["--no-memory"] if options.no_memory or threads != max(options.threads) else []
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": cache, "OMP_NUM_THREADS": str(threads)}
        try:
            if options.device == "cpu":
                os.sched_setaffinity(0, sorted(all_cpus)[:threads])  # a process has its parent's
            subprocess.run(line, check=True, env=environment, cwd=Path(__file__).parents[1])
        except subprocess.CalledProcessError as error:
            sys.exit(error.returncode)  # its message stands above
        finally:
            os.sched_setaffinity(0, all_cpus)


def main() -> None:
    options = arguments()
    torch.set_num_threads(options.threads[0])
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = options.precision != "float32"
    torch.backends.cudnn.benchmark = True
    if options.peak_of:
        session.peak_of(options)
        return
    with tempfile.TemporaryDirectory() as work:
        if options.session:
            session.run(options, options.networks[0], Path(work)).write(options.session)
            return
        if not options.no_inductor:
            check_compiler(options.device)
        kept = options.keep or Path(work)
        kept.mkdir(parents=True, exist_ok=True)
        sessions = []
        for name in options.networks:
            for threads in sorted(options.threads, reverse=True):
                path = kept.absolute() / f"{Path(name).name}-{threads}.json"
                if not path.exists():
                    _run_session(options, name, threads, path)
                sessions.append(session.Session.read(path))
    text = "\n\n".join([circumstances(options), report.summary(sessions), *map(report.section, sessions)])
    print(text)
    if options.write:
        report.insert(options.write, text)
        options.write.with_suffix(".csv").write_text(report.as_csv(sessions))


def circumstances(options: argparse.Namespace) -> str:
    """When, on what and with what the numbers were taken."""
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    compiler = "" if options.no_inductor else ", eager and torch.compile"
    return f"{day}; {processor(options.device)}; PyTorch {torch.__version__}{compiler}."


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
