"""Whether both halves compute the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .network import parameter_name

if TYPE_CHECKING:
    from torch import Tensor

    from .programs import Programs


def difference(program: str, programs: Programs, saved: dict[str, Tensor]) -> float:
    """The greatest |torch − ours| of the program's outputs over the greatest |ours| of each."""
    worst = 0.0
    for name, got in programs.outputs(program).items():
        key = parameter_name(name) if program == "parameters" else name
        want = saved[f"output/{program}/{key}" if key else f"output/{program}"].double()
        got = got.detach().double().cpu()
        if program != "parameters" and got.dim() == 4:
            got = got.permute(0, 2, 3, 1)
        worst = max(worst, float((got - want).abs().max() / want.abs().max()))
    return worst
