"""The rules of parallel layouts."""

from __future__ import annotations

from capcheck import ARGS, Case, Fail, Pass, Rule, Skip, Terms, rule
from capcheck.findings import Answer
from capcheck.measure import show_bytes

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
MOST_OVER_PCIE = 4  # beyond it throughput no longer grows: 0.93 to 1.24 from 4 to 8 devices
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
    """KV heads against tensor parallel size."""
    del t
    if case.engine.fallback:
        return Skip(LAYOUT)
    size = case.plan.tensor
    tensor = size.get("tensor_parallel_size") // max(1, case.plan.context.get())
    model = case.model.get("model").architecture
    if tensor == 1:
        return Pass("one device")
    caches = [layer.cache for layer in model.layers if layer.cache is not None]
    latent = any(cache.kind == "latent" for cache in caches)
    heads = max((cache.heads for cache in caches), default=0)
    if latent:
        return Pass("a latent cache is held whole on every device, whatever the size")
    if not heads or heads >= tensor:
        return Pass()
    per_token = show_bytes(case.kv().bytes_per_token)
    return Fail(
        size,
        f"{heads} KV heads are replicated on {tensor} tensor-parallel devices",
        f"{per_token} per token on every device, the same as on {heads}",
        (f"tensor parallel {heads} with data parallel {tensor // heads} holds "
         f"{tensor // heads} times the tokens where the weights allow it",),
    )  # fmt: skip


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
    """Tensor parallel size against devices per node and the link's domain."""
    del t
    if case.engine.fallback:
        return Skip(LAYOUT)
    size = case.plan.tensor
    tensor = size.get("tensor_parallel_size")
    if tensor == 1:
        return Pass("one device")
    part = case.accelerator.get("accelerator")
    count = case.deployment.count("hardware", "count")
    nodes = case.deployment.count("hardware", "nodes")
    several = (nodes.either(1) if nodes is not None else 1) or 1
    per_node = (count.either(None) if count is not None else None) or tensor
    if several > 1 and tensor > per_node and part.link.domain <= per_node:
        return Fail(
            size,
            f"tensor parallel {tensor} spans nodes of {per_node} devices",
            help=(f"tensor parallel {per_node} x pipeline parallel {tensor // per_node}",),
        )
    slow = part.link.kind in ("pcie", "none", "nvlink-bridge")
    if slow and tensor > MOST_OVER_PCIE:
        return Fail(
            size,
            f"tensor parallel {tensor} goes over PCIe on {part.name}",
            "an all-reduce takes about 60 to 85 us there, 15 to 35 us over NVLink",
            ("pipeline parallelism needs less of the link; measure both",),
        )
    if not slow and tensor > part.link.domain:
        return Fail(
            size,
            f"tensor parallel {tensor} exceeds the {part.link.domain} devices that "
            f"{part.link.kind} joins on {part.name}",
            help=(f"tensor parallel {part.link.domain} and pipeline parallelism beyond",),
        )
    return Pass()


ALL: tuple[Rule, ...] = (divisible, devices, kv_replicated, crosses_domain)
