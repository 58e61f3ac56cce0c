"""The planner's estimate of a deployment's memory, all devices together. Bytes."""

from __future__ import annotations

from capcheck import Case
from capcheck.physics.kv import KV_ELEMENT_BYTES, cache_bytes
from capcheck.physics.roofline import GenericMemory, Margins, generic_memory
from capcheck.quantity import GIB

DEFAULT = Margins(activation_share=0.25, safety=1.15, device_bytes=80 * GIB)
WIDTHS = {"bf16": 2.0, "fp16": 2.0, "fp32": 4.0}


def margins(case: Case) -> Margins:
    """The configured factors, else 0.25, 1.15 and devices of 80 GiB."""
    settings = case.workshop.cache.get("settings")
    if settings is None:
        return DEFAULT
    return Margins(settings.activation_share, settings.safety_margin, settings.device_gib * GIB)


def weights_bytes(case: Case) -> float:
    """Parameters x bytes per parameter. Raises Unknown."""
    model = case.model.get("model")
    scheme = model.scheme.get("quantization")
    width = WIDTHS.get(case.plan.weight_dtype.get("dtype"), 2.0)
    return model.architecture.parameters * (scheme.bits / 8 if scheme else width)


def full_batch_bytes(case: Case) -> float:
    """KV bytes of every sequence at full length. Raises Unknown when not declared."""
    tokens = case.plan.max_request_tokens.get("the length of a request")
    sequences = case.plan.max_sequences.get("the number of sequences")
    model = case.model.get("model").architecture
    width = KV_ELEMENT_BYTES.get(case.plan.kv_dtype.get("KV dtype"), 2.0)
    return cache_bytes([layer.cache for layer in model.layers], tokens, sequences, width)


def memory(case: Case) -> GenericMemory:
    """(weights + KV + a share of the weights) x safety. Raises Unknown."""
    return generic_memory(weights_bytes(case), full_batch_bytes(case), margins(case))
