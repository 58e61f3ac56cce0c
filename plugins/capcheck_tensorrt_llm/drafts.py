"""Speculative decoding: which draft, and how many tokens it proposes."""

from __future__ import annotations

from capcheck import Value, unknown
from capcheck_tensorrt_llm.reading import Options

SPECULATION = "speculative_config"
WITHOUT_MODEL = frozenset({
    "auto", "lookahead", "mtp", "ngram", "savestate", "user_provided",
})  # fmt: skip


def draft_of(options: Options) -> Value[str] | None:
    """The draft model's name, "mtp", or another method's word; None without speculation."""
    method = options.text(SPECULATION, "decoding_type")
    for key in ("speculative_model", "speculative_model_dir"):
        named = options.text(SPECULATION, key)
        if named is not None:
            return named
    return method.map(str.lower) if method is not None else None


def is_mtp(name: str) -> bool:
    """Whether the draft is the checkpoint's own prediction of several tokens."""
    return name == "mtp"


def draft_tokens(options: Options, draft: Value[str] | None) -> Value[int] | None:
    """Tokens that one step proposes."""
    if draft is None:
        return None
    for key in ("max_draft_len", "num_nextn_predict_layers"):
        found = options.count(SPECULATION, key)
        if found is not None:
            return found
    return unknown(draft.place, "max_draft_len is not given")
