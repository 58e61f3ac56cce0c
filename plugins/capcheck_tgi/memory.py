"""Memory at the warm-up on each shard: weights, one full prefill, and what is left for KV blocks.

CUDA graphs are captured later, in what the warm-up kept back; the server goes on without those
that do not fit.
"""

from __future__ import annotations

import math

from capcheck import GIB, Case, Ledger, Line, Scheme, Terms, Unknown
from capcheck.physics.activations import forward_bytes, vision_peak_bytes
from capcheck.physics.holding import Weighing
from capcheck.physics.memory import Split
from capcheck_tgi.pages import layout
from capcheck_tgi.releases import CHUNKING


def weights_bytes(case: Case) -> float:
    """Weights on one shard as the server holds them. Raises Unknown."""
    model = case.model.get("model")
    part = case.accelerator.get("accelerator")
    tensor = case.plan.tensor.get("num_shard")
    scheme = model.scheme.get("quantization")
    dtype = case.plan.weight_dtype.get("dtype")

    def kernel(own: Scheme) -> str:
        return case.workshop.packing.kernel(
            own, case.engine.name, part.vendor, part.capability, case.release.version
        )

    key = ("tgi weights", id(model.architecture), scheme, tensor, dtype, part.id)
    cache = case.workshop.cache
    if key not in cache:
        weighing = Weighing(case.workshop.packing, scheme, Split(tensor), dtype, kernel)
        layers = (len(model.architecture.layers),)
        cache[key] = (weighing.stage(model.architecture, 0, layers), model)  # the id stays its own
    return float(cache[key][0])


def warm_up_tokens(case: Case) -> int:
    """Tokens whose KV blocks the warm-up takes: its prompts, each with room for its answer."""
    plan = case.plan
    prefill = plan.max_step_tokens.get("max_batch_prefill_tokens")
    longest = plan.extra.get("max_input_tokens")
    prompt = min(prefill, max(1, longest.get("max_input_tokens"))) if longest else prefill
    requests = math.ceil(prefill / prompt)
    batch = plan.extra.get("max_batch_size")
    if batch is not None:
        requests = min(requests, batch.get("max_batch_size"))
    total = plan.max_request_tokens.either(None)
    if case.release.version >= CHUNKING:
        # Without a stated total one token is generated; prompts add up to the prefill step.
        return requests * total if total else prefill + requests
    return requests * max(total or 0, prompt)


def warm_up_bytes(case: Case) -> float:
    """Bytes of the KV blocks that the warm-up takes."""
    return layout(case).request_bytes(warm_up_tokens(case))


def _activation(case: Case, t: Terms) -> list[Line]:
    model = case.model.get("model").architecture
    tokens = case.plan.max_step_tokens.get("max_batch_prefill_tokens")
    tensor = case.plan.tensor.get("num_shard")
    forward = forward_bytes(
        tokens,
        model.hidden,
        model.intermediate / tensor,
        experts_per_token=model.experts_per_token,
        expert_intermediate=model.expert_intermediate / tensor,
    ) * t.read("tgi.forward_factor")
    lines = [Line("activation", forward, "profile", True, f"warm-up ({tokens:,} tokens)")]
    if case.plan.extra["prefill_logprobs"].get("enable_prefill_logprobs"):
        size = tokens * model.vocabulary * t.read("tgi.logprob_bytes")
        lines.append(Line("prefill logprobs", size, "profile", True))
    if model.vision is not None:
        vision = model.vision
        patches = (vision.image_tokens or tokens) * max(1, vision.merge) ** 2
        peak = vision_peak_bytes(patches, vision.hidden, vision.intermediate / tensor)
        lines.append(Line("image encoder", peak * t.read("tgi.vision_factor"), "profile", True))
    return lines


def _pool(case: Case, left: float, whole: float, taken: float) -> float:
    """What becomes KV blocks: what the warm-up took is counted in again.

    From 3.0 on the kept-back share is one of the device, before one of what is free. Nothing less
    than the warm-up's own blocks is ever allocated.
    """
    room = float(case.plan.extra["room"].get("TGI_WIGGLE_ROOM"))
    if case.release.version >= CHUNKING:
        return max(left - (1 - room) * whole, taken)
    return room * (left - taken) + taken


def ledger(case: Case, t: Terms) -> Ledger:
    """Lines inside cuda_memory_fraction of the device. Raises Unknown."""
    model = case.model.get("model")
    if case.accelerator.get("accelerator").vendor not in ("nvidia", "amd"):
        raise Unknown(case.accelerator.because("its warm-up on this hardware was not read"))
    visible = case.visible_bytes(t)
    share = case.plan.extra["fraction"].get("cuda_memory_fraction")
    scheme = model.scheme.get("quantization")
    seen = scheme.seen if scheme is not None else "config"
    factor = t.read("tgi.weights_factor", scheme=scheme.method if scheme else "none", seen=seen)
    lines = [
        Line("weights", weights_bytes(case) * factor, "load", True),
        *_activation(case, t),
        Line("other", t.read("tgi.other_bytes"), "profile", True),
    ]
    words = f"{visible / GIB:.1f} GiB" + (f" x {share:g}" if share != 1 else "")
    made = Ledger(visible, visible * share, tuple(lines), words)
    taken = warm_up_bytes(case)
    if taken > made.left:
        # The warm-up runs out of memory: its blocks are part of the peak.
        lines.append(Line("KV blocks of the warm-up", taken, "profile", True))
    else:
        kept = made.left - _pool(case, made.left, made.budget, taken)
        lines.append(Line("kept back", kept, "serve", True))
    return made._replace(lines=tuple(line for line in lines if line.bytes))
