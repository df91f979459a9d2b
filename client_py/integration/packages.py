"""Networks of packages for speech and robots, at a tiny size, with tasks that they learn in a minute.

Of what these packages import, the modules of `ABSENT` are replaced by empty ones: they are for recordings, videos,
motors, texts in Chinese and logs, which no network here needs.
"""

import importlib
import random
import sys
import time
from collections.abc import Callable
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import torch

Tensor = torch.Tensor

SECONDS: list[float] = []
"""Of a core, for each network that was trained here."""

ABSENT = {
    *("av", "cachebox", "deepdiff", "ema_pytorch", "gdown", "hydra", "imageio", "librosa", "lightning", "loguru"),
    *("pypinyin", "rjieba", "serial", "torchaudio", "wandb", "wget"),
}


class _Empty(MetaPathFinder, Loader):
    """Modules with anything in them."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, self, is_package=True) if fullname.partition(".")[0] in ABSENT else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        made: Any = ModuleType(spec.name)
        made.__getattr__ = lambda name: MagicMock(name=name)
        return made

    def exec_module(self, module: ModuleType) -> None:
        pass


def load(name: str) -> Any:
    """A module of one of the packages."""
    if not any(isinstance(one, _Empty) for one in sys.meta_path):
        sys.meta_path.append(_Empty())  # after all others: what is installed is used
        importlib.import_module("lerobot.utils.import_utils")._transformers_available = False  # it knows version 4
    return importlib.import_module(name)


def policy(steps: int, seed: int = 0) -> Any:
    """lerobot's diffusion policy: 16 actions in the plane from two observations of a hand and of a goal.

    The paths go to the goal in an arc to the left or to the right of it.
    """
    diffusion = load("lerobot.policies.diffusion.modeling_diffusion")
    types = load("lerobot.configs.types")

    def feature(kind: str) -> Any:
        return types.PolicyFeature(types.FeatureType[kind], (2,))

    torch.manual_seed(seed)
    config = diffusion.DiffusionConfig(
        input_features={"observation.state": feature("STATE"), "observation.environment_state": feature("ENV")},
        output_features={"action": feature("ACTION")},
        down_dims=(32, 64),
        diffusion_step_embed_dim=32,
        device="cpu",
    )
    made = diffusion.DiffusionPolicy(config)
    return _train(made, steps, lambda: made.forward(reaches(64))[0])


def reaches(count: int) -> dict[str, Tensor]:
    """A batch of the policy's: observations and actions, all in [−1, 1]."""
    hand, goal = (torch.rand(2, count, 1, 2) - 0.5).unbind()
    side = torch.where(torch.rand(count, 1, 1) < 0.5, -0.5, 0.5) * (0.8 + 0.4 * torch.rand(count, 1, 1))
    share = torch.linspace(0, 1, 16)[:, None]
    across = (goal - hand).flip(-1) * torch.tensor([-1.0, 1.0])
    actions = hand + share * (goal - hand) + side * (torch.pi * share).sin() * across
    return {
        "observation.state": hand.expand(-1, 2, -1),
        "observation.environment_state": goal.expand(-1, 2, -1),
        "action": actions,
        "action_is_pad": torch.zeros(count, 16, dtype=torch.bool),
    }


FRAMES, BANDS, TOKENS = 24, 8, 8
"""Of utterances: their length, the rows of their spectra, and what their texts consist of."""


def speech(count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Texts [n, 6], what their spectra are on average [n, FRAMES, BANDS], and spectra.

    A token is a peak at its row for four frames, sharp or broad by chance, a row higher or lower. A voice tilts all
    spectra of an utterance.
    """
    text = torch.randint(TOKENS, (count, FRAMES // 4))
    row, held = torch.arange(BANDS), text.repeat_interleave(4, 1)[..., None]
    variant = torch.randint(2, (2, count, FRAMES // 4, 1)).repeat_interleave(4, 2)
    peaks = torch.exp(-((row - held - 2 * variant[0] + 1) ** 2) / (1.0 + 2 * variant[1]))
    tilt = 0.5 * torch.randn(count, 1, 1) * torch.linspace(-1, 1, BANDS)
    mean = sum(torch.exp(-((row - held + at) ** 2) / width) for at in (-1, 1) for width in (1.0, 3.0)) / 4
    return text, 3 * mean - 1, 3 * peaks - 1 + tilt + 0.1 * torch.randn(count, FRAMES, BANDS)


def f5(steps: int, seed: int = 0) -> Any:
    """F5-TTS's network in its CFM, trained by it."""
    model = load("f5_tts.model")
    torch.manual_seed(seed)
    random.seed(seed)
    network = model.DiT(dim=64, depth=2, heads=2, dim_head=32, ff_mult=2, mel_dim=BANDS, text_num_embeds=TOKENS,
                        text_dim=32, conv_layers=1)  # fmt: skip
    spectra: Any = torch.nn.Identity()
    spectra.n_mel_channels = BANDS
    made = model.CFM(network, mel_spec_module=spectra)

    def loss() -> Tensor:
        text, _, mel = speech(48)
        return made(mel, text)[0]

    return _train(made, steps, loss)


def matcha(steps: int, seed: int = 0) -> Any:
    """Matcha-TTS's CFM with its decoder, from the mean spectra that its encoder would give."""
    flow = load("matcha.models.components.flow_matching")
    torch.manual_seed(seed)
    decoder = {"channels": (32, 32), "attention_head_dim": 16, "num_mid_blocks": 1, "num_heads": 2,
               "act_fn": "snakebeta"}  # fmt: skip
    made = flow.CFM(2 * BANDS, BANDS, SimpleNamespace(solver="euler", sigma_min=1e-4), decoder)

    def loss() -> Tensor:
        _, mean, mel = speech(48)
        return made.compute_loss(mel.mT, torch.ones(48, 1, FRAMES), mean.mT)[0]

    return _train(made, steps, loss)


def _train(network: Any, steps: int, loss: Callable[[], Tensor]) -> Any:
    """By Adam."""
    begun = time.process_time()
    optimizer = torch.optim.Adam(network.parameters(), 2e-3)
    rates = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, max(steps, 1))
    network.train()
    for _ in range(steps):
        optimizer.zero_grad()
        loss().backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        rates.step()
    SECONDS.append(round(time.process_time() - begun, 1))
    return network.eval()
