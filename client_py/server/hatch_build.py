"""Makes the wheel of the server from ``ANISOFLIGHT_WHEEL_BINARY``, a program.

It becomes the command ``anisoflight``, as it is, without a script of Python before it. The wheel depends on the XLA
plugin and the allocator that requirements.txt pins. Its tag is the oldest manylinux whose glibc has what the program
asks for.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VARIABLE = "ANISOFLIGHT_WHEEL_BINARY"
PLUGIN = "fastatomstruct-xla-cpu"
ALLOCATOR = "cmeel-mimalloc"
_MACHINES = {0x3E: ("x86_64", "2.17"), 0xB7: ("aarch64", "2.17")}
"""By ELF's e_machine: the name in tags, and the oldest glibc that Go's runtime and pip's tags have in common."""


class ServerHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        binary = os.environ.get(VARIABLE)
        if not binary:
            raise ValueError(f"{VARIABLE} must name the program; see make wheel")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag(Path(binary).read_bytes())}"
        build_data["shared_scripts"] = {os.path.abspath(binary): "anisoflight"}
        requirements = Path(self.root).parent / "requirements.txt"
        build_data["dependencies"] += [pinned(requirements, name) for name in (PLUGIN, ALLOCATOR)]


def platform_tag(program: bytes) -> str:
    """The tag of the platforms that a program for Linux runs on.

    >>> platform_tag(b"\\x7fELF\\x02\\x01".ljust(18, b"\\0") + b"\\xb7\\0" + b"\\0GLIBC_2.2.5\\0GLIBC_2.28\\0")
    'manylinux_2_28_aarch64'
    """
    machine = int.from_bytes(program[18:20], "little")
    if program[:6] != b"\x7fELF\x02\x01" or machine not in _MACHINES:
        raise ValueError(f"{VARIABLE} must name a program for Linux on x86-64 or arm64")
    name, oldest = _MACHINES[machine]
    asked = [
        oldest,
        *(found.decode() for found in re.findall(rb"\0GLIBC_([0-9]+\.[0-9]+)(?:\.[0-9]+)?(?=\0)", program)),
    ]
    major, minor = max(tuple(int(part) for part in version.split(".")) for version in asked)
    return f"manylinux_{major}_{minor}_{name}"


def pinned(requirements: Path, name: str) -> str:
    """A package's line of requirements.txt, with its platform."""
    for line in requirements.read_text(encoding="utf-8").splitlines():
        if line.startswith(name + "=="):
            return line
    raise ValueError(f"{requirements} does not pin {name}")
