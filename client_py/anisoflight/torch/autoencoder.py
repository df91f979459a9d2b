"""Latents of an autoencoder of diffusers: images to data sets of latents, and samples to images."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch  # pyright: ignore[reportMissingImports]

from ..errors import bad_tensor
from ..images import Pixels, to_float, to_uint8
from .wrapping import compute_type, evaluating, execution_device, unwrapped

Array = np.ndarray[Any, Any]


class Latents:
    """The scaled latents of latent networks of diffusers, (z − mean)/scale for an autoencoder's latents z.

    vae is an AutoencoderKL or another that encodes to a normal law of latents and decodes them. mean and scale are
    those of its config: shift_factor and 1/scaling_factor, or latents_mean and latents_std, by channel.

        latents = anisoflight.torch.Latents(vae)
        client.put_dataset("faces", latents.encode(images), mean=latents.mean, scale=latents.scale, layout="HWC")
        client.put_network("unet", unet, scheduler=scheduler, mean=latents.mean, scale=latents.scale)
        client.sample("unet", n=4, nfe=9, decode=latents.decode).to_pil()
    """

    def __init__(self, vae: Any, batch: int = 8) -> None:
        self.vae = vae = unwrapped(vae)
        self.batch = batch
        """Images that are processed at a time."""
        config = vae.config
        factor = float(config.get("scaling_factor") or 1)
        self.mean: float | list[float] = float(config.get("shift_factor") or 0)
        self.scale: float | list[float] = 1 / factor
        if config.get("latents_mean") is not None and config.get("latents_std") is not None:
            self.mean = [float(value) for value in config["latents_mean"]]
            self.scale = [float(value) / factor for value in config["latents_std"]]

    def encode(self, images: npt.ArrayLike) -> Array:
        """The mean latents [n, h, w, c] float32 of images [n, H, W, 3] or [n, 3, H, W], uint8 or floats in [−1, 1]."""
        pixels, channels = to_float(np.asarray(images)), self.vae.config.get("in_channels", 3)
        if pixels.ndim != 4 or channels not in pixels.shape[1::2]:
            message = f"images must have the shape [n, H, W, {channels}] or [n, {channels}, H, W], got {pixels.shape}"
            raise bad_tensor(message)
        if pixels.shape[3] != channels:
            pixels = np.moveaxis(pixels, 1, 3)

        def means(x: torch.Tensor) -> torch.Tensor:
            found = self.vae.encode(x)
            law = getattr(found, "latent_dist", None)
            return found.latents if law is None else law.mode()

        return self._through(means, pixels)

    def decode(self, latents: Array) -> Pixels:
        """Images [n, H, W, 3] of uint8 from latents [n, h, w, c]; for `decode` of `Client.sample`."""
        return to_uint8(self._through(lambda z: self.vae.decode(z).sample, np.asarray(latents)))

    def _through(self, work: Any, values: Array) -> Array:
        device, dtype = execution_device(self.vae), compute_type(self.vae)
        out = []
        with evaluating(self.vae), torch.no_grad():
            for start in range(0, len(values), self.batch):
                part = np.ascontiguousarray(np.moveaxis(values[start : start + self.batch], 3, 1))
                made = work(torch.from_numpy(part).to(device, dtype))
                out.append(made.float().cpu().numpy())
        return np.ascontiguousarray(np.moveaxis(np.concatenate(out), 1, 3))
