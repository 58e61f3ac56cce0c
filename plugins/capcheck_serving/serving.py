"""One case as inputs of the load model: work, limits, traffic, and the state they lead to."""

from __future__ import annotations

import math
from typing import NamedTuple

from capcheck import Architecture, Case, Scheme, Terms, Unknown
from capcheck.architecture import Tensor
from capcheck.packing import Packed
from capcheck.physics import lengths as distributions
from capcheck.physics.kv import KV_ELEMENT_BYTES
from capcheck.physics.lengths import Lengths
from capcheck.physics.live import mean_context
from capcheck.physics.load import Burst, LoadState, closed_loop, open_loop, ttft_of_prompt
from capcheck.physics.server import Limits, Server, Speculation, Traffic
from capcheck.physics.work import Layout, Machine, Storage, Work, work_of
from capcheck.values import unknown
from capcheck.workload import concurrency, lengths, replicas, request_rate, share
from capcheck_serving.constants import Packing, compute_of, load_constants, step_constants

WIDTHS = {"bf16": 2.0, "fp16": 2.0, "fp32": 4.0}
FIXED_SPREAD = 1e-3  # squared coefficient of variation below which lengths count as fixed


class Declared(NamedTuple):
    """The declared traffic of one replica. Tokens."""

    prompt: Lengths
    output: Lengths

    @property
    def fixed(self) -> bool:
        """Whether all requests are alike."""
        return max(self.prompt.variation, self.output.variation) < FIXED_SPREAD


def _lengths(case: Case, name: str, sigma: float) -> Lengths:
    figures = lengths(case.deployment, name)
    if figures is None:
        place = case.deployment.place_for("workload")
        raise Unknown(unknown(place, f"no {name} are declared"), "traffic")
    if "constant" in figures:
        return distributions.constant(figures["constant"])
    try:
        return distributions.fit(figures, sigma)
    except distributions.LengthsError as wrong:
        place = case.deployment.place_for("workload", name)
        raise Unknown(unknown(place, f"{name}: {wrong}"), "traffic") from wrong


def declared(case: Case, t: Terms) -> Declared:
    """Prompt and output lengths. Raises Unknown when they are not declared."""
    sigma = t.read("serving.length_sigma")
    return Declared(_lengths(case, "prompt_tokens", sigma), _lengths(case, "output_tokens", sigma))


def _scheme_of(case: Case, tensor: Tensor, scheme: Scheme | None) -> Scheme | None:
    if scheme is None or not tensor.linear or not tensor.into:
        return None
    return case.workshop.packing.of_module(scheme, 0, tensor.parts[0].name, tensor.role)


def _stored_bytes(case: Case, tensor: Tensor, scheme: Scheme | None, width: float) -> float:
    own = _scheme_of(case, tensor, scheme)
    if own is None:
        return tensor.elements * (4.0 if tensor.dtype == "fp32" else width)
    outs = tuple(part.out for part in tensor.parts)
    packed = Packed(outs, tensor.into, tensor.copies, width, "", tensor.split)
    return sum(case.workshop.packing.allocations(own, packed))


def _layout(case: Case) -> Layout:
    plan = case.plan
    return Layout(
        tensor=plan.tensor.get("tensor_parallel_size"),
        data=plan.data.get("data_parallel_size"),
        expert=max(1, plan.expert.get("expert parallel")),
        pipeline=plan.pipeline.get("pipeline_parallel_size"),
        context=max(1, plan.context.get()),
    )


def work(case: Case) -> Work:
    """What one device reads and computes. Raises Unknown."""
    key = ("serving work", id(case))
    cache = case.workshop.cache
    if key not in cache:
        cache[key] = (_work(case), case)
    made: Work = cache[key][0]
    return made


def _work(case: Case) -> Work:
    model = case.model.get("model")
    return _work_of_model(case, model.architecture, model.scheme.get("quantization"))


def _work_of_model(case: Case, model: Architecture, scheme: Scheme | None) -> Work:
    part = case.accelerator.get("accelerator")
    width = WIDTHS.get(case.plan.weight_dtype.get("dtype"), 2.0)
    if not {"bf16", "fp16"} & set(part.flops):
        place = case.accelerator.place
        raise Unknown(unknown(place, f"the 16-bit peak of {part.name} is not known"))

    def stored(tensor: Tensor) -> float:
        return _stored_bytes(case, tensor, scheme, width)

    def peak(tensor: Tensor) -> float:
        own = _scheme_of(case, tensor, scheme)
        weight, activation = (own.weight, own.activation) if own else ("bf16", "")
        return compute_of(weight, activation, part.flops)[1]

    kv = KV_ELEMENT_BYTES.get(case.plan.kv_dtype.get("KV dtype"), 1.0)
    sixteen = part.flops.get("bf16") or part.flops["fp16"]
    link = part.link.bytes_per_second or part.pcie_bytes_per_second or 0.0
    layout = _layout(case)
    devices = layout.expert_devices * layout.pipeline
    if devices > 1 and not link:
        raise Unknown(unknown(case.accelerator.place, f"the link of {part.name} is not known"))
    machine = Machine(part.bandwidth, sixteen, link)
    return work_of(model, Storage(stored, peak, kv), layout, machine)


def _packings(case: Case) -> tuple[Packing, Packing]:
    """How dense weights and experts are stored and multiplied."""
    model = case.model.get("model")
    part = case.accelerator.get("accelerator")
    scheme = model.scheme.get("quantization")
    found = []
    for roles in (("mlp", "attention"), ("expert",)):
        tensors = [
            tensor
            for layer in model.architecture.layers
            for tensor in layer.tensors
            if tensor.role in roles and tensor.linear
        ]
        own = _scheme_of(case, tensors[0], scheme) if tensors else None
        weight, activation = (own.weight, own.activation) if own else ("bf16", "")
        bits = own.bits if own else 16.0
        found.append(Packing(bits, compute_of(weight, activation, part.flops)[0]))
    return found[0], found[1]


def limits(case: Case, t: Terms, one: Declared) -> Limits:
    """What keeps requests from running on one data-parallel rank."""
    plan = case.plan
    most = plan.max_sequences.either(None)
    step = plan.max_step_tokens.either(None)
    held = one.prompt.mean + one.output.mean * t.read("serving.reserved_output")
    cache = math.inf
    if not case.engine.fallback:
        layout = case.kv()
        if layout.block_bytes:
            blocks = layout.request_blocks(math.ceil(held))
            cache = layout.blocks(case.ledger(t).kv) / max(blocks, 1)
    return Limits(cache, float(most or math.inf), float(step or math.inf), float(step or math.inf))


def _speculation(case: Case, t: Terms) -> Speculation | None:
    tokens = case.plan.draft_tokens
    if case.plan.draft is None or tokens is None:
        return None
    acceptance = share(case.deployment, "acceptance_rate")
    if not acceptance:
        place = case.deployment.place_for("workload")
        raise Unknown(unknown(place, "speculation without a declared acceptance_rate"), "traffic")
    proposed = float(tokens.get("num_speculative_tokens"))
    draft = _draft_work(case)
    if draft is None:
        return Speculation(proposed, acceptance)
    dense = Packing(16.0, "16")
    return Speculation(proposed, acceptance, draft, step_constants(t.read, dense, dense))


def _draft_work(case: Case) -> Work | None:
    """What a named draft model reads; None for n-grams and the checkpoint's own layers."""
    named = case.plan.draft
    if named is None or "/" not in named.get("draft model"):
        return None
    draft = case.draft_model()
    if draft is None:
        return None
    return _work_of_model(case, draft.architecture, draft.scheme.get("draft quantization"))


def server(case: Case, t: Terms, one: Declared) -> Server:
    """One replica. Raises Unknown."""
    return Server(
        work(case),
        step_constants(t.read, *_packings(case)),
        load_constants(
            t.read, "fixed" if one.fixed else "varied", "burst" if is_burst(case) else "steady"
        ),
        limits(case, t, one),
        _speculation(case, t),
    )


def traffic(case: Case, one: Declared) -> Traffic:
    """What the requests look like, on average."""
    return Traffic(
        one.prompt.mean,
        one.output.mean,
        mean_context(one.prompt, one.output),
        one.prompt.quantile(0.5),
        one.prompt.variation,
        share(case.deployment, "prefix_hit_rate"),
    )


def state(case: Case) -> LoadState:
    """The replica under the declared load, at the constants' mid. Raises Unknown.

    The bands of latencies are those of the residuals: what was measured over what this model
    predicts with exactly these constants. Moving them as well would count the spread twice.
    """
    key = ("serving state", id(case))
    cache = case.workshop.cache
    if key not in cache:
        t = case.terms()
        cache[key] = (state_at(case, t, declared(case, t)), case)
    made: LoadState = cache[key][0]
    return made


def state_at(case: Case, t: Terms, one: Declared, *, inflight: float | None = None) -> LoadState:
    """The state at the declared load, or with `inflight` requests on the replica."""
    made, flow = server(case, t, one), traffic(case, one)
    if inflight is not None:
        return closed_loop(made, flow, inflight)
    flight = concurrency(case.deployment)
    if flight is not None:
        requests = max(flight.get("concurrency"), 1e-3)
        return closed_loop(made, flow, requests, _burst(case))
    rate = request_rate(case.deployment)
    if rate is None:
        place = case.deployment.place_for("workload")
        raise Unknown(unknown(place, "neither concurrency nor request_rate is declared"), "traffic")
    each = rate.highest.get("request_rate") / replicas(case.deployment)
    return open_loop(made, flow, max(each, 1e-6), t.read("serving.saturated_horizon"))


def is_burst(case: Case) -> bool:
    """Whether all requests come at once at the start."""
    start = case.deployment.text("workload", "start")
    return start is not None and start.either("") == "burst"


def _burst(case: Case) -> Burst | None:
    prompts = case.deployment.number("workload", "prompts")
    if not is_burst(case) or prompts is None:
        return None
    return Burst(max(prompts.get("prompts"), 1.0))


def prompt_factor(case: Case, share_: float) -> float:
    """Time to first token of the prompt at a quantile, over that of the median prompt."""
    return case.once(f"serving prompt factor {share_}", lambda: _prompt_factor(case, share_))


def _prompt_factor(case: Case, share_: float) -> float:
    one, made = declared(case, case.terms()), state(case)
    if one.fixed or made.ttft_median_seconds <= 0:
        return 1.0
    replica = server(case, case.terms(), one)
    longer = one.prompt.quantile(share_)
    return ttft_of_prompt(replica, traffic(case, one), made, longer) / made.ttft_median_seconds


def loop_facts(case: Case) -> dict[str, str]:
    """What the percentile terms are selected by."""
    return dict(case.once("serving loop facts", lambda: _loop_facts(case)))


def _loop_facts(case: Case) -> dict[str, str]:
    one = declared(case, case.terms())
    facts = {} if one.fixed else {"lengths": "varied"}
    if concurrency(case.deployment) is not None:
        facts["loop"] = "closed"
    return facts
