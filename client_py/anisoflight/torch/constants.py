"""Constants of a recorded program: what depends on no input and no parameter. torch computes them once, at export.

Only constants that the server may have no rule for are stored. The others stay operations, which keeps the names of
buffers, and a file from which weights can be drawn again.
"""

import math
import operator
from collections.abc import Mapping
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

LARGEST = 1 << 22  # most values of a computed constant: 16 MiB
EXACT = 1 << 24  # float32, the type of weights, holds all integers up to this
_LAYOUT = frozenset(
    """
    alias.default clone.default detach.default lift_fresh_copy.default _to_copy.default expand.default permute.default
    repeat.default select.int slice.Tensor squeeze.dim squeeze.dims transpose.int t.default unsqueeze.default
    view.default _unsafe_view.default flatten.using_ints chunk.default split.Tensor split_with_sizes.default unbind.int
    """.split()  # noqa: SIM905
)
_SERVED = _LAYOUT | frozenset(
    """
    arange.start_step full.default full_like.default scalar_tensor.default add.Tensor sub.Tensor mul.Tensor div.Tensor
    pow.Scalar pow.Tensor_Scalar neg.default abs.default exp.default log.default sin.default cos.default sqrt.default
    rsqrt.default reciprocal.default square.default sigmoid.default tanh.default where.self eq.Scalar eq.Tensor
    ne.Scalar ne.Tensor lt.Scalar lt.Tensor le.Scalar le.Tensor gt.Scalar gt.Tensor ge.Scalar ge.Tensor
    logical_and.default logical_not.default logical_or.default maximum.default minimum.default cat.default stack.default
    clamp.default floor.default sign.default log1p.default expm1.default erf.default flip.default
    """.split()  # noqa: SIM905
)


def split(graph: Any, buffers: Mapping[Any, torch.Tensor]) -> tuple[set[Any], dict[Any, torch.Tensor]]:
    """The nodes that the output needs, and of the other nodes those that are stored, with their values.

    buffers are the placeholders with constant values.
    """
    values: dict[Any, Any] = dict(buffers)
    folded: set[Any] = set()  # values that depend on an operation that the server may have no rule for
    for node in graph.nodes:
        if node.op == "call_function" and _constant(node, values):
            args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), values.__getitem__)
            values[node] = node.target(*args, **kwargs)
            if not _within(node, _SERVED) or not folded.isdisjoint(node.all_input_nodes):
                folded.add(node)
    needed: set[Any] = set()
    stored: dict[Any, torch.Tensor] = {}
    for node in reversed(graph.nodes):
        if node in needed and node in folded and not _within(node, _LAYOUT) and _storable(values[node]):
            stored[node] = values[node]
        elif node in needed or node.op == "output":
            needed.update(node.all_input_nodes)
    return needed - stored.keys(), stored


def _constant(node: Any, values: Mapping[Any, Any]) -> bool:
    """Whether the node is a small deterministic function of known values."""
    made = node.meta.get("val")
    parts = made if isinstance(made, list | tuple) else [made]
    return (
        all(isinstance(part, torch.Tensor) for part in parts)
        and all(one in values for one in node.all_input_nodes)
        and torch.Tag.nondeterministic_seeded not in getattr(node.target, "tags", ())
        and all(math.prod(part.shape) <= LARGEST for part in parts)
    )


def _within(node: Any, operations: frozenset[str]) -> bool:
    while node.target is operator.getitem:  # one of several results
        node = node.args[0]
    return str(node.target).removeprefix("aten.") in operations


def _storable(value: Any) -> bool:
    if not isinstance(value, torch.Tensor) or not value.numel() or value.is_complex():
        return False
    if value.is_floating_point():
        return bool(value.float().isfinite().all())
    return value.dtype is torch.bool or int(value.abs().max()) <= EXACT
