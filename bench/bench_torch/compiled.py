"""The programs through Inductor, torch.compile's compiler."""

from __future__ import annotations

import copy
import os
import shutil
from typing import TYPE_CHECKING

import torch
from torch.func import functional_call
from torch.fx.experimental.proxy_tensor import make_fx

from .programs import Inputs, Network, Outputs, Programs

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    Named = dict[str, Tensor]


def check_compiler(device: str) -> None:
    """SystemExit if Inductor would find no C++ compiler, which it needs for processors."""
    named = os.environ.get("CXX")
    if device != "cpu" or any(shutil.which(name) for name in ([named] if named else ["g++", "clang++"])):
        return
    found = f"CXX names {named}, which is not there" if named else "neither g++ nor clang++ is there"
    raise SystemExit(
        f"torch.compile needs a C++ compiler, and {found}: install g++, name one in CXX, or leave Inductor out "
        "by --no-inductor"
    )


class Compiled(Programs):
    """The programs with torch.compile of the network.

    torch.compile refuses to differentiate a module twice. A program that needs it is recorded operation by operation,
    both reverse passes included, and compiled as one graph.
    """

    def __init__(self, net: Network, inputs: Inputs, mode: str | None = None) -> None:
        super().__init__(net, inputs, torch.compile(net, mode=mode))
        self._mode = mode
        self._graphs: dict[tuple[str, bool], tuple[Callable[..., list[Tensor]], list[str]]] = {}

    def double(self) -> Outputs:
        return self._whole("double", lambda eager, _: eager.double(), {}, [])

    def estimate(
        self, mode: str, eps: Tensor, probe: Tensor, parameters: list[Tensor]
    ) -> tuple[Outputs, tuple[Tensor, ...]]:
        if mode != "full":
            return super().estimate(mode, eps, probe, parameters)

        def work(eager: Programs, given: Named) -> Outputs:
            terms, grads = eager.estimate(mode, given["eps"], given["probe"], list(eager.parameters.values()))
            return {**terms, **{f"grad{n}": grad for n, grad in enumerate(grads)}}

        out = self._whole("full", work, {"eps": eps, "probe": probe}, parameters)
        grads = tuple(out.pop(f"grad{n}") for n in range(len(parameters)))
        return out, grads

    def _whole(
        self, what: str, work: Callable[[Programs, Named], Outputs], given: Named, trained: list[Tensor]
    ) -> Outputs:
        """The outputs of work on eager programs, compiled as one function of every tensor that they use."""
        inputs = {name: value for name, value in vars(self.inputs).items() if isinstance(value, torch.Tensor)}
        state = {**dict(self.net.named_parameters()), **dict(self.net.named_buffers())}
        tensors = [t.detach() for t in (*state.values(), *inputs.values(), *given.values())]
        key = what, bool(trained)
        if key not in self._graphs:
            names: list[str] = []

            def function(*values: Tensor) -> list[Tensor]:
                left = iter(values)
                net = _Called(self.net, {name: next(left) for name in state}, bool(trained))
                batch = copy.copy(self.inputs)
                for name in inputs:
                    setattr(batch, name, next(left))
                out = work(Programs(net, batch), {name: next(left) for name in given})
                names[:] = out
                return [value.detach() for value in out.values()]

            graph = make_fx(function, tracing_mode="fake")(*tensors)
            self._graphs[key] = torch.compile(graph, mode=self._mode), names
        graph, names = self._graphs[key]
        with torch.no_grad():
            return dict(zip(names, graph(*tensors), strict=True))


class _Called:
    """A network as a function of its values; those that are trained require gradients if training is true."""

    def __init__(self, net: Network, values: Named, training: bool) -> None:
        self._net, self._values, self.sigma_data = net, values, net.sigma_data
        self._trained: Named = {}
        if training:
            for name, of in net.trained().items():
                key = next(k for k, p in net.named_parameters() if p is of)
                self._trained[name] = values[key] = values[key].detach().requires_grad_()

    def __call__(self, x: Tensor, noise: Tensor, label: Tensor | None) -> Tensor:
        return functional_call(self._net, self._values, (x, noise, label))

    def trained(self) -> Named:
        return self._trained

    def encoded(self, labels: Tensor) -> Tensor | None:
        return self._net.encoded(labels)
