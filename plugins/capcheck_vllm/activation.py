"""The activation peak that vLLM profiles: a forward pass, the sampler, the image encoder."""

from __future__ import annotations

import math

from capcheck import Architecture, Case, Line, Terms
from capcheck.physics.activations import (
    forward_bytes,
    sampler_bytes,
    vision_kept_bytes,
    vision_peak_bytes,
)


def lines(case: Case, t: Terms, stage_layers: int) -> list[Line]:
    """The largest of the passes, and what the encoder keeps. Raises Unknown."""
    del stage_layers
    model = case.model.get("model").architecture
    tokens = case.plan.max_step_tokens.get("max_num_batched_tokens")
    rows = min(case.plan.max_sequences.get("max_num_seqs"), tokens)
    tensor = case.plan.tensor.get("tensor_parallel_size")
    forward = forward_bytes(
        tokens,
        model.hidden,
        model.intermediate / tensor,
        experts_per_token=model.experts_per_token,
        expert_intermediate=model.expert_intermediate / _expert_share(case, tensor),
    ) * t.read("vllm.forward_factor")
    sampler = sampler_bytes(
        rows, model.vocabulary, tokens, model.hidden, t.read("vllm.sampler_bytes_per_logit")
    )
    peaks = {f"activations ({tokens:,} tokens)": forward}
    if not case.plan.extra["pooling"].get():
        peaks[f"sampler ({rows:,} sequences)"] = sampler
    kept = 0.0
    if _profiles_images(case, model):
        images, kept = _encoder(t, model, tokens, tensor)
        peaks["image encoder"] = images
    name, peak = max(peaks.items(), key=lambda item: item[1])
    return [
        Line("activation", peak, "profile", True, name),
        Line("encoder outputs", kept, "profile", True),
    ]


def _expert_share(case: Case, tensor: int) -> int:
    return 1 if case.plan.expert.get("expert parallel") > 1 else tensor


def _profiles_images(case: Case, model: Architecture) -> bool:
    extra = case.plan.extra
    off = extra["language_model_only"].get() or extra["skip_mm_profiling"].get()
    limit = case.deployment.count("engine", "args", "limit_mm_per_prompt", "image")
    return model.vision is not None and not off and not (limit and limit.either(1) == 0)


def _encoder(t: Terms, model: Architecture, tokens: int, tensor: int) -> tuple[float, float]:
    """(transient, kept) bytes of profiling the largest images the encoder budget allows."""
    vision = model.vision
    if vision is None:
        return 0.0, 0.0
    largest = vision.image_tokens or tokens
    budget = max(tokens, largest)
    items = max(1, budget // largest) if largest else 1
    encoded = items * largest
    patches = encoded * max(1, vision.merge) ** 2
    factor = t.read("vllm.vision_factor")
    peak = vision_peak_bytes(patches, vision.hidden, vision.intermediate / tensor)
    kept = vision_kept_bytes(encoded, model.hidden, vision.deepstack)
    if vision.deepstack:
        kept += math.ceil(vision.deepstack * tokens * model.hidden * 2.0)
    return peak * factor, kept * factor
