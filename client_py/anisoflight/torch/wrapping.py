"""Wrappers of modules of every kind, called as F(sample, noise, class) → tensor."""

import inspect
import math
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

from ..errors import bad_model
from .program import BATCH

_TIMES = ("timestep", "timesteps", "timestep_ratio")  # what models of diffusers call the time


@dataclass
class Wrapped:
    """A module in the server's form, with the shape of its images and its number of classes."""

    module: torch.nn.Module
    examples: list[tuple[str, dict[str, Any], torch.Tensor]]
    channels: int
    height: int
    width: int
    labels: int = 0

    def call(self, sample: torch.Tensor, noise: torch.Tensor, label: torch.Tensor | None) -> torch.Tensor:
        """F; label is a class per sample, −1 for none."""
        arguments = [sample, noise.to(sample.dtype)]
        for kind, args, _ in self.examples[2:]:
            numbers = torch.full((len(sample),), -1) if label is None else label
            numbers = numbers.to(sample.device)
            if kind == "label":
                arguments.append(torch.where(numbers < 0, args.get("none", -1), numbers))
            else:
                hot = torch.nn.functional.one_hot(numbers.clamp(min=0), self.labels)
                arguments.append((hot * (numbers >= 0)[:, None]).to(sample.dtype))
        return self.module(*arguments)


@dataclass
class _Conditions:
    """Arguments by keyword: a table with a row per label, and one more for none if there are labels."""

    table: torch.Tensor
    """[K, …] of one condition, else [K, n] of all of them concatenated"""
    parts: dict[tuple[str, ...], tuple[torch.Size, torch.dtype]]
    """by parameter and keys in it: the shape of a row and its type"""
    labels: int

    def chosen(self, rows: torch.Tensor) -> dict[str, Any]:
        """The keywords of rows [B, n]."""
        keywords: dict[str, Any] = {}
        sizes = [math.prod(shape) for shape, _ in self.parts.values()]
        pieces = rows.split(sizes, 1) if len(sizes) > 1 else [rows]
        for ((*outer, last), (shape, dtype)), piece in zip(self.parts.items(), pieces, strict=True):
            holder = keywords
            for key in outer:
                holder = holder.setdefault(key, {})
            value = piece.unflatten(1, shape) if shape else piece[:, 0]
            holder[last] = value if dtype.is_floating_point else value.to(dtype)
        return keywords


def _conditions(conditions: Any, empty: Any, like: torch.Tensor) -> _Conditions:
    """The table of conditions by name, [K, …] or [1, …] for all labels, or of encoder_hidden_states [S, D] or [K, S,
    D].
    """
    per_label = empty is not None
    if not isinstance(conditions, Mapping):
        one = torch.as_tensor(conditions)
        per_label = per_label or one.ndim == 3
        conditions = {"encoder_hidden_states": one[None] if one.ndim == 2 else one}
        if per_label:
            empty = {"encoder_hidden_states": torch.zeros(one.shape[-2:]) if empty is None else torch.as_tensor(empty)}
    tensors, empty_rows = dict(_flat(conditions)), dict(_flat(empty or {}))
    rows = {len(value) if value.ndim else 0 for value in tensors.values()}
    count = max(rows, default=0)
    if not rows <= {1, count} or not count or not empty_rows.keys() <= tensors.keys():
        shapes = {".".join(key): list(value.shape) for key, value in tensors.items()}
        raise bad_model(
            "conditions must be tensors [K, …], a row for each of K labels, or [1, …] for all alike, and empty one row "
            f"of some of them, got {shapes} and {[*map('.'.join, empty_rows)]}"
        )
    columns, labels = [], count if per_label or count > 1 else 0
    for key, value in tensors.items():
        column = value.expand(count, *value.shape[1:])
        if labels:  # a condition of all labels is that of none too
            of_none = empty_rows.get(key, value[0] if len(value) == 1 else torch.zeros_like(value[0]))
            column = torch.cat([column, of_none.to(value).expand_as(value[:1])])
        columns.append(column.to(like))
    table = columns[0] if len(columns) == 1 else torch.cat([column.reshape(len(column), -1) for column in columns], 1)
    return _Conditions(table, {key: (value.shape[1:], value.dtype) for key, value in tensors.items()}, labels)


def _flat(conditions: Mapping[str, Any], outer: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], torch.Tensor]]:
    for key, value in conditions.items():
        if isinstance(value, Mapping):
            yield from _flat(value, (*outer, key))
        else:
            yield (*outer, *key.split(".")), torch.as_tensor(value)


class _Wrapper(torch.nn.Module):
    """F(sample, noise, class) of a module. Learned variances are cut off.

    Sample and noise are passed by the given names, or first without names. If size has one number or three, the
    server's image has height one, or the rows of all slices one after the other.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        channels: int,
        size: Sequence[int],
        names: Sequence[str] = (),
        label_name: str = "",
        conditions: _Conditions | None = None,
    ) -> None:
        super().__init__()
        self.module, self.channels, self.size, self.names = module, channels, size, names
        self.label_name, self.choice = label_name, conditions
        if conditions is not None:
            self.register_buffer("conditions", conditions.table)

    def forward(self, sample: torch.Tensor, noise: torch.Tensor, label: torch.Tensor | None = None) -> torch.Tensor:
        keywords: dict[str, Any] = {}
        if self.choice is not None:
            rows: Any = self.conditions.flatten(1)  # pyright: ignore[reportCallIssue]
            rows = rows.expand(sample.shape[0], -1) if label is None else torch.nn.functional.embedding(label, rows)
            keywords, label = self.choice.chosen(rows), None
        elif self.label_name:
            keywords, label = {self.label_name: label}, None
        if len(self.size) == 1:
            sample = sample.squeeze(2)
        elif len(self.size) == 3:
            sample = sample.unflatten(2, self.size[:2])
        out = self.call_module(sample, noise, label, keywords)
        out = getattr(out, "sample", out)
        out = (out[0] if isinstance(out, tuple | list) else out)[:, : self.channels]
        return out if len(self.size) == 2 else out.unsqueeze(2) if len(self.size) == 1 else out.flatten(2, 3)

    def call_module(self, sample: Any, noise: Any, label: Any, keywords: dict[str, Any]) -> Any:
        if self.names:
            return self.module(**dict(zip(self.names, (sample, noise), strict=True)), return_dict=False, **keywords)
        return self.module(sample, noise, *([] if label is None else [label]), **keywords)


class _Packed(_Wrapper):
    """Flux and similar transformers: tokens of 2×2 pixels with their positions, at times from 0 to 1."""

    def call_module(self, sample: Any, noise: Any, label: Any, keywords: dict[str, Any]) -> Any:
        height, width = (n // 2 for n in self.size)
        places = torch.cartesian_prod(*(torch.arange(n, device=sample.device) for n in (1, height, width))).to(sample)
        words = places.new_zeros(keywords["encoder_hidden_states"].shape[1], 3)
        tokens = torch.nn.functional.pixel_unshuffle(sample, 2).flatten(2).transpose(1, 2)
        out = super().call_module(tokens, 0.001 * noise, label, {"img_ids": places, "txt_ids": words, **keywords})[0]
        return torch.nn.functional.pixel_shuffle(out.transpose(1, 2).unflatten(2, (height, width)), 2)


def wrap(
    module: torch.nn.Module,
    size: int | Sequence[int] | None,
    channels: int | None,
    labels: int | None,
    label: str,
    conditions: Any,
    empty: Any,
) -> Wrapped:
    """The module in the server's form, from its config or the arguments."""
    config: Any = getattr(module, "config", {})
    known = hasattr(config, "get") and of_diffusers(module)
    takes = inspect.signature(module.forward).parameters
    packed = 4 if known and {"img_ids", "txt_ids"} <= takes.keys() else 1
    if known:
        size = size if size is not None else config.get("sample_size")
        if channels is None and config.get("in_channels"):
            channels = config["in_channels"] // packed
    if size is None or channels is None:
        missing = "size" if size is None else "channels"
        raise bad_model(f"{missing} must be given for a {type(module).__name__}, got None")
    axes = (int(size), int(size)) if isinstance(size, int) else tuple(int(n) for n in size)
    if not 1 <= len(axes) <= 3:
        raise bad_model(f"size must be a number, (L,), (H, W) or (D, H, W), got {size}")
    height, width = math.prod(axes[:-1]), axes[-1]
    like = next((p for p in module.parameters() if p.dtype.is_floating_point), torch.zeros(()))
    sample, noise = like.new_empty(BATCH, channels, height, width).normal_(), like.new_empty(BATCH).uniform_(0.5, 1.5)
    sample_args: dict[str, Any] = {} if len(axes) == 2 else {"size": list(axes)}
    examples: list[Any] = [("sample", sample_args, sample), ("noise", {}, noise)]
    numbers = torch.arange(BATCH, device=like.device)
    table, none, names, name = None, {}, (), ""
    if known:
        out = int(config.get("out_channels") or channels * packed)
        if out not in (channels * packed, 2 * channels * packed):
            message = "out_channels must be in_channels, or twice that with learned variances"
            raise bad_model(f"{message}; got {out} and {channels * packed}")
        names = (next(iter(takes)), next((one for one in _TIMES if one in takes), _TIMES[0]))
    if conditions is not None:
        if labels is not None:
            raise bad_model("labels must not be given with conditions, whose rows the labels are")
        table = _conditions(conditions, empty, like.detach())
        labels, none = table.labels, {"none": table.labels}
        sample_args["conditions"] = [[".".join(key), *shape] for key, (shape, _) in table.parts.items()]
    elif known:
        count = int(config.get("num_class_embeds") or config.get("num_embeds_ada_norm") or 0)
        count, name = (count, "class_labels") if count and "class_labels" in takes else (0, "")
        more = type(module).__name__ == "DiTTransformer2DModel"  # a row of its table for no class, beyond the count
        labels = count if labels is None or more else min(labels, count)
        none = {"none": labels} if more or labels < count else {}  # else the last row, of a UNet with a class left out
    if labels and label == "onehot" and not known and table is None:
        examples.append((label, {}, torch.eye(labels, dtype=like.dtype, device=like.device)[numbers % labels]))
    elif labels:
        examples.append(("label", none, numbers % labels))
    kind = _Packed if packed > 1 else _Wrapper
    return Wrapped(kind(module, channels, axes, names, name, table), examples, channels, height, width, labels or 0)


def adapter(wrapped: Wrapped) -> str:
    """A hint with a module to copy, if a forward pass needs more arguments; else empty."""
    wrapper: Any = wrapped.module
    takes = inspect.signature(wrapper.module.forward).parameters
    head = wrapper.names or [*takes][: len(wrapped.examples)]
    parts = wrapper.choice.parts if wrapper.choice else ()
    given = {*head, wrapper.label_name, "return_dict", *(key[0] for key in parts)}
    # In diffusers, what is needed may have None as its default.
    needed = {k for k, one in takes.items() if one.default is one.empty or (wrapper.names and one.default is None)}
    missing = [k for k, one in takes.items() if k in needed - given and one.kind < one.VAR_KEYWORD]
    if not missing:
        return ""
    call = ", ".join(f"{name}={value}" for name, value in zip(head, ("x", "noise_label", "class_labels"), strict=False))
    return f"""
forward also takes {", ".join(missing)}: give what it needs as conditions={{"{missing[0]}": …}}, or send an adapter:

class Adapter(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x, noise_label{", class_labels" if len(head) > 2 else ""}):
        return self.module({call}, {missing[0]}=…)"""


def of_diffusers(module: Any) -> bool:
    """Whether a network's class is one of diffusers."""
    return type(module).__module__.startswith("diffusers.")


def config_shape(module: Any) -> tuple[int, ...] | None:
    """The shape (C, *axes) of one sample that the config of a network says; None if it does not.

    Of diffusers: in_channels and sample_size, of networks for images, signals and Latte's videos that take nothing else
    as channels. Of EDM and EDM2: img_channels and img_resolution.
    """
    config: Any = getattr(module, "config", None)
    name = next((kind.__name__ for kind in type(module).__mro__ if kind.__module__.startswith("diffusers.")), "")
    if not name or not isinstance(config, Mapping):
        channels, size, axes = getattr(module, "img_channels", None), getattr(module, "img_resolution", None), 2
    else:
        channels, size = config.get("in_channels"), config.get("sample_size")
        axes = (
            1 if "1D" in name or name == "StableAudioDiTModel" else 2 if "2D" in name and name != "UVit2DModel" else 0
        )
        if (config.get("out_channels") or channels) not in (channels, 2 * (channels or 0)):
            return None  # the network takes an image or a mask beside the sample
        if config.get("video_length") and isinstance(size, int):
            axes, size = 3, (config["video_length"], size, size)
    out: tuple[Any, ...] = channels, *(size if isinstance(size, list | tuple) else [size] * axes)
    return out if axes and len(out) == 1 + axes and all(isinstance(n, int) for n in out) else None


def unwrapped(module: Any) -> Any:
    """The network inside torch.compile, DataParallel, DistributedDataParallel and AveragedModel."""
    while type(module).__name__ in ("OptimizedModule", "DataParallel", "DistributedDataParallel", "AveragedModel"):
        (module,) = module.children()
    return module


_LOCK = threading.Lock()
_EVALUATED: dict[torch.nn.Module, list[Any]] = {}  # the number of evaluations in progress, and the former mode


@contextmanager
def evaluating(module: torch.nn.Module) -> Iterator[None]:
    """The module in evaluation mode; in its former mode once no thread needs the other."""
    with _LOCK:
        parts = [*module.modules()] if module.training or module in _EVALUATED else []
        for one in parts:
            _EVALUATED.setdefault(one, [0, one.training])[0] += 1
        if parts:
            module.eval()
    try:
        yield
    finally:
        with _LOCK:
            for one in parts:
                _EVALUATED[one][0] -= 1
                if not _EVALUATED[one][0]:
                    one.training = _EVALUATED.pop(one)[1]


def compute_type(module: torch.nn.Module) -> torch.dtype | None:
    """The type in which a network computes, of 16 bits or more: that of layerwise casting, else its own `dtype`, as
    diffusers has it, else that of most of its weights. None if it has none.
    """
    for hook in _hooks(module, "layerwise_casting"):
        return hook.compute_dtype
    named: Any = getattr(module, "dtype", None)
    if isinstance(named, torch.dtype) and named.is_floating_point and named.itemsize > 1:
        return named
    for weights in (module.parameters(), module.buffers()):
        sizes = Counter[torch.dtype]()
        for weight in weights:
            if weight.is_floating_point() and weight.itemsize > 1:
                sizes[weight.dtype] += weight.numel()
        if sizes:
            return max(sizes, key=sizes.__getitem__)
    return None


def execution_device(module: torch.nn.Module) -> torch.device | None:
    """The device on which a network computes: where hooks that offload its weights bring them, else that of them."""
    for one in module.modules():
        hook = vars(one).get("_hf_hook")  # of accelerate
        device = getattr(hook, "execution_device", None)
        if device is not None:
            return torch.device(device)
    for hook in _hooks(module, "group_offloading"):
        return torch.device(hook.group.onload_device)
    return next((weight.device for weight in (*module.parameters(), *module.buffers())), None)


def _hooks(module: torch.nn.Module, name: str) -> Iterator[Any]:
    """The hooks of diffusers with that name."""
    for one in module.modules():
        registry = vars(one).get("_diffusers_hook")
        if registry is not None and (hook := registry.get_hook(name)) is not None:
            yield hook
