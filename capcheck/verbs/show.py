"""`capcheck show FILE`: the merged deployment and the plan, each value with its origin."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from capcheck.amounts import amount, around
from capcheck.case import Case
from capcheck.engine import MemoryPolicy, Plan
from capcheck.guard import RAISED, Guard
from capcheck.measure import show_bytes
from capcheck.quantity import GIB
from capcheck.resolve import Resolved
from capcheck.source import Node, Scalar, to_plain
from capcheck.summing import estimate_of
from capcheck.values import COMMAND_LINE, Origin, Unknown, Value
from capcheck.verbs.reading import code_of, read_all, say


def origin_words(origin: Origin) -> str:
    """Where a value comes from, for people."""
    where = origin.place.start if origin.place.file != COMMAND_LINE else ""
    via = "".join(f", included from {place.file}:{place.line}" for place in origin.via)
    if origin.kind == "assumed":
        return origin.why
    if origin.kind in ("default", "derived"):
        return origin.why or origin.kind
    word = f" {origin.word}" if origin.word else ""
    why = f" ({origin.why})" if origin.why else ""
    return f"{where}{word}{via}{why}"


def _node_words(node: Node) -> str:
    return node.text if isinstance(node, Scalar) else str(to_plain(node))


def value_words(value: Value[Any]) -> str:
    """The value, its alternatives, or that it is unknown."""
    if value.unknown:
        return "unknown"
    return " or ".join(_option_words(option) for option in value.options)


def _option_words(option: Any) -> str:
    if isinstance(option, MemoryPolicy):
        shown = show_bytes(option.amount) if option.kind == "bytes" else f"{option.amount:g}"
        return f"{option.kind} {shown}" if option.kind != "all" else "all of it"
    if hasattr(option, "place") and hasattr(option, "_fields"):
        return _node_words(option)
    return str(option)


def _row(name: str, value: str, origin: str) -> str:
    return f"  {name:36} {value:34} {origin}".rstrip()


def _fields(resolved: Resolved) -> Iterator[str]:
    deployment = resolved.deployment
    for path, value in sorted(deployment.fields.items()):
        yield _row(".".join(path), value_words(value), origin_words(value.origin))
    for one in deployment.draft.overridden:
        yield _row(
            ".".join(one.path), value_words(one.value),
            f"overridden; {origin_words(one.value.origin)}",
        )  # fmt: skip


def _plan(plan: Plan) -> Iterator[str]:
    for name, value in plan._asdict().items():
        if name == "extra":
            for extra, found in sorted(value.items()):
                yield _row(extra, value_words(found), origin_words(found.origin))
        elif value is not None:
            yield _row(name, value_words(value), origin_words(value.origin))


def _known(case: Case) -> Iterator[str]:
    model = case.model.either(None)
    if model is not None:
        scheme = model.scheme.either(None)
        yield _row("model", model.name, model.how)
        packed = f"{scheme.weight}, {scheme.method} ({scheme.seen})" if scheme else "as stored"
        if model.scheme.unknown:
            packed = f"unknown: {model.scheme.origin.why}"
        yield _row("weights", packed, "; ".join(model.architecture.doubts[:1]))
        for differs in model.may_differ:
            yield _row("may differ", "", differs)
    else:
        yield _row("model", "unknown", case.model.origin.why)
    part = case.accelerator.either(None)
    if part is None:
        yield _row("accelerator", "unknown", case.accelerator.origin.why)
    else:
        seen = f"{part.visible_bytes / GIB:.2f} GiB visible" if part.visible_bytes else "nominal"
        yield _row("accelerator", part.id, f"{part.name}, {seen}")
    why = "" if case.release.known else case.release.why
    yield _row("engine", f"{case.engine.name} {case.release.text}", why)


def _memory(case: Case, guard: Guard) -> Iterator[str]:
    try:
        ledger = case.ledger(case.terms())
    except Unknown as lost:
        yield _row("memory", "unknown", lost.reason)
        return
    except RAISED as error:
        guard.failed(case.engine, "the memory ledger", error)
        return
    yield _row("visible", show_bytes(ledger.visible), "")
    yield _row("budget", show_bytes(ledger.budget), ledger.budget_words)
    for line in ledger.lines:
        where = "inside the budget" if line.inside_budget else "outside the budget"
        yield _row(line.name, show_bytes(line.bytes), ", ".join(filter(None, (where, line.note))))


def _estimates(case: Case, guard: Guard) -> Iterator[str]:
    for name, made in case.workshop.estimates.items():
        band = estimate_of(case, made, guard)
        if band is not None:
            yield _row(name, amount(band.mid, made.unit), around(band, made.unit))


def pages(resolved: Resolved, guard: Guard) -> Iterator[str]:
    """All that is known of one deployment, as lines."""
    deployment = resolved.deployment
    place = deployment.place
    yield f"{deployment.name} ({deployment.format}, {place.file}:{place.line})"
    yield "deployment"
    yield from _fields(resolved)
    for problem in resolved.problems:
        yield f"  ! {problem.place.start}: {problem.message} [{problem.rule}]"
    for case in resolved.cases:
        yield f"resolved {case.label}".rstrip()
        yield from _known(case)
        yield "plan"
        yield from _plan(case.plan)
        yield "memory, worst device"
        yield from _memory(case, guard)
        yield "estimates"
        yield from _estimates(case, guard)


def run(given: argparse.Namespace) -> int:
    """Print the deployments of one file."""
    read = list(read_all(given))
    for session, drafts in read:
        for draft in drafts:
            for line in pages(session.resolve(draft), session.guard):
                say(line)
    return code_of(read)
