"""A planner's estimate for deployments that name no engine.

(weights + KV at the full batch and length + 0.25 x weights) x 1.15, spread over the devices. Both
factors can be configured; with an engine named, its own budget takes their place.
"""

from __future__ import annotations

import math
from typing import Any

from capcheck import (
    Case,
    Change,
    Deployment,
    Edit,
    Engine,
    KvLayout,
    Ledger,
    Line,
    MemoryPolicy,
    Plan,
    Release,
    Site,
    Terms,
    Value,
    default,
    derived,
    unknown,
)
from capcheck.measure import show_bytes
from capcheck.physics.kv import KV_ELEMENT_BYTES, cache_bytes
from capcheck.physics.roofline import generic_memory
from capcheck_generic import accounting

NAMES = {
    "max_request_tokens": "max_model_len",
    "max_sequences": "max_num_seqs",
    "kv_dtype": "kv_cache_dtype",
    "tensor": "tensor_parallel_size",
    "pipeline": "pipeline_parallel_size",
}
DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "half": "fp16"}
KV_DTYPES = {**DTYPES, "fp8": "fp8_e4m3", "fp8_e4m3": "fp8_e4m3", "fp8_e5m2": "fp8_e5m2"}


class Generic(Engine):
    """The fallback: no release, no options of its own but the few that everybody has."""

    name = "generic"
    fallback = True

    def releases(self, text: str | None, why: str) -> tuple[Release, ...]:
        """One release, or one for each accounting era."""
        return (Release(text or "any", ()),)

    def plan(self, site: Site) -> Plan:
        """See `Engine.plan`."""
        return _plan(site)

    def ledger(self, case: Case, t: Terms) -> Ledger:
        """See `Engine.ledger`."""
        return _ledger(case, t)

    def kv(self, case: Case) -> KvLayout:
        """See `Engine.kv`."""
        return _kv(case)

    def write(self, change: Change, deployment: Deployment) -> Edit | None:
        """See `Engine.write`."""
        name = NAMES.get(change.field)
        if name is None:
            return None
        text = "fp8" if change.to == "fp8_e4m3" else str(change.to)
        return Edit(("engine", "args", name), text, f"{name}: {text}")


def _lengths(deployment: Deployment, name: str) -> Value[float] | None:
    """The largest declared length."""
    for key in ((), ("max",), ("p99",), ("p95",), ("p50",), ("mean",)):
        found = deployment.number("workload", name, *key)
        if found is not None:
            return found
    return None


def _request_tokens(site: Site) -> Value[int]:
    given = site.deployment.count("engine", "args", "max_model_len")
    if given is not None:
        return given
    prompt = _lengths(site.deployment, "prompt_tokens")
    output = _lengths(site.deployment, "output_tokens")
    if prompt is not None and prompt.known:
        tokens = prompt.get() + ((output.either(0.0) if output else 0.0) or 0.0)
        return derived(math.ceil(tokens), prompt.place, "the largest declared request")
    place = site.deployment.place_for("engine", "args")
    model = site.model.either(None)
    if model is None or model.architecture.max_positions is None:
        return unknown(place, "no length is given")
    return default(model.architecture.max_positions, place, "the model's full length")


def _sequences(site: Site) -> Value[int]:
    for path in (("engine", "args", "max_num_seqs"), ("workload", "concurrency")):
        found = site.deployment.number(*path)
        if found is not None:
            return found.map(math.ceil)
    return unknown(site.deployment.place_for("workload"), "no concurrency is declared")


def _words(site: Site, name: str, words: dict[str, str], otherwise: Value[str]) -> Value[str]:
    given = site.deployment.text("engine", "args", name)
    if given is None or given.either("") == "auto":
        return otherwise
    return given.map(lambda word: words.get(word, word))


def _plan(site: Site) -> Plan:
    deployment = site.deployment
    place = deployment.place_for("engine", "args")
    model = site.model.either(None)

    def count(name: str, otherwise: int) -> Value[int]:
        found = deployment.count("engine", "args", name)
        return found if found is not None else default(otherwise, place, "default")

    devices = deployment.count("hardware", "count")
    nodes = deployment.count("hardware", "nodes")
    pipeline = count("pipeline_parallel_size", 1)
    whole = (devices.either(1) if devices else 1) or 1
    whole *= (nodes.either(1) if nodes else 1) or 1
    tensor = count("tensor_parallel_size", max(1, whole // (pipeline.either(1) or 1)))
    if devices is not None and not devices.known:
        tensor = Value((), devices.origin)
    stored = (model.architecture.dtype or "bf16") if model else None
    dtype: Value[str] = (
        default("bf16" if stored == "fp32" else stored, place, "the checkpoint's dtype")
        if stored
        else unknown(place, "the model is not known")
    )
    dtype = _words(site, "dtype", DTYPES, dtype)
    sequences, tokens = _sequences(site), _request_tokens(site)
    no: Value[Any] = default(False, place, "no engine is named")
    return Plan(
        tensor=tensor, pipeline=pipeline, data=count("data_parallel_size", 1),
        expert=default(1, place, "default"), context=default(1, place, "default"),
        max_request_tokens=tokens, max_sequences=sequences,
        max_step_tokens=unknown(place, "no engine is named"), weight_dtype=dtype,
        kv_dtype=_words(site, "kv_cache_dtype", KV_DTYPES, dtype),
        memory=default(MemoryPolicy("all", 1.0), place, "no engine is named"),
        graphs=no, chunked_prefill=no, prefix_caching=no, draft=None, draft_tokens=None, extra={},
    )  # fmt: skip


def _ledger(case: Case, t: Terms) -> Ledger:
    """One device's even share of everything; the full batch counts as far as it is declared."""
    devices = case.plan.devices
    visible = case.visible_bytes(t)
    policy = accounting.margins(case)
    weights = accounting.weights_bytes(case)
    plan = case.plan
    declared = plan.max_request_tokens.known and plan.max_sequences.known
    full = accounting.full_batch_bytes(case) if declared else 0.0
    sum_ = generic_memory(weights, full, policy)
    reserve = sum_.total - sum_.weights - sum_.kv - sum_.activations
    note = f"activations ({policy.activation_share:g} x weights)"
    lines = (
        Line("weights", sum_.weights / devices, "load", True),
        Line("KV cache of the full batch", sum_.kv / devices, "serve", False),
        Line("activation", sum_.activations / devices, "profile", True, note),
        Line("reserve", reserve / devices, "serve", False),
    )
    return Ledger(visible, visible, lines, show_bytes(visible))


def _kv(case: Case) -> KvLayout:
    """One block is one token of all layers on one device."""
    model = case.model.get("model").architecture
    width = KV_ELEMENT_BYTES.get(case.plan.kv_dtype.get("KV dtype"), 2.0)
    caches = [layer.cache for layer in model.layers]
    devices = case.plan.devices
    per_token = cache_bytes(caches, 1, 1, width) / devices

    def blocks(tokens: int) -> int:
        return math.ceil(cache_bytes(caches, tokens, 1, width) / devices / per_token)

    return KvLayout(1, per_token, per_token, blocks, float, f"{len(caches)} layers")
