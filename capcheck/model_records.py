"""From a checkpoint's configuration and headers to a record of the catalogue."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from capcheck.gguf_header import GgufHeader
from capcheck.safetensors_header import StoredTensor

if TYPE_CHECKING:
    from capcheck.architecture import Architecture
    from capcheck.models import FoundModel
    from capcheck.quantization import Scheme

MOST_DIFFERENCE: Final = 0.005  # of the counted weights: more is told
# Defaults that a library writes into every config.json, and what only generation reads.
_NOISE = re.compile(
    r"_name_or_path|transformers_version|auto_map|use_cache|task_specific_params|id2label"
    r"|label2id|initializer_\w+|\w*dropout\w*|\w*_token_ids?|\w*_token_index|return_dict"
    r"|output_(?:attentions|hidden_states|scores|router_logits)"
    r"|torchscript|use_bfloat16|pruned_heads|chunk_size_feed_forward|is_encoder_decoder|is_decoder"
    r"|add_cross_attention|cross_attention_hidden_size|tie_encoder_decoder|finetuning_task"
    r"|problem_type|tokenizer_class|prefix|remove_invalid_values|exponential_decay_length_penalty"
    r"|suppress_tokens|begin_suppress_tokens|typical_p|temperature|top_k|top_p|do_sample|num_beams"
    r"|num_beam_groups|num_return_sequences|diversity_penalty|repetition_penalty|length_penalty"
    r"|no_repeat_ngram_size|encoder_no_repeat_ngram_size|bad_words_ids|early_stopping|max_length"
    r"|min_length|pretraining_tp|router_aux_loss_coef"
)
_WHOLE = ("quantization_config", "compression_config")
_NO_WEIGHT = re.compile(r"(?:^|\.)(?:inv_freq|e_score_correction_bias)$")
# What a packed matrix keeps beside its values.
_SIDE = re.compile(
    r"(?:scales?|scale_inv|scale_2|zero_points?|qzeros|g_idx|absmax|quant_map|weight_shape|SCB"
    r"|weight_format|quant_state\.\S+|bitsandbytes__\w+|global_scale|amax)$"
)


class Counted(NamedTuple):
    """What the headers tell of the weights. `parameters` None: packed in an unknown way."""

    parameters: int | None
    bytes: Mapping[str, int]
    digest: str = ""


def trimmed(config: Mapping[str, Any]) -> dict[str, Any]:
    """A config.json without what no size follows from."""
    return {
        key: trimmed(value) if isinstance(value, Mapping) and key not in _WHOLE else value
        for key, value in config.items()
        if value is not None and not _NOISE.fullmatch(key)
    }


def counted(tensors: Sequence[StoredTensor], scheme: Scheme | None, packed: bool) -> Counted:
    """The weights of all tensors, and their bytes by dtype."""
    total: int | None = 0
    stored: dict[str, int] = {}
    for one in tensors:
        stored[one.dtype.lower()] = stored.get(one.dtype.lower(), 0) + one.bytes
        if _NO_WEIGHT.search(one.name) or (packed and _SIDE.search(one.name)):
            continue
        weights = _weights(one, scheme) if packed else one.elements
        total = None if total is None or weights is None else total + weights
    ordered = dict(sorted(stored.items(), key=lambda item: (-item[1], item[0])))
    return Counted(total, ordered)


def _weights(one: StoredTensor, scheme: Scheme | None) -> int | None:
    """The weights of one tensor: integers may hold several."""
    width = {"I32": 32, "U8": 8}.get(one.dtype)
    if width is None:
        return one.elements
    parts = (scheme.parts or (scheme,)) if scheme is not None else ()
    bits = {part.bits for part in parts if part.bits < width}
    return round(one.elements * width / bits.pop()) if len(bits) == 1 else None


def counted_gguf(header: GgufHeader, found: FoundModel) -> Counted:
    """The same of a GGUF file."""
    stored = {kind.lower(): size for kind, size in header.bytes_by_type().items()}
    return Counted(int(found.parameters or header.parameters), stored)


def digest_of(
    config: Mapping[str, Any], tensors: Iterable[tuple[str, str, tuple[int, ...]]]
) -> str:
    """A mark of the configuration and of each tensor's name, dtype and shape."""
    plain = {key: value for key, value in config.items() if key != "gguf"}
    found = hashlib.sha256(json.dumps(plain, sort_keys=True).encode())
    for name, dtype, shape in sorted(tensors):
        found.update(f"\n{name} {dtype} {list(shape)}".encode())
    return f"sha256:{found.hexdigest()}"


def drawn_with_draft(architecture: Architecture) -> int:
    """The parameters with those of prediction layers."""
    layers = (tensor for layer in architecture.draft for tensor in layer.tensors)
    return architecture.parameters + sum(
        tensor.elements for tensor in (*layers, *architecture.draft_outer)
    )


def difference(architecture: Architecture, count: int) -> str:
    """How far the drawing is from what is stored, in words; "" when it is near enough."""
    drawn = architecture.parameters
    nearest = min(drawn, drawn_with_draft(architecture), key=lambda one: abs(one - count))
    share = (nearest - count) / count if count else 1.0
    if abs(share) <= MOST_DIFFERENCE:
        return ""
    return (
        f"the headers hold {count:,} weights, but {architecture.family} has {nearest:,} at these"
        f" sizes ({share:+.1%})"
    )


def _lacks_draft(architecture: Architecture, count: int) -> bool:
    """Whether prediction layers are told, but not stored."""
    drawn, whole = architecture.parameters, drawn_with_draft(architecture)
    return whole - drawn > MOST_DIFFERENCE * drawn and abs(drawn - count) < abs(whole - count)


def _scheme(told: Scheme) -> dict[str, Any]:
    """What a record says of a scheme: its parts too, so that nothing is inferred anew."""
    said: dict[str, Any] = {"method": told.method, "weight": told.weight, "bits": told.bits}
    said |= {"guessed": list(told.guessed)} if told.guessed else {}
    said |= {"targets": list(told.targets)} if told.targets else {}
    return said | ({"parts": [_scheme(one) for one in told.parts]} if told.parts else {})


def record_of(
    name: str, found: FoundModel, counts: Counted, *, source: str, date: str, revision: str = ""
) -> dict[str, Any]:
    """The record, facts in the order in which people read them."""
    architecture = found.architecture
    record: dict[str, Any] = {"id": name, "config": trimmed(architecture.config)}
    if found.stored == "scheme" and found.scheme is not None:
        record["scheme"] = _scheme(found.scheme)
    if counts.parameters:
        record["parameters"] = counts.parameters
    if counts.bytes:
        record["stored_bytes"] = dict(counts.bytes)
        if counts.parameters and _lacks_draft(architecture, counts.parameters):
            record["mtp"] = {"layers": 0}
    doubt = difference(architecture, counts.parameters) if counts.parameters else ""
    doubts = [*architecture.doubts, *([doubt] if doubt else [])]
    record |= {"doubts": doubts} if doubts else {}
    record |= {"source": [source], **({"revision": revision} if revision else {})}
    return {**record, "digest": counts.digest, "checked": date}
