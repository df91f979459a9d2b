"""Plans as schedulers for the pipelines of diffusers: any solver of the server, on a learned schedule.

    pipe.scheduler = plan.scheduler(pipe)
    pipe(num_inference_steps=plan.steps)

It needs the packages diffusers and torch, and no server. `networks` describes the kinds of networks.
"""

import base64
import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from .errors import BadRequestError, warn
from .networks import Network, ddpm, edm, flow
from .plan import Plan, Stage, Stages, stages_of
from .start import Start
from .tensors import working

try:
    import torch  # pyright: ignore[reportMissingImports]
    from diffusers import ConfigMixin, DDPMScheduler, SchedulerMixin  # pyright: ignore[reportMissingImports]
    from diffusers.configuration_utils import register_to_config  # pyright: ignore[reportMissingImports]
    from diffusers.schedulers.scheduling_ddpm import DDPMSchedulerOutput  # pyright: ignore[reportMissingImports]
    from diffusers.utils.torch_utils import randn_tensor  # pyright: ignore[reportMissingImports]
except ImportError as error:
    raise ImportError(
        f"anisoflight.diffusers needs the packages diffusers and torch ({error}): pip install diffusers torch; "
        "without them a plan is called, or followed by plan.stages"
    ) from error


_BETAS = ["num_train_timesteps", "beta_start", "beta_end", "beta_schedule", "trained_betas", "rescale_betas_zero_snr"]


class Scheduler(SchedulerMixin, ConfigMixin):  # pyright: ignore[reportGeneralTypeIssues]
    """Plans as a scheduler, made by `Plan.scheduler`: `set_timesteps` selects the plan with that number of steps.

    The kind of network is read from its original scheduler:

    - "ddpm": prediction_type "epsilon", "sample" or "v_prediction", and the betas of its training. Times between the
      trained ones are interpolated in ln σ.
    - "flow": flow matching, with times s·num_train_timesteps.
    - "edm": the raw network of EDM's preconditioning with sigma_data.

    A loop begins with unit noise; `init_noise_sigma` is 1. `scale_model_input` gives the network the plan's first state
    made from it, and `step` continues from there, so a loop has to call both. A pipeline that does not call the first,
    such as Flux's or DDPM's, spends an evaluation (`spends`): its first step returns the first state. It spends none if
    the plan begins at noise alone at σ ≥ 70. `nfe` is the number of evaluations. Or a loop begins with an image with
    noise, from `add_noise` or `scale_noise`, at the first time of any step: it then follows the plan's `tail`.

    Plans of several classes need `set_labels` before a pipeline is called.
    """

    @register_to_config
    def __init__(
        self,
        plans: Sequence[Plan | Mapping[str, Any]],
        network: str = "ddpm",
        prediction_type: str = "epsilon",
        num_train_timesteps: int = 1000,
        beta_start: float = 0.0001,
        beta_end: float = 0.02,
        beta_schedule: str = "linear",
        trained_betas: Sequence[float] | None = None,
        rescale_betas_zero_snr: bool = False,
        sigma_data: float = 0.5,
        spends: bool = False,
    ) -> None:
        found = [plan if isinstance(plan, Plan) else _read(plan) for plan in plans]
        if len({plan.steps for plan in found}) < len(found):
            raise BadRequestError(f"plans must have different numbers of steps, got {found}")
        for plan in found:
            if plan.count > 1 or "begin" in plan.file:
                kind = "a tail" if plan.count == 1 else f"one of {plan.count} subspaces"
                raise BadRequestError(
                    f"plans must be whole, because a pipeline begins where it likes, and of one subspace, because its "
                    f"network takes one noise level, got {kind}: call it, plan(denoiser, noise)"
                )
        self.register_to_config(plans=[_written(plan) for plan in found])
        self.plans = {plan.steps: plan for plan in found}
        self.network = self._network(network)
        self.num_inference_steps: int | None = None
        self._labels: list[int] | None = None
        self._plan, self._stages, self._spent, self._counted = found[0], list[Stage](), 0, False
        self._index, self.timesteps = 0, torch.zeros(0)

    @classmethod
    def of(cls, pipe: Any, plans: Sequence[Plan]) -> Self:
        """Plans for the network of a pipeline, a scheduler or its config."""
        scheduler = getattr(pipe, "scheduler", pipe)
        config = getattr(scheduler, "config", scheduler)
        name = getattr(config, "get", {}.get)("_class_name") or type(scheduler).__name__
        spends = pipe is not scheduler
        if spends:
            code = inspect.unwrap(type(pipe).__call__).__code__
            spends = not {"scale_model_input", "strength"} & {*code.co_names, *code.co_varnames}
        out = cls(plans, **_meaning(config, name), spends=spends)
        name = type(pipe).__name__
        warn(
            f"{name} will evaluate its network {plan.nfe + 1} times with num_inference_steps={plan.steps}, "
            f"{plan.nfe} of them for the plan: it gives the network unit noise first, at which the plan does not begin"
            for plan in plans
            if out._spent_by(plan)
        )
        return out

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "network": None}  # its functions cannot be pickled

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.network = self._network(self.config.network)

    def __len__(self) -> int:
        return self.config.num_train_timesteps

    @property
    def order(self) -> int:
        """By what a pipeline multiplies its number of steps to get that of `timesteps`: evaluations per step, rounded
        up. After the pipeline passed sigmas it is 1, since the pipeline then uses the number of timesteps.
        """
        return 1 if self._counted else -(-self._plan.nfe // self._plan.steps)

    @property
    def nfe(self) -> int:
        """How often a pipeline evaluates its network from noise, with the plan that is selected."""
        return self._plan.nfe + self._spent_by(self._plan)

    init_noise_sigma = 1.0

    def set_labels(self, labels: Any) -> None:
        """The classes of the images of the next passes, one per image, for plans of several classes."""
        self._labels = torch.as_tensor(labels).reshape(-1).tolist()

    def set_timesteps(
        self, num_inference_steps: int | None = None, device: Any = None, sigmas: Any = None, mu: Any = None
    ) -> None:
        """Select the plan of that number of steps, by default the first plan, and start at its beginning.

        `timesteps` holds a time for every evaluation of the network, two per step of Heun's method, after one for an
        evaluation that is spent. Pipelines of flow networks pass n `sigmas`, evenly from 1 to 1/n, in place of the
        number, and a shift `mu`. The noise levels are always the plan's; other sigmas are refused.
        """
        del mu
        self._counted = sigmas is not None
        if sigmas is not None:
            count = len(sigmas)
            deviations = np.subtract(1, sigmas) - np.arange(count) / count
            if num_inference_steps not in (None, count) or np.any(np.abs(deviations) > 2e-3):
                message = 'sigmas must be left out: a plan has its own; make it with grid={"sigma": [s/(1 - s), …, 0]}'
                raise BadRequestError(message)
            num_inference_steps = count
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
        self._started = self._shown = False  # the pipeline has a state, not unit noise; its network has seen one
        if plan.labels and self._labels is None:
            raise BadRequestError(f"labels must be given first, by set_labels: the plan has the classes {plan.labels}")
        self._stages = stages_of(plan.divided(self._labels, len(self._labels or [])))
        self._spent = self._spent_by(plan)
        times = np.array([self._time(stage) for stage in self._stages[: self._spent] + self._stages])
        whole = plan.whole_times and np.allclose(times, times.round(), atol=1e-3)  # in the pipeline's network, too
        times, kind = (times.round(), torch.int64) if whole else (times, torch.float32)
        self.timesteps = torch.tensor(times, dtype=kind, device=device)

    def _spent_by(self, plan: Plan) -> int:
        """The number of evaluations that a pipeline makes before the plan begins, from noise."""
        return int(self.config.spends and not plan.takes_unit_noise(self.network))

    def set_begin_index(self, begin_index: int = 0) -> None:
        """Set the index in `timesteps` at which a pipeline begins."""
        self._index = begin_index

    def scale_model_input(self, sample: Any, timestep: Any = None) -> Any:
        """The network's input: the plan's first state in place of unit noise; for kind edm, c_in times the images."""
        stage, self._shown = self._stage(timestep), True
        images = self._unpacked(sample)
        scale = self.network.input_scale(_level(stage, images))
        held = self._held(stage, images) if self._is_noise else images
        same = held is sample and isinstance(scale, float) and scale == 1
        return sample if same else self._packed(held * scale, sample)

    def step(
        self,
        model_output: Any,
        timestep: Any,
        sample: Any,
        eta: float = 0.0,
        use_clipped_model_output: bool | None = None,
        generator: Any = None,
        return_dict: bool = True,
    ) -> Any:
        """Step from sample [B, C, …] with the network's output at it; timestep is the next of `timesteps`.

        generator draws the noise of a plan with churn. eta must be 0, since the plan sets the noise. Returns the images
        of the next evaluation, or the samples, as prev_sample, and the estimate of x_0 as pred_original_sample; a tuple
        if return_dict is False.
        """
        if eta:
            raise BadRequestError(f"eta must be 0, got {eta}: make a plan with S_churn for a sampler that adds noise")
        del use_clipped_model_output  # DDIM's pipeline passes it to any scheduler
        stage, images = self._stage(timestep), working(self._unpacked(sample))
        number = self._number
        if self._is_noise and not (self._shown or self._spent or self._plan.takes_unit_noise(self.network)):
            message = "scale_model_input must be called first, or the scheduler made by plan.scheduler(pipe)"
            raise BadRequestError(f"{message}: the plan does not start at unit noise")
        state, level = self._held(stage, images), _level(stage, images)
        if number < 0:
            following = denoised = state
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
        self._started, self._index = True, number + self._spent + 1
        following, denoised = (self._packed(each, sample) for each in (following, denoised))
        return DDPMSchedulerOutput(following, denoised) if return_dict else (following, denoised)

    def add_noise(self, original_samples: Any, noise: Any, timesteps: Any) -> Any:
        """Images with noise at times [B] of the network, c·(x_0 + σε); σ is exact at a time of the plan."""
        times = torch.as_tensor(timesteps).double().cpu().numpy().reshape(-1)
        sigmas = [min(self.network.sigma(time), 1e12) for time in times.tolist()]
        for number, stage in enumerate(self._stages):
            if _near(times, self._time(stage)):
                sigmas = np.broadcast_to(stage.sigma, np.broadcast_shapes(times.shape, np.shape(stage.sigma)))
                self._started = self._started or number == 0
                break
        scales = np.array([self.network.scale(sigma) for sigma in sigmas])
        shape = (-1, *[1] * (original_samples.ndim - 1))
        image, level = (original_samples.new_tensor(part).reshape(shape) for part in (scales, scales * sigmas))
        return image * original_samples + level * noise

    def scale_noise(self, sample: Any, timestep: Any, noise: Any) -> Any:
        """`add_noise`, as diffusers' flow-matching schedulers call it."""
        return self.add_noise(sample, noise, timestep)

    @property
    def _number(self) -> int:
        """The index of the next stage; −1 for an evaluation that is spent."""
        return (self._index or 0) - self._spent

    @property
    def _is_noise(self) -> bool:
        """Whether the pipeline holds unit noise, to be replaced by the plan's first state."""
        return self._number <= 0 and not self._started

    def _held(self, stage: Stage, images: Any) -> Any:
        """c·x; the plan's first state in place of unit noise."""
        if not self._is_noise:
            return images
        labels = self._labels and self._labels * (len(images) // len(self._labels))  # guidance doubles the images
        return self._plan.begin(images, labels=labels) * self.network.scale(_level(stage, images))

    def _stage(self, timestep: Any) -> Stage:
        """The next stage, whose time must be the given one."""
        time_given = None if timestep is None else torch.as_tensor(timestep).double().cpu().numpy()
        times = self.timesteps.double().cpu().numpy()
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
        return self._stages[max(0, self._number)]

    def _within(self, index: int) -> bool:
        """Whether a time is that of a later evaluation of a step."""
        return index > self._spent and self._stages[index - self._spent - 1].step < 0

    def _time(self, stage: Stage) -> Any:
        """The network's time of a stage, or of each image."""
        if np.ndim(stage.sigma) == 0:
            return self.network.time(stage.sigma)
        return np.array([self.network.time(sigma) for sigma in stage.sigma.tolist()])

    def _unpacked(self, images: Any) -> Any:
        """Images [B, C, H, W] of sequences [B, H/2·W/2, 4 C], as in Flux, if the plan needs H and W."""
        size = self._plan.size
        if size is None or images.ndim != 3 or images[0].numel() != np.prod(size):
            return images
        channels, height, width = size
        parts = images.reshape(-1, height // 2, width // 2, channels, 2, 2)
        return parts.permute(0, 3, 1, 4, 2, 5).reshape(-1, channels, height, width)

    def _packed(self, images: Any, sample: Any) -> Any:
        """Images in the shape of the pipeline's sample."""
        if images.ndim != sample.ndim:
            batch, channels, height, width = images.shape
            parts = images.reshape(batch, channels, height // 2, 2, width // 2, 2)
            images = parts.permute(0, 2, 4, 1, 3, 5).reshape(sample.shape)
        return images.to(sample.dtype)

    def _network(self, kind: str) -> Network:
        config = self.config
        if kind == "ddpm":
            betas: Any = DDPMScheduler(**{name: config[name] for name in _BETAS})  # pyright: ignore[reportCallIssue]
            self.alphas_cumprod = betas.alphas_cumprod
            return ddpm(self.alphas_cumprod.double().numpy(), config.prediction_type)
        if kind not in ("flow", "edm"):
            raise BadRequestError(f"network must be ddpm, flow or edm, got {kind!r}")
        return flow(config.num_train_timesteps) if kind == "flow" else edm(config.prediction_type, config.sigma_data)


def _meaning(config: Any, name: str) -> dict[str, Any]:
    """The kind of network in the config of a scheduler."""
    if not isinstance(config, Mapping):
        raise BadRequestError(f"pipe must be a pipeline, a scheduler of diffusers or its config, got {name}")
    prediction = config.get("prediction_type") or "epsilon"
    continuous = config.get("timestep_type") == "continuous"  # EDM's times
    if "plans" in config:
        return {key: config[key] for key in ("network", "prediction_type", "sigma_data", *_BETAS)}
    if name.startswith("EDM") or (continuous and prediction == "v_prediction"):
        return {"network": "edm", "prediction_type": prediction, "sigma_data": config.get("sigma_data", 1.0)}
    if "FlowMatch" in name or prediction == "flow_prediction" or config.get("use_flow_sigmas"):
        if not config.get("invert_sigmas"):
            return {"network": "flow", "num_train_timesteps": config.get("num_train_timesteps", 1000)}
    elif "beta_start" in config and not continuous:
        return {"prediction_type": prediction, **{key: config[key] for key in _BETAS if key in config}}
    raise BadRequestError(
        f"the scheduler must be of a network trained with betas, of flow matching from noise, or EDM's, got {name}: "
        "give one that is, plan.scheduler(DDPMScheduler(…)), or call the plan with a denoiser of your own"
    )


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
