"""What a search for a denoiser in torch costs over the denoiser's own evaluations: time and memory.

    python bench_few.py                  # a table; of networks with random weights, in an environment with torch
    python bench_few.py --profile unet   # what takes the rest of the time

The time of the network is measured around its calls, in the search itself. Memory is the peak of the process in a
search, against the peak in one evaluation of as many rows as the search follows at a time, each in its own process.
"""

from __future__ import annotations

import argparse
import cProfile
import multiprocessing
import pstats
import resource
import tempfile
import time
from typing import TYPE_CHECKING, Any

import torch
from diffusers import DDPMScheduler, SD3Transformer2DModel, UNet2DModel

import anisoflight
from anisoflight.torch import Denoiser, few

if TYPE_CHECKING:
    from collections.abc import Callable

    Made = tuple[Denoiser, tuple[int, ...], "Timed"]

ROWS = 16


class Timed(torch.nn.Module):
    """A module that counts the seconds of its calls."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner, self.seconds = inner, 0.0

    def forward(self, x: Any, time_: Any, **conditions: Any) -> Any:
        begun = time.perf_counter()
        out = self.inner(x, time_, **conditions)
        self.seconds += time.perf_counter() - begun
        return out


def unet(prediction: str, dtype: torch.dtype = torch.float32) -> Made:
    sizes = {"block_out_channels": (32, 64), "down_block_types": ("DownBlock2D",) * 2}
    network = UNet2DModel(sample_size=16, up_block_types=("UpBlock2D",) * 2, norm_num_groups=8, **sizes).eval()
    timed = Timed(network.to(dtype))
    return Denoiser(timed, DDPMScheduler(prediction_type=prediction), dtype=dtype, batch=ROWS), (3, 16, 16), timed


def transformer() -> Made:
    network = SD3Transformer2DModel(
        sample_size=16, patch_size=2, in_channels=4, num_layers=4, attention_head_dim=16, num_attention_heads=8,
        joint_attention_dim=32, caption_projection_dim=128, pooled_projection_dim=32, out_channels=4,
    ).eval()  # fmt: skip

    def ask(x: Any, t: Any, encoder_hidden_states: Any, pooled_projections: Any) -> Any:
        named = {"encoder_hidden_states": encoder_hidden_states, "pooled_projections": pooled_projections}
        return network(hidden_states=x, timestep=t, return_dict=False, **named)[0]

    cond = {"encoder_hidden_states": torch.randn(4, 8, 32), "pooled_projections": torch.randn(4, 32)}
    none = {"encoder_hidden_states": torch.zeros(1, 8, 32), "pooled_projections": torch.zeros(1, 32)}
    timed, kind = Timed(ask), {"kind": "flow", "steps": 1000}
    return Denoiser(timed, kind, cond=cond, empty=none, guidance=3.0, batch=ROWS), (4, 16, 16), timed


def sleeps() -> Made:
    def ask(x: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
        time.sleep(0.005 * len(x))
        return x / (1 + sigma.reshape(-1, 1, 1, 1) ** 2)

    timed = Timed(ask)
    return Denoiser(timed, "denoiser", batch=ROWS), (3, 16, 16), timed


CASES: dict[str, Callable[[], Made]] = {
    "unet": lambda: unet("epsilon"),
    "unet-v": lambda: unet("v_prediction"),
    "unet-bfloat16": lambda: unet("epsilon", torch.bfloat16),
    "transformer": transformer,
    "sleeps": sleeps,
}


def peak() -> float:
    """MiB that the process has held at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run(name: str, search: bool, profile: bool, out: Any) -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    denoiser, shape, timed = CASES[name]()
    rows = {"rows": torch.zeros(ROWS, dtype=torch.int64)} if denoiser.rows else {}
    with torch.no_grad():
        denoiser(torch.randn(ROWS, *shape), 1.0, **rows)
    alone = peak()
    if not search:
        out.put((alone, 0.0, 0.0, 0))
        return
    with tempfile.TemporaryDirectory() as folder, anisoflight.serve(data=folder) as client:
        before, begun = timed.seconds, time.perf_counter()
        profiler = cProfile.Profile()
        if profile:
            profiler.enable()
        plan = few(denoiser, 5, shape, client=client, progress=False)
        if profile:
            profiler.disable()
            pstats.Stats(profiler).sort_stats("tottime").print_stats(12)
        elapsed = time.perf_counter() - begun
    out.put((peak(), elapsed, timed.seconds - before, plan.info["evaluations"]))


def measured(name: str, search: bool, profile: bool = False) -> tuple[float, float, float, int]:
    context = multiprocessing.get_context("spawn")
    out = context.Queue()
    process = context.Process(target=run, args=(name, search, profile, out))
    process.start()
    found = out.get()
    process.join()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help="of " + ", ".join(CASES) + "; default all")
    parser.add_argument("--profile", action="store_true", help="print where the time goes")
    args = parser.parse_args()
    print("| network | evaluations | s | of them the network's | over it | memory over one evaluation's |")
    print("|---|---:|---:|---:|---:|---:|")
    for name in args.cases or CASES:
        alone, *_ = measured(name, search=False)
        most, elapsed, own, count = measured(name, True, args.profile)
        print(f"| {name} | {count} | {elapsed:.1f} | {own:.1f} | {elapsed / own - 1:.1%} | {most / alone:.2f} |")


if __name__ == "__main__":
    main()
