"""The launcher's defaults by release, model and device, as read in its sources."""

from __future__ import annotations

from capcheck import MIB, Accelerator, Architecture

Version = tuple[int, ...]

OLD_INPUT_TOKENS, OLD_TOTAL_TOKENS, OLD_PREFILL_TOKENS = 1024, 2048, 4096  # before 2.0
MOST_DEFAULT_TOKENS = 4096  # 2.x
PREFILL_EDGE = 50
CONCURRENT_REQUESTS = 128
PREFILL_TOKENS, LEAST_OPTIMUM = 4096, 100  # 3.x, where nothing can be computed; less is an error
PREFILL_OF_FAMILY = {"qwen2_vl": 10_000, "qwen2_5_vl": 10_000, "gemma3": 8000}  # from 3.3 on
LAUNCHER_ROOM = 0.95  # the launcher's own, not the one of the warm-up
SLOTS = {"flashdecoding": 256, "flashinfer": 1, "flashdecoding-ipex": 64}  # tokens of a block

# FLOP/s that the launcher assumes of a card in 16 bit, by the name that it looks for.
FLOPS = (
    ("rtx 4090", 82e12), ("t4", 65e12), ("l40s", 363e12), ("l40", 181e12), ("l4", 121e12),
    ("a10g", 125e12), ("a40", 149e12), ("h100", 900e12), ("h200", 989e12), ("a100", 312e12),
)  # fmt: skip
SINCE_3_3 = ("a40", "h200")


def graph_sizes(words: str) -> tuple[int, ...]:
    """The batch sizes of `cuda_graphs`; 0 stands for none."""
    found = (part.strip() for part in words.strip("[]").split(","))
    return tuple(int(part) for part in found if part.isdigit() and int(part) > 0)


def block_tokens(attention: str) -> int:
    """Tokens of one KV block."""
    return SLOTS.get(attention, 16)


def attention(version: Version, model: Architecture, capability: float | None) -> str:
    """The kernel that the launcher chooses: flashinfer for plain heads, from 2.3 on."""
    if version < (2, 3, 0):
        return "paged"
    old = capability is not None and capability < 8
    fallback = "paged" if old and version >= (2, 4, 0) else "flashdecoding"
    forced = ("gemma2", "falcon", "deepseek_v2") if version < (2, 4, 0) else (
        "falcon", "deepseek_v2"
    )  # fmt: skip
    plain = model.head_size in (64, 128, 256) and model.family not in forced
    return "flashinfer" if plain else fallback


def card_flops(version: Version, accelerator: Accelerator) -> float | None:
    """What the launcher takes the card for; None for one that it does not know."""
    name = accelerator.name.lower().replace("-", " ")
    for word, flops in FLOPS:
        if word in name.split() or (" " in word and word in name):
            return None if word in SINCE_3_3 and version < (3, 3, 0) else flops
    return None


def model_flops(model: Architecture) -> float | None:
    """FLOPs of one token as the launcher counts them; None where it does not try."""
    if model.vision is not None or not (model.heads and model.head_size):
        return None
    active = (model.experts_per_token or 1) * (model.expert_intermediate or model.intermediate)
    wide = model.heads * model.head_size * model.hidden
    narrow = model.kv_heads * model.head_size * model.hidden
    layer = 2 * (3 * wide + 2 * narrow) + 2 * 3 * model.hidden * active
    return float(layer) * len(model.layers)


def _fitting_tokens(
    model: Architecture, accelerator: Accelerator, shards: int, fraction: float
) -> int | None:
    """Tokens that the launcher believes to fit, all devices together; None when none do."""
    if model.quantization is not None:
        return None
    memory = int(accelerator.nominal_bytes // MIB) * MIB * shards * fraction * LAUNCHER_ROOM
    experts = model.experts or 1
    width = model.expert_intermediate or model.intermediate
    layer = (model.heads + 2 * model.kv_heads) * model.head_size
    layer += model.heads * model.head_size * model.hidden + 3 * width * experts * model.hidden
    weights = 2 * (layer * len(model.layers) + 2 * model.hidden * model.vocabulary)
    kv = 4 * model.kv_heads * model.head_size * len(model.layers)
    token = kv + 6 * (width + width // 2) * experts
    left = memory - weights
    return int(left // token) if left > 0 else None


def prefill_by_compute(
    version: Version,
    model: Architecture,
    accelerator: Accelerator,
    shards: int,
    fraction: float,
) -> int:
    """3.x: tokens whose computing hides the reading of the weights, as far as they fit."""
    flops, each = card_flops(version, accelerator), model_flops(model)
    otherwise = PREFILL_OF_FAMILY.get(model.family, PREFILL_TOKENS)
    tokens = otherwise if version >= (3, 3, 0) else PREFILL_TOKENS
    if flops is not None and each:
        optimum = int(flops * shards / each)
        tokens = optimum if optimum > LEAST_OPTIMUM else tokens
    if model.max_positions:
        tokens = min(tokens, model.max_positions)
    fitting = _fitting_tokens(model, accelerator, shards, fraction)
    return max(1, tokens if fitting is None else min(tokens, fitting))
