"""Lists as they are typed: blocks of seeds and numbers of evaluations."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .errors import FidError
from .published import NFES

_BLOCK = re.compile(r"(\d+)-(\d+)")


@dataclass(frozen=True)
class Block:
    """Seeds first … last."""

    first: int
    last: int

    @property
    def count(self) -> int:
        return self.last - self.first + 1

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"


def blocks_of(text: str) -> list[Block]:
    """Blocks of seeds: each is measured by itself.

    >>> [block.count for block in blocks_of("0-49999,50000-99999")]
    [50000, 50000]
    """
    blocks = []
    for part in text.split(","):
        match = _BLOCK.fullmatch(part.strip())
        if match is None or int(match[1]) >= int(match[2]):
            raise FidError(f"--seeds: {part!r} is no block of seeds such as 0-49999", "BAD_REQUEST")
        blocks.append(Block(int(match[1]), int(match[2])))
    for one, other in zip(sorted(blocks, key=_start), sorted(blocks, key=_start)[1:], strict=False):
        if other.first <= one.last:
            raise FidError(f"--seeds: blocks {one} and {other} share seeds", "BAD_REQUEST")
    return blocks


def numbers_of(text: str, flag: str) -> list[int]:
    """Positive whole numbers, or the name of one of the paper's data sets for its list.

    >>> numbers_of("9,35", "--nfe"), numbers_of("cifar10", "--nfe")
    ([9, 35], [9, 11, 13, 15, 17, 35, 59, 79])
    """
    if text in NFES:
        return list(NFES[text])
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        found = [0]
    if min(found) < 1:
        named = f", or one of {', '.join(NFES)}" if flag == "--nfe" else ""
        raise FidError(f"{flag}: {text!r} is no list of positive numbers such as 9,35{named}", "BAD_REQUEST")
    return list(dict.fromkeys(found))


def _start(block: Block) -> int:
    return block.first
