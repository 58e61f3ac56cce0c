"""The memory estimates: the core's own, from whatever engine's ledger and pages."""

from __future__ import annotations

from pathlib import Path

from capcheck.case import Case, Estimate, estimate
from capcheck.engine import OTHER
from capcheck.terms import Terms


@estimate("weights_bytes", unit="B", basis="per device, as the engine holds them")
def weights_bytes(case: Case, t: Terms) -> float:
    """All that is loaded on the worst device: weights, drafts and adapters."""
    return case.ledger(t).bytes_in("load")


@estimate("activation_bytes", unit="B", basis="profiled peak of one step")
def activation_bytes(case: Case, t: Terms) -> float:
    """The profiled peak without what is no tensor of the model."""
    ledger = case.ledger(t)
    return ledger.bytes_in("profile") - ledger.bytes_of(OTHER)


@estimate("non_torch_bytes", unit="B", basis="communication and workspaces")
def non_torch_bytes(case: Case, t: Terms) -> float:
    """The ledger's line of that name."""
    return case.ledger(t).bytes_of(OTHER)


@estimate("cuda_graph_bytes", unit="B", basis="captured batch sizes")
def cuda_graph_bytes(case: Case, t: Terms) -> float:
    """Captured graphs."""
    return case.ledger(t).bytes_in("capture")


@estimate("kv_cache_bytes", unit="B", basis="budget less everything inside it, per device")
def kv_cache_bytes(case: Case, t: Terms) -> float:
    """Bytes left for the KV cache; negative when nothing is."""
    return case.ledger(t).kv


@estimate("kv_bytes_per_token", unit="B", basis="one more token of one request, per device")
def kv_bytes_per_token(case: Case, t: Terms) -> float:
    """A layout, without terms."""
    del t
    return case.kv().bytes_per_token


@estimate("kv_cache_tokens", unit="tokens", basis="as the engine logs it, per rank", least=0.0)
def kv_cache_tokens(case: Case, t: Terms) -> float:
    """What the whole blocks of the KV cache hold."""
    layout = case.kv()
    return layout.logged_tokens(layout.blocks(case.ledger(t).kv))


@estimate("max_concurrency", unit="requests", basis="at max_model_len, per rank", least=0.0)
def max_concurrency(case: Case, t: Terms) -> float:
    """Requests of the full length that the KV cache holds at once."""
    layout = case.kv()
    needed = layout.request_blocks(case.plan.max_request_tokens.get("max_model_len"))
    return layout.blocks(case.ledger(t).kv) / needed if needed else 0.0


# How much of a device's memory the engine sees: everything in bytes of a device hangs on it.
CORE_TERMS = (Path(__file__).parent / "device_terms.jsonl", "capcheck")
CORE_ESTIMATES: tuple[Estimate, ...] = (
    weights_bytes, activation_bytes, non_torch_bytes, cuda_graph_bytes, kv_cache_bytes,
    kv_bytes_per_token, kv_cache_tokens, max_concurrency,
)  # fmt: skip
