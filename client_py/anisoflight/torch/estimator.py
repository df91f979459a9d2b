"""Learned and measured schedules for denoisers of this process, with the terms of the loss and its gradient by
autograd.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]

from ..errors import BadRequestError, bad_tensor
from ..offering import Question, offer, subspaces_of, terms_of
from ..schedule import Schedule
from ..subspaces import FORMULAS, Subspaces
from ..wire.progress import Bar
from .denoiser import Denoiser

Tensor = torch.Tensor
Array = np.ndarray[Any, Any]


def schedule(
    denoise: Callable[..., Tensor],
    client: Any,
    name: str,
    images: Any,
    labels: Any = None,
    *,
    kind: str = "learned",
    microbatch: int | None = None,
    probes: int = 1,
    device: Any = None,
    dtype: torch.dtype = torch.float32,
    progress: bool = True,
    **options: Any,
) -> Schedule:
    """Learn, or with kind="geodesic" measure, a schedule for a denoiser that the server does not have.

    `denoise(x, sigma)` returns x_0 of noisy images x [B, C, H, W]; with labels it is called as denoise(x, sigma,
    labels). sigma is [B], or with a basis [B, J], the noise level of each subspace. It must be differentiable, twice
    for the estimator full, and independent between images. `Denoiser` makes one from a network.

    `images` is [N, C, H, W] in the denoiser's units, with `labels` [N] if it has classes: a tensor, an array, or
    anything that has a shape and returns images for an array of indices. A batch is computed `microbatch` images at a
    time.

    Kind "learned" takes a run's settings of the schedule (batch, kimg, seed, family, estimator, init, schedule, T,
    knots, c, order, schedule_lr, …), kind "geodesic" T, g0, knots, c, order, points, samples, batch, seed, basis, k or
    cuts, per_class. `sigma_min` and `sigma_max` are the network's. c is by default the variance of 1024 of the images.
    The denoiser is not trained.

    The schedule is stored under the name at the end, and every few seconds before: after an error or Ctrl-C the steps
    taken remain. `info` has the server's description, `info["rows"]` the row of each step.
    """
    if len(images.shape) != 4:
        raise bad_tensor(f"images must have the shape [N, C, H, W], got {tuple(images.shape)}")
    count, *shape = (int(n) for n in images.shape)
    order = np.arange(count)
    if labels is None:
        options["images"] = count
    else:
        classes = np.asarray(labels)
        if classes.shape != order.shape or (classes.size and classes.min() < 0):
            raise bad_tensor("labels must be one class for each image, from 0 on")
        order = np.argsort(classes, kind="stable")
        options["counts"] = np.bincount(classes.astype(np.int64)).tolist()
    if count and "c" not in options:
        sample = torch.as_tensor(images[np.linspace(0, count - 1, min(count, 1024)).astype(int)]).double()
        options["c"] = float(sample.var(0, correction=0).sum()) or 1.0
    subspaces = _subspaces(client, options)
    if isinstance(denoise, Denoiser):
        denoise = denoise.in_subspaces(subspaces)
    device = device if device is not None else getattr(denoise, "device", "cpu")
    answer = _Answers(
        denoise, images, order, shape, labels is not None, subspaces, subspaces_of(options), probes, microbatch, device,
        dtype,
    )  # fmt: skip
    channels, height, width = shape
    request = {"name": name, "kind": kind, "shape": [height, width, channels], **options}
    end = offer(client, request, answer, Bar(name, "sample", show=progress))
    info = {**end.get("schedule", {}), "rows": end["rows"]}
    return Schedule(client, name, info | {key: end[key] for key in ("steps", "stopped") if key in end})


def _subspaces(client: Any, options: Mapping[str, Any]) -> Subspaces:
    family = options.get("family") or {key: options[key] for key in ("basis", "k", "cuts") if key in options}
    basis = family.get("basis") or "none"
    if basis in FORMULAS:
        return Subspaces(family)
    vectors = client.basis(basis)
    if -1 not in vectors:
        message = f"family must have a basis that all classes share, got {basis!r}"
        raise BadRequestError(f"{message}; Client.create_run learns one per class")
    return Subspaces(family, vectors[-1])


@dataclass(frozen=True)
class _Answers:
    """The terms of a question's samples; see docs/method.md, the schedule's gradient."""

    denoise: Callable[..., Tensor]
    images: Any
    order: Array
    """The indices of the images, ordered by class."""
    shape: Sequence[int]
    labelled: bool
    subspaces: Subspaces
    count: int
    probes: int
    microbatch: int | None
    device: Any
    dtype: torch.dtype

    def __call__(self, event: Mapping[str, Any], question: Question) -> Array:
        terms, rows = event["terms"], len(question.image)
        size = self.microbatch or rows
        parts = [self._part(question.part(slice(begin, begin + size)), terms) for begin in range(0, rows, size)]
        whole = {term: np.concatenate([part[term] for part in parts]) for term in terms}
        return terms_of(whole, terms, question.g.shape)

    def _part(self, question: Question, terms: Sequence[str]) -> dict[str, Array]:
        through_x, through_g = "explicit" in terms, "backprop" in terms
        eps, g, omega = self._planes(question.noise), self._tensor(question.g), self._tensor(question.omega)
        x0 = torch.as_tensor(self.images[self.order[question.image]]).detach().to(self.device, self.dtype)
        with torch.set_grad_enabled(through_x or through_g):
            root = g.requires_grad_(through_g).sqrt()
            x = x0 + _mixed(root, self._split(eps))
            if through_x:
                x.requires_grad_()
            labels = (torch.as_tensor(question.label.astype(np.int64)).to(self.device),) if self.labelled else ()
            clean = self.denoise(x, root if self.count > 1 else root[:, 0], *labels)
            residual = self._split(clean - x0) / _wide(root)  # P_j (flow + ε) = P_j (D − x_0)/√g_j
            out = {"residual": _dots(residual, residual)}
            if through_g:  # through x_t and through the denoiser
                (out["backprop"],) = torch.autograd.grad((omega * out["residual"]).sum(), g)
            if through_x:
                w = _mixed(2 * omega, residual).detach()
                out |= self._transported(question, terms, w, x, clean, root, eps)
        return {term: value.detach().cpu().double().numpy() for term, value in out.items()}

    def _transported(
        self, question: Question, terms: Sequence[str], w: Tensor, x: Tensor, clean: Tensor, root: Tensor, eps: Tensor
    ) -> dict[str, Tensor]:
        """The derivatives at fixed g: a = (∂flow/∂x)ᵀ w, and of the implicit terms h = ∇_x⟨a, z⟩."""
        full = "implicit1" in terms
        flow = _mixed(1 / root, self._split(clean - x))
        (a,) = torch.autograd.grad((w * flow).sum(), x, create_graph=full)
        parts, flow = self._split(a), flow.detach()
        out = {"explicit": _dots(parts, eps[:, None]) / (2 * root)}
        if full:
            out["implicit1"] = torch.zeros_like(root)
            for number in range(self.probes):
                z = self._planes(question.probe, number)
                (h,) = torch.autograd.grad((a * z).sum(), x, retain_graph=number + 1 < self.probes)
                out["implicit1"] += _dots(self._split(h), z[:, None]) / (2 * self.probes)
            out["implicit2"] = _dots(parts, flow[:, None]) / root
            out["implicit3"] = _dots(self._split(w), flow[:, None]) / (2 * root**2)
        return out

    def _planes(self, draw: Callable[..., Array], *number: int) -> Tensor:
        """Noise or probes, drawn by the question with the channels last."""
        channels, height, width = self.shape
        return self._tensor(np.moveaxis(draw((height, width, channels), *number), -1, 1))

    def _tensor(self, values: Array) -> Tensor:
        return torch.tensor(np.ascontiguousarray(values)).to(self.device, self.dtype)  # a copy: columns are read-only

    def _split(self, x: Tensor) -> Tensor:
        """P_j x [B, J, C, H, W]."""
        return torch.stack(self.subspaces.split(x), 1)


def _wide(numbers: Tensor) -> Tensor:
    """Numbers [B, J] with axes that broadcast with images of each subspace."""
    return numbers[..., None, None, None]


def _mixed(numbers: Tensor, parts: Tensor) -> Tensor:
    """Σ_j c_j y_j."""
    return (_wide(numbers) * parts).sum(1)


def _dots(parts: Tensor, others: Tensor) -> Tensor:
    """⟨P_j a, b⟩ [B, J]."""
    return (parts * others).flatten(2).sum(2)
