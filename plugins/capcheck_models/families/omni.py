"""Models that also listen: Qwen-Omni's thinkers and Phi-4-multimodal."""

from __future__ import annotations

from functools import partial

from capcheck.architecture import Audio

from .audio import phi_conformer, qwen3_audio, qwen25_audio
from .blocks import (
    norm,
    vector,
)
from .config import Config
from .decoder import Decoder
from .multimodal import text_part, with_tower
from .towers import QWEN3_OMNI, QWEN25, Qwen, qwen_vision, siglip
from .vit import fixed, projector

_MOST_AUDIO_TOKENS = 750  # half a minute


def omni(c: Config, *, kind: Qwen, text: str) -> Decoder:
    """The thinker of Qwen-Omni, which is what engines serve: text, images and sound."""
    inner = c.section_or_self("thinker_config")
    built = text_part(inner, text, ("thinker.model", "thinker.lm_head"))
    tower = qwen_vision(inner.section("vision_config"), "thinker.visual", kind, built.sizes.hidden)
    sound = qwen3_audio if kind is QWEN3_OMNI else qwen25_audio
    heard = inner.section("audio_config")
    audio = sound(heard, "thinker.audio_tower")
    facts = Audio(heard.size("d_model"), heard.size("encoder_ffn_dim"), _MOST_AUDIO_TOKENS, 2)
    tower = tower._replace(facts=tower.facts._replace(audio=facts))
    tables = tuple(rope._replace(copies=4) for rope in built.ropes)
    return with_tower(built, tower, audio)._replace(ropes=tables)


# 36 tiles of 256 tokens in one row and a small copy, with a break a line.
_PHI_MOST_TOKENS = 36 * (256 + 16) + 256 + 1 + 16


def phi4_multimodal(c: Config) -> Decoder:
    """Phi-4-multimodal: Phi-4-mini with SigLIP and a conformer. LoRA weights are not counted."""
    built = text_part(c, "phi3", None)
    root = "model.embed_tokens_extend"
    image, hidden = f"{root}.image_embed", built.sizes.hidden
    inner = c.section("vision_config")
    tower = siglip(inner, f"{image}.img_processor", image_tokens=_PHI_MOST_TOKENS)
    tower = tower._replace(facts=tower.facts._replace(merge=2))
    wide = tower.facts.hidden
    pooled = (
        *vector("vision", f"{image}.head.probe", wide),
        *fixed("vision", f"{image}.head.attention.in_proj", 3 * wide, wide, bias=True),
        *fixed("vision", f"{image}.head.attention.out_proj", wide, wide, bias=True),
        *norm(f"{image}.head.layernorm", wide, bias=True, role="vision"),
        *fixed("vision", f"{image}.head.mlp.fc1", tower.facts.intermediate, wide, bias=True),
        *fixed("vision", f"{image}.head.mlp.fc2", wide, tower.facts.intermediate, bias=True),
    )
    more = (
        *pooled,
        *vector("projector", f"{image}.global_img_feature_extensor", wide),
        *vector("projector", f"{image}.sub_img_feature_extensor", wide),
        *projector(
            wide, hidden, hidden,
            names=(f"{image}.img_projection_up", f"{image}.img_projection_down"), shard=False,
        ),
        *phi_conformer(c.section("audio_config"), f"{root}.audio_embed", hidden),
    )  # fmt: skip
    return with_tower(built, tower, more)


FAMILIES = {
    "qwen2_5_omni": partial(omni, kind=QWEN25, text="qwen2"),
    "qwen2_5_omni_thinker": partial(omni, kind=QWEN25, text="qwen2"),
    "qwen3_omni_moe": partial(omni, kind=QWEN3_OMNI, text="qwen3_moe"),
    "qwen3_omni_moe_thinker": partial(omni, kind=QWEN3_OMNI, text="qwen3_moe"),
    "phi4_multimodal": phi4_multimodal,
    "phi4mm": phi4_multimodal,
}
