"""Encoders that engines serve for embeddings and ranking: BERT, RoBERTa, XLM-RoBERTa."""

from __future__ import annotations

from functools import partial

from .blocks import Names, Tensors, attention, norm, norms, plain_mlp, replicated
from .config import Config
from .decoder import Decoder, embedding, intermediate, layer, sizes

_NAMES = Names(
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
)


def bert(c: Config, *, pooler: bool) -> Decoder:
    """A post-norm encoder with learned positions; it keeps nothing per request."""
    widths = sizes(c)
    hidden = widths.hidden
    block = attention(widths.attention(), names=_NAMES, bias=True, out_bias=True)
    feed = plain_mlp(
        hidden, intermediate(c), names=("intermediate.dense", "output.dense"), bias=True
    )
    around = norms(hidden, "attention.output.LayerNorm", "output.LayerNorm", bias=True)
    one = layer(block._replace(cache=None), feed, around)
    positions, kinds = c.size("max_position_embeddings"), c.size("type_vocab_size", default=2)
    root = "embeddings"
    outer: Tensors = (
        *embedding(widths.vocabulary, hidden, f"{root}.word_embeddings"),
        *embedding(positions, hidden, f"{root}.position_embeddings", split=False),
        *embedding(kinds, hidden, f"{root}.token_type_embeddings", split=False),
        *norm(f"{root}.LayerNorm", hidden, bias=True),
    )
    if pooler:
        outer += replicated("other", "pooler.dense", hidden, hidden, bias=True)
    return Decoder((one,) * widths.layers, outer, widths, True, prefix="encoder.layer")


FAMILIES = {
    "bert": partial(bert, pooler=True),
    "roberta": partial(bert, pooler=False),
    "xlm-roberta": partial(bert, pooler=False),
}
