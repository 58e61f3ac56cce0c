"""SGLang's start-up memory on the worst rank, line by line.

free = what a device shows after the runtime has its context and communication buffers;
budget = free x static share, for weights and cells; the rest of it must hold activations, graphs
and workspaces. cells = budget - weights.
"""

from __future__ import annotations

from typing import NamedTuple

from capcheck import GIB, Case, Ledger, Line, Terms
from capcheck.physics.activations import forward_bytes
from capcheck_sglang import defaults, pool, weights

MULTIMODAL_CACHE = 100 * 2.0**20  # bytes kept for embeddings of images, from 0.5.18
RESERVING_IMAGES = (0, 5, 18)


class Stage(NamedTuple):
    """One pipeline stage: which, of what sizes, and its bytes of weights."""

    number: int
    sizes: tuple[int, ...]
    weights: float


def worst_stage(case: Case) -> Stage:
    """The stage that leaves the fewest tokens: the minimum over stages is used everywhere."""
    sizes = weights.stage_sizes(case)
    stages = [Stage(one, sizes, weights.stage_bytes(case, one, sizes)) for one in range(len(sizes))]
    if len(stages) == 1:
        return stages[0]
    budget = case.visible_bytes(case.terms()) * _share(case)

    def tokens(stage: Stage) -> float:
        cell = pool.cells(case, stage.number, sizes).token
        return (budget - stage.weights) / max(cell, 1.0)

    return min(stages, key=tokens)


def _share(case: Case) -> float:
    return case.plan.memory.get("mem_fraction_static").amount


def weights_line(case: Case, t: Terms, stage: Stage) -> Line:
    """Weights, with what third-party packing leaves uncertain."""
    scheme = case.model.get("model").scheme.get("quantization")
    seen = scheme.seen if scheme is not None else "config"
    method = scheme.method if scheme is not None else "none"
    factor = t.read("sglang.weights_factor", scheme=method, seen=seen)
    offload = case.plan.extra["cpu_offload_gb"].get() * GIB
    # What loading leaves behind beside the tensors is logged, and charged, as weights.
    size = stage.weights * factor + t.read("sglang.loading_bytes")
    return Line("weights", max(0.0, size - offload), "load", True)


def draft_line(case: Case, t: Terms) -> Line:
    """The draft's weights: counted before the pool from 0.5.14, out of the rest before."""
    known = weights.known_draft(case)
    if known is None:
        known = weights.layer_bytes(case) * t.read("sglang.unknown_draft_layers")
    inside = case.release.version >= defaults.DRAFT_COUNTED
    return Line("draft model", known, "load", inside)


def ledger(case: Case, t: Terms) -> Ledger:
    """Lines as SGLang charges them by release. Raises Unknown."""
    stage = case.memo("sglang stage", t, lambda _: worst_stage(case))
    visible = case.visible_bytes(t)
    context = t.read("sglang.context_bytes")
    free = max(0.0, visible - context)
    share = _share(case)
    budget = free * share
    lines = [weights_line(case, t, stage)]
    if case.plan.draft is not None:
        lines.append(draft_line(case, t))
    lines.append(Line("other", t.read("sglang.unaccounted_bytes"), "profile", True))
    model = case.model.get("model").architecture
    if model.vision is not None and case.release.version >= RESERVING_IMAGES:
        lines.append(Line("image embeddings", MULTIMODAL_CACHE, "serve", True))
    rest = budget - sum(line.bytes for line in lines if line.inside_budget)
    cell = pool.cells(case, stage.number, stage.sizes)
    states = pool.states_bytes(case, max(0.0, rest), cell.state)
    lines.append(Line("recurrent states", states, "serve", True))
    cells = _cells_bytes(case, rest - states, cell.token)
    lines += [Line("context", context, "serve", False), *_outside(case, t, stage, cells)]
    words = f"{free / GIB:.1f} GiB free before loading x {share:.3g}"
    if cells < rest - states:
        words, budget = f"{words}, of which max_total_tokens take", budget - (rest - states) + cells
    found = tuple(line for line in lines if line.bytes)
    return Ledger(visible, budget, found, words, cells if cells < rest - states else None)


def _cells_bytes(case: Case, left: float, cell: float) -> float:
    """Bytes of the pool: all that is left, or what max_total_tokens needs."""
    most = case.plan.extra["max_total_tokens"].get("max_total_tokens")
    return min(left, most * cell) if most > 0 else left


def _outside(case: Case, t: Terms, stage: Stage, cells: float) -> list[Line]:
    """What the rest of the device must hold besides weights and cells."""
    lines = [Line("workspaces", t.read("sglang.workspace_bytes"), "capture", False)]
    sizes = captured(case)
    if sizes:
        layers = stage.sizes[stage.number]
        graphs = t.read("sglang.graph_bytes_per_layer") * sizes * layers
        lines.append(Line("CUDA graphs", graphs, "capture", False, f"{sizes} batch sizes"))
    lines.append(_activation(case, t))
    if case.plan.draft is not None and not pool.draft_counted(case):
        cell = pool.cells(case, stage.number, stage.sizes).token
        own = pool.draft_cell(case) * max(0.0, cells) / max(cell, 1.0)
        lines.append(Line("draft's KV cache", own, "serve", False))
    return lines


def _activation(case: Case, t: Terms) -> Line:
    """One pass over a chunk of prompt tokens: not run at start, but by the first long prompt."""
    model = case.model.get("model").architecture
    tokens = case.plan.max_step_tokens.get("chunked_prefill_size")
    tensor = max(1, case.plan.extra["all_tensor"].get("tp_size"))
    expert = 1 if case.plan.expert.get("ep_size") > 1 else tensor
    forward = forward_bytes(
        tokens,
        model.hidden,
        model.intermediate / tensor,
        experts_per_token=model.experts_per_token,
        expert_intermediate=model.expert_intermediate / expert,
    )
    size = forward * t.read("sglang.forward_factor")
    return Line("activation", size, "profile", False, f"activations ({tokens:,} tokens)")


def captured(case: Case) -> int:
    """Batch sizes that decode graphs are captured for; 0 without graphs."""
    if not case.plan.graphs.get("disable_cuda_graph"):
        return 0
    if case.accelerator.get("accelerator").vendor not in ("nvidia", "amd"):
        return 0
    most = case.plan.extra["graph_batch"].get("cuda_graph_max_bs")
    most = max(1, min(most, case.plan.max_sequences.get("max_running_requests")))
    speculative = case.plan.draft is not None
    return max(1, defaults.captured(case.release.version, most, speculative=speculative))


def load_peak(case: Case, t: Terms) -> float | None:
    """Bytes while loading, when online quantization reads the checkpoint unquantized first."""
    scheme = case.model.get("model").scheme.get("quantization")
    if scheme is None or scheme.seen != "online":
        return None
    stage = worst_stage(case)
    factor = t.read("sglang.weights_factor", scheme="none", seen="config")
    context = t.read("sglang.context_bytes")
    whole = weights.stage_bytes(case, stage.number, stage.sizes, packed=False)
    return factor * whole + context
