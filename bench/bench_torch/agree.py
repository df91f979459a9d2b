"""Whether both halves compute the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from .programs import Programs

_LEAST = 1e-3  # of the program's largest entry: what is zero except for rounding, as a key's bias, is no difference


def difference(program: str, programs: Programs, saved: dict[str, Tensor]) -> float:
    """The greatest |torch − ours| of the program's outputs over the greatest |ours| of each."""
    pairs = []
    for name, output in programs.outputs(program).items():
        want = saved[f"output/{program}/{name}" if name else f"output/{program}"].double()
        got = output.detach().double().cpu()
        if program != "parameters" and got.dim() == 4:
            got = got.permute(0, 2, 3, 1)
        pairs.append((got, want))
    largest = max(float(want.abs().max()) for _, want in pairs)
    return max(float((got - want).abs().max()) / max(float(want.abs().max()), _LEAST * largest) for got, want in pairs)
