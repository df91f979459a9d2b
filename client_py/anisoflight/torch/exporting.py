"""A module of PyTorch as a model folder: config.json and model.safetensors."""

import copy
import json
import os
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch  # pyright: ignore[reportMissingImports]

from ..errors import BadRequestError, bad_model, warn
from ..files import path_of
from .program import record, user_line
from .wrapping import Wrapped, adapter, evaluating, unwrapped, wrap


@dataclass
class Exported:
    """A module in the server's form: `save` writes it as a model folder, `Client.put_network` sends it."""

    config: dict[str, Any]
    """What config.json holds."""
    tensors: dict[str, torch.Tensor]
    """Parameters and buffers by the module's own names."""
    wrapped: Wrapped
    """The module as the server calls it."""

    lines: dict[str, str] = field(default_factory=dict)
    """The lines of the user's program by node."""

    def weights(self) -> tuple[int, Iterator[memoryview]]:
        """The size of model.safetensors, and its parts. A float32 tensor on the CPU is not copied; others are, one at a
        time.
        """
        header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
        size = 0
        for name, value in self.tensors.items():
            ends = [size, size := size + 4 * value.numel()]
            header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": ends}
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)

        def parts() -> Iterator[memoryview]:
            yield memoryview(len(text).to_bytes(8, "little") + text)
            for value in filter(torch.numel, self.tensors.values()):
                yield memoryview(value.detach().cpu().float().contiguous().view(-1).numpy()).cast("B")

        return 8 + len(text) + size, parts()

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write config.json and model.safetensors into a new folder, a model of a server."""
        target = path_of(folder)
        target.mkdir(parents=True)
        (target / "config.json").write_text(json.dumps(self.config), encoding="utf-8")
        with (target / "model.safetensors").open("wb") as file:
            file.writelines(self.weights()[1])
        return target


def export(
    module: torch.nn.Module,
    *,
    size: int | Sequence[int] | None = None,
    channels: int | None = None,
    labels: int | None = None,
    label: Literal["index", "onehot"] = "index",
    classes: Sequence[str] | None = None,
    conditions: Any = None,
    empty: Any = None,
    parametrization: Mapping[str, Any] | None = None,
    mean: float | Sequence[float] | None = None,
    scale: float | Sequence[float] | None = None,
    label_dropout: float = 0.0,
    ratios_at: str | Sequence[str] | None = None,
) -> Exported:
    """Export a denoiser: torch.export records its forward pass for any number of images.

    - A model of diffusers knows its `size`, `channels` and `labels`. Its image and time are passed by the names of its
      forward, and packed for Flux; learned variances are cut off.
    - Any other module is called as forward(x, noise_label), or forward(x, noise_label, class_labels) with `labels`
      classes: integers, or with label="onehot" float [B, labels], zeros for none. x is [B, channels, *size]; `size` is
      an integer for a square, (H, W), (L,) or (D, H, W).
    - `conditions` are passed by keyword: a mapping of tensors [K, …], whose row k is for label k, or [1, …] for all
      labels; a mapping in it is a dictionary argument. Label −1 gets `empty`, a row by name, by default zeros. A tensor
      [K, S, D], or [S, D] without labels, is encoder_hidden_states.

    `mean` and `scale`, a number or one per channel, are those of data in other units: the network sees (x −
    mean)/scale, and samples are in the data's units. `Latents` has those of an autoencoder.

    `ratios_at` names the submodules, by patterns such as "time_embedding", whose outputs [B, E] can take the log-ratio
    inputs of anisotropic training; by default diffusers' embeddings of time. Their weights are zero until they are
    trained. Dropout is active in training on the server at the module's rates.

    The server computes in float32: a module in bfloat16 or float16 is copied to float32, with a warning.
    """
    module = _in_float32(unwrapped(module))
    with evaluating(module):
        wrapped = wrap(module, size, channels, labels, label, conditions, empty)
        try:
            found = record(wrapped.module, wrapped.examples, _places(module, ratios_at))
        except BadRequestError:
            raise
        except Exception as error:
            reason = str(error).strip().splitlines()
            line = user_line(traceback.extract_tb(error.__traceback__))
            raise bad_model(
                f"torch.export cannot record a {type(module).__name__}: {reason[0] if reason else error!r}{line}; "
                "a network that stays in the notebook is sampled there, with anisoflight.diffusers.Scheduler"
                f"{adapter(wrapped)}"
            ) from error
    if classes is not None and len(classes) != wrapped.labels:
        raise bad_model(f"classes must name all {wrapped.labels} labels, got {len(classes)} names")
    config: dict[str, Any] = {
        "model_type": "Graph",
        "img_resolution": wrapped.height if wrapped.height == wrapped.width else [wrapped.height, wrapped.width],
        "img_channels": wrapped.channels,
        "label_dim": wrapped.labels,
    }
    if label_dropout:
        config["label_dropout"] = label_dropout
    if classes is not None:
        config["classes"] = list(classes)
    if parametrization is not None:
        config["parametrization"] = dict(parametrization)
    if mean is not None or scale is not None:
        numbers = {"mean": 0 if mean is None else mean, "scale": 1 if scale is None else scale}
        config["normalization"] = {name: _spread(name, given, wrapped.channels) for name, given in numbers.items()}
    config["graph"] = {"nodes": found.nodes, "output": found.output}
    return Exported(config, found.tensors, wrapped, found.lines)


def _in_float32(module: torch.nn.Module) -> torch.nn.Module:
    """The module, or a copy in float32 if a tensor has a shorter type."""
    tensors = (*module.parameters(), *module.buffers())
    short = {str(tensor.dtype) for tensor in tensors if tensor.is_floating_point() and tensor.itemsize < 4}
    if not short:
        return module
    named = f"{type(module).__name__} is in {' and '.join(sorted(short)).replace('torch.', '')}"
    try:
        longer = copy.deepcopy(module).float()
    except Exception as error:
        raise bad_model(f"the {named}, and cannot be copied ({error}); give module.float()") from error
    warn([f"the {named}; a copy in float32 is served"])
    return longer


def _spread(name: str, numbers: float | Sequence[float], channels: int) -> list[float]:
    """A number for each channel."""
    try:
        return np.broadcast_to(np.asarray(numbers, np.float64), channels).tolist()
    except ValueError:
        raise bad_model(f"{name} must be one number, or one for each of {channels} channels, got {numbers}") from None


def _places(module: torch.nn.Module, patterns: str | Sequence[str] | None) -> list[str]:
    """The names of the submodules whose outputs can take log-ratios."""
    if patterns is not None:
        return [patterns] if isinstance(patterns, str) else list(patterns)
    return [name for name, one in module.named_modules() if type(one).__name__ == "TimestepEmbedding"]
