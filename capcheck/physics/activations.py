"""Peak bytes of one profiling step: forward pass, sampler, image encoder. Pure."""

from __future__ import annotations

ACTIVATION_BYTES = 2.0  # activations are 16 bit


def forward_bytes(
    tokens: float,
    hidden: float,
    intermediate: float,
    *,
    experts_per_token: float = 0,
    expert_intermediate: float = 0,
) -> float:
    """Bytes of one forward pass over `tokens`: residual copies and the widest MLP buffers.

    Dense: tokens x 2 B x (4 hidden + 3 intermediate per rank). Experts route each token to
    several of them: tokens x experts per token x 2 B x (max(2 width, hidden) + width), on top of
    the residual copies. Fitted shape; two to four logged peaks stand behind each.
    """
    residual = tokens * ACTIVATION_BYTES * 4 * hidden
    if experts_per_token:
        routed = max(2 * expert_intermediate, hidden) + expert_intermediate
        return tokens * experts_per_token * ACTIVATION_BYTES * routed + residual
    return tokens * ACTIVATION_BYTES * 3 * intermediate + residual


def sampler_bytes(
    rows: float, vocabulary: float, tokens: float, hidden: float, bytes_per_logit: float
) -> float:
    """Bytes of sampling `rows` sequences at once: their logits, over and over, and the step's
    hidden states."""
    return bytes_per_logit * rows * vocabulary + ACTIVATION_BYTES * tokens * hidden


def vision_peak_bytes(patches: float, hidden: float, intermediate: float) -> float:
    """Transient bytes of encoding `patches`: residual copies and the MLP of one layer."""
    return patches * ACTIVATION_BYTES * (4 * hidden + intermediate)


def vision_kept_bytes(tokens: float, hidden: float, deepstack: int) -> float:
    """Bytes of encoder outputs that are kept while the language model is profiled."""
    return tokens * hidden * ACTIVATION_BYTES * (1 + deepstack)
