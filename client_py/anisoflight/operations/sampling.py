"""The operations that draw samples and evaluate networks."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..plans.plan import Plan
from ..wire.arrays import integers
from ..wire.calls import Connection
from ..wire.exchanges import Denoised, denoise_rows, latent_rows
from ..wire.samples import Decoder, Samples
from . import documented


class Sampling(Connection):
    """Samples of a model, and single evaluations of it."""

    @documented("Sample")
    def sample(
        self,
        model: str,
        *,
        labels: npt.ArrayLike | None = None,
        latents: npt.ArrayLike | None = None,
        # generated: fields of Sample, by go generate ./flight/api
        n: int | None = None,
        seed: int | None = None,
        steps: int | None = None,
        nfe: int | None = None,
        solver: str | None = None,
        order: int | None = None,
        variant: str | None = None,
        second_point: str | None = None,
        grid: str | Mapping[str, Any] | None = None,
        denoise_to_zero: bool | None = None,
        lower_order_final: bool | None = None,
        warmup: str | None = None,
        S_churn: float | None = None,
        S_min: float | None = None,
        S_max: float | None = None,
        S_noise: float | None = None,
        guidance: float | None = None,
        guidance_interval: Sequence[float] | None = None,
        guide: str | None = None,
        schedule: str | Mapping[str, Any] | None = None,
        start: str | None = None,
        plan: str | Plan | Mapping[str, Any] | None = None,
        other_weights: bool | None = None,
        every: int | None = None,
        dtype: str | None = None,
        layout: str | None = None,
        batch_bytes: int | None = None,
        # end generated
        decode: Decoder | None = None,
        progress: bool = True,
    ) -> Samples:
        """Draw images: solve dx = −Σ_j P_j flow(x, t) d√g_j from noise to t = 0.

        Give their number `n` (a conditional model then draws labels), `labels` (one image each, −1 = none), or your own
        unit normal `latents` [n, H, W, C] or [n, C, H, W]; and `steps`, or `nfe`, the evaluations of the network per
        image: the most steps that fit, with a warning if they need fewer. Sample i depends on the model, the request
        and seed + i alone. `layout` also names the axes of latents with as many channels as rows and columns.

        The grids "edm" and "polynomial" follow EDM's rule. "edm" has a noise level per step and ends at t = 0, which
        suits Heun's method. "polynomial" has one more level and ends at sigma_min, as the literature counts the
        evaluations of multistep solvers.

        A `plan`, such as `Client.few` makes, or its name, is the whole sampler, in place of these. One that was made
        for other weights than the model's is refused, unless `other_weights` is true.

        A schedule of kind "start" holds the normal law of a data set, and sampling starts from it; start="standard"
        starts from noise alone.

        `guidance` s mixes two denoisers, D₀ + s (D₁ − D₀): D₁ is the model's, D₀ that of the same model without a label
        or of the `guide`, at noise levels σ within `guidance_interval`. Evaluations of both are counted.

        Samples of a model of fields or latents are float32 in the data's units. `decode` converts them to pictures for
        `to_pil`, `show`, notebooks and previews: a function of values [n, H, W, C], such as
        `anisoflight.torch.Latents(vae).decode`.

        >>> client.sample("digits", labels=[3, 1, 4], steps=5, dtype="float32").images.dtype
        dtype('float32')
        >>> client.sample("digits", n=2, steps=5, grid={"edm": {"sigma_max": 20}}, second_point="endpoint").nfe.tolist()
        [9, 9]
        """
        request: dict[str, Any] = dict(locals())  # the fields of Sample; what is None is left out
        request["plan"] = plan.wire if isinstance(plan, Plan) else plan
        for name in ("self", "labels", "latents", "decode", "progress"):
            del request[name]
        if latents is not None:
            rows, _ = self.exchange("Sample", request, latent_rows(latents, labels, layout), "sample", progress)
        else:
            request["labels"] = None if labels is None else integers(labels, "labels").tolist()
            total = n if n is not None else np.size(request["labels"] or [])
            rows = self.table("Sample", request, "sample", "image", total=total, progress=progress)
        return Samples(rows, decode)

    def denoise(
        self,
        model: str,
        x: npt.ArrayLike,
        sigma: npt.ArrayLike | None = None,
        labels: npt.ArrayLike | None = None,
        *,
        g: npt.ArrayLike | None = None,
        basis: str | None = None,
        k: int | None = None,
        cuts: Sequence[int] | None = None,
        layout: str | None = None,
        progress: bool = True,
    ) -> Denoised:
        """Evaluate a model at noisy images x [n, H, W, C] or [n, C, H, W]: the denoised image, the flow and the raw
        output.

            flow = M^{-1/2}(D(x) − x),    M = Σ_j g_j P_j

        sigma [n], or one number, is isotropic noise, g_j = σ²; g [n, J] gives each subspace of `basis` a variance. The
        model's size gives the order of the axes; images with as many channels as rows and columns need `layout`, HWC or
        CHW.

        >>> x = np.zeros((2, 8, 8, 1), np.float32)
        >>> client.denoise("digits", x, sigma=0.5).flow.shape
        (2, 8, 8, 1)
        """
        request = {"model": model, "basis": basis, "k": k, "cuts": cuts}
        rows = denoise_rows(x, sigma, g, labels, layout)
        return Denoised(self.exchange("Denoise", request, rows, "denoise", progress)[0])
