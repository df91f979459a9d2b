"""A module's forward pass as a list of operations: what torch.export records, in the form that the server reads.

Nodes are PyTorch's ATen operations, with its names of arguments. A reference to another node is "%NAME", a size that
grows with the batch {"batch": n}. docs/networks.md describes the file.
"""

from __future__ import annotations

import fnmatch
import math
import operator
import os
import re
import traceback
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch  # pyright: ignore[reportMissingImports]
from torch.fx.experimental.sym_node import SymNode  # pyright: ignore[reportMissingImports]

from ..errors import bad_model
from . import constants

_NUMBERS = (torch.SymInt, torch.SymFloat, torch.SymBool, int, float)
PREFIX = "module."  # of the names in a wrapper that holds the user's module
BATCH = 3  # of the example
_KEPT = frozenset(
    """
    linear conv2d silu gelu group_norm layer_norm rms_norm scaled_dot_product_attention softmax.int embedding sigmoid
    einsum dropout mish leaky_relu elu softplus relu hardtanh clamp pixel_shuffle pixel_unshuffle instance_norm chunk
    split.Tensor unbind.int repeat stack flip square matmul conv_transpose2d.input pad flatten.using_ints tanh
    var.correction expand index_select avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool2d max_pool3d
    """.split()  # noqa: SIM905
)
_RESAMPLING = re.compile(r"aten\._?(upsample_|adaptive_avg_pool)")
_DROPPED = ("device", "layout", "pin_memory", "memory_format", "generator", "non_blocking", "copy", "enable_gqa")


def record(
    wrapper: torch.nn.Module,
    examples: Sequence[tuple[str, dict[str, Any], torch.Tensor]],
    ratios_at: Sequence[str] = (),
) -> Recorded:
    """The program of wrapper(*tensors). Each input is (kind, arguments of its node, an example of batch `BATCH`).

    ratios_at are patterns of submodules whose outputs, [B, E], take the log-ratio inputs.
    """
    tensors = tuple(example for _, _, example in examples)
    dynamic = tuple({0: torch.export.Dim.AUTO} for _ in tensors)
    # numpy's square root calls a method of that name on a size that depends on the batch.
    with torch.no_grad(), _fixed_sizes() as fixed, patch.object(torch.SymFloat, "sqrt", torch.sym_sqrt, create=True):
        program = torch.export.export(wrapper, tensors, dynamic_shapes=dynamic, strict=False)
        table = torch.export.default_decompositions()
        table = {op: how for op, how in table.items() if not _RESAMPLING.match(str(op))}
        for name in _KEPT:
            kept, _, overload = name.partition(".")
            packet = getattr(torch.ops.aten, kept, None)
            if packet is not None:
                table.pop(getattr(packet, overload or "default", None), None)
        program = program.run_decompositions(table)
    return Recorded(program, examples, ratios_at, fixed)


@contextmanager
def _fixed_sizes() -> Iterator[list[str]]:
    """The lines of the user's program that take a size which may vary as a number, such as len(x)."""
    lines: list[str] = []
    take = SymNode.guard_int

    def noted(node: Any, *place: Any) -> int:
        if node.expr.free_symbols:
            lines.append(user_line(traceback.extract_stack()))
        return take(node, *place)

    with patch.object(SymNode, "guard_int", noted):
        yield lines


def user_line(frames: Sequence[traceback.FrameSummary]) -> str:
    """The innermost line of the user's program, in parentheses; empty for none."""
    inner = tuple(os.path.dirname(file) for file in (torch.__file__, __file__))
    found = [one for one in frames if not one.filename.startswith(inner)]
    return f" ({found[-1].filename}, line {found[-1].lineno})" if found else ""


class Recorded:
    """A forward pass: its nodes, output, and tensors by name."""

    def __init__(self, program: Any, examples: Sequence[Any], ratios_at: Sequence[str], fixed: Sequence[str]) -> None:
        self.program, self.fixed = program, fixed
        self.nodes: list[dict[str, Any]] = []
        self.output = ""
        self.tensors: dict[str, torch.Tensor] = {}
        self.lines: dict[str, str] = {}  # of the user's file, by node
        self.alias: dict[str, str] = {}  # of the nodes that log-ratio inputs are added to
        specs = {spec.arg.name: spec for spec in program.graph_signature.input_specs if hasattr(spec.arg, "name")}
        inputs = iter(examples)
        buffers = {
            node: value.detach()
            for node in program.graph.nodes
            if node.op == "placeholder" and (value := self.constant(specs[node.name])) is not None
        }
        needed, stored = constants.split(program.graph, buffers)
        last = _last(needed, program.graph, ratios_at)
        for node in program.graph.nodes:
            if node.op == "placeholder" and specs[node.name].kind.name == "USER_INPUT":
                kind, args, _ = next(inputs)
                self.add(node, "input", args, target=kind)
            elif node.op == "output":
                self.end(node)
            elif node in stored:
                self.keep(node, f"constant.{node.name}", stored[node], frozen=True)
            elif node not in needed:
                continue
            elif node.op == "placeholder":
                self.parameter(node, specs[node.name])
            else:
                self.call(node)
                if node in last:
                    self.ratio(node)

    def constant(self, spec: Any) -> torch.Tensor | None:
        """The value of a constant input. The table of conditions is none, since labels select its rows."""
        if spec.kind.name not in ("BUFFER", "CONSTANT_TENSOR") or spec.target.removeprefix(PREFIX) == "conditions":
            return None
        value = self.value(spec)
        return value if isinstance(value, torch.Tensor) else None

    def value(self, spec: Any) -> Any:
        return self.program.state_dict.get(spec.target, self.program.constants.get(spec.target))

    def add(self, node: Any, op: str, args: dict[str, Any], **rest: Any) -> None:
        value = node.meta.get("val")
        entry: dict[str, Any] = {"name": node.name, "op": op, **rest}
        if args:
            entry["args"] = args
        if isinstance(value, torch.Tensor):
            entry["shape"] = [_size(n, node) for n in value.shape]
            entry["dtype"] = str(value.dtype).removeprefix("torch.")
        module = _module(node)
        if module:
            entry["module"] = module
        self.nodes.append(entry)
        if places := re.findall(r'File "(.*)", line (\d+)', node.meta.get("stack_trace") or ""):
            self.lines[node.name] = f"{places[-1][0]}, line {places[-1][1]}"

    def parameter(self, node: Any, spec: Any) -> None:
        value = self.value(spec)
        if not isinstance(value, torch.Tensor):
            raise bad_model(f"{spec.target} must be a tensor, got {type(value).__name__}")
        name = spec.target.removeprefix(PREFIX)
        value = value.detach()
        if not value.dtype.is_floating_point and value.numel() and int(value.abs().max()) > constants.EXACT:
            raise bad_model(f"{name} holds integers over 2^24, which weights cannot: shorten them")
        self.keep(node, name, value, frozen=spec.kind.name != "PARAMETER" or not value.dtype.is_floating_point)

    def keep(self, node: Any, name: str, value: torch.Tensor, *, frozen: bool) -> None:
        """A tensor of the weights."""
        self.tensors[name] = value
        self.add(node, "param", {}, target=name, **({"frozen": True} if frozen else {}))

    def call(self, node: Any) -> None:
        value = node.meta.get("val")
        if isinstance(value, _NUMBERS) or "_assert" in str(node.target):
            return
        if node.target is operator.getitem:
            self.add(node, "getitem", {"of": self.encoded(node.args[0], node), "index": node.args[1]})
            return
        schema = getattr(node.target, "_schema", None)
        if schema is None:
            self.add(node, str(getattr(node.target, "__name__", node.target)), {})
            return
        args: dict[str, Any] = {}
        for place, argument in enumerate(schema.arguments):
            rest = node.kwargs.get(argument.name, argument.default_value)
            given = node.args[place] if place < len(node.args) else rest
            if given is not None and argument.name not in _DROPPED:
                args[argument.name] = self.encoded(given, node)
        self.add(node, str(node.target).removeprefix("aten."), args)

    def encoded(self, given: Any, node: Any) -> Any:
        if isinstance(given, torch.fx.Node):
            value = given.meta.get("val")
            return _size(value, node) if isinstance(value, _NUMBERS) else f"%{self.alias.get(given.name, given.name)}"
        if isinstance(given, torch.SymInt | torch.SymFloat):
            return _size(given, node)
        if isinstance(given, list | tuple):
            return [self.encoded(one, node) for one in given]
        if isinstance(given, torch.dtype):
            return str(given).removeprefix("torch.")
        if isinstance(given, float) and not math.isfinite(given):
            return "inf" if given > 0 else "-inf"
        if given is None or isinstance(given, bool | int | float | str):
            return given
        return str(given)

    def ratio(self, node: Any) -> None:
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor) or value.ndim != 2:
            raise bad_model(f"ratios_at must name modules that return an embedding [B, E]; {_module(node)} does not")
        self.add(node, "add_ratios", {"self": "%" + node.name, "index": len(self.alias)})
        self.nodes[-1]["name"] = self.alias[node.name] = f"{node.name}__ratios"

    def end(self, node: Any) -> None:
        found = node.args[0][0]
        if isinstance(found.meta["val"].shape[0], int):
            raise bad_model(
                "forward must work for any batch size; this module computes with the size of the example, or goes "
                f"through its images{next(iter(self.fixed), '')}: x.shape[0] may vary, len(x) may not"
            )
        self.output = str(self.alias.get(found.name, found.name))


def _last(needed: Container[Any], graph: Any, patterns: Sequence[str]) -> set[Any]:
    """The nodes that compute the outputs of the submodules of the patterns."""
    if not patterns:
        return set()
    found: dict[str, Any] = {}
    for node in graph.nodes:
        if node.op != "call_function" or node not in needed:
            continue
        for path, _ in (node.meta.get("nn_module_stack") or {}).values():
            if any(fnmatch.fnmatchcase(_module_path(path), pattern) for pattern in patterns):
                found[path] = node
    return set(found.values())


def _module(node: Any) -> str:
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    return _module_path(stack[-1][0]) if stack else ""


def _module_path(path: str) -> str:
    path = path.removeprefix("L['self'].").removeprefix("L['self']")
    return "" if path == PREFIX.rstrip(".") else path.removeprefix(PREFIX)


def _size(size: Any, node: Any) -> Any:
    """A number, or a multiple of the batch."""
    if isinstance(size, int | float):
        return size
    expression = size.node.expr
    symbols = list(expression.free_symbols)
    values = {float(expression.subs(dict.fromkeys(symbols, n))) for n in (BATCH, 5 * BATCH, 7 * BATCH)}
    if len(values) == 1:  # independent of the batch
        return values.pop() if isinstance(size, torch.SymFloat) else int(values.pop())
    times = expression / symbols[0]
    if len(symbols) != 1 or not times.is_Integer:
        made = f"{_module(node) or 'the module'} makes a tensor of size {expression}"
        raise bad_model(f"{made}, which is no multiple of the batch; only the number of images may vary")
    return {"batch": int(times)}
