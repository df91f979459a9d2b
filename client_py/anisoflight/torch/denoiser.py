"""Denoisers made of networks in torch: any kind, any conditions, with guidance, on the network's own device."""

from __future__ import annotations

import copy
import functools
import inspect
import math
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch  # pyright: ignore[reportMissingImports]

from ..errors import BadRequestError
from ..networks import ddpm
from .meaning import meaning, network_of, range_of
from .trial import Trial, trial_of
from .wrapping import evaluating, unwrapped

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..networks import Network
    from ..subspaces import Subspaces

Tensor = torch.Tensor

_TIMES = ("timestep", "timesteps", "sigma", "sigmas", "t", "time", "noise", "noise_label", "noise_labels")
_CONDITIONS = ("encoder_hidden_states", "class_labels", "labels", "label", "y", "context", "cond")
_ALL = (0.0, math.inf)


class Denoiser:
    """x_0 from a network in torch, at any noise level:

        D(x, σ) = Σ_j P_j (keep_j x + √g_j out_j F(Σ_j in_j P_j x, time)),    time at σ = Π_j g_j^{1/2J},

    for x = x_0 + σε [B, C, *axes], one to three axes, and σ a number or [B]; in the subspaces of a basis, √g [B, J].

    `network` is a module or any function F(z, time, …). What it takes and returns follows from `scheduler` and
    `prediction`, as `parametrization` takes them; by default it is EDM's raw F. "denoiser" is one that takes x and σ
    and returns x_0, such as EDMPrecond and k-diffusion's Denoiser. One that takes α x and a time in [0, 1], such as
    azula's, has in place of a scheduler its noise schedule, a function from time to α and ασ. It returns a tensor, an
    array, a tuple with either first, or something with `sample` or `mean`. Learned variances are dropped.

    - `cond` has conditions by the network's keywords, with a row for each: labels [K], prompts [K, S, D], fields
      [K, C, H, W], a mapping of such. A tensor alone is the one condition that the network's signature has. A call
      says by `rows` which of them its samples have; or it has conditions by keyword, with a row for each sample.
      Inputs without rows are bound by functools.partial.
    - `guidance` s gives D_empty + s (D_cond − D_empty) at noise levels in the `interval` (low, high]. `empty` has what
      stands for no condition, one row by keyword. A network with an input for guidance has that in `cond`.
    - `dtype` is what the network takes, by default its weights' type; a numpy dtype means that it takes arrays. x_0 has
      x's type, but at least float32, and x's device. `device` is the network's, by default that of its weights.
    - `batch` is the number of rows that the network evaluates at most at once, by default all; it is halved when the
      device's memory is exhausted.

    Gradients flow to x, σ and conditions that require them. Raises BadRequestError.

    >>> D = Denoiser(lambda x, sigma: x / (1 + sigma[:, None, None] ** 2), "denoiser")
    >>> D(torch.ones(1, 1, 3), 1.0)
    tensor([[[0.5000, 0.5000, 0.5000]]])
    """

    def __init__(
        self,
        network: Callable[..., Any],
        scheduler: Any = None,
        prediction: str | None = None,
        *,
        cond: Any = None,
        empty: Any = None,
        guidance: float = 1.0,
        interval: Sequence[float] = _ALL,
        dtype: Any = None,
        batch: int | None = None,
        device: Any = None,
        sigma_min: float | None = None,
        sigma_max: float | None = None,
    ) -> None:
        self._network, self._module = network, _module_of(network)
        ends = {"sigma_min": sigma_min, "sigma_max": sigma_max}
        if callable(scheduler):
            self.parametrization: dict[str, Any] = {"kind": "denoiser"}
            self._kind, self.sigma_min, self.sigma_max = _of_schedule(scheduler)
        else:
            self.parametrization = meaning(self._module or network, scheduler, prediction)
            self.parametrization |= {key: float(end) for key, end in ends.items() if end is not None}
            self._kind = network_of(self.parametrization)[0]
            self.sigma_min, self.sigma_max = range_of(self.parametrization)
        tensors = [] if self._module is None else [*self._module.parameters(), *self._module.buffers()]
        own = next((tensor for tensor in tensors if tensor.is_floating_point()), None)
        self._dtype = dtype if dtype is not None else getattr(own, "dtype", None)
        self._arrays = self._dtype is not None and not isinstance(self._dtype, torch.dtype)
        where = device if device is not None else getattr(own, "device", None)
        self._device = None if where is None else torch.device(where)
        self._names, self._time = _signature(network, self._module)
        self._cond, self._empty = self._named(cond, "cond"), self._named(empty, "empty")
        self.rows = _count("cond", self._cond)
        """How many conditions there are, K; 0 for none."""
        self._rows: Any = None
        self._subspaces: Subspaces | None = None
        self.guidance, self.interval = float(guidance), (float(interval[0]), float(interval[1]))
        if self.guidance != 1 and _count("empty", self._empty) != 1:
            raise BadRequestError(
                f"empty must be given for guidance {guidance:g}: what stands for no condition, one row by keyword"
            )
        if batch is not None and batch < 1:
            raise BadRequestError(f"batch must be 1 or more, got {batch}")
        self._shared = SimpleNamespace(counts=0, batch=batch or 1 << 40)  # by all that are made of this one

    @property
    def device(self) -> torch.device:
        """Where the network is; the CPU for a function, which is asked wherever x is."""
        return self._device or torch.device("cpu")

    @property
    def counts(self) -> int:
        """The number of rows that the network has evaluated, for this denoiser and what `at` and others made of it."""
        return self._shared.counts

    @property
    def evaluations_per_call(self) -> int:
        """The number of rows that the network evaluates for each sample: 2 with guidance."""
        return 1 if self.guidance == 1 else 2

    def in_subspaces(self, subspaces: Subspaces) -> Self:
        """The same in the subspaces of a basis."""
        return self._with(_subspaces=subspaces)

    def at(self, rows: Any) -> Self:
        """The same for samples whose conditions have these numbers, [B]."""
        return self._with(_rows=rows)

    def check(self, shape: Sequence[int], data: Any = None, rows: Any = None, samples: int = 4) -> Trial:
        """Try the network on so many samples of a shape (C, *axes); see `Trial`.

        It is refused where it raises, returns another shape or what is not finite, and where its answers are clearly
        those of another kind, which the error names. x_0 are some of `data` [N, C, *axes], whose conditions `rows` has
        where there are any, or else the network's own samples.
        """
        return trial_of(self, shape, data, rows, samples)

    def unguided(self, rows: Any = None) -> Self:
        """The same without guidance, with which it is no mean of x_0; for samples with these conditions."""
        return self._with(guidance=1.0, _rows=rows)

    def read_as(self, kind: Network) -> Self:
        """The same, if the network is of another kind."""
        return self._with(_kind=kind)

    def without_output(self, x: Tensor, sigma: float) -> Tensor:
        """What D would be if the network returned 0."""
        return self._kind.denoised(torch.zeros_like(x), self._kind.scale(sigma) * x, sigma)

    def _with(self, **changed: Any) -> Self:
        out = copy.copy(self)
        vars(out).update(changed)
        return out

    def __call__(
        self, x: Tensor, sigma: float | Tensor, condition: Any = None, /, *, rows: Any = None, **cond: Any
    ) -> Tensor:
        """x_0 of x [B, C, *axes]; `condition` is the network's one, with a row for each sample."""
        if not isinstance(x, torch.Tensor) or not x.is_floating_point() or not 3 <= x.ndim <= 5:
            got = f"{x.dtype} {list(x.shape)}" if hasattr(x, "shape") else type(x).__name__
            raise BadRequestError(
                f"x must be a tensor of floats [B, C, *axes], one to three axes, got {got}", "BAD_TENSOR"
            )
        count, home = len(x), x.device
        real = torch.promote_types(x.dtype, torch.float32)
        levels = sigma
        if not isinstance(sigma, int | float):
            levels = torch.as_tensor(sigma).to(self._device or home, real)
            if levels.ndim > 2 or (levels.ndim and len(levels) not in (1, count)):
                raise BadRequestError(f"sigma must be a number or [{count}], got {list(levels.shape)}", "BAD_TENSOR")
            levels = (levels if levels.ndim == 2 else levels.reshape(-1, 1)).expand(count, -1)
        given = self._named(condition, "condition") | self._named(cond, "cond")
        if _count("cond", given) not in (0, 1, count):
            raise BadRequestError(
                f"cond must have a row for each of {count} samples, got {_count('cond', given)}", "BAD_TENSOR"
            )
        table = {name: value for name, value in self._cond.items() if name not in given}
        numbers = self._numbers(table, self._rows if rows is None else rows, count)
        if self.guidance != 1 and (missing := self._empty.keys() - given.keys() - table.keys()):
            raise BadRequestError(f"cond must have {', '.join(map(str, missing))}, as empty has")
        recorded = torch.is_grad_enabled() and any(leaf.requires_grad for leaf in _leaves([x, levels, given]))
        mode = evaluating(self._module) if self._module is not None and self._module.training else nullcontext()
        out, begin = None, 0
        with torch.set_grad_enabled(recorded), mode:
            while begin < count:
                part = slice(begin, min(begin + max(1, self._shared.batch // self.evaluations_per_call), count))
                size = part.stop - begin
                own = _picked(table, numbers[part], size) | _picked(given, part, size)
                try:
                    level = levels[part] if isinstance(levels, torch.Tensor) else levels
                    found = self._denoised(x[part].to(self._device or home, real), level, own).to(home)
                except torch.OutOfMemoryError:
                    if size == 1:
                        raise
                    self._shared.batch = size // 2 * self.evaluations_per_call
                    continue
                if size == count:
                    return found
                out = found.new_empty(x.shape) if out is None else out
                out[part] = found
                begin = part.stop
        return x.to(real) if out is None else out

    def _denoised(self, x: Tensor, sigma: float | Tensor, cond: dict[Any, Any]) -> Tensor:
        """x_0 at a number or [B, J]."""
        kind, wide, mean = self._kind, sigma, sigma
        if isinstance(sigma, torch.Tensor):
            wide = sigma.reshape(*sigma.shape, *[1] * (x.ndim - 1))
            mean = sigma[:, 0] if sigma.shape[1] == 1 else sigma.log().mean(1).exp()
        held = kind.scale(wide) * self._split(x)
        output = self._guided((kind.input_scale(wide) * held).sum(1), mean, cond)
        return kind.denoised(self._split(output), held, wide).sum(1)

    def _split(self, x: Tensor) -> Tensor:
        """P_j x [B, J, C, *axes]."""
        return x[:, None] if self._subspaces is None else torch.stack(self._subspaces.split(x), 1)

    def _guided(self, z: Tensor, sigma: float | Tensor, cond: dict[Any, Any]) -> Tensor:
        """F with guidance: D is affine in F, so that D has the same."""
        time, (low, high), rows = self._kind.time(sigma), self.interval, slice(None)
        if not isinstance(sigma, torch.Tensor):
            time = z.new_full([len(z)], time)
            rows = rows if low < sigma <= high else slice(0)
        elif self.interval != _ALL:
            rows = ((low < sigma) & (sigma <= high)).nonzero()[:, 0]
        count = len(time[rows])
        if self.guidance == 1 or not count:
            return self._ask(z, time, cond)
        none = _picked(cond, rows, count) | _picked(self._empty, slice(None), count)
        if len(z) + count > self._shared.batch:
            output, empty = self._ask(z, time, cond), self._ask(z[rows], time[rows], none)
        else:
            both = self._ask(torch.cat([z, z[rows]]), torch.cat([time, time[rows]]), _joined(cond, none))
            output, empty = both.split([len(z), count])
        guided = empty + self.guidance * (output[rows] - empty)
        return guided if isinstance(rows, slice) else output.index_copy(0, rows, guided)

    def _ask(self, z: Tensor, time: Tensor, cond: dict[Any, Any]) -> Tensor:
        """F(z, time), in z's type."""
        self._shared.counts += len(z)
        real = self._dtype if isinstance(self._dtype, torch.dtype) else z.dtype
        positional, named = [z, time], {}
        for name, value in _mapped(
            cond, lambda leaf: leaf.to(z.device, real if leaf.is_floating_point() else None)
        ).items():
            if isinstance(name, int):
                positional.append(value)
            else:
                named[name] = value
        positional[0] = z.to(real)
        if not type(self._module).__module__.startswith("diffusers."):  # which embed times in float32
            positional[1] = time.to(real)
        if self._time:
            named[self._time] = positional.pop(1)
        if self._arrays:
            positional = [np.asarray(value.detach().cpu(), self._dtype) for value in positional]
            named = _mapped(named, lambda leaf: leaf.detach().cpu().numpy())
        return _tensor(self._network(*positional, **named), z)

    def _named(self, cond: Any, field: str) -> dict[Any, Any]:
        """Conditions by keyword, or by a number where the network has none for them; with a row for each."""
        if cond is None:
            return {}
        if not isinstance(cond, Mapping):
            names = self._names or {}
            needed = [name for name, default in names.items() if default is inspect.Parameter.empty]
            known = [name for name in _CONDITIONS if name in names]
            name = next((found[0] for found in (needed, list(names), known) if len(found) == 1), (known or [None])[0])
            if name is None and self._names is not None:
                raise BadRequestError(
                    f"{field} must be a mapping from keywords of the network to tensors, got a {type(cond).__name__}; "
                    f"the network has {', '.join(names) or 'no inputs for conditions'}"
                )
            cond = {0 if name is None else name: cond}
        elif self._names is not None and (unknown := [name for name in cond if name not in self._names]):
            raise BadRequestError(
                f"{field} must have keywords of the network, {', '.join(self._names) or 'none'}, got {', '.join(unknown)}"
            )
        return {name: _rowed(value) for name, value in cond.items()}

    def _numbers(self, table: Mapping[Any, Any], rows: Any, count: int) -> Tensor:
        """The numbers of the samples' conditions."""
        size = _count("cond", table)
        if rows is None or not size:
            if size > 1:
                raise BadRequestError(f"rows must be given, the number of the condition of each sample, below {size}")
            return torch.zeros(count, dtype=torch.int64)
        numbers = torch.as_tensor(rows).to("cpu", torch.int64).reshape(-1)
        if len(numbers) != count or (count and not 0 <= int(numbers.min()) <= int(numbers.max()) < size):
            raise BadRequestError(f"rows must be {count} numbers from 0 to {size - 1}, got {numbers.tolist()}")
        return numbers


def _module_of(network: Any) -> torch.nn.Module | None:
    """The module that is asked, itself, wrapped, by a method or with some inputs bound."""
    inner = network.func if isinstance(network, functools.partial) else network
    inner = unwrapped(getattr(inner, "__self__", inner))
    return inner if isinstance(inner, torch.nn.Module) else None


def _signature(network: Any, module: torch.nn.Module | None) -> tuple[dict[str, Any] | None, str]:
    """The keywords for conditions with their defaults, None where any goes, and time's unless it comes second."""
    bound = network.keywords if isinstance(network, functools.partial) else {}
    asked = network.func if isinstance(network, functools.partial) else network
    try:
        found = inspect.signature(asked if module is None or inspect.ismethod(asked) else module.forward).parameters
    except (TypeError, ValueError):  # of a builtin
        return None, ""
    names = [name for name, one in found.items() if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    times = [name for name in _TIMES if name in names[1:]]
    time = "" if not times or names[1] in times else times[0]
    if any(one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD) for one in found.values()):
        return None, time
    skipped = {names[0], time or names[1]} if len(names) > 1 else set(names)
    return {name: found[name].default for name in names if name not in skipped and name not in bound}, time


def _of_schedule(schedule: Callable[[Tensor], tuple[Tensor, Tensor]]) -> tuple[Network, float, float]:
    """A network that takes α x and a time in [0, 1] and returns x_0, of a schedule from time to α and ασ."""
    times = torch.linspace(0, 1, 4097, dtype=torch.float64)
    alpha, noise = (torch.as_tensor(values).detach().cpu().expand(len(times)) for values in schedule(times))
    kind = ddpm(1 / (1 + (noise / alpha).square()), "sample", times)
    kind = replace(kind, scale=lambda sigma: schedule(kind.time(sigma))[0])
    return kind, kind.sigma(0.0), kind.sigma(1.0)


def _tensor(output: Any, like: Tensor) -> Tensor:
    """What a network returned, as a tensor like another."""
    while not isinstance(output, torch.Tensor | np.ndarray):
        if isinstance(output, tuple | list) and output:
            output = output[0]
        elif isinstance(output, Mapping) and output:
            output = output.get("sample", next(iter(output.values())))
        elif (found := getattr(output, "sample", None)) is not None and not callable(found):
            output = found
        elif isinstance(found := getattr(output, "mean", None), torch.Tensor):
            output = found
        else:
            raise BadRequestError(f"network must return a tensor, got a {type(output).__name__}", "BAD_MODEL")
    output = torch.as_tensor(output)
    if output.ndim > 1 and output.shape[1] == 2 * like.shape[1]:
        output = output[:, : like.shape[1]]  # without learned variances
    if output.shape != like.shape:
        raise BadRequestError(
            f"network must return the shape that it takes, {list(like.shape)}, got {list(output.shape)}", "BAD_MODEL"
        )
    return output.to(like)


def _mapped(value: Any, function: Callable[[Tensor], Any]) -> Any:
    """Conditions with a function of each tensor."""
    if isinstance(value, Mapping):
        return {name: _mapped(one, function) for name, one in value.items()}
    return function(value) if isinstance(value, torch.Tensor) else value


def _rowed(value: Any) -> Any:
    """Conditions as tensors with rows; a number is one row."""
    if isinstance(value, Mapping):
        return {name: _rowed(one) for name, one in value.items()}
    if value is None or isinstance(value, bool | str):
        return value
    value = torch.as_tensor(value)
    return value if value.ndim else value[None]


def _leaves(value: Any) -> list[Tensor]:
    if isinstance(value, Mapping | list):
        return [leaf for one in (value.values() if isinstance(value, Mapping) else value) for leaf in _leaves(one)]
    return [value] if isinstance(value, torch.Tensor) else []


def _count(field: str, cond: Mapping[Any, Any]) -> int:
    """The number of rows of conditions; those with one row have as many as the others."""
    found = {len(leaf) for leaf in _leaves(cond)}
    if len(found - {1}) > 1:
        raise BadRequestError(
            f"{field} must have equally many rows in each tensor, or one, got {sorted(found)}", "BAD_TENSOR"
        )
    return max(found, default=0)


def _picked(cond: Mapping[Any, Any], rows: slice | Tensor, count: int) -> dict[Any, Any]:
    """Conditions in these rows, `count` of them."""

    def pick(value: Tensor) -> Tensor:
        if len(value) == 1:
            return value.expand(count, *value.shape[1:])
        return value[rows if isinstance(rows, slice) else rows.to(value.device)]

    return _mapped(cond, pick)


def _joined(first: Any, second: Any) -> Any:
    """Conditions of the first samples, then of the second."""
    if isinstance(first, Mapping):
        return {name: _joined(value, second[name]) for name, value in first.items()}
    return torch.cat([first, second]) if isinstance(first, torch.Tensor) else first
