"""Small pipelines of diffusers with random weights and tokenizers of a few words, in the layout of the hub."""

import json
from pathlib import Path
from typing import Any

import torch
from diffusers import (
    AuraFlowPipeline,
    AuraFlowTransformer2DModel,
    AutoencoderKL,
    CogView4Pipeline,
    CogView4Transformer2DModel,
    DDPMScheduler,
    FlowMatchEulerDiscreteScheduler,
    FluxPipeline,
    FluxTransformer2DModel,
    Lumina2Pipeline,
    Lumina2Transformer2DModel,
    SD3Transformer2DModel,
    StableDiffusion3Pipeline,
    StableDiffusionXLPipeline,
    UNet2DConditionModel,
    ZImagePipeline,
    ZImageTransformer2DModel,
)
from transformers import (
    CLIPTextConfig,
    CLIPTextModel,
    CLIPTextModelWithProjection,
    CLIPTokenizer,
    T5Config,
    T5EncoderModel,
)

LENGTH = 8  # tokens of a prompt


def tokenizer(folder: Path) -> CLIPTokenizer:
    """Of letters, as CLIP's."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = [*letters, *(f"{letter}</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    folder.mkdir(exist_ok=True)
    (folder / "vocab.json").write_text(json.dumps({word: number for number, word in enumerate(words)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    return CLIPTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"), model_max_length=LENGTH)


def text_config(words: int) -> CLIPTextConfig:
    sizes: dict[str, Any] = {"hidden_size": 8, "intermediate_size": 8, "num_attention_heads": 2, "num_hidden_layers": 2}
    ends = {"bos_token_id": words - 2, "eos_token_id": words - 1, "pad_token_id": words - 1}
    return CLIPTextConfig(vocab_size=words, max_position_embeddings=LENGTH, projection_dim=8, **sizes, **ends)


def autoencoder(channels: int = 4) -> AutoencoderKL:
    blocks: Any = {"down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2}
    return AutoencoderKL(
        latent_channels=channels, block_out_channels=(4, 8), norm_num_groups=4, shift_factor=0.0, **blocks
    )


def sdxl(folder: Path) -> StableDiffusionXLPipeline:
    torch.manual_seed(0)
    words = tokenizer(folder)
    config = text_config(len(words))
    unet = UNet2DConditionModel(
        sample_size=8,
        cross_attention_dim=16,
        attention_head_dim=4,
        layers_per_block=1,
        block_out_channels=(8, 16),
        norm_num_groups=4,
        addition_embed_type="text_time",
        addition_time_embed_dim=4,
        projection_class_embeddings_input_dim=6 * 4 + 8,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
    )
    betas = DDPMScheduler(beta_schedule="scaled_linear", beta_start=0.00085, beta_end=0.012)
    encoders = CLIPTextModel(config), CLIPTextModelWithProjection(config)
    return StableDiffusionXLPipeline(
        autoencoder(), encoders[0], encoders[1], words, words, unet, betas, add_watermarker=False
    )


def flux(folder: Path) -> FluxPipeline:
    torch.manual_seed(0)
    words = tokenizer(folder)
    sizes: dict[str, Any] = {"attention_head_dim": 16, "num_attention_heads": 2, "axes_dims_rope": [4, 4, 8]}
    text = {"joint_attention_dim": 8, "pooled_projection_dim": 8}
    transformer = FluxTransformer2DModel(
        1, in_channels=16, num_layers=1, num_single_layers=1, guidance_embeds=True, **sizes, **text
    )
    t5 = T5EncoderModel(T5Config(vocab_size=len(words), d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2))
    clip = CLIPTextModel(text_config(len(words)))
    scheduler = FlowMatchEulerDiscreteScheduler(shift=3.0)
    return FluxPipeline(scheduler, autoencoder(), clip, words, t5, words, transformer)


def embedded(width: int, tokens: int = 5) -> torch.Tensor:
    return torch.randn(1, tokens, width)


def aura_flow() -> tuple[AuraFlowPipeline, dict[str, Any]]:
    heads = {"attention_head_dim": 8, "num_attention_heads": 4, "caption_projection_dim": 32, "joint_attention_dim": 32}
    sizes: dict[str, Any] = {"sample_size": 8, "patch_size": 2, "in_channels": 4, "out_channels": 4, **heads}
    network = AuraFlowTransformer2DModel(num_mmdit_layers=1, num_single_dit_layers=1, pos_embed_max_size=64, **sizes)
    masks = {name: torch.ones(1, 5) for name in ("prompt_attention_mask", "negative_prompt_attention_mask")}
    pipe = AuraFlowPipeline(None, None, autoencoder(), network, FlowMatchEulerDiscreteScheduler(shift=1.73))
    return pipe, {"prompt_embeds": embedded(32), "negative_prompt_embeds": embedded(32), **masks}


def cogview4() -> tuple[CogView4Pipeline, dict[str, Any]]:
    sizes = {"attention_head_dim": 4, "num_attention_heads": 4, "time_embed_dim": 8, "condition_dim": 4}
    network = CogView4Transformer2DModel(in_channels=4, out_channels=4, num_layers=1, text_embed_dim=32, **sizes)
    scheduler = FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True, time_shift_type="linear")
    pipe = CogView4Pipeline(None, None, autoencoder(), network, scheduler)
    return pipe, {"prompt_embeds": embedded(32, 16), "negative_prompt_embeds": embedded(32, 16)}


def lumina2() -> tuple[Lumina2Pipeline, dict[str, Any]]:
    axes: Any = {"axes_dim_rope": (4, 2, 2), "axes_lens": (64, 64, 64), "cap_feat_dim": 8, "ffn_dim_multiplier": None}
    heads = {"num_layers": 1, "num_refiner_layers": 1, "num_attention_heads": 1, "num_kv_heads": 1}
    network = Lumina2Transformer2DModel(sample_size=4, in_channels=4, hidden_size=8, multiple_of=16, **axes, **heads)
    masks = {
        name: torch.ones(1, 5, dtype=torch.long) for name in ("prompt_attention_mask", "negative_prompt_attention_mask")
    }
    pipe = Lumina2Pipeline(network, FlowMatchEulerDiscreteScheduler(), autoencoder(), None, None)
    return pipe, {"prompt_embeds": embedded(8), "negative_prompt_embeds": embedded(8), **masks}


def stable_diffusion_3() -> tuple[StableDiffusion3Pipeline, dict[str, Any]]:
    heads = {"attention_head_dim": 8, "num_attention_heads": 4, "caption_projection_dim": 32, "joint_attention_dim": 32}
    sizes: dict[str, Any] = {"sample_size": 8, "patch_size": 1, "num_layers": 1, "pooled_projection_dim": 64, **heads}
    network = SD3Transformer2DModel(in_channels=4, out_channels=4, **sizes)
    parts: Any = [None] * 6
    pipe = StableDiffusion3Pipeline(network, FlowMatchEulerDiscreteScheduler(shift=3.0), autoencoder(), *parts)
    pooled = {"pooled_prompt_embeds": torch.randn(1, 64), "negative_pooled_prompt_embeds": torch.randn(1, 64)}
    return pipe, {"prompt_embeds": embedded(32), "negative_prompt_embeds": embedded(32), **pooled}


def z_image() -> tuple[ZImagePipeline, dict[str, Any]]:
    axes: Any = {"axes_dims": [8, 4, 4], "axes_lens": [64, 32, 32], "cap_feat_dim": 16}
    heads = {"n_layers": 1, "n_refiner_layers": 1, "n_heads": 2, "n_kv_heads": 2, "dim": 32}
    network = ZImageTransformer2DModel(in_channels=16, **axes, **heads)
    pipe = ZImagePipeline(FlowMatchEulerDiscreteScheduler(), autoencoder(16), None, None, network)
    prompts = {"prompt_embeds": [embedded(16)[0]], "negative_prompt_embeds": [embedded(16)[0]]}
    return pipe, {**prompts, "guidance_scale": 0.0, "height": 32, "width": 32}
