"""SGLang's defaults by release and device, as read in its sources. MiB where sizes are named so."""

from __future__ import annotations

from typing import NamedTuple

Version = tuple[int, ...]

RESERVING = (0, 4, 7, 1)  # 0.4.7.post1: the static share leaves out a reserve, no table any more
BY_CHUNK = (0, 5, 3)  # the reserve is made of chunk, graphs and parallel size
PREFILL_GRAPHS = (0, 5, 10)  # graphs of prefill are captured by default
SHORT_PREFILL_GRAPHS = (0, 5, 19)  # until then they end at 2,048 tokens with a latent cache
DRAFT_COUNTED = (0, 5, 14)  # draft weights and cells are counted before the pool is sized
EXTRA_CELLS = ((0, 4, 1), (0, 5, 8))  # cells added for drafts on top of the profiled number
LARGE = 60 * 1024


class Layout(NamedTuple):
    """What the default share of a deployment depends on."""

    mib: float  # the device
    tensor: int
    pipeline: int
    attention_ranks: int  # data-parallel attention ranks; 1: none
    chunk: int  # chunked_prefill_size before attention ranks divide it
    prefill_tokens: int  # max_prefill_tokens
    graph_batch: int
    speculation: str  # "", "EAGLE", "STANDALONE", "NGRAM" ...
    prefill_graphs: int  # sizes captured of prefill; 0: none
    latent: bool  # the model keeps latents (MLA)
    vision: tuple[int, int] | None  # layers and width of the image encoder
    deepep: bool = False


def chunked_prefill(version: Version, mib: float) -> int:
    """`chunked_prefill_size` by device memory."""
    if version < (0, 4, 0):
        return 8192
    if version < RESERVING:
        if version >= (0, 4, 7) and mib > 180_000:
            return 16384
        return 2048 if mib < 25_000 else 8192
    if version < BY_CHUNK:
        return 2048 if mib < 35 * 1024 else 8192 if mib < 160 * 1024 else 16384
    if mib < 20 * 1024:
        return 2048
    if mib < 35 * 1024:
        return 4096 if version >= SHORT_PREFILL_GRAPHS else 2048
    if mib < LARGE:
        return 4096
    return 8192 if mib < 160 * 1024 else 16384


def graph_batch(version: Version, mib: float, tensor: int) -> int:
    """The largest batch that a graph is captured for."""
    few = tensor < 4
    if version < (0, 4, 0):
        return 4 if mib < 25_000 else 160
    if version < BY_CHUNK:
        small = 25_000 if version < RESERVING else 35 * 1024
        if mib < small:
            return 8 if few else 80
        return 256 if mib > 96 * 1024 and version >= (0, 4, 5) else 160
    if mib < 20 * 1024:
        return 8
    if mib < 35 * 1024:
        if version >= SHORT_PREFILL_GRAPHS:
            return 48 if few else 160
        return (16 if version < (0, 5, 4, 3) else 24) if few else 80
    if mib < LARGE:
        return 32 if few else 160
    if mib < 160 * 1024:
        return 256 if few else 512
    return 512


def captured(version: Version, most: int, *, speculative: bool) -> int:
    """How many batch sizes up to `most` graphs are captured for."""
    if speculative:
        sizes = [*range(1, 9), *range(10, 33, 2), *range(40, 64, 4), *range(72, 257, 8)]
        sizes += range(272, most + 1, 16)
    else:
        sizes = [1, 2, 4, 8, 12, *range(16, 257, 8), *range(272, 512, 16)]
        sizes += range(512, most + 1, 32)
    if version < BY_CHUNK:
        sizes = [1, 2, 4, 8, *range(16, most + 1, 8)]
    return sum(size <= most for size in sizes)


def prefill_sizes(version: Version, chunk: int, *, latent: bool) -> int:
    """How many token counts graphs of prefill are captured for."""
    del version
    most = min(chunk, 8192) if latent else chunk
    sizes = [*range(4, 33, 4), *range(48, 257, 16), *range(288, 513, 32), *range(576, 1025, 64)]
    sizes += [*range(1280, 4097, 256), *range(4608, most + 1, 512)]
    return sum(size <= most for size in sizes)


def static_fraction(version: Version, layout: Layout) -> float:
    """`mem_fraction_static` when nobody asks for one: weights and KV cache of what is free."""
    if version < RESERVING:
        share = _by_table(version, layout)
    elif version < BY_CHUNK:
        share = _less(layout, _reserve_by_size(version, layout))
    else:
        share = _less(layout, _reserve_by_chunk(version, layout))
    return share * _vision_factor(version, layout)


def vision_share(version: Version) -> float:
    """What every share of a model with an encoder is multiplied with, asked for or not."""
    if version < (0, 4, 4, 4):
        return 0.95
    return 0.9 if version < (0, 4, 9) else 1.0


def _less(layout: Layout, reserve: float) -> float:
    return round((layout.mib - reserve) / layout.mib, 3)


def _by_table(version: Version, layout: Layout) -> float:
    size = layout.tensor * layout.pipeline
    eight = 0.83 if version < (0, 3, 6) else 0.82 if version < (0, 4, 0) else 0.81
    table = ((16, 0.79), (8, eight), (4, 0.85), (2, 0.87))
    share = next((part for least, part in table if size >= least), 0.88)
    if layout.mib <= 81920 or version < (0, 4, 5, 3):
        return share
    if version < (0, 4, 6, 5):
        return (layout.mib - 1024 * 13) / layout.mib
    if version >= (0, 4, 7) and layout.mib > 180_000:
        return 0.79
    rest = 1024 * (20 if layout.speculation and version >= (0, 4, 7) else 18)
    raised = 0.88 + 48 * 1024 * 0.12 / layout.mib
    return min(raised, (layout.mib - rest) / layout.mib) if layout.mib > 96 * 1024 else 0.88


def _reserve_by_size(version: Version, layout: Layout) -> float:
    size = layout.tensor * layout.pipeline
    if layout.mib < 35 * 1024:
        reserve = 2.8 + size / 10
    elif layout.mib < 90 * 1024:
        reserve = 9.5 + size / 2
    elif layout.mib < 160 * 1024:
        reserve = 12 + size / 2
    else:
        reserve = 32.0
    if layout.speculation:
        reserve += 6 if layout.speculation == "STANDALONE" and version >= (0, 5, 2) else 2
    if layout.attention_ranks > 1:
        reserve += 4
    return reserve * 1024


def _reserve_by_chunk(version: Version, layout: Layout) -> float:
    tokens = layout.chunk if layout.chunk > 0 else layout.prefill_tokens
    reserve = 512 + max(tokens, 2048) * 1.5 + layout.tensor * layout.pipeline / 8 * 1024
    reserve += layout.graph_batch * 2
    if layout.attention_ranks > 1:
        crowded = 4.5 if layout.graph_batch > 300 else 3
        reserve += layout.graph_batch * layout.attention_ranks * crowded
    if layout.prefill_graphs:
        # Without a latent cache the graphs share the pass's own buffers.
        heavy = layout.latent and version >= (0, 5, 11)
        reserve += 1536 if heavy else layout.prefill_graphs * 8
    if layout.mib > LARGE:
        reserve = max(reserve, 10 * 1024)
    if layout.speculation and version < DRAFT_COUNTED and layout.speculation != "NGRAM":
        draft = 4 if version >= (0, 5, 11) else 2
        reserve += 1024 * (6 if layout.speculation == "STANDALONE" else draft)
    return reserve + (2048 if layout.deepep and version >= (0, 5, 16) else 0)


def _vision_factor(version: Version, layout: Layout) -> float:
    """Models with an image encoder leave room for it, by the encoder's size."""
    if layout.vision is None or version < (0, 4, 9):
        return 1.0
    if version < (0, 4, 9, 6):
        return 0.9
    layers, width = layout.vision
    complexity = layers * width**2 / (24 * 1024**2)
    return 0.95 * max(0.8, min(1.05, 1 - 0.1 * (complexity - 1)))


def draft_shape(family: str, speculation: str) -> tuple[int, int, int]:
    """Steps, branches and verified tokens of one step when nobody asks for them."""
    chains = ("deepseek", "gpt_oss", "bailing", "longcat", "glm4_moe", "glm_moe")
    if speculation == "STANDALONE" or family.startswith(chains):
        return 3, 1, 4
    return 5, 4, 8
