"""Tables of conditions: label k is prompt k, through the server and in torch."""

from typing import Any

import numpy as np
import torch
from diffusers import FluxPipeline, UNet2DConditionModel
from network_fixtures import networks
from zoo import CONTEXT, ROWS

from anisoflight import Client
from anisoflight.plans.parametrizations import edm
from anisoflight.torch import Denoiser
from anisoflight.torch.wrapping import wrap

ASKED: dict[str, Any] = {"schedule": {"edm": {"T": 10.0**2}}, "solver": "unipc", "grid": {"sigma": [10, 3, 1, 0.3, 0]}}


@torch.no_grad()
def in_torch(
    client: Client, unet: UNet2DConditionModel, latents: Any, prompts: Any, guided: float = 1, none: Any = None
):
    """The samples of a plan with the embeddings of a prompt each."""

    def clean(embeddings: torch.Tensor, x: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
        ask = Denoiser(lambda z, time: unet(z, time, encoder_hidden_states=embeddings, return_dict=False)[0])
        return ask(x, sigma)

    def denoiser(x: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
        out = clean(torch.from_numpy(prompts), x, sigma)
        if guided != 1:
            base = clean(torch.from_numpy(none).expand(len(x), -1, -1), x, sigma)
            out = base + guided * (out - base)
        return out

    plan = client.plan(**ASKED, model="prompts")
    return plan(denoiser, torch.from_numpy(latents).permute(0, 3, 1, 2), progress=False).permute(0, 2, 3, 1).numpy()


def test_label_k_is_prompt_k(client: Client) -> None:
    module, how = networks()["unet-condition"]
    unet = module.eval()
    rng = np.random.default_rng(0)
    old, new, empty = (rng.standard_normal(shape).astype(np.float32) for shape in ((3, 4, 6), (5, 4, 6), (4, 6)))
    how = {**how, "conditions": torch.from_numpy(old)}
    made = client.put_network("prompts", unet, prediction="edm", replace=True, progress=False, **how)
    assert (made["label_dim"], made["conditions"]) == (3, {"labels": 3, "none": True, "shape": [4, 6]})

    def drawn(labels: list[int], **options: Any) -> Any:
        latents = rng.standard_normal((len(labels), 8, 8, 2)).astype(np.float32)
        images = client.sample(
            "prompts", latents=latents, labels=labels, dtype="float32", progress=False, **ASKED, **options
        ).images
        return latents, images

    latents, images = drawn([0, 1, 2])
    np.testing.assert_allclose(images, in_torch(client, unet, latents, old), rtol=0, atol=1e-3)

    how.update(conditions=torch.from_numpy(new), empty=torch.from_numpy(empty))
    changed = client.put_network("prompts", unet, prediction="edm", replace=True, progress=False, **how)
    assert (changed["label_dim"], changed["conditions"]["labels"]) == (5, 5)
    assert changed["hash"] != made["hash"]
    latents, images = drawn([4, 0, 3, 1, 2])
    np.testing.assert_allclose(images, in_torch(client, unet, latents, new[[4, 0, 3, 1, 2]]), rtol=0, atol=1e-3)
    latents, images = drawn([-1])
    np.testing.assert_allclose(images, in_torch(client, unet, latents, empty[None]), rtol=0, atol=1e-3)
    latents, images = drawn([2, 0], guidance=1.7)
    want = in_torch(client, unet, latents, new[[2, 0]], 1.7, empty[None])
    np.testing.assert_allclose(images, want, rtol=0, atol=2e-3)


def test_conditions_by_name(client: Client) -> None:
    """A condition of one row is that of all labels and of none; of the others none is zeros, or what empty says."""
    module = ROWS["context"].make().eval()
    how: dict[str, Any] = {"size": 8, "channels": 2, "prediction": "edm", "replace": True, "progress": False}
    given = {"context": CONTEXT, "dose": torch.tensor([0.5])}
    empty = torch.randn(4, 5)
    x, ask = torch.randn(4, 2, 8, 8), edm("epsilon", 0.5)
    labels = np.array([2, 0, -1, 1], np.int32)
    for named, of_none in ((None, torch.zeros(4, 5)), ({"context": empty}, empty)):
        made = client.put_network("named", module, conditions=given, empty=named, **how)
        assert (made["label_dim"], made["conditions"]) == (3, {"labels": 3, "none": True, "shape": [21]})
        got = client.denoise("named", x.permute(0, 2, 3, 1).numpy(), 0.5, labels, layout="HWC", progress=False).raw
        rows = torch.cat([CONTEXT, of_none[None]])[labels]
        with torch.no_grad():
            time = torch.full((4,), ask.time(0.5))
            want = module(x * ask.input_scale(0.5), time, context=rows, dose=torch.full((4,), 0.5))
        np.testing.assert_allclose(np.moveaxis(got, 3, 1), want.numpy(), rtol=0, atol=1e-5)
    alone = client.put_network("named", module, conditions={**given, "context": CONTEXT[:1]}, **how)
    assert alone["label_dim"] == 0


@torch.no_grad()
def test_flux_is_asked_as_its_pipeline_asks_it() -> None:
    """Tokens, places and times are those of diffusers' FluxPipeline."""
    row = ROWS["Flux"]
    module, given = row.make().eval(), row.how["conditions"]
    wrapped = wrap(module, 8, None, None, "index", given, None)
    x, times, labels = torch.randn(2, 4, 8, 8), torch.tensor([300.0, 900.0]), torch.tensor([2, 0])
    out = module(
        hidden_states=FluxPipeline._pack_latents(x, 2, 4, 8, 8),
        timestep=times / 1000,
        img_ids=FluxPipeline._prepare_latent_image_ids(2, 4, 4, "cpu", torch.float32),
        txt_ids=torch.zeros(4, 3),
        guidance=given["guidance"].expand(2),
        **{name: given[name][labels] for name in ("encoder_hidden_states", "pooled_projections")},
    ).sample
    want = FluxPipeline._unpack_latents(out, 64, 64, 8)
    torch.testing.assert_close(wrapped.call(x, times, labels), want, rtol=1e-4, atol=1e-5)
