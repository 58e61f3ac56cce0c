"""LongCat-Flash and Step 3: two attention layers around one mixture, one query for all heads."""

from __future__ import annotations

from capcheck.architecture import Layer, Part, Vision

from .blocks import (
    Block,
    Experts,
    Heads,
    Tensors,
    attention_cache,
    column,
    gated_mlp,
    linear,
    norm,
    norms,
    replicated,
    router,
    row,
    stacked_experts,
    vector,
)
from .config import MOST_EXPERTS, Config
from .decoder import (
    Decoder,
    Routing,
    Sizes,
    embedding,
    ends,
    intermediate,
    layer,
    layer_count,
    routing,
    stack,
    tied,
)
from .mla import latent, latent_attention
from .moe import MOST_DRAFT_LAYERS
from .multimodal import text_part, with_tower
from .rope import ropes
from .style import TWO_NORMS
from .towers import Tower, depth, side
from .vit import Encoder, blocks, fixed, patches


def _longcat_experts(c: Config, hidden: int) -> tuple[Experts, Routing]:
    """Real experts; the router also scores some that only copy their input."""
    count = c.whole("n_routed_experts", least=1, most=MOST_EXPERTS)
    copying = c.whole("zero_expert_num", default=0, most=MOST_EXPERTS)
    per_token = c.whole("moe_topk", "num_experts_per_tok", least=1, most=count + copying)
    width = c.size("expert_ffn_hidden_size")
    tensors = router(count + copying, hidden, name="mlp.router.classifier") + stacked_experts(
        count, hidden, width
    )
    # A copying expert costs nothing, so a token meets the real ones' share on average.
    met = max(1, round(per_token * count / (count + copying)))
    return Experts(tensors, count, met), Routing(count, met, width, 0)


def longcat(c: Config) -> Decoder:
    """LongCat-Flash: a layer is two attentions with dense feed-forwards and one mixture beside.

    Engines count it as two layers, and so do we: the first holds the experts.
    """
    widths = latent(c)
    hidden, count = widths.hidden, layer_count(c)
    width = c.size("ffn_hidden_size")
    experts, route = _longcat_experts(c, hidden)

    def half(index: int) -> Layer:
        block = latent_attention(widths, prefix=f"self_attn.{index}")
        feed = gated_mlp(hidden, width, prefix=f"mlps.{index}")
        around = norms(hidden, f"input_layernorm.{index}", f"post_attention_layernorm.{index}")
        return layer(block, feed, around, experts=None if index else experts)

    vocabulary = c.size("vocab_size")
    is_tied = tied(c, False)
    told = Sizes(hidden, 2 * count, widths.heads, 1, widths.query, vocabulary, width)
    drafts = c.whole("num_nextn_predict_layers", default=0, most=MOST_DRAFT_LAYERS)
    draft_outer: Tensors = ()
    if drafts:
        draft_outer = (
            *replicated("draft", "model.mtp.eh_proj", hidden, 2 * hidden),
            *norms(hidden, "model.mtp.enorm", "model.mtp.hnorm", "model.mtp.norm"),
            *embedding(vocabulary, hidden, "model.mtp.embed_tokens"),
        )
    return Decoder(
        layers=(half(0), half(1)) * count,
        outer=ends(told, is_tied),
        sizes=told,
        tied=is_tied,
        ropes=ropes(c, widths.rope),
        routing=route,
        draft=(half(1),) * drafts,
        draft_outer=draft_outer,
    )


def _shared_query(heads: Heads, shared: int) -> Block:
    """Queries of all heads from one narrow query; a single head of keys and values."""
    parts = (
        Part("self_attn.q_proj", shared),
        Part("self_attn.k_proj", heads.size),
        Part("self_attn.v_proj", heads.size),
    )
    wide = heads.heads * heads.size
    tensors = (
        *linear("attention", parts, heads.hidden, "replicated"),
        *norm("self_attn.inter_norm", shared),
        *column("attention", "self_attn.wq", wide, shared),
        *row("attention", "self_attn.o_proj", heads.hidden, wide),
    )
    return Block(tensors, *attention_cache(heads, 0, 0))


def _enumerated(c: Config, layers: int) -> tuple[bool, ...]:
    """Experts in the layers of `moe_layers_enum`: a list, or "4,5,6"."""
    told = c.values.get("moe_layers_enum")
    if isinstance(told, str):
        marked = {word.strip() for word in told[:20_000].split(",")}
        return tuple(str(index) in marked for index in range(layers))
    listed = c.wholes("moe_layers_enum")
    if listed is None:
        raise c.bad("moe_layers_enum", "the layers that have experts")
    return tuple(index in listed for index in range(layers))


def step3_text(c: Config) -> Decoder:
    """Step 3: multi-matrix factorised attention, experts in all but a few layers."""
    hidden, count = c.size("hidden_size"), layer_count(c)
    heads = Heads(hidden, c.size("num_attention_heads"), 1, c.size("head_dim"))
    route = routing(c)._replace(shared=c.whole("share_expert_dim", default=0))
    block = _shared_query(heads, c.size("share_q_dim"))
    tensors = router(route.experts, hidden, name="moe.gate") + stacked_experts(
        route.experts, hidden, route.intermediate, prefix="moe.experts"
    )
    if route.shared:
        tensors += gated_mlp(hidden, route.shared, prefix="share_expert", role="shared_expert")
    experts = Experts(tensors, route.experts, route.per_token)
    around, plain = norms(hidden, *TWO_NORMS), gated_mlp(hidden, intermediate(c))

    def make(sparse: bool) -> Layer:
        if sparse:
            return layer(block, around, experts=experts)
        return layer(block, plain, around)

    is_tied = tied(c, False)
    widths = Sizes(hidden, count, heads.heads, 1, heads.size, c.size("vocab_size"), intermediate(c))
    return Decoder(
        layers=stack(_enumerated(c, count), make),
        outer=ends(widths, is_tied),
        sizes=widths,
        tied=is_tied,
        ropes=ropes(c, heads.size),
        routing=route,
    )


# An image of 3024 pixels a side: 36 windows of 81 tokens and a small copy of 169, with their ends.
_STEP3_MOST_TOKENS = 36 * (81 + 2) + 169 + 2 + 5


def _step3_tower(c: Config, root: str, hidden_text: int) -> Tower:
    hidden, layers, width = c.size("hidden_size"), depth(c), c.size("intermediate_size")
    patch, image = side(c, "patch_size"), side(c, "image_size")
    out = c.size("output_hidden_size")
    positions = (image // patch) ** 2 + 1
    tensors = (
        *vector("vision", f"{root}.embeddings.class_embedding", hidden),
        *patches(f"{root}.embeddings.patch_embedding", hidden, patch),
        *fixed("vision", f"{root}.embeddings.position_embedding", positions, hidden),
        *blocks(
            Encoder(
                f"{root}.encoder.layers",
                layers,
                hidden,
                width,
                qkv=("self_attn.qkv_proj",),
                out="self_attn.out_proj",
                norms=("layer_norm1", "layer_norm2"),
            )
        ),
        *fixed("projector", "vit_downsampler", out, hidden * 4, bias=True),
        *fixed("projector", "vit_downsampler2", 2 * out, out * 9, bias=True),
    )
    tensors += replicated("projector", "vit_large_projector", hidden_text, 2 * out)
    return Tower(tensors, Vision(hidden, layers, width, patch, 4, _STEP3_MOST_TOKENS))


def step3_vl(c: Config) -> Decoder:
    """Step 3 with its vision tower."""
    built = text_part(c, "step3_text", None)
    tower = _step3_tower(c.section("vision_config"), "vision_model", built.sizes.hidden)
    return with_tower(built, tower)


FAMILIES = {
    "longcat_flash": longcat,
    "step3_text": step3_text,
    "step3_vl": step3_vl,
}
