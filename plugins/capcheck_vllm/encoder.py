"""What encoding images, videos and sound takes while vLLM profiles its memory, by release.

V1 encodes as many of the largest items as the encoder's budget holds, keeps inputs and outputs,
and then runs the language model. V0 does both in one pass over whole prompts.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

from capcheck import Architecture, Case, Terms
from capcheck.architecture import Vision
from capcheck.option_reader import OptionReader
from capcheck.physics.encoders import (
    ACTIVATION_BYTES,
    input_bytes,
    items_within,
    output_bytes,
    transient_bytes,
)
from capcheck_vllm.encoder_items import Item, items
from capcheck_vllm.table import TABLE

UNSPLIT = frozenset(("gemma4", "gemma4_unified"))  # towers that every device runs whole
CROSS_ATTENDING = "mllama"
PLURAL = {"audio": "audio clips", "vision_chunk": "images"}


class Encoding(NamedTuple):
    """What the multimodal part of the profile takes on one device."""

    peak_bytes: float  # while encoding, beyond what is kept
    kept_bytes: float  # inputs and outputs that stay while the language model is profiled
    words: str = ""  # "31 images of 256 tokens"
    step_tokens: int = 0  # V0: tokens that the language model is profiled with; 0: as planned
    rows: int = 0  # V0: sequences that are sampled; 0: as planned


class _Batch(NamedTuple):
    """So many of one item, encoded at once."""

    item: Item
    number: int
    kept_tokens: int  # rows that are kept of each


NOTHING = Encoding(0.0, 0.0)


def encoding(case: Case, t: Terms) -> Encoding:
    """The largest items at once, as the release profiles them. Raises Unknown."""
    model = case.model.get("model").architecture
    extra = case.plan.extra
    off = extra["language_model_only"].get() or extra["skip_mm_profiling"].get()
    if model.vision is None or off:
        return NOTHING
    found = items(case, model, model.vision)
    if not found:
        return NOTHING
    if extra["v1"].get():
        batch = _largest(case, found)
        peak, kept = _bytes(case, t, model, model.vision, [batch])
        return Encoding(peak, kept, _words([batch]))
    return _older(case, t, model, model.vision, found)


def deepstack_buffer_bytes(case: Case) -> float:
    """Hidden states of one step that a model with deepstack sets aside while it is loaded.

    vLLM logs them with the weights. Raises Unknown.
    """
    model = case.model.get("model").architecture
    if model.vision is None or case.plan.extra["language_model_only"].get():
        return 0.0
    step = case.plan.max_step_tokens.get("max_num_batched_tokens")
    return float(model.vision.deepstack * step * model.hidden * ACTIVATION_BYTES)


def _largest(case: Case, found: Sequence[Item]) -> _Batch:
    """The modality of most tokens, as often as budget, requests and prompt allow."""
    version = case.release.version
    step = case.plan.max_step_tokens.get("max_num_batched_tokens")
    item = found[0]
    for other in found[1:]:  # among equals the last name counts, before 0.17 the first listed
        later = version >= (0, 17, 0) and other.modality > item.modality
        if other.tokens > item.tokens or (other.tokens == item.tokens and later):
            item = other
    budget = max(step, item.tokens)
    requests = case.plan.max_sequences.get("max_num_seqs")
    per_request = item.limit
    if version >= (0, 10, 2):
        length = case.plan.max_request_tokens.either(None)
        if length is not None:
            per_request = max(1, min(per_request, length // item.tokens))
        if not case.plan.chunked_prefill.either(True):
            requests = min(requests, step // item.tokens)
    count = items_within(budget, item.tokens, requests, per_request, whole=version >= (0, 10, 0))
    return _Batch(item, count, _rows(case, item, budget))


def _rows(case: Case, item: Item, budget: int) -> int:
    """Rows that are kept of each item: from 0.11 to 0.13 padded to what an item may have."""
    version = case.release.version
    candidate = version == (0, 11, 0) and "rc" in case.release.text
    if version < (0, 11, 0) or version >= (0, 14, 0) or candidate:
        return item.encoded
    return max(item.encoded, item.tokens if version >= (0, 12, 0) else budget)


def _bytes(
    case: Case, t: Terms, model: Architecture, vision: Vision, batches: Sequence[_Batch]
) -> tuple[float, float]:
    """(peak beyond what is kept, kept) of encoding batches one after the other."""
    inputs = sum(_inputs(case, vision, batch) for batch in batches)
    kept = inputs + sum(
        output_bytes(batch.number * batch.kept_tokens, model.hidden, vision.deepstack)
        for batch in batches
    )
    widest = max(_transient(case, t, model, vision, batch) for batch in batches)
    return max(0.0, inputs + widest - kept), kept


def _inputs(case: Case, vision: Vision, batch: _Batch) -> float:
    """Pixels on the device; before 0.9.1 as the processor gives them, in fp32."""
    if batch.item.modality == "audio":
        return 0.0
    value = 4.0 if case.release.version < (0, 9, 1) else ACTIVATION_BYTES
    return input_bytes(batch.number * batch.item.patches, vision.patch, vision.frames, value)


def _transient(case: Case, t: Terms, model: Architecture, vision: Vision, batch: _Batch) -> float:
    tensor = case.plan.tensor.get("tensor_parallel_size")
    count = batch.number
    if _whole_items(case):
        count, tensor = ceil(count / tensor), 1
    elif model.family in UNSPLIT:
        tensor = 1
    patches = count * batch.item.patches
    audio = vision.audio
    if batch.item.modality == "audio" and audio is not None:
        copies = t.read("vllm.encoder_attention_copies", tower="plain")
        return transient_bytes(
            patches, audio.hidden, audio.intermediate, tensor=tensor, attention_copies=copies
        )
    tower = "rotary" if vision.rotary else "plain"
    placing = t.read("vllm.encoder_placing_copies") if vision.placed else 0.0
    gathered = 0.0
    if vision.outputs > 1:
        gathered = vision.outputs * t.read("vllm.encoder_gathering_copies")
    return t.read("vllm.encoder_factor") * transient_bytes(
        patches,
        vision.hidden,
        vision.intermediate,
        tensor=tensor,
        attention_copies=t.read("vllm.encoder_attention_copies", tower=tower),
        gated=vision.gated,
        placing_copies=placing,
        gathering_copies=gathered,
        mask_positions=vision.image_tokens if model.family == CROSS_ATTENDING else 0,
    )


def _whole_items(case: Case) -> bool:
    """Whether each device encodes whole items of its own (mm_encoder_tp_mode: data)."""
    reader = OptionReader(case.deployment, TABLE, case.release.version)
    return reader.text("mm_encoder_tp_mode", "weights").either("weights") == "data"


def _older(
    case: Case, t: Terms, model: Architecture, vision: Vision, found: Sequence[Item]
) -> Encoding:
    """V0: prompts with all that they may have, as many as one step holds.

    Cross-attending models have no such bound: all sequences bring an image.
    """
    step = case.plan.max_step_tokens.get("max_num_batched_tokens")
    sequences = case.plan.max_sequences.get("max_num_seqs")
    prompt = sum(item.limit * item.tokens for item in found)
    crossing = model.family == CROSS_ATTENDING
    rows = sequences if crossing else max(1, min(sequences, step // prompt))
    batches = [_Batch(item, rows * item.limit, item.encoded) for item in found]
    peak, kept = _bytes(case, t, model, vision, batches)
    tokens = step if crossing else max(step, rows * prompt)
    return Encoding(peak, kept, _words(batches), tokens, rows)


def _words(batches: Sequence[_Batch]) -> str:
    parts = []
    for batch in batches:
        item = batch.item
        name = PLURAL.get(item.modality, f"{item.modality}s")
        if batch.number == 1:
            name = name.removesuffix("s")
        parts.append(f"{batch.number:,} {name} of {item.tokens:,} tokens")
    return " and ".join(parts)
