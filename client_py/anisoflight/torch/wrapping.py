"""How a module of each kind is asked: wrappers of one form, F(sample, noise, class) → tensor."""

from __future__ import annotations

import inspect
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch  # pyright: ignore[reportMissingImports]

from ..errors import BadRequestError
from .program import BATCH

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass
class Wrapped:
    """A module in the server's form, with what its images and classes are."""

    module: torch.nn.Module
    examples: list[tuple[str, dict[str, Any], torch.Tensor]]
    channels: int
    height: int
    width: int
    labels: int = 0

    def call(self, sample: torch.Tensor, noise: torch.Tensor, label: torch.Tensor | None) -> torch.Tensor:
        """F; label is a class per sample, −1 for none."""
        given = [sample, noise.to(sample.dtype)]
        for kind, args, _ in self.examples[2:]:
            numbers = torch.full((len(sample),), -1) if label is None else label
            if kind == "label":
                given.append(torch.where(numbers < 0, args.get("none", -1), numbers))
            else:
                hot = torch.nn.functional.one_hot(numbers.clamp(min=0), self.labels)
                given.append((hot * (numbers >= 0)[:, None]).to(sample.dtype))
        return self.module(*given)


class _Diffusers(torch.nn.Module):
    """A model of diffusers: sample, timestep, and by name what else it takes. Learned variances are cut off."""

    def __init__(self, module: torch.nn.Module, channels: int, label_name: str = "", conditions: Any = None) -> None:
        super().__init__()
        self.module, self.channels, self.label_name = module, channels, label_name
        if conditions is not None:
            self.register_buffer("conditions", conditions)

    def forward(self, sample: torch.Tensor, noise: torch.Tensor, label: torch.Tensor | None = None) -> torch.Tensor:
        given: dict[str, Any] = {}
        if hasattr(self, "conditions"):
            table: torch.Tensor = self.conditions  # pyright: ignore[reportAssignmentType]
            if label is not None:
                rows = torch.nn.functional.embedding(label, table.flatten(1))
                given["encoder_hidden_states"] = rows.unflatten(1, table.shape[1:])
            else:
                given["encoder_hidden_states"] = table.expand(sample.shape[0], -1, -1)
        elif self.label_name:
            given[self.label_name] = label
        out = self.module(sample, noise, return_dict=False, **given)[0]
        return out[:, : self.channels]


class _Plain(torch.nn.Module):
    """forward(x, noise_label[, class_labels])."""

    def __init__(self, module: torch.nn.Module, channels: int) -> None:
        super().__init__()
        self.module, self.channels = module, channels

    def forward(self, sample: torch.Tensor, noise: torch.Tensor, label: torch.Tensor | None = None) -> torch.Tensor:
        out = self.module(sample, noise) if label is None else self.module(sample, noise, label)
        out = getattr(out, "sample", out)
        return (out[0] if isinstance(out, tuple | list) else out)[:, : self.channels]


def wrapped(
    module: torch.nn.Module,
    size: int | Sequence[int] | None,
    channels: int | None,
    labels: int | None,
    label: str,
    conditions: Any,
    empty: Any,
) -> Wrapped:
    """The module in the server's form. What its config says is asked there, else of the arguments."""
    config: Any = getattr(module, "config", {})
    of_diffusers = hasattr(config, "get") and type(module).__module__.startswith("diffusers.")
    if of_diffusers:
        size = size if size is not None else config.get("sample_size")
        channels = channels if channels is not None else config.get("in_channels")
    if size is None or channels is None:
        missing = "size" if size is None else "channels"
        raise BadRequestError(f"{missing} must be given for a {type(module).__name__}, got None", "BAD_MODEL")
    height, width = (int(size), int(size)) if isinstance(size, int) else (int(n) for n in size)
    like = next((p for p in module.parameters() if p.dtype.is_floating_point), torch.zeros(()))
    sample = torch.randn(BATCH, channels, height, width, dtype=like.dtype)
    examples: list[Any] = [("sample", {}, sample), ("noise", {}, torch.rand(BATCH, dtype=like.dtype) + 0.5)]
    if of_diffusers:
        wrapper, count, none = _of_diffusers(module, config, channels, labels, conditions, empty, like.dtype)
        if count:
            examples.append(("label", none, torch.arange(BATCH) % count))
        return Wrapped(wrapper, examples, channels, height, width, count)
    if conditions is not None:
        raise BadRequestError(
            "conditions are those of diffusers' modules; write forward(x, noise, labels)", "BAD_MODEL"
        )
    labels = labels or 0
    if labels:
        numbers = torch.arange(BATCH) % labels
        hot = label == "onehot"
        examples.append((label, {}, torch.eye(labels, dtype=like.dtype)[numbers]) if hot else ("label", {}, numbers))
    return Wrapped(_Plain(module, channels), examples, channels, height, width, labels)


def _of_diffusers(
    module: torch.nn.Module,
    config: Any,
    channels: int,
    labels: int | None,
    conditions: Any,
    empty: Any,
    dtype: torch.dtype,
) -> tuple[torch.nn.Module, int, dict[str, Any]]:
    """The wrapper of a module, its number of classes, and how its input of labels calls no class."""
    takes = inspect.signature(module.forward).parameters
    out = int(config.get("out_channels") or channels)
    if out not in (channels, 2 * channels):
        raise BadRequestError(
            f"out_channels must be in_channels, or twice that with learned variances; got {out} and {channels}",
            "BAD_MODEL",
        )
    if "encoder_hidden_states" in takes and config.get("cross_attention_dim"):
        if conditions is None:
            raise BadRequestError(
                "conditions must be given, [S, D] or [K, S, D]: the embeddings of one prompt, or of one per label; "
                f"a {type(module).__name__} has no other input",
                "BAD_MODEL",
            )
        table = torch.as_tensor(conditions, dtype=dtype)
        if table.ndim == 2:
            return _Diffusers(module, channels, conditions=table[None]), 0, {}
        last = torch.zeros_like(table[:1]) if empty is None else torch.as_tensor(empty, dtype=dtype)[None]
        return _Diffusers(module, channels, conditions=torch.cat([table, last])), len(table), {"none": len(table)}
    count = int(config.get("num_class_embeds") or config.get("num_embeds_ada_norm") or 0)
    if "class_labels" not in takes or not count:
        return _Diffusers(module, channels), 0, {}
    none = {}
    if type(module).__name__ == "DiTTransformer2DModel":  # its table has one row more: of no class
        none = {"none": count}
    elif labels is not None and labels < count:  # so has a UNet that was trained with a class left out
        none, count = {"none": labels}, labels
    return _Diffusers(module, channels, "class_labels"), count, none


def unwrapped(module: Any) -> Any:
    """The network inside torch.compile, DataParallel, DistributedDataParallel and AveragedModel."""
    while type(module).__name__ in ("OptimizedModule", "DataParallel", "DistributedDataParallel", "AveragedModel"):
        (module,) = module.children()
    return module


@contextmanager
def evaluating(module: torch.nn.Module) -> Iterator[None]:
    """The module in evaluation mode, and afterwards as it was."""
    training = {name: one.training for name, one in module.named_modules()}
    module.eval()
    try:
        yield
    finally:
        for name, one in module.named_modules():
            one.training = training[name]
