"""The activation peak that vLLM profiles: a forward pass, the sampler, the image encoder."""

from __future__ import annotations

from capcheck import Case, Line, Terms
from capcheck.physics.activations import forward_bytes, sampler_bytes
from capcheck_vllm.encoder import encoding


def lines(case: Case, t: Terms) -> list[Line]:
    """The largest of the passes, and what the encoder keeps. Raises Unknown."""
    model = case.model.get("model").architecture
    encoded = encoding(case, t)
    tokens = encoded.step_tokens or case.plan.max_step_tokens.get("max_num_batched_tokens")
    rows = encoded.rows or min(case.plan.max_sequences.get("max_num_seqs"), tokens)
    tensor = case.plan.tensor.get("tensor_parallel_size")
    peaks = {
        f"activations ({tokens:,} tokens)": forward_bytes(
            tokens,
            model.hidden,
            model.intermediate / tensor,
            experts_per_token=model.experts_per_token,
            expert_intermediate=model.expert_intermediate / _expert_share(case, tensor),
        )
        * t.read("vllm.forward_factor")
    }
    if not case.plan.extra["pooling"].get():
        per_logit = t.read("vllm.sampler_bytes_per_logit")
        peaks[f"sampler ({rows:,} sequences)"] = sampler_bytes(
            rows, model.vocabulary, tokens, model.hidden, per_logit
        )
    if encoded.peak_bytes:
        peaks[f"encoder ({encoded.words})"] = encoded.peak_bytes
    name, peak = max(peaks.items(), key=lambda item: item[1])
    return [
        Line("activation", peak, "profile", True, name),
        Line("encoder outputs", encoded.kept_bytes, "profile", True, encoded.words),
    ]


def _expert_share(case: Case, tensor: int) -> int:
    return 1 if case.plan.expert.get("expert parallel") > 1 else tensor
