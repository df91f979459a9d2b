"""Samplers of few evaluations for denoisers of this process: the server plans and judges, torch follows and reduces."""

import base64
import contextlib
import copy
import functools
import itertools
import math
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]

from ..errors import BadRequestError, bad_tensor
from ..latents import latents
from ..operations.plans import budget_fields
from ..plans.numpy_or_torch import exactly
from ..plans.plan import Plan
from ..serving.client import Client
from ..serving.local import serve
from ..start import Start
from ..subspaces import Coordinates
from ..wire.progress import Progress
from .denoiser import Denoiser
from .offering import Question, offer
from .trial import sample_shape
from .wrapping import of_diffusers

Tensor = torch.Tensor
Array = np.ndarray[Any, Any]

_TIMES = 65
_LEAST = 40  # levels of converged trajectories
_LOWEST, _HIGHEST = 0.002, 80.0  # levels of samplers: data of deviation ½ are invisible above the last
_ROWS, _VALUES = 64, 1 << 20  # at a time, unless the denoiser's batch is smaller


def few(
    denoiser: Denoiser | Callable[[Tensor, Tensor], Tensor],
    nfe: int,
    shape: Sequence[int] | None = None,
    data: Any = None,
    features: Callable[[Tensor], Tensor] | None = None,
    *,
    labels: Any = None,
    budget: int | str | None = None,
    learn: bool | None = None,
    temperature: float = 1.0,
    client: Client | None = None,
    seed: int = 0,
    progress: bool = True,
    **options: Any,
) -> Plan:
    """The best sampler of a denoiser for few evaluations: a `Plan`, for `plan(denoiser, noise)`, `plan.scheduler(pipe)`
    and your own loops. The denoiser may be a function of x and σ that returns x_0.

    shape is that of one sample, (D,) or (C, *axes) with one to three axes: by default that of `data`, else
    `denoiser.shape`. Samples are drawn under the denoiser's conditions.

    Without `data`, solvers on several noise levels, and coefficients that are fitted to the denoiser's trajectories or
    learned through it, without its derivatives, are compared by the squared errors of their samples to converged ones
    from the same noise: by the geometric mean of these errors' mean and geometric mean, as large values alone may
    decide the former. With `data` [N, *shape], images in the denoiser's units, they are compared by Fréchet distances
    to these, and may start from their normal law. `labels` [N] are then the rows of the images' conditions.

    `features(x_0)` [B, F] are what distances are measured on: a decoder's pictures, layers of a classifier. By default
    they are the values, and with data low frequencies, edges and the responses of random filters.

    `temperature` multiplies the noise that samples and converged samples begin with, as in programs for speech. The
    plan has it, and takes unit noise. Without `data` only.

    `budget` is a number of evaluations of single rows, of which a guided denoiser takes two per sample, or seconds as
    "90 s". By default it is, with data, what 512 samples of each sampler need, and without about a minute, or 4000
    evaluations if these take longer. Levels and coefficients are learned if it suffices: `learn` leaves that out if
    False, and raises the default budget if True. The cost is printed first. Ctrl-C ends the search with the best so
    far. A plain sampler is the result unless the gain of another is clear on other latents. `plan.info` has every try,
    the gain as `ratio` and `ratio_stderr`, evaluations and seconds.

    The search uses a server: `client`, or a new one. Options are those of OfferNetwork in docs/wire.md: solvers,
    samples, sigma_min, sigma_max, and learn_guidance, by which a guided denoiser gets a guidance of its own in every
    evaluation: pipelines cannot follow such a plan. sigma_min and sigma_max are by default 0.002 and 80 times the root
    mean square of x_0, if that is above 1 or below ¼, or what the network knows.
    """
    if not isinstance(denoiser, Denoiser):
        denoiser = Denoiser(denoiser, "denoiser")
    if data is not None:
        data = data if hasattr(data, "shape") else np.asarray(data)
    channels, *axes = shape = sample_shape(denoiser, shape, data)
    temperature = float(temperature)
    if not 0 < temperature < math.inf or (data is not None and temperature != 1):
        given = "" if data is None else " with data"
        raise BadRequestError(f"temperature must be above 0, and 1 with data, got {temperature:g}{given}")
    if options.get("learn_guidance") and denoiser.guidance == 1:
        raise BadRequestError("learn_guidance must be left out, because the denoiser has no guidance")
    if data is not None:
        if "float" not in str(getattr(data, "dtype", "float")):
            raise bad_tensor(f"data must be floats in the denoiser's units, got {data.dtype}")
        _check_finite(data)
        labels = _checked(labels, len(data), denoiser.rows)
    trial = denoiser.check(shape, data, labels)
    unit = (max(1.0, trial.size) * min(1.0, 4 * trial.size)) if 0 < trial.size < math.inf else 1.0
    ends = _ends(denoiser, unit, options)
    levels = denoiser.levels and [level for level in denoiser.levels if ends[0] <= level * 1.001 <= ends[1] * 1.002]
    if levels is not None:
        if len(levels) < _LEAST:
            message = f"the network must take {_LEAST} whole times or more for a search, got {len(levels)}"
            raise BadRequestError(
                f'{message}: make a plan of its denoiser\'s levels, client.plan(grid={{"sigma": […, 0]}})'
            )
        ends = levels[-1], levels[0]
    folded = (int(np.prod(axes[:-1])), axes[-1], channels) if axes else (1, 1, channels)
    if math.prod(axes) == 1 and data is not None and features is None:  # vectors have no edges
        features = functools.partial(torch.flatten, start_dim=1)
    request: dict[str, Any] = {
        "nfe": nfe, "shape": folded, "labels": denoiser.rows, "labelled": labels is not None,
        "images": 0 if data is None else len(data), "seed": seed,
        **budget_fields(budget, learn), "each": denoiser.evaluations_per_call,
        "sigma_min": ends[0] / unit, "sigma_max": ends[1] / unit,
    }  # fmt: skip
    request |= {"levels": [level / unit for level in levels]} if levels else {}
    request |= {"times": [level / unit for level in times]} if (times := _times(denoiser, *ends)) else {}
    scales = unit, unit * temperature
    follower = _Follower(denoiser, shape, folded, data, labels, features, trial.seconds_per_evaluation, *scales)
    if features is not None:
        request["features"] = follower.count_features()
    if taken := sorted(request.keys() & options.keys()):
        raise BadRequestError(f"{', '.join(taken)} must be left out: the search sets them")
    begun = time.perf_counter()
    with contextlib.ExitStack() as stack, torch.no_grad():
        if client is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            client = stack.enter_context(serve(data=folder))
        follower.bar = stack.enter_context(Progress(desc="few", unit="evaluation", disable=not progress, leave=False))
        end = offer(client, request | options, follower)
    plan = Plan.whole(end["plan"])
    if (unit, temperature) != (1, 1):
        plan = _in_units(plan, unit, temperature)
    report = {**(plan.info or {}), "evaluations": follower.evaluations, "elapsed": time.perf_counter() - begun}
    provenance = {"kind": "few", "network": denoiser.parametrization["kind"], "shape": [*shape], "seed": seed}
    provenance |= {"times": "whole"} if levels else {}
    provenance |= {"clip": denoiser.clip} if denoiser.clip else {}
    provenance |= {"temperature": temperature} if temperature != 1 else {}
    plan = replace(plan, file={**plan.file, "info": report, "provenance": provenance})
    if progress:
        print(plan.told + _told(plan, denoiser))
    return plan


def _told(plan: Plan, denoiser: Denoiser) -> str:
    """At which times the plan evaluates the network, and where it does once more."""
    out = ""
    if plan.whole_times:
        out += f", at whole times: {', '.join(f'{denoiser.network.time(one.sigma):.0f}' for one in plan.evaluations)}"
    if not of_diffusers(denoiser._module) or plan.takes_unit_noise(denoiser.network):
        return out
    pipelines = "pipelines that give their network unit noise (DDPMPipeline, DDIMPipeline, Flux's)"
    return f"{out}; {plan.nfe + 1} in {pipelines}: see plan.scheduler(pipe).nfe"


def _check_finite(data: Any) -> None:
    """Refuse data with values that are not finite, by the number of their image."""
    for begin in range(0, len(data), _ROWS):
        finite = torch.as_tensor(data[begin : begin + _ROWS]).flatten(1).isfinite().all(1)
        if not finite.all():
            raise bad_tensor(f"data must be finite, got other values in image {begin + int(finite.int().argmin())}")


def _checked(labels: Any, count: int, rows: int) -> Array | None:
    """The rows of the images' conditions."""
    if labels is None:
        if rows > 1:
            raise BadRequestError(f"labels must be given with data: the rows, of {rows}, of the images' conditions")
        return None
    found = np.asarray(getattr(labels, "tolist", lambda: labels)())
    if found.shape != (count,) or found.dtype.kind not in "iu" or found.min() < 0 or found.max() >= rows:
        raise bad_tensor(f"labels must be {count} whole numbers below the denoiser's {rows} rows")
    return found.astype(np.int64)


def _ends(denoiser: Denoiser, unit: float, options: dict[str, Any]) -> tuple[float, float]:
    """The noise levels of the search: those of the options, else of data of this unit, as far as they are known."""
    low, high = denoiser.bounds
    given = options.pop("sigma_min", None), options.pop("sigma_max", None)
    found = float(given[0] or max(low, _LOWEST * unit)), float(given[1] or min(high, _HIGHEST * unit))
    if not 0 < found[0] < found[1] <= 1.001 * high:
        raise BadRequestError(
            f"sigma_min and sigma_max must increase, up to {high:g}, the highest noise level that the network knows, "
            f"got {found[0]:g} and {found[1]:g}"
        )
    return found


def _times(denoiser: Denoiser, low: float, high: float) -> list[float]:
    """Decreasing noise levels at evenly spaced times of the network; none if its time is a function of σ alone."""
    if denoiser.parametrization["kind"] in ("denoiser", "edm", "ve"):
        return []
    network = denoiser.network
    first, last = (float(network.time(s)) for s in (high, low))
    return [float(network.sigma(t)) for t in np.linspace(first, last, _TIMES)]


def _in_units(plan: Plan, unit: float, temperature: float) -> Plan:
    """A plan of a search that measured values in this unit, and its report, without it, from noise of a temperature.

    Values are in the unit times the temperature: there the noise is unit noise, and the solvers are linear.
    """
    file = copy.deepcopy(dict(plan.file))
    report, square = file["info"], unit**2
    of_flow = unit if file["predicts"] == "flow" else 1.0  # about −ε, which has no unit
    for part in file.get("classes", [file]):
        part |= {"t": [square * t for t in part["t"]], "init": [unit * temperature * level for level in part["init"]]}
        for stage in part["stages"]:
            stage |= {"t": square * stage["t"], "g": [square * g for g in stage["g"]]}
            stage |= {"noise": [unit * level for level in stage["noise"]]} if "noise" in stage else {}
        for stage in itertools.chain(part["stages"], *part.get("tails", [])):
            scales = [of_flow, 1.0 if file.get("states") else of_flow]  # a state has x's unit
            stage["beta"] = [[scales[i % 2] * weight for i, weight in enumerate(row)] for row in stage["beta"]]
    for tried in [report["chosen"], report["against"], *report["tries"]]:
        tried |= {name: unit * tried[name] for name in ("sigma_max", "deviation", "analytical") if name in tried}
    levels = re.compile(r"(?<=from sigma )[\d.e+-]+")
    report["summary"] = levels.sub(lambda found: f"{unit * float(found[0]):.4g}", report["summary"])
    if (law := plan.law) is not None:
        law = law.times(unit)
        file["start"]["hash"] = law.hash
    return replace(plan, file=file, law=law)


@dataclass
class _Follower:
    """Answers the server's questions about a denoiser."""

    denoiser: Denoiser
    shape: tuple[int, ...]
    folded: tuple[int, int, int]
    data: Any
    labels: Array | None
    features: Callable[[Tensor], Tensor] | None
    seconds: float
    unit: float  # of noise levels
    scale: float  # of values here: noise of the temperature is then unit noise
    bar: Any = None
    evaluations: int = 0
    law: Start | None = None
    kept: dict[int, list[Tensor]] = field(default_factory=dict)  # states of trajectories by their number, on the host
    columns: list[Tensor] = field(default_factory=list)  # samples, or their features, of plans that are compared
    memo: dict[Any, list[tuple[Tensor, ...]]] = field(default_factory=dict)
    """states, σ, guidance and evaluations by stage, of the last latents"""

    def __call__(self, event: dict[str, Any], question: Question) -> Array:
        if self.bar.total is None and event.get("evaluations"):
            self.bar.total = event["evaluations"] * self.denoiser.evaluations_per_call
            if not self.bar.disable:
                seconds = self.bar.total * self.seconds
                print(f"few: about {self.bar.total} evaluations, {_format_duration(seconds)}")
        self.bar.set_postfix_str(event.get("part", ""), refresh=False)
        question_kind = event["ask"]
        if question_kind == "follow":
            return self._follow(event, question)
        if question_kind == "labels":
            return self.labels[question.image]  # pyright: ignore[reportOptionalSubscript]
        if question_kind == "residuals":
            return self._residuals(question)
        images = self._images(question.image)
        return self._features(images) if question_kind == "features" else self._to_wire(images)

    def count_features(self) -> int:
        """The number of features."""
        if self.data is not None:
            images = self._images(np.arange(2))
        else:
            images = torch.zeros(2, *self.shape, device=self.denoiser.device)
        return self._features(images).shape[1]

    def _features(self, x: Tensor) -> Array:
        """Features [n, F]."""
        with exactly(x):
            found = torch.as_tensor(self.features(x * self.scale)) if self.features is not None else x
        if found.ndim < 2 or len(found) != len(x):
            raise bad_tensor(f"features must be [{len(x)}, F], got {list(found.shape)}")
        return found.detach().flatten(1).cpu().double().numpy()

    def _images(self, numbers: Array) -> Tensor:
        images = torch.as_tensor(self.data[np.array(numbers)]).detach().to(torch.float32).to(self.denoiser.device)
        if tuple(images.shape[1:]) != self.shape:
            raise bad_tensor(f"data must be images [N, {self.shape}], got {list(images.shape)}")
        return images / self.unit

    def _to_wire(self, x: Tensor) -> Array:
        """Images [n, H, W, C] in the form of the wire."""
        height, width, channels = self.folded
        return x.detach().reshape(len(x), channels, height, width).movedim(1, -1).cpu().double().numpy()

    def _from_wire(self, values: Array) -> Tensor:
        """Values [n, H, W, C] in the shape of images."""
        planes = torch.from_numpy(np.ascontiguousarray(np.moveaxis(values, -1, 1)))
        return planes.reshape(len(values), *self.shape).to(self.denoiser.device)

    def _evaluate(self, x: Tensor, sigma: Tensor, rows: Array, guidance: float = 1.0) -> Tensor:
        denoiser = self.denoiser if guidance == 1 else self.denoiser.guided(guidance)
        before = self.denoiser.counts
        given = {"rows": torch.from_numpy(rows)} if self.denoiser.rows else {}
        denoised = denoiser(x * self.scale, sigma * self.unit, **given) / self.scale
        made = self.denoiser.counts - before
        self.evaluations += made
        self.bar.update(min(made, max(0, (self.bar.total or made) - self.bar.n)))
        return denoised

    def _parts(self, question: Question) -> Iterator[tuple[int, Question, Array]]:
        size = max(1, min(self.denoiser.batch, _ROWS, _VALUES // math.prod(self.shape)))
        for begin in range(0, len(question.image), size):
            part = question.part(slice(begin, begin + size))
            yield begin, part, part.label.astype(np.int64)

    def _residuals(self, question: Question) -> Array:
        """flow + ε, (D − x_0)/σ, of images with noise."""
        out = []
        for _, part, rows in self._parts(question):
            x0, eps = self._images(part.image), self._from_wire(part.noise(self.folded))
            sigma = torch.from_numpy(part.g**0.5).to(x0)
            wide = sigma.reshape(-1, *[1] * (x0.ndim - 1))
            out.append(self._to_wire((self._evaluate(x0 + wide * eps, sigma, rows) - x0) / wide))
        return np.concatenate(out)

    def _follow(self, event: dict[str, Any], question: Question) -> Array:
        """Trajectories of a plan, and their reductions."""
        if "law" in event:
            self.law = Start(base64.b64decode(event["law"]))
        plan = Plan(event["plan"], None, self.law if "start" in event["plan"] else None)
        reducers = [_REDUCERS[one["kind"]](self, one) for one in event["reduce"]]
        fits = any(reducer.fits for reducer in reducers)
        for begin, part, rows in self._parts(question):
            if "from" in event:
                noise = self.kept[event["of"]][event["from"]][begin : begin + len(rows)].to(self.denoiser.device)
            else:
                noise = self._from_wire(latents(part.seed, self.folded))
            memo = self._remembered(part, (event.get("of"), event.get("from"))) if fits else None
            loop = plan.stages(noise, labels=rows if plan.labels else None)
            for number, _ in enumerate(loop):
                x = loop.x
                guidance = loop.guidance
                asked = x.cpu(), loop.sigma.cpu(), torch.tensor(guidance)
                if memo is not None and number < len(memo) and all(map(torch.equal, memo[number], asked)):
                    denoised = memo[number][-1].to(x)
                else:
                    denoised = self._evaluate(x, loop.sigma, rows, guidance)
                    if memo is not None:
                        memo[number:] = [(*asked, denoised.cpu())]
                for reducer in reducers:
                    reducer.evaluated(number, x, denoised)
                loop.step(denoised)
                for reducer in reducers:
                    reducer.stepped(number, loop.x)
            for reducer in reducers:
                reducer.sampled(begin, loop.x)
        return np.concatenate([np.asarray(reducer.answer(), np.float64).ravel() for reducer in reducers])

    def _remembered(self, part: Question, begin: tuple[int | None, ...]) -> list[tuple[Tensor, ...]]:
        """The evaluations of the last plan from these latents, which a fit shares in its first stages."""
        key = int(part.seed[0]), begin
        if key not in self.memo:
            self.memo = {other: kept for other, kept in self.memo.items() if other[1] == begin}
            self.memo[key] = []
        return self.memo[key]


class _Samples:
    """The samples."""

    fits = False  # plans follow each other that share their first evaluations

    def __init__(self, follower: _Follower, asked: Mapping[str, Any]) -> None:
        self._follower, self._asked = follower, asked
        self._states = follower.kept.get(asked.get("of", 0), [])
        self._found: list[Array] = []

    def evaluated(self, number: int, x: Tensor, denoised: Tensor) -> None:
        pass

    def stepped(self, number: int, x: Tensor) -> None:
        pass

    def sampled(self, begin: int, x: Tensor) -> None:
        self._found.append(self._follower._to_wire(x))

    def answer(self) -> Array:
        return np.concatenate(self._found)


class _Features(_Samples):
    """Features of the samples."""

    def sampled(self, begin: int, x: Tensor) -> None:
        self._found.append(self._follower._features(x))


class _Errors(_Samples):
    """Squared errors of samples to kept states."""

    def sampled(self, begin: int, x: Tensor) -> None:
        follower = self._follower
        off = follower._features(x)
        if (at := self._asked.get("at", 0)) >= 0:
            first = self._asked.get("first", 0) + begin
            off = off - follower._features(self._states[at][first : first + len(x)].to(x))
        self._found.append((off**2).sum(1))


class _Column(_Samples):
    """Products of samples with those of other plans, which are kept here."""

    fits = True

    def sampled(self, begin: int, x: Tensor) -> None:
        follower = self._follower
        first = self._asked.get("first", 0) + begin
        target = self._states[self._asked.get("at", 0)][first : first + len(x)].to(x)
        self._found.append(np.stack([follower._features(target), follower._features(x)]))

    def answer(self) -> Array:
        target, own = torch.from_numpy(np.concatenate(self._found, 1).reshape(2, -1))
        columns, number = self._follower.columns, self._asked.get("column", 0)
        columns[number:] = [own.float()]
        products = [float(target @ target), *(float(own @ other.double()) for other in (target, *columns))]
        return np.array(products)


class _States(_Samples):
    """States, which are kept here in place of those of the same number."""

    def __init__(self, follower: _Follower, asked: Mapping[str, Any]) -> None:
        follower.kept[asked.get("of", 0)] = []
        super().__init__(follower, asked)

    def stepped(self, number: int, x: Tensor) -> None:
        place, rest = divmod(number + 1, self._asked["every"])
        if rest:
            return
        kept = self._states
        if len(kept) < place:
            kept.append(x.cpu())
        else:
            kept[place - 1] = torch.cat([kept[place - 1], x.cpu()])

    def sampled(self, begin: int, x: Tensor) -> None:
        pass

    def answer(self) -> Array:
        return np.zeros(1)


class _Gram(_Samples):
    """Sums of products of the columns of a fit, by half and coordinate group."""

    fits = True

    def __init__(self, follower: _Follower, asked: Mapping[str, Any]) -> None:
        super().__init__(follower, asked)
        where = asked.get("coordinates")
        self._coordinates, self._parts = None, None
        if where is not None:
            size = where["height"], where["width"], where["channels"]
            self._coordinates = Coordinates(*size, axes=where.get("axes"), bands=where.get("bands", 0))
            self._parts = torch.from_numpy(self._coordinates.parts.ravel())
        parts = 1 if self._coordinates is None else self._coordinates.size
        self._sums = np.zeros((2, parts, asked["terms"] + 1, asked["terms"] + 1))
        self._made: list[tuple[Tensor, Tensor]] = []  # evaluations with their states, the newest first

    def evaluated(self, number: int, x: Tensor, denoised: Tensor) -> None:
        self._made = [(denoised, x), *(self._made if number else [])][: self._asked["terms"] // 2]

    def sampled(self, begin: int, x: Tensor) -> None:
        (newest, state), *earlier = self._made
        columns, last = [state, newest - state], newest
        for denoised, at in earlier:
            columns += [denoised - last, denoised - at]
            last = denoised
        kept = self._states[self._asked.get("at", 0)][begin : begin + len(x)].to(x)
        columns.append(kept - state)
        wide = [self._spread(column) for column in columns]
        split = max(0, min(len(x), self._asked["split"] - begin))
        for half, rows in enumerate((slice(None, split), slice(split, None))):
            for a, b in itertools.combinations_with_replacement(range(len(wide)), 2):
                product = (wide[a][rows] * wide[b][rows]).sum(0)
                sums = product.sum()[None] if self._parts is None else torch.zeros(
                    self._sums.shape[1], dtype=torch.float64).index_add_(0, self._parts, product)  # fmt: skip
                self._sums[half, :, a, b] += sums.numpy()
                if a != b:
                    self._sums[half, :, b, a] += sums.numpy()
        self._made = []

    def _spread(self, x: Tensor) -> Tensor:
        """Values [n, V] of images, in the coordinates of the groups, on the host."""
        x = x.double() if x.device.type == "cpu" else x.cpu().double()
        if self._coordinates is None:
            return x.flatten(1)
        return self._coordinates.split(x.reshape(len(x), *self._coordinates.shape)).flatten(1)

    def answer(self) -> Array:
        return self._sums


class _Products(_Samples):
    """Sums of products of all states and evaluations."""

    def __init__(self, follower: _Follower, asked: Mapping[str, Any]) -> None:
        super().__init__(follower, asked)
        self._columns: list[Tensor] = []
        self._sums: Any = 0.0

    def evaluated(self, number: int, x: Tensor, denoised: Tensor) -> None:
        self._columns = [*self._columns[: 2 * number], x.cpu(), denoised.cpu()]

    def sampled(self, begin: int, x: Tensor) -> None:
        columns = [*self._columns[::2], x.cpu(), *self._columns[1::2]]
        for row in range(len(x)):
            wide = torch.stack([column[row].flatten() for column in columns]).double()
            self._sums = self._sums + (wide @ wide.T).numpy()

    def answer(self) -> Array:
        return self._sums


_REDUCERS = {
    "products": _Products, "samples": _Samples, "features": _Features, "states": _States, "column": _Column,
    "error": _Errors, "gram": _Gram,
}  # fmt: skip


def _format_duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
