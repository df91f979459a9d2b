"""Denoisers from networks in torch: any kind, any conditions, with guidance."""

import copy
import functools
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import torch  # pyright: ignore[reportMissingImports]

from ..errors import BadRequestError, bad_model, bad_tensor
from ..plans.numpy_or_torch import whole
from ..plans.parametrizations import Network, ddpm
from .meaning import meaning, network_of, range_of
from .trial import Trial, sample_shape, trial_of
from .wrapping import compute_type, config_shape, evaluating, execution_device, unwrapped

Tensor = torch.Tensor

_TIMES = ("timestep", "timesteps", "sigma", "sigmas", "t", "time", "noise", "noise_label", "noise_labels")
_FIRST_TIMES = {*_TIMES, "tau", "times", "noise_level"} - {"noise"}  # of f(t, x)
_CONDITIONS = ("encoder_hidden_states", "class_labels", "labels", "label", "y", "context", "cond")


class Denoiser:
    """x_0 from a network in torch, at any noise level:

        D(x, σ) = keep x + σ out F(in x, time),

    for x = x_0 + σε [B, C, *axes], no axis to three, and σ a number or [B]; keep, out, in and time depend on σ.

    `network` is a module or a function F(z, time, …), or f(t, x, …) if its first argument has such a name. `scheduler`
    and `prediction` tell its input and output, as for `parametrization`; by default it is EDM's raw F. "denoiser" takes
    x and σ and returns x_0, such as EDMPrecond and k-diffusion's Denoiser. A network that takes αx and a time in [0, 1]
    and returns x_0, such as azula's, has as scheduler a function from time to α and ασ. A network returns a tensor or
    an array, alone, as the first of several, or as `sample` or `mean`. Learned variances are dropped. A network that
    takes whole times only, such as a table of embeddings, is evaluated at its `levels`.

    - `cond` has conditions by the network's keywords, with a row each: labels [K], prompts [K, S, D], fields [K, C, H,
      W], mappings and lists of such. Flags and text are passed on. A single tensor is for the first known condition of
      the signature. In a call, `rows` are the indices of the samples' rows, and keywords have one row per sample.
      functools.partial binds inputs without rows.
    - `guidance` s gives D_empty + s (D_cond − D_empty) at noise levels in the `interval` (low, high]. `empty` has by
      keyword what differs without a condition: one row, or one for each of cond. A network with an input for guidance
      has that in `cond`.
    - `dtype` is that of the network's input, by default the type it computes in; a numpy dtype means arrays. Times have
      at least float32. x_0 has x's type, but at least float32, and x's device. `device` is the network's, by default
      that on which it computes.
    - `batch` is the most rows that the network evaluates at once, by default all; it is halved when memory is
      exhausted.
    - `clip` c clips x_0 to [−c, c], as a scheduler with `clip_sample` does to `clip_sample_range`.

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
        interval: Sequence[float] = (0.0, math.inf),
        dtype: Any = None,
        batch: int | None = None,
        clip: float | None = None,
        device: Any = None,
        sigma_min: float | None = None,
        sigma_max: float | None = None,
    ) -> None:
        self._network = network
        inner: Any = network.func if isinstance(network, functools.partial) else network
        inner = unwrapped(getattr(inner, "__self__", inner))
        self._module = inner if isinstance(inner, torch.nn.Module) else None
        self.shape: tuple[int, ...] | None = config_shape(self._module)
        """The shape (C, *axes) of one sample by the network's config; None if that does not say it."""
        self._time, self._time_first, self._condition = _signature(network, self._module)
        ends = {"sigma_min": sigma_min, "sigma_max": sigma_max}
        section = {"kind": "denoiser"} if callable(scheduler) else meaning(inner, scheduler, prediction)
        self._kind = _of_schedule(scheduler) if callable(scheduler) else network_of(section)[0]
        if callable(scheduler):
            section |= {"sigma_min": self._kind.sigma(0.0), "sigma_max": self._kind.sigma(1.0)}
        self.parametrization: dict[str, Any] = section | {key: end for key, end in ends.items() if end is not None}
        """What the network takes and returns; see `anisoflight.torch.parametrization`."""
        self.sigma_min, self.sigma_max = range_of(self.parametrization)
        any_level = self.parametrization["kind"] in ("denoiser", "edm", "flow")
        self.bounds = (
            0.0 if any_level and not self.parametrization.get("sigma_min") else self.sigma_min,
            math.inf if any_level and not self.parametrization.get("sigma_max") else self.sigma_max,
        )
        """The noise levels that the network knows: sigma_min and sigma_max, or 0 and ∞ where nothing says them."""
        self._arrays = dtype is not None and not isinstance(dtype, torch.dtype)
        self._dtype = torch.from_numpy(np.empty(0, dtype)).dtype if self._arrays else dtype
        self._device = None if device is None else torch.device(device)
        self._cond, self._empty, self._rows = self._named(cond), self._named(empty), None
        self.guidance, self.interval = float(guidance), interval
        known, without = _rows_of(self._cond), _rows_of(self._empty) if self.guidance != 1 else 0
        self.rows = max(known, without)
        """The number of conditions, K; 0 for none."""
        if self.guidance != 1 and (not self._empty or {known, without} - {0, 1, self.rows}):
            raise BadRequestError(
                f"empty must be one row by keyword for guidance {guidance:g}, that of no condition, or one for each "
                f"row of cond, got {without} for {known}"
            )
        if clip is not None and not 0 < clip < math.inf:
            raise BadRequestError(f"clip must be above 0, got {clip}")
        self.clip = None if clip is None else float(clip)
        if batch is not None and batch < 1:
            raise BadRequestError(f"batch must be 1 or more, got {batch}")
        # with what `at` makes of this
        self._shared = SimpleNamespace(counts=0, batch=batch or 1 << 40, whole=None, computes=None)

    @property
    def device(self) -> torch.device | None:
        """The device of the network; None for a function, which is called on that of x."""
        return self._device if self._device is not None else self._computes[0]

    @property
    def _computes(self) -> tuple[torch.device | None, torch.dtype | None]:
        """Where a module computes, and in which type; looked up again once its first weight or its hooks change."""
        if self._module is None:
            return None, None
        first = next(self._module.parameters(), None)
        hooks = vars(self._module).keys() & {"_hf_hook", "_diffusers_hook"}
        state = hooks, getattr(first, "device", None), getattr(first, "dtype", None)
        if self._shared.computes is None or self._shared.computes[0] != state:
            self._shared.computes = state, (execution_device(self._module), compute_type(self._module))
        return self._shared.computes[1]

    @property
    def whole_times(self) -> Sequence[float]:
        """The whole times of the network's training; none if its times are not whole."""
        section = self.parametrization
        if section["kind"] == "flow":
            return range(1, int(section.get("steps") or 1))
        times = section.get("timesteps") or range(len(section.get("alphas_cumprod") or ()))
        return times if all(float(time).is_integer() for time in times) else ()

    @property
    def levels(self) -> list[float] | None:
        """The noise levels of a network that takes whole times, falling; None if it takes any, as far as is known."""
        if not self._shared.whole:
            return None
        found = {self._kind.sigma(float(time)) for time in self.whole_times}
        ends = 0.999 * self.sigma_min, 1.001 * self.sigma_max
        return sorted((level for level in found if ends[0] < level < ends[1]), reverse=True)

    def take_whole_times(self) -> None:
        """Evaluate the network at whole times alone."""
        self._shared.whole = True

    @property
    def batch(self) -> int:
        """The most rows that the network evaluates at once."""
        return self._shared.batch

    @property
    def network(self) -> Network:
        """The network in terms of σ."""
        return self._kind

    @property
    def counts(self) -> int:
        """The number of rows that the network has evaluated."""
        return self._shared.counts

    @property
    def evaluations_per_call(self) -> int:
        """Rows that the network evaluates per sample: 2 with guidance."""
        return 1 if self.guidance == 1 else 2

    def at(self, rows: Any) -> Self:
        """The same denoiser for samples with these rows of the conditions, [B]."""
        return self.with_attributes(_rows=rows)

    def guided(self, factor: float) -> Self:
        """The same denoiser with the guidance 1 + factor (s − 1), as an evaluation of a plan may ask for."""
        if self.guidance == 1:
            raise BadRequestError("guidance must be given: the plan sets that of its evaluations, but there is none")
        return self.with_attributes(guidance=1 + factor * (self.guidance - 1))

    def with_attributes(self, **attributes: Any) -> Self:
        """A copy with other attributes."""
        out = copy.copy(self)
        vars(out).update(attributes)
        return out

    def check(self, shape: Sequence[int] | None = None, data: Any = None, rows: Any = None, samples: int = 4) -> Trial:
        """Try the network on a few x_0 of a shape (C, *axes), by default that of data, else `shape`.

        BadRequestError if it raises, returns another shape or non-finite values, or clearly is of another kind, which
        the error names. x_0 are some of `data` [N, C, *axes] with these rows of the conditions, or else the network's
        own samples. A network that fits no kind, such as an untrained one, gets a warning.
        """
        return trial_of(self, sample_shape(self, shape, data), data, rows, samples)

    def __call__(self, x: Tensor, sigma: Any, condition: Any = None, /, *, rows: Any = None, **cond: Any) -> Tensor:
        """x_0 of x [B, C, *axes] at σ; `condition` is a single condition, as `cond` may be."""
        if not isinstance(x, torch.Tensor) or not x.is_floating_point() or not 2 <= x.ndim <= 5:
            got = f"{x.dtype} {list(x.shape)}" if hasattr(x, "shape") else type(x).__name__
            raise bad_tensor(f"x must be floats [B, C, *axes] with at most three axes, got {got}")
        count, place, wide = len(x), self.device or x.device, torch.promote_types(x.dtype, torch.float32)
        real = torch.float32 if place.type == "mps" else wide
        if isinstance(sigma, int | float):
            if not 0 < sigma < math.inf:
                raise bad_tensor(f"sigma must be above 0, got {sigma}")
        else:
            sigma = torch.as_tensor(sigma).to(real).to(place)
            if sigma.ndim > 1 or (sigma.ndim and len(sigma) not in (1, count)):
                raise bad_tensor(f"sigma must be a number or [{count}], got {list(sigma.shape)}")
            sigma = sigma.reshape(-1).expand(count)
        conditions = self._named(condition) | self._named(cond)
        table = {name: value for name, value in self._cond.items() if name not in conditions}
        empty = self._empty if self.guidance != 1 else {}
        rows, row_count, numbers = self._rows if rows is None else rows, _rows_of(table), None
        if row_count <= 1 and (rows is not None or _rows_of(empty) != count):
            row_count = max(row_count, _rows_of(empty))
        if row_count > 1:
            numbers = torch.tensor([] if rows is None else whole(rows, "rows"), dtype=torch.long)
            if len(numbers) != count or not ((numbers >= 0) & (numbers < row_count)).all():
                raise BadRequestError(f"rows must be {count} numbers from 0 to {row_count - 1}, got {numbers.tolist()}")
        if _rows_of(conditions) not in (0, 1, count):
            raise bad_tensor(f"cond must have {count} rows, as x has, got {_rows_of(conditions)}")
        inputs = [x, *_leaves({**conditions, "sigma": sigma})]
        recorded = torch.is_grad_enabled() and any(one.requires_grad for one in inputs)
        mode = nullcontext() if self._module is None else evaluating(self._module)
        out, begin = None, 0
        with torch.set_grad_enabled(recorded), mode:
            while begin < count:
                size = min(max(1, self._shared.batch // self.evaluations_per_call), count - begin)
                part = slice(begin, begin + size)
                index = part if numbers is None else numbers[part]
                both = _picked(table, index, size) | _picked(conditions, part, size), _picked(empty, index, size)
                level = sigma if isinstance(sigma, int | float) else sigma[part]
                try:
                    own_x = x if size == count else x[part]
                    found = self._denoised(own_x.to(real).to(place), level, *both).to(x.device).to(wide)
                except torch.OutOfMemoryError:
                    if size == 1:
                        raise
                    self._shared.batch = size // 2 * self.evaluations_per_call
                    continue
                if size == count:
                    return found
                out = found.new_empty(x.shape) if out is None else out
                out[part] = found
                begin += size
        return x.to(wide) if out is None else out

    def _denoised(self, x: Tensor, sigma: Any, cond: dict[str, Any], empty: dict[str, Any]) -> Tensor:
        """x_0 at a number or at [B]."""
        kind, wide = self._kind, sigma
        if isinstance(sigma, torch.Tensor):
            wide = sigma.reshape(-1, *[1] * (x.ndim - 1))
        scaled = kind.scale(wide) * x
        found = kind.denoised(self._guided(kind.input_scale(wide) * scaled, sigma, cond, empty), scaled, wide)
        return found if self.clip is None else found.clamp(-self.clip, self.clip)

    def _guided(self, z: Tensor, sigma: Any, cond: dict[str, Any], empty: dict[str, Any]) -> Tensor:
        """F with guidance: guiding F guides D, which is affine in F."""
        time = self._kind.time(sigma)
        if not isinstance(sigma, torch.Tensor):
            time = z.new_full([len(z)], time)
        guided = self.guidance != 1 and torch.as_tensor((self.interval[0] < sigma) & (sigma <= self.interval[1]))
        if isinstance(guided, bool) or not guided.any():
            return self._evaluate(z, time, cond)
        if missing := [name for name, value in empty.items() if name not in cond and _leaves(value)]:
            raise BadRequestError(f"cond must have the keywords of empty, got none for {', '.join(missing)}")
        rows = guided.expand(len(z)).nonzero()[:, 0].to(z.device)
        without = _merged(_picked(cond, rows, len(rows)), _picked(empty, rows, len(rows)))
        if len(z) + len(rows) > self._shared.batch or not _stackable(cond, without):
            output, other = self._evaluate(z, time, cond), self._evaluate(z[rows], time[rows], without)
        else:
            both = _mapped(lambda one, two: torch.cat([one, two.to(one)]), cond, without)
            both = self._evaluate(torch.cat([z, z[rows]]), torch.cat([time, time[rows]]), both)
            output, other = both.split([len(z), len(rows)])
        return output.index_copy(0, rows, other + self.guidance * (output[rows] - other))

    def _evaluate(self, z: Tensor, time: Tensor, cond: dict[str, Any]) -> Tensor:
        """F(z, time), in z's type. The network gets copies, and its answer is copied: it may write into any."""
        self._shared.counts += len(z)
        if self._shared.whole is None:
            try:
                out = self._asked(z, time, cond)
                self._shared.whole = False
                return out
            except Exception as error:
                if isinstance(error, torch.OutOfMemoryError) or not self.whole_times:
                    raise
                with suppress(Exception):  # of a table of embeddings
                    self._asked(z, time.round().long(), cond)
                    self._shared.whole = True
                if not self._shared.whole:
                    raise
        if self._shared.whole and ((time - time.round()).abs() > 0.01).any():
            near = [f"{self._kind.sigma(round(one)):.6g}" for one in time[:3].tolist()]
            raise BadRequestError(
                f"sigma must be one of the denoiser's levels, such as {', '.join(near)}, because its network takes "
                f"whole times only (integers), got the times {[round(one, 2) for one in time[:3].tolist()]}"
            )
        return self._asked(z, time.round().long() if self._shared.whole else time, cond)

    def _asked(self, z: Tensor, time: Tensor, cond: dict[str, Any]) -> Tensor:
        real = self._dtype or self._computes[1] or z.dtype
        if time.is_floating_point():  # half precision would round them
            time = time.to(torch.promote_types(real, torch.float32), copy=True)
        cond = _mapped(lambda one: one.to(z.device, real if one.is_floating_point() else None, copy=True), cond)
        inputs = [z.to(real, copy=True), time]
        if self._time_first:
            inputs.reverse()
        elif self._time:
            cond[self._time] = inputs.pop()
        if self._arrays:
            inputs = [one.detach().cpu().numpy() for one in inputs]
            cond = _mapped(lambda one: one.detach().cpu().numpy(), cond)
        return _tensor(self._network(*inputs, **cond), z)

    def _named(self, cond: Any) -> dict[str, Any]:
        """Conditions by keyword, as tensors with rows."""
        if cond is None:
            return {}
        if not isinstance(cond, Mapping):
            if self._condition is None:
                kind = type(cond).__name__
                raise BadRequestError(f"conditions must be by keyword for this network, got a {kind} alone")
            cond = {self._condition: cond}
        return _with_rows(cond)


def _signature(network: Any, module: torch.nn.Module | None) -> tuple[str, bool, str | None]:
    """The keyword of the time, empty if it is one of the first two arguments; whether it is the first; the keyword of
    a condition.
    """
    bound = network.keywords if isinstance(network, functools.partial) else {}
    asked = network.func if isinstance(network, functools.partial) else network
    try:
        found = inspect.signature(asked if module is None or inspect.ismethod(asked) else module.forward).parameters
    except (TypeError, ValueError):  # of a builtin
        return "", False, None
    names = [name for name, one in found.items() if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    first = len(names) > 1 and names[0] in _FIRST_TIMES and names[1] not in _TIMES
    second = len(names) > 1 and names[1] in _TIMES and found[names[1]].kind is not inspect.Parameter.KEYWORD_ONLY
    time = "" if first or second else next((name for name in _TIMES if name in names[1:]), "")
    others = [name for name in names[1:] if name not in bound and name != (time or names[1])]
    return time, first, next((name for name in _CONDITIONS if name in others), others[0] if others else None)


def _of_schedule(schedule: Callable[[Tensor], Any]) -> Network:
    """A network that takes αx and a time in [0, 1] and returns x_0, from a schedule of α and ασ."""
    times = torch.linspace(0, 1, 4097, dtype=torch.float64)
    alpha, noise = (torch.as_tensor(values).detach().cpu().expand(len(times)) for values in schedule(times))
    kind = ddpm(1 / (1 + (noise / alpha).square()), "sample", times)
    return replace(kind, scale=lambda sigma: schedule(torch.as_tensor(kind.time(sigma)))[0])


def _tensor(output: Any, reference: Tensor) -> Tensor:
    """A network's result as a tensor like another."""
    while not isinstance(output, torch.Tensor | np.ndarray):
        if isinstance(output, tuple | list) and output:
            output = output[0]
        elif isinstance(output, Mapping) and output:
            output = output.get("sample", next(iter(output.values())))
        elif isinstance(mean := getattr(output, "sample", getattr(output, "mean", None)), torch.Tensor):
            output = mean
        elif hasattr(output, "__array__"):  # JAX's
            output = np.asarray(output)
        else:
            raise bad_model(f"network must return a tensor, got a {type(output).__name__}")
    if isinstance(output, np.ndarray):  # which JAX makes read-only
        output = np.require(output, requirements="W")
    output = torch.as_tensor(output)
    if output.ndim == reference.ndim and output.shape[1] == 2 * reference.shape[1]:
        output = output[:, : reference.shape[1]]  # without learned variances
    if output.shape != reference.shape:
        raise bad_model(f"network must return {list(reference.shape)}, got {list(output.shape)}")
    return output.to(reference, copy=True)


def _mapped(function: Callable[..., Any], cond: Any, *others: Any) -> Any:
    """Conditions with a function applied to their tensors, or to those of several of the same structure."""
    if isinstance(cond, Mapping):
        return {name: _mapped(function, one, *(other[name] for other in others)) for name, one in cond.items()}
    if isinstance(cond, list | tuple):
        return type(cond)([_mapped(function, *each) for each in zip(cond, *others, strict=True)])
    return function(cond, *others) if isinstance(cond, torch.Tensor) else cond


def _stackable(one: Any, other: Any) -> bool:
    """Whether conditions can be rows of one batch: what has no rows must be equal, and rows have one shape."""
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one.shape[1:] == other.shape[1:] and one.is_floating_point() == other.is_floating_point()
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_stackable(value, other[name]) for name, value in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_stackable, one, other))
    return one is other or (type(one) is type(other) and isinstance(one, bool | str) and one == other)


def _merged(cond: Mapping[str, Any], empty: Mapping[str, Any]) -> dict[str, Any]:
    """Conditions with those of empty in their place."""
    out = {**cond, **empty}
    for name, value in empty.items():
        if isinstance(value, Mapping) and isinstance(cond.get(name), Mapping):
            out[name] = _merged(cond[name], value)
    return out


def _leaves(cond: Any) -> list[Tensor]:
    out: list[Tensor] = []
    _mapped(out.append, cond)
    return out


def _with_rows(value: Any) -> Any:
    """Conditions as tensors with rows: a number is one row. What is no tensor, such as a flag, stays as it is."""
    if isinstance(value, Mapping):
        return {name: _with_rows(one) for name, one in value.items()}
    if isinstance(value, list | tuple) and _holds_rows(value):
        return (list if isinstance(value, list) else tuple)(map(_with_rows, value))
    if isinstance(value, bool) or not isinstance(
        value, torch.Tensor | np.ndarray | np.number | int | float | list | tuple
    ):
        return value
    try:
        return torch.atleast_1d(torch.as_tensor(value))
    except (TypeError, ValueError, RuntimeError) as error:
        raise bad_tensor(f"conditions must be tensors with rows, lists of such, numbers or flags: {error}") from error


def _holds_rows(value: Any) -> bool:
    """Whether a list has tensors with rows, also in lists in it; a list of numbers is one tensor."""
    if isinstance(value, list | tuple):
        return any(map(_holds_rows, value))
    return isinstance(value, torch.Tensor) and value.ndim > 0


def _rows_of(cond: Any) -> int:
    """The number of rows of conditions; single rows fit any number."""
    found = {len(leaf) for leaf in _leaves(cond)}
    if len(found - {1}) > 1:
        raise bad_tensor(f"conditions must have equally many rows, or one, got {sorted(found)}")
    return max(found, default=0)


def _picked(cond: dict[str, Any], rows: slice | Tensor, count: int) -> dict[str, Any]:
    """`count` rows of conditions."""

    def pick(value: Tensor) -> Tensor:
        if len(value) == 1:
            return value.expand(count, *value.shape[1:])
        return value[rows if isinstance(rows, slice) else rows.to(value.device)]

    return _mapped(pick, cond)
