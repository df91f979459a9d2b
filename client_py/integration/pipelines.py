"""Small pipelines of diffusers with random weights and tokenizers of a few words, in the layout of the hub."""

import json
from pathlib import Path
from typing import Any

import torch
from diffusers import (
    AutoencoderKL,
    DDPMScheduler,
    FlowMatchEulerDiscreteScheduler,
    FluxPipeline,
    FluxTransformer2DModel,
    StableDiffusionXLPipeline,
    UNet2DConditionModel,
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


def autoencoder() -> AutoencoderKL:
    blocks: Any = {"down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2}
    return AutoencoderKL(latent_channels=4, block_out_channels=(4, 8), norm_num_groups=4, shift_factor=0.0, **blocks)


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
