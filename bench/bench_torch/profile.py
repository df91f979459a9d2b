"""`python -m bench_torch.profile`: where the processor time of a program goes, by the loops that XLA has made of it.

perf does not know the functions that XLA compiles. XLA is told to write them to files too (`--xla_dump_to`), and they
are found again in the memory of the process that runs them, byte by byte but for the addresses that loading fills in.
"""

from __future__ import annotations

import argparse
import bisect
import os
import re
import signal
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection

from .ours import Ours

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROOT = Path(__file__).parents[2]
_RELOCATED = 8  # bytes at most that loading fills in at one place


class Function(NamedTuple):
    """A compiled function: its name, its code, and where in it loading fills in addresses."""

    name: str
    code: bytes
    relocated: list[int]

    def fixed(self) -> list[tuple[int, int]]:
        """The ranges of the code that loading leaves as they are."""
        ranges, begin = [], 0
        for at in [*sorted(self.relocated), len(self.code)]:
            if at > begin:
                ranges.append((begin, at))
            begin = max(begin, at + _RELOCATED)
        return ranges


def functions(path: Path) -> Iterator[Function]:
    """The functions of an object file."""
    with path.open("rb") as file:
        elf = ELFFile(file)
        sections = list(elf.iter_sections())
        relocations: dict[int, list[int]] = {}
        for section in sections:
            if isinstance(section, RelocationSection):
                relocations[section["sh_info"]] = [r["r_offset"] for r in section.iter_relocations()]
        for table in sections:
            if not isinstance(table, SymbolTableSection):
                continue
            for symbol in table.iter_symbols():
                if symbol["st_info"]["type"] != "STT_FUNC" or symbol["st_size"] == 0:
                    continue
                index, begin, size = symbol["st_shndx"], symbol["st_value"], symbol["st_size"]
                inside = [at - begin for at in relocations.get(index, []) if begin <= at < begin + size]
                yield Function(symbol.name, sections[index].data()[begin : begin + size], inside)


def generated_code(pid: int) -> list[tuple[int, bytes]]:
    """The executable memory of a process that no file is behind, with its addresses."""
    parts = []
    with Path(f"/proc/{pid}/maps").open() as maps, Path(f"/proc/{pid}/mem").open("rb") as memory:
        for line in maps:
            fields = line.split()
            if "x" in fields[1] and len(fields) == 5:
                begin, end = (int(x, 16) for x in fields[0].split("-"))
                memory.seek(begin)
                parts.append((begin, memory.read(end - begin)))
    return parts


def places(function: Function, parts: list[tuple[int, bytes]]) -> Iterator[int]:
    """The addresses at which a function lies."""
    fixed = function.fixed()
    first, last = max(fixed, key=lambda r: r[1] - r[0])
    pattern = function.code[first:last]
    for begin, memory in parts:
        at = memory.find(pattern)
        while at >= 0:
            start = at - first
            if start >= 0 and all(memory[start + i : start + j] == function.code[i:j] for i, j in fixed):
                yield begin + start
            at = memory.find(pattern, at + 1)


def kind(library: str, symbol: str) -> str:
    """What a sample outside generated code counts as."""
    if "kernel" in library:
        return "the operating system's kernel"
    if library.startswith(("libc.", "ld-", "libm.")):
        return "libc"
    if symbol.startswith("ynn::dot"):
        return "matrix kernels of YNNPACK"
    if symbol.startswith(("ynn::", "slinky::")):
        return "the rest of YNNPACK"
    if symbol.startswith("Eigen::internal"):
        return "Eigen's products and packing"
    return "the rest of the plugin" if library.startswith("libpjrt") else "other"


def samples(data: Path) -> Iterator[tuple[int, str, str]]:
    """The address, library and symbol of every sample."""
    command = ["perf", "script", "-i", data, "-F", "ip,sym,dso"]
    out = subprocess.run(command, check=True, capture_output=True, text=True, errors="replace")
    for line in out.stdout.splitlines():
        found = re.match(r"\s*([0-9a-f]+)\s+(.*)\((.*)\)\s*$", line)
        if found:
            yield int(found[1], 16), found[3].rsplit("/", 1)[-1].strip("[]"), found[2].strip()


def main() -> None:
    p = argparse.ArgumentParser(
        prog="bench_torch.profile",
        description="Tell where the processor time of a program of `anisoflight-bench model` goes. Needs perf.",
        epilog="Example: python -m bench_torch.profile vjp --network 32x32",
    )
    p.add_argument("program", help="as in `anisoflight-bench model --help`")
    p.add_argument("--network", default="32x32")
    p.add_argument("--calls", type=int, default=20)
    p.add_argument("--rows", type=int, default=12, help="kinds of generated code that are told apart")
    p.add_argument("--binary", type=Path, default=_ROOT / "bin" / "anisoflight-bench")
    options = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        dump, data = Path(folder), Path(folder) / "perf.data"
        environment = {**os.environ, "ANISOFLIGHT_PROGRAM_CACHE": "off", "XLA_FLAGS": f"--xla_dump_to={dump}"}
        command = [str(options.binary), "model", "--drive", "--network", options.network]
        with Ours(command, environment) as ours:
            ours.order(compile=options.program)
            ours.order(run=options.program, calls=3)
            recorder = subprocess.Popen(["perf", "record", "-q", "-F", "4000", "-p", str(ours.pid), "-o", data])
            time.sleep(1)
            taken = ours.order(run=options.program, calls=options.calls)
            recorder.send_signal(signal.SIGINT)
            recorder.wait()
            parts = generated_code(ours.pid)
        compiled = [f for path in dump.glob("*.o") for f in functions(path)]
        known = sorted((at, len(f.code), f.name) for f in compiled for at in places(f, parts))
        starts = [at for at, _, _ in known]
        time_of: Counter[str] = Counter()
        loops: dict[str, set[str]] = {}
        for address, library, symbol in samples(data):
            i = bisect.bisect(starts, address) - 1
            if i >= 0 and address < known[i][0] + known[i][1]:
                name = re.sub(r"(_kernel)?[._]?\d+", "", known[i][2])
                loops.setdefault(name, set()).add(known[i][2])
                time_of[name] += 1
            else:
                time_of[kind(library, symbol)] += 1
    total = time_of.total()
    took = taken["cpu"] / options.calls * 1e3
    print(f"{options.network}, {options.program}: {took:.0f} ms of processor time a call, {total} samples\n")
    print("| part | share |\n|---|---|")
    generated = Counter({name: n for name, n in time_of.items() if name in loops})
    for name, n in (time_of - generated).most_common():
        print(f"| {name} | {100 * n / total:.1f} % |")
    print(f"| generated code | {100 * generated.total() / total:.1f} % |")
    for name, n in generated.most_common(options.rows):
        print(f"| – `{name}`, {len(loops[name])} loops | {100 * n / total:.1f} % |")


if __name__ == "__main__":
    main()
