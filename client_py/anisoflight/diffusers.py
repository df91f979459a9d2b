"""Plans as schedulers for the pipelines of diffusers: any solver of the server, on a learned schedule.

    pipe.scheduler = plan.scheduler(pipe)
    pipe(num_inference_steps=plan.steps)

It needs the packages diffusers and torch, and no server. `plans.parametrizations` describes the kinds of networks.
"""

import base64
import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np

from .errors import BadRequestError, warn
from .plans.numpy_or_torch import whole, working
from .plans.plan import Plan, Stage, Stages, stages_of
from .start import Start

try:
    import torch  # pyright: ignore[reportMissingImports]
    from diffusers import ConfigMixin, SchedulerMixin  # pyright: ignore[reportMissingImports]
    from diffusers.configuration_utils import register_to_config  # pyright: ignore[reportMissingImports]
    from diffusers.schedulers.scheduling_ddpm import DDPMSchedulerOutput  # pyright: ignore[reportMissingImports]
    from diffusers.utils.torch_utils import randn_tensor  # pyright: ignore[reportMissingImports]

    from .torch.meaning import network_of, parametrization, range_of
except ImportError as error:
    raise ImportError(
        f"anisoflight.diffusers needs the packages diffusers and torch ({error}): pip install diffusers torch; "
        "without them a plan is called, or followed by plan.stages"
    ) from error


class Scheduler(SchedulerMixin, ConfigMixin):  # pyright: ignore[reportGeneralTypeIssues]
    """Plans as a scheduler, made by `Plan.scheduler`: `set_timesteps` selects the plan with that number of steps.

    `network` is what the loop evaluates, the section that `anisoflight.torch.parametrization` reads from its original
    scheduler, whose other settings the config keeps. `asks_first` says that the loop evaluates unit noise before it
    asks the scheduler for anything; `nfe` alone depends on it.

    A loop begins with unit noise; `init_noise_sigma` is 1. `scale_model_input` gives the network the plan's first state
    made from it, and `step` continues from there. A loop that does not call the first, such as Flux's or DDPM's, has
    evaluated unit noise: its first step returns the first state, and `timesteps` and `sigmas` have the first once more.
    It does not if the plan begins at noise alone at σ ≥ 70. `nfe` is the number of evaluations. Or a loop begins with
    an image with noise, from `add_noise` or `scale_noise`, at the first time of any step: it then follows the plan's
    `tail`.

    Plans of several classes need `set_labels` before a pipeline is called.
    """

    @register_to_config
    def __init__(
        self, plans: Sequence[Plan | Mapping[str, Any]], network: Mapping[str, Any], asks_first: bool = False
    ) -> None:
        found = [plan if isinstance(plan, Plan) else _read(plan) for plan in plans]
        if len({plan.steps for plan in found}) < len(found):
            raise BadRequestError(f"plans must have different numbers of steps, got {found}")
        for plan in found:
            if plan.guides:
                raise BadRequestError(
                    "plans must not set the guidance of their evaluations, because a pipeline keeps one: search with "
                    "learn_guidance=False, or call the plan, plan(denoiser, noise)"
                )
            if plan.count > 1 or "begin" in plan.file:
                kind = "a tail" if plan.count == 1 else f"one of {plan.count} subspaces"
                raise BadRequestError(
                    f"plans must be whole, because a pipeline begins where it likes, and of one subspace, because its "
                    f"network takes one noise level, got {kind}: call it, plan(denoiser, noise)"
                )
        self.register_to_config(
            plans=[_written(plan) for plan in found],
            network=dict(network),
            asks_first=asks_first,
            num_train_timesteps=int(network.get("steps", 1000)),
        )
        self.plans = {plan.steps: plan for plan in found}
        self.network, _, _ = network_of(network)
        if table := network.get("alphas_cumprod"):
            _check_range(found, range_of(network)[1])
            self.alphas_cumprod = torch.tensor(table, dtype=torch.float32)
        self.num_inference_steps: int | None = None
        self._labels: list[int] | None = None
        self._plan, self._stages, self._counted = found[0], list[Stage](), False
        self._index, self._spent, self._times = 0, 0, torch.zeros(0)

    @classmethod
    def of(cls, pipe: Any, plans: Sequence[Plan]) -> Self:
        """Plans for the network of a pipeline, a scheduler or its config."""
        scheduler = getattr(pipe, "scheduler", pipe)
        config = getattr(scheduler, "config", scheduler)
        if not isinstance(config, Mapping):
            name = type(pipe).__name__
            raise BadRequestError(f"pipe must be a pipeline, a scheduler of diffusers or its config, got {name}")
        name, used = type(pipe).__name__, _names_used(pipe) if pipe is not scheduler else set()
        from_noise = "is_strength_max" in used or "strength" not in used
        asks_first = bool(used) and from_noise and "scale_model_input" not in used
        out = cls(plans=plans, network=parametrization(scheduler), asks_first=asks_first)
        out.register_to_config(**_others(config))
        if "controlnet_keep" in used and (spent := [plan for plan in plans if out._spent_by(plan)]):
            raise BadRequestError(
                f"plans must begin at noise alone at σ of 70 or more for {name}, whose loop counts its evaluations "
                f"before the first, got {spent}"
            )
        warn(
            f"{name} will evaluate its network {plan.nfe + 1} times with num_inference_steps={plan.steps}, "
            f"{plan.nfe} of them for the plan: it gives the network unit noise first, at which the plan does not begin"
            for plan in plans
            if out._spent_by(plan)
        )
        return out

    @classmethod
    def from_config(cls, config: Any = None, return_unused_kwargs: bool = False, **kwargs: Any) -> Any:
        """The scheduler of a config."""
        if not isinstance(config, Mapping) or "plans" not in config:
            raise BadRequestError("config must be that of a scheduler of plans; make one with plan.scheduler(pipe)")
        network = config["network"]
        if isinstance(network, str):  # of 0.1
            names = {"ddpm": "DDPMScheduler", "flow": "FlowMatchEulerDiscreteScheduler", "edm": "EDMEulerScheduler"}
            network = parametrization({**_others(config), "_class_name": names[network]})
        out = cls(plans=config["plans"], network=network, asks_first=config.get("asks_first", False))
        out.register_to_config(**_others(config))
        return (out, kwargs) if return_unused_kwargs else out

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "network": None}  # its functions cannot be pickled

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.network, _, _ = network_of(self.config.network)

    def __len__(self) -> int:
        return self.config.get("num_train_timesteps", 1000)

    @property
    def timesteps(self) -> Any:
        """A time of the network for every evaluation; a loop that evaluates unit noise gets the first twice."""
        times = self._times.as_subclass(_Times)
        times.scheduler = self
        return times

    @property
    def sigmas(self) -> Any:
        """s of a flow, 1 − s of one to data, otherwise σ, at each of `timesteps`, and at last without noise."""
        stages = [*self._stages[: self._spent], *self._stages]
        levels = torch.tensor([np.max(stage.sigma) for stage in stages] + [0.0], dtype=torch.float64)
        network = self.config.network
        if network["kind"] == "flow":
            levels = (1 if network.get("to_data") else levels) / (1 + levels)
        return levels.float()

    @property
    def step_index(self) -> int | None:
        """The index in `timesteps` of the next evaluation; None before the first."""
        return self._index

    @property
    def order(self) -> int:
        """By what a pipeline multiplies its number of steps to get that of `timesteps`: evaluations per step, rounded
        up. After the pipeline passed sigmas it is 1, since the pipeline then uses the number of timesteps.
        """
        return 1 if self._counted else -(-self._plan.nfe // self._plan.steps)

    @property
    def nfe(self) -> int:
        """How often the pipeline that this was made for evaluates its network from noise, with the selected plan; after
        a loop, how often that loop did.
        """
        return self._plan.nfe + max(self._spent, self._spent_by(self._plan))

    init_noise_sigma = 1.0

    def set_labels(self, labels: Any) -> None:
        """The classes of the images of the next passes, one per image, for plans of several classes."""
        self._labels = whole(labels)
        if self._stages and self._plan.labels:
            self._begin(self._plan, self._times.device)

    def set_timesteps(
        self,
        num_inference_steps: int | None = None,
        device: Any = None,
        sigmas: Any = None,
        mu: Any = None,
        timesteps: Any = None,
        original_inference_steps: Any = None,
        strength: Any = None,
        **others: Any,
    ) -> None:
        """Select the plan of that number of steps, by default the first plan, and start at its beginning.

        Pipelines of flow networks pass n `sigmas`, or `timesteps` with them, evenly from 1, in place of the number, and
        a shift `mu`; those of latent consistency models `original_inference_steps`. The noise levels are always the
        plan's; others are refused.
        """
        del mu, original_inference_steps
        _refuse(others)
        if strength not in (None, 1):
            raise BadRequestError(f"strength must be 1, got {strength}: this pipeline takes a plan from its start only")
        given = sigmas if sigmas is not None else timesteps
        self._counted = given is not None
        if given is not None:
            count, values = len(given), np.asarray(torch.as_tensor(given).cpu(), np.float64)
            if sigmas is None:
                own = (plan for plan in self.plans.values() if plan.nfe == count and not plan.labels)
                fits = [plan.steps for plan in own if _near(values, self._times_of(stages_of(plan.divided(None, 0))))]
            else:
                even = 1 - np.arange(count) / count, np.linspace(1, 1 / len(self), count)
                fits = [count for one in even if np.all(np.abs(values - one) <= 2e-3)]
            if not fits or num_inference_steps not in (None, fits[0]):
                name = "timesteps" if sigmas is None else "sigmas"
                message = 'a plan has its own; make it with grid={"sigma": [s/(1 - s), …, 0]}'
                raise BadRequestError(f"{name} must be left out: {message}")
            num_inference_steps = fits[0]
        steps = next(iter(self.plans)) if num_inference_steps is None else num_inference_steps
        if steps not in self.plans:
            available = ", ".join(map(str, sorted(self.plans)))
            message = f"num_inference_steps must be one of {available}, got {steps}; add a plan made by Client.plan"
            raise BadRequestError(message)
        self.num_inference_steps = steps
        self._begin(self.plans[steps], device)

    def _begin(self, plan: Plan, device: Any = None) -> None:
        """Start at the beginning of a plan."""
        self._plan, self._loop = plan, None
        self._index: int | None = None  # in `timesteps`, once known
        self._started = False  # the loop has a state, not unit noise
        self._shown: tuple[Any, Any] | None = None  # what its network has seen, and the state that this is of
        self._spent = 0  # 1 once the loop has evaluated unit noise, and must evaluate the first state
        if plan.labels and self._labels is None:
            raise BadRequestError(f"labels must be given first, by set_labels: the plan has the classes {plan.labels}")
        self._stages = stages_of(plan.divided(self._labels, len(self._labels or [])))
        times = self._times_of(self._stages)
        whole = plan.whole_times and np.allclose(times, times.round(), atol=1e-3)  # in the pipeline's network, too
        times, kind = (times.round(), torch.int64) if whole else (times, torch.float32)
        self._times = torch.tensor(times, dtype=kind, device=device)

    def _spent_by(self, plan: Plan) -> int:
        """The evaluations before the plan begins, from noise, of the pipeline that this was made for, by its code. What
        a loop really does decides: see `step`.
        """
        return int(self.config.asks_first and not plan.takes_unit_noise(self.network))

    def set_begin_index(self, begin_index: int = 0) -> None:
        """Set the index in `timesteps` at which a pipeline begins."""
        self._index = begin_index

    def scale_model_input(self, sample: Any, timestep: Any = None) -> Any:
        """The network's input: the plan's first state in place of unit noise; for kind edm, c_in times the images."""
        stage = self._stage(timestep)
        images = self._unpacked(sample)
        scale = self.network.input_scale(_level(stage, images))
        held = self._held(stage, images)
        same = held is sample and isinstance(scale, float) and scale == 1
        seen = sample if same else self._packed(held * scale, sample)
        self._shown = seen, held
        return seen

    def step(
        self,
        model_output: Any,
        timestep: Any,
        sample: Any,
        eta: float = 0.0,
        use_clipped_model_output: bool | None = None,
        generator: Any = None,
        return_dict: bool = True,
        **others: Any,
    ) -> Any:
        """Step from sample [B, C, …] with the network's output at it; timestep is the next of `timesteps`.

        generator draws the noise of a plan with churn. eta must be 0, since the plan sets the noise. Returns the images
        of the next evaluation, or the samples, as prev_sample, and the estimate of x_0 as pred_original_sample; a tuple
        if return_dict is False.
        """
        _refuse(others)
        if eta:
            raise BadRequestError(f"eta must be 0, got {eta}: make a plan with S_churn for a sampler that adds noise")
        del use_clipped_model_output  # DDIM's pipeline passes it to any scheduler
        stage = self._stage(timestep)
        state = working(self._unpacked(sample))
        if self._shown is not None and (shape := self._shown[1].shape[1:]) != state.shape[1:]:
            shapes = f"images of {list(shape)} where the loop's are of {list(state.shape[1:])}"
            raise BadRequestError(f"scale_model_input must be given the images without a condition, got {shapes}")
        if self._shown is not None and _equal(sample, self._shown[0]):  # a loop may keep what its network has seen
            state = working(self._shown[1])
        else:
            state = self._held(stage, state)
        first = self._is_noise and self._shown is None and not self._plan.takes_unit_noise(self.network)
        level, number, self._started, self._shown = _level(stage, state), self._index or 0, True, None
        if first:  # the network has seen unit noise
            following, denoised, number, self._spent = state, state, -1, 1
        else:
            if self._loop is None:
                done = sum(stage.step >= 0 for stage in self._stages[:number])
                self._loop = Stages(self._plan.tail(done) if done else self._plan, state, self._labels)
            loop, loop.x = self._loop, state * (1 / self.network.scale(level))
            loop.generator = lambda x: randn_tensor(x.shape, generator=generator, device=x.device, dtype=x.dtype)
            output = working(self._unpacked(model_output))[:, : state.shape[1]]
            following, denoised = loop.step(self.network.denoised(output, state, level)), loop.denoised
            loop.generator = None  # it cannot be pickled
            if number + 1 < len(self._stages):
                following = following * self.network.scale(_level(self._stages[number + 1], state))
            else:
                denoised = following  # which some pipelines return
        self._index = number + 1
        following, denoised = (self._packed(each, sample) for each in (following, denoised))
        return DDPMSchedulerOutput(following, denoised) if return_dict else (following, denoised)

    def add_noise(self, original_samples: Any, noise: Any, timesteps: Any) -> Any:
        """Images with noise at times [B] of the network, c·(x_0 + τσε) with the plan's temperature τ; σ is exact at a
        time of the plan.
        """
        times = torch.as_tensor(timesteps).cpu().double().numpy().reshape(-1)
        sigmas = [min(self.network.sigma(time), 1e12) for time in times.tolist()]
        for number, stage in enumerate(self._stages):
            if _near(times, self._time(stage)):
                sigmas = np.broadcast_to(stage.sigma, np.broadcast_shapes(times.shape, np.shape(stage.sigma)))
                self._started = self._started or number == 0
                break
        scales = np.array([self.network.scale(sigma) for sigma in sigmas])
        shape = (-1, *[1] * (original_samples.ndim - 1))
        levels = scales * sigmas * self._plan.temperature
        image, level = (original_samples.new_tensor(part).reshape(shape) for part in (scales, levels))
        return image * original_samples + level * noise

    def scale_noise(self, sample: Any, timestep: Any, noise: Any) -> Any:
        """`add_noise`, as diffusers' flow-matching schedulers call it."""
        return self.add_noise(sample, noise, timestep)

    @property
    def _is_noise(self) -> bool:
        """Whether the pipeline holds unit noise, to be replaced by the plan's first state."""
        return not self._index and not self._started

    def _held(self, stage: Stage, images: Any) -> Any:
        """c·x; the plan's first state in place of unit noise."""
        if not self._is_noise:
            return images
        if (deviation := float(images.detach().float().std())) > 3:
            raise BadRequestError(f"a loop must begin with unit noise, got noise with a deviation of {deviation:.3g}")
        labels = self._labels and self._labels * (len(images) // len(self._labels))  # guidance doubles the images
        return self._plan.begin(images, labels=labels) * self.network.scale(_level(stage, images))

    def _stage(self, timestep: Any) -> Stage:
        """The next stage, whose time must be the given one."""
        time_given = None if timestep is None else torch.as_tensor(timestep).cpu().double().numpy()
        times = self._times.cpu().double().numpy()
        if self._index is None:  # the next step may begin at the same time
            likely = (i for i, time in enumerate(times) if time_given is not None and _near(time_given, time))
            self._index = min(likely, key=self._within, default=0)
        if self._index >= len(times):
            raise BadRequestError("all timesteps are done; call set_timesteps to begin again")
        if time_given is not None and not _near(time_given, times[self._index]):
            raise BadRequestError(f"timestep must be the next, {_short(times[self._index])}, got {_short(time_given)}")
        if self._loop is None and self._within(self._index):
            message = f"a loop must begin with a step, got its second evaluation, at {_short(times[self._index])}"
            raise BadRequestError(f"{message}; choose another strength or solver")
        return self._stages[self._index]

    def _within(self, index: int) -> bool:
        """Whether a time is that of a later evaluation of a step."""
        return index > 0 and self._stages[index - 1].step < 0

    def _times_of(self, stages: Sequence[Stage]) -> Any:
        return np.array([self._time(stage) for stage in stages])

    def _time(self, stage: Stage) -> Any:
        """The network's time of a stage, or of each image."""
        if np.ndim(stage.sigma) == 0:
            return self.network.time(stage.sigma)
        return np.array([self.network.time(sigma) for sigma in stage.sigma.tolist()])

    def _unpacked(self, images: Any) -> Any:
        """Images [B, C, H, W] of sequences [B, H/p·W/p, C p²] with p 2 or 1, as in Flux and Flux 2, if the plan is one
        of such images.
        """
        if images.ndim < 2:
            raise BadRequestError(f"sample must be images [B, C, …], got the shape {list(images.shape)}")
        size = self._plan.size
        if size is None or images.ndim != 3 or tuple(images.shape[1:]) == (size[0], size[1] * size[2]):
            return images
        channels, height, width = size
        for p in (2, 1):
            if tuple(images.shape[1:]) == (height // p * (width // p), channels * p * p):
                parts = images.reshape(-1, height // p, width // p, channels, p, p)
                return parts.permute(0, 3, 1, 4, 2, 5).reshape(-1, channels, height, width)
        return images

    def _packed(self, images: Any, sample: Any) -> Any:
        """Images in the shape of the pipeline's sample."""
        if images.ndim != sample.ndim:
            batch, channels, height, width = images.shape
            p = 2 if sample.shape[-1] == 4 * channels else 1
            parts = images.reshape(batch, channels, height // p, p, width // p, p)
            images = parts.permute(0, 2, 4, 1, 3, 5).reshape(sample.shape)
        return images.to(sample.dtype)


class _Times(torch.Tensor):
    """The times of a scheduler, with the first once more after a loop has evaluated unit noise."""

    scheduler: Any = None

    def __len__(self) -> int:
        return len(self.as_subclass(torch.Tensor)) + getattr(self.scheduler, "_spent", 0)

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, int):
            return super().__getitem__(key)
        return self.as_subclass(torch.Tensor)[max(key - getattr(self.scheduler, "_spent", 0), min(key, 0))]

    def __iter__(self) -> Iterator[Any]:
        number = 0
        while number < len(self):
            yield self[number]
            number += 1

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self.clone()

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = super().__torch_function__(func, types, args, kwargs or {})
        if isinstance(out, _Times) and (own := [one for one in args if isinstance(one, _Times)]):
            out.scheduler = own[0].scheduler
        return out


def _check_range(plans: Sequence[Plan], highest: float) -> None:
    """Refuse plans above the noise levels of a network's table: beyond it all levels have one time."""
    for plan in plans:
        level = stages_of(plan.divided(plan.labels or None, len(plan.labels)))[0].sigmas.max()
        if level > 1.01 * highest:
            raise BadRequestError(
                f"plans must begin within the noise levels of the pipeline's network, up to {highest:.4g}, got one "
                f"from {level:.4g}: search with this network, or make a plan with sigma_max={highest:.4g}"
            )


def _names_used(pipe: Any) -> set[str]:
    """The names in the code of a pipeline's loop and of its parents' loops."""
    loops = [vars(kind)["__call__"] for kind in type(pipe).__mro__ if "__call__" in vars(kind)]
    codes = [inspect.unwrap(loop).__code__ for loop in loops]
    return {name for code in codes for name in (*code.co_names, *code.co_varnames)}


def _refuse(others: Mapping[str, Any]) -> None:
    """Refuse arguments of other schedulers, unless they are their defaults."""
    if given := [name for name, value in others.items() if value is not None]:
        raise BadRequestError(f"{', '.join(given)} must be left out: a plan sets its noise levels itself")


def _others(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a config that are not of plans, which pipelines ask for. 0.1 had `spends`."""
    own = ("plans", "network", "asks_first", "spends")
    return {key: value for key, value in config.items() if key not in own and key[:1] != "_"}


def _equal(one: Any, other: Any) -> bool:
    return one is other or (one.shape == other.shape and one.dtype == other.dtype and bool(torch.equal(one, other)))


def _level(stage: Stage, images: Any) -> Any:
    """The noise level of a stage: a number, or a tensor to be multiplied with images [B, C, …]."""
    if np.ndim(stage.sigma) == 0:
        return stage.sigma
    if len(images) % len(stage.sigma):
        raise BadRequestError(f"labels must be as many as the {len(images)} images, got {len(stage.sigma)}")
    sigmas = np.tile(stage.sigma, len(images) // len(stage.sigma))
    return images.new_tensor(sigmas).reshape(-1, *[1] * (images.ndim - 1))


def _near(time: Any, expected: Any) -> bool:
    """Whether times are equal up to rounding."""
    if 1 < np.size(time) != np.size(expected) > 1:
        return False
    return bool(np.all(np.abs(time - expected) <= 1e-4 * np.maximum(1.0, np.abs(expected))))


def _short(numbers: Any) -> str:
    return ", ".join(f"{number:g}" for number in np.unique(numbers))


def _written(plan: Plan) -> dict[str, Any]:
    """A plan of one subspace as JSON, its law as a safetensors file in base64."""
    return {**plan.file, **({"law": base64.b64encode(plan.law.file).decode()} if plan.law else {})}


def _read(written: Mapping[str, Any]) -> Plan:
    """The plan of `_written`."""
    try:
        file = dict(written)
        law = base64.b64decode(file.pop("law", ""), validate=True)
    except (ValueError, TypeError) as error:
        raise BadRequestError(f"plans must be plans or what save_pretrained stores, got another: {error}") from error
    return Plan(file, law=Start(law) if law else None)
