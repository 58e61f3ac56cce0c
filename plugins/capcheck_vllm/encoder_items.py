"""Images, videos and sound as vLLM profiles them: how many tokens one item becomes, by release.

Each model class of the engine tells the most tokens of an item and draws a dummy item; the two are
not always the same. Sizes that the checkpoint's processor limits are facts of the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any, NamedTuple

from capcheck import Architecture, Case
from capcheck.architecture import Vision
from capcheck.physics.encoders import steps_within
from capcheck_vllm.mm_options import V0_MOST, V1_MOST, Limit, limit_of, options_of, whole

QWEN2 = frozenset(
    [
        "qwen2_vl",
        "qwen2_5_vl",
        "qwen2_5_omni",
        "qwen2_5_omni_thinker",
        "qwen3_omni_moe",
        "qwen3_omni_moe_thinker",
    ]
)
QWEN3 = frozenset(["qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe"])
GLM = frozenset(["glm4v", "glm4v_moe"])
KIMI = frozenset(["kimi_vl", "kimi_k25"])
PIXTRAL = frozenset(["mistral3"])
ANY_SIZE = QWEN2 | QWEN3 | GLM | KIMI | PIXTRAL  # the size of the image decides its tokens
GEMMA4 = frozenset(["gemma4", "gemma4_unified"])
INTERN = frozenset(["internvl", "internvl_chat"])
INTERN_VIDEO_TEXTS = frozenset(["qwen2", "qwen3", "qwen3_moe", "gpt_oss"])

TIMESTAMPED = 12.5  # 0.11 to 0.13: Qwen3-VL's videos count as if each token had a time beside it
GLM_IMAGE_AS_FRAME = 61 * 61  # before 0.17: the largest frame of sixteen, not the largest image
GEMMA3_AROUND = 4  # tokens around an image, which counted from 0.10.2 to 0.13
FRAME_AROUND = 8  # Gemma 4: a time and two marks at each frame
INTERN_TILE = 256
LLAMA4_TILE = 144
PHI_TILE, PHI_BESIDE = 16 * 17, 16 * 17 + 1


class Item(NamedTuple):
    """One item of a modality."""

    modality: str
    tokens: int  # most that the engine counts with: they decide what is profiled, and how often
    encoded: int  # that the dummy item becomes
    patches: int  # that the encoder sees of the dummy item
    limit: int  # items that one prompt may have


class Ask(NamedTuple):
    """What the rules of one model class look at."""

    model: Architecture
    vision: Vision
    release: tuple[int, ...]
    v1: bool
    length: int  # tokens of one request at most
    step: int  # tokens of one step
    images: bool  # whether images are allowed
    processor: Mapping[str, Any]
    image: Limit
    video: Limit


def _processor(case: Case) -> Mapping[str, Any]:
    """mm_processor_kwargs, with those for images on the same level."""
    told = dict(options_of(case, "mm_processor_kwargs"))
    for part in ("images_kwargs", "videos_kwargs"):
        nested = told.get(part)
        if isinstance(nested, Mapping):
            told = {**nested, **told}
    return told


def _pixels(ask: Ask) -> int:
    """The limit of pixels that the options set; 0: the processor's own."""
    size = ask.processor.get("size")
    edge = whole(size.get("longest_edge")) if isinstance(size, Mapping) else 0
    return whole(ask.processor.get("max_pixels")) or edge


def _tiles(ask: Ask) -> int:
    """Tokens of one image at an option's number of tiles or crops; 0: not set."""
    family, told = ask.model.family, ask.processor
    if family == "gemma3" and told.get("do_pan_and_scan") is True:
        crops = whole(told.get("pan_and_scan_max_num_crops"), 4)
        return ask.vision.image_tokens * (1 + crops)
    if family in GEMMA4:
        return whole(told.get("max_soft_tokens"))
    if family in INTERN and whole(told.get("max_dynamic_patch")):
        return INTERN_TILE * (1 + whole(told.get("max_dynamic_patch")))
    if family.startswith("phi4") and whole(told.get("dynamic_hd")):
        return PHI_TILE * whole(told.get("dynamic_hd")) + PHI_BESIDE
    if family == "llama4" and whole(told.get("max_patches")):
        return LLAMA4_TILE * (1 + whole(told.get("max_patches")))
    return 0


def image_tokens(ask: Ask) -> int:
    """Most tokens of one image: the processor's limit, or what the options set."""
    vision = ask.vision
    if ask.model.family in QWEN2 | QWEN3 and _pixels(ask):
        return max(1, _pixels(ask) // (vision.patch * vision.merge) ** 2)
    if ask.model.family in GLM and ask.release < (0, 17, 0):
        return GLM_IMAGE_AS_FRAME
    # Where the processor's limit is not known, an image fills a step.
    return _tiles(ask) or vision.image_tokens or ask.step


def _of_size(ask: Ask, limit: Limit, most: int) -> int:
    """Tokens of a dummy item that the limit's own width and height make smaller."""
    if ask.model.family not in ANY_SIZE or not (limit.width and limit.height):
        return most
    if ask.release < (0, 11, 1):
        return most
    unit = ask.vision.patch * ask.vision.merge
    return max(1, min(most, ceil(limit.width / unit) * ceil(limit.height / unit)))


def _item(ask: Ask, modality: str, tokens: int, encoded: int, limit: int) -> Item:
    return Item(modality, tokens, encoded, encoded * max(1, ask.vision.merge) ** 2, limit)


def _image(ask: Ask) -> Item:
    most = image_tokens(ask)
    encoded = _of_size(ask, ask.image, most)
    # Only Qwen's classes tell their limit; of the others the dummy item is counted.
    tokens = most if ask.model.family in QWEN2 | QWEN3 else encoded
    if ask.model.family == "gemma3" and (0, 10, 2) <= ask.release < (0, 14, 0):
        tokens += GEMMA3_AROUND
    modality = "vision_chunk" if ask.model.family == "kimi_k25" else "image"
    return _item(ask, modality, tokens, encoded, ask.image.number)


def _beside_images(ask: Ask, image: int) -> int:
    """Tokens of a request that are left for a video."""
    return ask.length - image if ask.images else ask.length


def _dummy_length(ask: Ask, tokens: int) -> int:
    """The length that a dummy video is drawn for."""
    if not ask.v1:
        return tokens
    if ask.release < (0, 10, 0) or (0, 10, 2) <= ask.release < (0, 11, 0):
        return ask.step
    return tokens if ask.release < (0, 11, 0) else ask.length


def _qwen2_video(ask: Ask) -> tuple[int, int]:
    """Two frames of the largest image a step, as many as the request holds, 14 or 16 at most."""
    image = image_tokens(ask)
    if ask.release < (0, 7, 0):
        return image, image
    steps = 8 if ask.release < (0, 11, 0) else 7
    length = ask.length if ask.release >= (0, 10, 2) else _beside_images(ask, image)
    tokens = image * steps_within(length, image, steps)
    return tokens, image * steps_within(_dummy_length(ask, tokens), image, steps)


def _qwen3_video(ask: Ask) -> tuple[int, int]:
    """Limited by the pixels of all frames; from 0.11 to 0.13 counted with timestamps."""
    vision = ask.vision
    encoded = vision.video_tokens
    if _pixels(ask):
        encoded = max(1, _pixels(ask) // (vision.frames * (vision.patch * vision.merge) ** 2))
    return int(encoded * (TIMESTAMPED if ask.release < (0, 14, 0) else 1)), encoded


def _glm_video(ask: Ask) -> tuple[int, int]:
    image, most = image_tokens(ask), ask.vision.video_tokens
    tokens = min(most, max(_beside_images(ask, image), image))
    return tokens, min(most, max(_dummy_length(ask, tokens), image))


def _intern_video(ask: Ask) -> tuple[int, int]:
    """One tile a frame, as many as the request holds."""
    length = _beside_images(ask, image_tokens(ask))
    tokens = INTERN_TILE * steps_within(length, INTERN_TILE)
    return tokens, INTERN_TILE * steps_within(_dummy_length(ask, tokens), INTERN_TILE)


def _gemma4_video(ask: Ask) -> tuple[int, int]:
    encoded, frames = ask.vision.video_tokens, 32
    if ask.video.frames and ask.release >= (0, 20, 0):
        frames = min(frames, max(2, ask.video.frames))
    encoded = encoded * frames // 32
    return encoded + FRAME_AROUND * frames, encoded


def _intern_shows(model: Architecture, release: tuple[int, ...]) -> bool:
    for key in ("llm_config", "text_config"):
        text = model.config.get(key)
        if isinstance(text, Mapping):
            return release >= (0, 9, 0) and text.get("model_type") in INTERN_VIDEO_TEXTS
    return False


def _video(ask: Ask) -> Item | None:
    """The largest video; None when the model class takes none."""
    family = ask.model.family
    if family in QWEN2:
        tokens, encoded = _qwen2_video(ask)
    elif family in QWEN3:
        tokens, encoded = _qwen3_video(ask)
    elif family in GLM:
        tokens, encoded = _glm_video(ask)
    elif family in GEMMA4:
        tokens, encoded = _gemma4_video(ask)
    elif family in INTERN and _intern_shows(ask.model, ask.release):
        tokens, encoded = _intern_video(ask)
    else:
        return None
    if family in QWEN3 and ask.video.width and ask.video.height:
        encoded = _of_size(ask, ask.video, encoded)  # its dummy video is one step long
    return _item(ask, "video", tokens, encoded, ask.video.number)


def _audio(ask: Ask, limit: int) -> Item | None:
    audio = ask.vision.audio
    if audio is None:
        return None
    return Item("audio", audio.tokens, audio.tokens, audio.tokens * audio.positions, limit)


def items(case: Case, model: Architecture, vision: Vision) -> tuple[Item, ...]:
    """One item of each modality that the deployment allows. Raises Unknown."""
    v1 = bool(case.plan.extra["v1"].get())
    most = V1_MOST if v1 else V0_MOST
    limits = options_of(case, "limit_mm_per_prompt")
    image, video = limit_of(limits, "image", most), limit_of(limits, "video", most)
    if model.family == "kimi_k25" and "vision_chunk" in limits:
        image = limit_of(limits, "vision_chunk", most)
    length = case.plan.max_request_tokens.either(model.max_positions)
    if length is None:
        length = case.plan.max_request_tokens.get("max_model_len")
    ask = Ask(
        model, vision, case.release.version, v1, length,
        case.plan.max_step_tokens.get("max_num_batched_tokens"),
        image.number > 0, _processor(case), image, video,
    )  # fmt: skip
    found = (_image(ask), _video(ask), _audio(ask, limit_of(limits, "audio", most).number))
    return tuple(item for item in found if item and item.limit > 0 and item.tokens > 0)
