"""What is measured of a network in PyTorch, program by program as in bench of the Go code."""

from __future__ import annotations

import contextlib
import copy
import itertools
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

if TYPE_CHECKING:
    from collections.abc import Callable

Outputs = dict[str, Tensor]


class Network(Protocol):
    """A module F(x, noise, label), x [B, C, H, W] of unit variance, noise [B], label as `encoded` gives it."""

    sigma_data: float

    def __call__(self, x: Tensor, noise: Tensor, label: Tensor | None) -> Tensor: ...
    def encoded(self, labels: Tensor) -> Tensor | None:
        """The form in which it takes labels [B]."""
        ...

    def trained(self) -> dict[str, Tensor]:
        """Its parameters by the names of its model folder."""
        ...


LEARNING_RATE = 1e-6
EMA_BETA = 0.9995
_SIGMA_MIN, _SIGMA_MAX, _RHO = 0.002, 80.0, 7.0


class Inputs:
    """The batch that the other half has made, images as [B, C, H, W] in the memory format that is measured.

    With autocast the network is evaluated in bfloat16, as PyTorch's autocast has it.
    """

    def __init__(
        self,
        saved: dict[str, Tensor],
        net: Network,
        device: str,
        memory_format: torch.memory_format,
        autocast: bool = False,
    ) -> None:
        self.autocast = autocast

        def take(name: str) -> Tensor:
            return saved[f"input/{name}"].to(device, torch.float32)

        def image(name: str) -> Tensor:
            return take(name).permute(0, 3, 1, 2).contiguous(memory_format=memory_format)

        self.x, self.w, self.z, self.eps = image("x"), image("w"), image("z"), image("eps")
        self.images, self.latents, self.noise = image("images"), image("latents"), take("noise")
        self.g, self.omega, self.score = (take(name)[:, None, None, None] for name in ("g", "omega", "score"))
        self.label = net.encoded(saved["input/labels"].to(device))


def _inner(x: Tensor, y: Tensor) -> Tensor:
    return (x * y).sum()


def _dots(x: Tensor, y: Tensor) -> Tensor:
    return (x * y).sum((1, 2, 3))


class Programs:
    """The programs on one network and batch. Each call gives its outputs; a step gives none of the network's state."""

    def __init__(self, net: Network, inputs: Inputs, evaluate: Callable[..., Tensor] | None = None) -> None:
        self.net, self.inputs = net, inputs
        self._network = net if evaluate is None else evaluate  # compiled or not
        self.parameters = net.trained()
        self._trained: _Training | None = None

    def evaluate(self, x: Tensor, noise: Tensor, label: Tensor | None) -> Tensor:
        """F(x, noise, label) in float32, computed in the precision that is measured."""
        with torch.autocast(x.device.type, torch.bfloat16, self.inputs.autocast):
            return self._network(x, noise, label).float()

    def forward(self) -> Outputs:
        i = self.inputs
        with torch.no_grad():
            return {"": self.evaluate(i.x, i.noise, i.label)}

    def vjp(self) -> Outputs:
        i = self.inputs
        x = i.x.detach().requires_grad_()
        with _without_parameters(self.net):
            return {"": torch.autograd.grad(_inner(self.evaluate(x, i.noise, i.label), i.w), x)[0]}

    def parameters_gradient(self) -> Outputs:
        i = self.inputs
        f = self.evaluate(i.x, i.noise, i.label)
        grads = torch.autograd.grad(_inner(f, i.w), list(self.parameters.values()))
        return dict(zip(self.parameters, grads, strict=True))

    def double(self) -> Outputs:
        i = self.inputs
        x = i.x.detach().requires_grad_()
        with _without_parameters(self.net), _twice():
            a = torch.autograd.grad(_inner(self.evaluate(x, i.noise, i.label), i.w), x, create_graph=True)[0]
            return {"a": a.detach(), "h": torch.autograd.grad(_inner(a, i.z), x)[0]}

    def step(self, mode: str) -> Callable[[], Outputs]:
        """Training steps, each with its own noise: the gradient, Adam and the moving average of the parameters."""

        def run() -> Outputs:
            if self._trained is None:
                self._trained = _Training(list(self.parameters.values()))
            i, training = self.inputs, self._trained
            eps = torch.randn_like(i.images)
            probe = torch.randint_like(i.images, 2) * 2 - 1 if mode == "full" else eps
            self.net.train()
            terms, grads = self.estimate(mode, eps, probe, training.parameters)
            self.net.eval()
            training.update(list(torch._foreach_div(list(grads), len(i.images))))
            return terms

        return run

    def terms(self, mode: str) -> Outputs:
        """The terms of the estimator at given noise, which a step would draw."""
        return self.estimate(mode, self.inputs.eps, self.inputs.z, [])[0]

    def estimate(
        self, mode: str, eps: Tensor, probe: Tensor, parameters: list[Tensor]
    ) -> tuple[Outputs, tuple[Tensor, ...]]:
        """The loss, the terms of the schedule's gradient and the gradients by parameters: docs/method.md for J = 1."""
        with _twice() if mode == "full" else contextlib.nullcontext():
            return self._estimate(mode, eps, probe, parameters)

    def _estimate(
        self, mode: str, eps: Tensor, probe: Tensor, parameters: list[Tensor]
    ) -> tuple[Outputs, tuple[Tensor, ...]]:
        i, s = self.inputs, self.net.sigma_data**2
        root, total = i.g.sqrt(), i.g + s
        c_in, skip, keep = total.rsqrt(), -root / total, s / total
        c_out = self.net.sigma_data * c_in
        omega = i.score if mode == "score" else i.omega
        x = i.images + root * eps
        y = c_in * x
        if mode != "score":
            y.requires_grad_()
        f = self.evaluate(y, i.noise, i.label)
        fixed = f.detach()
        r = keep * eps + skip * i.images + c_out * fixed
        w = 2 * omega * r
        terms = {"residual": _dots(r, r)}
        targets = [*parameters, y] if mode != "score" else parameters
        if not targets:
            return terms, ()
        grads = torch.autograd.grad(_inner(c_out * w, f), targets, create_graph=mode == "full")
        if mode == "score":
            return terms, grads
        b, grads = grads[-1], tuple(grad.detach() for grad in grads[:-1])
        a, v = c_in * b.detach() + skip * w, skip * x + c_out * fixed
        scale = root.flatten()
        terms["explicit_x"] = 0.5 * _dots(a, eps) / scale
        if mode == "full":
            h = torch.autograd.grad(_inner(b, c_in * probe), y)[0]
            terms["implicit1"] = 0.5 * c_in.flatten() * _dots(h, probe)
            terms["implicit2"] = _dots(a, v) / scale
            terms["implicit3"] = 0.5 * _dots(w, v) / i.g.flatten()
        return terms, grads

    def sample(self, steps: int) -> Callable[[], Outputs]:
        """EDM's deterministic sampler (algorithm 1 of arXiv 2206.00364): 2·steps − 1 evaluations."""

        def run() -> Outputs:
            i, s = self.inputs, self.net.sigma_data**2
            edge = torch.linspace(_SIGMA_MAX ** (1 / _RHO), _SIGMA_MIN ** (1 / _RHO), steps, dtype=torch.float64)
            sigmas = [*(edge**_RHO).tolist(), 0.0]

            def slope(x: Tensor, sigma: float) -> Tensor:
                noise = torch.full((len(x),), sigma, device=x.device).log() / 4
                total = sigma**2 + s
                f = self.evaluate(x / total**0.5, noise, i.label)
                denoised = s / total * x + sigma * self.net.sigma_data / total**0.5 * f
                return (x - denoised) / sigma

            with torch.no_grad():
                x = i.latents * sigmas[0]
                for here, there in itertools.pairwise(sigmas):
                    d = slope(x, here)
                    end = x + (there - here) * d
                    x = x + (there - here) * (d + slope(end, there)) / 2 if there > 0 else end
            return {"": x}

        return run

    def named(self, name: str) -> Callable[[], Outputs]:
        """The program of that name."""
        return {
            "forward": self.forward,
            "vjp": self.vjp,
            "parameters": self.parameters_gradient,
            "double": self.double,
            "step-score": self.step("score"),
            "step-explicit": self.step("explicit"),
            "step-full": self.step("full"),
            "sample": self.sample(5),
            "sample-35": self.sample(18),
        }[name]

    def outputs(self, name: str) -> Outputs:
        """What the program computes, to be compared; of a step the terms at given noise."""
        if name.startswith("step-"):
            return self.terms(name.removeprefix("step-"))
        return self.named(name)()


class _Training:
    """EDM's training state of a network: Adam, and the moving average, by PyTorch's fastest operations."""

    def __init__(self, parameters: list[Tensor]) -> None:
        self.parameters = parameters
        self._average = copy.deepcopy([p.detach() for p in parameters])
        self._adam = torch.optim.Adam(parameters, lr=LEARNING_RATE, betas=(0.9, 0.999), eps=1e-8, fused=True)

    def update(self, grads: list[Tensor]) -> None:
        for p, grad in zip(self.parameters, grads, strict=True):
            p.grad = grad
        self._adam.step()
        torch._foreach_lerp_(self._average, [p.detach() for p in self.parameters], 1 - EMA_BETA)


def _twice() -> contextlib.AbstractContextManager[None]:
    """Attention by the one formula that PyTorch differentiates twice."""
    return sdpa_kernel(SDPBackend.MATH)


class _without_parameters:  # noqa: N801
    """No gradient of the parameters is recorded inside, as none is asked for."""

    def __init__(self, net: Network) -> None:
        self._parameters = list(net.trained().values())

    def __enter__(self) -> None:
        for p in self._parameters:
            p.requires_grad_(False)

    def __exit__(self, *_: object) -> None:
        for p in self._parameters:
            p.requires_grad_(True)
