"""Networks of PyTorch: `pip install anisoflight[torch]`.

    from anisoflight.torch import Denoiser, few

    D = Denoiser(unet, scheduler)                         # any network of this process
    plan = few(D, nfe=3)                                  # a sampler for it
    samples = plan(D, noise)

    from anisoflight.torch import export

    client.put_network("ddpm", unet, scheduler=scheduler)     # exported, sent, compared with torch
    client.get_network("tuned", unet)                         # weights trained by the server, back in the module

`Latents` converts images to the latents of an autoencoder and back. docs/networks.md describes the accepted networks.
"""

try:
    import torch as _torch  # pyright: ignore[reportMissingImports]
except ImportError as error:
    raise ImportError(f"anisoflight.torch needs the package torch ({error}): pip install anisoflight[torch]") from error

from ..errors import gone
from .autoencoder import Latents
from .denoiser import Denoiser
from .exporting import Exported, export
from .meaning import parametrization
from .searching import few

_GONE = {
    "schedule": "few(denoiser, nfe=…) finds a plan for a network that stays in torch; for schedules client.put_network "
    "sends it to the server, where client.create_run and client.make_schedule make them"
}
__getattr__ = gone("anisoflight.torch", _GONE)

del _torch, gone
__all__ = ["Denoiser", "Exported", "Latents", "export", "few", "parametrization"]
