"""A scheduler for the pipelines of diffusers: any solver of the server, on a learned schedule.

    from anisoflight.diffusers import Scheduler

    levels = {"sigma_min": 0.01, "sigma_max": 157}  # those that the network was trained on
    plans = [client.plan("edm", **levels, solver="unipc", nfe=nfe) for nfe in (5, 9)]
    pipe.scheduler = Scheduler.from_config(pipe.scheduler.config, plans=plans)
    pipe(num_inference_steps=9)

It needs the packages diffusers and torch, and asks no server. `networks` says how each kind of network takes its input.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .errors import BadRequestError
from .files.schedules import basis_bytes, basis_of
from .networks import Network, ddpm, denoiser, edm, flow
from .plan import Plan, Stage
from .start import Start
from .stepping import Stepper

try:
    import torch  # pyright: ignore[reportMissingImports]
    from diffusers import ConfigMixin, DDPMScheduler, SchedulerMixin  # pyright: ignore[reportMissingImports]
    from diffusers.configuration_utils import register_to_config  # pyright: ignore[reportMissingImports]
    from diffusers.schedulers.scheduling_ddpm import DDPMSchedulerOutput  # pyright: ignore[reportMissingImports]
    from diffusers.utils.torch_utils import randn_tensor  # pyright: ignore[reportMissingImports]
except ImportError as error:
    raise ImportError(
        f"anisoflight.diffusers needs the packages diffusers and torch ({error}): pip install diffusers torch; "
        "without them anisoflight.stepping.Stepper steps a plan"
    ) from error

if TYPE_CHECKING:
    from collections.abc import Sequence

Kind = Literal["ddpm", "flow", "edm", "denoiser"]

_BETAS = ["num_train_timesteps", "beta_start", "beta_end", "beta_schedule", "trained_betas", "rescale_betas_zero_snr"]
_MIDDLE = (
    "a plan is followed from its first time, and the loop begins at a later one: image to image and inpainting with a "
    "strength below 1 are not supported; give strength=1, or a scheduler of diffusers"
)
_NEAR_UNIT = 0.02  # what unit noise may miss the start of a ddpm or flow network by, at σ = 50 of a flow


class Scheduler(SchedulerMixin, ConfigMixin):  # pyright: ignore[reportGeneralTypeIssues]
    """Plans as a scheduler: `set_timesteps` takes the plan with that number of steps.

    plans are `Plan`s, or their files as `save_pretrained` stores them; a plan holds noise levels and solver, and is
    made by `Client.plan`. The network is of one of these kinds, told by `network`:

    - "ddpm" (default): prediction_type "epsilon", "sample" or "v_prediction", and the betas that it was trained with,
      by DDPMScheduler's names. Times between the trained ones are interpolated in ln σ.
    - "flow": flow matching, the times s·num_train_timesteps; also meant by prediction_type "flow_prediction".
    - "edm": the raw network of EDM's preconditioning with sigma_data, as diffusers' EDM schedulers take it.
    - "denoiser": takes x_0 + σε and σ, returns "sample" (x_0) or "epsilon". With this kind alone may a plan have
      several subspaces; its times are then the geometric means of their noise levels.

    `from_config` takes these from the config of another scheduler. clip_sample bounds every estimate of x_0.

    Plans of several classes need `set_labels` before a pipeline is called. A loop begins with `start(noise)`, or with
    unit noise times `init_noise_sigma`. One that does neither, such as DDPMPipeline's, begins with unit noise: that is
    refused where the plan begins elsewhere.
    """

    @register_to_config
    def __init__(
        self,
        plans: Plan | Mapping[str, Any] | Sequence[Plan | Mapping[str, Any]],
        network: Kind = "ddpm",
        prediction_type: str = "epsilon",
        num_train_timesteps: int = 1000,
        beta_start: float = 0.0001,
        beta_end: float = 0.02,
        beta_schedule: str = "linear",
        trained_betas: Sequence[float] | None = None,
        rescale_betas_zero_snr: bool = False,
        sigma_data: float = 0.5,
        clip_sample: bool = False,
        clip_sample_range: float = 1.0,
    ) -> None:
        given = [plans] if isinstance(plans, Plan | Mapping) else plans
        found = [plan if isinstance(plan, Plan) else _read(plan) for plan in given]
        if not found:
            raise BadRequestError("plans must hold one plan or more, as Client.plan makes them, got none")
        if prediction_type == "flow_prediction":
            network = "flow"
        several = next((plan for plan in found if plan.count > 1), None)
        if several is not None and network != "denoiser":
            raise BadRequestError(
                f"a network of kind {network} is told one noise level at a time, this plan has {several.count}; "
                'make it on a schedule of one subspace, or say network="denoiser"'
            )
        self.register_to_config(plans=[_written(plan) for plan in found], network=network)
        self.plans = {plan.steps: plan for plan in found}
        self.network = self._network(network)
        self.num_inference_steps: int | None = None
        self._labels: Any = None
        self._begun: Plan | None = None  # whose start the loop has taken
        self._stepper = self._stepper_of(found[0])
        self.timesteps: Any = None if found[0].labels else self._times(None)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "network": None}  # whose functions cannot be pickled, and follow from the config

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.network = self._network(self.config.network)

    def __len__(self) -> int:
        return self.config.num_train_timesteps

    @property
    def order(self) -> int:
        """Evaluations of the network per step, rounded up."""
        plan = self._stepper.plan
        return -(-plan.nfe // plan.steps)

    @property
    def init_noise_sigma(self) -> float:
        """What unit noise is multiplied by at the start; for ddpm and flow networks about 1.

        Where the subspaces start at noise levels of their own, begin with `start`.
        """
        self._check_law()
        starts = self._stepper.starts
        if np.ptp(starts) > 1e-12 * max(starts):
            raise BadRequestError("the subspaces start at noise levels of their own: begin with start(noise)")
        self._begun = self._stepper.plan
        return starts[0] * self._first_scale

    @property
    def _first_scale(self) -> float:
        """c of the first stage."""
        return self.network.scale(np.mean(self._stepper.stages[0].sigma).item())

    def set_labels(self, labels: Any) -> None:
        """The classes of the images of the next passes, one for each, which plans of several classes need."""
        self._labels = labels
        self._stepper.set_labels(labels)

    def start(self, noise: Any) -> Any:
        """The images [B, C, H, W] to begin with, of unit normal noise. A pipeline that takes latents may have them."""
        self._begun = self._stepper.plan
        return self._stepper.start(noise) * self.network.scale(_level(self._stepper.stages[0], noise))

    def set_timesteps(
        self, num_inference_steps: int | None = None, device: Any = None, sigmas: Any = None, mu: Any = None
    ) -> None:
        """Begin again with the plan of that number of steps; None takes the first plan.

        `timesteps` then holds a time for every evaluation of the network, which Heun's method has two of per step.
        Pipelines of flow networks pass n `sigmas`, evenly from 1 to 1/n, in place of the number, and `mu`, a shift for
        the images' size. The noise levels are the plan's all the same; other sigmas are refused.
        """
        del mu
        if sigmas is not None:
            count = len(sigmas)
            away = np.subtract(1, sigmas) - np.arange(count) / count
            if num_inference_steps not in (None, count) or np.any(np.abs(away) > 2e-3):
                raise BadRequestError(
                    "sigmas must be left out, because a plan holds its own noise levels; "
                    'make the plan with grid={"sigma": [s/(1 - s), …, 0]} for levels s of your own'
                )
            num_inference_steps = count
        steps = next(iter(self.plans)) if num_inference_steps is None else num_inference_steps
        if steps not in self.plans:
            held = ", ".join(map(str, sorted(self.plans)))
            raise BadRequestError(
                f"num_inference_steps must be one of {held}, the steps of this scheduler's plans, got {steps}; "
                "add a plan that Client.plan makes for it"
            )
        self.num_inference_steps = steps
        self._stepper = self._stepper_of(self.plans[steps])
        self._stepper.reset()
        self.timesteps = self._times(device)

    def set_begin_index(self, begin_index: int = 0) -> None:
        """Where a pipeline begins, as diffusers' schedulers have it: at 0, the plan's first time."""
        if begin_index:
            raise BadRequestError(_MIDDLE)

    def scale_model_input(self, sample: Any, timestep: Any = None) -> Any:
        """What the network takes: of kind edm c_in times the sample, else the sample."""
        scale = self.network.input_scale(_level(self._stage(timestep), sample))
        return sample if isinstance(scale, float) and scale == 1 else sample * scale

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
        """Go on from sample, [B, C, H, W], with the network's output at it; timestep is the next of `timesteps`.

        generator draws the noise of a plan with churn. eta must be 0: how much noise is added is the plan's.
        Returns the images that the next evaluation takes, or the samples, as prev_sample, and the estimate of x_0 as
        pred_original_sample; without return_dict as a tuple.
        """
        if eta:
            raise BadRequestError(f"eta must be 0, got {eta}: make a plan with S_churn for a sampler that adds noise")
        del use_clipped_model_output  # DDIM's own; its pipeline passes it to any scheduler
        stage = self._stage(timestep)
        if self._stepper.plan.law is not None:
            self._begun = None  # draws serve one pass, a factor serves all
        network, held = self.network, sample.float()
        level = _level(stage, held)
        denoised = network.denoised(model_output.float(), held, level)
        if self._stepper.prediction != "sample":
            denoised = model_output.float()  # of several subspaces: ε in terms of all their noise levels
        elif self.config.clip_sample:
            denoised = denoised.clamp(-self.config.clip_sample_range, self.config.clip_sample_range)

        def normal(like: Any) -> Any:
            return randn_tensor(like.shape, generator=generator, device=like.device, dtype=like.dtype)

        following = self._stepper.step(denoised, held * (1 / network.scale(level)), normal)
        if self._stepper.ahead is not None:
            following = following * network.scale(_level(self._stepper.ahead, held))
        following, denoised = following.to(sample.dtype), self._stepper.denoised.to(sample.dtype)
        if not return_dict:
            return following, denoised
        return DDPMSchedulerOutput(prev_sample=following, pred_original_sample=denoised)

    def add_noise(self, original_samples: Any, noise: Any, timesteps: Any) -> Any:
        """Images with noise at the network's own times [B], c·(x_0 + σε), for its training."""
        plan = self._stepper.plan
        if plan.count > 1:
            raise BadRequestError("plans of several subspaces know their own levels only: train with Client.create_run")
        times = torch.as_tensor(timesteps).reshape(-1).tolist()
        if plan.law is None and not plan.labels and _near(np.array(times), self._time(plan.stages[0])):
            self._begun = plan  # an image with the plan's first noise is a start
        sigmas = [min(self.network.sigma(time), 1e12) for time in times]
        scales = np.array([self.network.scale(sigma) for sigma in sigmas])
        shape = (-1, *[1] * (original_samples.ndim - 1))
        image, level = (original_samples.new_tensor(part).reshape(shape) for part in (scales, scales * sigmas))
        return image * original_samples + level * noise

    def scale_noise(self, sample: Any, timestep: Any, noise: Any) -> Any:
        """`add_noise`, as diffusers' flow-matching schedulers call it."""
        return self.add_noise(sample, noise, timestep)

    def _stage(self, timestep: Any) -> Any:
        """The stage that comes next, if that is the time asked for."""
        stage = self._stepper.ahead
        if stage is None:
            raise BadRequestError("all timesteps are done; call set_timesteps to begin again")
        if timestep is not None:
            given = torch.as_tensor(timestep).double().cpu().numpy()
            if not _near(given, expected := self._time(stage)):
                if self._stepper.taken == 0 and any(_near(given, self._time(other)) for other in self._stepper.stages):
                    raise BadRequestError(_MIDDLE)
                raise BadRequestError(
                    f"timestep must be the next, {_short(expected)}, got {_short(given)}; "
                    "a plan is followed from its first time to its last"
                )
        if self._stepper.taken == 0:
            self._check_begun()
        return stage

    def _check_begun(self) -> None:
        """Refuse unit noise where the plan begins elsewhere."""
        if self._begun is self._stepper.plan:
            return
        self._check_law()
        ends = np.multiply(self._stepper.starts, self._first_scale)
        if np.abs(ends - 1).max() > _NEAR_UNIT:
            raise BadRequestError(
                f"the plan starts at {_short(ends)} times unit noise, and the loop asked for neither start nor "
                "init_noise_sigma: begin with start(noise)"
            )

    def _check_law(self) -> None:
        if self._stepper.plan.law is not None:
            raise BadRequestError(
                "the plan starts from the law of a dataset, not from noise alone: begin with start(noise) in a loop of "
                'your own, or make the plan with start="standard"'
            )

    def _stepper_of(self, plan: Plan) -> Stepper:
        stepper = Stepper(plan, "epsilon" if plan.count > 1 and self.config.prediction_type == "epsilon" else "sample")
        if self._labels is not None:
            stepper.set_labels(self._labels)
        return stepper

    def _time(self, stage: Stage) -> Any:
        """The network's own time of a stage, or of each image."""
        if np.ndim(stage.sigma) == 0:
            return self.network.time(stage.sigma)
        return np.array([self.network.time(sigma) for sigma in stage.sigma.tolist()])

    def _times(self, device: Any) -> Any:
        """[nfe], or [nfe, B] of images of several classes with different noise levels."""
        times = np.array([self._time(stage) for stage in self._stepper.stages])
        return torch.tensor(times, dtype=torch.float32, device=device)

    def _network(self, kind: str) -> Network:
        config = self.config
        if kind == "ddpm":
            betas: Any = DDPMScheduler(**{name: config[name] for name in _BETAS})  # pyright: ignore[reportCallIssue]
            self.alphas_cumprod = betas.alphas_cumprod
            return ddpm(self.alphas_cumprod.double().numpy(), config.prediction_type)
        if kind == "edm":
            return edm(config.prediction_type, config.sigma_data)
        if kind not in ("flow", "denoiser"):
            raise BadRequestError(f"network must be ddpm, flow, edm or denoiser, got {kind!r}")
        return flow(config.num_train_timesteps) if kind == "flow" else denoiser(config.prediction_type)


def _level(stage: Stage, images: Any) -> Any:
    """The noise level of a stage: a number, or a tensor to be multiplied with images [B, C, H, W]."""
    if np.ndim(stage.sigma) == 0:
        return stage.sigma
    if len(images) != len(stage.sigma):
        raise BadRequestError(f"labels must be as many as the {len(images)} images, got {len(stage.sigma)}")
    return images.new_tensor(stage.sigma).reshape(-1, 1, 1, 1)


def _near(given: Any, expected: Any) -> bool:
    """Whether times are equal to rounding."""
    return bool(np.all(np.abs(given - expected) <= 1e-4 * np.maximum(1.0, np.abs(expected))))


def _short(numbers: Any) -> str:
    return ", ".join(f"{number:g}" for number in np.unique(numbers))


def _written(plan: Plan) -> dict[str, Any]:
    """A plan as plain JSON, with the vectors of its basis and its law as safetensors files in base64."""
    written = dict(plan.file)
    if plan.law is not None:
        written["law"] = base64.b64encode(plan.law.file).decode()
    if plan.vectors is not None:
        written["basis"] = base64.b64encode(basis_bytes(plan.vectors)).decode()
    return written


def _read(written: Mapping[str, Any]) -> Plan:
    """The plan that `_written` wrote."""
    try:
        file = dict(written)
        law, basis = (base64.b64decode(file.pop(name, ""), validate=True) for name in ("law", "basis"))
    except (ValueError, TypeError) as error:
        raise BadRequestError(f"plans must be plans or what save_pretrained stores, got another: {error}") from error
    return Plan(file, basis_of(basis) if basis else None, Start(law) if law else None)
