"""Programs as XLA's compiler for GPUs leaves them: what their text says of kernels, work and traffic.

Only the program's own schedule counts, the instructions of its entry: each is a kernel, or a call of cuDNN or cuBLAS.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

WIDTH = {"pred": 1, "s8": 1, "u8": 1, "s16": 2, "u16": 2, "bf16": 2, "f16": 2, "s32": 4, "u32": 4, "f32": 4, "s64": 8,
         "u64": 8, "f64": 8}  # fmt: skip
"""Bytes of an element."""
FREE = {"parameter", "constant", "get-tuple-element", "bitcast", "tuple", "after-all"}
"""Operations that start no kernel."""
SLICES = {"slice", "dynamic-slice", "gather"}
SAME = {"bitcast", "reshape", "convert", "copy", "transpose"}

_SHAPE = re.compile(rf"\b({'|'.join(WIDTH)})\[([\d,]*)\]")
_COMPUTATION = re.compile(r"^(ENTRY )?%([\w.\-]+) \(.*\{\s*$")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%([\w.\-]+) = (\(.*?\)|\S+) ([a-z][\w\-]*)\((.*)$")
_CALLED = re.compile(r"(?:calls|to_apply|body|condition)=%([\w.\-]+)")


@dataclass(frozen=True)
class Shape:
    """A tensor's type."""

    dtype: str
    dims: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.dims)

    @property
    def bytes(self) -> int:
        return WIDTH[self.dtype] * self.size


def shapes(text: str) -> list[Shape]:
    """The tensors that a text names."""
    return [Shape(dtype, tuple(int(n) for n in dims.split(",") if n)) for dtype, dims in _SHAPE.findall(text)]


@dataclass(frozen=True)
class Instruction:
    """A line of a computation."""

    name: str
    shapes: list[Shape]
    opcode: str
    operands: tuple[str, ...]
    inside: str
    """What stands in the brackets."""
    attributes: str

    @property
    def bytes(self) -> int:
        return sum(shape.bytes for shape in self.shapes)

    @property
    def target(self) -> str:
        """What a custom call calls."""
        found = re.search(r'custom_call_target="([^"]*)"', self.attributes)
        return found[1] if found else ""

    @property
    def called(self) -> list[str]:
        return _CALLED.findall(self.attributes)

    def numbers(self, attribute: str) -> list[int]:
        found = re.search(attribute + r'"?[=:][{\[]([\d,"]*)[}\]]', self.attributes)
        return [int(n) for n in found[1].replace('"', "").split(",") if n] if found else []


Computation = dict[str, Instruction]


@dataclass(frozen=True)
class Kernel:
    """What runs on its own."""

    name: str
    kind: str
    """The library's function, or XLA's kind of a fusion."""
    bytes: int
    """Of operands and results, each counted once, of what is sliced the slices."""
    products: list[Product] = field(default_factory=list)

    @property
    def flops(self) -> int:
        return sum(product.flops for product in self.products)


@dataclass(frozen=True)
class Product:
    """A convolution or a matrix product."""

    flops: int
    dtype: str
    """Of its factors."""
    exact: bool
    """Its factors may not be rounded to TensorFloat-32."""
    layout: str = ""
    """Of a convolution: input, kernel and output."""


class Module:
    """An optimised program."""

    def __init__(self, text: str) -> None:
        self.computations: dict[str, Computation] = {}
        self.entry: Computation = {}
        current: Computation | None = None
        for line in text.splitlines():
            if found := _COMPUTATION.match(line):
                current = self.computations.setdefault(found[2], {})
                if found[1]:
                    self.entry = current
            elif current is not None and (found := _INSTRUCTION.match(line)):
                inside, attributes = _brackets(found[4])
                operands = tuple(re.findall(r"%([\w.\-]+)", inside))
                current[found[1]] = Instruction(found[1], shapes(found[2]), found[3], operands, inside, attributes)
        taken = re.findall(r"\}: \((\d+), \{\}, m\w+-alias\)", text[: text.find("\n")])
        self.aliased = sum(i.bytes for i in self.entry.values() if i.opcode == "parameter" and i.inside in taken)
        """Bytes of parameters whose memory outputs take over."""
        self.kernels = [self._kernel(i) for i in self.entry.values() if i.opcode not in FREE]

    def _kernel(self, i: Instruction) -> Kernel:
        sizes = {name: self.entry[name].bytes for name in i.operands}
        kind = i.target or i.opcode
        if i.opcode == "fusion":
            kind = next(iter(re.findall(r"kind=(k\w+)", i.attributes)), kind)
            sizes = self._reads(i, sizes)
        return Kernel(i.name, kind, i.bytes + sum(sizes.values()), list(self._products(self.entry, i)))

    def _reads(self, fusion: Instruction, sizes: dict[str, int]) -> dict[str, int]:
        """Bytes that a fusion reads of each operand."""
        body = self.computations[fusion.called[0]]
        users: dict[str, list[Instruction]] = defaultdict(list)
        for i in body.values():
            for operand in set(i.operands):
                users[operand].append(i)
        names = {int(i.inside): i.name for i in body.values() if i.opcode == "parameter"}

        def read(name: str, width: int) -> float:
            """Elements that are read of a value, in bytes of the operand's."""
            total = 0.0
            for user in users[name]:
                if user.opcode in SLICES:
                    total += sum(shape.size for shape in user.shapes) * width
                elif user.opcode in SAME:
                    total += read(user.name, width)
                else:
                    return math.inf
            return total

        found: dict[str, int] = defaultdict(int)
        for index, operand in enumerate(fusion.operands):
            value = body[names[index]]
            part = read(value.name, WIDTH[value.shapes[0].dtype]) if value.shapes else 0
            found[operand] = int(min(sizes[operand], found[operand] + part))
        return found

    def _products(self, among: Computation, i: Instruction) -> Iterator[Product]:
        """Convolutions and products of an instruction, and of what it calls."""
        if "$conv" in i.target:
            yield _convolution(among, i)
        elif i.opcode == "dot" or "matmul" in i.target or "gemm" in i.target:
            left = among[i.operands[0]].shapes[0]
            summed = math.prod(left.dims[n] for n in i.numbers("lhs_contracting_dim(?:ension)?s"))
            yield Product(2 * i.shapes[0].size * summed, left.dtype, _exact(i))
        elif i.opcode == "convolution":
            yield Product(0, among[i.operands[0]].shapes[0].dtype, _exact(i), "no library")
        for name in i.called:
            for inner in self.computations[name].values():
                yield from self._products(self.computations[name], inner)


def _brackets(text: str) -> tuple[str, str]:
    """What stands before the bracket that closes, and what behind."""
    depth = 1
    for n, character in enumerate(text):
        depth += (character in "({") - (character in ")}")
        if depth == 0:
            return text[:n], text[n + 1 :]
    return text, ""


def _exact(i: Instruction) -> bool:
    """Whether both factors are; what cuDNN adds has a precision, too."""
    found = re.search(r'operand_precision"?[=:][{\[]([\w,"]*)[}\]]', i.attributes)
    return bool(found) and re.findall(r"\w+", found[1].lower())[:2] == ["highest", "highest"]


def _convolution(among: Computation, i: Instruction) -> Product:
    """A call of cuDNN. Forward and by its input it takes a kernel, by its kernel it returns one."""
    labels = re.search(r"dim_labels=(\w+)_(\w+)->(\w+)", i.attributes)
    if labels is None:
        raise ValueError(f"{i.name}: a convolution without its axes")
    first, second = (among[name].shapes[0] for name in i.operands[:2])
    result = i.shapes[0]
    kernel, images = second, result
    if "BackwardFilter" in i.target:
        kernel, images = result, second
    elif "BackwardInput" in i.target:
        images = first
    flops = 2 * images.size * kernel.size // kernel.dims[labels[2].index("o")]
    return Product(flops, first.dtype, _exact(i), labels[0].removeprefix("dim_labels="))


@dataclass(frozen=True)
class GPU:
    """What bounds a kernel, from the data sheet."""

    name: str
    memory: int
    """Bytes."""
    bandwidth: float
    """Bytes a second."""
    memory_clock: int
    """kHz."""
    rates: dict[str, float] = field(
        default_factory=lambda: {"bf16": 989e12, "tf32": 495e12, "f32": 67e12, "f64": 34e12}
    )
    """FLOP/s of products, by type of factors; dense, without sparsity."""

    def seconds(self, kernels: Iterable[Kernel]) -> float:
        """The least that the kernels take, one after the other: each as long as its products or its traffic."""
        return sum(max(sum(p.flops / self.rate(p) for p in k.products), k.bytes / self.bandwidth) for k in kernels)

    def rate(self, product: Product) -> float:
        return self.rates["tf32" if product.dtype == "f32" and not product.exact else product.dtype]
