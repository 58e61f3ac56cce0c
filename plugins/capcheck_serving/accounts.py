"""The load model's latencies taken apart, in the words of who reads the deployment."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from capcheck import Account, Case, Change, Estimate, Share
from capcheck.measure import show_count
from capcheck.physics.balance import Balance
from capcheck.physics.load import LoadState
from capcheck.physics.server import Limit, Server, Traffic, admitted
from capcheck.physics.step import Activity
from capcheck_serving.serving import declared, server, state, traffic

PROMPTS = "prompts of others"
OPTIONS: dict[Limit, str] = {"max sequences": "max_sequences", "step tokens": "max_step_tokens"}


def _replica(case: Case) -> tuple[Server, Traffic]:
    one = declared(case, case.terms())
    return server(case, case.terms(), one), traffic(case, one)


def _activities(made: LoadState) -> Iterator[tuple[str, str, float]]:
    """What a step reads and computes: name, resource, seconds."""

    def one(part: Activity, read: str, computed: str) -> tuple[str, str, float]:
        if part.memory >= part.compute:
            return read, "memory bandwidth", part.seconds
        return computed, "compute", part.seconds

    yield one(made.parts.dense, "weights", "products with the weights")
    yield one(made.parts.experts, "experts", "products with the experts")
    yield one(made.parts.cache, "KV cache", "attention")
    yield "all-reduce", "the interconnect", made.parts.all_reduces
    yield "expert exchange", "the interconnect", made.parts.exchanges
    yield "hand-over between stages", "the interconnect", made.parts.hand_overs
    yield "fixed per step", "the fixed cost of a step", made.parts.fixed


def _most(seconds: dict[str, float]) -> str:
    return max(seconds, key=lambda name: seconds[name])


def tpot(case: Case) -> Account:
    """A step's parts for each token that it yields, proposals, and the prompts of others."""
    made = state(case)
    replica, flow = _replica(case)
    balance = Balance(replica, flow)
    found = list(_activities(made))
    draft = balance.draft_seconds(made.decode_batch)
    found.append(("draft model", "the draft model", draft))
    parts = [Share(name, seconds / balance.gain) for name, _, seconds in found]
    others = made.tpot_seconds - sum(part.amount for part in parts)
    by_resource: dict[str, float] = {PROMPTS: max(others, 0.0)}
    for _, resource, seconds in found:
        by_resource[resource] = by_resource.get(resource, 0.0) + seconds / balance.gain
    binding = _most(by_resource)
    if binding in ("memory bandwidth", "compute"):
        mine = {name: seconds for name, resource, seconds in found if resource == binding}
        binding = f"{binding} ({_most(mine)})"
    parts.append(Share(PROMPTS, max(others, 0.0)))
    return Account(tuple(parts), binding.replace(PROMPTS, f"the {PROMPTS}"), made.limited_by)


def _ttft(case: Case, *, mean: bool) -> Account:
    """Own prefill, waits for a slot and for the prompts of others, and the steps between."""
    made = state(case)
    replica, flow = _replica(case)
    balance = Balance(replica, flow)
    alone = balance.prefill if mean else made.prefill_seconds
    own = replica.load.own_prefill_factor * alone
    queued, ahead = (wait.mean if mean else wait.median for wait in (made.queued, made.ahead))
    whole = made.ttft_mean_seconds if mean else made.ttft_median_seconds
    queue = _queue(case, made)
    parts = (
        Share("own prefill", own),
        Share(queue, queued),
        Share(PROMPTS, ahead),
        Share("scheduling and steps waited", max(whole - own - queued - ahead, 0.0)),
    )
    binding = max(parts, key=lambda part: part.amount).name
    named = {"own prefill": "compute (its own prefill)", PROMPTS: f"the {PROMPTS}"}
    return Account(parts, named.get(binding, binding), made.limited_by)


def _queue(case: Case, made: LoadState) -> str:
    """What is waited for before a request is admitted."""
    if made.limited_by == "kv cache":
        return "queueing for KV cache"
    option = _option(case, made.limited_by)
    if option:
        return f"queueing for {option}"
    return "queueing for the front end" if made.limited_by == "front end" else "queueing"


def _option(case: Case, limit: Limit) -> str:
    """The engine's own name of the option that sets a limit."""
    field = OPTIONS.get(limit)
    edit = case.engine.write(Change(field, 1), case.deployment) if field else None
    return edit.path[-1] if edit is not None else ""


def saturation(case: Case) -> Account:
    """What a replica admits at most, and by which limit."""
    made = state(case)
    most, limit = admitted(*_replica(case))
    if made.limited_by:
        limit = made.limited_by
    ranks = case.plan.data.get("data_parallel_size")
    many = show_count(max(1, math.floor(most)))
    each = f" on each of {ranks} ranks" if ranks > 1 else ""
    words = {
        "kv cache": f"the KV cache holds {many} requests{each}",
        "max sequences": f"{_option(case, limit) or 'the most sequences'} admits {many}{each}",
        "step tokens": f"{_option(case, limit) or 'the tokens of a step'} sustains {many}{each}",
        "front end": "the serial front end is full",
        "": "",
    }[limit]
    binding = tpot(case).binding
    return Account((), binding, limit, words)


def taken_apart(found: Iterable[Estimate]) -> tuple[Estimate, ...]:
    """The estimates, those of latencies and saturation with their accounts."""
    accounts = {
        "tpot_seconds": tpot,
        "tpot_seconds_mean": tpot,
        "ttft_seconds": lambda case: _ttft(case, mean=False),
        "ttft_seconds_mean": lambda case: _ttft(case, mean=True),
        "saturation": saturation,
    }
    return tuple(one._replace(account=accounts.get(one.name)) for one in found)
