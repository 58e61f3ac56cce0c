"""The rules of parallel layouts."""

from __future__ import annotations

from capcheck import ARGS, Case, Change, Fail, Pass, Rule, Skip, Terms, Unknown, rule
from capcheck.accounts import account_of
from capcheck.findings import Answer
from capcheck.measure import show_bytes, show_count, show_seconds, show_share

SHARDED = """
apiVersion: capcheck/v1
kind: Deployment
name: chat-32b
model: {id: Qwen/Qwen2.5-32B-Instruct}
hardware: {accelerator: nvidia/h100-sxm5-80gb, count: 2}
engine:
  name: vllm
  version: "0.11.0"
  args: {tensor_parallel_size: 2, max_model_len: 16384}
"""
LAYOUT = "no engine is named: the devices decide the layout"
# PCIe devices of one socket, usually; throughput grows 0.93 to 1.24 times from 4 to 8 of them
# (TensorRT-LLM performance overview v0.14, A100 PCIe and L40S).
MOST_OVER_PCIE = 4
LARGEST_SERVER = 16  # devices of a server; a link's domain beyond it joins servers: racks, slices
# Batch-1 decode by tensor-parallel size, A100 and A10G over PCIe, A100 and H100 over NVLink.
MEASURED = "an all-reduce takes about 60 to 85 us over PCIe, 15 to 35 us over NVLink"
NO_STEP = ("prompts of others", "draft model")
WIDE = """
apiVersion: capcheck/v1
kind: Deployment
name: chat-7b
model: {id: Qwen/Qwen2.5-7B-Instruct}
hardware: {accelerator: nvidia/h100-sxm5-80gb, count: 4}
engine:
  name: vllm
  version: "0.11.0"
  args: {tensor_parallel_size: 4, max_model_len: 16384}
"""


@rule(
    "sharding/divisible",
    title="The model divides over the parallel sizes",
    why="Heads, KV heads, vocabulary, experts and quantization groups are dealt out whole: the "
    "engine refuses sizes that do not divide them.",
    fix="Use a size that divides them all, or pipeline parallelism for the rest.",
    fails=SHARDED.replace("count: 2", "count: 3").replace("size: 2", "size: 3"),
    passes=SHARDED,
    knobs=(),
)
def divisible(case: Case, t: Terms) -> Answer:
    """What the engine and the quantization method refuse."""
    del t
    if case.engine.fallback:
        return Skip(LAYOUT)
    case.plan.tensor.get("tensor_parallel_size")
    case.model.get("model")
    return case.legality("sharding/divisible")


@rule(
    "sharding/devices",
    title="The parallel sizes take the devices there are",
    why="An engine that is told to use more devices than it is given does not start; devices that "
    "it is not told of stand idle.",
    fix="Make tensor x pipeline x data parallel equal to the devices that are asked for.",
    fails=SHARDED.replace("count: 2", "count: 1"),
    passes=SHARDED,
)
def devices(case: Case, t: Terms) -> Answer:
    """TP x PP x DP against devices x nodes."""
    del t
    if case.engine.fallback:
        return Skip(LAYOUT)
    count = case.deployment.count("hardware", "count")
    if count is None:
        return Skip("the number of devices is not given")
    nodes = case.deployment.count("hardware", "nodes")
    per_node = count.get("the number of devices")
    have = per_node * (nodes.get("nodes") if nodes is not None else 1)
    plan = case.plan
    need = plan.devices
    sizes = f"{plan.tensor.get()} x {plan.pipeline.get()} x {plan.data.get()}"
    at = next(
        (size for size in (plan.tensor, plan.pipeline, plan.data) if size.origin.kind == "written"),
        count,
    )
    if need > have:
        backend = case.deployment.text(*ARGS, "distributed_executor_backend")
        joined = nodes is None and backend is not None and backend.either("") == "ray"
        return Fail(
            at,
            f"tensor x pipeline x data parallel takes {need} devices, there are {have}"
            + (" unless Ray has other nodes" if joined else ""),
            f"{sizes} = {need} > {have}",
            risk=joined,
        )
    if need < have:
        return Fail(
            count,
            f"{have - need} of {have} devices stand idle",
            f"tensor x pipeline x data parallel = {sizes} = {need} < {have}",
            (f"use {have} devices or ask for {need}",),
            severity="warning",
        )
    return Pass()


@rule(
    "sharding/kv-replicated",
    title="Tensor parallelism stays within the KV heads",
    why="Beyond the number of KV heads each device holds a copy: more devices no longer add KV "
    "cache, only weights get smaller.",
    fix="Use at most as many tensor-parallel devices as there are KV heads, and data or pipeline "
    "parallelism beyond.",
    fails=WIDE.replace("Qwen2.5-7B", "Qwen2.5-1.5B"),
    passes=WIDE,
    severity="warning",
)
def kv_replicated(case: Case, t: Terms) -> Answer:
    """KV heads against tensor parallel size; a latent cache against the declared load."""
    if case.engine.fallback:
        return Skip(LAYOUT)
    size = case.plan.tensor
    tensor = size.get("tensor_parallel_size") // max(1, case.plan.context.get())
    model = case.model.get("model").architecture
    if tensor == 1:
        return Pass("one device")
    caches = [layer.cache for layer in model.layers if layer.cache is not None]
    heads = max((cache.heads for cache in caches), default=0)
    if any(cache.kind == "latent" for cache in caches):
        return _latent(case, tensor, t)
    if not heads or heads >= tensor:
        return Pass()
    per_token = show_bytes(case.kv().bytes_per_token)
    return Fail(
        size,
        f"{heads} KV heads are replicated on {tensor} tensor-parallel devices",
        f"{per_token} per token on every device, the same as on {heads}",
        _with_ranks(case, heads, tensor // heads, t),
    )


def _latent(case: Case, tensor: int, t: Terms) -> Answer:
    """A latent cache is whole on every device: told where the declared load exceeds one copy."""
    passes = Pass("a latent cache is held whole on every device, whatever the size")
    if not {"kv_demand_tokens", "kv_cache_tokens"} <= set(case.workshop.estimates):
        return passes
    try:
        need, have = case.value("kv_demand_tokens", t), case.value("kv_cache_tokens", t)
    except Unknown:  # no traffic is declared
        return passes
    if need <= have:
        return passes
    return Fail(
        case.plan.tensor,
        f"the latent KV cache is held {tensor} times and the declared load exceeds one copy",
        f"{show_count(need)} live tokens at 99 % of moments, {show_count(have)} held, the same "
        f"ones on each of {tensor} devices",
        _with_ranks(case, 1, tensor, t),
    )


def _with_ranks(case: Case, tensor: int, data: int, t: Terms) -> tuple[str, ...]:
    """Data-parallel ranks instead of copies, with what they hold where the engine can be asked."""
    ranks = data * case.plan.data.get()
    changes = (Change("tensor", tensor), Change("data", ranks))
    edits = [case.engine.write(one, case.deployment) for one in changes]
    layout = f"tensor parallel {tensor} with data parallel {ranks}"
    general = (f"{layout} holds {data} times the tokens where the weights allow it",)
    changed = case.what_if(*changes) if None not in edits else None
    if changed is None:
        return general
    try:
        if (changed.plan.tensor.get(), changed.plan.data.get()) != (tensor, ranks):
            return general
        many = changed.value("kv_cache_tokens", changed.terms()) * ranks
        now = case.value("kv_cache_tokens", t) * case.plan.data.get()
    except Unknown:
        return general
    if many <= now:
        return ()
    written = " with ".join(edit.words for edit in edits if edit is not None)
    held = f"holds {show_count(many)} tokens instead of {show_count(now)}"
    return (f"{layout} {held}: {written}",)


@rule(
    "sharding/crosses-domain",
    title="Tensor parallelism stays within the fast link",
    why="Every layer ends in an all-reduce: over PCIe or the network it takes several times as "
    "long as within the fast link's domain.",
    fix="Keep tensor parallelism within one node and domain; use pipeline parallelism across.",
    fails=SHARDED.replace("h100-sxm5-80gb, count: 2", "l40s, count: 8").replace(
        "size: 2", "size: 8"
    ),
    passes=SHARDED,
    severity="warning",
)
def crosses_domain(case: Case, t: Terms) -> Answer:
    """Tensor parallel size against devices per node, sockets, bridges and the link's domain."""
    if case.engine.fallback:
        return Skip(LAYOUT)
    size = case.plan.tensor
    tensor = size.get("tensor_parallel_size")
    if tensor == 1:
        return Pass("one device")
    part = case.accelerator.get("accelerator")
    link, nodes = part.link, case.deployment.count("hardware", "nodes")
    count = case.deployment.count("hardware", "count")
    several = (nodes.either(1) if nodes is not None else 1) or 1
    per_node = (count.either(None) if count is not None else None) or tensor
    bridged = link.kind == "nvlink-bridge" or (link.optional and bool(part.pcie_bytes_per_second))
    joined = link.domain > LARGEST_SERVER or (link.kind == "roce" and tensor <= link.domain)
    if several > 1 and tensor > per_node and not joined:
        one = f"{per_node} device{'s' if per_node > 1 else ''}"
        message, inside = f"tensor parallel {tensor} spans nodes of {one}", per_node
        return Fail(size, message, *_crossing(case, inside, t, f"over {link.kind} alone"))
    if (bridged or link.kind in ("pcie", "none")) and tensor > MOST_OVER_PCIE:
        message = f"tensor parallel {tensor} goes over PCIe on {part.name}, between sockets"
        inside = MOST_OVER_PCIE
    elif bridged and tensor > link.domain:
        message = (
            f"tensor parallel {tensor} goes over PCIe on {part.name}: a bridge joins "
            f"{link.domain} devices, where there is one"
        )
        inside = link.domain
    elif link.kind not in ("pcie", "none") and tensor > link.domain:
        joins = f"{tensor} exceeds the {link.domain} devices that {link.kind} joins"
        message, inside = f"tensor parallel {joins} on {part.name}", link.domain
    else:
        return Pass()
    return Fail(size, message, *_crossing(case, inside, t))


def _crossing(case: Case, inside: int, t: Terms, how: str = "here") -> tuple[str, tuple[str, ...]]:
    """What crossing costs by the load model, and the layout that stays inside."""
    tensor = case.plan.tensor.get()
    stages = -(-tensor // inside)
    advice = f"tensor parallel {inside} x pipeline parallel {stages} sends less over the slow link"
    changed = case.what_if(Change("tensor", inside))
    try:
        here = case.value("interconnect_share", t) * _step(case)
        there = 0.0
        if changed is not None:
            there = changed.value("interconnect_share", changed.terms()) * _step(changed)
    except (Unknown, KeyError):
        return MEASURED, (advice,)
    share = case.value("interconnect_share", t)
    taken = show_share(round(share, 2))
    words = f"communication takes {taken} of a decode step {how}, {show_seconds(here)}"
    if there > 0:
        words += f"; {show_seconds(there)} at tensor parallel {inside}"
    return words, (advice,)


def _step(case: Case) -> float:
    """Seconds of a decode step without the prompts of others: what its parts add up to."""
    found = account_of(case, "tpot_seconds")
    if found is None:
        raise KeyError("tpot_seconds")
    return sum(part.amount for part in found.parts if part.name not in NO_STEP)


ALL: tuple[Rule, ...] = (divisible, devices, kv_replicated, crosses_domain)
