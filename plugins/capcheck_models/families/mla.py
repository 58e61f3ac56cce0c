"""Multi-head latent attention, with and without a sparse-attention indexer."""

from __future__ import annotations

from typing import NamedTuple

from capcheck.architecture import Cache, Mixer, Part

from .blocks import Block, Tensors, column, linear, norm, replicated, row
from .config import Config


class Latent(NamedTuple):
    """The widths of latent attention."""

    hidden: int
    heads: int
    query_rank: int  # 0: queries are projected directly
    rank: int
    nope: int
    rope: int
    value: int

    @property
    def query(self) -> int:
        """Head size of queries and keys."""
        return self.nope + self.rope

    def mixer(self, topk: int) -> Mixer:
        """How a layer of these widths attends; `topk` tokens when it is sparse."""
        return Mixer(
            kind="mla",
            heads=self.heads,
            head_size=self.query,
            value_size=self.value,
            kv_heads=1,
            latent=self.rank,
            rope=self.rope,
            nope=self.nope,
            topk=topk,
        )


class Indexer(NamedTuple):
    """The scorer that picks the tokens a sparse layer attends to."""

    heads: int
    size: int
    topk: int


def latent(c: Config) -> Latent:
    """Read the widths. Raises BadConfig."""
    return Latent(
        hidden=c.size("hidden_size"),
        heads=c.size("num_attention_heads"),
        query_rank=c.whole("q_lora_rank", default=0),
        rank=c.size("kv_lora_rank"),
        nope=c.size("qk_nope_head_dim"),
        rope=c.whole("qk_rope_head_dim"),
        value=c.size("v_head_dim"),
    )


def indexer(c: Config) -> Indexer | None:
    """Read the indexer, or None where the model attends to everything."""
    if not c.has("index_n_heads"):
        return None
    return Indexer(
        c.size("index_n_heads"), c.size("index_head_dim"), c.size("index_topk", default=2048)
    )


def _indexer_tensors(widths: Latent, found: Indexer, prefix: str) -> Tensors:
    root = f"{prefix}.indexer"
    fused = (Part(f"{root}.wk", found.size), Part(f"{root}.weights_proj", found.heads))
    return (
        *replicated("indexer", f"{root}.wq_b", found.heads * found.size, widths.query_rank),
        *linear("indexer", fused, widths.hidden, "replicated"),
        *norm(f"{root}.k_norm", found.size, bias=True),
    )


def _queries(widths: Latent, prefix: str, bias: bool) -> Tensors:
    """Down-projections of queries and keys (fused, replicated), then the queries."""
    down = Part(f"{prefix}.kv_a_proj_with_mqa", widths.rank + widths.rope)
    wide = widths.heads * widths.query
    if not widths.query_rank:
        return (
            *column("attention", f"{prefix}.q_proj", wide, widths.hidden),
            *linear("attention", (down,), widths.hidden, "replicated", bias=bias),
        )
    parts = (Part(f"{prefix}.q_a_proj", widths.query_rank), down)
    return (
        *linear("attention", parts, widths.hidden, "replicated", bias=bias),
        *norm(f"{prefix}.q_a_layernorm", widths.query_rank),
        *column("attention", f"{prefix}.q_b_proj", wide, widths.query_rank),
    )


def latent_attention(
    widths: Latent,
    scorer: Indexer | None = None,
    *,
    prefix: str = "self_attn",
    out: str = "o_proj",
    bias: bool = False,
    owns_scorer: bool = True,
) -> Block:
    """One latent attention layer: one latent per token is cached, whatever the heads.

    With `owns_scorer` false the layer reads an earlier layer's scores: it attends sparsely but
    has no indexer tensors and no index keys in the cache.
    """
    tensors = (
        *_queries(widths, prefix, bias),
        *norm(f"{prefix}.kv_a_layernorm", widths.rank),
        *column(
            "attention",
            f"{prefix}.kv_b_proj",
            widths.heads * (widths.nope + widths.value),
            widths.rank,
        ),
        *row("attention", f"{prefix}.{out}", widths.hidden, widths.heads * widths.value, bias=bias),
    )
    index_width = 0
    if scorer is not None and owns_scorer:
        tensors += _indexer_tensors(widths, scorer, prefix)
        index_width = scorer.size
    cache = Cache("latent", 1, widths.rank + widths.rope, 0, indexer=index_width)
    return Block(tensors, widths.mixer(scorer.topk if scorer else 0), cache)
