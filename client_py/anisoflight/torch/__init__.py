"""Networks of PyTorch on the server: `pip install anisoflight[torch]`.

    from anisoflight.torch import export

    client.put_network("ddpm", unet, scheduler=scheduler)     # exported, sent, compared with torch
    client.get_network("tuned", unet)                         # weights that the server has trained, back in the module
    remote(Denoiser(unet, scheduler), client, "learned", images)   # a network that stays here gets a schedule

`Latents` brings images into the latents of an autoencoder and samples back to images. docs/networks.md says what is
accepted.
"""

from __future__ import annotations

try:
    import torch as _torch  # pyright: ignore[reportMissingImports]
except ImportError as error:
    raise ImportError(f"anisoflight.torch needs the package torch ({error}): pip install anisoflight[torch]") from error

from .autoencoder import Latents
from .denoiser import Denoiser
from .exporting import Exported, export
from .meaning import parametrization
from .remote import remote

del _torch
__all__ = ["Denoiser", "Exported", "Latents", "export", "parametrization", "remote"]
